"""Tests EC2's networks and instance types through unmodified clients."""

import json
import re
from collections.abc import Callable

import boto3
import botocore.config
import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refusal, refused
from tests.trainyard_server import Answer, Server

PRICES = (
    "[prices]\nlist = false\n"
    "[[prices.instance]]\ntype = 'ml.m5.large'\non_demand = 0.115\nspot = 0.0345\n"
)


def filtered(name: str, *values: str) -> list[dict[str, object]]:
    return [{"Name": name, "Values": list(values)}]


@pytest.fixture
def ec2(server: Server) -> BaseClient:
    return server.boto("ec2")


@pytest.fixture
def vpc(ec2: BaseClient) -> str:
    return str(ec2.create_vpc(CidrBlock="172.30.0.0/24")["Vpc"]["VpcId"])


def test_a_set_up_script_runs(server: Server, ec2: BaseClient) -> None:
    zone = ec2.describe_availability_zones(Filters=filtered("state", "available"))[
        "AvailabilityZones"
    ][0]["ZoneName"]
    vpc = ec2.create_vpc(
        CidrBlock="10.9.0.0/16",
        TagSpecifications=[
            {"ResourceType": "vpc", "Tags": [{"Key": "Name", "Value": "training & more"}]}
        ],
    )["Vpc"]
    assert re.fullmatch(r"vpc-0[0-9a-f]{16}", vpc["VpcId"]) and not vpc["IsDefault"]
    ec2.get_waiter("vpc_available").wait(VpcIds=[vpc["VpcId"]])
    ec2.modify_vpc_attribute(VpcId=vpc["VpcId"], EnableDnsHostnames={"Value": True})
    assert ec2.describe_vpc_attribute(VpcId=vpc["VpcId"], Attribute="enableDnsHostnames")[
        "EnableDnsHostnames"
    ] == {"Value": True}
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc["VpcId"])
    subnet = ec2.create_subnet(VpcId=vpc["VpcId"], CidrBlock="10.9.1.0/24", AvailabilityZone=zone)[
        "Subnet"
    ]
    assert subnet["AvailableIpAddressCount"] == 251 and subnet["AvailabilityZone"] == zone
    ec2.get_waiter("subnet_available").wait(SubnetIds=[subnet["SubnetId"]])
    ec2.modify_subnet_attribute(SubnetId=subnet["SubnetId"], MapPublicIpOnLaunch={"Value": True})
    table = ec2.create_route_table(VpcId=vpc["VpcId"])["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet["SubnetId"])
    group = ec2.create_security_group(
        GroupName="jobs", Description="Batch jobs", VpcId=vpc["VpcId"]
    )["GroupId"]
    ec2.authorize_security_group_ingress(
        GroupId=group,
        IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}],
    )
    assert ec2.describe_vpcs(Filters=filtered("tag:Name", "training & *"))["Vpcs"][0]["Tags"] == [
        {"Key": "Name", "Value": "training & more"}
    ]
    assert ec2.describe_subnets(SubnetIds=[subnet["SubnetId"]])["Subnets"][0]["MapPublicIpOnLaunch"]
    shown = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    assert shown["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == group
    environment = fresh("environment")
    server.boto("batch").create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 4,
            "subnets": [subnet["SubnetId"]],
            "securityGroupIds": [group],
        },
    )
    described = server.boto("batch").describe_compute_environments(
        computeEnvironments=[environment]
    )["computeEnvironments"][0]
    assert described["computeResources"]["subnets"] == [subnet["SubnetId"]]


def test_a_server_has_no_instances(ec2: BaseClient) -> None:
    """Deployment tools list the instances of an earlier run, and wait until they have ended."""
    assert ec2.describe_instances()["Reservations"] == []
    alive = [*filtered("instance-state-name", "pending", "running"), *filtered("tag:job", "*")]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=alive)
    assert [page["Reservations"] for page in pages] == [[]]
    missing = "i-0123456789abcdef0"
    assert refused(ec2.describe_instances, InstanceIds=[missing]) == (
        "InvalidInstanceID.NotFound",
        f"The instance ID '{missing}' does not exist",
    )
    assert refused(ec2.describe_instances, Filters=filtered("colour", "red"))[0] == (
        "InvalidParameterValue"
    )


