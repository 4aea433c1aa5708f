"""Checks claims of docs/compatibility.md about partial operations of CloudWatch Logs."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.calls import fresh
from tests.conformance.claims import Claim, World, rejects

LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:f"
STREAM = "arn:aws:kinesis:us-east-1:123456789012:stream/s"
POLICY = '{"Version": "2012-10-17"}'


def of_new_group(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    return lambda _: {"logGroupName": fresh("group")} | more


def of_group(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    """Returns members of a request about a new group."""

    def make(world: World) -> Mapping[str, Any]:
        name = fresh("group")
        world.client("logs").create_log_group(logGroupName=name)
        return {"logGroupName": name} | more

    return make


def metric_filter(**more: Any) -> Callable[[World], Mapping[str, Any]]:
    transformation = {"metricName": "m", "metricNamespace": "n", "metricValue": "1"}
    filter_of_group: Mapping[str, Any] = {
        "filterName": "f",
        "filterPattern": "ERROR",
        "metricTransformations": [transformation],
    }
    return of_group(**(dict(filter_of_group) | more))


def keeps_group_settings(world: World) -> None:
    world.client("logs").create_log_group(
        logGroupName=fresh("group"), kmsKeyId="arn:aws:kms:us-east-1:1:key/k"
    )
    world.client("logs").create_log_group(
        logGroupName=fresh("group"), logGroupClass="INFREQUENT_ACCESS"
    )


def keeps_resource_policies(world: World) -> None:
    name = fresh("policy")
    world.client("logs").put_resource_policy(policyName=name, policyDocument=POLICY)
    listed = world.client("logs").describe_resource_policies()["resourcePolicies"]
    assert POLICY in [one["policyDocument"] for one in listed if one["policyName"] == name]


def keeps_destination_policies(world: World) -> None:
    logs, name = world.client("logs"), fresh("destination")
    target = fresh("group")
    logs.create_log_group(logGroupName=target)
    found = logs.describe_log_groups(logGroupNamePrefix=target)["logGroups"]
    arn = next(one["logGroupArn"] for one in found if one["logGroupName"] == target)
    logs.put_destination(destinationName=name, targetArn=arn, roleArn="role")
    logs.put_destination_policy(destinationName=name, accessPolicy=POLICY)
    listed = logs.describe_destinations(DestinationNamePrefix=name)["destinations"]
    assert [(one["roleArn"], one["accessPolicy"]) for one in listed] == [("role", POLICY)]


def keeps_delivery_destination_policies(world: World) -> None:
    logs, name = world.client("logs"), fresh("destination")
    logs.put_delivery_destination(name=name, roleArn="role", **to_bucket(world))
    logs.put_delivery_destination_policy(
        deliveryDestinationName=name, deliveryDestinationPolicy=POLICY
    )
    found = logs.get_delivery_destination_policy(deliveryDestinationName=name)["policy"]
    assert found["deliveryDestinationPolicy"] == POLICY


def to_bucket(world: World) -> dict[str, Any]:
    bucket = f"arn:aws:s3:::{world.bucket}"
    return {"deliveryDestinationConfiguration": {"destinationResourceArn": bucket}}


CLAIMS: dict[str, list[Claim]] = {
    "logs CreateLogGroup": [
        rejects(
            "logs",
            "create_log_group",
            "deletionProtectionEnabled",
            of_new_group(deletionProtectionEnabled=True),
        ),
        keeps_group_settings,
    ],
    "logs StartQuery": [
        rejects(
            "logs",
            "start_query",
            "queryLanguage",
            of_group(queryLanguage=language, queryString="x", startTime=0, endTime=1),
        )
        for language in ("SQL", "PPL")
    ],
    "logs PutQueryDefinition": [
        rejects("logs", "put_query_definition", text, lambda _, m=more: {"name": "d"} | m)
        for text, more in (
            ("queryLanguage", {"queryString": "x", "queryLanguage": "PPL"}),
            ("parameters", {"queryString": "fields @message", "parameters": [{"name": "p"}]}),
        )
    ],
    "logs PutMetricFilter": [
        rejects("logs", "put_metric_filter", text, metric_filter(**more))
        for text, more in (
            ("regular expressions", {"filterPattern": "%a+%"}),
            ("applyOnTransformedLogs", {"applyOnTransformedLogs": True}),
            ("fieldSelectionCriteria", {"fieldSelectionCriteria": "x"}),
            ("emitSystemFieldDimensions", {"emitSystemFieldDimensions": ["@aws.account"]}),
        )
    ],
    "logs PutSubscriptionFilter": [
        rejects(
            "logs",
            "put_subscription_filter",
            text,
            of_group(filterName="f", filterPattern="", destinationArn=arn),
        )
        for text, arn in (("no functions", LAMBDA), ("no streams", STREAM))
    ],
    "logs PutDestination": [
        rejects(
            "logs",
            "put_destination",
            "webhook",
            lambda _: {"destinationName": "d", "targetArn": STREAM, "roleArn": "role"},
        ),
        keeps_destination_policies,
    ],
    "logs PutDestinationPolicy": [keeps_destination_policies],
    "logs PutDeliverySource": [
        rejects(
            "logs",
            "put_delivery_source",
            "log_sources",
            lambda _: {"name": "s", "resourceArn": LAMBDA, "logType": "ACCESS_LOGS"},
        ),
        rejects(
            "logs",
            "put_delivery_source",
            "deliverySourceConfiguration",
            lambda _: {
                "name": "s",
                "resourceArn": LAMBDA,
                "logType": "ACCESS_LOGS",
                "deliverySourceConfiguration": {"a": "b"},
            },
        ),
    ],
    "logs PutDeliveryDestination": [
        *(
            rejects(
                "logs",
                "put_delivery_destination",
                text,
                lambda world, m=more: {"name": "d"} | to_bucket(world) | m,
            )
            for text, more in (
                ("w3c", {"outputFormat": "w3c"}),
                ("parquet", {"outputFormat": "parquet"}),
                ("XRAY", {"deliveryDestinationType": "XRAY"}),
            )
        ),
        keeps_delivery_destination_policies,
    ],
    "logs PutDeliveryDestinationPolicy": [keeps_delivery_destination_policies],
    "logs FilterLogEvents": [
        rejects("logs", "filter_log_events", "regular expressions", of_group(filterPattern="%a+%"))
    ],
    "logs PutResourcePolicy": [
        rejects(
            "logs",
            "put_resource_policy",
            "resourceArn",
            lambda _: {"resourceArn": LAMBDA, "policyDocument": POLICY},
        ),
        keeps_resource_policies,
    ],
}
