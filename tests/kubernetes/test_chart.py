"""Tests the Helm chart with Helm, the API server and the image: what it renders, and a server that
it installs, upgrades and uninstalls."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests import jobs
from tests.cluster_jobs import WAIT_FOR_STOP, create, finish, lines, wait_for_line
from tests.kubernetes.cluster import (
    KUEUE_RIGHTS,
    NAMESPACE,
    PROGRAMS,
    RIGHTS,
    Cluster,
    Object,
    read_rights,
)
from tests.kubernetes.conftest import IMAGE
from tests.kubernetes.nodes import Nodes, Pod
from tests.port_forward import PortForward
from tests.trainyard_server import ROOT, Server, wait_for

CHART = os.path.join(ROOT, "packaging", "kubernetes", "chart")
TEAM = "team"  # the namespace of the installed server
REPOSITORY, TAG = IMAGE.rsplit(":", 1)
OF_IMAGE = ["--set", f"image.repository={REPOSITORY}", "--set-string", f"image.tag={TAG}"]
HELM_SECONDS_MAX = 300
BUCKET = "models"
# Values that reach every branch of the templates.
ALL_VALUES = {
    "image": {"repository": REPOSITORY, "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "server": {
        "config": 'account_id = "123456789012"\n\n[rate_limits]\nreads_per_second = 100\n',
        "certificateNames": ["trainyard.lan"],
        "storage": {"size": "1Ti", "storageClassName": "fast"},
        "externalService": {"enabled": True, "type": "NodePort", "annotations": {"a": "b"}},
        "nodeSelector": {"pool": "small"},
        "tolerations": [{"key": "control", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
    },
    "jobs": {
        "nodeSelector": {"pool": "large", "quoted": 'a"b'},
        "tolerations": ["dedicated=training:NoSchedule"],
        "priorityClassName": "low",
        "runtimeClassName": "runc",
        "mounts": {"/srv/a": {"claim": "shared"}, "/srv/b": {"directory": "/mnt/b"}},
    },
    "kueue": {"enabled": True, "localQueue": "team"},
    "networkPolicy": {"clients": [{"namespaceSelector": {}}]},
}
VARIANTS = {
    "default": {"image": {"repository": REPOSITORY}},
    "all values": ALL_VALUES,
    "existing claim": {
        "image": {"repository": REPOSITORY},
        "server": {"storage": {"existingClaim": "mine"}},
    },
    "server elsewhere": {"server": {"enabled": False}},
    "no policies": {
        "image": {"repository": REPOSITORY},
        "networkPolicy": {"enabled": False},
    },
}


def helm(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [os.path.join(PROGRAMS, "helm"), *arguments],
        capture_output=True,
        text=True,
        timeout=HELM_SECONDS_MAX,
    )
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done


@pytest.fixture
def values(tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> str:
    path = tmp_path / "values.json"
    path.write_text(json.dumps(VARIANTS[request.param]))
    return str(path)


def rendered(*arguments: str, release: str = "trainyard") -> list[Object]:
    text = helm("template", release, CHART, "-n", NAMESPACE, *arguments).stdout
    return [each for each in yaml.safe_load_all(text) if each]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


@pytest.mark.parametrize("values", VARIANTS, indirect=True)
def test_lint_accepts_the_chart(values: str) -> None:
    helm("lint", "--strict", CHART, "-f", values)


@pytest.mark.parametrize("values", VARIANTS, indirect=True)
def test_the_api_server_accepts_what_the_chart_renders(cluster: Cluster, values: str) -> None:
    for each in rendered("-f", values, release="second"):
        cluster.create(each, "?dryRun=All&fieldValidation=Strict")


def is_gone(cluster: Cluster, path: str) -> bool:
    name = path.rsplit("/", 1)[1]
    found = cluster.call("GET", path.removesuffix(f"/{name}"))["items"]
    return all(each["metadata"]["name"] != name for each in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "image.repository"),
        ([*OF_IMAGE, "--set", "jobs.tolerations[0].key=a"], "tolerations"),
        ([*OF_IMAGE, "--set", "server.storrage.size=1Gi"], "storrage"),
        ([*OF_IMAGE, "--set", "jobs.networkPool=10.0.0.0"], "networkPool"),
        ([*OF_IMAGE, "--kube-version", "v1.28.0"], "kubeVersion"),
    ],
)
def test_wrong_values_are_refused_by_name(arguments: list[str], message: str) -> None:
    done = helm("template", "trainyard", CHART, *arguments, check=False)
    assert done.returncode != 0
    assert message in done.stderr, done.stderr


def test_rights_equal_rbac_yaml() -> None:
    """For a server outside the cluster, the file and the chart are alternatives."""

    def rules(objects: list[Object], kind: str) -> list[Any]:
        return [each["rules"] for each in of_kind(objects, kind)]

    written = read_rights(RIGHTS)
    objects = rendered("--set", "server.enabled=false")
    for kind in ("Role", "ClusterRole"):
        assert rules(objects, kind) == rules(written, kind)
    with_kueue = rendered("--set", "server.enabled=false", "--set", "kueue.enabled=true")
    [expected], [more] = rules(written, "Role"), rules(read_rights(KUEUE_RIGHTS), "Role")
    assert rules(with_kueue, "Role") == [expected + more]
    assert not of_kind(objects, "StatefulSet") and not of_kind(objects, "Secret")


@pytest.mark.parametrize("values", VARIANTS, indirect=True)
def test_the_server_accepts_the_config(values: str, tmp_path: pathlib.Path) -> None:
    """It is valid if only the cluster is missing."""
    for each in of_kind(rendered("-f", values), "Secret"):
        file = tmp_path / "trainyard.toml"
        file.write_text(each["stringData"]["trainyard.toml"])
        program = os.path.join(ROOT, "build", "release", "bin", "trainyard")
        served = [program, "serve", "--config", str(file), "--data", str(tmp_path / "data")]
        done = subprocess.run(served, capture_output=True, text=True, timeout=HELM_SECONDS_MAX)
        assert done.returncode != 0
        assert "this server does not run in a pod" in done.stderr, done.stderr


def test_policies_let_jobs_reach_the_server_but_not_clouds_metadata() -> None:
    server, gangs = sorted(
        of_kind(rendered(*OF_IMAGE), "NetworkPolicy"), key=lambda each: each["metadata"]["name"]
    )
    assert gangs["spec"]["ingress"] == []
    [block] = [
        to["ipBlock"]
        for rule in gangs["spec"]["egress"]
        for to in rule.get("to", [])
        if "ipBlock" in to
    ]
    assert "169.254.0.0/16" in block["except"]
    [pods] = of_kind(rendered(*OF_IMAGE), "StatefulSet")
    labels = pods["spec"]["template"]["metadata"]["labels"]
    assert server["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


# -- an installed server --------------------------------------------------------------------------


class Installed:
    """Is a server that Helm installed, as its users see it."""

    def __init__(self, cluster: Cluster, nodes: Nodes, kubeconfig: str, home: str) -> None:
        self.cluster = cluster
        self.nodes = nodes
        self.kubeconfig = kubeconfig
        self.home = home
        self.api = PortForward(lambda: (self.pod().address, 4566))

    def helm(self, *arguments: str) -> str:
        return helm(*arguments, "-n", TEAM, "--kubeconfig", self.kubeconfig).stdout

    def pod(self) -> Pod:
        [one] = [pod for pod in self.nodes.running.values() if pod.name == "trainyard-0"]
        return one

    def client(self) -> Server:
        """Returns clients of the server, as the chart's notes tell: with the script that
        `trainyard env` prints in its pod."""
        pod = self.pod()
        script = subprocess.run(
            ["nsenter", "-t", str(pod.program()), "-a", "--", "/opt/trainyard/bin/trainyard", "env"]
            + ["--data", "/var/lib/trainyard", "--endpoint", f"https://127.0.0.1:{self.api.port}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        exports = subprocess.run(
            ["bash", "-c", script + "\nenv -0"],
            env={"HOME": self.home, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        one = Server(pod.at("clients"), "")
        one.env = dict(each.split("=", 1) for each in exports.split("\0") if "=" in each)
        return one


@pytest.fixture(scope="module")
def installed(
    cluster: Cluster, nodes: Nodes, image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    place = tmp_path_factory.mktemp("volume")
    place.chmod(0o755)
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    for each in (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM, "labels": labels}},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "of-the-server"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "manual",
                "hostPath": {"path": str(place)},
            },
        },
    ):
        cluster.create(each)
    home = str(tmp_path_factory.mktemp("home"))
    one = Installed(cluster, nodes, cluster.at("admin.json"), home)
    with one.api:
        one.helm("install", "trainyard", CHART, *SETTINGS, "--wait", "--timeout", "2m")
        yield one
    one.helm("uninstall", "trainyard", "--wait", "--timeout", "2m")
    cluster.call("DELETE", f"/api/v1/namespaces/{TEAM}")
    wait_for(lambda: is_gone(cluster, f"/api/v1/namespaces/{TEAM}"), "the namespace to be gone")
    cluster.call("DELETE", "/api/v1/persistentvolumes/of-the-server")


SETTINGS = [
    *OF_IMAGE,
    *("--set", "server.storage.storageClassName=manual"),
    *("--set", "server.storage.size=10Gi"),
    *("--set-string", "jobs.nodeSelector.disk=of-n1"),
]


@pytest.fixture(scope="module")
def client(installed: Installed) -> Server:
    one = installed.client()
    one.boto("s3").create_bucket(Bucket=BUCKET)
    return one


def test_the_server_has_no_rights_of_root(installed: Installed) -> None:
    program = installed.pod().program()
    with open(f"/proc/{program}/status", encoding="ascii") as file:
        status = dict(re.findall(r"^(\w+):\t(.*)$", file.read(), re.M))
    assert status["Uid"].split() == ["65532"] * 4
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    with open(f"/proc/{program}/mounts", encoding="ascii") as file:
        [options] = [line.split()[3] for line in file if line.split()[1] == "/"]
    assert options.startswith("ro,"), options


def test_the_server_runs_jobs_in_pods(cluster: Cluster, client: Server) -> None:
    """The pods of jobs have no token, and are isolated."""
    name = create(client, "echo ok", hosts=2, bucket=BUCKET)
    wait_for(lambda: cluster.gang_objects(TEAM)["pods"], "the pods of the gang")
    found = cluster.gang_objects(TEAM)
    job = finish(client, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(client, name, 2) == ["ok"]
    assert {pod["spec"]["nodeName"] for pod in found["pods"]} <= {"n1", None}
    for pod in found["pods"]:
        assert pod["spec"]["serviceAccountName"] == "trainyard-jobs"
        assert not [volume for volume in pod["spec"]["volumes"] if "projected" in volume]
    [policy] = found["networkpolicies"]
    selected = policy["spec"]["podSelector"]["matchLabels"]
    assert all(selected.items() <= pod["metadata"]["labels"].items() for pod in found["pods"])
    [rule] = policy["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": selected}}]


def test_jobs_continue_while_the_server_is_upgraded(installed: Installed, client: Server) -> None:
    name = create(client, WAIT_FOR_STOP, bucket=BUCKET)
    wait_for_line(client, name, "ready")
    before = installed.pod().uid
    more = ["--set-string", "server.config=[rate_limits]\nreads_per_second = 1000\n"]
    installed.helm("upgrade", "trainyard", CHART, *SETTINGS, *more, "--wait", "--timeout", "2m")
    assert installed.pod().uid != before, "its config has changed"
    after = installed.client()
    sagemaker = after.boto("sagemaker")
    assert (
        sagemaker.describe_training_job(TrainingJobName=name)["TrainingJobStatus"] == "InProgress"
    )
    sagemaker.stop_training_job(TrainingJobName=name)
    jobs.wait_until(sagemaker, name, ["Stopped"])
    assert lines(after, name) == ["ready", "stopping"]
