"""Tests extreme numbers in every numeric member of every operation (pills.py): none ends the server
or prevents the next start.

A rejected request gets a client error; an accepted one is planned, and survives two restarts."""

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import botocore.exceptions
import botocore.parsers
import pytest
from botocore import xform_name
from botocore.client import BaseClient
from botocore.config import Config

from tests import jobs, pills
from tests.trainyard_server import Server, wait_for

MACHINE = "[[machine]]\nname = 'box'\ncpus = 6.0\nmemory_gib = 24.0\n"
ROLE = "arn:aws:iam::123456789012:role/trainer"
CONTAINER = {
    "image": "trainyard/host",
    "command": ["true"],
    "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64"}],
    "linuxParameters": {
        "sharedMemorySize": 1,
        "maxSwap": 0,
        "swappiness": 1,
        "tmpfs": [{"containerPath": "/scratch", "size": 1}],
    },
    "ulimits": [{"name": "nofile", "softLimit": 64, "hardLimit": 64}],
    "ephemeralStorage": {"sizeInGiB": 21},
}
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}],
}
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}],
}
# The names of the resources in requests.
KNOWN: dict[str, Any] = {
    "TrainingJobName": "steady",
    "jobQueue": "first",
    "jobQueueName": "first",
    "jobDefinition": "first",
    "computeEnvironment": "first",
    "logGroupName": "/pills",
    "logStreamName": "one",
    "Bucket": "yard",
    "Key": "object",
    "CopySource": "yard/object",
    "UserName": "ann",
    "GroupName": "all",
    "RoleName": "trainer",
    "RoleArn": ROLE,
    "PolicyArn": "arn:aws:iam::aws:policy/AmazonS3FullAccess",
    "AssumeRolePolicyDocument": json.dumps(TRUST),
    "PolicyDocument": json.dumps(POLICY),
    "RoleSessionName": "ann",
    "PolicySourceArn": ROLE,
    "ActionNames": ["s3:GetObject"],
    "PolicyInputList": [json.dumps(POLICY)],
    "ServiceCode": "sagemaker",
    "QuotaCode": "L-1",
    "Namespace": "Pills",
    "MetricName": "x",
    "Definition": "{}",
    "consumableResource": "licence",
    "serviceEnvironment": "services",
    "schedulingPolicyArn": "first",
    "Name": "made",
    "PartNumber": 1,
}


def job(name: str) -> dict[str, Any]:
    request = jobs.request(name)
    request["ResourceConfig"] = {
        "VolumeSizeInGB": 1,
        "KeepAlivePeriodInSeconds": 60,
        "InstanceGroups": [
            {"InstanceGroupName": group, "InstanceType": "ml.t3.medium", "InstanceCount": 1}
            for group in ("a", "b", "c")
        ],
    }
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": 60, "MaxPendingTimeInSeconds": 7200}
    request["RetryStrategy"] = {"MaximumRetryAttempts": 1}
    return request


