"""Tests training jobs queued by AWS Batch (service jobs), the resources that jobs consume, and the
front of queues, through unmodified clients."""

import json
import pathlib
import uuid
from collections.abc import Collection
from typing import Any

import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests import jobs, sdk
from tests.calls import fresh, refusal
from tests.trainyard_server import Server, wait_for

FINAL = ("SUCCEEDED", "FAILED")


@pytest.fixture(scope="module")
def batch(server: Server) -> BaseClient:
    return server.boto("batch")


@pytest.fixture(scope="module", autouse=True)
def bucket(server: Server) -> None:
    server.boto("s3").create_bucket(Bucket="yard")


def make_queue(batch: BaseClient, instances: int, **more: Any) -> str:
    environment, name = fresh("instances"), fresh("queue")
    made = batch.create_service_environment(
        serviceEnvironmentName=environment,
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"maxCapacity": instances, "capacityUnit": "NUM_INSTANCES"}],
    )
    batch.create_job_queue(
        jobQueueName=name,
        priority=1,
        jobQueueType="SAGEMAKER_TRAINING",
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": made["serviceEnvironmentArn"]}],
        **more,
    )
    return name


@pytest.fixture(scope="module")
def queue(batch: BaseClient) -> str:
    return make_queue(batch, 8)


def submit(
    batch: BaseClient, queue: str, script: str = "true", hosts: int = 1, **more: Any
) -> dict[str, Any]:
    payload = jobs.request("lesson", script, hosts=hosts)
    return batch.submit_service_job(
        jobName=more.pop("jobName", "lesson"),
        jobQueue=queue,
        serviceJobType="SAGEMAKER_TRAINING",
        serviceRequestPayload=json.dumps(payload),
        **more,
    )


def wait_until(batch: BaseClient, job: str, statuses: Collection[str] = FINAL) -> dict[str, Any]:
    seen = {}

    def reached() -> bool:
        seen.update(batch.describe_service_job(jobId=job))
        return seen["status"] in statuses

    wait_for(reached, f"{job} to be one of {statuses}", interval_seconds=0.2)
    return seen


def test_a_queued_training_job_is_in_both_apis(
    server: Server, batch: BaseClient, queue: str
) -> None:
    made = submit(
        batch,
        queue,
        "echo queued; echo weights > /opt/ml/model/weights.txt",
        schedulingPriority=3,
        tags={"a": "1"},
        retryStrategy={"attempts": 2},
    )
    assert ":service-job/" in made["jobArn"]
    done = wait_until(batch, made["jobArn"])
    assert (
        done["status"] == "SUCCEEDED"
        and done["jobId"] == made["jobId"]
        and done["jobName"] == "lesson"
    ), done
    assert (
        done["schedulingPriority"] == 3
        and done["retryStrategy"] == {"attempts": 2}
        and done["tags"] == {"a": "1"}
        and not done["isTerminated"]
    )
    assert done["createdAt"] <= done["scheduledAt"] <= done["startedAt"] <= done["stoppedAt"]
    assert json.loads(done["serviceRequestPayload"])["TrainingJobName"] == "lesson", (
        "as it was given"
    )
    assert (
        done["capacityUsage"] == [{"capacityUnit": "NUM_INSTANCES", "quantity": 1}]
        and len(done["attempts"]) == 1
    )
    arn = done["latestAttempt"]["serviceResourceId"]["value"]
    name = arn.rsplit("/", 1)[1]
    assert (
        name.startswith("lesson-")
        and done["latestAttempt"]["serviceResourceId"]["name"] == "TrainingJobArn"
    )
    sagemaker = server.boto("sagemaker")
    training = sagemaker.describe_training_job(TrainingJobName=name)
    assert training["TrainingJobStatus"] == "Completed" and training["ModelArtifacts"][
        "S3ModelArtifacts"
    ].endswith(f"{name}/output/model.tar.gz")
    assert jobs.log_lines(server.boto("logs"), name) == ["queued"]
    assert name in [
        one["TrainingJobName"]
        for one in sagemaker.list_training_jobs(NameContains=name)["TrainingJobSummaries"]
    ]
    assert batch.describe_jobs(jobs=[made["jobId"]])["jobs"] == [], "not a job of a container"
    listed = batch.list_service_jobs(jobQueue=queue, jobStatus="SUCCEEDED")["jobSummaryList"]
    assert made["jobId"] in [one["jobId"] for one in listed]
    assert [
        one["jobId"]
        for one in batch.list_service_jobs(
            jobQueue=queue, filters=[{"name": "JOB_NAME", "values": ["Less*"]}]
        )["jobSummaryList"]
        if one["jobId"] == made["jobId"]
    ] == [made["jobId"]]


