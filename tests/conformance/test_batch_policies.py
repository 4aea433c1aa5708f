"""Tests further parts of AWS Batch through unmodified clients: scheduling policies, consumable
resources, and the content of queues and lists."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import debians_boto
from tests.calls import fresh, refusal
from tests.trainyard_server import Answer, Server, wait_for


@pytest.fixture(scope="module")
def batch(server: Server) -> BaseClient:
    return server.boto("batch")


def test_scheduling_policies(server: Server, batch: BaseClient) -> None:
    name = fresh("fair")
    fair = {
        "shareDecaySeconds": 3600,
        "computeReservation": 50,
        "shareDistribution": [
            {"shareIdentifier": "UserA*", "weightFactor": 0.125},
            {"shareIdentifier": "B"},
        ],
    }
    made = batch.create_scheduling_policy(name=name, fairsharePolicy=fair, tags={"a": "1"})
    assert (
        made["name"] == name
        and made["arn"].startswith("arn:aws:batch:us-east-1:")
        and made["arn"].endswith(f":scheduling-policy/{name}")
    )
    shown = batch.describe_scheduling_policies(arns=[made["arn"], made["arn"] + "-none"])[
        "schedulingPolicies"
    ]
    assert shown == [
        {"name": name, "arn": made["arn"], "fairsharePolicy": fair, "tags": {"a": "1"}}
    ]
    assert refusal(batch.create_scheduling_policy, name=name) == "Object already exists"
    batch.update_scheduling_policy(arn=made["arn"], fairsharePolicy={"shareDecaySeconds": 60})
    assert batch.describe_scheduling_policies(arns=[made["arn"]])["schedulingPolicies"][0][
        "fairsharePolicy"
    ] == {"shareDecaySeconds": 60}
    batch.update_scheduling_policy(arn=made["arn"])
    assert batch.describe_scheduling_policies(arns=[made["arn"]])["schedulingPolicies"][0][
        "fairsharePolicy"
    ] == {"shareDecaySeconds": 60}, "what is not given stays"
    assert "cannot become" in refusal(
        batch.update_scheduling_policy,
        arn=made["arn"],
        quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"},
    )
    others = [batch.create_scheduling_policy(name=fresh("other"))["arn"] for _ in range(2)]
    listed = [
        one["arn"]
        for page in batch.get_paginator("list_scheduling_policies").paginate(
            PaginationConfig={"PageSize": 1}
        )
        for one in page["schedulingPolicies"]
    ]
    assert {made["arn"], *others} <= set(listed) and len(listed) == len(set(listed))
    batch.tag_resource(resourceArn=made["arn"], tags={"b": "2"})
    assert batch.list_tags_for_resource(resourceArn=made["arn"])["tags"] == {"a": "1", "b": "2"}
    for arn in [made["arn"], *others, made["arn"]]:
        batch.delete_scheduling_policy(arn=arn)
    assert batch.describe_scheduling_policies(arns=[made["arn"]])["schedulingPolicies"] == []
    assert "does not exist" in refusal(
        batch.update_scheduling_policy, arn=made["arn"], fairsharePolicy={}
    )


@pytest.mark.parametrize(
    "fair, said",
    [
        ({"shareDecaySeconds": 604801}, "shareDecaySeconds"),
        ({"computeReservation": 100}, "computeReservation"),
        (
            {"shareDistribution": [{"shareIdentifier": "a", "weightFactor": 0.00001}]},
            "weightFactor",
        ),
        ({"shareDistribution": [{"shareIdentifier": "a-b"}]}, "letters and numbers"),
        (
            {"shareDistribution": [{"shareIdentifier": "User*"}, {"shareIdentifier": "UserA"}]},
            "overlap",
        ),
    ],
)
def test_invalid_policies_are_rejected(batch: BaseClient, fair: dict[str, Any], said: str) -> None:
    assert said in refusal(
        batch.create_scheduling_policy, name=fresh("wrong"), fairsharePolicy=fair
    )


def test_consumable_resources(server: Server, batch: BaseClient) -> None:
    name = fresh("licences")
    made = batch.create_consumable_resource(
        consumableResourceName=name, totalQuantity=5, tags={"a": "1"}
    )
    shown = batch.describe_consumable_resource(consumableResource=made["consumableResourceArn"])
    assert (
        shown["totalQuantity"],
        shown["inUseQuantity"],
        shown["availableQuantity"],
        shown["resourceType"],
        shown["tags"],
    ) == (5, 0, 5, "REPLENISHABLE", {"a": "1"})
    change = dict(consumableResource=name, clientToken=uuid.uuid4().hex)
    assert (
        batch.update_consumable_resource(operation="ADD", quantity=3, **change)["totalQuantity"]
        == 8
    )
    assert (
        batch.update_consumable_resource(operation="ADD", quantity=3, **change)["totalQuantity"]
        == 8
    ), "a repeated request is done once"
    assert (
        batch.update_consumable_resource(consumableResource=name, operation="REMOVE", quantity=6)[
            "totalQuantity"
        ]
        == 2
    )
    assert "invalid quantity -3 to add to the 2 of" in refusal(
        batch.update_consumable_resource, consumableResource=name, operation="REMOVE", quantity=3
    )
    assert (
        batch.update_consumable_resource(consumableResource=name, operation="SET", quantity=7)[
            "totalQuantity"
        ]
        == 7
    )
    assert (
        refusal(batch.create_consumable_resource, consumableResourceName=name)
        == "Object already exists"
    )
    assert "resourceType" in refusal(
        batch.create_consumable_resource, consumableResourceName=fresh("x"), resourceType="ENDLESS"
    )
    assert "must be between 0 and" in refusal(
        batch.create_consumable_resource, consumableResourceName=fresh("x"), totalQuantity=-1
    )
    other = fresh("tokens")
    batch.create_consumable_resource(
        consumableResourceName=other, totalQuantity=1, resourceType="NON_REPLENISHABLE"
    )
    found = batch.list_consumable_resources(
        filters=[{"name": "CONSUMABLE_RESOURCE_NAME", "values": ["Tokens-*"]}]
    )["consumableResources"]
    assert [one["consumableResourceName"] for one in found] == [other] and found[0][
        "resourceType"
    ] == "NON_REPLENISHABLE"
    pages = list(
        batch.get_paginator("list_consumable_resources").paginate(PaginationConfig={"PageSize": 1})
    )
    assert {name, other} <= {
        one["consumableResourceName"] for page in pages for one in page["consumableResources"]
    }
    assert batch.list_jobs_by_consumable_resource(consumableResource=name)["jobs"] == []
    batch.delete_consumable_resource(consumableResource=name)
    batch.delete_consumable_resource(consumableResource=name)
    assert "does not exist" in refusal(batch.describe_consumable_resource, consumableResource=name)
    batch.delete_consumable_resource(consumableResource=other)


def make_queue(batch: BaseClient, policy: str, **more: Any) -> str:
    environment, queue = fresh("environment"), fresh("queue")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 1},
    )
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
        schedulingPolicyArn=policy,
        **more,
    )
    return queue


def test_an_environment_returns_the_requested_vcpus(batch: BaseClient) -> None:
    environment = fresh("environment")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "minvCpus": 1, "maxvCpus": 4, "desiredvCpus": 2},
    )
    for desired in (2, 4, 1):
        batch.update_compute_environment(
            computeEnvironment=environment, computeResources={"desiredvCpus": desired}
        )
        (shown,) = batch.describe_compute_environments(computeEnvironments=[environment])[
            "computeEnvironments"
        ]
        assert shown["computeResources"]["desiredvCpus"] == desired
    batch.update_compute_environment(computeEnvironment=environment, state="DISABLED")


def test_a_queue_that_is_shared_by_weights(server: Server, batch: BaseClient) -> None:
    policy = batch.create_scheduling_policy(
        name=fresh("fair"),
        fairsharePolicy={
            "shareDecaySeconds": 3600,
            "shareDistribution": [{"shareIdentifier": "UserA*", "weightFactor": 0.5}],
        },
    )["arn"]
    queue = make_queue(batch, policy)
    assert (
        batch.describe_job_queues(jobQueues=[queue])["jobQueues"][0]["schedulingPolicyArn"]
        == policy
    )
    assert "relationship" in refusal(batch.delete_scheduling_policy, arn=policy)
    definition = batch.register_job_definition(
        jobDefinitionName=fresh("short"),
        type="container",
        schedulingPriority=2,
        containerProperties={
            "image": "trainyard/host",
            "vcpus": 1,
            "memory": 64,
            "command": ["/bin/sh", "-c", "while [ ! -e /tmp/never ]; do sleep 0.1; done"],
        },
    )["jobDefinitionArn"]
    call = dict(jobName="shared", jobQueue=queue, jobDefinition=definition)
    assert "shareIdentifier is required" in refusal(batch.submit_job, **call)

    def shown(job: str) -> dict[str, Any]:
        return batch.describe_jobs(jobs=[job])["jobs"][0]

    running = batch.submit_job(**call, shareIdentifier="UserA1")["jobId"]
    wait_for(lambda: shown(running)["status"] == "RUNNING", "the first job to run")
    assert (
        shown(running)["shareIdentifier"] == "UserA1" and shown(running)["schedulingPriority"] == 2
    )
    environment = batch.describe_job_queues(jobQueues=[queue])["jobQueues"][0][
        "computeEnvironmentOrder"
    ][0]["computeEnvironment"]
    assert (
        batch.describe_compute_environments(computeEnvironments=[environment])[
            "computeEnvironments"
        ][0]["computeResources"]["desiredvCpus"]
        == 1
    ), "what its jobs hold"
    assert "desiredvCpus" in refusal(
        batch.update_compute_environment,
        computeEnvironment=environment,
        computeResources={"desiredvCpus": 2},
    )
    same, urgent, other = [
        batch.submit_job(**call, shareIdentifier=share, **more)["jobId"]
        for share, more in (
            ("UserA1", {}),
            ("UserA1", {"schedulingPriorityOverride": 9}),
            ("UserB", {}),
        )
    ]
    wait_for(
        lambda: all(shown(job).get("statusReason") for job in (same, urgent, other)),
        "each to say why it waits",
    )
    assert "vCPU of compute environment" in shown(other)["statusReason"], shown(other)[
        "statusReason"
    ]

    def front() -> list[str]:
        return [
            one["jobArn"].rsplit("/", 1)[1]
            for one in batch.get_job_queue_snapshot(jobQueue=queue)["frontOfQueue"]["jobs"]
        ]

    wait_for(
        lambda: front() == [other, urgent, same],
        "who has had nothing to stand first, and the more urgent of a share before the others",
    )
    used = batch.get_job_queue_snapshot(jobQueue=queue)["queueUtilization"]["fairshareUtilization"]
    assert used["activeShareCount"] == 1 and used["topCapacityUtilization"] == [
        {"shareIdentifier": "UserA1", "capacityUsage": [{"capacityUnit": "VCPU", "quantity": 1}]}
    ]
    listed = batch.list_jobs(
        jobQueue=queue, filters=[{"name": "SHARE_IDENTIFIER", "values": ["UserB"]}]
    )["jobSummaryList"]
    assert [one["jobId"] for one in listed] == [other]
    batch.terminate_job(jobId=running, reason="enough")
    wait_for(lambda: shown(other)["status"] == "RUNNING", "the other share's job to run")
    batch.terminate_jobs(jobs=[same, urgent, other], reason="enough")


def test_an_older_boto3(server: Server, batch: BaseClient) -> None:
    """Debian's version supports scheduling policies."""
    name = fresh("older")
    made = debians_boto.call(
        server,
        "batch",
        "create_scheduling_policy",
        name=name,
        fairsharePolicy={"shareDecaySeconds": 120},
    )
    assert debians_boto.call(server, "batch", "describe_scheduling_policies", arns=[made["arn"]])[
        "schedulingPolicies"
    ][0]["fairsharePolicy"] == {"shareDecaySeconds": 120}
    refused = debians_boto.call(server, "batch", "create_scheduling_policy", name=name)
    assert refused["Error"]["Code"] == "ClientException"
    debians_boto.call(server, "batch", "delete_scheduling_policy", arn=made["arn"])


