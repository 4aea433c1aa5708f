"""Tests arrays on a real Slurm cluster: a Slurm job runs one child after another
(docs/decisions/38)."""

import collections
import os
import signal
from collections.abc import Callable

import pytest
from botocore.client import BaseClient

from tests.batch_queues import create_queues
from tests.calls import fresh
from tests.slurm.cluster import NODE_CPUS, Cluster
from tests.trainyard_server import Server, wait_for

# Each child uses a whole node, so as many run at once as there are nodes.
CHILD_CPUS = NODE_CPUS
# A new container has no files of another child.
ONCE = """
[ ! -e /var/tmp/mark ] && [ ! -e /tmp/mark ] || { echo not alone; exit 1; }
touch /var/tmp/mark /tmp/mark
echo ran $AWS_BATCH_JOB_ARRAY_INDEX
"""
ARRAY_SECONDS_MAX = 240


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    # Longer than any pause between two children, so that the counts do not depend on timing.
    one = start("idle_seconds = 30")
    create_queues(
        one,
        isolated={"trainyard:reuse-hosts": "false"},
        reused={"trainyard:reuse-hosts": "true"},
    )
    return one


def submit(batch: BaseClient, children: int, script: str = ONCE, queue: str = "isolated") -> str:
    name = fresh("array")
    batch.register_job_definition(
        jobDefinitionName=name,
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["/bin/sh", "-c", script],
            "resourceRequirements": [
                {"type": "VCPU", "value": str(CHILD_CPUS)},
                {"type": "MEMORY", "value": "64"},
            ],
        },
    )
    job = batch.submit_job(
        jobName=name,
        jobQueue=queue,
        jobDefinition=name,
        arrayProperties={"size": children},
        timeout={"attemptDurationSeconds": 600},
    )
    return str(job["jobId"])


def summary(batch: BaseClient, array: str) -> dict[str, int]:
    (job,) = batch.describe_jobs(jobs=[array])["jobs"]
    return dict(job["arrayProperties"].get("statusSummary", {}))


def finish(server: Server, array: str) -> None:
    """Checks that each child succeeded and ran once."""
    batch = server.boto("batch")

    def over() -> bool:
        (job,) = batch.describe_jobs(jobs=[array])["jobs"]
        return job["status"] in ("SUCCEEDED", "FAILED")

    wait_for(over, f"the array to end, {summary(batch, array)}", ARRAY_SECONDS_MAX)
    (job,) = batch.describe_jobs(jobs=[array])["jobs"]
    children = job["arrayProperties"]["size"]
    logs = server.boto("logs")
    ran: collections.Counter[str] = collections.Counter()
    for index in range(children):
        (child,) = batch.describe_jobs(jobs=[f"{array}:{index}"])["jobs"]
        assert child["status"] == "SUCCEEDED", (index, child["statusReason"], child["attempts"])
        assert len(child["attempts"]) == 1, child["attempts"]
        events = logs.get_log_events(
            logGroupName="/aws/batch/job",
            logStreamName=child["container"]["logStreamName"],
            startFromHead=True,
        )["events"]
        ran.update(
            event["message"] for event in events if not event["message"].startswith("trainyard: ")
        )
    assert ran == {f"ran {index}": 1 for index in range(children)}


def slurm_jobs(cluster: Cluster, server: Server) -> set[str]:
    """Returns the server's jobs that Slurm still lists."""
    return {job[0] for job in cluster.jobs() if job[5].startswith("trainyard/")}


def test_a_slurm_job_runs_children_one_after_another(cluster: Cluster, server: Server) -> None:
    before = slurm_jobs(cluster, server)
    finish(server, submit(server.boto("batch"), 20))
    used = slurm_jobs(cluster, server) - before
    assert 1 <= len(used) <= len(cluster.names), used
    wait_for(lambda: not cluster.live_jobs(), "idle Slurm jobs to end")


def test_children_share_a_container_if_their_queue_allows_it(
    cluster: Cluster, server: Server
) -> None:
    before = slurm_jobs(cluster, server)
    script = "echo ran $AWS_BATCH_JOB_ARRAY_INDEX"
    finish(server, submit(server.boto("batch"), 20, script, "reused"))
    used = slurm_jobs(cluster, server) - before
    assert 1 <= len(used) <= len(cluster.names), used


def some_ran(server: Server, array: str, children: int) -> None:
    wait_for(
        lambda: summary(server.boto("batch"), array).get("SUCCEEDED", 0) >= children,
        f"{children} children to end",
        ARRAY_SECONDS_MAX,
    )


def test_nothing_is_lost_or_runs_twice_when_the_server_is_killed(server: Server) -> None:
    array = submit(server.boto("batch"), 40)
    for children in (5, 15, 25):
        some_ran(server, array, children)
        server.kill()
        server.start()
    finish(server, array)


def test_a_child_is_not_lost_when_the_agents_between_children_are_killed(
    cluster: Cluster, server: Server
) -> None:
    finish(server, submit(server.boto("batch"), 3))
    # All are idle now: nothing runs, and the next children come before Slurm tells.
    for agent in server.agents():
        os.kill(agent, signal.SIGKILL)
    finish(server, submit(server.boto("batch"), 6))


def test_idle_jobs_end_with_their_slurmd(cluster: Cluster, server: Server) -> None:
    finish(server, submit(server.boto("batch"), 3))
    cluster.fail_node("n1")
    array = submit(server.boto("batch"), 6)
    some_ran(server, array, 2)
    cluster.start_node("n1")
    finish(server, array)
    cluster.wait_for(cluster.nodes_respond, "the node to be back")


def test_stopped_children_leave_their_slurm_jobs_to_others(
    cluster: Cluster, server: Server
) -> None:
    before = slurm_jobs(cluster, server)
    batch = server.boto("batch")
    long = submit(batch, len(cluster.names), "sleep 600 & wait")
    wait_for(
        lambda: summary(batch, long).get("RUNNING", 0) == len(cluster.names),
        "all children to run",
        ARRAY_SECONDS_MAX,
    )
    batch.terminate_job(jobId=long, reason="enough")
    finish(server, submit(batch, 6))
    used = slurm_jobs(cluster, server) - before
    assert len(used) <= len(cluster.names), used
