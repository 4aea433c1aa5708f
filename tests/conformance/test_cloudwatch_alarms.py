"""Tests CloudWatch's metric data, alarms and dashboards through unmodified clients."""

import datetime
import json
from collections.abc import Callable, Iterator

import pytest
from botocore.client import BaseClient

from tests import debians_boto
from tests.calls import fresh, refused
from tests.trainyard_server import Answer, Server, wait_for

SECOND = datetime.timedelta(seconds=1)
MINUTE = datetime.timedelta(minutes=1)


@pytest.fixture(scope="module")
def cloudwatch(server: Server) -> BaseClient:
    return server.boto("cloudwatch")


@pytest.fixture
def space() -> str:
    return fresh("Tests", "/")


@pytest.fixture
def alarm(cloudwatch: BaseClient) -> Iterator[str]:
    name = fresh("alarm")
    yield name
    cloudwatch.delete_alarms(AlarmNames=[f"{name}-parent", name])


def metric(identifier: str, space: str, name: str, stat: str = "Sum") -> dict[str, object]:
    return {
        "Id": identifier,
        "MetricStat": {
            "Metric": {"Namespace": space, "MetricName": name},
            "Period": 60,
            "Stat": stat,
        },
    }


def settings(space: str, **more: object) -> dict[str, object]:
    return {
        "Namespace": space,
        "MetricName": "loss",
        "Statistic": "Maximum",
        "Period": 10,
        "EvaluationPeriods": 1,
        "Threshold": 5.0,
        "ComparisonOperator": "GreaterThanThreshold",
    } | more


def test_metric_data_with_expressions(cloudwatch: BaseClient, space: str) -> None:
    now = datetime.datetime.now(datetime.UTC).replace(second=0, microsecond=0)
    for minute in range(1, 6):
        cloudwatch.put_metric_data(
            Namespace=space,
            MetricData=[
                {"MetricName": name, "Timestamp": now - minute * MINUTE, "Value": value}
                for name, value in (("errors", minute), ("requests", 100))
            ],
        )
    answer = cloudwatch.get_metric_data(
        MetricDataQueries=[
            {"Id": "percent", "Expression": "100 * errors / requests", "Label": "Percent"},
            metric("errors", space, "errors") | {"ReturnData": False},
            metric("requests", space, "requests", "p99"),
        ],
        StartTime=now - 10 * MINUTE,
        EndTime=now,
    )
    percent, requests = answer["MetricDataResults"]
    assert (percent["Label"], percent["StatusCode"]) == ("Percent", "Complete")
    assert percent["Values"] == [1, 2, 3, 4, 5]
    assert percent["Timestamps"][0] == now - MINUTE
    assert requests["Values"] == [100] * 5
    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=[metric("errors", space, "errors")],
        StartTime=now - 10 * MINUTE,
        EndTime=now,
        MaxDatapoints=2,
    )
    values = [page["MetricDataResults"][0]["Values"] for page in pages]
    assert values == [[1, 2], [3, 4], [5]]
    code, message = refused(
        cloudwatch.get_metric_data,
        MetricDataQueries=[{"Id": "e", "Expression": "nothing + 1"}],
        StartTime=now - MINUTE,
        EndTime=now,
    )
    assert (code, message) == (
        "ValidationError",
        "Error in expression 'e': Undefined id 'nothing'",
    )


def test_an_alarm_fires_and_its_history_says_why(
    cloudwatch: BaseClient, space: str, alarm: str
) -> None:
    action = "arn:aws:sagemaker:us-east-1:123456789012:training-job/absent"
    cloudwatch.put_metric_alarm(
        AlarmName=alarm, AlarmActions=[action], **settings(space, AlarmDescription="too high")
    )
    cloudwatch.get_waiter("alarm_exists").wait(AlarmNames=[alarm])

    def described() -> dict[str, object]:
        return cloudwatch.describe_alarms(AlarmNames=[alarm])["MetricAlarms"][0]

    assert described()["StateValue"] == "INSUFFICIENT_DATA"
    assert described()["StateReason"] == "Unchecked: Initial alarm creation"
    cloudwatch.put_metric_data(Namespace=space, MetricData=[{"MetricName": "loss", "Value": 9}])
    wait_for(lambda: described()["StateValue"] == "ALARM", "the alarm")
    assert str(described()["StateReason"]).startswith(
        "Threshold Crossed: 1 out of the last 1 datapoints [9.0 ("
    )
    data = json.loads(str(described()["StateReasonData"]))
    assert (data["threshold"], data["recentDatapoints"]) == (5.0, [9.0])

    def summaries(kind: str) -> list[str]:
        return [
            item["HistorySummary"]
            for item in cloudwatch.describe_alarm_history(AlarmName=alarm, HistoryItemType=kind)[
                "AlarmHistoryItems"
            ]
        ]

    assert summaries("StateUpdate") == ["Alarm updated from INSUFFICIENT_DATA to ALARM"]
    # The job does not exist, or belongs to another account: the action ends with an error.
    wait_for(lambda: summaries("Action"), "the action")
    assert summaries("Action")[0].startswith(f"Failed to execute action {action}. Received error:")