def test_both_command_lines(server: Server, aws: Callable[..., Answer]) -> None:
    """Uses policies with only the `aws` command, the current version and Debian's."""
    name = fresh("by-hand")
    made = aws(
        "batch",
        "create-scheduling-policy",
        "--name",
        name,
        "--fairshare-policy",
        "shareDecaySeconds=60,shareDistribution=[{shareIdentifier=a,weightFactor=2}]",
    )
    assert made["arn"] in [
        one["arn"] for one in aws("batch", "list-scheduling-policies")["schedulingPolicies"]
    ]
    environment, queue = fresh("by-hand"), fresh("by-hand")
    aws(
        "batch",
        "create-compute-environment",
        "--compute-environment-name",
        environment,
        "--type",
        "MANAGED",
        "--compute-resources",
        "type=EC2,maxvCpus=1,subnets=s-1,instanceTypes=optimal,instanceRole=ecsInstanceRole",
    )
    aws(
        "batch",
        "create-job-queue",
        "--job-queue-name",
        queue,
        "--priority",
        "1",
        "--compute-environment-order",
        f"order=1,computeEnvironment={environment}",
        "--scheduling-policy-arn",
        made["arn"],
    )
    assert (
        aws("batch", "describe-job-queues", "--job-queues", queue)["jobQueues"][0][
            "schedulingPolicyArn"
        ]
        == made["arn"]
    )
    definition = aws(
        "batch",
        "register-job-definition",
        "--job-definition-name",
        fresh("by-hand"),
        "--type",
        "container",
        "--container-properties",
        "image=trainyard/host,vcpus=2,memory=64",
    )
    job = aws(
        "batch",
        "submit-job",
        "--job-name",
        "shared",
        "--job-queue",
        queue,
        "--job-definition",
        definition["jobDefinitionArn"],
        "--share-identifier",
        "a",
        "--scheduling-priority-override",
        "3",
    )["jobId"]
    assert aws("batch", "describe-jobs", "--jobs", job)["jobs"][0]["shareIdentifier"] == "a"
    aws("batch", "cancel-job", "--job-id", job, "--reason", "by hand")
    aws("batch", "update-job-queue", "--job-queue", queue, "--state", "DISABLED")
    aws("batch", "delete-job-queue", "--job-queue", queue)
    aws("batch", "delete-scheduling-policy", "--arn", made["arn"])


