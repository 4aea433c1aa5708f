"""Measures the server as a scrape target and as a remote store of Prometheus' series, next to
Prometheus itself."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable

from bench import progress
from bench.loads import call_signed, with_server
from bench.prometheus_loads import bytes_below, get, loss_queries, post, write_request
from bench.rows import Row, row
from tests import jobs
from tests.prometheus_server import Prometheus
from tests.trainyard_server import PROGRAM, Server, wait_for

SCRAPED_SERIES = 10_000
SCRAPE_ROUNDS = int(os.environ.get("TRAINYARD_BENCH_PROMETHEUS_ROUNDS", "20"))
SERIES = int(os.environ.get("TRAINYARD_BENCH_PROMETHEUS_SERIES", "1000"))
POINTS = int(os.environ.get("TRAINYARD_BENCH_PROMETHEUS_POINTS", "1440"))  # of a series: a day
STEP_SECONDS = 60
POINTS_IN_REQUEST = 10  # of each series
QUERIED_SERIES = 100
SERIES_IN_QUERY = 50  # at most 100,800 points are in one answer
QUERY_ROUNDS = 5
SCRAPE_SECONDS_MAX = 0.05
METRICS_IN_REQUEST = 500
CONFIG = (
    f"[prometheus]\nseries_of_job_max = {2 * SCRAPED_SERIES}\n"
    f"[metrics]\nseries_of_job_max = {2 * SCRAPED_SERIES}\n"
    "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 16.0\n"
)


def seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def token_of(server: Server, *more: str) -> str:
    return subprocess.run(
        [PROGRAM, "metrics-token", *more],
        env=server.environment(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def put_series(server: Server) -> None:
    """Starts a job with many metrics."""
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("wide", "sleep 3600"))
    jobs.wait_until(sagemaker, "wide", ("Training",))
    cloudwatch = server.boto("cloudwatch")
    dimensions = [{"Name": "TrainingJobName", "Value": "wide"}]
    for first in range(0, SCRAPED_SERIES, METRICS_IN_REQUEST):
        cloudwatch.put_metric_data(
            Namespace="/aws/sagemaker/TrainingJobs",
            MetricData=[
                {"MetricName": f"layer{i}/norm", "Value": i / 7, "Dimensions": dimensions}
                for i in range(first, first + METRICS_IN_REQUEST)
            ],
        )


def scrapes(server: Server, place: pathlib.Path) -> Row:
    """Measures a scrape of many series, next to Prometheus' federation of the same series."""
    put_series(server)
    token = token_of(server)
    (place / "token").write_text(token, encoding="utf-8")
    prometheus = Prometheus(
        place / "federating",
        "global: {scrape_interval: 2s}\nscrape_configs: [{job_name: trainyard, authorization:"
        f" {{credentials_file: {place}/token}}, static_configs: [{{targets:"
        f" ['{server.listen}']}}]}}]\n",
    ).start()
    try:
        wait_for(
            lambda: (prometheus.value("count(trainyard_job_metric)") or 0) >= SCRAPED_SERIES,
            "Prometheus to have all series",
        )
        ours_url = f"http://{server.listen}/metrics"
        match = urllib.parse.quote('{__name__=~"trainyard_.+"}')
        peer_url = f"http://{prometheus.address}/federate?match[]={match}"
        ours, peers = [], []
        for _ in progress.rounds(range(SCRAPE_ROUNDS)):
            ours.append(seconds_of(lambda: get(ours_url, token)))
            peers.append(seconds_of(lambda: get(peer_url)))
    finally:
        prometheus.stop()
    return row(
        "prometheus",
        f"one scrape of {SCRAPED_SERIES} series",
        "s",
        ours,
        peers,
        "Prometheus' /federate of the same series",
        f"< {SCRAPE_SECONDS_MAX} s",
        lambda ours, peer: ours < SCRAPE_SECONDS_MAX,
    )


def requests(first_second: int) -> list[bytes]:
    """Returns write requests with the points of a day, one for each time slice."""
    made = []
    for first in range(0, POINTS, POINTS_IN_REQUEST):
        slice_of = range(first, min(first + POINTS_IN_REQUEST, POINTS))
        made.append(
            write_request(
                [
                    (
                        {"__name__": "loss", "series": str(number)},
                        [
                            ((first_second + i * STEP_SECONDS) * 1000, number + 1 / (i + 1))
                            for i in slice_of
                        ],
                    )
                    for number in range(SERIES)
                ]
            )
        )
    return made