def test_instances_are_limited_and_waiting_jobs_say_why(batch: BaseClient) -> None:
    queue = make_queue(batch, 2)
    first = submit(batch, queue, "while :; do sleep 0.1; done", hosts=2)["jobId"]
    wait_until(batch, first, ("RUNNING",))
    second = submit(batch, queue)["jobId"]
    wait_for(
        lambda: (
            "1 more instances of service environment"
            in batch.describe_service_job(jobId=second).get("statusReason", "")
        ),
        "the reason",
    )
    front = wait_for(
        lambda: batch.get_job_queue_snapshot(jobQueue=queue)["frontOfQueue"]["jobs"],
        "the second job to stand at the front",
    )
    assert [one["jobArn"].rsplit("/", 1)[1] for one in front] == [second]
    used = batch.get_job_queue_snapshot(jobQueue=queue)["queueUtilization"]["totalCapacityUsage"]
    assert [one["quantity"] for one in used] == [2]
    assert batch.update_service_job(jobId=second, schedulingPriority=9)["jobId"] == second
    assert batch.describe_service_job(jobId=second)["schedulingPriority"] == 9
    done = batch.terminate_service_jobs(jobs=[first, "no-such-job"], reason="enough of it")
    assert done["successful"] == [first] and [one["job"] for one in done["errors"]] == [
        "no-such-job"
    ]
    ended = wait_until(batch, first)
    assert (
        ended["status"] == "FAILED"
        and ended["isTerminated"]
        and ended["statusReason"] == "enough of it"
    )
    assert wait_until(batch, second)["status"] == "SUCCEEDED"


def test_a_failure_is_retried_by_its_text(batch: BaseClient, queue: str) -> None:
    strategy = {
        "attempts": 3,
        "evaluateOnExit": [
            {"action": "RETRY", "onStatusReason": "Received status from SageMaker:AlgorithmError*"},
            {"action": "EXIT", "onStatusReason": "*"},
        ],
    }
    done = wait_until(batch, submit(batch, queue, "exit 3", retryStrategy=strategy)["jobId"])
    assert done["status"] == "FAILED" and len(done["attempts"]) == 3
    assert (
        done["statusReason"].startswith("Received status from SageMaker:AlgorithmError")
        and "exit code: 3" in done["statusReason"]
    )
    once = wait_until(
        batch,
        submit(
            batch,
            queue,
            "exit 3",
            retryStrategy={
                "attempts": 3,
                "evaluateOnExit": [{"action": "EXIT", "onStatusReason": "*"}],
            },
        )["jobId"],
    )
    assert len(once["attempts"]) == 1
    with pytest.raises(botocore.exceptions.ClientError, match="a . only at its end"):
        submit(
            batch,
            queue,
            "true",
            retryStrategy={
                "attempts": 3,
                "evaluateOnExit": [{"action": "EXIT", "onStatusReason": "*Error"}],
            },
        )


def test_a_repeated_request_is_one_job(batch: BaseClient, queue: str) -> None:
    token = uuid.uuid4().hex
    assert (
        submit(batch, queue, clientToken=token)["jobId"]
        == submit(batch, queue, clientToken=token)["jobId"]
    )
    assert submit(batch, queue)["jobId"] != submit(batch, queue)["jobId"]


def test_quota_shares(server: Server, batch: BaseClient) -> None:
    policy = batch.create_scheduling_policy(
        name=fresh("quotas"), quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"}
    )["arn"]
    queue = make_queue(batch, 2, schedulingPolicyArn=policy)
    limits = [{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}]
    arns = {}
    for name, sharing in (
        ("red", {"strategy": "LEND_AND_BORROW", "borrowLimit": 100}),
        ("blue", {"strategy": "RESERVE"}),
    ):
        made = batch.create_quota_share(
            quotaShareName=name,
            jobQueue=queue,
            capacityLimits=limits,
            resourceSharingConfiguration=sharing,
            preemptionConfiguration={"inSharePreemption": "DISABLED"},
        )
        arns[name] = made["quotaShareArn"]
    assert {
        one["quotaShareName"] for one in batch.list_quota_shares(jobQueue=queue)["quotaShares"]
    } == {"red", "blue"}
    shown = batch.describe_quota_share(quotaShareArn=arns["red"])
    assert shown["capacityLimits"] == limits and shown["resourceSharingConfiguration"] == {
        "strategy": "LEND_AND_BORROW",
        "borrowLimit": 100,
    }
    assert "quotaShareName is required" in refusal(lambda **more: submit(batch, queue, **more))
    assert "does not exist" in refusal(
        lambda **more: submit(batch, queue, quotaShareName="green", **more)
    )
    first = submit(
        batch,
        queue,
        "while :; do sleep 0.1; done",
        quotaShareName="red",
        preemptionConfiguration={"preemptionRetriesBeforeTermination": 3},
    )["jobId"]
    wait_until(batch, first, ("RUNNING",))
    second = submit(batch, queue, quotaShareName="red")["jobId"]
    wait_for(
        lambda: batch.describe_service_job(jobId=second).get("statusReason"),
        "the second job to say why it waits: blue lends nothing",
    )
    assert (
        wait_until(
            batch, submit(batch, queue, quotaShareName="red", hosts=2)["jobId"], ("RUNNABLE",)
        )["quotaShareName"]
        == "red"
    )
    snapshot = wait_for(
        lambda: [
            one
            for one in [batch.get_job_queue_snapshot(jobQueue=queue)]
            if "red" in one.get("frontOfQuotaShares", {}).get("quotaShares", {})
        ],
        "the front of the share",
    )[0]
    assert (
        snapshot["frontOfQuotaShares"]["quotaShares"]["red"][0]["jobArn"].rsplit("/", 1)[1]
        == second
    )
    assert [
        one["quotaShareName"]
        for one in snapshot["queueUtilization"]["quotaShareUtilization"]["topCapacityUtilization"]
    ] == ["red"]
    batch.terminate_service_jobs(jobs=[first], reason="enough of it")
    assert wait_until(batch, second)["status"] == "SUCCEEDED"


