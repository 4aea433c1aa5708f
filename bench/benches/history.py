"""Measures queries of the last hour in two weeks of log events and metric points."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable

from bench import progress
from bench.benches.prometheus import token_of
from bench.loads import call_signed, with_server
from bench.prometheus_loads import loss_queries, post, write_request
from bench.rows import Row, row
from tests.trainyard_server import Server

EVENTS = int(os.environ.get("TRAINYARD_BENCH_HISTORY_EVENTS", "50_000_000"))
POINTS = int(os.environ.get("TRAINYARD_BENCH_HISTORY_POINTS", "50_000_000"))
QUERIES = int(os.environ.get("TRAINYARD_BENCH_HISTORY_QUERIES", "200"))
SPAN_SECONDS = 13 * 86_400  # PutLogEvents takes events of two weeks
STREAMS = 50
EVENTS_IN_REQUEST = 10_000
NEEDLE_EVERY = 10_000  # events
SERIES = 1000
POINTS_IN_REQUEST = 20  # of each series
SERIES_IN_QUERY = 10
HOUR, DAY = 3600, 86_400
GROUP = "/bench/history"
MILLISECONDS_MAX = 50
RESTART_SECONDS_MAX = 2
LOGS = "Logs_20140328."
CLOUDWATCH = "GraniteServiceVersion20100801."


def put_events(server: Server, end: float) -> None:
    """Puts events into each stream, evenly spread over the whole time."""
    logs = server.boto("logs")
    logs.create_log_group(logGroupName=GROUP)
    for stream in range(STREAMS):
        logs.create_log_stream(logGroupName=GROUP, logStreamName=f"host-{stream}")
    of_stream = EVENTS // STREAMS
    step = SPAN_SECONDS * 1000 / of_stream
    at_once = min(EVENTS_IN_REQUEST, int(DAY * 1000 / step))  # a request spans a day at most
    for first in progress.rounds(range(0, of_stream, at_once)):
        events = [
            {
                "timestamp": int(end * 1000 - (of_stream - i) * step),
                "message": f"epoch {i // 1000} step {i} loss={1 / (i + 1):.5f}"
                + (" needle" if i % NEEDLE_EVERY == 0 else ""),
            }
            for i in range(first, min(first + at_once, of_stream))
        ]
        text = json.dumps(events, separators=(",", ":"))
        for stream in range(STREAMS):
            body = (
                f'{{"logGroupName":"{GROUP}","logStreamName":"host-{stream}","logEvents":{text}}}'
            )
            call_signed(server, "logs", LOGS + "PutLogEvents", body.encode())


def put_points(server: Server, end: float) -> None:
    token, of_series = token_of(server, "--write"), POINTS // SERIES
    step = SPAN_SECONDS * 1000 / of_series
    for first in progress.rounds(range(0, of_series, POINTS_IN_REQUEST)):
        samples = [
            (int(end * 1000 - (of_series - i) * step), 1 / (i + 1))
            for i in range(first, min(first + POINTS_IN_REQUEST, of_series))
        ]
        body = write_request(
            [({"__name__": "loss", "series": str(number)}, samples) for number in range(SERIES)]
        )
        post(f"http://{server.listen}/api/v1/write", body, token)


def newest_events(server: Server, chosen: random.Random, end: float) -> None:
    found = call_signed(
        server,
        "logs",
        LOGS + "GetLogEvents",
        {
            "logGroupName": GROUP,
            "logStreamName": f"host-{chosen.randrange(STREAMS)}",
            "startTime": int((end - HOUR) * 1000),
            "limit": 100,
        },
    )
    assert len(found["events"]) == min(100, EVENTS // STREAMS * HOUR // SPAN_SECONDS)


def filtered_events(server: Server, chosen: random.Random, end: float) -> None:
    """Searches the last hour of a stream for a word that at most one event has."""
    call_signed(
        server,
        "logs",
        LOGS + "FilterLogEvents",
        {
            "logGroupName": GROUP,
            "logStreamNames": [f"host-{chosen.randrange(STREAMS)}"],
            "startTime": int((end - HOUR) * 1000),
            "filterPattern": "needle",
        },
    )


def insights(server: Server, chosen: random.Random, end: float) -> None:
    """Counts the errors of all streams by five minutes."""
    query = call_signed(
        server,
        "logs",
        LOGS + "StartQuery",
        {
            "logGroupName": GROUP,
            "startTime": int(end - HOUR),
            "endTime": int(end),
            "queryString": "filter @message like /needle/ | stats count(*) by bin(5m)",
        },
    )
    while True:
        found = call_signed(server, "logs", LOGS + "GetQueryResults", query)
        if found["status"] not in ("Scheduled", "Running"):
            break
        time.sleep(0.002)
    assert found["status"] == "Complete", found["status"]


def points(server: Server, chosen: random.Random, end: float) -> None:
    found = call_signed(
        server,
        "monitoring",
        CLOUDWATCH + "GetMetricData",
        {
            "StartTime": int(end - HOUR),
            "EndTime": int(end),
            "MetricDataQueries": loss_queries(chosen.sample(range(SERIES), SERIES_IN_QUERY), 60),
        },
    )
    assert all(each["Values"] for each in found["MetricDataResults"])


QUERIES_OF = {
    "newest 100 log events of a stream": newest_events,
    "a word in a stream's log events": filtered_events,
    f"Logs Insights over {STREAMS} streams": insights,
    f"GetMetricData of {SERIES_IN_QUERY} series": points,
}


def samples_of(query: Callable[[], None]) -> list[float]:
    """Returns the milliseconds of each query."""
    found = []
    for _ in range(QUERIES):
        began = time.monotonic()
        query()
        found.append((time.monotonic() - began) * 1000)
    return found


def resident_mebibytes(server: Server) -> float:
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
        found = re.search(r"VmHWM:\s+(\d+) kB", file.read())
    assert found, "the server's status has no VmHWM"
    return int(found[1]) / 1024


def restart_seconds(server: Server, end: float) -> float:
    """Kills the server, and returns the time until a new one answers a query."""
    server.kill()
    began = time.monotonic()
    server.start()
    points(server, random.Random(1), end)
    newest_events(server, random.Random(1), end)
    return time.monotonic() - began


def history() -> list[Row]:
    """Fills a store with two weeks of log events and points, and queries their last hour."""
    chosen, end = random.Random(18), time.time()
    server = with_server("[metrics]\nseries_of_job_max = 2000\n").start()
    try:
        put_events(server, end)
        put_points(server, end)
        filled = resident_mebibytes(server)
        restarts = [restart_seconds(server, end) for _ in range(3)]
        times = {
            case: samples_of(lambda query=query: query(server, chosen, end))  # type: ignore[misc]
            for case, query in QUERIES_OF.items()
        }
        queried = resident_mebibytes(server)
    finally:
        server.clean()
    size = f"{EVENTS / 1e6:g} M events, {POINTS / 1e6:g} M points"
    rows = []
    for case, measured in times.items():
        p99 = sorted(measured)[len(measured) * 99 // 100]
        rows.append(
            row(
                "history",
                f"last hour: {case}; p99 {p99:.1f} ms",
                "ms",
                measured,
                None,
                None,
                f"p99 < {MILLISECONDS_MAX} ms",
                lambda _, __, p99=p99: p99 < MILLISECONDS_MAX,  # type: ignore[misc]
            )
        )
    for case, value in (("while filled", filled), ("of queries after a restart", queried)):
        rows.append(
            row(
                "history",
                f"most resident memory {case}, {size}",
                "MiB",
                [value],
                None,
                None,
                "stated",
                lambda _, __: True,
            )
        )
    rows.append(
        row(
            "history",
            f"restart after kill -9, to the first answers, {size}",
            "s",
            restarts,
            None,
            None,
            f"< {RESTART_SECONDS_MAX} s",
            lambda ours, _: ours < RESTART_SECONDS_MAX,
        )
    )
    return rows
