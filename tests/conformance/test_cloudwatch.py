"""Tests CloudWatch metrics through unmodified clients: current ones use JSON, Debian's the query
protocol."""

import datetime
from collections.abc import Callable

import pytest
from botocore.client import BaseClient

from tests import debians_boto
from tests.calls import fresh, refused
from tests.trainyard_server import Answer, Server

MINUTE = datetime.timedelta(minutes=1)
ALL = ["SampleCount", "Average", "Sum", "Minimum", "Maximum"]


@pytest.fixture(scope="module")
def cloudwatch(server: Server) -> BaseClient:
    return server.boto("cloudwatch")


@pytest.fixture
def start() -> datetime.datetime:
    """Returns the time ten minutes ago, at the start of a minute."""
    now = datetime.datetime.now(datetime.UTC)
    return now.replace(second=0, microsecond=0) - 10 * MINUTE


@pytest.fixture
def space() -> str:
    return fresh("Tests", "/")


def test_values_sets_and_counts_add_up(
    cloudwatch: BaseClient, space: str, start: datetime.datetime
) -> None:
    dimensions = [
        {"Name": "TrainingJobName", "Value": "digits"},
        {"Name": "Host", "Value": "digits/algo-1"},
    ]
    cloudwatch.put_metric_data(
        Namespace=space,
        MetricData=[
            {"MetricName": "loss", "Dimensions": dimensions, "Timestamp": start, "Value": 0.5},
            {
                "MetricName": "loss",
                "Dimensions": dimensions,
                "Timestamp": start + MINUTE / 2,
                "Values": [1.0, 2.0],
                "Counts": [3, 1],
            },
            {
                "MetricName": "loss",
                "Dimensions": dimensions,
                "Timestamp": start + MINUTE,
                "StatisticValues": {"SampleCount": 4, "Sum": 8, "Minimum": 1, "Maximum": 3},
            },
            {"MetricName": "loss", "Timestamp": start, "Value": 99},
        ],
    )
    answer = cloudwatch.get_metric_statistics(
        Namespace=space,
        MetricName="loss",
        Dimensions=list(reversed(dimensions)),
        StartTime=start,
        EndTime=start + 2 * MINUTE,
        Period=60,
        Statistics=ALL,
    )
    assert answer["Label"] == "loss"
    points = sorted(answer["Datapoints"], key=lambda point: point["Timestamp"])
    assert points == [
        {
            "Timestamp": start,
            "SampleCount": 5,
            "Average": 1.1,
            "Sum": 5.5,
            "Minimum": 0.5,
            "Maximum": 2,
            "Unit": "None",
        },
        {
            "Timestamp": start + MINUTE,
            "SampleCount": 4,
            "Average": 2,
            "Sum": 8,
            "Minimum": 1,
            "Maximum": 3,
            "Unit": "None",
        },
    ]
    whole = cloudwatch.get_metric_statistics(
        Namespace=space,
        MetricName="loss",
        Dimensions=dimensions,
        StartTime=start,
        EndTime=start + 5 * MINUTE,
        Period=300,
        Statistics=["Sum"],
    )
    assert whole["Datapoints"] == [{"Timestamp": start, "Sum": 13.5, "Unit": "None"}]
    nothing = cloudwatch.get_metric_statistics(
        Namespace=space,
        MetricName="loss",
        Dimensions=dimensions[:1],
        StartTime=start,
        EndTime=start + 5 * MINUTE,
        Period=300,
        Statistics=["Sum"],
    )
    assert nothing["Datapoints"] == []


def test_units_are_kept_apart(cloudwatch: BaseClient, space: str, start: datetime.datetime) -> None:
    for unit, value in (("Seconds", 1), ("Milliseconds", 1000)):
        cloudwatch.put_metric_data(
            Namespace=space,
            MetricData=[{"MetricName": "time", "Timestamp": start, "Value": value, "Unit": unit}],
        )
    question = dict(
        Namespace=space,
        MetricName="time",
        StartTime=start,
        EndTime=start + MINUTE,
        Period=60,
        Statistics=["Sum"],
    )
    assert len(cloudwatch.get_metric_statistics(**question)["Datapoints"]) == 2
    assert cloudwatch.get_metric_statistics(Unit="Seconds", **question)["Datapoints"][0]["Sum"] == 1


def test_a_point_without_a_time_gets_the_current_time(cloudwatch: BaseClient, space: str) -> None:
    cloudwatch.put_metric_data(Namespace=space, MetricData=[{"MetricName": "x", "Value": 1}])
    now = datetime.datetime.now(datetime.UTC)
    answer = cloudwatch.get_metric_statistics(
        Namespace=space,
        MetricName="x",
        StartTime=now - 5 * MINUTE,
        EndTime=now + 5 * MINUTE,
        Period=60,
        Statistics=["Sum"],
    )
    assert [point["Sum"] for point in answer["Datapoints"]] == [1]


