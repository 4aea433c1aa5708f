"""Tests the rows of docs/compatibility.md that are partial (src/api/shapes/partial.txt), claim by
claim: the error for a rejected member names it, and a member without effect is read back."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests import file_systems, jobs
from tests.calls import fresh, refused
from tests.conformance import claims_of_logs, claims_of_notifications, claims_of_s3
from tests.conformance.claims import Claim, Value, World, rejects
from tests.conformance.test_compatibility import page
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def world(server: Server) -> World:
    return World(server)


def job(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    return lambda world: jobs.request(fresh("partial"), bucket=world.bucket) | more


def with_member(path: str, value: Value) -> Callable[[World], Mapping[str, Any]]:
    """Returns a training job with the value in the member at `path` ("A.B")."""

    def make(world: World) -> Mapping[str, Any]:
        request = jobs.request(fresh("partial"), bucket=world.bucket)
        *parents, name = path.split(".")
        at = request
        for parent in parents:
            at = at[parent]
        at[name] = value
        return request

    return make


def channel(data_source: dict[str, Any], mode: str = "File") -> Callable[[World], Any]:
    return job(
        InputDataConfig=[{"ChannelName": "train", "InputMode": mode, "DataSource": data_source}]
    )


def s3_source(**more: Any) -> dict[str, Any]:
    return {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://yard/x"} | more}


def other_algorithm() -> Callable[[World], Mapping[str, Any]]:
    algorithm = {"AlgorithmName": "mine", "TrainingInputMode": "File"}
    return job(AlgorithmSpecification=algorithm)


TOP_OF_FILE_SYSTEM = ("FileSystemType", "KmsKeyId")


def new_file_system(**changed: Any) -> Callable[[World], Mapping[str, Any]]:
    """Returns a CreateFileSystem request with other members, most of them of
    LustreConfiguration."""
    lustre = {name: value for name, value in changed.items() if name not in TOP_OF_FILE_SYSTEM}
    top = {name: value for name, value in changed.items() if name in TOP_OF_FILE_SYSTEM}
    return lambda world: file_systems.request(**lustre) | top


def of_file_system(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    return lambda world: {"FileSystemId": "fs-0123456789abcdef0"} | more


def link(policy: str, event: str) -> Callable[[World], Mapping[str, Any]]:
    return lambda world: {
        "FileSystemId": "fs-0123456789abcdef0",
        "FileSystemPath": "/ns",
        "DataRepositoryPath": f"s3://{world.bucket}/in",
        "S3": {policy: {"Events": [event]}},
    }


def new_events(policy: str, event: str) -> Callable[[World], Mapping[str, Any]]:
    return lambda world: {
        "AssociationId": "dra-0123456789abcdef0",
        "S3": {policy: {"Events": [event]}},
    }


HUB = {"HubContentArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/h/Model/m/1"}
TRAINING_PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/p"
SERVERLESS = {
    "BaseModelArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/h/Model/m/1.0.0",
    "JobType": "FineTuning",
}
MLFLOW = "arn:aws:sagemaker:us-east-1:123456789012:mlflow-tracking-server/s"
PACKAGES = "arn:aws:sagemaker:us-east-1:123456789012:model-package-group/g"
CREATE = "create_training_job"
TRAINING_JOB: list[Claim] = [
    rejects("sagemaker", CREATE, "AlgorithmName", other_algorithm()),
    rejects(
        "sagemaker",
        CREATE,
        "DatasetSource",
        channel(
            {
                "DatasetSource": {
                    "DatasetArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/h/DataSet/d/1.0.0"
                }
            }
        ),
    ),
    rejects("sagemaker", CREATE, "HubAccessConfig", channel(s3_source(HubAccessConfig=HUB))),
    rejects("sagemaker", CREATE, "KmsKeyId", with_member("OutputDataConfig.KmsKeyId", "key")),
    rejects("sagemaker", CREATE, "KmsKeyId", with_member("ResourceConfig.VolumeKmsKeyId", "key")),
    rejects(
        "sagemaker",
        CREATE,
        "TrainingPlanArn",
        with_member("ResourceConfig.TrainingPlanArn", TRAINING_PLAN),
    ),
    rejects(
        "sagemaker",
        CREATE,
        "DebugRuleConfigurations",
        job(
            DebugRuleConfigurations=[
                {"RuleConfigurationName": "loss", "RuleEvaluatorImage": "image"}
            ]
        ),
    ),
    rejects(
        "sagemaker",
        CREATE,
        "RemoteDebugConfig",
        job(RemoteDebugConfig={"EnableRemoteDebug": True}),
    ),
    rejects(
        "sagemaker",
        CREATE,
        "SessionChainingConfig",
        job(SessionChainingConfig={"EnableSessionTagChaining": True}),
    ),
    rejects("sagemaker", CREATE, "ServerlessJobConfig", job(ServerlessJobConfig=SERVERLESS)),
    rejects("sagemaker", CREATE, "MlflowConfig", job(MlflowConfig={"MlflowResourceArn": MLFLOW})),
    rejects(
        "sagemaker",
        CREATE,
        "ModelPackageConfig",
        job(ModelPackageConfig={"ModelPackageGroupArn": PACKAGES}),
    ),
    # Images of built-in algorithms: src/job/agent/image_failure_test.cpp
]


def tags_of_other_resources(method: str, **more: Any) -> Claim:
    arn = "arn:aws:sagemaker:us-east-1:123456789012:model/m"
    return rejects(
        "sagemaker", method, "is not a training job", lambda _: {"ResourceArn": arn} | more
    )


def ec2_vpc(world: World) -> str:
    vpcs = world.client("ec2").describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])
    return str(vpcs["Vpcs"][0]["VpcId"])


def ec2_group(world: World) -> str:
    groups = world.client("ec2").describe_security_groups(GroupNames=["default"])
    return str(groups["SecurityGroups"][0]["GroupId"])


def ec2_table(world: World) -> str:
    return str(world.client("ec2").describe_route_tables()["RouteTables"][0]["RouteTableId"])


def prefix_list(method: str) -> Claim:
    return rejects(
        "ec2",
        method,
        "PrefixList",
        lambda world: {
            "GroupId": ec2_group(world),
            "IpPermissions": [{"IpProtocol": "-1", "PrefixListIds": [{"PrefixListId": "pl-1"}]}],
        },
    )


# The first host reads from the API, then waits for the other host.
FIRST = """
import os, socket, urllib.error, urllib.request
try:
    urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"], timeout=60)
