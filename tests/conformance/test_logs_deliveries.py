"""Tests destinations and deliveries of CloudWatch Logs through boto3."""

import base64
import functools
import gzip
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refused
from tests.conformance.test_logs_insights import Webhook, now, put
from tests.trainyard_server import Server, wait_for

KINESIS = "arn:aws:kinesis:us-east-1:123456789012:stream/events"
FIREHOSE = "arn:aws:firehose:us-east-1:123456789012:deliverystream/events"
DISTRIBUTION = "arn:aws:cloudfront::123456789012:distribution/E1"
CONFIG = f"""
account_id = "123456789012"
[logs]
delivery_seconds = 0
[log_sources.cdn]
arn = "{DISTRIBUTION}"
log_type = "ACCESS_LOGS"
log_group = "/outside/cdn"
[regions.'eu-west-1']
"""


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    one = Webhook()
    yield one
    one.server.shutdown()


def with_webhook(webhook: Webhook) -> str:
    return (
        f'{CONFIG}[log_webhooks.hook]\nurl = "http://127.0.0.1:{webhook.port}/in"\n'
        f'stands_for = ["{KINESIS}", "{FIREHOSE}"]\n'
    )


@pytest.fixture(scope="module")
def server(start: Callable[..., Server], webhook: Webhook) -> Server:
    return start(with_webhook(webhook))


@pytest.fixture(scope="module")
def logs(server: Server) -> BaseClient:
    return server.boto("logs")


def make_group(logs: BaseClient, name: str) -> str:
    """Makes a log group; returns its ARN."""
    logs.create_log_group(logGroupName=name)
    logs.create_log_stream(logGroupName=name, logStreamName="s")
    found = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return next(one["logGroupArn"] for one in found if one["logGroupName"] == name)


@pytest.fixture
def group(logs: BaseClient) -> str:
    name = fresh("/tests/source")
    make_group(logs, name)
    return name


def group_arn(name: str, region: str = "us-east-1") -> str:
    return f"arn:aws:logs:{region}:123456789012:log-group:{name}"


def messages(logs: BaseClient, group: str) -> list[str]:
    events = logs.filter_log_events(logGroupName=group)["events"]
    return [one["message"] for one in events]


def deliver(logs: BaseClient, source_arn: str, target_arn: str, **more: Any) -> dict[str, Any]:
    source, destination = fresh("source"), fresh("destination")
    log_type = more.pop("logType", "APPLICATION_LOGS")
    form = {"outputFormat": more.pop("outputFormat")} if "outputFormat" in more else {}
    logs.put_delivery_source(name=source, resourceArn=source_arn, logType=log_type)
    made = logs.put_delivery_destination(
        name=destination,
        deliveryDestinationConfiguration={"destinationResourceArn": target_arn},
        **form,
    )["deliveryDestination"]
    return logs.create_delivery(
        deliverySourceName=source, deliveryDestinationArn=made["arn"], **more
    )["delivery"]


def objects(server: Server, bucket: str) -> dict[str, str]:
    s3 = server.boto("s3")
    found = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
    return {
        one["Key"]: gzip.decompress(
            s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
        ).decode()
        for one in found
    }


