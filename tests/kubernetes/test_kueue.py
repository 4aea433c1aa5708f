"""Tests jobs that Kueue admits by the quotas of its queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster_jobs import WAIT_FOR_STOP, create, finish, lines, wait_for_line
from tests.kubernetes.cluster import NAMESPACE, Cluster, Object
from tests.kubernetes.kueue import GROUP, Kueue
from tests.kubernetes.test_jobs import stop, wait_for_message
from tests.trainyard_server import Server, wait_for

QUEUE = "training"
# One job of ml.m5.large, which has 2 vCPUs, fits into the queue, and not two.
CPUS = 3
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
CONFIG = f"""
local_queue = "{QUEUE}"
[kubernetes.instance_types."ml.c5.xlarge"]
local_queue = "missing"
"""


def test_a_local_queue_needs_kueue(start: Callable[..., Server]) -> None:
    with pytest.raises(AssertionError, match="the cluster has no Kueue, which local_queue"):
        start(CONFIG)


@pytest.fixture(scope="module")
def kueue(cluster: Cluster) -> Iterator[Kueue]:
    one = Kueue(cluster)
    try:
        one.start()
        one.make_queue(QUEUE, CPUS)
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="module")
def server(cluster: Cluster, kueue: Kueue, start: Callable[..., Server]) -> Iterator[Server]:
    one = start(CONFIG)
    one.boto("s3").create_bucket(Bucket="yard")
    yield one
    # Their Workloads end while Kueue runs only.
    for job in cluster.gang_objects()["jobs"]:
        cluster.delete_job(job["metadata"]["name"])
    wait_for(cluster.is_empty, "all gangs to be gone")


def gang_job(cluster: Cluster) -> Object:
    [job] = cluster.gang_objects()["jobs"]
    assert isinstance(job, dict)
    return job


def is_admitted(workload: Object) -> bool:
    return any(
        each["type"] == "Admitted" and each["status"] == "True"
        for each in workload["status"]["conditions"]
    )


def urgent_job() -> Object:
    """Returns a Job of another user that needs the whole queue."""
    container = {
        "name": "wait",
        "image": "other",
        "command": ["sh", "-c", WAIT_FOR_STOP],
        "resources": {"requests": {"cpu": str(CPUS)}},
    }
    pod = {
        "restartPolicy": "Never",
        "priorityClassName": "urgent",
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "other", "labels": {"kueue.x-k8s.io/queue-name": QUEUE}},
        "spec": {"suspend": True, "template": {"spec": pod}},
    }


def statuses(job: dict[str, Any]) -> list[str]:
    return [each["StatusMessage"] for each in job["SecondaryStatusTransitions"]]


def test_a_job_runs_when_kueue_admits_it(cluster: Cluster, kueue: Kueue, server: Server) -> None:
    name = create(server, WAIT_FOR_STOP, instance_type="ml.m5.large")
    wait_for_line(server, name, "ready")
    assert is_admitted(kueue.workload_of(gang_job(cluster)))
    second = create(server, "echo second", instance_type="ml.m5.large")
    wait_for_message(server, second, "waits in Kueue's LocalQueue training")
    wait_for_message(server, second, "insufficient unused quota for cpu")
    assert stop(server, name)["TrainingJobStatus"] == "Stopped"
    job = finish(server, second)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    wait_for(cluster.is_empty, "the gangs' objects to be deleted")
    wait_for(lambda: not kueue.workloads(), "their Workloads to be deleted")


def test_a_restarted_server_finds_a_job_that_waits_for_kueue(
    cluster: Cluster, kueue: Kueue, server: Server
) -> None:
    first = create(server, WAIT_FOR_STOP, instance_type="ml.m5.large")
    wait_for_line(server, first, "ready")
    second = create(server, "echo second", instance_type="ml.m5.large")
    wait_for_message(server, second, "insufficient unused quota for cpu")
    server.kill()
    server.start()
    assert stop(server, first)["TrainingJobStatus"] == "Stopped"
    job = finish(server, second)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, second) == ["second"]
    wait_for(cluster.is_empty, "the gangs' objects to be deleted")


def test_a_job_that_waits_for_kueue_can_be_stopped(
    cluster: Cluster, kueue: Kueue, server: Server
) -> None:
    name = create(server, "echo never", instance_type="ml.c5.xlarge")
    wait_for_message(server, name, "LocalQueue missing doesn't exist")
    assert stop(server, name)["TrainingJobStatus"] == "Stopped"
    assert lines(server, name) == []
    wait_for(cluster.is_empty, "the gang's objects to be deleted")
    wait_for(lambda: not kueue.workloads(), "its Workload to be deleted")


def test_a_job_that_kueue_evicts_runs_again_later(
    cluster: Cluster, kueue: Kueue, server: Server
) -> None:
    priority = {"metadata": {"name": "urgent"}, "value": 1000}
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.call("POST", classes, priority)
    name = create(server, WAIT_FOR_STOP, instance_type="ml.m5.large")
    wait_for_line(server, name, "ready")
    cluster.call("POST", JOBS, urgent_job())
    try:
        wait_for_line(server, name, "stopping")
        wait_for_message(server, name, "waits in Kueue's LocalQueue training")
    finally:
        cluster.call("DELETE", f"{JOBS}/other", {"propagationPolicy": "Foreground"})
        cluster.call("DELETE", f"{classes}/urgent")
    wait_for(lambda: lines(server, name).count("ready") == 2, "the job to run again")
    wait_for(lambda: len(cluster.pods()) == 1, "the other user's pod to be gone")
    job = stop(server, name)
    assert job["TrainingJobStatus"] == "Stopped"
    evicted = [text for text in statuses(job) if "was evicted from Kueue's LocalQueue" in text]
    assert evicted and "Preempted to accommodate a workload" in evicted[0], statuses(job)
    wait_for(cluster.is_empty, "the gangs' objects to be deleted")


def test_a_job_that_an_administrator_deactivates_fails(
    cluster: Cluster, kueue: Kueue, server: Server
) -> None:
    name = create(server, WAIT_FOR_STOP, instance_type="ml.m5.large")
    wait_for_line(server, name, "ready")
    workload = kueue.workload_of(gang_job(cluster))["metadata"]["name"]
    cluster.patch(
        f"{GROUP}/namespaces/{NAMESPACE}/workloads/{workload}", {"spec": {"active": False}}
    )
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "was deactivated in Kueue's LocalQueue" in job["FailureReason"], job["FailureReason"]
    wait_for(cluster.is_empty, "the gang's objects to be deleted")