except urllib.error.HTTPError as error:
    print("api:", error.code)  # the request is not signed
listener = socket.create_server(("0.0.0.0", 5000))
listener.settimeout(60)
listener.accept()[0].sendall(b"hello")
"""
OTHER = """
import socket, time
end = time.monotonic() + 60
while True:
    try:
        link = socket.create_connection(("algo-1", 5000), timeout=60)
        break
    except OSError:
        assert time.monotonic() < end
        time.sleep(0.1)
assert link.recv(5) == b"hello"
"""


def groups_filter_nothing(world: World) -> None:
    """Claims that the hosts of a job in a group without rules reach the API and each other."""
    ec2, vpc = world.client("ec2"), ec2_vpc(world)
    group = ec2.create_security_group(GroupName=fresh("closed"), Description="no rules", VpcId=vpc)
    ids = {"GroupIds": [group["GroupId"]]}
    (made,) = ec2.describe_security_groups(**ids)["SecurityGroups"]
    ec2.revoke_security_group_egress(
        GroupId=made["GroupId"], IpPermissions=made["IpPermissionsEgress"]
    )
    (closed,) = ec2.describe_security_groups(**ids)["SecurityGroups"]
    assert closed["IpPermissions"] == closed["IpPermissionsEgress"] == []
    subnets = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
    name, sagemaker = fresh("grouped"), world.client("sagemaker")
    sagemaker.create_training_job(
        **jobs.request(
            name,
            'if [ "$(hostname)" = algo-1 ]; then python3 -c "$FIRST"; else python3 -c "$OTHER"; fi',
            hosts=2,
            bucket=world.bucket,
            Environment={"FIRST": FIRST, "OTHER": OTHER},
            VpcConfig={
                "SecurityGroupIds": [closed["GroupId"]],
                "Subnets": [subnets[0]["SubnetId"]],
            },
        )
    )
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert "api: 403" in jobs.log_lines(world.client("logs"), name)


def no_instances(world: World) -> None:
    ec2 = world.client("ec2")
    assert ec2.describe_instances()["Reservations"] == []
    missing = refused(ec2.describe_instances, InstanceIds=["i-0123456789abcdef0"])
    assert missing[0] == "InvalidInstanceID.NotFound"


def instance_types(world: World) -> None:
    found = world.client("ec2").describe_instance_types(InstanceTypes=["m5.large"])
    (one,) = found["InstanceTypes"]
    assert one["VCpuInfo"]["DefaultVCpus"] == 2 and one["MemoryInfo"]["SizeInMiB"] == 8192
    assert not {"InstanceStorageInfo", "EbsInfo", "NetworkInfo"} & set(one)


def spot_prices(world: World) -> None:
    history = world.client("ec2").describe_spot_price_history()["SpotPriceHistory"]
    places = [(one["InstanceType"], one["AvailabilityZone"]) for one in history]
    assert len(places) == len(set(places)), "one price for each type and zone"


def instance_profile(world: World) -> None:
    iam, name = world.client("iam"), fresh("profile")
    iam.create_instance_profile(InstanceProfileName=name)
    assert iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"] == []


def service_job(world: World) -> Mapping[str, Any]:
    payload = jobs.request("lesson") | {"RetryStrategy": {"MaximumRetryAttempts": 1}}
    batch, environment, queue = world.client("batch"), fresh("instances"), fresh("queue")
    made = batch.create_service_environment(
        serviceEnvironmentName=environment,
        serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
    )
    order = [{"order": 1, "serviceEnvironment": made["serviceEnvironmentArn"]}]
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        jobQueueType="SAGEMAKER_TRAINING",
        serviceEnvironmentOrder=order,
    )
    return {
        "jobName": "lesson",
        "jobQueue": queue,
        "serviceJobType": "SAGEMAKER_TRAINING",
        "serviceRequestPayload": json.dumps(payload),
    }


def eks_job(world: World) -> Mapping[str, Any]:
    batch = world.client("batch")
    made = batch.register_job_definition(
        jobDefinitionName=fresh("eks"),
        type="container",
        eksProperties={"podProperties": {"containers": [{"image": "x"}]}},
    )
    environment, queue = fresh("machines"), fresh("queue")
    batch.create_compute_environment(
        computeEnvironmentName=environment, type="UNMANAGED", state="ENABLED"
    )
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    return {"jobName": "x", "jobQueue": queue, "jobDefinition": made["jobDefinitionArn"]}


def metric_data(expression: str) -> dict[str, Any]:
    return {
        "MetricDataQueries": [{"Id": "e", "Expression": expression}],
        "StartTime": 0,
        "EndTime": 60,
    }


def metric_alarm() -> dict[str, Any]:
    return {
        "AlarmName": fresh("alarm"),
        "Namespace": "n",
        "MetricName": "m",
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanThreshold",
    }


CLAIMS: dict[str, list[Claim]] = {
    "sagemaker CreateTrainingJob": TRAINING_JOB,
    "sagemaker UpdateTrainingJob": [
        rejects(
            "sagemaker",
            "update_training_job",
            "Only ResourceConfig",
            lambda _: {"TrainingJobName": "job", "ProfilerConfig": {"DisableProfiler": True}},
        )
    ],
    "sagemaker AddTags": [tags_of_other_resources("add_tags", Tags=[{"Key": "a", "Value": "b"}])],
    "sagemaker ListTags": [tags_of_other_resources("list_tags")],
    "sagemaker DeleteTags": [tags_of_other_resources("delete_tags", TagKeys=["a"])],
    **claims_of_s3.CLAIMS,
    **claims_of_logs.CLAIMS,
    "cloudwatch GetMetricData": [
        rejects("cloudwatch", "get_metric_data", word, lambda _, e=expression: metric_data(e))
        for word, expression in (
            ("SEARCH", "SEARCH('{n} m', 'Sum')"),
            ("ANOMALY_DETECTION_BAND", "ANOMALY_DETECTION_BAND(m)"),
            ("Syntax error", "SELECT SUM(m) FROM n"),
        )
    ],
    "cloudwatch PutMetricAlarm": [
        rejects("cloudwatch", "put_metric_alarm", word, lambda _, m=more: metric_alarm() | m)
        for word, more in (
            ("ThresholdMetricId", {"ThresholdMetricId": "band"}),
            ("EvaluationInterval", {"EvaluationInterval": 10}),
            ("ActionConfiguration", {"ActionConfiguration": {}}),
        )
    ],
    "cloudwatch PutInsightRule": [
        rejects(
            "cloudwatch",
            "put_insight_rule",
            text,
            lambda _, m=more: {"RuleName": "r", "RuleDefinition": "{}"} | m,
        )
        for text, more in (
            ("ApplyOnTransformedLogs", {"ApplyOnTransformedLogs": True}),
            (
                "LogGroupNames",
                {
                    "RuleDefinition": '{"Schema": "CloudWatchLogRule", "LogGroupARNs": ["arn"], '
                    '"LogFormat": "JSON", "Contribution": {"Keys": ["$.a"]}}'
                },
            ),
        )
    ],
    "cloudwatch PutCompositeAlarm": [
        rejects(
            "cloudwatch",
            "put_composite_alarm",
            "ActionsSuppressor",
            lambda _: {"AlarmName": "a", "AlarmRule": "TRUE", "ActionsSuppressor": "b"},
        )
    ],
    "batch CreateComputeEnvironment": [
        rejects(
            "batch",
            "create_compute_environment",
            "eks",
            lambda _: {
                "computeEnvironmentName": fresh("eks"),
                "type": "MANAGED",
                "computeResources": {
                    "type": "EC2",
                    "minvCpus": 0,
                    "maxvCpus": 2,
                    "instanceTypes": ["m5.large"],
                    "subnets": ["subnet-1"],
                    "securityGroupIds": ["sg-1"],
                    "instanceRole": "role",
                },
                "eksConfiguration": {
                    "eksClusterArn": "arn:aws:eks:us-east-1:123456789012:cluster/c",
                    "kubernetesNamespace": "n",
                },
            },
        )
    ],
    "batch SubmitJob": [rejects("batch", "submit_job", "eksProperties", eks_job)],
    "batch SubmitServiceJob": [
        rejects("batch", "submit_service_job", "RetryStrategy", service_job)
    ],
    "fsx CreateFileSystem": [
        rejects("fsx", "create_file_system", text, changed)
        for text, changed in (
            ("use LUSTRE", new_file_system(FileSystemType="OPENZFS")),
            ("A backup is not", new_file_system(AutomaticBackupRetentionDays=1)),
            ("KmsKeyId is not", new_file_system(KmsKeyId="k")),
            ("EfaEnabled is not", new_file_system(EfaEnabled=True)),
            ("LogConfiguration", new_file_system(LogConfiguration={"Level": "WARN_ERROR"})),
            ("RootSquash", new_file_system(RootSquashConfiguration={"RootSquash": "1:1"})),
            ("Metadata", new_file_system(MetadataConfiguration={"Mode": "AUTOMATIC"})),
            ("ThroughputCapacity is not", new_file_system(ThroughputCapacity=4000)),
        )
    ],
    "fsx UpdateFileSystem": [
        rejects(
            "fsx", "update_file_system", "StorageType is not", of_file_system(StorageType="HDD")
        )
    ],
    "fsx DeleteFileSystem": [
        rejects(
            "fsx",
            "delete_file_system",
            "A final backup is not",
            of_file_system(LustreConfiguration={"SkipFinalBackup": False}),
        )
    ],
    "fsx CreateDataRepositoryAssociation": [
        rejects("fsx", "create_data_repository_association", text, link(policy, event))
        for text, policy, event in (
            ("AutoExportPolicy is not", "AutoExportPolicy", "NEW"),
            ("The event DELETED", "AutoImportPolicy", "DELETED"),
        )
    ],
    "fsx UpdateDataRepositoryAssociation": [
        rejects("fsx", "update_data_repository_association", text, new_events(policy, event))
        for text, policy, event in (
            ("AutoExportPolicy is not", "AutoExportPolicy", "NEW"),
            ("The event DELETED", "AutoImportPolicy", "DELETED"),
        )
    ],
    "fsx CreateDataRepositoryTask": [
        rejects(
            "fsx",
            "create_data_repository_task",
            "are not offered by this server",
            of_file_system(Type=kind, Report={"Enabled": False}),
        )
        for kind in ("RELEASE_DATA_FROM_FILESYSTEM", "AUTO_RELEASE_DATA")
    ],
    **claims_of_notifications.CLAIMS,
    "service-quotas RequestServiceQuotaIncrease": [
        rejects(
            "service-quotas",
            "request_service_quota_increase",
            "is not raised by a request",
            lambda world: {
                "ServiceCode": "sagemaker",
                "QuotaCode": world.client("service-quotas").list_service_quotas(
                    ServiceCode="sagemaker"
                )["Quotas"][0]["QuotaCode"],
                "DesiredValue": 1000.0,
            },
        )
    ],
    "iam CreateInstanceProfile": [instance_profile],
    "sts AssumeRole": [
        rejects(
            "sts",
            "assume_role",
            "AccessDenied",
            lambda _: {
                "RoleArn": "arn:aws:iam::999999999999:role/other",
                "RoleSessionName": "session",
            },
        )
    ],
    "ec2 CreateVpc": [
        rejects(
            "ec2",
            "create_vpc",
            "AmazonProvidedIpv6CidrBlock",
            lambda _: {"CidrBlock": "10.0.0.0/16", "AmazonProvidedIpv6CidrBlock": True},
        ),
        rejects("ec2", "create_vpc", "pam", lambda _: {"Ipv4IpamPoolId": "ipam-pool-1"}),
    ],
    "ec2 CreateSubnet": [
        rejects(
            "ec2",
            "create_subnet",
            "Ipv6CidrBlock",
            lambda world: {
                "VpcId": ec2_vpc(world),
                "CidrBlock": "172.31.64.0/24",
                "Ipv6CidrBlock": "fd00::/64",
            },
        ),
        rejects(
            "ec2",
            "create_subnet",
            "OutpostArn",
            lambda world: {
                "VpcId": ec2_vpc(world),
                "CidrBlock": "172.31.64.0/24",
                "OutpostArn": "arn:aws:outposts:us-east-1:123456789012:outpost/o",
            },
        ),
    ],
    "ec2 ModifySubnetAttribute": [
        rejects(
            "ec2",
            "modify_subnet_attribute",
            "MapPublicIpOnLaunch",
            lambda world: {
                "SubnetId": world.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"],
                "EnableDns64": {"Value": True},
            },
        )
    ],
    "ec2 CreateSecurityGroup": [groups_filter_nothing],
    "ec2 AuthorizeSecurityGroupIngress": [prefix_list("authorize_security_group_ingress")],
    "ec2 AuthorizeSecurityGroupEgress": [prefix_list("authorize_security_group_egress")],
    "ec2 CreateRoute": [
        rejects(
            "ec2",
            "create_route",
            "GatewayId",
            lambda world: {
                "RouteTableId": ec2_table(world),
                "DestinationCidrBlock": "10.9.0.0/16",
                "NatGatewayId": "nat-1",
            },
        )
    ],
    "ec2 AssociateRouteTable": [
        rejects(
            "ec2",
            "associate_route_table",
            "UnsupportedOperation: The parameter GatewayId",
            lambda world: {"RouteTableId": ec2_table(world), "GatewayId": "igw-1"},
        )
    ],
    "ec2 DescribeInstances": [no_instances],
    "ec2 DescribeInstanceTypes": [instance_types],
    "ec2 DescribeSpotPriceHistory": [spot_prices],
}


def test_every_partial_row_has_claims() -> None:
    rows = {f"{service} {name}" for service, name in page().partial()}
    assert rows == set(CLAIMS)


@pytest.mark.parametrize("row", CLAIMS)
def test_the_claims_of_a_row_are_correct(world: World, row: str) -> None:
    for claim in CLAIMS[row]:
        claim(world)


@pytest.mark.parametrize("method", ["get_object", "head_object", "put_object"])
def test_keys_of_the_client_are_rejected(world: World, method: str) -> None:
    """boto3 sends SSE-C over TLS only, so the header is sent directly."""
    s3 = world.client("s3")
    s3.meta.events.register(
        "before-call.s3",
        lambda params, **_: params["headers"].update(
            {"x-amz-server-side-encryption-customer-algorithm": "AES256"}
        ),
    )
    code, _ = refused(getattr(s3, method), Bucket=world.bucket, Key="key")
    assert code in ("NotImplemented", "501")
