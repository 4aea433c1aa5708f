"""Tests gangs in pods of kubelets and containerd, of which one node fails."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from tests.cluster_jobs import SOME_SECONDS, WAIT_FOR_STOP, create, finish, lines, wait_for_line
from tests.kubelets.node import Node
from tests.kubernetes.cluster import NAMESPACE, Cluster
from tests.trainyard_server import Server, wait_for

# A host needs more than half of a node's processors, so that two hosts run on two nodes.
LARGE = "ml.m5.large"
# The image has no program for it. Without arguments it listens; with an address it connects there.
REACH = """
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char** words) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(7777)};
  int link = socket(AF_INET, SOCK_STREAM, 0);
  char text[6] = {0};
  if (count == 1) {
    if (bind(link, (struct sockaddr*)&there, sizeof there) || listen(link, 1)) return 1;
    int peer = accept(link, 0, 0);
    return write(peer, "hello", 5) != 5;
  }
  inet_pton(AF_INET, words[1], &there.sin_addr);
  for (int tries = 0; connect(link, (struct sockaddr*)&there, sizeof there); ++tries) {
    if (tries == 300) return 2;
    usleep(100000);
    close(link);
    link = socket(AF_INET, SOCK_STREAM, 0);
  }
  if (read(link, text, 5) != 5) return 3;
  puts(text);
}
"""
RUN_REACH = (
    "cp /opt/ml/input/data/program/reach /tmp; chmod +x /tmp/reach; "
    'if [ "$(uname -n)" = algo-1 ]; then /tmp/reach; '
    "else set -- $(getent hosts algo-1); /tmp/reach $1; fi"
)


@pytest.fixture
def program(server: Server, tmp_path: pathlib.Path) -> tuple[str, str]:
    """Puts the program into a bucket; returns its channel."""
    (tmp_path / "reach.c").write_text(REACH)
    subprocess.run(["cc", "-static", "-o", "reach", "reach.c"], cwd=tmp_path, check=True)
    server.boto("s3").upload_file(str(tmp_path / "reach"), "yard", "program/reach")
    return "s3://yard/program/", "FullyReplicated"


def pods_of(cluster: Cluster) -> dict[str, str]:
    """Returns the nodes of the running gang's pods, by host."""
    return {
        pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]: pod["spec"][
            "nodeName"
        ]
        for pod in cluster.gang_objects()["pods"]
    }


def wait_until_gone(cluster: Cluster) -> None:
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


@pytest.mark.parametrize("encrypted", [False, True])
def test_the_hosts_of_a_gang_reach_each_other(
    cluster: Cluster, server: Server, program: tuple[str, str], encrypted: bool
) -> None:
    name = create(
        server,
        RUN_REACH,
        hosts=2,
        instance_type=LARGE,
        channels={"program": program},
        EnableInterContainerTrafficEncryption=encrypted,
    )
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name, 2) == ["hello"]
    wait_until_gone(cluster)


def test_a_job_that_fails_has_its_exit_code(cluster: Cluster, server: Server) -> None:
    job = finish(server, create(server, "exit 7"))
    assert "exit code: 7" in job["FailureReason"], job["FailureReason"]
    wait_until_gone(cluster)


def test_a_stopped_job_has_time_to_end(cluster: Cluster, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"
    assert lines(server, name) == ["ready", "stopping"]
    wait_until_gone(cluster)


def test_a_gang_survives_the_end_of_a_kubelet(
    cluster: Cluster, nodes: list[Node], server: Server
) -> None:
    name = create(server, SOME_SECONDS, hosts=2, instance_type=LARGE)
    for host in (1, 2):
        wait_for_line(server, name, "ready", host)
    assert set(pods_of(cluster).values()) == {"k1", "k2"}
    nodes[1].kill_kubelet()
    nodes[1].start_kubelet()
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name, 2) == ["ready", "continued"]
    wait_until_gone(cluster)


def test_a_lost_node_is_a_lost_host(cluster: Cluster, nodes: list[Node], server: Server) -> None:
    name = create(server, WAIT_FOR_STOP, hosts=2, instance_type=LARGE)
    for host in (1, 2):
        wait_for_line(server, name, "ready", host)
    nodes[1].lose()
    try:
        job = finish(server, name)
    finally:
        nodes[1].start_kubelet()
    assert job["TrainingJobStatus"] == "Failed"
    # Kubernetes decides which of the gang's hosts each of its nodes has.
    assert "lost the host's agent" in job["FailureReason"], job["FailureReason"]
    assert "node k2 is not ready" in job["FailureReason"], job["FailureReason"]
    wait_for(nodes[1].is_ready, "k2 to be ready")
    wait_until_gone(cluster)
    again = finish(server, create(server, "echo again", hosts=2, instance_type=LARGE))
    assert again["TrainingJobStatus"] == "Completed", again.get("FailureReason")
    wait_until_gone(cluster)


def test_a_pod_that_an_administrator_deletes_is_a_lost_host(
    cluster: Cluster, server: Server
) -> None:
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    [pod] = cluster.gang_objects()["pods"]
    cluster.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "lost the host's agent" in job["FailureReason"], job["FailureReason"]
    wait_until_gone(cluster)
