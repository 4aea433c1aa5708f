"""Tests EventBridge through unmodified clients."""

import json
from collections.abc import Callable

import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refusal
from tests.trainyard_server import Answer, Server

PATTERN = '{"source": ["own"]}'


@pytest.fixture
def events(server: Server) -> BaseClient:
    return server.boto("events")


@pytest.fixture
def topic(server: Server) -> str:
    arn: str = server.boto("sns").create_topic(Name=fresh("topic"))["TopicArn"]
    return arn


def test_rules(events: BaseClient) -> None:
    name = fresh("rule")
    arn = events.put_rule(
        Name=name, EventPattern=PATTERN, Description="d", Tags=[{"Key": "team", "Value": "ml"}]
    )["RuleArn"]
    assert arn.endswith(":rule/" + name)
    described = events.describe_rule(Name=name)
    assert described["EventPattern"] == PATTERN
    assert described["State"] == "ENABLED" and described["EventBusName"] == "default"
    events.disable_rule(Name=name)
    assert events.describe_rule(Name=name)["State"] == "DISABLED"
    events.enable_rule(Name=name)
    (listed,) = events.list_rules(NamePrefix=name)["Rules"]
    assert (listed["Name"], listed["Arn"], listed["State"]) == (name, arn, "ENABLED")
    events.put_rule(Name=name, EventPattern='{"source": ["other"]}')
    assert events.describe_rule(Name=name)["EventPattern"] == '{"source": ["other"]}'
    assert events.list_tags_for_resource(ResourceARN=arn)["Tags"] == [
        {"Key": "team", "Value": "ml"}
    ]
    events.tag_resource(ResourceARN=arn, Tags=[{"Key": "cost", "Value": "1"}])
    events.untag_resource(ResourceARN=arn, TagKeys=["team"])
    assert events.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "cost", "Value": "1"}]
    events.delete_rule(Name=name)
    events.delete_rule(Name=name)
    with pytest.raises(events.exceptions.ResourceNotFoundException):
        events.describe_rule(Name=name)


def test_invalid_rules_are_rejected(events: BaseClient, topic: str) -> None:
    name = fresh("rule")
    for pattern in ("{", "{}", '{"a": "x"}', '{"a": [{"unknown": 1}]}', "x" * 5000):
        code = "ValidationException" if len(pattern) > 4096 else "InvalidEventPatternException"
        refusal(events.put_rule, code, Name=name, EventPattern=pattern)
    assert "schedules" in refusal(
        events.put_rule, "ValidationException", Name=name, ScheduleExpression="rate(5 minutes)"
    )
    refusal(events.put_rule, "ValidationException", Name=name)
    refusal(
        events.put_rule,
        "ResourceNotFoundException",
        Name=name,
        EventPattern=PATTERN,
        EventBusName="other",
    )
    events.put_rule(Name=name, EventPattern=PATTERN)
    account = topic.split(":")[4]
    for target in (
        {"Arn": f"arn:aws:lambda:us-east-1:{account}:function:f"},
        {"Arn": topic.replace("us-east-1", "eu-west-9")},
        {"Arn": "topic"},
        {"Arn": f"arn:aws:logs:us-east-1:{account}:log-group:/other"},
        {"Arn": f"arn:aws:batch:us-east-1:{account}:job-queue/q"},
        {"Arn": topic, "Input": "{"},
        {"Arn": topic, "Input": "{}", "InputPath": "$.detail"},
        {"Arn": topic, "InputPath": "detail"},
        {"Arn": topic, "RetryPolicy": {"MaximumRetryAttempts": 5}},
    ):
        refusal(
            events.put_targets, "ValidationException", Rule=name, Targets=[{"Id": "1", **target}]
        )
    refusal(
        events.put_targets,
        "LimitExceededException",
        Rule=name,
        Targets=[{"Id": str(number), "Arn": topic} for number in range(6)],
    )
    refusal(
        events.put_targets,
        "ResourceNotFoundException",
        Rule=fresh("none"),
        Targets=[{"Id": "1", "Arn": topic}],
    )
    events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": topic}])
    assert "has targets" in refusal(events.delete_rule, "ValidationException", Name=name)


