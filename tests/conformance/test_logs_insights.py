"""Tests Logs Insights, filters, retention, tags and exports of CloudWatch Logs through unmodified
clients."""

import base64
import gzip
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests.calls import fresh, refused
from tests.command_line import CommandLine
from tests.trainyard_server import Answer, Server, wait_for

ACCOUNT_ARN = "arn:aws:logs:us-east-1"


def now() -> int:
    return int(time.time() * 1000)


class Webhook:
    """Stores the received bodies; answers with `status`."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        self.status = 200
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.bodies.append((self.headers.get("Authorization", ""), body))
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def documents(self) -> list[dict[str, Any]]:
        return [
            json.loads(gzip.decompress(base64.b64decode(json.loads(body)["awslogs"]["data"])))
            for _, body in self.bodies
        ]


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    one = Webhook()
    yield one
    one.server.shutdown()


@pytest.fixture(scope="module")
def server(
    start: Callable[..., Server], webhook: Webhook, tmp_path_factory: pytest.TempPathFactory
) -> Server:
    secret = tmp_path_factory.mktemp("secret") / "authorization"
    secret.write_text("Bearer of-the-webhook\n")
    secret.chmod(0o600)
    return start(
        f'[log_webhooks.hook]\nurl = "http://127.0.0.1:{webhook.port}/in"\n'
        f"authorization_file = \"{secret}\"\n[regions.'eu-west-1']\n"
    )


@pytest.fixture(scope="module")
def logs(server: Server) -> BaseClient:
    return server.boto("logs")


@pytest.fixture
def group(logs: BaseClient) -> str:
    name = fresh("/tests/insights")
    logs.create_log_group(logGroupName=name)
    logs.create_log_stream(logGroupName=name, logStreamName="s")
    return name


def put(logs: BaseClient, group: str, *messages: str, start: int = 0) -> None:
    start = start or now() - 60_000
    logs.put_log_events(
        logGroupName=group,
        logStreamName="s",
        logEvents=[{"timestamp": start + i, "message": one} for i, one in enumerate(messages)],
    )


def ended(logs: BaseClient, query: str) -> dict[str, Any]:
    def results() -> dict[str, Any] | None:
        answer = logs.get_query_results(queryId=query)
        return answer if answer["status"] not in ("Scheduled", "Running") else None

    return wait_for(results, "the query to end")


def run_query(logs: BaseClient, group: str, text: str, **more: Any) -> list[dict[str, str]]:
    query = logs.start_query(
        logGroupName=group,
        startTime=int(time.time()) - 3600,
        endTime=int(time.time()) + 60,
        queryString=text,
        **more,
    )["queryId"]
    answer = ended(logs, query)
    assert answer["status"] == "Complete"
    return [{one["field"]: one["value"] for one in row} for row in answer["results"]]


def test_a_query_finds_and_counts(logs: BaseClient, group: str) -> None:
    put(
        logs,
        group,
        *(json.dumps({"step": i, "loss": 1 / (i + 1), "host": f"algo-{i % 2}"}) for i in range(10)),
        "loss=0.5 of epoch 3",
        "\x1b[2J<script>alert(1)</script>",
    )
    rows = run_query(
        logs, group, "stats count(*) as n, min(loss) as least by host | sort host desc"
    )
    assert rows == [
        {"host": "algo-1", "n": "5", "least": "0.1"},
        {"host": "algo-0", "n": "5", "least": "0.1111"},
        {"n": "2"},
    ]
    rows = run_query(
        logs, group, "fields step | filter loss < 0.2 and host = 'algo-1' | sort step desc"
    )
    assert [row["step"] for row in rows] == ["9", "7", "5"]
    rows = run_query(
        logs,
        group,
        'parse @message "loss=* of epoch *" as l, e | filter ispresent(e)'
        " | display l * 2 as twice, e",
    )
    assert [(row["twice"], row["e"]) for row in rows] == [("1", "3")]
    rows = run_query(logs, group, "fields @message | filter @message like /(?i)<SCRIPT>/")
    assert rows[0]["@message"] == "\x1b[2J<script>alert(1)</script>"
    record = logs.get_log_record(logRecordPointer=rows[0]["@ptr"])["logRecord"]
    assert record["@message"] == rows[0]["@message"] and record["@logStream"] == "s"
    assert len(run_query(logs, group, "fields @message", limit=4)) == 4
    fields = logs.get_log_group_fields(logGroupName=group)["logGroupFields"]
    assert {"@message", "loss", "host"} <= {one["name"] for one in fields}


def test_statistics_states_and_limits_of_queries(logs: BaseClient, group: str) -> None:
    put(logs, group, "a", "b", "c")
    query = logs.start_query(
        logGroupNames=[group],
        startTime=now() - 3600_000,
        endTime=now(),
        queryString="filter @message = 'b'",
    )["queryId"]
    answer = ended(logs, query)
    assert answer["statistics"]["recordsMatched"] == 1
    assert answer["statistics"]["recordsScanned"] == 3
    assert answer["statistics"]["bytesScanned"] == 3 * 27
    listed = logs.describe_queries(logGroupName=group, status="Complete")["queries"]
    assert [one["queryId"] for one in listed] == [query]
    assert logs.describe_queries(logGroupName=group, status="Running")["queries"] == []
    assert refused(logs.stop_query, queryId=query)[0] == "InvalidParameterException"
    assert refused(logs.get_query_results, queryId="none")[0] == "ResourceNotFoundException"


def test_a_malformed_query_has_its_position(logs: BaseClient, group: str) -> None:
    with pytest.raises(logs.exceptions.MalformedQueryException) as caught:
        run_query(logs, group, "fields @message | filterr x")
    assert caught.value.response["queryCompileError"]["location"] == {
        "startCharOffset": 18,
        "endCharOffset": 25,
    }
    assert "line 1 and position 19" in caught.value.response["Error"]["Message"]


def test_saved_queries(logs: BaseClient) -> None:
    name = fresh("team/errors")
    made = logs.put_query_definition(name=name, queryString="fields @message")
    found = logs.describe_query_definitions(queryDefinitionNamePrefix=name)["queryDefinitions"]
    assert found[0]["queryDefinitionId"] == made["queryDefinitionId"]
    assert logs.delete_query_definition(queryDefinitionId=made["queryDefinitionId"])["success"]
    assert not logs.describe_query_definitions(queryDefinitionNamePrefix=name)["queryDefinitions"]


def test_a_metric_filter_publishes(server: Server, logs: BaseClient, group: str) -> None:
    namespace = fresh("Tests")
    logs.put_metric_filter(
        logGroupName=group,
        filterName="latency",
        filterPattern="{ $.ms > 10 }",
        metricTransformations=[
            {
                "metricName": "slow",
                "metricNamespace": namespace,
                "metricValue": "$.ms",
                "dimensions": {"host": "$.host"},
                "unit": "Milliseconds",
            }
        ],
    )
    put(logs, group, *(json.dumps({"ms": ms, "host": "a"}) for ms in (5, 20, 30)), "ms=99")
    cloudwatch = server.boto("cloudwatch")

    def points() -> list[dict[str, Any]]:
        return cloudwatch.get_metric_statistics(
            Namespace=namespace,
            MetricName="slow",
            Dimensions=[{"Name": "host", "Value": "a"}],
            StartTime=time.time() - 3600,
            EndTime=time.time() + 60,
            Period=7200,
            Statistics=["Sum", "SampleCount"],
        )["Datapoints"]

    found = wait_for(points, "the metric")
    assert (found[0]["Sum"], found[0]["SampleCount"], found[0]["Unit"]) == (50, 2, "Milliseconds")
    listed = logs.describe_metric_filters(logGroupName=group)["metricFilters"]
    assert listed[0]["metricTransformations"][0]["dimensions"] == {"host": "$.host"}
    groups = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    assert groups[0]["metricFilterCount"] == 1
    matches = logs.test_metric_filter(
        filterPattern="[ip, user, status = 4*]", logEventMessages=["1.2.3.4 ann 404", "x"]
    )["matches"]
    assert matches == [
        {
            "eventNumber": 1,
            "eventMessage": "1.2.3.4 ann 404",
            "extractedValues": {"$ip": "1.2.3.4", "$user": "ann", "$status": "404"},
        }
    ]
    logs.delete_metric_filter(logGroupName=group, filterName="latency")
    assert logs.describe_metric_filters(logGroupName=group)["metricFilters"] == []


def test_a_subscription_reaches_its_webhook(
    logs: BaseClient, group: str, webhook: Webhook, server: Server
) -> None:
    destination = logs.describe_destinations()["destinations"][0]
    assert destination["destinationName"] == "hook" and "targetArn" not in destination
    logs.put_subscription_filter(
        logGroupName=group,
        filterName="errors",
        filterPattern="ERROR",
        destinationArn=destination["arn"],
    )
    put(logs, group, "fine", "ERROR <b>\x1b[0m")
    wait_for(
        lambda: [one for one in webhook.documents() if one["logGroup"] == group],
        "the webhook to be called",
    )
    found = next(one for one in webhook.documents() if one["logGroup"] == group)
    assert found["messageType"] == "DATA_MESSAGE" and found["logStream"] == "s"
    assert found["subscriptionFilters"] == ["errors"]
    assert [one["message"] for one in found["logEvents"]] == ["ERROR <b>\x1b[0m"]
    assert webhook.bodies[0][0] == "Bearer of-the-webhook"
    for arn in (
        "http://169.254.169.254/latest",
        destination["arn"].replace("hook", "other"),
        "arn:aws:lambda:us-east-1:123456789012:function:f",
        "arn:aws:kinesis:us-east-1:123456789012:stream/s",
    ):
        code, _ = refused(
            logs.put_subscription_filter,
            logGroupName=group,
            filterName="other",
            filterPattern="",
            destinationArn=arn,
        )
        assert code == "InvalidParameterException", arn
    # A webhook that fails stops neither events nor other filters.
    webhook.status = 500
    put(logs, group, "ERROR again")
    assert run_query(logs, group, "filter @message = 'ERROR again' | stats count(*) as n") == [
        {"n": "1"}
    ]
    webhook.status = 200
    logs.delete_subscription_filter(logGroupName=group, filterName="errors")
    assert logs.describe_subscription_filters(logGroupName=group)["subscriptionFilters"] == []


def test_filters_survive_a_kill(start: Callable[..., Server]) -> None:
    server = start()
    logs = server.boto("logs")
    logs.create_log_group(logGroupName="g", tags={"team": "one"})
    logs.create_log_stream(logGroupName="g", logStreamName="s")
    logs.put_retention_policy(logGroupName="g", retentionInDays=30)
    logs.put_metric_filter(
        logGroupName="g",
        filterName="all",
        filterPattern="",
        metricTransformations=[{"metricName": "lines", "metricNamespace": "T", "metricValue": "1"}],
    )
    server.kill()
    server.start()
    logs = server.boto("logs")
    group = logs.describe_log_groups()["logGroups"][0]
    assert (group["retentionInDays"], group["metricFilterCount"]) == (30, 1)
    assert logs.list_tags_for_resource(resourceArn=group["logGroupArn"])["tags"] == {"team": "one"}
    put(logs, "g", "one")
    wait_for(lambda: server.boto("cloudwatch").list_metrics(Namespace="T")["Metrics"], "the metric")


def test_an_export_writes_objects(server: Server, logs: BaseClient, group: str) -> None:
    s3 = server.boto("s3")
    bucket = fresh("exports")
    s3.create_bucket(Bucket=bucket)
    put(logs, group, "one", "two")
    task = logs.create_export_task(
        logGroupName=group, fromTime=now() - 3600_000, to=now(), destination=bucket
    )["taskId"]

    def completed() -> bool:
        status = logs.describe_export_tasks(taskId=task)["exportTasks"][0]["status"]
        return status["code"] == "COMPLETED"

    wait_for(completed, "the export to end")
    body = s3.get_object(Bucket=bucket, Key=f"exportedlogs/{task}/s/000000.gz")["Body"].read()
    lines = gzip.decompress(body).decode().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["one", "two"]


def test_a_user_without_permission_for_the_group_cannot_query_it(
    server: Server, logs: BaseClient, group: str
) -> None:
    put(logs, group, "secret")
    iam, name = server.boto("iam"), fresh("narrow")
    iam.create_user(UserName=name)
    account = logs.describe_log_groups(limit=1)["logGroups"][0]["arn"].split(":")[4]
    iam.put_user_policy(
        UserName=name,
        PolicyName="own",
        PolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": "logs:*",
                        "Resource": f"{ACCOUNT_ARN}:{account}:log-group:*:log-stream:{name}-*",
                    }
                ],
            }
        ),
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    narrow = server.boto(
        "logs",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    pointer = run_query(logs, group, "fields @message")[0]["@ptr"]
    for call, arguments in (
        (
            narrow.start_query,
            {"logGroupName": group, "startTime": 0, "endTime": 1, "queryString": "limit 1"},
        ),
        (narrow.get_log_record, {"logRecordPointer": pointer}),
        (narrow.delete_log_group, {"logGroupName": group}),
        (narrow.describe_queries, {}),
    ):
        with pytest.raises(botocore.exceptions.ClientError) as caught:
            call(**arguments)
        assert caught.value.response["Error"]["Code"] == "AccessDeniedException"


def test_both_command_lines(aws: Callable[..., Answer], logs: BaseClient, group: str) -> None:
    put(logs, group, "one", "two")
    query = aws(
        "logs", "start-query", "--log-group-name", group, "--query-string", "stats count(*) as n",
        "--start-time", str(int(time.time()) - 3600), "--end-time", str(int(time.time())),
    )["queryId"]  # fmt: skip
    ended(logs, query)
    answer = aws("logs", "get-query-results", "--query-id", query)
    assert answer["results"] == [[{"field": "n", "value": "2"}]]
    aws("logs", "put-retention-policy", "--log-group-name", group, "--retention-in-days", "14")
    shown = aws("logs", "describe-log-groups", "--log-group-name-prefix", group)["logGroups"][0]
    assert shown["retentionInDays"] == 14


def test_trainyard_query(server: Server, logs: BaseClient, group: str) -> None:
    put(logs, group, "ERROR one", "fine")
    cli = CommandLine(server)
    answer = cli("query", "filter @message like 'ERROR' | display @message", "-g", group)
    assert answer.stdout.splitlines()[1].strip() == "ERROR one"
    assert "1 of 2 events match" in answer.stderr
