"""Tests that a server watches Kubernetes instead of listing it, by the API server's audit log."""

import collections
import urllib.parse
from collections.abc import Iterable

from tests.cluster_jobs import WAIT_FOR_STOP, create, finish, lines, wait_for_line
from tests.kubernetes.cluster import Cluster, Object
from tests.kubernetes.nodes import Nodes
from tests.trainyard_server import Server, wait_for

RESOURCES = ("jobs", "pods", "nodes", "pods of others")


def resource_of(event: Object) -> str:
    """Returns which of the server's lists and watches it is."""
    others = "/api/v1/pods?" in event["requestURI"]
    return "pods of others" if others else event["objectRef"]["resource"]


def count(events: Iterable[Object], verb: str) -> dict[str, int]:
    """Counts the answered requests by resource."""
    return collections.Counter(
        resource_of(event)
        for event in events
        if event["verb"] == verb
        and event["stage"] == ("ResponseStarted" if verb == "watch" else "ResponseComplete")
    )


def wait_until_watched(cluster: Cluster, since: int) -> None:
    """Waits until a watch of each resource was accepted."""

    def is_watched() -> bool:
        accepted = [
            event
            for event in cluster.audited(since)
            if event.get("responseStatus", {}).get("code") == 200
        ]
        return set(count(accepted, "watch")) == set(RESOURCES)

    wait_for(is_watched, "a watch of each resource")


def test_a_server_lists_once_and_then_watches(cluster: Cluster, server: Server) -> None:
    server.stop()
    since = len(cluster.audited())
    server.start()
    wait_until_watched(cluster, since)
    events = cluster.audited(since)
    assert count(events, "list") == dict.fromkeys(RESOURCES, 1)
    for event in events:
        if event["verb"] == "watch":
            query = urllib.parse.parse_qs(urllib.parse.urlparse(event["requestURI"]).query)
            assert query["allowWatchBookmarks"] == ["true"], event["requestURI"]
            assert int(query["resourceVersion"][0]) > 0, event["requestURI"]
            assert 90 <= int(query["timeoutSeconds"][0]) <= 120, event["requestURI"]


def test_jobs_cause_writes_only(cluster: Cluster, server: Server) -> None:
    """Jobs that start, run, fail and are stopped: none of them is listed or read."""
    finish(server, create(server, "echo first"))
    wait_for(cluster.is_empty, "the gang's objects to be deleted")
    since = len(cluster.audited())
    names = [create(server, "echo hello") for _ in range(3)] + [create(server, "exit 7")]
    stopped = create(server, WAIT_FOR_STOP)
    for name in names:
        finish(server, name)
    wait_for_line(server, stopped, "ready")
    server.boto("sagemaker").stop_training_job(TrainingJobName=stopped)
    finish(server, stopped)
    wait_for(cluster.is_empty, "the gangs' objects to be deleted")
    events = [event for event in cluster.audited(since) if event["verb"] != "watch"]
    assert count(events, "list") == {}
    verbs = collections.Counter(event["verb"] for event in events)
    # For each job: a Job, its NetworkPolicy, Secret and Service, its resumption, its deletion.
    assert verbs == {"create": 5, "patch": 20, "delete": 5}, verbs


def test_watches_continue_after_the_api_server_was_killed(
    cluster: Cluster, nodes: Nodes, server: Server
) -> None:
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    since = len(cluster.audited())
    cluster.kill_apiserver()
    cluster.start_apiserver()
    wait_until_watched(cluster, since)
    # An event after the outage is noticed, and has its words.
    nodes.kill(nodes.pod_of(0), "OOMKilled")
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "OOMKilled, exit code 137" in job["FailureReason"], job["FailureReason"]
    wait_for(cluster.is_empty, "the gang's objects to be deleted")


def test_a_server_lists_again_when_old_changes_are_forgotten(
    cluster: Cluster, server: Server
) -> None:
    """While the API server is away, the Job is deleted, and etcd forgets all earlier changes."""
    name = create(server, WAIT_FOR_STOP)
    wait_for_line(server, name, "ready")
    gang = cluster.gang_objects()["jobs"][0]["metadata"]
    since = len(cluster.audited())
    cluster.kill_apiserver()
    cluster.delete_in_etcd(f"/registry/jobs/{gang['namespace']}/{gang['name']}")
    cluster.compact_etcd()
    cluster.start_apiserver()
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "lost the host's agent" in job["FailureReason"], job["FailureReason"]
    listed = count(cluster.audited(since), "list")
    assert listed.get("jobs", 0) >= 1, listed
    wait_until_watched(cluster, since)
    wait_for(cluster.is_empty, "the gang's objects to be deleted")
    later = create(server, "echo hello")
    assert finish(server, later)["TrainingJobStatus"] == "Completed"
    assert lines(server, later) == ["hello"]
