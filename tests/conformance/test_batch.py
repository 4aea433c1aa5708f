"""Tests AWS Batch through unmodified clients: queues, environments, definitions, and jobs of one
container."""

import json
import re
import subprocess
from collections.abc import Callable, Collection
from typing import Any

import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests import debians_boto, trainyard_server
from tests.calls import fresh, refusal
from tests.trainyard_server import Answer, Server, wait_for

IMAGE = "trainyard/host"
FINAL = ("SUCCEEDED", "FAILED")


@pytest.fixture(scope="module")
def batch(server: Server) -> BaseClient:
    return server.boto("batch")


@pytest.fixture(scope="module")
def queue(batch: BaseClient) -> str:
    """Makes a queue with one environment."""
    environment, name = fresh("environment"), fresh("queue")
    made = batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 64,
            "instanceTypes": ["optimal"],
            "subnets": [],
            "instanceRole": "ecsInstanceRole",
        },
    )
    batch.create_job_queue(
        jobQueueName=name,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": made["computeEnvironmentArn"]}],
    )
    return name


def register(
    batch: BaseClient,
    name: str,
    script: str = "true",
    vcpus: str = "0.25",
    memory: str = "64",
    **more: Any,
) -> dict[str, Any]:
    container = {
        "image": IMAGE,
        "command": ["/bin/sh", "-c", script],
        "resourceRequirements": [
            {"type": "VCPU", "value": vcpus},
            {"type": "MEMORY", "value": memory},
        ],
    } | more.pop("containerProperties", {})
    return batch.register_job_definition(
        jobDefinitionName=name, type="container", containerProperties=container, **more
    )


def submit(batch: BaseClient, queue: str, script: str, **more: Any) -> str:
    definition = register(batch, fresh("definition"), script)["jobDefinitionArn"]
    return batch.submit_job(
        **({"jobName": "one", "jobQueue": queue, "jobDefinition": definition} | more)
    )["jobId"]


def wait_until(batch: BaseClient, job: str, statuses: Collection[str] = FINAL) -> dict[str, Any]:
    seen = {}

    def reached() -> bool:
        seen.update(batch.describe_jobs(jobs=[job])["jobs"][0])
        return seen["status"] in statuses

    wait_for(reached, f"{job} to be one of {statuses}")
    return seen


def lines(server: Server, stream: str) -> list[str]:
    events = server.boto("logs").get_log_events(
        logGroupName="/aws/batch/job", logStreamName=stream, startFromHead=True
    )["events"]
    return [event["message"] for event in events]