def test_invalid_requests_have_the_error_codes_of_aws(
    cloudwatch: BaseClient, space: str, start: datetime.datetime
) -> None:
    question = dict(
        Namespace=space,
        MetricName="x",
        StartTime=start,
        EndTime=start + MINUTE,
        Period=60,
        Statistics=["Sum"],
    )
    code, message = refused(
        cloudwatch.get_metric_statistics,
        **question | {"StartTime": start - datetime.timedelta(days=1)},
    )
    assert code == "InvalidParameterCombination"
    assert message.startswith(
        "You have requested up to 1,441 datapoints, which exceeds the limit of 1,440."
    )
    assert refused(cloudwatch.get_metric_statistics, **question | {"EndTime": start}) == (
        "InvalidParameterValue",
        "The parameter StartTime must be less than the parameter EndTime.",
    )
    assert (
        refused(cloudwatch.get_metric_statistics, **question | {"Period": 7})[0]
        == "InvalidParameterValue"
    )
    question.pop("Statistics")
    assert refused(cloudwatch.get_metric_statistics, **question)[0] == "InvalidParameterCombination"
    for datum, code in (
        ({}, "MissingParameter"),
        ({"Value": 1, "Values": [1]}, "InvalidParameterValue"),
        ({"Value": float("nan")}, "InvalidParameterValue"),
        ({"Value": 1, "Timestamp": start - datetime.timedelta(days=15)}, "InvalidParameterValue"),
        ({"Values": [1, 2], "Counts": [1]}, "InvalidParameterValue"),
    ):
        assert (
            refused(
                cloudwatch.put_metric_data,
                Namespace=space,
                MetricData=[{"MetricName": "x"} | datum],
            )[0]
            == code
        ), datum
    assert cloudwatch.list_metrics(Namespace=space)["Metrics"] == []


def test_metrics_are_listed_in_pages(cloudwatch: BaseClient, space: str) -> None:
    for part in range(0, 600, 200):
        cloudwatch.put_metric_data(
            Namespace=space,
            MetricData=[
                {
                    "MetricName": f"m{i % 3}",
                    "Dimensions": [{"Name": "Host", "Value": f"algo-{i}"}],
                    "Value": i,
                }
                for i in range(part, part + 200)
            ],
        )
    pages = list(cloudwatch.get_paginator("list_metrics").paginate(Namespace=space))
    assert [len(page["Metrics"]) for page in pages] == [500, 100]
    some = cloudwatch.list_metrics(
        Namespace=space, MetricName="m1", Dimensions=[{"Name": "Host", "Value": "algo-4"}]
    )["Metrics"]
    assert some == [
        {
            "Namespace": space,
            "MetricName": "m1",
            "Dimensions": [{"Name": "Host", "Value": "algo-4"}],
        }
    ]
    assert (
        len(
            cloudwatch.list_metrics(
                Namespace=space, RecentlyActive="PT3H", Dimensions=[{"Name": "Host"}]
            )["Metrics"]
        )
        == 500
    )


def test_the_command_lines(
    aws: Callable[..., Answer], space: str, start: datetime.datetime
) -> None:
    aws(
        "cloudwatch",
        "put-metric-data",
        "--namespace",
        space,
        "--metric-name",
        "loss",
        "--value",
        "0.25",
        "--unit",
        "Count",
        "--timestamp",
        start.isoformat(),
        "--dimensions",
        "TrainingJobName=digits",
    )
    answer = aws(
        "cloudwatch",
        "get-metric-statistics",
        "--namespace",
        space,
        "--metric-name",
        "loss",
        "--dimensions",
        "Name=TrainingJobName,Value=digits",
        "--start-time",
        start.isoformat(),
        "--end-time",
        (start + MINUTE).isoformat(),
        "--period",
        "60",
        "--statistics",
        *ALL,
    )
    assert [
        (point["Sum"], point["SampleCount"], point["Unit"]) for point in answer["Datapoints"]
    ] == [(0.25, 1, "Count")]
    assert [
        one["MetricName"]
        for one in aws("cloudwatch", "list-metrics", "--namespace", space)["Metrics"]
    ] == ["loss"]
    failed = aws(
        "cloudwatch",
        "get-metric-statistics",
        "--namespace",
        space,
        "--metric-name",
        "loss",
        "--start-time",
        start.isoformat(),
        "--end-time",
        start.isoformat(),
        "--period",
        "60",
        "--statistics",
        "Sum",
        check=False,
    )
    assert failed.returncode != 0 and "(InvalidParameterValue)" in failed.stderr


def test_debians_boto_speaks_query(server: Server, space: str, start: datetime.datetime) -> None:
    at = {"time": start.timestamp()}
    answer = debians_boto.call(
        server,
        "cloudwatch",
        "put_metric_data",
        Namespace=space,
        MetricData=[
            {
                "MetricName": "loss",
                "Timestamp": at,
                "Values": [1.5, 2.5],
                "Counts": [2, 1],
                "Dimensions": [{"Name": "a b", "Value": "c&d=é"}],
            }
        ],
    )
    assert answer == {}
    answer = debians_boto.call(
        server,
        "cloudwatch",
        "get_metric_statistics",
        Namespace=space,
        MetricName="loss",
        StartTime=at,
        EndTime={"time": start.timestamp() + 60},
        Period=60,
        Statistics=ALL,
        Dimensions=[{"Name": "a b", "Value": "c&d=é"}],
    )
    assert answer["Datapoints"] == [
        {
            "Timestamp": start.timestamp(),
            "SampleCount": 3,
            "Average": 5.5 / 3,
            "Sum": 5.5,
            "Minimum": 1.5,
            "Maximum": 2.5,
            "Unit": "None",
        }
    ]
    assert debians_boto.call(server, "cloudwatch", "list_metrics", Namespace=space)["Metrics"][0][
        "Dimensions"
    ] == [{"Name": "a b", "Value": "c&d=é"}]
    answer = debians_boto.call(
        server,
        "cloudwatch",
        "get_metric_statistics",
        Namespace=space,
        MetricName="loss",
        StartTime=at,
        EndTime=at,
        Period=60,
        Statistics=["Sum"],
    )
    assert answer["Error"]["Code"] == "InvalidParameterValue"
    assert (
        answer["Error"]["Message"]
        == "The parameter StartTime must be less than the parameter EndTime."
    )