def test_invalid_requests_name_the_member(batch: BaseClient, queue: str) -> None:
    payload = jobs.request("lesson")
    call = dict(
        call=batch.submit_service_job,
        jobName="x",
        jobQueue=queue,
        serviceJobType="SAGEMAKER_TRAINING",
    )
    assert "serviceRequestPayload" in refusal(**call, serviceRequestPayload="{")
    assert "roleArn" in refusal(
        **call,
        serviceRequestPayload=json.dumps(
            {name: value for name, value in payload.items() if name != "RoleArn"}
        ),
    )
    assert "ml.none.large" in refusal(
        **call, serviceRequestPayload=json.dumps(jobs.request("x", instance_type="ml.none.large"))
    )
    good = json.dumps(payload)
    assert "at least 60" in refusal(
        **call, serviceRequestPayload=good, timeoutConfig={"attemptDurationSeconds": 5}
    )
    assert "has none" in refusal(**call, serviceRequestPayload=good, shareIdentifier="a")
    assert "between 0 and 9999" in refusal(
        **call, serviceRequestPayload=good, schedulingPriority=10000
    )
    assert "does not exist" in refusal(
        **(call | {"jobQueue": "nowhere"}), serviceRequestPayload=good
    )
    assert "does not exist" in refusal(batch.describe_service_job, jobId="nobody")