def test_a_composite_alarm_follows_its_alarms(
    cloudwatch: BaseClient, space: str, alarm: str
) -> None:
    cloudwatch.put_metric_alarm(AlarmName=alarm, **settings(space, TreatMissingData="ignore"))
    parent = f"{alarm}-parent"
    cloudwatch.put_composite_alarm(AlarmName=parent, AlarmRule=f'ALARM("{alarm}")')
    cloudwatch.get_waiter("composite_alarm_exists").wait(
        AlarmNames=[parent], AlarmTypes=["CompositeAlarm"]
    )
    cloudwatch.set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason="a test")

    def described() -> dict[str, object]:
        return cloudwatch.describe_alarms(AlarmNames=[parent], AlarmTypes=["CompositeAlarm"])[
            "CompositeAlarms"
        ][0]

    wait_for(lambda: described()["StateValue"] == "ALARM", "the composite alarm")
    code, message = refused(
        cloudwatch.put_composite_alarm, AlarmName=parent, AlarmRule=f"ALARM({parent})"
    )
    assert code == "ValidationError" and "depend on itself" in message
    assert refused(cloudwatch.delete_alarms, AlarmNames=[alarm])[0] == "ValidationError"


def test_dashboards(cloudwatch: BaseClient) -> None:
    name = fresh("dashboard")
    body = json.dumps({"widgets": [{"type": "text", "properties": {"markdown": "<b>x</b>"}}]})
    assert (
        cloudwatch.put_dashboard(DashboardName=name, DashboardBody=body)[
            "DashboardValidationMessages"
        ]
        == []
    )
    assert cloudwatch.get_dashboard(DashboardName=name)["DashboardBody"] == body
    entries = cloudwatch.list_dashboards(DashboardNamePrefix=name)["DashboardEntries"]
    assert [(entry["DashboardName"], entry["Size"]) for entry in entries] == [(name, len(body))]
    code, message = refused(
        cloudwatch.put_dashboard, DashboardName=name, DashboardBody='{"widgets":[{}]}'
    )
    assert code == "InvalidParameterInput" and "/widgets/0" in message
    cloudwatch.delete_dashboards(DashboardNames=[name])
    assert refused(cloudwatch.get_dashboard, DashboardName=name)[0] == "ResourceNotFound"


def test_the_command_line(aws: Callable[..., Answer], space: str, alarm: str) -> None:
    aws(
        "cloudwatch",
        "put-metric-alarm",
        "--alarm-name",
        alarm,
        "--namespace",
        space,
        "--metric-name",
        "loss",
        "--statistic",
        "Average",
        "--period",
        "60",
        "--evaluation-periods",
        "2",
        "--threshold",
        "5",
        "--comparison-operator",
        "GreaterThanThreshold",
        "--tags",
        "Key=team,Value=x",
    )
    aws("cloudwatch", "wait", "alarm-exists", "--alarm-names", alarm)
    described = aws("cloudwatch", "describe-alarms", "--alarm-names", alarm)["MetricAlarms"][0]
    assert described["Threshold"] == 5.0
    tags = aws("cloudwatch", "list-tags-for-resource", "--resource-arn", described["AlarmArn"])
    assert tags["Tags"] == [{"Key": "team", "Value": "x"}]


def test_debians_client_speaks_the_query_protocol(server: Server, space: str, alarm: str) -> None:
    answer = debians_boto.call(
        server, "cloudwatch", "put_metric_alarm", AlarmName=alarm, **settings(space)
    )
    assert answer == {}
    described = debians_boto.call(server, "cloudwatch", "describe_alarms", AlarmNames=[alarm])
    assert described["MetricAlarms"][0]["Statistic"] == "Maximum"
    data = debians_boto.call(
        server,
        "cloudwatch",
        "get_metric_data",
        MetricDataQueries=[metric("m1", space, "loss")],
        StartTime={"time": 0},
        EndTime={"time": 60},
    )
    assert data["MetricDataResults"][0]["StatusCode"] == "Complete"
