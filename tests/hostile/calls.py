"""Makes requests for every operation of the server (src/api/shapes/operations.txt), from botocore's
models and a table of names.

Each required member, and each member that names a resource, gets the value of its name in the
table, or a value of its type. So a new operation is covered automatically. If a name is missing
here, the server answers with another error than a rejection, and the operation's test fails."""

import base64
import json
import os
import urllib.parse
from collections.abc import Mapping
from typing import Any

import botocore.awsrequest
import botocore.config
import botocore.session
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.client import BaseClient
from botocore.model import OperationModel, Shape

from tests import trainyard_server

EVERYTHING = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
)
ACCOUNT = "123456789012"
# Allowed for all callers, since it returns only their own identity.
FREE = {"sts GetCallerIdentity"}
# The beginnings of error codes of rejections: of EC2 and SNS, and of all other services.
DENIED = ("UnauthorizedOperation", "AuthorizationError", "AccessDenied")
# The fields of a request in addition to its signature.
KEPT_FIELDS = (
    "content-type",
    "x-amz-target",
    "x-amz-copy-source",
    "x-amz-copy-source-range",
    "x-amz-object-attributes",
    "content-md5",
)


Value = Any  # of a request


def operations() -> list[tuple[str, ...]]:
    """Returns (service, operation) of each line of operations.txt."""
    with open(
        os.path.join(trainyard_server.ROOT, "src", "api", "shapes", "operations.txt"),
        encoding="utf-8",
    ) as file:
        return [tuple(line.split()) for line in file if line.strip() and not line.startswith("#")]