def test_a_destination_leads_to_a_log_group_of_another_region(
    server: Server, logs: BaseClient, group: str
) -> None:
    west = server.boto("logs", region_name="eu-west-1")
    target = fresh("/tests/target")
    made = logs.put_destination(
        destinationName=fresh("leads"),
        targetArn=make_group(west, target),
        roleArn="arn:aws:iam::123456789012:role/any",
        tags={"team": "web"},
    )["destination"]
    logs.put_subscription_filter(
        logGroupName=group, filterName="f", filterPattern="ERROR", destinationArn=made["arn"]
    )
    put(logs, group, "fine", "ERROR <b>\x1b[0m")
    wait_for(lambda: messages(west, target) == ["ERROR <b>\x1b[0m"], "the event")
    assert logs.list_tags_for_resource(resourceArn=made["arn"])["tags"] == {"team": "web"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": []})
    name = made["destinationName"]
    logs.put_destination_policy(destinationName=name, accessPolicy=policy)
    found = logs.describe_destinations(DestinationNamePrefix=name)["destinations"][0]
    assert found["accessPolicy"] == policy and found["creationTime"] == made["creationTime"]
    logs.delete_destination(destinationName=name)
    put(logs, group, "ERROR afterwards")
    assert logs.describe_destinations(DestinationNamePrefix=name)["destinations"] == []
    code, _ = refused(logs.delete_destination, destinationName=name)
    assert code == "ResourceNotFoundException"


def test_a_webhook_may_replace_a_stream(logs: BaseClient, group: str, webhook: Webhook) -> None:
    logs.put_subscription_filter(
        logGroupName=group, filterName="f", filterPattern="", destinationArn=KINESIS
    )
    put(logs, group, "to a stream")

    def received() -> bool:
        bodies = [json.loads(body) for _, body in webhook.bodies]
        texts = [
            gzip.decompress(base64.b64decode(one["awslogs"]["data"])).decode()
            for one in bodies
            if "awslogs" in one
        ]
        return any("to a stream" in text for text in texts)

    wait_for(received, "the webhook to be called")
    code, message = refused(
        logs.put_destination, destinationName="d", targetArn=KINESIS + "2", roleArn="role"
    )
    assert code == "InvalidParameterException" and "webhook" in message


def test_groups_that_forward_to_each_other_do_so_once(logs: BaseClient) -> None:
    one, two = fresh("/tests/one"), fresh("/tests/two")
    for source, target in ((one, two), (two, one)):
        if source == one:
            make_group(logs, one), make_group(logs, two)
        logs.put_subscription_filter(
            logGroupName=source,
            filterName="f",
            filterPattern="",
            destinationArn=group_arn(target),
        )
    put(logs, one, "ping")
    wait_for(lambda: messages(logs, two) == ["ping"], "the event")
    put(logs, two, "pong")
    wait_for(lambda: messages(logs, one) == ["ping", "pong"], "the event")
    assert messages(logs, two) == ["ping", "pong"]


def test_a_delivery_writes_objects(server: Server, logs: BaseClient, group: str) -> None:
    bucket = fresh("delivered")
    server.boto("s3").create_bucket(Bucket=bucket)
    put(logs, group, "before the delivery")
    time.sleep(0.002)  # events of its own millisecond are delivered
    delivery = deliver(
        logs,
        group_arn(group),
        f"arn:aws:s3:::{bucket}/logs",
        outputFormat="json",
        recordFields=["ms", "log_stream"],
        s3DeliveryConfiguration={"suffixPath": "{yyyy}/{MM}", "enableHiveCompatiblePath": True},
    )
    assert delivery["deliveryDestinationType"] == "S3"
    at = now()
    put(logs, group, json.dumps({"ms": 12}), "text", start=at)
    found = wait_for(lambda: objects(server, bucket), "the object")
    (key, text), *others = found.items()
    assert not others
    day = time.gmtime(at / 1000)
    prefix = f"logs/AWSLogs/123456789012/logs/year={day.tm_year}/month={day.tm_mon:02}/"
    assert key.startswith(prefix + "123456789012_logs_us-east-1_"), key
    assert [json.loads(line) for line in text.splitlines()] == [
        {"ms": 12, "log_stream": "s"},
        {"log_stream": "s"},
    ]
    logs.update_delivery_configuration(id=delivery["id"], recordFields=["message"])
    put(logs, group, "after the update")
    wait_for(
        lambda: '{"message":"after the update"}\n' in objects(server, bucket).values(),
        "the second object",
    )
    logs.delete_delivery(id=delivery["id"])
    code, _ = refused(logs.get_delivery, id=delivery["id"])
    assert code == "ResourceNotFoundException"


def test_deliveries_reach_a_log_group_and_a_webhook(
    logs: BaseClient, group: str, webhook: Webhook
) -> None:
    target = fresh("/tests/target")
    arn = make_group(logs, target)
    first = deliver(logs, group_arn(group), arn)
    assert first["deliveryDestinationType"] == "CWL"
    assert deliver(logs, group_arn(group), FIREHOSE)["deliveryDestinationType"] == "FH"
    put(logs, group, "to both")
    wait_for(lambda: messages(logs, target) == ["to both"], "the event")

    def received() -> bool:
        bodies = [json.loads(body) for _, body in webhook.bodies]
        records = [one["data"] for body in bodies for one in body.get("records", [])]
        return any(base64.b64decode(one) == b"to both\n" for one in records)

    wait_for(received, "the webhook to be called")
    code, message = refused(functools.partial(deliver, logs, arn, group_arn(group)))
    assert code == "ValidationException" and "cycle" in message
    listed = logs.describe_deliveries(deliverySourceNames=[first["deliverySourceName"]])
    assert [one["id"] for one in listed["deliveries"]] == [first["id"]]
    code, _ = refused(logs.delete_delivery_source, name=first["deliverySourceName"])
    assert code == "ConflictException"


def test_an_outside_source_needs_the_configuration(server: Server, logs: BaseClient) -> None:
    code, message = refused(
        logs.put_delivery_source,
        name="other",
        resourceArn=DISTRIBUTION + "2",
        logType="ACCESS_LOGS",
    )
    assert code == "ResourceNotFoundException" and "log_sources" in message
    make_group(logs, "/outside/cdn")
    bucket = fresh("cdn")
    server.boto("s3").create_bucket(Bucket=bucket)
    deliver(logs, DISTRIBUTION, f"arn:aws:s3:::{bucket}", logType="ACCESS_LOGS")
    put(logs, "/outside/cdn", "GET /")
    found = wait_for(lambda: objects(server, bucket), "the object")
    assert next(iter(found)).startswith("AWSLogs/123456789012/cloudfront/us-east-1/")
    assert list(found.values()) == ["GET /\n"]


def test_deliveries_and_destinations_survive_a_kill(
    start: Callable[..., Server], webhook: Webhook
) -> None:
    server = start(with_webhook(webhook))
    logs = server.boto("logs")
    make_group(logs, "g")
    target = make_group(logs, "to")
    server.boto("s3").create_bucket(Bucket="bucket")
    delivery = deliver(logs, group_arn("g"), "arn:aws:s3:::bucket", tags={"team": "web"})
    made = logs.put_destination(destinationName="named", targetArn=target, roleArn="role")
    logs.put_subscription_filter(
        logGroupName="g",
        filterName="f",
        filterPattern="",
        destinationArn=made["destination"]["arn"],
    )
    put(logs, "g", "first")
    wait_for(lambda: objects(server, "bucket"), "the first object")
    put(logs, "g", "second")
    server.kill()
    server.start()
    logs = server.boto("logs")

    def delivered() -> list[str]:
        return "".join(objects(server, "bucket").values()).split()

    # A server that was killed before it stored its position replaces the first object.
    wait_for(lambda: sorted(delivered()) == ["first", "second"], "the second event")
    assert logs.get_delivery(id=delivery["id"])["delivery"]["tags"] == {"team": "web"}
    assert [one["destinationName"] for one in logs.describe_destinations()["destinations"]] == [
        "named"
    ]
    put(logs, "g", "third")
    wait_for(lambda: "third" in messages(logs, "to"), "the event")


def test_deliveries_need_the_right_to_write(server: Server, logs: BaseClient, group: str) -> None:
    """Creating a destination needs the right to write to it; a source needs the right to read."""
    iam, name = server.boto("iam"), fresh("narrow")
    iam.create_user(UserName=name)
    iam.put_user_policy(
        UserName=name,
        PolicyName="own",
        PolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": "logs:Put*",
                        "Resource": [
                            "arn:aws:logs:*:*:delivery-source:*",
                            "arn:aws:logs:*:*:delivery-destination:*",
                            "arn:aws:logs:*:*:destination:*",
                            group_arn(group),
                        ],
                    }
                ],
            }
        ),
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    mine = server.boto(
        "logs",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    target = group_arn(group)
    for call, needed, more in (
        (mine.put_delivery_source, "logs:GetLogEvents", {"resourceArn": target, "logType": "A"}),
        (
            mine.put_delivery_source,
            "cloudfront:AllowVendedLogDeliveryForResource",
            {"resourceArn": DISTRIBUTION, "logType": "A"},
        ),
        (
            mine.put_delivery_destination,
            "s3:PutObject",
            {"deliveryDestinationConfiguration": {"destinationResourceArn": "arn:aws:s3:::b"}},
        ),
        (
            mine.put_delivery_destination,
            "logs:PutLogEvents",
            {"deliveryDestinationConfiguration": {"destinationResourceArn": target}},
        ),
        (
            mine.put_delivery_destination,
            "firehose:PutRecordBatch",
            {"deliveryDestinationConfiguration": {"destinationResourceArn": FIREHOSE}},
        ),
    ):
        code, message = refused(call, name="mine", **more)
        assert code == "AccessDeniedException" and needed in message, (code, message)
    for destination, needed in (
        (target, "logs:PutLogEvents"),
        (group_arn("other"), "logs:PutLogEvents"),
        (KINESIS, "kinesis:PutRecords"),
        (FIREHOSE, "firehose:PutRecordBatch"),
        ("arn:aws:lambda:us-east-1:123456789012:function:f", "lambda:InvokeFunction"),
    ):
        code, message = refused(
            mine.put_destination, destinationName="d", targetArn=destination, roleArn="role"
        )
        assert code == "AccessDeniedException" and needed in message, (code, message)
        code, message = refused(
            mine.put_subscription_filter,
            logGroupName=group,
            filterName="f",
            filterPattern="",
            destinationArn=destination,
        )
        assert code == "AccessDeniedException" and needed in message, (code, message)
