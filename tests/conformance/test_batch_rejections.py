"""Tests requests that Batch's model allows and its service rejects, next to their valid forms."""

from typing import Any

import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refusal
from tests.nodes import container, describe, make_queue, submit, wait_until
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def batch(server: Server) -> BaseClient:
    return server.boto("batch")


@pytest.fixture(scope="module")
def queue(batch: BaseClient) -> str:
    return make_queue(batch)


def test_tags_that_aws_refuses(batch: BaseClient, queue: str) -> None:
    definition = fresh("tagged")
    batch.register_job_definition(
        jobDefinitionName=definition, type="container", containerProperties=container()
    )
    job = {"jobName": "x", "jobQueue": queue, "jobDefinition": definition}
    for tags in ({"a#b": "1"}, {"a": "x;y"}, {"a\n": "1"}):
        assert "has other characters than AWS allows" in refusal(batch.submit_job, **job, tags=tags)
    assert "are reserved: aws:x" in refusal(batch.submit_job, **job, tags={"aws:x": "1"})
    assert "less than or equal to 50" in refusal(
        batch.submit_job, **job, tags={str(number): "" for number in range(51)}
    )
    right = {"Größe @ a/b": "", "trainyard:metric:loss": "l=(.*)"}
    made = batch.submit_job(**job, tags=right)["jobId"]
    assert wait_until(batch, made)["tags"] == right


def test_withdrawals_need_an_id_and_a_reason(batch: BaseClient, queue: str) -> None:
    job = submit(batch, queue, container("exec sleep 600"))
    for withdraw in (batch.cancel_job, batch.terminate_job):
        for member in ("jobId", "reason"):
            given = {"jobId": job, "reason": "enough"} | {member: ""}
            assert f"'{member}' is a required field (cannot be an empty string)" in refusal(
                withdraw, **given
            )
        assert "at most 1024 are allowed" in refusal(withdraw, jobId=job, reason="r" * 1025)
    wait_until(batch, job, ("RUNNING",))
    batch.terminate_job(jobId=job, reason="r" * 1024)
    assert wait_until(batch, job)["statusReason"] == "r" * 1024


@pytest.mark.parametrize("action", ["EXIT", "exit", "Exit"])
def test_retry_actions_are_in_any_case(batch: BaseClient, queue: str, action: str) -> None:
    retries = {"attempts": 3, "evaluateOnExit": [{"action": action, "onExitCode": "7"}]}
    job = submit(batch, queue, container("exit 7"), retryStrategy=retries)
    done = wait_until(batch, job)
    assert (done["status"], len(done["attempts"])) == ("FAILED", 1)
    assert done["retryStrategy"] == retries


def test_instance_types_are_awss(batch: BaseClient) -> None:
    def create(*types: str) -> dict[str, Any]:
        return {
            "computeEnvironmentName": fresh("types"),
            "type": "MANAGED",
            "computeResources": {"type": "EC2", "maxvCpus": 1, "instanceTypes": list(types)},
        }

    for types in (["optimal"], ["m5", "c5.large"], ["default_arm64"], ["p3dn.24xlarge"]):
        batch.create_compute_environment(**create(*types))
    message = refusal(batch.create_compute_environment, **create("m5", "m5.larg"))
    assert "Instance type can only be one of [" in message, message
    assert message.endswith("not 'm5.larg'. Did you mean m5.large?"), message


def test_overrides_keep_the_form_of_the_definition(batch: BaseClient, queue: str) -> None:
    def shown(definition: dict[str, Any], **overrides: object) -> list[object]:
        job = submit(batch, queue, definition, containerOverrides=overrides)
        found = describe(batch, job)["container"]
        return [found.get("vcpus"), found.get("memory"), found["resourceRequirements"]]

    old = container() | {"vcpus": 1, "memory": 64}
    del old["resourceRequirements"]
    two = [{"type": "VCPU", "value": "2"}]
    assert shown(old) == [1, 64, []]
    assert shown(old, vcpus=2) == [2, 64, []]
    assert shown(old, resourceRequirements=two) == [2, 64, two]
    definition = fresh("new")
    batch.register_job_definition(
        jobDefinitionName=definition, type="container", containerProperties=container()
    )
    assert "This value was submitted in a deprecated key and may conflict" in refusal(
        batch.submit_job,
        jobName="x",
        jobQueue=queue,
        jobDefinition=definition,
        containerOverrides={"vcpus": 2},
    )