def names_of(tenant: str, ids: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns service -> member -> value, for resources of a tenant; "Operation.Member" applies to
    that operation only. `ids`: names that the server chose: `batch_job`, `key`, `log_stream`."""
    role = f"arn:aws:iam::{ACCOUNT}:role/{tenant}-trainer"
    batch = f"arn:aws:batch:us-east-1:{ACCOUNT}:"
    topic = f"arn:aws:sns:us-east-1:{ACCOUNT}:{tenant}-alerts"
    general = {
        "tags": {"team": tenant},
        "Tags": [{"Key": "team", "Value": tenant}],
        "tagKeys": ["team"],
        "TagKeys": ["team"],
    }
    of_service: dict[str, dict[str, Any]] = {
        "sagemaker": {
            "TrainingJobName": f"{tenant}-train",
            "ResourceArn": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/{tenant}-train",
            "RoleArn": role,
            "CreateTrainingJob.AlgorithmSpecification": {
                "TrainingImage": "trainyard/host",
                "TrainingInputMode": "File",
            },
            "CreateTrainingJob.OutputDataConfig": {"S3OutputPath": f"s3://{tenant}/models"},
            "CreateTrainingJob.ResourceConfig": {
                "InstanceType": "ml.t3.medium",
                "InstanceCount": 1,
                "VolumeSizeInGB": 1,
            },
            "CreateTrainingJob.StoppingCondition": {"MaxRuntimeInSeconds": 60},
        },
        "s3": {
            "Bucket": tenant,
            "Key": "secret",
            "CopySource": f"{tenant}/secret",
            "UploadId": "upload",
            "PartNumber": 1,
            "Delete": {"Objects": [{"Key": "secret"}]},
            "Policy": EVERYTHING,
        },
        "logs": {
            "logGroupName": "/aws/sagemaker/TrainingJobs",
            "logStreamName": ids["log_stream"],
            "logStreamNamePrefix": f"{tenant}-train",
            "logStreamNames": [ids["log_stream"]],
            "logGroupNamePrefix": "/aws",
            "logEvents": [{"timestamp": 1, "message": "forged"}],
            "resourceArn": (
                f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/sagemaker/TrainingJobs"
            ),
            "logRecordPointer": base64.b64encode(
                json.dumps(["/aws/sagemaker/TrainingJobs", ids["log_stream"], 0]).encode()
            ).decode(),
            "queryString": "fields @message",
            "queryId": "query",
            "retentionInDays": 1,
            "destinationArn": f"arn:aws:logs:us-east-1:{ACCOUNT}:destination:hook",
            "destination": tenant,
            "policyName": f"{tenant}-policy",
            "policyDocument": EVERYTHING,
            "destinationName": f"{tenant}-destination",
            "targetArn": (
                f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws/sagemaker/TrainingJobs"
            ),
            "roleArn": role,
            "accessPolicy": EVERYTHING,
            "name": f"{tenant}-delivery",
            "logType": "APPLICATION_LOGS",
            "deliveryDestinationConfiguration": {
                "destinationResourceArn": f"arn:aws:s3:::{tenant}"
            },
            "deliveryDestinationName": f"{tenant}-delivery",
            "deliveryDestinationPolicy": EVERYTHING,
            "deliverySourceName": f"{tenant}-delivery",
            "deliveryDestinationArn": (
                f"arn:aws:logs:us-east-1:{ACCOUNT}:delivery-destination:{tenant}-delivery"
            ),
            "id": "0123456789abcdef",
        },
        "cloudwatch": {
            "Namespace": "/aws/sagemaker/TrainingJobs",
            "MetricName": "loss",
            "Dimensions": [{"Name": "TrainingJobName", "Value": f"{tenant}-train"}],
            "MetricData": [
                {
                    "MetricName": "loss",
                    "Value": 1.0,
                    "Dimensions": [{"Name": "TrainingJobName", "Value": f"{tenant}-train"}],
                }
            ],
            "Period": 60,
            "Statistics": ["Sum"],
            "AlarmName": f"{tenant}-alarm",
            "AlarmNames": [f"{tenant}-alarm"],
            "PutMetricAlarm.Statistic": "Sum",
            "PutMetricAlarm.EvaluationPeriods": 1,
            "PutMetricAlarm.Threshold": 1,
            "PutMetricAlarm.ComparisonOperator": "GreaterThanThreshold",
            "AlarmActions": [f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-job/{tenant}-train"],
            "AlarmRule": f"ALARM({tenant}-alarm)",
            "StateValue": "ALARM",
            "DashboardName": f"{tenant}-dashboard",
            "DashboardNames": [f"{tenant}-dashboard"],
            "DashboardBody": '{"widgets": []}',
            "RuleName": f"{tenant}-rule",
            "RuleNames": [f"{tenant}-rule"],
            "RuleDefinition": json.dumps(
                {
                    "Schema": {"Name": "CloudWatchLogRule", "Version": 1},
                    "LogGroupNames": ["/aws/sagemaker/TrainingJobs"],
                    "LogFormat": "JSON",
                    "Contribution": {"Keys": ["$.secret"]},
                }
            ),
            "ResourceARN": f"arn:aws:cloudwatch:us-east-1:{ACCOUNT}:alarm:{tenant}-alarm",
        },
        "batch": {
            "computeEnvironmentName": f"{tenant}-environment",
            "computeEnvironment": f"{tenant}-environment",
            "computeEnvironments": [f"{tenant}-environment"],
            "jobQueueName": f"{tenant}-queue",
            "jobQueue": f"{tenant}-queue",
            "jobQueues": [f"{tenant}-queue"],
            "jobDefinitionName": f"{tenant}-definition",
            "jobDefinition": f"{tenant}-definition:1",
            "jobDefinitions": [f"{tenant}-definition:1"],
            "jobId": ids["batch_job"],
            "jobs": [ids["batch_job"]],
            "jobName": f"{tenant}-new",
            "name": f"{tenant}-policy",
            "arn": f"{batch}scheduling-policy/{tenant}-policy",
            "arns": [f"{batch}scheduling-policy/{tenant}-policy"],
            "consumableResourceName": f"{tenant}-licence",
            "consumableResource": f"{tenant}-licence",
            "resourceArn": f"{batch}job-queue/{tenant}-queue",
            "quotaShareArn": f"{batch}job-queue/{tenant}-queue/quota-share/one",
            "quotaShareName": f"{tenant}-share",
            "serviceEnvironmentName": f"{tenant}-services",
            "serviceEnvironment": f"{tenant}-services",
            "serviceEnvironments": [f"{tenant}-services"],
            "reason": "attack",
            "serviceRequestPayload": "{}",
        },
        "iam": {
            "UserName": tenant,
            "GroupName": f"{tenant}-group",
            "InstanceProfileName": f"{tenant}-machines",
            "RoleName": f"{tenant}-trainer",
            "PolicyName": f"{tenant}-policy",
            "PolicyArn": f"arn:aws:iam::{ACCOUNT}:policy/{tenant}-policy",
            "PolicySourceArn": f"arn:aws:iam::{ACCOUNT}:user/{tenant}",
            "AccessKeyId": ids["key"],
            "PolicyDocument": EVERYTHING,
            "AssumeRolePolicyDocument": EVERYTHING,
            "PolicyInputList": [EVERYTHING],
            "ActionNames": ["s3:GetObject"],
            "VersionId": "v1",
            "PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess",
        },
        "sts": {"RoleArn": role, "RoleSessionName": "attack"},
        "service-quotas": {
            "ServiceCode": "sagemaker",
            "QuotaCode": "L-00000001",
            "DesiredValue": 1.0,
            "RequestId": "request",
        },
        "fsx": {
            "FileSystemId": "fs-0123456789abcdef0",
            "FileSystemIds": ["fs-0123456789abcdef0"],
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 1200,
            "SubnetIds": ["subnet-0123456789abcdef0"],
            "CreateFileSystem.LustreConfiguration": {"ImportPath": f"s3://{tenant}/in"},
            "FileSystemPath": "/ns",
            "DataRepositoryPath": f"s3://{tenant}/in",
            "AssociationId": "dra-0123456789abcdef0",
            "AssociationIds": ["dra-0123456789abcdef0"],
            "TaskId": "task-0123456789abcdef0",
            "TaskIds": ["task-0123456789abcdef0"],
            "ResourceARN": (f"arn:aws:fsx:us-east-1:{ACCOUNT}:file-system/fs-0123456789abcdef0"),
        },
        "sns": {
            "Name": f"{tenant}-alerts",
            "TopicArn": topic,
            "SubscriptionArn": f"{topic}:00000000-0000-4000-8000-000000000000",
            "Protocol": "http",
            "Endpoint": "http://attack.example/",
            "Message": "attack",
            "Token": "token",
            "AttributeName": "DisplayName",
            "SetSubscriptionAttributes.AttributeName": "FilterPolicy",
            "PublishBatchRequestEntries": [{"Id": "one", "Message": "attack"}],
            "ResourceArn": topic,
        },
        "events": {
            "Name": f"{tenant}-rule",
            "DescribeEventBus.Name": "default",
            "Rule": f"{tenant}-rule",
            "EventPattern": '{"source": ["own"]}',
            "Event": "{}",
            "Targets": [{"Id": "one", "Arn": topic}],
            "Ids": ["one"],
            "TargetArn": topic,
            "Entries": [{"Source": "own", "DetailType": "attack", "Detail": "{}"}],
            "ResourceARN": f"arn:aws:events:us-east-1:{ACCOUNT}:rule/{tenant}-rule",
        },
        "ec2": {
            "CidrBlock": "10.0.0.0/16",
            "VpcId": "vpc-0123456789abcdef0",
            "SubnetId": "subnet-0123456789abcdef0",
            "GroupId": "sg-0123456789abcdef0",
            "InternetGatewayId": "igw-0123456789abcdef0",
            "RouteTableId": "rtb-0123456789abcdef0",
            "AssociationId": "rtbassoc-0123456789abcdef0",
            "Resources": ["subnet-0123456789abcdef0"],
        },
        "trainyard": {
            "TrainingJobName": f"{tenant}-train",
            "JobName": f"{tenant}-train",
            "CampaignName": f"{tenant}-campaign",
            "Definition": "{}",
            "Statement": "SELECT 1",
            "GroupBy": "user",
        },
    }
    services = {service for service, _ in operations()}
    return {service: general | of_service.get(service, {}) for service in services}


def value_of(shape: Shape, name: str, names: Mapping[str, Any]) -> Value:
    if name in names:
        return names[name]
    if shape.type_name == "structure":
        return {
            member: value_of(shape.members[member], member, names)
            for member in shape.required_members
        }
    if shape.type_name == "list":
        return [value_of(shape.member, name, names)]
    if shape.type_name == "map":
        return {"key": "value"}
    if shape.type_name == "string":
        return shape.enum[0] if shape.enum else "value".ljust(shape.metadata.get("min", 0), "x")
    if shape.type_name in ("integer", "long"):
        return max(1, shape.metadata.get("min", 1))
    return {"boolean": True, "float": 1.0, "double": 1.0, "timestamp": 1, "blob": b"x"}[
        shape.type_name
    ]


def input_of(model: OperationModel, names: dict[str, Any]) -> dict[str, Any]:
    """Returns an input with the required members, and those that name a resource in `names`."""
    if model.input_shape is None:
        return {}
    own = {
        name.split(".")[1]: value
        for name, value in names.items()
        if name.startswith(model.name + ".")
    }
    names = {name: value for name, value in names.items() if "." not in name} | own
    members = model.input_shape.members
    wanted = set(model.input_shape.required_members) | (
        set(members) & set(names) - {"tags", "Tags", "reason", "Statistics"}
    )
    return {name: value_of(members[name], name, names) for name in sorted(wanted)}


class Requests:
    """Makes requests with botocore's serialisers, as clients do, without signatures: the sender
    signs with its own keys."""

    def __init__(self, endpoint: str) -> None:
        self.session = botocore.session.Session()
        self.session.get_component("data_loader").search_paths.append(
            os.path.join(trainyard_server.ROOT, "src", "api", "shapes", "models")
        )
        self.session.set_credentials("AKIANOBODY", "unused")
        self.endpoint, self.clients = endpoint, {}

    def client(self, service: str) -> BaseClient:
        if service not in self.clients:
            config = botocore.config.Config(
                parameter_validation=False,
                retries={"max_attempts": 0},
                s3={"addressing_style": "path"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            )
            self.clients[service] = self.session.create_client(
                service, "us-east-1", endpoint_url=self.endpoint, config=config
            )
        return self.clients[service]

    def make(self, service: str, operation: str, values: Mapping[str, Any]) -> list[Any]:
        """Returns the arguments of Caller.call for a request: scope, method, path, query, fields,
        body in base64."""
        client, caught = self.client(service), []

        def keep(request: AWSPreparedRequest, **_: object) -> AWSResponse:
            caught.append(request)
            return botocore.awsrequest.AWSResponse(request.url, 200, {}, None)

        client.meta.events.register("before-send", keep)
        try:
            client._make_api_call(operation, values)
        except (
            Exception
            # the empty answer is not an answer of every operation; only the request counts
        ) as unread:
            if not caught:
                raise AssertionError(
                    f"{service} {operation} cannot be called with {values}: give its members"
                    " names in calls.py"
                ) from unread
        finally:
            client.meta.events.unregister("before-send", keep)
        parts = urllib.parse.urlsplit(caught[0].url)
        body = caught[0].body or b""
        body = (
            body
            if isinstance(body, bytes)
            else body.encode()
            if isinstance(body, str)
            else body.read()
        )
        fields = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in caught[0].headers.items()
            if name.lower() in KEPT_FIELDS
        }
        # As it is signed: names in order, each with its "=".
        query = "&".join(
            sorted(part if "=" in part else part + "=" for part in parts.query.split("&") if part)
        )
        return [
            client.meta.service_model.signing_name,
            caught[0].method,
            parts.path,
            query,
            fields,
            base64.b64encode(body).decode(),
        ]

    def all(self, names: Mapping[str, dict[str, Any]]) -> list[tuple[str, list[Any]]]:
        """Returns ("service Operation", request) for every operation, about the resources of
        `names`."""
        made = []
        for service, operation in operations():
            values = input_of(
                self.client(service).meta.service_model.operation_model(operation), names[service]
            )
            made.append((f"{service} {operation}", self.make(service, operation, values)))
        return made
