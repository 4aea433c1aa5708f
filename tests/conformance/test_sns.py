"""Tests SNS through unmodified clients."""

from collections.abc import Callable

import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refusal
from tests.trainyard_server import Answer, Server


@pytest.fixture
def sns(server: Server) -> BaseClient:
    return server.boto("sns")


def test_topics(sns: BaseClient) -> None:
    name = fresh("topic")
    arn = sns.create_topic(
        Name=name, Attributes={"DisplayName": "Cluster"}, Tags=[{"Key": "team", "Value": "ml"}]
    )["TopicArn"]
    assert arn.startswith("arn:aws:sns:us-east-1:") and arn.endswith(":" + name)
    assert sns.create_topic(Name=name)["TopicArn"] == arn
    assert "different attributes" in refusal(
        sns.create_topic, "InvalidParameter", Name=name, Attributes={"DisplayName": "Other"}
    )
    assert "different tags" in refusal(
        sns.create_topic, "InvalidParameter", Name=name, Tags=[{"Key": "team", "Value": "x"}]
    )
    assert {"TopicArn": arn} in [
        topic for page in sns.get_paginator("list_topics").paginate() for topic in page["Topics"]
    ]
    attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    assert attributes["DisplayName"] == "Cluster"
    assert attributes["SubscriptionsConfirmed"] == "0"
    assert attributes["SignatureVersion"] == "2"
    sns.set_topic_attributes(TopicArn=arn, AttributeName="DisplayName", AttributeValue="New")
    assert sns.get_topic_attributes(TopicArn=arn)["Attributes"]["DisplayName"] == "New"
    sns.tag_resource(ResourceArn=arn, Tags=[{"Key": "cost", "Value": "1"}])
    sns.untag_resource(ResourceArn=arn, TagKeys=["team"])
    assert sns.list_tags_for_resource(ResourceArn=arn)["Tags"] == [{"Key": "cost", "Value": "1"}]
    sns.delete_topic(TopicArn=arn)
    sns.delete_topic(TopicArn=arn)
    with pytest.raises(sns.exceptions.NotFoundException, match="Topic does not exist"):
        sns.get_topic_attributes(TopicArn=arn)
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.publish(TopicArn=arn, Message="x")


def test_invalid_requests_are_rejected(sns: BaseClient) -> None:
    arn = sns.create_topic(Name=fresh("topic"))["TopicArn"]
    for name in ("", "a b", "x" * 257, "queue.fifo"):
        refusal(sns.create_topic, "InvalidParameter", Name=name)
    for attribute in ("KmsMasterKeyId", "Unknown"):
        refusal(
            sns.set_topic_attributes,
            "InvalidParameter",
            TopicArn=arn,
            AttributeName=attribute,
            AttributeValue="x",
        )
    refusal(sns.publish, "InvalidParameter", TopicArn=arn, Message="x" * (256 * 1024 + 1))
    refusal(sns.publish, "InvalidParameter", TopicArn=arn, Message="")
    refusal(sns.publish, "InvalidParameter", TopicArn=arn, Message="x", Subject="a\nb")
    refusal(sns.publish, "InvalidParameter", PhoneNumber="+4930", Message="x")
    refusal(sns.publish, "InvalidParameter", TopicArn=arn, Message="x", MessageStructure="json")
    refusal(
        sns.publish,
        "InvalidParameter",
        TopicArn=arn,
        Message='{"email": "x"}',
        MessageStructure="json",
    )
    refusal(
        sns.publish,
        "ParameterValueInvalid",
        TopicArn=arn,
        Message="x",
        MessageAttributes={"a": {"DataType": "Number", "StringValue": "five"}},
    )
    for protocol, endpoint in (
        ("sms", "+4930"),
        ("sqs", "arn:aws:sqs:us-east-1:1:q"),
        ("email", "a@b.example"),  # this server has no mail server
        ("http", "https://u.example/"),
        ("http", "http://"),
        ("http", "ftp://u.example/"),
    ):
        refusal(
            sns.subscribe, "InvalidParameter", TopicArn=arn, Protocol=protocol, Endpoint=endpoint
        )
    for policy in ("{", '{"a": "x"}', '{"a": [{"unknown": 1}]}'):
        refusal(
            sns.subscribe,
            "InvalidParameter",
            TopicArn=arn,
            Protocol="http",
            Endpoint="http://u.example/",
            Attributes={"FilterPolicy": policy},
        )
    refusal(sns.confirm_subscription, "InvalidParameter", TopicArn=arn, Token="0" * 128)


def test_subscriptions(sns: BaseClient) -> None:
    arn = sns.create_topic(Name=fresh("topic"))["TopicArn"]
    answer = sns.subscribe(TopicArn=arn, Protocol="https", Endpoint="https://u.example.invalid/")
    assert answer["SubscriptionArn"] == "pending confirmation"
    (listed,) = sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"]
    assert listed["SubscriptionArn"] == "PendingConfirmation"
    assert listed["Endpoint"] == "https://u.example.invalid/"
    identity = sns.subscribe(
        TopicArn=arn,
        Protocol="https",
        Endpoint="https://u.example.invalid/",
        ReturnSubscriptionArn=True,
    )["SubscriptionArn"]
    assert identity.startswith(arn + ":")
    sns.set_subscription_attributes(
        SubscriptionArn=identity, AttributeName="FilterPolicy", AttributeValue='{"a": ["x"]}'
    )
    sns.set_subscription_attributes(
        SubscriptionArn=identity, AttributeName="FilterPolicyScope", AttributeValue="MessageBody"
    )
    attributes = sns.get_subscription_attributes(SubscriptionArn=identity)["Attributes"]
    assert attributes["FilterPolicy"] == '{"a": ["x"]}'
    assert attributes["FilterPolicyScope"] == "MessageBody"
    assert attributes["PendingConfirmation"] == "true"
    assert sns.get_topic_attributes(TopicArn=arn)["Attributes"]["SubscriptionsPending"] == "1"
    sns.unsubscribe(SubscriptionArn=identity)
    sns.unsubscribe(SubscriptionArn=identity)
    with pytest.raises(sns.exceptions.NotFoundException):
        sns.get_subscription_attributes(SubscriptionArn=identity)
    assert sns.list_subscriptions_by_topic(TopicArn=arn)["Subscriptions"] == []


def test_batches(sns: BaseClient) -> None:
    arn = sns.create_topic(Name=fresh("topic"))["TopicArn"]
    answer = sns.publish_batch(
        TopicArn=arn,
        PublishBatchRequestEntries=[
            {"Id": "1", "Message": "a"},
            {"Id": "2", "Message": "b", "Subject": "\n"},
        ],
    )
    assert [each["Id"] for each in answer["Successful"]] == ["1"]
    assert [(each["Id"], each["Code"]) for each in answer["Failed"]] == [("2", "InvalidParameter")]
    for entries, code in (
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n), "Message": "x"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "1", "Message": "x"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "Message": "x"}], "InvalidBatchEntryId"),
        ([{"Id": str(n), "Message": "x" * 200_000} for n in range(2)], "BatchRequestTooLong"),
    ):
        refusal(sns.publish_batch, code, TopicArn=arn, PublishBatchRequestEntries=entries)


def test_the_command_line(server: Server, aws: Callable[..., Answer]) -> None:
    arn = aws("sns", "create-topic", "--name", fresh("topic"))["TopicArn"]
    assert arn in [topic["TopicArn"] for topic in aws("sns", "list-topics")["Topics"]]
    assert aws("sns", "publish", "--topic-arn", arn, "--message", "hello")["MessageId"]
    aws("sns", "delete-topic", "--topic-arn", arn)