def test_a_job_gets_the_variables_of_batch(server: Server, batch: BaseClient, queue: str) -> None:
    script = (
        "env | grep ^AWS_BATCH_ | sort; echo $GREETING; ls -d /opt/ml 2>&1; aws=$AWS_ENDPOINT_URL;"
        " echo ${aws:+reaches}"
    )
    definition = register(
        batch,
        fresh("hello"),
        script,
        containerProperties={"environment": [{"name": "GREETING", "value": "hello"}]},
    )
    assert definition["revision"] == 1
    made = batch.submit_job(
        jobName="hello",
        jobQueue=queue,
        jobDefinition=definition["jobDefinitionName"],
        tags={"team": "a"},
    )
    assert made["jobName"] == "hello" and made["jobArn"].endswith(":job/" + made["jobId"])
    done = wait_until(batch, made["jobId"])
    assert done["status"] == "SUCCEEDED", done
    assert done["statusReason"] == "Essential container in task exited"
    assert done["jobDefinition"] == definition["jobDefinitionArn"] and done["jobQueue"].endswith(
        "job-queue/" + queue
    )
    assert (
        done["createdAt"] <= done["startedAt"] <= done["stoppedAt"] and done["createdAt"] > 1e12
    ), "milliseconds"
    assert done["container"]["exitCode"] == 0 and done["tags"] == {"team": "a"}
    stream = done["container"]["logStreamName"]
    assert stream.startswith(definition["jobDefinitionName"] + "/default/")
    assert [attempt["container"]["logStreamName"] for attempt in done["attempts"]] == [stream]
    environment = batch.describe_job_queues(jobQueues=[queue])["jobQueues"][0][
        "computeEnvironmentOrder"
    ][0]["computeEnvironment"].split("/")[1]
    cluster = batch.describe_compute_environments(computeEnvironments=[environment])[
        "computeEnvironments"
    ][0]["ecsClusterArn"]
    assert (
        done["container"]["taskArn"]
        == f"{cluster.replace(':cluster/', ':task/')}/{stream.rpartition('/')[2]}"
    )
    assert re.fullmatch(
        re.escape(cluster.replace(":cluster/", ":container-instance/")) + "/[0-9a-f]{32}",
        done["container"]["containerInstanceArn"],
    )
    for member in ("taskArn", "containerInstanceArn"):
        assert done["attempts"][0]["container"][member] == done["container"][member]
    assert lines(server, stream) == [
        f"AWS_BATCH_CE_NAME={environment}",
        "AWS_BATCH_JOB_ATTEMPT=1",
        f"AWS_BATCH_JOB_ID={made['jobId']}",
        f"AWS_BATCH_JQ_NAME={queue}",
        "hello",
        "ls: cannot access '/opt/ml': No such file or directory",
        "reaches",
    ]
    sagemaker = server.boto("sagemaker")
    assert made["jobId"] not in [
        job["TrainingJobName"] for job in sagemaker.list_training_jobs()["TrainingJobSummaries"]
    ]
    with pytest.raises(botocore.exceptions.ClientError, match="Requested resource not found"):
        sagemaker.describe_training_job(TrainingJobName=made["jobId"])