def test_networks_survive_a_restart(start: Callable[..., Server]) -> None:
    one = start(PRICES)
    ec2 = one.boto("ec2")
    default = ec2.describe_vpcs(Filters=filtered("is-default", "true"))["Vpcs"][0]
    made = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="g", Description="d", VpcId=made)["GroupId"]
    ec2.create_tags(Resources=[group], Tags=[{"Key": "team", "Value": "vision"}])
    before = [
        ec2.describe_vpcs()["Vpcs"],
        ec2.describe_subnets()["Subnets"],
        ec2.describe_security_groups()["SecurityGroups"],
        ec2.describe_security_group_rules()["SecurityGroupRules"],
        ec2.describe_route_tables()["RouteTables"],
        ec2.describe_internet_gateways()["InternetGateways"],
        ec2.describe_tags()["Tags"],
    ]
    one.stop()
    one.start()
    ec2 = one.boto("ec2")
    assert before == [
        ec2.describe_vpcs()["Vpcs"],
        ec2.describe_subnets()["Subnets"],
        ec2.describe_security_groups()["SecurityGroups"],
        ec2.describe_security_group_rules()["SecurityGroupRules"],
        ec2.describe_route_tables()["RouteTables"],
        ec2.describe_internet_gateways()["InternetGateways"],
        ec2.describe_tags()["Tags"],
    ]
    assert [default] == ec2.describe_vpcs(VpcIds=[default["VpcId"]])["Vpcs"]
    prices = ec2.describe_spot_price_history(
        InstanceTypes=["m5.large"], ProductDescriptions=["Linux/UNIX"]
    )["SpotPriceHistory"]
    assert {one["SpotPrice"] for one in prices} == {"0.034500"} and len(prices) == 3


def test_regions_have_networks_of_their_own(server: Server, vpc: str) -> None:
    other = server.boto("ec2", region_name="eu-west-1")
    assert vpc not in [one["VpcId"] for one in other.describe_vpcs()["Vpcs"]]
    assert {one["ZoneId"] for one in other.describe_availability_zones()["AvailabilityZones"]} == {
        "euw1-az1",
        "euw1-az2",
        "euw1-az3",
    }
    names = {one["RegionName"] for one in other.describe_regions()["Regions"]}
    assert {"us-east-1", "eu-west-1", "ap-south-1"} <= names


def client(server: Server, key: str, secret: str) -> BaseClient:
    return boto3.client(
        "ec2",
        endpoint_url=server.env["AWS_ENDPOINT_URL"],
        region_name=server.env["AWS_DEFAULT_REGION"],
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=botocore.config.Config(retries={"max_attempts": 0}),
    )


def test_errors_equal_those_of_aws(ec2: BaseClient, vpc: str) -> None:
    assert (
        refusal(ec2.describe_vpcs, "InvalidVpcID.NotFound", VpcIds=["vpc-0123456789abcdef0"])
        == "The vpc ID 'vpc-0123456789abcdef0' does not exist"
    )
    assert (
        refusal(ec2.create_vpc, "InvalidVpc.Range", CidrBlock="10.0.0.0/8")
        == "The CIDR '10.0.0.0/8' is invalid."
    )
    ec2.create_subnet(VpcId=vpc, CidrBlock="172.30.0.0/25")
    assert (
        refusal(ec2.create_subnet, "InvalidSubnet.Conflict", VpcId=vpc, CidrBlock="172.30.0.64/26")
        == "The CIDR '172.30.0.64/26' conflicts with another subnet"
    )
    assert (
        refusal(ec2.delete_vpc, "DependencyViolation", VpcId=vpc)
        == f"The vpc '{vpc}' has dependencies and cannot be deleted."
    )
    ec2.create_security_group(GroupName="g", Description="d", VpcId=vpc)
    assert (
        refusal(
            ec2.create_security_group,
            "InvalidGroup.Duplicate",
            GroupName="g",
            Description="d",
            VpcId=vpc,
        )
        == f"The security group 'g' already exists for VPC '{vpc}'"
    )
    assert (
        refusal(ec2.create_vpc, "DryRunOperation", CidrBlock="10.0.0.0/16", DryRun=True)
        == "Request would have succeeded, but DryRun flag is set."
    )
    assert refused(ec2.run_instances, MinCount=1, MaxCount=1, ImageId="ami-1")[0] == "InvalidAction"
    assert (
        refusal(ec2.describe_vpcs, "InvalidParameterValue", Filters=filtered("colour", "red"))
        == "The filter 'colour' is invalid"
    )