def test_targets(events: BaseClient, topic: str) -> None:
    name = fresh("rule")
    events.put_rule(Name=name, EventPattern=PATTERN)
    targets = [
        {"Id": "1", "Arn": topic, "InputPath": "$.detail"},
        {
            "Id": "2",
            "Arn": topic,
            "InputTransformer": {"InputPathsMap": {"s": "$.source"}, "InputTemplate": '"<s>"'},
        },
        {
            "Id": "3",
            "Arn": f"arn:aws:batch:us-east-1:{topic.split(':')[4]}:job-queue/q",
            "BatchParameters": {
                "JobDefinition": "d",
                "JobName": "n",
                "ArrayProperties": {"Size": 5},
                "RetryStrategy": {"Attempts": 2},
            },
        },
    ]
    assert events.put_targets(Rule=name, Targets=targets)["FailedEntryCount"] == 0
    assert events.list_targets_by_rule(Rule=name)["Targets"] == targets
    assert name in events.list_rule_names_by_target(TargetArn=topic)["RuleNames"]
    first = events.list_targets_by_rule(Rule=name, Limit=2)
    rest = events.list_targets_by_rule(Rule=name, NextToken=first["NextToken"])
    assert first["Targets"] + rest["Targets"] == targets
    removed = events.remove_targets(Rule=name, Ids=["1", "9"])
    assert [each["TargetId"] for each in removed["FailedEntries"]] == ["9"]
    assert [each["Id"] for each in events.list_targets_by_rule(Rule=name)["Targets"]] == ["2", "3"]


def test_put_events(events: BaseClient) -> None:
    answer = events.put_events(
        Entries=[
            {"Source": "own", "DetailType": "t", "Detail": '{"a": 1}'},
            {"Source": "aws.sagemaker", "DetailType": "t", "Detail": "{}"},
            {"Source": "trainyard", "DetailType": "t", "Detail": "{}"},
            {"Source": "own", "DetailType": "t", "Detail": "x"},
            {"Source": "own", "Detail": "{}"},
        ]
    )
    assert answer["FailedEntryCount"] == 4
    codes = [each.get("ErrorCode") for each in answer["Entries"]]
    assert codes == [
        None,
        "NotAuthorizedForSourceException",
        "NotAuthorizedForSourceException",
        "MalformedDetail",
        "InvalidArgument",
    ]
    assert answer["Entries"][0]["EventId"]
    entry = {"Source": "own", "DetailType": "t", "Detail": "{}"}
    refusal(events.put_events, "ValidationException", Entries=[entry] * 11)
    refusal(
        events.put_events,
        "ValidationException",
        Entries=[entry | {"Detail": json.dumps({"a": "x" * 300_000})}],
    )


def test_patterns_and_buses(events: BaseClient) -> None:
    event = json.dumps(
        {
            "id": "1",
            "account": "123456789012",
            "source": "own",
            "time": "2026-11-20T09:45:00Z",
            "region": "us-east-1",
            "detail-type": "t",
            "resources": [],
            "detail": {"state": "FAILED"},
        }
    )
    for pattern, expected in (
        ('{"detail": {"state": [{"prefix": "FA"}]}}', True),
        ('{"detail": {"state": [{"anything-but": "FAILED"}]}}', False),
    ):
        tested = events.test_event_pattern(EventPattern=pattern, Event=event)
        assert tested["Result"] is expected
    refusal(
        events.test_event_pattern, "InvalidEventPatternException", EventPattern="{", Event=event
    )
    refusal(events.test_event_pattern, "ValidationException", EventPattern=PATTERN, Event="{}")
    assert events.describe_event_bus()["Name"] == "default"
    assert [bus["Name"] for bus in events.list_event_buses()["EventBuses"]] == ["default"]
    refusal(events.describe_event_bus, "ResourceNotFoundException", Name="other")


def test_the_command_line(server: Server, aws: Callable[..., Answer]) -> None:
    name = fresh("rule")
    aws("events", "put-rule", "--name", name, "--event-pattern", PATTERN)
    rules = aws("events", "list-rules", "--name-prefix", name)["Rules"]
    assert [rule["Name"] for rule in rules] == [name]
    aws("events", "delete-rule", "--name", name)
