"""Runs Kueue, with its webhooks, for a control plane of tests. tests/kubernetes/prepare builds it.

Webhooks are called at this machine's address, without a Service, with certificates of the tests'
authority."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.kubernetes.cluster import (
    ADMIN_TOKEN,
    KUEUE_RIGHTS,
    NAMESPACE,
    PROGRAMS,
    Cluster,
    Object,
    Refused,
    read_rights,
)
from tests.kubernetes.network import GATEWAY
from tests.ports import free_port
from tests.trainyard_server import wait_for

MANIFESTS = os.path.join(PROGRAMS, "kueue-manifests")
# Kueue reads the certificate of its metrics at a fixed path, so it has its own /etc. It has no
# server for kubectl's view of queues, which needs another one.
RUN_WITH_CERTIFICATES = r"""set -e
mount -t tmpfs tmpfs {mount}
mkdir -p {mount}/work {mount}/etc/kueue/metrics
cp -r {certificates} {mount}/etc/kueue/metrics/certs
mount -t overlay overlay -o lowerdir=/etc,upperdir={mount}/etc,workdir={mount}/work /etc
exec {program} --config={config} --kubeconfig={kubeconfig} \
  --feature-gates=VisibilityOnDemand=false
"""
CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
GROUP = "/apis/kueue.x-k8s.io/v1beta2"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


class Kueue:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Kueue:
        for each in read_rights(KUEUE_RIGHTS):
            self.cluster.create(each)
        for name in sorted(os.listdir(MANIFESTS)):
            with open(os.path.join(MANIFESTS, name), encoding="utf-8") as file:
                for each in yaml.safe_load_all(file):
                    if each["kind"] == "CustomResourceDefinition":
                        self.cluster.create(self.with_conversion(each))
        wait_for(self.is_served, "Kueue's resources to be served")
        self.run()
        with open(os.path.join(MANIFESTS, "manifests.yaml"), encoding="utf-8") as file:
            for each in yaml.safe_load_all(file):
                self.cluster.create(self.with_webhooks(each))
        self.create("resourceflavors", "default", {})
        return self

    def client(self, path: str) -> Object:
        """Returns where the API server calls Kueue."""
        with open(self.cluster.at("ca.crt"), "rb") as file:
            trust = base64.b64encode(file.read()).decode()
        return {"url": f"https://{GATEWAY}:{self.port}{path}", "caBundle": trust}

    def with_conversion(self, definition: Object) -> Object:
        if definition["spec"]["names"]["plural"] in CONVERTED:
            webhook = {
                "clientConfig": self.client("/convert"),
                "conversionReviewVersions": ["v1"],
            }
            definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        return definition

    def with_webhooks(self, configuration: Object) -> Object:
        """Returns those that concern Jobs and Kueue's own resources."""
        groups = ("batch", "kueue.x-k8s.io")
        configuration["webhooks"] = [
            each | {"clientConfig": self.client(each["clientConfig"]["service"]["path"])}
            for each in configuration["webhooks"]
            if each["rules"][0]["apiGroups"][0] in groups
        ]
        return configuration

    def definitions(self) -> list[Any]:
        found: list[Any] = self.cluster.call("GET", CRDS)["items"]
        return found

    def is_served(self) -> bool:
        return all(
            any(
                condition["type"] == "Established" and condition["status"] == "True"
                for condition in each["status"].get("conditions") or ()
            )
            for each in self.definitions()
        )

    def run(self) -> None:
        at = self.cluster.at
        certificates, mount = at("kueue-certificates"), at("kueue-mount")
        for directory in (certificates, mount):
            os.makedirs(directory)
        for name, kind in (("server.crt", "tls.crt"), ("server.key", "tls.key")):
            os.symlink(at(name), os.path.join(certificates, kind))
        config = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": "kueue-system",  # in its own one Kueue manages no Jobs
            "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
            "metrics": {"bindAddress": f"127.0.0.1:{free_port()}"},
            "webhook": {"host": GATEWAY, "port": self.port, "certDir": certificates},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "integrations": {"frameworks": ["batch/job"]},
        }
        kubeconfig = json.dumps(self.cluster.kubeconfig(ADMIN_TOKEN))
        script = RUN_WITH_CERTIFICATES.format(
            mount=mount,
            certificates=certificates,
            program=os.path.join(PROGRAMS, "kueue"),
            config=self.cluster.write("kueue.json", json.dumps(config)),
            kubeconfig=self.cluster.write("kueue-access.json", kubeconfig),
        )
        self.process = self.cluster.launch("kueue", ["unshare", "--mount", "sh", "-c", script])

    def stop(self) -> None:
        """Removes Kueue, and before it its resources, whose objects only it converts and releases.
        The control plane is then as before."""
        for each in self.definitions():
            self.cluster.call("DELETE", f"{CRDS}/{each['metadata']['name']}")
        wait_for(lambda: not self.definitions(), "Kueue's resources to be deleted")
        for kind in WEBHOOKS:
            for each in self.cluster.call("GET", f"{ADMISSION}/{kind}")["items"]:
                self.cluster.call("DELETE", f"{ADMISSION}/{kind}/{each['metadata']['name']}")
        if self.process:
            self.process.kill()
            self.process.wait()
            self.cluster.processes.remove(self.process)

    # -- Kueue's objects --------------------------------------------------------------------------

    def create(self, kind: str, name: str, spec: Object, name_space: str = "") -> None:
        """Creates an object, when Kueue answers."""
        names = {"clusterqueues": "ClusterQueue", "localqueues": "LocalQueue"}
        thing = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": names.get(kind, "ResourceFlavor"),
            "metadata": {"name": name},
            "spec": spec,
        }
        within = f"/namespaces/{name_space}" if name_space else ""

        def created() -> bool:
            try:
                self.cluster.call("POST", f"{GROUP}{within}/{kind}", thing)
                return True
            except Refused as refused:
                if refused.status != 500:
                    raise
                return False

        wait_for(created, f"Kueue to accept {name}")

    def make_queue(self, name: str, cpus: int) -> None:
        """Makes a ClusterQueue with a LocalQueue of its name in the namespace of the tests."""
        quotas = [{"name": "cpu", "nominalQuota": cpus}, {"name": "memory", "nominalQuota": "1Ti"}]
        flavors = [{"name": "default", "resources": quotas}]
        self.create(
            "clusterqueues",
            name,
            {
                "namespaceSelector": {},
                "preemption": {"withinClusterQueue": "LowerPriority"},
                "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}],
            },
        )
        self.create("localqueues", name, {"clusterQueue": name}, NAMESPACE)

    def workloads(self) -> list[Any]:
        found: list[Any] = self.cluster.call("GET", f"{GROUP}/namespaces/{NAMESPACE}/workloads")[
            "items"
        ]
        return found

    def workload_of(self, job: Object) -> Object:
        [one] = [
            each
            for each in self.workloads()
            if each["metadata"]["labels"]["kueue.x-k8s.io/job-uid"] == job["metadata"]["uid"]
        ]
        assert isinstance(one, dict)
        return one