def test_service_environments(batch: BaseClient) -> None:
    name = fresh("environment")
    limits = [{"maxCapacity": 4, "capacityUnit": "NUM_INSTANCES"}]
    made = batch.create_service_environment(
        serviceEnvironmentName=name,
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=limits,
        tags={"a": "1"},
    )
    shown = batch.describe_service_environments(serviceEnvironments=[name])["serviceEnvironments"]
    assert [(one["state"], one["status"], one["capacityLimits"], one["tags"]) for one in shown] == [
        ("ENABLED", "VALID", limits, {"a": "1"})
    ]
    assert "capacityUnit" in refusal(
        batch.create_service_environment,
        serviceEnvironmentName=fresh("x"),
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"maxCapacity": 1, "capacityUnit": "sheep"}],
    )
    queue = fresh("queue")
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        jobQueueType="SAGEMAKER_TRAINING",
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": name}],
        jobStateTimeLimitActions=[
            {
                "reason": "too long",
                "state": "RUNNABLE",
                "maxTimeSeconds": 600,
                "action": "TERMINATE",
            }
        ],
    )
    shown = batch.describe_job_queues(jobQueues=[queue])["jobQueues"][0]
    assert (
        shown["serviceEnvironmentOrder"]
        == [{"order": 1, "serviceEnvironment": made["serviceEnvironmentArn"]}]
        and shown["jobQueueType"] == "SAGEMAKER_TRAINING"
    )
    assert shown["jobStateTimeLimitActions"][0]["maxTimeSeconds"] == 600
    assert "between 600" in refusal(
        batch.update_job_queue,
        jobQueue=queue,
        jobStateTimeLimitActions=[
            {"reason": "x", "state": "RUNNABLE", "maxTimeSeconds": 5, "action": "TERMINATE"}
        ],
    )
    assert "must be TERMINATE" in refusal(
        batch.update_job_queue,
        jobQueue=queue,
        jobStateTimeLimitActions=[
            {"reason": "x", "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}
        ],
    )
    assert "accepts service jobs only" in refusal(
        batch.submit_job,
        jobName="x",
        jobQueue=queue,
        jobDefinition=batch.register_job_definition(
            jobDefinitionName=fresh("d"),
            type="container",
            containerProperties={"image": "trainyard/host", "vcpus": 1, "memory": 64},
        )["jobDefinitionArn"],
    )
    assert "must be disabled" in refusal(batch.delete_service_environment, serviceEnvironment=name)
    batch.update_service_environment(
        serviceEnvironment=name,
        state="DISABLED",
        capacityLimits=[{"maxCapacity": 1, "capacityUnit": "ml.m5.large"}],
    )
    assert "relationship" in refusal(batch.delete_service_environment, serviceEnvironment=name)
    batch.update_job_queue(jobQueue=queue, state="DISABLED")
    batch.delete_job_queue(jobQueue=queue)
    batch.delete_service_environment(serviceEnvironment=name)
    assert (
        batch.describe_service_environments(serviceEnvironments=[name])["serviceEnvironments"] == []
    )


def test_jobs_wait_for_what_they_consume(batch: BaseClient) -> None:
    environment = fresh("environment")
    queue = fresh("queue")
    licences = fresh("licences")
    credits = fresh("credits")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 8},
    )
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    batch.create_consumable_resource(consumableResourceName=licences, totalQuantity=2)
    batch.create_consumable_resource(
        consumableResourceName=credits, totalQuantity=3, resourceType="NON_REPLENISHABLE"
    )

    def consuming(script: str, **amounts: int) -> str:
        definition = batch.register_job_definition(
            jobDefinitionName=fresh("d"),
            type="container",
            containerProperties={
                "image": "trainyard/host",
                "command": ["/bin/sh", "-c", script],
                "resourceRequirements": [
                    {"type": "VCPU", "value": "0.1"},
                    {"type": "MEMORY", "value": "64"},
                ],
            },
            consumableResourceProperties={
                "consumableResourceList": [
                    {"consumableResource": name, "quantity": amount}
                    for name, amount in amounts.items()
                ]
            },
        )
        return batch.submit_job(
            jobName="consumer", jobQueue=queue, jobDefinition=definition["jobDefinitionArn"]
        )["jobId"]

    def shown(job: str) -> dict[str, Any]:
        return batch.describe_jobs(jobs=[job])["jobs"][0]

    first = consuming("while :; do sleep 0.1; done", **{licences: 2, credits: 1})
    wait_for(lambda: shown(first)["status"] == "RUNNING", "the first job to run")
    assert [
        batch.describe_consumable_resource(consumableResource=licences)[member]
        for member in ("totalQuantity", "inUseQuantity", "availableQuantity")
    ] == [2, 2, 0]
    assert batch.describe_consumable_resource(consumableResource=credits)["totalQuantity"] == 2
    second = consuming("true", **{licences: 1})
    wait_for(
        lambda: (
            f"1 more of consumable resource {licences}" in shown(second).get("statusReason", "")
        ),
        "the reason",
    )
    other = consuming("true", **{credits: 2})
    wait_for(lambda: shown(other)["status"] == "SUCCEEDED", "who needs something else to overtake")
    listed = batch.list_jobs_by_consumable_resource(
        consumableResource=licences, filters=[{"name": "JOB_STATUS", "values": ["RUNNING"]}]
    )["jobs"]
    assert [one["quantity"] for one in listed] == [2]
    snapshot = batch.get_job_queue_snapshot(jobQueue=queue)
    assert [one["jobArn"].rsplit("/", 1)[1] for one in snapshot["frontOfQueue"]["jobs"]] == [second]
    assert batch.cancel_jobs(jobs=["no-such-job"], reason="no error")["successful"] == [
        "no-such-job"
    ]
    assert batch.terminate_jobs(jobs=[first], reason="enough")["successful"] == [first]
    wait_for(lambda: shown(second)["status"] == "SUCCEEDED", "the licences to come back")
    assert batch.describe_consumable_resource(consumableResource=credits)["totalQuantity"] == 0
    with pytest.raises(botocore.exceptions.ClientError, match="does not exist"):
        consuming("true", nothing=1)


@pytest.mark.parametrize("version", [2, 3])
def test_the_sdks_training_queue(
    server: Server, batch: BaseClient, version: int, tmp_path: pathlib.Path
) -> None:
    queue = make_queue(batch, 4)
    found, printed, _ = sdk.run(server, version, tmp_path, "training_queue.py", [queue])
    assert found["version"].startswith(f"{version}.")
    assert found["done"]["status"] == "SUCCEEDED" and found["done"]["schedulingPriority"] == 7
    assert found["many"] == ["SUCCEEDED", "SUCCEEDED"] and found["got"]
    assert found["listed"] == ["failing", "many-1", "many-2", "one"]
    assert found["failing"].startswith("Received status from SageMaker:AlgorithmError"), printed[
        -2000:
    ]
    lines = jobs.log_lines(server.boto("logs"), found["training_job"])
    assert any("the lesson is one" in line for line in lines), lines