def test_overrides_and_parameters(server: Server, batch: BaseClient, queue: str) -> None:
    definition = register(
        batch,
        fresh("overridden"),
        "exit 9",
        parameters={"in": "a", "out": "b"},
        containerProperties={
            "command": ["/bin/echo", "Ref::in", "Ref::out", "Ref::none"],
            "environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        },
    )
    one = batch.submit_job(
        jobName="one",
        jobQueue=queue,
        jobDefinition=definition["jobDefinitionArn"],
        parameters={"out": "c d"},
    )["jobId"]
    two = batch.submit_job(
        jobName="two",
        jobQueue=queue,
        jobDefinition=definition["jobDefinitionArn"],
        containerOverrides={
            "command": ["/bin/sh", "-c", "echo $A $B $C"],
            "environment": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
            "resourceRequirements": [{"type": "MEMORY", "value": "96"}],
        },
    )["jobId"]
    done = wait_until(batch, one)
    assert done["container"]["command"] == ["/bin/echo", "a", "c d", "Ref::none"] and done[
        "parameters"
    ] == {"in": "a", "out": "c d"}
    assert lines(server, done["container"]["logStreamName"]) == ["a c d Ref::none"]
    done = wait_until(batch, two)
    assert lines(server, done["container"]["logStreamName"]) == ["1 3 4"]
    assert {each["type"]: each["value"] for each in done["container"]["resourceRequirements"]} == {
        "VCPU": "0.25",
        "MEMORY": "96",
    }


def test_a_failure_is_tried_again_and_each_attempt_is_kept(
    server: Server, batch: BaseClient, queue: str
) -> None:
    job = submit(
        batch,
        queue,
        "echo attempt $AWS_BATCH_JOB_ATTEMPT; [ $AWS_BATCH_JOB_ATTEMPT = 3 ] || exit $((6 +"
        " AWS_BATCH_JOB_ATTEMPT))",
        retryStrategy={
            "attempts": 5,
            "evaluateOnExit": [
                {"onExitCode": "7", "action": "RETRY"},
                {"onReason": "Never*", "action": "EXIT"},
            ],
        },
    )
    done = wait_until(batch, job)
    assert done["status"] == "SUCCEEDED"
    assert [attempt["container"]["exitCode"] for attempt in done["attempts"]] == [7, 8, 0]
    streams = [attempt["container"]["logStreamName"] for attempt in done["attempts"]]
    assert [lines(server, stream) for stream in streams] == [
        ["attempt 1"],
        ["attempt 2"],
        ["attempt 3"],
    ]
    final = submit(
        batch,
        queue,
        "exit 3",
        retryStrategy={"attempts": 5, "evaluateOnExit": [{"onExitCode": "3", "action": "EXIT"}]},
    )
    done = wait_until(batch, final)
    assert (
        done["status"] == "FAILED"
        and done["container"]["exitCode"] == 3
        and len(done["attempts"]) == 1
    )


def test_a_container_that_never_ran_has_the_texts_that_rules_match(
    batch: BaseClient, queue: str
) -> None:
    none = register(batch, fresh("none"), containerProperties={"image": "oci:/no/such/image:1"})[
        "jobDefinitionArn"
    ]
    rules = {
        "attempts": 3,
        "evaluateOnExit": [{"onReason": "CannotPullContainerError*", "action": "EXIT"}],
    }
    done = wait_until(
        batch,
        batch.submit_job(jobName="none", jobQueue=queue, jobDefinition=none, retryStrategy=rules)[
            "jobId"
        ],
    )
    assert done["status"] == "FAILED" and done["statusReason"] == "Task failed to start"
    (attempt,) = done["attempts"]
    assert (
        attempt["statusReason"] == "Task failed to start"
        and attempt["container"]["reason"] == done["container"]["reason"]
    )
    assert done["container"]["reason"].startswith(
        "CannotPullContainerError: The image oci:/no/such/image:1 cannot be used: "
    )
    odd = register(batch, fresh("odd"), containerProperties={"command": ["/no/such/program"]})[
        "jobDefinitionArn"
    ]
    done = wait_until(
        batch, batch.submit_job(jobName="odd", jobQueue=queue, jobDefinition=odd)["jobId"]
    )
    assert done["status"] == "FAILED" and done["container"]["reason"].startswith(
        "CannotStartContainerError: The container cannot be started: "
    ), done


def test_dependencies_wait_and_fail_together(server: Server, batch: BaseClient, queue: str) -> None:
    first = submit(batch, queue, "while [ ! -e /tmp/never ]; do sleep 0.1; done")
    second = submit(batch, queue, "true", dependsOn=[{"jobId": first}])
    assert wait_until(batch, second, ("PENDING",))["dependsOn"] == [{"jobId": first}]
    wait_until(batch, first, ("RUNNING",))
    batch.cancel_job(jobId=first, reason="it runs, so this does nothing")
    batch.terminate_job(jobId=first, reason="enough of it")
    done = wait_until(batch, first)
    assert (
        done["status"] == "FAILED"
        and done["statusReason"] == "enough of it"
        and done["isTerminated"]
        and not done["isCancelled"]
    )
    assert [attempt["statusReason"] for attempt in done["attempts"]] == ["enough of it"]
    done = wait_until(batch, second)
    assert (
        done["status"] == "FAILED"
        and done["statusReason"] == "Dependent Job failed"
        and "startedAt" not in done
    )
    third = submit(batch, queue, "true")
    fourth = submit(batch, queue, "true", dependsOn=[{"jobId": third}])
    assert wait_until(batch, fourth)["startedAt"] >= wait_until(batch, third)["stoppedAt"]
    assert "does not exist" in refusal(
        batch.submit_job,
        jobName="x",
        jobQueue=queue,
        jobDefinition=done["jobDefinition"],
        dependsOn=[{"jobId": "nobody"}],
    )


def test_a_waiting_job_can_be_cancelled(batch: BaseClient, queue: str) -> None:
    environment, name = fresh("small"), fresh("queue")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 1},
    )
    batch.create_job_queue(
        jobQueueName=name,
        priority=5,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    definition = register(batch, fresh("large"), vcpus="2")["jobDefinitionArn"]
    job = batch.submit_job(jobName="large", jobQueue=name, jobDefinition=definition)["jobId"]
    wait_for(
        lambda: (
            "raise its maxvCpus" in wait_until(batch, job, ("RUNNABLE",)).get("statusReason", "")
        ),
        "the reason",
    )
    assert wait_until(batch, job, ("RUNNABLE",))["statusReason"].startswith(
        "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - needs 2 vCPU of "
    )
    assert [
        one["jobId"]
        for one in batch.list_jobs(jobQueue=name, jobStatus="RUNNABLE")["jobSummaryList"]
    ] == [job]
    batch.cancel_job(jobId=job, reason="too large")
    done = wait_until(batch, job)
    assert (
        done["status"] == "FAILED"
        and done["isCancelled"]
        and done["statusReason"] == "too large"
        and done["attempts"] == []
    )
    batch.cancel_job(jobId="no-such-job", reason="an unknown job is accepted")
    batch.terminate_job(jobId="no-such-job", reason="an unknown job is accepted")


def test_lists(batch: BaseClient, queue: str) -> None:
    names = [fresh("listed") for _ in range(3)]
    ids = [submit(batch, queue, "true", jobName=name) for name in names]
    for job in ids:
        wait_until(batch, job)
    listed = [
        one
        for page in batch.get_paginator("list_jobs").paginate(
            jobQueue=queue, jobStatus="SUCCEEDED", PaginationConfig={"PageSize": 2}
        )
        for one in page["jobSummaryList"]
    ]
    assert set(ids) <= {one["jobId"] for one in listed} and {one["status"] for one in listed} == {
        "SUCCEEDED"
    }
    assert len(listed) == len({one["jobId"] for one in listed})
    assert listed == sorted(listed, key=lambda one: -one["createdAt"])
    for patterns, found in ([names[0]], ids[:1]), (["listed-*"], ids), (["nothing*"], []):
        some = batch.list_jobs(jobQueue=queue, filters=[{"name": "JOB_NAME", "values": patterns}])[
            "jobSummaryList"
        ]
        assert {one["jobId"] for one in some} == set(found)
    last = listed[0]["createdAt"]
    assert (
        batch.list_jobs(
            jobQueue=queue, filters=[{"name": "AFTER_CREATED_AT", "values": [str(last)]}]
        )["jobSummaryList"]
        == []
    )
    assert batch.list_jobs(jobQueue=queue, jobStatus="SUBMITTED")["jobSummaryList"] == []
    assert batch.describe_jobs(jobs=["no-such-job"])["jobs"] == []
    assert "does not exist" in refusal(batch.list_jobs, jobQueue="nowhere")


def test_queues_and_environments(batch: BaseClient) -> None:
    environment, name = fresh("environment"), fresh("queue")
    made = batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 8},
        tags={"a": "1"},
    )
    shown = batch.describe_compute_environments(
        computeEnvironments=[made["computeEnvironmentArn"]]
    )["computeEnvironments"][0]
    assert (
        shown["status"],
        shown["state"],
        shown["tags"],
        shown["computeResources"]["maxvCpus"],
    ) == ("VALID", "ENABLED", {"a": "1"}, 8)
    assert (
        refusal(
            batch.create_compute_environment, computeEnvironmentName=environment, type="UNMANAGED"
        )
        == "Object already exists"
    )
    assert "computeResources is required" in refusal(
        batch.create_compute_environment, computeEnvironmentName=fresh("e"), type="MANAGED"
    )
    order = [{"order": 1, "computeEnvironment": environment}]
    assert "does not exist" in refusal(
        batch.create_job_queue,
        jobQueueName=name,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "none"}],
    )
    batch.create_job_queue(jobQueueName=name, priority=1, computeEnvironmentOrder=order)
    batch.update_job_queue(jobQueue=name, priority=9)
    shown = batch.describe_job_queues(jobQueues=[name])["jobQueues"][0]
    assert (shown["priority"], shown["state"], shown["computeEnvironmentOrder"]) == (
        9,
        "ENABLED",
        [{"order": 1, "computeEnvironment": made["computeEnvironmentArn"]}],
    )
    batch.update_compute_environment(
        computeEnvironment=environment, state="DISABLED", computeResources={"maxvCpus": 4}
    )
    assert batch.describe_compute_environments(computeEnvironments=[environment])[
        "computeEnvironments"
    ][0]["computeResources"] == {"type": "EC2", "maxvCpus": 4, "desiredvCpus": 0}
    assert "found existing JobQueue relationship" in refusal(
        batch.delete_compute_environment, computeEnvironment=environment
    )
    assert "must be disabled" in refusal(batch.delete_job_queue, jobQueue=name)
    batch.update_job_queue(jobQueue=name, state="DISABLED")
    assert "is disabled" in refusal(
        batch.submit_job,
        jobName="x",
        jobQueue=name,
        jobDefinition=register(batch, fresh("d"))["jobDefinitionArn"],
    )
    batch.delete_job_queue(jobQueue=name)
    batch.delete_compute_environment(computeEnvironment=environment)
    assert batch.describe_job_queues(jobQueues=[name])["jobQueues"] == []
    batch.delete_job_queue(jobQueue=name)
    assert "jobQueueName" in refusal(
        batch.create_job_queue, jobQueueName="a b", priority=1, computeEnvironmentOrder=order
    )