def spot_job(name: str) -> dict[str, Any]:
    return jobs.request(
        name,
        EnableManagedSpotTraining=True,
        StoppingCondition={"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60},
    )


CAMPAIGN = {
    "name": "made",
    "query": "SELECT 'a' AS name, 1 AS bytes",
    "retries": 1,
    "at_once": 1,
    "training_job": {key: value for key, value in job("x").items() if key != "TrainingJobName"},
}
# Valid requests; the name of a created resource is filled in (NAMES).
EXAMPLES: dict[Any, Any] = {
    ("sagemaker", "CreateTrainingJob"): [job("x"), spot_job("x")],
    ("sagemaker", "UpdateTrainingJob"): [
        {"TrainingJobName": "kept", "ResourceConfig": {"KeepAlivePeriodInSeconds": 600}}
    ],
    ("batch", "CreateComputeEnvironment"): [
        {
            "type": "MANAGED",
            "computeResources": {
                "type": "EC2",
                "minvCpus": 0,
                "maxvCpus": 4,
                "desiredvCpus": 0,
                "bidPercentage": 50,
                "subnets": ["subnet-1"],
            },
        }
    ],
    ("batch", "UpdateComputeEnvironment"): [
        {
            "computeEnvironment": "changed",
            "computeResources": {"minvCpus": 0, "maxvCpus": 4, "desiredvCpus": 0},
        }
    ],
    ("batch", "CreateJobQueue"): [
        {
            "priority": 1,
            "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "first"}],
            "jobStateTimeLimitActions": [
                {
                    "reason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
                    "state": "RUNNABLE",
                    "maxTimeSeconds": 600,
                    "action": "CANCEL",
                }
            ],
        }
    ],
    ("batch", "UpdateJobQueue"): [
        {
            "jobQueue": "changed",
            "priority": 1,
            "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "changed"}],
        }
    ],
    ("batch", "CreateSchedulingPolicy"): [
        {
            "fairsharePolicy": {
                "shareDecaySeconds": 60,
                "computeReservation": 1,
                "shareDistribution": [{"shareIdentifier": "a", "weightFactor": 1.0}],
            }
        }
    ],
    ("batch", "CreateConsumableResource"): [{"totalQuantity": 1}],
    ("batch", "UpdateConsumableResource"): [
        {"consumableResource": "licence", "operation": operation, "quantity": 1}
        for operation in ("SET", "ADD", "REMOVE")
    ],
    ("batch", "CreateServiceEnvironment"): [
        {
            "serviceEnvironmentType": "SAGEMAKER_TRAINING",
            "capacityLimits": [{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
        }
    ],
    ("batch", "UpdateServiceEnvironment"): [
        {
            "serviceEnvironment": "services",
            "capacityLimits": [{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
        }
    ],
    ("batch", "CreateQuotaShare"): [
        {
            "jobQueue": "services",
            "capacityLimits": [{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
            "state": "ENABLED",
            "resourceSharingConfiguration": {"strategy": "LEND_AND_BORROW", "borrowLimit": 1},
            "preemptionConfiguration": {"inSharePreemption": "ENABLED"},
        }
    ],
    ("batch", "SubmitServiceJob"): [
        {
            "jobQueue": "services",
            "serviceJobType": "SAGEMAKER_TRAINING",
            "serviceRequestPayload": json.dumps(jobs.request("x")),
            "quotaShareName": "changed",
            "retryStrategy": {"attempts": 1},
            "schedulingPriority": 1,
            "timeoutConfig": {"attemptDurationSeconds": 60},
        }
    ],
    ("batch", "RegisterJobDefinition"): [
        {
            "type": "container",
            "schedulingPriority": 1,
            "containerProperties": CONTAINER,
            "retryStrategy": {"attempts": 1},
            "timeout": {"attemptDurationSeconds": 60},
        },
        {
            "type": "multinode",
            "nodeProperties": {
                "numNodes": 2,
                "mainNode": 0,
                "nodeRangeProperties": [{"targetNodes": "0:1", "container": CONTAINER}],
            },
        },
    ],
    ("batch", "SubmitJob"): [
        {
            "jobQueue": "first",
            "jobDefinition": "first",
            "arrayProperties": {"size": 2},
            "retryStrategy": {"attempts": 1},
            "timeout": {"attemptDurationSeconds": 60},
            "containerOverrides": {
                "resourceRequirements": [
                    {"type": "VCPU", "value": "1"},
                    {"type": "MEMORY", "value": "64"},
                ]
            },
        }
    ],
    ("logs", "PutLogEvents"): [
        {
            "logGroupName": "/pills",
            "logStreamName": "one",
            "logEvents": [{"timestamp": 1, "message": "x"}],
        }
    ],
    ("cloudwatch", "PutMetricData"): [
        {
            "Namespace": "Pills",
            "MetricData": [
                {
                    "MetricName": "x",
                    "Value": 1.0,
                    "Timestamp": int(time.time()),
                    "StorageResolution": 1,
                }
            ],
        }
    ],
    ("cloudwatch", "GetMetricStatistics"): [
        {
            "Namespace": "Pills",
            "MetricName": "x",
            "StartTime": 1,
            "EndTime": 1000,
            "Period": 60,
            "Statistics": ["Sum", "Average"],
        }
    ],
    ("trainyard", "CreateCampaign"): [{"Definition": json.dumps(CAMPAIGN)}],
}
# The member with the name of the resource that an operation creates.
NAMES = {
    "CreateTrainingJob": "TrainingJobName",
    "CreateComputeEnvironment": "computeEnvironmentName",
    "CreateJobQueue": "jobQueueName",
    "CreateSchedulingPolicy": "name",
    "CreateConsumableResource": "consumableResourceName",
    "CreateServiceEnvironment": "serviceEnvironmentName",
    "CreateQuotaShare": "quotaShareName",
    "RegisterJobDefinition": "jobDefinitionName",
    "SubmitJob": "jobName",
    "SubmitServiceJob": "jobName",
    "CreateRole": "RoleName",
}
# Operations that would remove the resources of other requests.
LEFT_OUT = {("s3", "DeleteObject"), ("s3", "DeleteObjects")}


def make_resources(server: Server) -> None:
    s3, batch, iam, logs = (server.boto(service) for service in ("s3", "batch", "iam", "logs"))
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="object", Body=b"0123456789")
    KNOWN["UploadId"] = s3.create_multipart_upload(Bucket="yard", Key="object")["UploadId"]
    for name in ("first", "changed"):
        batch.create_compute_environment(
            computeEnvironmentName=name,
            type="MANAGED",
            computeResources={"type": "EC2", "minvCpus": 0, "maxvCpus": 4, "subnets": ["subnet-1"]},
        )
        batch.create_job_queue(
            jobQueueName=name,
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": name}],
        )
    batch.register_job_definition(
        jobDefinitionName="first",
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["true"],
            "resourceRequirements": CONTAINER["resourceRequirements"],
        },
    )
    batch.create_consumable_resource(consumableResourceName="licence", totalQuantity=1)
    batch.create_service_environment(
        serviceEnvironmentName="services",
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
    )
    policy = batch.create_scheduling_policy(
        name="shares", quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"}
    )["arn"]
    batch.create_job_queue(
        jobQueueName="services",
        priority=1,
        jobQueueType="SAGEMAKER_TRAINING",
        schedulingPolicyArn=policy,
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": "services"}],
    )
    KNOWN["arn"] = batch.create_scheduling_policy(
        name="changed", fairsharePolicy={"shareDecaySeconds": 60}
    )["arn"]
    KNOWN["quotaShareArn"] = batch.create_quota_share(
        **EXAMPLES["batch", "CreateQuotaShare"][0], quotaShareName="changed"
    )["quotaShareArn"]
    iam.create_user(UserName="ann")
    iam.create_group(GroupName="all")
    iam.create_role(RoleName="trainer", AssumeRolePolicyDocument=json.dumps(TRUST))
    iam.attach_role_policy(
        RoleName="trainer", PolicyArn="arn:aws:iam::aws:policy/AmazonS3FullAccess"
    )
    logs.create_log_group(logGroupName="/pills")
    logs.create_log_stream(logGroupName="/pills", logStreamName="one")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("steady"))
    sagemaker.create_training_job(
        **jobs.request("kept", ResourceConfig={"KeepAlivePeriodInSeconds": 600})
    )
    for name in ("steady", "kept"):
        jobs.wait_until(sagemaker, name)
    wait_for(
        lambda: (
            sagemaker.describe_training_job(TrainingJobName="kept")["WarmPoolStatus"]["Status"]
            == "Available"
        ),
        "hosts to be kept",
    )


def sums(example: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Returns numbers of hosts with the sums 0, 1 and a negative number in 32 bits."""
    for counts in ((2**31 - 1, 2**31 - 1, 2), (2**31 - 1, 2**31 - 1, 3), (2**31 - 1, 1, 1)):
        groups = [
            group | {"InstanceCount": count}
            for group, count in zip(example["ResourceConfig"]["InstanceGroups"], counts)
        ]
        yield example | {"ResourceConfig": example["ResourceConfig"] | {"InstanceGroups": groups}}


class Sender:
    def __init__(self, server: Server) -> None:
        self.server, self.clients = server, {}
        self.sent, self.refused, self.count = {}, {}, 0
        self.accepted_jobs = []

    def client(self, service: str) -> BaseClient:
        if service not in self.clients:
            unchecked = Config(
                retries={"max_attempts": 0},
                parameter_validation=False,
                s3={"addressing_style": "path"},
            )
            self.clients[service] = self.server.boto(service, config=unchecked)
        return self.clients[service]

    def send(self, service: str, operation: str, body: dict[str, Any]) -> str | None:
        """Returns the error; None: accepted; "": the client could not encode the request."""
        name = f"pill-{self.count}"
        self.count += 1
        if operation in NAMES:
            body = body | {NAMES[operation]: name}
        if operation == "CreateCampaign":
            body = body | {"Definition": body["Definition"].replace('"made"', f'"{name}"')}
        key = (service, operation)
        try:
            answer = getattr(self.client(service), xform_name(operation))(**body)
            if "Body" in answer:
                answer["Body"].read()
        except botocore.exceptions.ClientError as error:
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            assert status < 500 or status == 501, (operation, error.response["Error"], body)
            self.sent[key] = self.sent.get(key, 0) + 1
            self.refused[key] = self.refused.get(key, 0) + 1
            return str(error)
        except (
            botocore.exceptions.HTTPClientError,
            botocore.parsers.ResponseParserError,
        ) as broken:
            raise AssertionError((operation, body)) from broken
        except (
            ValueError,
            TypeError,
            OverflowError,
            RuntimeError,
            AttributeError,
            botocore.exceptions.BotoCoreError,
        ):
            return ""
        self.sent[key] = self.sent.get(key, 0) + 1
        if operation == "CreateTrainingJob":
            self.accepted_jobs.append(name)
        return None


def stop_training_jobs(server: Server) -> None:
    """Stops running jobs and releases the warm pools of the others."""
    sagemaker = server.boto("sagemaker")
    for page in sagemaker.get_paginator("list_training_jobs").paginate():
        for job in page["TrainingJobSummaries"]:
            name = job["TrainingJobName"]
            with contextlib.suppress(botocore.exceptions.ClientError):  # it has ended
                sagemaker.stop_training_job(TrainingJobName=name)
            with contextlib.suppress(botocore.exceptions.ClientError):  # it has no pool
                sagemaker.update_training_job(
                    TrainingJobName=name, ResourceConfig={"KeepAlivePeriodInSeconds": 0}
                )


def test_no_number_stops_the_server(
    start: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start(MACHINE)
    monkeypatch.setenv("AWS_DATA_PATH", server.env["AWS_DATA_PATH"])
    make_resources(server)
    sender = Sender(server)
    refused = [
        (operation, sender.send(service, operation, example))
        for (service, operation), examples in EXAMPLES.items()
        for example in examples
    ]
    assert not [each for each in refused if each[1] is not None], (
        "examples are not accepted",
        refused,
    )
    numeric = []
    for service, model in pills.operations():
        if (service, model.name) in LEFT_OUT or (
            not any(pills.numeric_paths(model.input_shape))
            and (service, model.name) not in EXAMPLES
        ):
            continue
        numeric.append((service, model.name))
        for body in pills.variants(model, EXAMPLES.get((service, model.name)), KNOWN):
            sender.send(service, model.name, body)
    for example in EXAMPLES["sagemaker", "CreateTrainingJob"][:1]:
        for body in sums(example):
            assert sender.send("sagemaker", "CreateTrainingJob", body), (
                "hosts are summed in 64 bits"
            )
    for pill in pills.TEXT_PILLS:
        for text in (f"bytes={pill}-{pill}", f"bytes={pill}-", f"bytes=-{pill}", f"bytes=0-{pill}"):
            sender.send("s3", "GetObject", {"Bucket": "yard", "Key": "object", "Range": text})
    unsent = [key for key in numeric if not sender.sent.get(key)]
    assert not unsent, unsent
    assert sum(sender.sent.values()) > 2000 and sum(sender.refused.values()) > 500, (
        sender.sent,
        sender.refused,
    )
    print(
        "note: of",
        sum(sender.sent.values()),
        "requests",
        sum(sender.refused.values()),
        "were refused",
    )

    # The planner handles accepted requests before any later job.
    stop_training_jobs(server)
    for _ in range(2):
        server.kill()
        server.start()
    for name in sender.accepted_jobs:
        jobs.wait_until(server.boto("sagemaker"), name)
    server.boto("sagemaker").create_training_job(**jobs.request("ordinary"))
    # Jobs of Batch that were accepted may run for a minute first, and keep their hosts for another.
    ordinary = jobs.wait_until(server.boto("sagemaker"), "ordinary", seconds_max=900)
    assert ordinary["TrainingJobStatus"] == "Completed"
    assert wait_for(
        lambda: server.boto("batch").describe_job_queues(jobQueues=["first"])["jobQueues"],
        "the queue",
    )


def answer_to(server: Server, head: bytes) -> bytes:
    """Returns the response to a connection without a key."""
    host, port = server.listen.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head)
        return connection.recv(4096)


def test_invalid_lengths_are_rejected(start: Callable[..., Server]) -> None:
    server = start(MACHINE)
    for pill in (*pills.TEXT_PILLS[2:], "+1", "0x10", "1, 2", " ", ""):
        for head in (
            f"PUT /yard/x HTTP/1.1\r\nHost: {server.listen}\r\nContent-Length: {pill}\r\n\r\n",
            (
                f"POST / HTTP/1.1\r\nHost: {server.listen}\r\nX-Amz-Target:"
                f" SageMaker.ListTrainingJobs\r\nContent-Length: {pill}\r\n\r\n"
            ),
            (
                f"PUT /yard/x HTTP/1.1\r\nHost: {server.listen}\r\nTransfer-Encoding:"
                f" chunked\r\n\r\n{pill}\r\n"
            ),
        ):
            answer = answer_to(server, head.encode())
            assert not answer or answer.split()[1][:1] == b"4", (head, answer)
    assert server.boto("sagemaker").list_training_jobs()["TrainingJobSummaries"] == []
