"""Tests shared queues on a real server: weights over many short jobs, and which job is preempted
and runs again."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import jobs
from tests.calls import fresh
from tests.trainyard_server import Server, wait_for

CHILDREN = 60
NEVER = "while :; do sleep 0.1; done"


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server]) -> Server:
    server = start(
        "[jobs]\nstop_grace_seconds = 2\n[spot]\nnotice_seconds = 2\n[[machine]]\nname ="
        " 'box'\ncpus = 16.0\nmemory_gib = 64.0\n"
    )
    server.boto("s3").create_bucket(Bucket="yard")
    return server


@pytest.fixture(scope="module")
def batch(cluster: Server) -> BaseClient:
    return cluster.boto("batch")


@pytest.mark.usefixtures("own_operations")
def test_starts_follow_the_weights_also_over_a_crash(cluster: Server, batch: BaseClient) -> None:
    """A share of weight factor 1 gets three times the time of a share of weight factor 3
    while both have waiting jobs: the next start is of the share that is behind, so it never falls
    behind by more than the jobs that run at the same time."""
    policy = batch.create_scheduling_policy(
        name=fresh("weights"),
        fairsharePolicy={
            "shareDecaySeconds": 600,
            "shareDistribution": [
                {"shareIdentifier": "much", "weightFactor": 1},
                {"shareIdentifier": "little", "weightFactor": 3},
            ],
        },
    )["arn"]
    environment, queue = fresh("environment"), fresh("queue")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 2},
    )
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
        schedulingPolicyArn=policy,
    )
    definition = batch.register_job_definition(
        jobDefinitionName=fresh("short"),
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "vcpus": 1,
            "memory": 64,
            "command": ["/bin/sh", "-c", "sleep 0.3"],
        },
    )["jobDefinitionArn"]
    arrays = {
        share: batch.submit_job(
            jobName=share,
            jobQueue=queue,
            jobDefinition=definition,
            shareIdentifier=share,
            arrayProperties={"size": CHILDREN},
        )["jobId"]
        for share in ("much", "little")
    }

    def succeeded(share: str) -> int:
        return batch.describe_jobs(jobs=[arrays[share]])["jobs"][0]["arrayProperties"][
            "statusSummary"
        ]["SUCCEEDED"]

    wait_for(lambda: succeeded("much") > CHILDREN // 3, "a third of the jobs to be done")
    cluster.kill()
    cluster.start()
    batch = cluster.boto("batch")
    wait_for(
        lambda: succeeded("little") == CHILDREN and succeeded("much") == CHILDREN,
        "all to be done",
        300,
    )
    ids = [
        (share, f"{array}:{index}") for share, array in arrays.items() for index in range(CHILDREN)
    ]
    trainyard = cluster.boto("trainyard")
    held: dict[str, tuple[float, float]] = {}
    for _, id in ids:
        intervals = trainyard.describe_job_time(JobName=id)["Intervals"]
        start = next(one["StartTime"] for one in intervals if one["Use"] != "Queued").timestamp()
        end = intervals[-1]["StartTime"].timestamp() + intervals[-1]["Milliseconds"] / 1000
        held[id] = start, end
    # Shares count time with hosts, not starts: a job that has its host while the server is down
    # counts for more.
    last = max(held[id][0] for share, id in ids if share == "much")
    used = dict.fromkeys(arrays, 0.0)
    for share, id in ids:
        start, end = held[id]
        used[share] += max(0.0, min(end, last) - start)
    longest = max(end - start for start, end in held.values())
    # Two jobs run at the same time, each of weight factor 3 at most.
    assert abs(used["much"] - 3 * used["little"]) <= 2 * 3 * longest, f"{used}, {longest=}"


def test_preempted_jobs_run_again(batch: BaseClient) -> None:
    policy = batch.create_scheduling_policy(
        name=fresh("quotas"), quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"}
    )["arn"]
    environment, queue = fresh("instances"), fresh("queue")
    batch.create_service_environment(
        serviceEnvironmentName=environment,
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"maxCapacity": 2, "capacityUnit": "NUM_INSTANCES"}],
    )
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        jobQueueType="SAGEMAKER_TRAINING",
        schedulingPolicyArn=policy,
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": environment}],
    )
    for name in ("red", "blue"):
        batch.create_quota_share(
            quotaShareName=name,
            jobQueue=queue,
            capacityLimits=[{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
            resourceSharingConfiguration={"strategy": "LEND_AND_BORROW"},
            preemptionConfiguration={"inSharePreemption": "DISABLED"},
        )

    def submit(share: str, script: str) -> str:
        return batch.submit_service_job(
            jobName=share,
            jobQueue=queue,
            serviceJobType="SAGEMAKER_TRAINING",
            quotaShareName=share,
            serviceRequestPayload=json.dumps(jobs.request("lesson", script)),
        )["jobId"]

    def shown(job: str) -> dict[str, Any]:
        return batch.describe_service_job(jobId=job)

    reds = [submit("red", NEVER) for _ in range(2)]
    wait_for(
        lambda: all(shown(job)["status"] == "RUNNING" for job in reds),
        "red to have what blue does not use",
    )
    blue = submit("blue", "sleep 1")
    wait_for(lambda: shown(blue)["status"] == "SUCCEEDED", "blue to have what is its own")
    preempted = [
        job
        for job in reds
        if shown(job).get("preemptionSummary", {}).get("preemptedAttemptCount") == 1
    ]
    assert len(preempted) == 1, [shown(job) for job in reds]
    wait_for(
        lambda: (
            shown(preempted[0])["status"] == "RUNNING" and len(shown(preempted[0])["attempts"]) == 1
        ),
        "the preempted job to run again",
    )
    reason = shown(preempted[0])["preemptionSummary"]["recentPreemptedAttempts"][0]["statusReason"]
    assert "quota share blue" in reason, reason
    batch.terminate_service_jobs(jobs=reds, reason="enough of it")
    wait_for(lambda: all(shown(job)["status"] == "FAILED" for job in reds), "all to end")