def test_a_missing_parameter_is_named(server: Server) -> None:
    ec2 = server.boto("ec2", config=botocore.config.Config(parameter_validation=False))
    assert (
        refusal(ec2.delete_subnet, "MissingParameter")
        == "The request must contain the parameter SubnetId"
    )


def test_a_wrong_secret_is_an_authentication_failure(server: Server) -> None:
    ec2 = client(server, server.env["AWS_ACCESS_KEY_ID"], "wrong")
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        ec2.describe_vpcs()
    assert caught.value.response["Error"]["Code"] == "AuthFailure"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 401


def test_lists_have_pages(ec2: BaseClient) -> None:
    made = {ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"] for _ in range(6)}
    pages = list(ec2.get_paginator("describe_vpcs").paginate(PaginationConfig={"PageSize": 5}))
    assert len(pages) > 1 and all(len(page["Vpcs"]) <= 5 for page in pages)
    seen = [one["VpcId"] for page in pages for one in page["Vpcs"]]
    assert made <= set(seen) and len(seen) == len(set(seen))
    types = [
        one["InstanceType"]
        for page in ec2.get_paginator("describe_instance_types").paginate(
            Filters=filtered("instance-type", "m5.*")
        )
        for one in page["InstanceTypes"]
    ]
    assert "m5.large" in types and "c5.large" not in types


def test_both_command_lines(server: Server, aws: Callable[..., Answer]) -> None:
    vpc = aws("ec2", "create-vpc", "--cidr-block", "10.1.0.0/16")["Vpc"]["VpcId"]
    group = aws(
        *("ec2", "create-security-group", "--group-name", "cli", "--description", "of the CLI"),
        *("--vpc-id", vpc),
    )["GroupId"]
    aws(
        *("ec2", "authorize-security-group-ingress", "--group-id", group, "--protocol", "tcp"),
        *("--port", "22", "--cidr", "10.0.0.0/8"),
    )
    shown = aws("ec2", "describe-security-groups", "--group-ids", group)["SecurityGroups"][0]
    assert shown["IpPermissions"][0]["IpRanges"] == [{"CidrIp": "10.0.0.0/8"}]
    aws("ec2", "create-tags", "--resources", vpc, group, "--tags", "Key=team,Value=vision")
    assert {
        one["ResourceId"]
        for one in aws("ec2", "describe-tags", "--filters", "Name=value,Values=vision")["Tags"]
    } >= {vpc, group}
    subnets = aws("ec2", "describe-subnets", "--filters", "Name=default-for-az,Values=true")[
        "Subnets"
    ]
    assert len(subnets) == 3


@pytest.mark.parametrize(
    ("action", "resource", "refused_call"),
    [
        ("ec2:CreateVpc", "arn:aws:ec2:*:*:vpc/*", "create_subnet"),
        ("ec2:CreateSubnet", "*", "create_vpc"),
    ],
)
def test_principals_need_permission(
    server: Server, action: str, resource: str, refused_call: str
) -> None:
    iam, name = server.boto("iam"), fresh("ann")
    iam.create_user(UserName=name)
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    iam.put_user_policy(
        UserName=name,
        PolicyName="p",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    ann = client(server, key["AccessKeyId"], key["SecretAccessKey"])
    vpc = server.boto("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    calls = {
        "create_vpc": {"CidrBlock": "10.1.0.0/16"},
        "create_subnet": {"CidrBlock": "10.0.0.0/24", "VpcId": vpc},
    }
    allowed = next(name for name in calls if name != refused_call)
    getattr(ann, allowed)(**calls[allowed])
    code, message = refused(getattr(ann, refused_call), **calls[refused_call])
    assert code == "UnauthorizedOperation" and message.startswith(
        "You are not authorized to perform this operation."
    )
    code, _ = refused(getattr(ann, refused_call), **calls[refused_call], DryRun=True)
    assert code == "UnauthorizedOperation"
    if allowed == "create_vpc":  # tags need a permission of their own
        tags = [{"ResourceType": "vpc", "Tags": [{"Key": "a", "Value": "b"}]}]
        code, _ = refused(ann.create_vpc, CidrBlock="10.2.0.0/16", TagSpecifications=tags)
        assert code == "UnauthorizedOperation"
