"""Tests rules of Contributor Insights through boto3."""

import functools
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refused
from tests.conformance.test_logs_insights import put
from tests.trainyard_server import Server


def definition(group: str, **more: Any) -> str:
    rule = {
        "Schema": {"Name": "CloudWatchLogRule", "Version": 1},
        "LogGroupNames": [group],
        "LogFormat": "JSON",
        "Contribution": {"Keys": ["$.path"], "ValueOf": "$.ms"},
        "AggregateOn": "Sum",
    }
    return json.dumps(rule | more)


def report(server: Server, rule: str, **more: Any) -> dict[str, Any]:
    return server.boto("cloudwatch").get_insight_rule_report(
        RuleName=rule,
        StartTime=time.time() - 3600,
        EndTime=time.time() + 60,
        Period=300,
        **more,
    )


@pytest.fixture
def group(server: Server) -> str:
    logs, name = server.boto("logs"), fresh("/tests/contributors")
    logs.create_log_group(logGroupName=name)
    logs.create_log_stream(logGroupName=name, logStreamName="s")
    lines = [("/a", 10), ("/b", 5), ("/a", 1), ("/<b>\x1b[0m", 2)]
    put(logs, name, *(json.dumps({"path": path, "ms": ms}) for path, ms in lines), "text")
    return name


@pytest.fixture
def cloudwatch(server: Server) -> BaseClient:
    return server.boto("cloudwatch")


def test_a_report_has_the_top_contributors(
    server: Server, cloudwatch: BaseClient, group: str
) -> None:
    name = fresh("rule")
    cloudwatch.put_insight_rule(
        RuleName=name, RuleDefinition=definition(group), Tags=[{"Key": "team", "Value": "web"}]
    )
    found = report(server, name, MaxContributorCount=2, Metrics=["Sum", "UniqueContributors"])
    assert (found["AggregationStatistic"], found["AggregateValue"]) == ("Sum", 18)
    assert found["ApproximateUniqueCount"] == 3 and found["KeyLabels"] == ["$.path"]
    tops = [(one["Keys"], one["ApproximateAggregateValue"]) for one in found["Contributors"]]
    assert tops == [(["/a"], 11), (["/b"], 5)]
    assert sum(one["Sum"] for one in found["MetricDatapoints"]) == 18
    listed = cloudwatch.describe_insight_rules()["InsightRules"]
    mine = next(one for one in listed if one["Name"] == name)
    assert (mine["State"], mine["Definition"]) == ("ENABLED", definition(group))
    arn = f"arn:aws:cloudwatch:us-east-1:{account(server)}:insight-rule/{name}"
    tags = cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"]
    assert tags == [{"Key": "team", "Value": "web"}]
    cloudwatch.untag_resource(ResourceARN=arn, TagKeys=["team"])
    assert cloudwatch.list_tags_for_resource(ResourceARN=arn)["Tags"] == []
    cloudwatch.delete_insight_rules(RuleNames=[name])
    failures = cloudwatch.delete_insight_rules(RuleNames=[name])["Failures"]
    assert [one["FailureResource"] for one in failures] == [name]


def account(server: Server) -> str:
    return str(server.boto("sts").get_caller_identity()["Account"])


def test_a_disabled_rule_counts_no_later_event(
    server: Server, cloudwatch: BaseClient, group: str
) -> None:
    name = fresh("rule")
    cloudwatch.put_insight_rule(RuleName=name, RuleDefinition=definition(group))
    cloudwatch.disable_insight_rules(RuleNames=[name])
    later = json.dumps({"path": "/a", "ms": 100})
    put(server.boto("logs"), group, later, start=int(time.time() * 1000) + 1000)
    assert report(server, name)["AggregateValue"] == 18
    cloudwatch.enable_insight_rules(RuleNames=[name])
    assert report(server, name)["AggregateValue"] == 118


def test_wrong_rules_are_rejected(server: Server, cloudwatch: BaseClient, group: str) -> None:
    for bad in ("{}", "no JSON", definition(group, Contribution={"Keys": ["a b"]})):
        code, message = refused(cloudwatch.put_insight_rule, RuleName="bad", RuleDefinition=bad)
        assert code.startswith("InvalidParameterValue") and "Invalid rule" in message, message
    code, _ = refused(functools.partial(report, server, "unknown"))
    assert code.startswith("ResourceNotFound")
    name = fresh("rule")
    cloudwatch.put_insight_rule(RuleName=name, RuleDefinition=definition(group))
    code, message = refused(functools.partial(report, server, name), Metrics=["Median"])
    assert code.startswith("InvalidParameterValue") and "Median" in message


def test_a_rule_needs_the_right_to_read_its_groups(server: Server, group: str) -> None:
    iam, name = server.boto("iam"), fresh("narrow")
    iam.create_user(UserName=name)
    iam.put_user_policy(
        UserName=name,
        PolicyName="own",
        PolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": {"Effect": "Allow", "Action": "cloudwatch:*", "Resource": "*"},
            }
        ),
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    mine = server.boto(
        "cloudwatch",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    for groups in (group, "/tests/*"):
        code, message = refused(
            mine.put_insight_rule, RuleName="r", RuleDefinition=definition(groups)
        )
        assert code.startswith("AccessDenied") and "logs:StartQuery" in message, message


def test_rules_survive_a_kill(start: Callable[..., Server]) -> None:
    server = start()
    server.boto("cloudwatch").put_insight_rule(RuleName="r", RuleDefinition=definition("g"))
    server.kill()
    server.start()
    rules = server.boto("cloudwatch").describe_insight_rules()["InsightRules"]
    assert [one["Name"] for one in rules] == ["r"]