def test_definitions_have_revisions(batch: BaseClient, queue: str) -> None:
    name = fresh("revised")
    for revision in range(1, 4):
        assert register(batch, name, f"exit {revision}")["revision"] == revision
    shown = batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")[
        "jobDefinitions"
    ]
    assert [one["revision"] for one in shown] == [3, 2, 1]
    assert (
        shown[0]["containerProperties"]["command"][2] == "exit 3" and shown[0]["status"] == "ACTIVE"
    )
    batch.deregister_job_definition(jobDefinition=f"{name}:3")
    assert [
        one["revision"]
        for one in batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")[
            "jobDefinitions"
        ]
    ] == [2, 1]
    job = batch.submit_job(jobName="x", jobQueue=queue, jobDefinition=name)["jobId"]
    assert wait_until(batch, job)["container"]["exitCode"] == 2, "the newest active revision"
    assert "not active" in refusal(
        batch.submit_job, jobName="x", jobQueue=queue, jobDefinition=f"{name}:3"
    )
    pages = list(
        batch.get_paginator("describe_job_definitions").paginate(
            jobDefinitionName=name, PaginationConfig={"PageSize": 2}
        )
    )
    assert [[one["revision"] for one in page["jobDefinitions"]] for page in pages] == [[3, 2], [1]]
    assert "AWS_BATCH_" in refusal(
        register,
        batch=batch,
        name=fresh("x"),
        containerProperties={"environment": [{"name": "AWS_BATCH_X", "value": "1"}]},
    )
    assert "at least 60" in refusal(
        register, batch=batch, name=fresh("x"), timeout={"attemptDurationSeconds": 5}
    )
    assert "attempts" in refusal(
        register, batch=batch, name=fresh("x"), retryStrategy={"attempts": 11}
    )


