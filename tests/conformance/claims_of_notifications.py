"""Checks claims of docs/compatibility.md about partial operations of SNS and EventBridge."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.calls import fresh
from tests.conformance.claims import Claim, World, rejects

EVENT_PATTERN = '{"source": ["own"]}'


def of_new_topic(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    return lambda _: {"Name": fresh("topic")} | more


def of_topic(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    """Returns members of a request about a new topic."""
    return lambda world: {
        "TopicArn": world.client("sns").create_topic(Name=fresh("topic"))["TopicArn"],
        **more,
    }


def keeps_topic_attributes(world: World) -> None:
    sns, topic = world.client("sns"), of_topic()(world)
    for name in ("Policy", "DeliveryPolicy"):
        sns.set_topic_attributes(AttributeName=name, AttributeValue='{"x": 1}', **topic)
        assert sns.get_topic_attributes(**topic)["Attributes"][name] == '{"x": 1}'


def of_rule(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    """Returns a request for one target of a new rule."""

    def make(world: World) -> Mapping[str, Any]:
        topic, rule = of_topic()(world)["TopicArn"], fresh("rule")
        world.client("events").put_rule(Name=rule, EventPattern=EVENT_PATTERN)
        target = {"Id": "1", "Arn": topic} | more
        target["Arn"] = target["Arn"].replace("{account}", topic.split(":")[4])
        return {"Rule": rule, "Targets": [target]}

    return make


def puts_events(world: World) -> None:
    entry = {"Source": "own", "DetailType": "t", "Detail": "{}", "TraceHeader": "Root=1"}
    assert world.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0


CLAIMS: dict[str, list[Claim]] = {
    "sns CreateTopic": [
        rejects("sns", "create_topic", text, of_new_topic(**more))
        for text, more in (
            ("FIFO topics", {"Name": "a.fifo"}),
            ("KmsMasterKeyId", {"Attributes": {"KmsMasterKeyId": "k"}}),
            ("DataProtectionPolicy", {"DataProtectionPolicy": "{}"}),
        )
    ]
    + [keeps_topic_attributes],
    "sns SetTopicAttributes": [
        rejects(
            "sns",
            "set_topic_attributes",
            "KmsMasterKeyId",
            of_topic(AttributeName="KmsMasterKeyId", AttributeValue="k"),
        ),
        keeps_topic_attributes,
    ],
    "sns Subscribe": [
        rejects("sns", "subscribe", text, of_topic(Protocol=protocol, Endpoint=endpoint, **more))
        for text, protocol, endpoint, more in (
            ("sqs is not supported", "sqs", "arn:aws:sqs:us-east-1:1:q", {}),
            ("sms is not supported", "sms", "+4930", {}),
            ("RedrivePolicy", "http", "http://u.example/", {"Attributes": {"RedrivePolicy": "{}"}}),
            ("ReplayPolicy", "http", "http://u.example/", {"Attributes": {"ReplayPolicy": "{}"}}),
        )
    ],
    "sns SetSubscriptionAttributes": [
        rejects(
            "sns",
            "set_subscription_attributes",
            "RedrivePolicy",
            lambda world: {
                "SubscriptionArn": world.client("sns").subscribe(
                    Protocol="http",
                    Endpoint="http://u.example.invalid/",
                    ReturnSubscriptionArn=True,
                    **of_topic()(world),
                )["SubscriptionArn"],
                "AttributeName": "RedrivePolicy",
                "AttributeValue": "{}",
            },
        )
    ],
    "sns Publish": [
        rejects(
            "sns", "publish", "PhoneNumber", lambda _: {"PhoneNumber": "+4930", "Message": "x"}
        ),
        rejects("sns", "publish", "MessageGroupId", of_topic(Message="x", MessageGroupId="g")),
    ],
    "events PutRule": [
        rejects(
            "events",
            "put_rule",
            "schedules",
            lambda _: {"Name": fresh("rule"), "ScheduleExpression": "rate(1 day)"},
        ),
        rejects(
            "events",
            "put_rule",
            "Event bus other does not exist",
            lambda _: {"Name": "r", "EventPattern": EVENT_PATTERN, "EventBusName": "other"},
        ),
    ],
    "events PutTargets": [
        rejects("events", "put_targets", text, of_rule(**more))
        for text, more in (
            ("is none that this server offers", {"Arn": "arn:aws:sqs:us-east-1:{account}:q"}),
            ("RetryPolicy", {"RetryPolicy": {"MaximumRetryAttempts": 1}}),
            ("DeadLetterConfig", {"DeadLetterConfig": {"Arn": "arn:aws:sqs:us-east-1:1:q"}}),
        )
    ],
    "events PutEvents": [puts_events],
}
