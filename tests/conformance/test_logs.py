"""Tests CloudWatch Logs through unmodified clients."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import debians_boto, trainyard_server
from tests.calls import fresh, refused
from tests.trainyard_server import Answer, Server


def now() -> int:
    return int(time.time() * 1000)


@pytest.fixture(scope="module")
def logs(server: Server) -> BaseClient:
    return server.boto("logs")


@pytest.fixture
def group(logs: BaseClient) -> str:
    name = fresh("/tests/group")
    logs.create_log_group(logGroupName=name)
    return name


@pytest.fixture
def stream(logs: BaseClient, group: str) -> str:
    logs.create_log_stream(logGroupName=group, logStreamName="job/algo-1")
    return "job/algo-1"


def put(
    logs: BaseClient, group: str, stream: str, *messages: str, start: int | None = None
) -> dict[str, Any]:
    start = start or now()
    events = [{"timestamp": start + i, "message": message} for i, message in enumerate(messages)]
    return logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)


def lines(answer: dict[str, Any]) -> list[str]:
    return [event["message"] for event in answer["events"]]


def test_events_are_read_in_the_order_of_puts(logs: BaseClient, group: str, stream: str) -> None:
    answer = put(logs, group, stream, "one", "zwölf \U0001f682", 'tab\tand "quotes"')
    assert answer["nextSequenceToken"] and "rejectedLogEventsInfo" not in answer
    got = logs.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)
    assert lines(got) == ["one", "zwölf \U0001f682", 'tab\tand "quotes"']
    assert all(abs(event["ingestionTime"] - now()) < 60_000 for event in got["events"])


def test_missing_resources_have_the_error_codes_of_aws(logs: BaseClient, group: str) -> None:
    missing_group = ("ResourceNotFoundException", "The specified log group does not exist.")
    missing_stream = ("ResourceNotFoundException", "The specified log stream does not exist.")
    assert refused(logs.get_log_events, logGroupName="none", logStreamName="s") == missing_group
    assert refused(logs.get_log_events, logGroupName=group, logStreamName="s") == missing_stream
    assert refused(logs.describe_log_streams, logGroupName="none") == missing_group
    assert refused(logs.filter_log_events, logGroupName="none") == missing_group
    event = {"timestamp": now(), "message": "x"}
    assert (
        refused(logs.put_log_events, logGroupName=group, logStreamName="none", logEvents=[event])
        == missing_stream
    )
    assert refused(logs.create_log_group, logGroupName=group) == (
        "ResourceAlreadyExistsException",
        "The specified log group already exists",
    )
    with pytest.raises(logs.exceptions.ResourceNotFoundException):
        logs.create_log_stream(logGroupName="none", logStreamName="s")
    code, message = refused(logs.create_log_group, logGroupName="a b")
    assert code == "InvalidParameterException" and "1 validation error detected" in message


def test_a_follower_gets_the_same_token_at_the_end(
    logs: BaseClient, group: str, stream: str
) -> None:
    put(logs, group, stream, *(f"line {i}" for i in range(25)))
    found, token = [], {}
    for _ in range(20):
        answer = logs.get_log_events(
            logGroupName=group, logStreamName=stream, startFromHead=True, limit=10, **token
        )
        found += lines(answer)
        if token.get("nextToken") == answer["nextForwardToken"]:
            break
        token = {"nextToken": answer["nextForwardToken"]}
    assert found == [f"line {i}" for i in range(25)]
    assert answer["events"] == []
    put(logs, group, stream, "more")
    assert lines(logs.get_log_events(logGroupName=group, logStreamName=stream, **token)) == ["more"]


def test_reading_backwards_reaches_the_first_event(
    logs: BaseClient, group: str, stream: str
) -> None:
    put(logs, group, stream, *(f"line {i}" for i in range(25)))
    answer = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=10)
    assert lines(answer) == [f"line {i}" for i in range(15, 25)]
    found = lines(answer)
    for _ in range(20):
        before = answer["nextBackwardToken"]
        answer = logs.get_log_events(
            logGroupName=group, logStreamName=stream, limit=10, nextToken=before
        )
        found = lines(answer) + found
        if answer["nextBackwardToken"] == before:
            break
    assert found == [f"line {i}" for i in range(25)]


def test_times_limit_a_query(logs: BaseClient, group: str, stream: str) -> None:
    start = now() - 10_000
    put(logs, group, stream, "a", "b", "c", start=start)
    got = logs.get_log_events(
        logGroupName=group,
        logStreamName=stream,
        startFromHead=True,
        startTime=start + 1,
        endTime=start + 2,
    )
    assert lines(got) == ["b"]
    found = logs.filter_log_events(logGroupName=group, startTime=start + 1, endTime=start + 2)
    assert lines(found) == ["b", "c"]


def test_a_page_has_at_most_a_mebibyte(logs: BaseClient, group: str, stream: str) -> None:
    for i in range(3):
        put(logs, group, stream, *("x" * 200_000 for _ in range(5)), start=now() + i * 10)
    answer = logs.get_log_events(logGroupName=group, logStreamName=stream, startFromHead=True)
    assert len(answer["events"]) == 5


def test_an_sdk_that_never_passes_the_token_on_ends(logs: BaseClient, group: str) -> None:
    """Lists streams as the SageMaker SDK does: it stops when a response has no token, and never
    uses one."""
    for i in range(60):
        logs.create_log_stream(logGroupName=group, logStreamName=f"job/algo-{i + 1}-1763631900")
    logs.create_log_stream(logGroupName=group, logStreamName="job-2/algo-1-1763631900")
    answer = logs.describe_log_streams(
        logGroupName=group, logStreamNamePrefix="job/", orderBy="LogStreamName", limit=50
    )
    assert len(answer["logStreams"]) == 60 and "nextToken" not in answer
    assert all(one["creationTime"] and one["arn"] for one in answer["logStreams"])


def test_streams_come_in_pages(logs: BaseClient, group: str) -> None:
    names = sorted(f"stream-{i}" for i in range(120))
    for name in names:
        logs.create_log_stream(logGroupName=group, logStreamName=name)
    pages = list(logs.get_paginator("describe_log_streams").paginate(logGroupName=group))
    assert [len(page["logStreams"]) for page in pages] == [50, 50, 20]
    assert [one["logStreamName"] for page in pages for one in page["logStreams"]] == names
    put(logs, group, names[70], "hello")
    latest = logs.describe_log_streams(
        logGroupName=group, orderBy="LastEventTime", descending=True, limit=1
    )
    assert latest["logStreams"][0]["logStreamName"] == names[70]
    assert (
        latest["logStreams"][0]["firstEventTimestamp"]
        == latest["logStreams"][0]["lastEventTimestamp"]
    )


def test_groups_are_described(logs: BaseClient, group: str) -> None:
    answer = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    assert [one["logGroupName"] for one in answer] == [group]
    assert answer[0]["arn"].endswith(f":log-group:{group}:*")


def test_filter_searches_all_streams_by_time(logs: BaseClient, group: str) -> None:
    start = now() - 60_000
    for i in range(3):
        logs.create_log_stream(logGroupName=group, logStreamName=f"s{i}")
        events = [
            {
                "timestamp": start + 3 * k + i,
                "message": f"step={k} {'ERROR' if k % 10 == 0 else 'ok'} s{i}",
            }
            for k in range(50)
        ]
        logs.put_log_events(logGroupName=group, logStreamName=f"s{i}", logEvents=events)
    pages = list(
        logs.get_paginator("filter_log_events").paginate(
            logGroupName=group, PaginationConfig={"PageSize": 7}
        )
    )
    found = [event for page in pages for event in page["events"]]
    assert len(found) == 150 and len({event["eventId"] for event in found}) == 150
    times = [event["timestamp"] for event in found]
    assert times == sorted(times)
    errors = logs.filter_log_events(logGroupName=group, filterPattern="ERROR -s1")["events"]
    assert {(event["logStreamName"], event["message"]) for event in errors} == {
        (f"s{i}", f"step={k} ERROR s{i}") for i in (0, 2) for k in range(0, 50, 10)
    }
    some = logs.filter_log_events(
        logGroupName=group, logStreamNamePrefix="s2", filterPattern='"step=7 "'
    )["events"]
    assert [event["message"] for event in some] == ["step=7 ok s2"]
    assert (
        refused(logs.filter_log_events, logGroupName=group, filterPattern="{ $.a")[0]
        == "InvalidParameterException"
    )


def test_filter_understands_json(logs: BaseClient, group: str, stream: str) -> None:
    put(logs, group, stream, '{"step": 1, "loss": 0.5}', '{"step": 2, "loss": 0.25}', "loss 0.1")
    found = logs.filter_log_events(
        logGroupName=group, filterPattern="{ $.loss < 0.5 && $.step = 2 }"
    )
    assert lines(found) == ['{"step": 2, "loss": 0.25}']


def test_put_refuses_disorder_and_leaves_out_old_and_new(
    logs: BaseClient, group: str, stream: str
) -> None:
    hour = 3_600_000
    events = [{"timestamp": now(), "message": "a"}, {"timestamp": now() - hour, "message": "b"}]
    assert refused(
        logs.put_log_events, logGroupName=group, logStreamName=stream, logEvents=events
    ) == (
        "InvalidParameterException",
        "Log events in a single PutLogEvents request must be in chronological order.",
    )
    events = [
        {"timestamp": now(), "message": "kept"},
        {"timestamp": now() + 3 * hour, "message": "new"},
    ]
    answer = logs.put_log_events(
        logGroupName=group, logStreamName=stream, logEvents=events, sequenceToken="ignored"
    )
    assert answer["rejectedLogEventsInfo"] == {"tooNewLogEventStartIndex": 1}
    answer = put(logs, group, stream, "old", start=now() - 15 * 24 * hour)
    assert answer["rejectedLogEventsInfo"] == {"tooOldLogEventEndIndex": 1}
    assert lines(logs.get_log_events(logGroupName=group, logStreamName=stream)) == ["kept"]


def test_regions_do_not_share_resources(server: Server, group: str) -> None:
    groups = server.aws("logs", "describe-log-groups", "--region", "ap-south-1")["logGroups"]
    assert group not in [one["logGroupName"] for one in groups]


def test_the_command_lines(
    aws: Callable[..., Answer], logs: BaseClient, group: str, stream: str
) -> None:
    put(logs, group, stream, "one", "two")
    got = aws(
        "logs",
        "get-log-events",
        "--log-group-name",
        group,
        "--log-stream-name",
        stream,
        "--start-from-head",
    )
    assert lines(got) == ["one", "two"]
    listed = aws("logs", "describe-log-streams", "--log-group-name", group)
    assert [one["logStreamName"] for one in listed["logStreams"]] == [stream]
    found = aws("logs", "filter-log-events", "--log-group-name", group, "--filter-pattern", "two")
    assert lines(found) == ["two"]
    failed = aws(
        "logs",
        "get-log-events",
        "--log-group-name",
        group,
        "--log-stream-name",
        "none",
        check=False,
    )
    assert failed.returncode != 0 and "(ResourceNotFoundException)" in failed.stderr


def test_debians_command_line_tails(
    server: Server, logs: BaseClient, group: str, stream: str
) -> None:
    put(logs, group, stream, "one", "two")
    out = server.aws(
        "logs", "tail", group, "--format", "short", program=trainyard_server.DEBIANS_AWS
    )
    assert [line.split(" ", 1)[1] for line in out.splitlines()] == ["one", "two"]


def test_debians_boto(server: Server, logs: BaseClient, group: str, stream: str) -> None:
    put(logs, group, stream, "one")
    got = debians_boto.call(
        server, "logs", "get_log_events", logGroupName=group, logStreamName=stream
    )
    assert lines(got) == ["one"]
    events = [{"timestamp": now(), "message": "two"}]
    assert debians_boto.call(
        server, "logs", "put_log_events", logGroupName=group, logStreamName=stream, logEvents=events
    )["nextSequenceToken"]
    assert (
        debians_boto.call(server, "logs", "filter_log_events", logGroupName="none")["Error"]["Code"]
        == "ResourceNotFoundException"
    )


def test_acknowledged_events_survive_a_kill(start: Callable[..., Server]) -> None:
    server = start()
    logs = server.boto("logs")
    logs.create_log_group(logGroupName="g")
    logs.create_log_stream(logGroupName="g", logStreamName="s")
    put(logs, "g", "s", "one", "two")
    before = logs.get_log_events(logGroupName="g", logStreamName="s", startFromHead=True)
    server.kill()
    server.start()
    logs = server.boto("logs")
    assert lines(logs.get_log_events(logGroupName="g", logStreamName="s", startFromHead=True)) == [
        "one",
        "two",
    ]
    put(logs, "g", "s", "three")
    after = logs.get_log_events(
        logGroupName="g", logStreamName="s", nextToken=before["nextForwardToken"]
    )
    assert lines(after) == ["three"]
