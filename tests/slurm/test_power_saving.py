"""Tests jobs on nodes that Slurm's power saving starts and stops: real slurmd that a ResumeProgram
starts and a SuspendProgram ends, from no nodes to some and back."""

import datetime
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import cluster_jobs
from tests.nodes import container, make_queue, of_nodes, submit, wait_until
from tests.slurm.cluster import CLOUD_FEATURE, CLOUD_NODES, NODE_CPUS, Cluster
from tests.trainyard_server import Server, wait_for

POWER_SECONDS_MAX = 180  # to start or stop nodes, or until ResumeTimeout (slurm.conf)
WHOLE_NODE: dict[str, Any] = {
    "resourceRequirements": [
        {"type": "VCPU", "value": str(NODE_CPUS)},
        {"type": "MEMORY", "value": "64"},
    ]
}
FIRST, SECOND = CLOUD_NODES
NODE_IDLE_SECONDS = 2


def states(cluster: Cluster) -> dict[str, str]:
    """Returns Slurm's state of each cloud node: "idle~" is powered down, "idle#" powers up, "idle%"
    powers down."""
    text = cluster.run("sinfo", "-h", "-N", "-p", "cloud", "-o", "%N %t")
    return dict(line.split()[:2] for line in text.splitlines())


def wait_for_states(cluster: Cluster, *wanted: str) -> None:
    seen: dict[str, str] = {}

    def reached() -> bool:
        seen.update(states(cluster))
        return sorted(seen.values()) == sorted(wanted)

    try:
        wait_for(reached, f"nodes to be {wanted}", POWER_SECONDS_MAX)
    except AssertionError as late:
        raise AssertionError(f"{late}; they are {seen}") from None


