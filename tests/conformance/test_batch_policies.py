"""AWS Batch beyond jobs: scheduling policies, consumable resources, what queues and lists say, as unmodified clients see it."""

import uuid

import pytest

import debians_boto
from calls import fresh, refusal


@pytest.fixture(scope="module")
def batch(server):
    return server.boto("batch")


def test_scheduling_policies(server, batch):
    name = fresh("fair")
    fair = {"shareDecaySeconds": 3600, "computeReservation": 50, "shareDistribution": [{"shareIdentifier": "UserA*", "weightFactor": 0.125}, {"shareIdentifier": "B"}]}
    made = batch.create_scheduling_policy(name=name, fairsharePolicy=fair, tags={"a": "1"})
    assert made["name"] == name and made["arn"].startswith("arn:aws:batch:us-east-1:") and made["arn"].endswith(f":scheduling-policy/{name}")
    shown = batch.describe_scheduling_policies(arns=[made["arn"], made["arn"] + "-none"])["schedulingPolicies"]
    assert shown == [{"name": name, "arn": made["arn"], "fairsharePolicy": fair, "tags": {"a": "1"}}]
    assert refusal(batch.create_scheduling_policy, name=name) == "Object already exists"
    batch.update_scheduling_policy(arn=made["arn"], fairsharePolicy={"shareDecaySeconds": 60})
    assert batch.describe_scheduling_policies(arns=[made["arn"]])["schedulingPolicies"][0]["fairsharePolicy"] == {"shareDecaySeconds": 60}
    batch.update_scheduling_policy(arn=made["arn"])
    assert batch.describe_scheduling_policies(arns=[made["arn"]])["schedulingPolicies"][0]["fairsharePolicy"] == {"shareDecaySeconds": 60}, "what is not given stays"
    assert "cannot become" in refusal(batch.update_scheduling_policy, arn=made["arn"], quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"})
    others = [batch.create_scheduling_policy(name=fresh("other"))["arn"] for _ in range(2)]
    listed = [one["arn"] for page in batch.get_paginator("list_scheduling_policies").paginate(PaginationConfig={"PageSize": 1}) for one in page["schedulingPolicies"]]
    assert {made["arn"], *others} <= set(listed) and len(listed) == len(set(listed))
    batch.tag_resource(resourceArn=made["arn"], tags={"b": "2"})
    assert batch.list_tags_for_resource(resourceArn=made["arn"])["tags"] == {"a": "1", "b": "2"}
    for arn in [made["arn"], *others, made["arn"]]:
        batch.delete_scheduling_policy(arn=arn)
    assert batch.describe_scheduling_policies(arns=[made["arn"]])["schedulingPolicies"] == []
    assert "does not exist" in refusal(batch.update_scheduling_policy, arn=made["arn"], fairsharePolicy={})


@pytest.mark.parametrize("fair, said", [
    ({"shareDecaySeconds": 604801}, "shareDecaySeconds"),
    ({"computeReservation": 100}, "computeReservation"),
    ({"shareDistribution": [{"shareIdentifier": "a", "weightFactor": 0.00001}]}, "weightFactor"),
    ({"shareDistribution": [{"shareIdentifier": "a-b"}]}, "letters and numbers"),
    ({"shareDistribution": [{"shareIdentifier": "User*"}, {"shareIdentifier": "UserA"}]}, "overlap"),
])
def test_policies_that_cannot_be(batch, fair, said):
    assert said in refusal(batch.create_scheduling_policy, name=fresh("wrong"), fairsharePolicy=fair)


def test_consumable_resources(server, batch):
    name = fresh("licences")
    made = batch.create_consumable_resource(consumableResourceName=name, totalQuantity=5, tags={"a": "1"})
    shown = batch.describe_consumable_resource(consumableResource=made["consumableResourceArn"])
    assert (shown["totalQuantity"], shown["inUseQuantity"], shown["availableQuantity"], shown["resourceType"], shown["tags"]) == (5, 0, 5, "REPLENISHABLE", {"a": "1"})
    change = dict(consumableResource=name, clientToken=uuid.uuid4().hex)
    assert batch.update_consumable_resource(operation="ADD", quantity=3, **change)["totalQuantity"] == 8
    assert batch.update_consumable_resource(operation="ADD", quantity=3, **change)["totalQuantity"] == 8, "a repeated request is done once"
    assert batch.update_consumable_resource(consumableResource=name, operation="REMOVE", quantity=6)["totalQuantity"] == 2
    assert "cannot be added" in refusal(batch.update_consumable_resource, consumableResource=name, operation="REMOVE", quantity=3)
    assert batch.update_consumable_resource(consumableResource=name, operation="SET", quantity=7)["totalQuantity"] == 7
    assert refusal(batch.create_consumable_resource, consumableResourceName=name) == "Object already exists"
    assert "resourceType" in refusal(batch.create_consumable_resource, consumableResourceName=fresh("x"), resourceType="ENDLESS")
    assert "0 or more" in refusal(batch.create_consumable_resource, consumableResourceName=fresh("x"), totalQuantity=-1)
    other = fresh("tokens")
    batch.create_consumable_resource(consumableResourceName=other, totalQuantity=1, resourceType="NON_REPLENISHABLE")
    found = batch.list_consumable_resources(filters=[{"name": "CONSUMABLE_RESOURCE_NAME", "values": ["Tokens-*"]}])["consumableResources"]
    assert [one["consumableResourceName"] for one in found] == [other] and found[0]["resourceType"] == "NON_REPLENISHABLE"
    pages = list(batch.get_paginator("list_consumable_resources").paginate(PaginationConfig={"PageSize": 1}))
    assert {name, other} <= {one["consumableResourceName"] for page in pages for one in page["consumableResources"]}
    assert batch.list_jobs_by_consumable_resource(consumableResource=name)["jobs"] == []
    batch.delete_consumable_resource(consumableResource=name)
    batch.delete_consumable_resource(consumableResource=name)
    assert "does not exist" in refusal(batch.describe_consumable_resource, consumableResource=name)
    batch.delete_consumable_resource(consumableResource=other)


def test_an_older_boto3(server, batch):
    """Debian's knows scheduling policies."""
    name = fresh("older")
    made = debians_boto.call(server, "batch", "create_scheduling_policy", name=name, fairsharePolicy={"shareDecaySeconds": 120})
    assert debians_boto.call(server, "batch", "describe_scheduling_policies", arns=[made["arn"]])["schedulingPolicies"][0]["fairsharePolicy"] == {"shareDecaySeconds": 120}
    refused = debians_boto.call(server, "batch", "create_scheduling_policy", name=name)
    assert refused["Error"]["Code"] == "ClientException"
    debians_boto.call(server, "batch", "delete_scheduling_policy", arn=made["arn"])


def test_both_command_lines(server, aws):
    """Policies with nothing but `aws`, today's and Debian's."""
    name = fresh("by-hand")
    made = aws("batch", "create-scheduling-policy", "--name", name, "--fairshare-policy", "shareDecaySeconds=60,shareDistribution=[{shareIdentifier=a,weightFactor=2}]")
    assert made["arn"] in [one["arn"] for one in aws("batch", "list-scheduling-policies")["schedulingPolicies"]]
    aws("batch", "delete-scheduling-policy", "--arn", made["arn"])


def test_many_jobs_at_once(batch):
    """Who waits is cancelled and terminated by the list; an unknown job is no error, as with one."""
    environment, queue = fresh("environment"), fresh("queue")
    batch.create_compute_environment(computeEnvironmentName=environment, type="MANAGED", computeResources={"type": "EC2", "maxvCpus": 1})
    batch.create_job_queue(jobQueueName=queue, priority=1, computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}])
    definition = batch.register_job_definition(jobDefinitionName=fresh("large"), type="container", containerProperties={"image": "trainyard/machine", "vcpus": 2, "memory": 64})
    ids = [batch.submit_job(jobName="waits", jobQueue=queue, jobDefinition=definition["jobDefinitionArn"])["jobId"] for _ in range(4)]
    done = batch.cancel_jobs(jobs=[*ids[:2], "nobody"], reason="too large")
    assert done["successful"] == [*ids[:2], "nobody"] and done["errors"] == []
    assert batch.terminate_jobs(jobs=ids[2:], reason="enough")["successful"] == ids[2:]
    shown = {job["jobId"]: job for job in batch.describe_jobs(jobs=ids)["jobs"]}
    assert [(shown[id]["status"], shown[id]["statusReason"], shown[id]["isCancelled"]) for id in ids] == [("FAILED", "too large", True)] * 2 + [("FAILED", "enough", False)] * 2
    assert "1 to 50" in refusal(batch.cancel_jobs, jobs=["x"] * 51, reason="many")
    refused = batch.cancel_jobs(jobs=ids[:1], reason=" ")
    assert refused["successful"] == [] and [(one["job"], one["code"]) for one in refused["errors"]] == [(ids[0], "ClientException")]
