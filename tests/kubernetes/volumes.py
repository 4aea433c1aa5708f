"""Makes the volumes of pods, as kubelets do."""

from __future__ import annotations

import base64
import os

from tests.kubernetes.cluster import Cluster, Object, Refused


class NotYet(Exception):
    """An object that the volume needs does not exist."""


def files_of(cluster: Cluster, pod: Object, source: Object) -> dict[str, bytes]:
    """Returns the files of a volume, or of a part of a projected one, by name."""
    name_space = pod["metadata"]["namespace"]
    if "secret" in source:
        return texts(cluster, name_space, "secrets", source["secret"], "secretName")
    if "configMap" in source:
        return texts(cluster, name_space, "configmaps", source["configMap"], "name")
    if "serviceAccountToken" in source:
        account = pod["spec"]["serviceAccountName"]
        token = cluster.account_token(name_space, account)
        return {source["serviceAccountToken"]["path"]: token.encode()}
    if "downwardAPI" in source:
        fields = {
            item["path"]: item["fieldRef"]["fieldPath"] for item in source["downwardAPI"]["items"]
        }
        assert set(fields.values()) == {"metadata.namespace"}, fields
        return dict.fromkeys(fields, name_space.encode())
    if "projected" in source:
        return {
            name: content
            for part in source["projected"]["sources"]
            for name, content in files_of(cluster, pod, part).items()
        }
    assert "emptyDir" in source, source
    return {}


def texts(
    cluster: Cluster, name_space: str, resource: str, source: Object, member: str
) -> dict[str, bytes]:
    """Returns the data of a Secret or ConfigMap; of the items only, if the source has any."""
    try:
        found = cluster.call("GET", f"/api/v1/namespaces/{name_space}/{resource}/{source[member]}")
    except Refused as refused:
        if refused.status == 404:
            raise NotYet from None
        raise
    data = {
        key: base64.b64decode(value) if resource == "secrets" else value.encode()
        for key, value in found["data"].items()
    }
    if items := source.get("items"):
        return {item["path"]: data[item["key"]] for item in items}
    return data


def make_volume(cluster: Cluster, pod: Object, volume: Object, directory: str) -> str:
    """Makes a volume in the directory, unless it has a place of its own; returns its place."""
    if claim := volume.get("persistentVolumeClaim"):
        claims = f"/api/v1/namespaces/{pod['metadata']['namespace']}/persistentvolumeclaims"
        found = cluster.call("GET", f"{claims}/{claim['claimName']}")
        bound = cluster.call("GET", f"/api/v1/persistentvolumes/{found['spec']['volumeName']}")
        volume = bound["spec"]
    if path := volume.get("hostPath"):
        assert os.path.isdir(path["path"]), path
        return str(path["path"])
    os.makedirs(directory, mode=0o700)
    for name, content in files_of(cluster, pod, volume).items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(content)
    return directory


def give(place: str, user: int, group: int) -> None:
    """Lets a user and group read and write a volume."""
    for parent, _, names in os.walk(place):
        for path in (parent, *(os.path.join(parent, name) for name in names)):
            os.chown(path, user, group, follow_symlinks=False)