def test_many_jobs_at_once(batch: BaseClient) -> None:
    """Waiting jobs are cancelled and terminated by the list. An unknown job causes no error, as in
    single calls."""
    environment, queue = fresh("environment"), fresh("queue")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 1},
    )
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    definition = batch.register_job_definition(
        jobDefinitionName=fresh("large"),
        type="container",
        containerProperties={"image": "trainyard/host", "vcpus": 2, "memory": 64},
    )
    ids = [
        batch.submit_job(
            jobName="waits", jobQueue=queue, jobDefinition=definition["jobDefinitionArn"]
        )["jobId"]
        for _ in range(4)
    ]
    done = batch.cancel_jobs(jobs=[*ids[:2], "nobody"], reason="too large")
    assert done["successful"] == [*ids[:2], "nobody"] and done["errors"] == []
    assert batch.terminate_jobs(jobs=ids[2:], reason="enough")["successful"] == ids[2:]
    shown = {job["jobId"]: job for job in batch.describe_jobs(jobs=ids)["jobs"]}
    assert [
        (shown[id]["status"], shown[id]["statusReason"], shown[id]["isCancelled"]) for id in ids
    ] == [("FAILED", "too large", True)] * 2 + [("FAILED", "enough", False)] * 2
    assert "1 to 50" in refusal(batch.cancel_jobs, jobs=["x"] * 51, reason="many")
    refused = batch.cancel_jobs(jobs=ids[:1], reason=" ")
    assert refused["successful"] == [] and [
        (one["job"], one["code"]) for one in refused["errors"]
    ] == [(ids[0], "ClientException")]