def test_tags(batch: BaseClient, queue: str) -> None:
    arn = batch.describe_job_queues(jobQueues=[queue])["jobQueues"][0]["jobQueueArn"]
    definition = register(batch, fresh("tagged"), tags={"x": "1"})["jobDefinitionArn"]
    assert batch.list_tags_for_resource(resourceArn=definition)["tags"] == {"x": "1"}
    batch.tag_resource(resourceArn=arn, tags={"a": "1", "b": "2", "c": "3"})
    batch.untag_resource(resourceArn=arn, tagKeys=["a", "c"])
    assert batch.list_tags_for_resource(resourceArn=arn)["tags"] == {"b": "2"}
    assert batch.describe_job_queues(jobQueues=[queue])["jobQueues"][0]["tags"] == {"b": "2"}
    assert "Resource not found" in refusal(batch.list_tags_for_resource, resourceArn=arn + "-none")


def test_regions_do_not_share_resources(server: Server, batch: BaseClient, queue: str) -> None:
    job = submit(batch, queue, "true")
    elsewhere = server.environment() | {
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_REGION": "eu-west-1",
    }
    done = subprocess.run(
        [trainyard_server.TODAYS_AWS, "batch", "describe-jobs", "--jobs", job],
        env=elsewhere,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == {"jobs": []}
    wait_until(batch, job)


def test_an_older_boto3(server: Server, batch: BaseClient, queue: str) -> None:
    definition = register(batch, fresh("older"), "echo $NAME")["jobDefinitionName"]
    made = debians_boto.call(
        server,
        "batch",
        "submit_job",
        jobName="older",
        jobQueue=queue,
        jobDefinition=definition,
        containerOverrides={"environment": [{"name": "NAME", "value": "older"}]},
        timeout={"attemptDurationSeconds": 60},
    )
    wait_until(batch, made["jobId"])
    done = debians_boto.call(server, "batch", "describe_jobs", jobs=[made["jobId"]])["jobs"][0]
    assert done["status"] == "SUCCEEDED" and done["timeout"] == {"attemptDurationSeconds": 60}
    assert lines(server, done["container"]["logStreamName"]) == ["older"]
    refused = debians_boto.call(
        server, "batch", "submit_job", jobName="older", jobQueue="nowhere", jobDefinition=definition
    )
    assert (
        refused["Error"]["Code"] == "ClientException"
        and "does not exist" in refused["Error"]["Message"]
    )


def test_both_command_lines(server: Server, aws: Callable[..., Answer]) -> None:
    """Runs a job with only the `aws` command, the current version and Debian's."""
    environment, queue, definition = fresh("environment"), fresh("queue"), fresh("definition")
    aws(
        "batch",
        "create-compute-environment",
        "--compute-environment-name",
        environment,
        "--type",
        "MANAGED",
        "--compute-resources",
        "type=EC2,minvCpus=0,maxvCpus=4,subnets=subnet-1",
    )
    aws(
        "batch",
        "create-job-queue",
        "--job-queue-name",
        queue,
        "--priority",
        "3",
        "--compute-environment-order",
        f"order=1,computeEnvironment={environment}",
    )
    container = {
        "image": IMAGE,
        "command": ["/bin/echo", "Ref::word"],
        "resourceRequirements": [
            {"type": "VCPU", "value": "0.25"},
            {"type": "MEMORY", "value": "64"},
        ],
    }
    made = aws(
        "batch",
        "register-job-definition",
        "--job-definition-name",
        definition,
        "--type",
        "container",
        "--container-properties",
        json.dumps(container),
    )
    job = aws(
        "batch",
        "submit-job",
        "--job-name",
        "by-hand",
        "--job-queue",
        queue,
        "--job-definition",
        definition,
        "--parameters",
        "word=spoken",
    )["jobId"]

    def ended() -> dict[str, Any] | None:
        shown = aws("batch", "describe-jobs", "--jobs", job)["jobs"][0]
        return shown if shown["status"] in FINAL else None

    done = wait_for(ended, "the job to end", interval_seconds=0.5)
    assert done["status"] == "SUCCEEDED"
    assert (
        aws(
            "logs",
            "get-log-events",
            "--log-group-name",
            "/aws/batch/job",
            "--log-stream-name",
            done["container"]["logStreamName"],
        )["events"][0]["message"]
        == "spoken"
    )
    assert (
        aws("batch", "list-jobs", "--job-queue", queue, "--job-status", "SUCCEEDED")[
            "jobSummaryList"
        ][0]["jobName"]
        == "by-hand"
    )
    aws("batch", "tag-resource", "--resource-arn", made["jobDefinitionArn"], "--tags", "a=1,b=2")
    aws("batch", "untag-resource", "--resource-arn", made["jobDefinitionArn"], "--tag-keys", "a")
    assert aws("batch", "list-tags-for-resource", "--resource-arn", made["jobDefinitionArn"])[
        "tags"
    ] == {"b": "2"}
    aws("batch", "deregister-job-definition", "--job-definition", made["jobDefinitionArn"])
    refused = aws("batch", "terminate-job", "--job-id", job, "--reason", " ", check=False)
    assert refused.returncode != 0 and "ClientException" in refused.stderr