def query_ours(server: Server, first: int, last: int) -> None:
    """Queries the server without boto3, whose client spends two seconds on making a datetime of
    each point."""
    for start in range(0, QUERIED_SERIES, SERIES_IN_QUERY):
        queries = loss_queries(range(start, start + SERIES_IN_QUERY), STEP_SECONDS)
        found = call_signed(
            server,
            "monitoring",
            "GraniteServiceVersion20100801.GetMetricData",
            {
                "StartTime": first,
                "EndTime": last,
                "MaxDatapoints": 100_800,
                "MetricDataQueries": queries,
            },
        )
        assert all(len(each["Values"]) == POINTS for each in found["MetricDataResults"])


def query_peer(prometheus: Prometheus, first: int, last: int) -> None:
    found = prometheus.get(
        "query_range",
        query='loss{series=~"[0-9]|[1-9][0-9]"}',
        start=str(first),
        end=str(last),
        step=str(STEP_SECONDS),
    )
    assert len(found["result"]) == min(QUERIED_SERIES, SERIES)


def snapshot_bytes(prometheus: Prometheus) -> int:
    """Returns the bytes of all points in a block on disk of Prometheus."""
    with urllib.request.urlopen(
        urllib.request.Request(
            f"http://{prometheus.address}/api/v1/admin/tsdb/snapshot", method="POST"
        )
    ) as answer:
        name = json.load(answer)["data"]["name"]
    return bytes_below(f"{prometheus.place}/data/snapshots/{name}")


def stores(server: Server, place: pathlib.Path) -> list[Row]:
    """Measures ingestion by remote write, bytes per point, and the query of a day."""
    prometheus = Prometheus(
        place / "storing",
        "global: {}\n",
        "--web.enable-remote-write-receiver",
        "--web.enable-admin-api",
    ).start()
    try:
        last = int(time.time()) // STEP_SECONDS * STEP_SECONDS
        first = last - (POINTS - 1) * STEP_SECONDS
        token, bodies = token_of(server, "--write"), requests(first)
        before = bytes_below(f"{server.data}/metrics")
        ours_seconds = peer_seconds = 0.0
        ours_url = f"http://{server.listen}/api/v1/write"
        peer_url = f"http://{prometheus.address}/api/v1/write"
        for body in progress.rounds(bodies):
            ours_seconds += seconds_of(functools.partial(post, ours_url, body, token))
            peer_seconds += seconds_of(functools.partial(post, peer_url, body))
        ours, peers = [], []
        for _ in range(QUERY_ROUNDS):
            ours.append(seconds_of(lambda: query_ours(server, first, last + STEP_SECONDS)))
            peers.append(seconds_of(lambda: query_peer(prometheus, first, last)))
        peer_bytes = snapshot_bytes(prometheus)
    finally:
        prometheus.stop()
    server.stop()  # this writes SQLite's journal into its file
    points = SERIES * POINTS
    our_bytes = bytes_below(f"{server.data}/metrics") - before
    return [
        row(
            "prometheus",
            f"ingest of {points} points by remote write",
            "points/s",
            [points / ours_seconds],
            [points / peer_seconds],
            "Prometheus 2.42",
            ">= its own",
            lambda ours, peer: ours >= peer,
        ),
        row(
            "prometheus",
            "bytes of a point at rest",
            "B",
            [our_bytes / points],
            [peer_bytes / points],
            "Prometheus 2.42, a block",
            "<= its own",
            lambda ours, peer: ours <= peer,
        ),
        row(
            "prometheus",
            f"query of a day over {QUERIED_SERIES} series",
            "s",
            ours,
            peers,
            "Prometheus 2.42, query_range",
            "<= its own",
            lambda ours, peer: ours <= peer,
        ),
    ]


def prometheus() -> list[Row]:
    server = with_server(CONFIG).start()
    with tempfile.TemporaryDirectory(prefix="trainyard-prometheus-") as directory:
        place = pathlib.Path(directory)
        try:
            return [scrapes(server, place), *stores(server, place)]
        finally:
            server.clean()