def requests(cluster: Cluster) -> list[tuple[str, str]]:
    """Returns the calls of ResumeProgram and SuspendProgram so far, in order."""
    if not os.path.exists(cluster.at("power.log")):
        return []
    with open(cluster.at("power.log"), encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return [(os.path.basename(program), node) for program, node in lines]


@pytest.fixture(scope="module")
def server(cluster: Cluster, start: Callable[..., Server]) -> Server:
    one = start(
        f'node_idle_seconds = {NODE_IDLE_SECONDS}\n[slurm.node_kinds."{CLOUD_FEATURE}"]', "cloud"
    )
    one.boto("s3").create_bucket(Bucket="yard")
    return one


@pytest.fixture
def batch(cluster: Cluster, server: Server) -> Iterator[BaseClient]:
    wait_for_states(cluster, "idle~", "idle~")
    yield server.boto("batch")


def queue_of(batch: BaseClient, nodes_max: int, nodes_min: int = 0) -> str:
    return make_queue(
        batch,
        nodes_max * NODE_CPUS,
        minvCpus=nodes_min * NODE_CPUS,
        instanceTypes=[CLOUD_FEATURE],
    )


def finish(batch: BaseClient, job: str) -> str:
    return str(wait_until(batch, job, seconds_max=2 * POWER_SECONDS_MAX)["status"])


def environment_of(batch: BaseClient, queue: str) -> dict[str, Any]:
    (shown,) = batch.describe_job_queues(jobQueues=[queue])["jobQueues"]
    arn = shown["computeEnvironmentOrder"][0]["computeEnvironment"]
    (environment,) = batch.describe_compute_environments(computeEnvironments=[arn])[
        "computeEnvironments"
    ]
    return dict(environment)


def test_a_gang_powers_up_its_nodes_which_power_down_after_it(
    cluster: Cluster, server: Server, batch: BaseClient
) -> None:
    before = len(requests(cluster))
    queue = queue_of(batch, 2)
    script = "hostname; while [ ! -e /tmp/never ]; do sleep 0.1; done"
    job = submit(batch, queue, of_nodes(script, 2, **WHOLE_NODE))
    wait_for(
        lambda: batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "RUNNING",
        "the job to run",
        POWER_SECONDS_MAX,
    )
    assert states(cluster) == {FIRST: "alloc", SECOND: "alloc"}
    assert environment_of(batch, queue)["computeResources"]["desiredvCpus"] == 2 * NODE_CPUS
    batch.terminate_job(jobId=job, reason="seen")
    wait_for_states(cluster, "idle~", "idle~")
    assert sorted(requests(cluster)[before:]) == [
        (program, node) for program in ("resume", "suspend") for node in CLOUD_NODES
    ]
    assert all(not cluster.processes_of(node) for node in CLOUD_NODES)


def test_nothing_is_billed_before_all_nodes_are_up(
    cluster: Cluster, server: Server, batch: BaseClient
) -> None:
    held = cluster.at(f"held-{SECOND}")
    open(held, "w").close()
    name = cluster_jobs.create(server, "echo ran", hosts=2, instance_type="ml.c5.4xlarge")
    sagemaker = server.boto("sagemaker")
    try:
        wait_for(
            lambda: states(cluster) == {FIRST: "idle", SECOND: "idle#"},
            "the first node to be up",
            POWER_SECONDS_MAX,
        )
        wait_for(
            lambda: (
                "waiting for machines: 1 of kind c5.4xlarge is being added"
                in str(sagemaker.describe_training_job(TrainingJobName=name))
            ),
            "the job to tell for what it waits",
        )
        time.sleep(2 * NODE_IDLE_SECONDS)
        assert states(cluster)[FIRST] == "idle", "it is kept for the gang"
        job = sagemaker.describe_training_job(TrainingJobName=name)
        assert job["SecondaryStatus"] in ("Pending", "Starting"), job
        assert "TrainingStartTime" not in job and not job.get("BillableTimeInSeconds"), job
    finally:
        whole = datetime.datetime.now(datetime.UTC)
        os.remove(held)
    job = cluster_jobs.finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert job["TrainingStartTime"] >= whole
    ran = job["TrainingEndTime"] - job["TrainingStartTime"]
    assert job["BillableTimeInSeconds"] <= math.ceil(ran.total_seconds()) + 1
    wait_for_states(cluster, "idle~", "idle~")


def test_the_minimum_of_an_environment_keeps_nodes_up(cluster: Cluster, batch: BaseClient) -> None:
    queue = queue_of(batch, 2, nodes_min=1)
    wait_for_states(cluster, "idle", "idle~")
    (kept,) = [node for node, state in states(cluster).items() if state == "idle"]
    before = len(requests(cluster))
    job = submit(batch, queue, of_nodes("true", 2, **WHOLE_NODE))
    assert finish(batch, job) == "SUCCEEDED"
    (other,) = set(CLOUD_NODES) - {kept}
    # Both have been idle for as long, and one is released.
    wait_for_states(cluster, "idle", "idle~")
    assert requests(cluster)[before:] in (
        [("resume", other), ("suspend", kept)],
        [("resume", other), ("suspend", other)],
    )
    environment = environment_of(batch, queue)
    assert environment["computeResources"]["desiredvCpus"] == NODE_CPUS
    batch.update_compute_environment(
        computeEnvironment=environment["computeEnvironmentArn"], computeResources={"minvCpus": 0}
    )
    wait_for_states(cluster, "idle~", "idle~")


def test_an_operator_can_request_nodes(cluster: Cluster, batch: BaseClient) -> None:
    environment = environment_of(batch, queue_of(batch, 2))["computeEnvironmentArn"]

    def desire(nodes: int) -> None:
        batch.update_compute_environment(
            computeEnvironment=environment, computeResources={"desiredvCpus": nodes * NODE_CPUS}
        )

    desire(2)
    wait_for_states(cluster, "idle", "idle")
    shown = batch.describe_compute_environments(computeEnvironments=[environment])
    assert shown["computeEnvironments"][0]["computeResources"]["desiredvCpus"] == 2 * NODE_CPUS
    desire(0)
    wait_for_states(cluster, "idle~", "idle~")


def test_the_maximum_of_an_environment_is_not_passed(cluster: Cluster, batch: BaseClient) -> None:
    before = len(requests(cluster))
    one = container("true", **WHOLE_NODE)
    array = submit(batch, queue_of(batch, 1), one, arrayProperties={"size": 3})
    assert finish(batch, array) == "SUCCEEDED"
    wait_for_states(cluster, "idle~", "idle~")
    resumed = [node for program, node in requests(cluster)[before:] if program == "resume"]
    assert len(resumed) == 1, "children run one after another on one node"


def test_a_node_that_does_not_power_up_is_named(
    cluster: Cluster, server: Server, batch: BaseClient
) -> None:
    broken = cluster.at(f"broken-{FIRST}")
    open(broken, "w").close()
    try:
        job = submit(batch, queue_of(batch, 2), of_nodes("true", 2, **WHOLE_NODE))
        wait_for(
            lambda: states(cluster)[FIRST] == "down~", "ResumeTimeout to pass", POWER_SECONDS_MAX
        )

        def reason() -> str:
            return str(batch.describe_jobs(jobs=[job])["jobs"][0].get("statusReason"))

        wait_for(
            lambda: re.search(f"{FIRST}: ResumeTimeout reached", reason()) is not None,
            f"the job to have Slurm's reason, not {reason()}",
        )
    finally:
        os.remove(broken)
    cluster.run("scontrol", "update", f"nodename={FIRST}", "state=resume")
    assert finish(batch, job) == "SUCCEEDED"
    wait_for_states(cluster, "idle~", "idle~")
