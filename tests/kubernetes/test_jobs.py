"""Tests jobs on the nodes of a Kubernetes cluster, from API to log."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.cluster_jobs import (
    REACH_THE_FIRST,
    SOME_SECONDS,
    WAIT_FOR_STOP,
    create,
    finish,
    lines,
    wait_for_line,
)
from tests.kubernetes.cluster import NAMESPACE, Cluster
from tests.kubernetes.nodes import Nodes
from tests.packets import Recorder
from tests.trainyard_server import PROGRAM, Server, wait_for

ONLY_ON_N2 = """
[kubernetes.instance_types."ml.m5.large"]
node_selector = { disk = "of-n2" }
"""


def wait_for_message(server: Server, name: str, text: str) -> None:
    def has_message() -> bool:
        job = server.boto("sagemaker").describe_training_job(TrainingJobName=name)
        return text in job["SecondaryStatusTransitions"][-1]["StatusMessage"]

    wait_for(has_message, f"{name} to say '{text}'")


def stop(server: Server, name: str) -> dict[str, Any]:
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    return finish(server, name)


def test_a_host_is_a_pod_that_leaves_nothing_behind(cluster: Cluster, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    found = cluster.gang_objects()
    assert {kind: len(objects) for kind, objects in found.items()} == {
        "jobs": 1,
        "pods": 1,
        "secrets": 1,
        "services": 1,
        "networkpolicies": 1,
    }
    assert stop(server, name)["TrainingJobStatus"] == "Stopped"
    assert lines(server, name) == ["ready", "stopping"]
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_the_orders_of_hosts_are_stored_once_where_they_are_large(
    cluster: Cluster, server: Server
) -> None:
    """The hyperparameters of four hosts do not fit into a Secret."""
    large = {f"name{number}": "x" * 1500 for number in range(100)}
    script = "cat /opt/ml/input/config/hyperparameters.json | wc -c; sleep 3"
    name = create(server, script, hosts=4, HyperParameters=large)
    secret = wait_for(lambda: cluster.gang_objects()["secrets"], "the gang's Secret")[0]
    assert sorted(secret["data"]) == ["0", "1", "2", "3", "shared"]
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    for host in range(1, 5):
        assert int(lines(server, name, host)[0]) > 150_000
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


@pytest.mark.parametrize("encrypted", [False, True])
def test_the_hosts_of_a_gang_reach_each_other(
    cluster: Cluster, server: Server, encrypted: bool
) -> None:
    """Each host needs more than half of a node, so the two run on different nodes. The server's
    links are encrypted in any case: no line of the log is readable."""
    with Recorder() as recorder:
        name = create(
            server,
            f"python3 -c '{REACH_THE_FIRST}'",
            hosts=2,
            instance_type="ml.c5.4xlarge",
            EnableInterContainerTrafficEncryption=encrypted,
        )
        job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name, 2) == ["received 1000000"]
    assert recorder.has("x" * 1000) is not encrypted
    assert not recorder.has("received 1000000")
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_a_job_that_fails_has_its_exit_code(cluster: Cluster, server: Server) -> None:
    job = finish(server, create(server, "exit 7"))
    assert job["TrainingJobStatus"] == "Failed"
    assert "exit code: 7" in job["FailureReason"], job["FailureReason"]
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_only_the_secret_contains_the_token(cluster: Cluster, server: Server) -> None:
    """The Secret is the only object that contains the token."""
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    found = cluster.gang_objects()
    order = json.loads(next(iter(cluster.secret_texts(found["secrets"][0]).values())))
    token = json.loads(order["order"])["token"]
    assert len(token) >= 16
    for kind in ("jobs", "pods", "services", "networkpolicies"):
        assert token not in json.dumps(found[kind]), kind
    stop(server, name)
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_hosts_get_the_gpus_of_the_device_plugin(cluster: Cluster, server: Server) -> None:
    """Two jobs with a GPU each run on the node that has two, and a third one waits for one."""
    script = f"ls /dev/nvidia*; {WAIT_FOR_STOP}"
    names = [create(server, script, instance_type="ml.g4dn.xlarge") for _ in range(2)]
    for name in names:
        wait_for_line(server, name, "ready")
    assert {tuple(lines(server, name)) for name in names} == {
        ("/dev/nvidia0", "ready"),
        ("/dev/nvidia1", "ready"),
    }
    third = create(server, script, instance_type="ml.g4dn.xlarge")
    wait_for_message(server, third, "GPU")
    stop(server, names[0])
    wait_for_line(server, third, "ready")
    assert lines(server, third)[0] == lines(server, names[0])[0]
    for name in (names[1], third):
        stop(server, name)
    wait_for(cluster.is_empty, "the gangs' objects to be deleted")


def test_a_restarted_server_finds_its_gangs(cluster: Cluster, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP, hosts=2, instance_type="ml.c5.4xlarge")
    for host in (1, 2):
        wait_for_line(server, name, "ready", host)
    pods = {pod["metadata"]["uid"] for pod in cluster.gang_objects()["pods"]}
    server.kill()
    server.start()
    assert stop(server, name)["TrainingJobStatus"] == "Stopped"
    assert lines(server, name, 2) == ["ready", "stopping"]
    assert len(pods) == 2
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_unschedulable_jobs_have_kubernetes_reason_and_can_be_stopped(
    cluster: Cluster, nodes: Nodes, start: Callable[..., Server]
) -> None:
    server = start(ONLY_ON_N2)
    server.boto("s3").create_bucket(Bucket="yard")
    nodes.cordon("n2")
    try:
        name = create(server, "echo hello", instance_type="ml.m5.large")
        wait_for_message(server, name, "is Pending (Unschedulable: 0/2 nodes are available")
        assert stop(server, name)["TrainingJobStatus"] == "Stopped"
    finally:
        nodes.cordon("n2", False)
    wait_for(cluster.is_empty, "the gang's objects to be deleted")
    job = finish(server, create(server, "echo hello"))
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    wait_for(cluster.is_empty, "the gang's objects to be deleted")
    server.stop()


def test_a_quota_that_allows_no_pod_is_the_reason(cluster: Cluster, server: Server) -> None:
    quotas = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    cluster.call("POST", quotas, quota)
    try:
        # The API server counts what exists before it enforces a new quota.
        wait_for(lambda: cluster.call("GET", f"{quotas}/none")["status"].get("used"), "the quota")
        name = create(server, "echo hello")
        wait_for_message(server, name, "exceeded quota: none, requested: pods=1")
        assert stop(server, name)["TrainingJobStatus"] == "Stopped"
    finally:
        cluster.call("DELETE", f"{quotas}/none")
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_a_pod_that_is_killed_is_a_lost_host(
    cluster: Cluster, nodes: Nodes, server: Server
) -> None:
    name = create(server, WAIT_FOR_STOP, hosts=2, instance_type="ml.c5.4xlarge")
    for host in (1, 2):
        wait_for_line(server, name, "ready", host)
    nodes.kill(nodes.pod_of(1), "OOMKilled")
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "lost the host's agent" in job["FailureReason"], job["FailureReason"]
    assert "OOMKilled, exit code 137" in job["FailureReason"], job["FailureReason"]
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_a_lost_node_is_reported_with_kubernetes_message(
    cluster: Cluster, nodes: Nodes, server: Server
) -> None:
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    pod = nodes.pod_of(0)
    nodes.lose(pod.node)
    try:
        # As Kubernetes does some minutes later (tolerationSeconds).
        cluster.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod.name}")
        job = finish(server, name)
        assert job["TrainingJobStatus"] == "Failed"
        assert "Kubelet stopped posting node status" in job["FailureReason"], job["FailureReason"]
    finally:
        nodes.recover(pod.node)
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_a_job_that_an_administrator_deletes_is_lost(cluster: Cluster, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    cluster.delete_job(cluster.gang_objects()["jobs"][0]["metadata"]["name"])
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "lost the host's agent" in job["FailureReason"], job["FailureReason"]
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_jobs_survive_an_outage_of_the_api_server(cluster: Cluster, server: Server) -> None:
    name = create(server, SOME_SECONDS)
    wait_for_line(server, name, "ready")
    cluster.kill_apiserver()
    try:
        later = create(server, "echo later")
        wait_for(lambda: "cannot query Kubernetes" in server.log_text(), "the server to notice")
    finally:
        cluster.start_apiserver()
    for each, last in ((name, "continued"), (later, "later")):
        job = finish(server, each)
        assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
        assert lines(server, each)[-1] == last


def test_an_api_server_that_hangs_loses_no_job_and_starts_none_twice(
    cluster: Cluster, server: Server
) -> None:
    """It may carry out requests after the server has given them up."""
    name = create(server, SOME_SECONDS)
    wait_for_line(server, name, "ready")
    before = len(server.log_text())
    assert cluster.apiserver
    cluster.apiserver.send_signal(signal.SIGSTOP)
    try:
        later = create(server, "echo later")
        wait_for(lambda: "creating the Job" in server.log_text()[before:], "a start to fail")
    finally:
        cluster.apiserver.send_signal(signal.SIGCONT)
    for each, expected in ((name, ["ready", "continued"]), (later, ["later"])):
        job = finish(server, each)
        assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
        assert lines(server, each) == expected
    wait_for(cluster.is_empty, "the gangs' objects to be deleted")


def test_the_server_does_not_start_with_invalid_kubernetes_settings(
    start: Callable[..., Server],
) -> None:
    with pytest.raises(AssertionError, match="Kubernetes does not know the caller: Unauthorized"):
        start(token="wrong")
    with pytest.raises(AssertionError, match="no node of Kubernetes has the labels 'disk=none'"):
        start('node_selector = { disk = "none" }')
    with pytest.raises(AssertionError, match='cannot list resource "jobs"'):
        start('namespace = "kube-system"')


def test_the_doctor_counts_usable_nodes(server: Server) -> None:
    config = ["--config", server.data + ".toml"]
    found = subprocess.run(
        [PROGRAM, "doctor", "--data", server.data, *config], capture_output=True, text=True
    ).stdout
    assert "2 of 2 nodes can be used" in found, found


def test_nothing_of_ended_pods_is_left_on_this_machine(nodes: Nodes, server: Server) -> None:
    finish(server, create(server, "echo done"))
    wait_for(lambda: not nodes.running, "all pods to end")

    def links() -> str:
        return subprocess.run(["ip", "-o", "link"], capture_output=True, text=True).stdout

    wait_for(lambda: "tykube-" not in links(), "the kernel to remove the pods' networks")
    assert not os.path.exists("/run/trainyard-orders")
