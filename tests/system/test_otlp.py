"""Tests metrics as OTLP over HTTP, read with OpenTelemetry's own messages."""

from __future__ import annotations

import http.server
import pathlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests import jobs
from tests.system.test_prometheus import put_metric
from tests.trainyard_server import Server, wait_for


class Collector(http.server.ThreadingHTTPServer):
    """Accepts metrics, except the first request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.resources: list[dict[str, str]] = []
        self.metrics: dict[str, list[Any]] = {}  # by name

    def take(self, body: bytes) -> None:
        """Reads a body; fails for members or values that OTLP does not have."""
        request = json_format.Parse(body, metrics_service_pb2.ExportMetricsServiceRequest())
        for resource in request.resource_metrics:
            self.resources.append(texts_of(resource.resource.attributes))
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self.metrics.setdefault(metric.name, []).append(metric)

    def points(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Returns attributes and value of each point of a gauge."""
        with self.lock:
            return [
                (texts_of(point.attributes), point.as_double)
                for metric in self.metrics.get(name, [])
                for point in metric.gauge.data_points
            ]


def texts_of(attributes: Iterable[KeyValue]) -> dict[str, str]:
    return {one.key: one.value.string_value for one in attributes}


class Handler(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            first = not self.server.paths
            self.server.paths.append(self.path)
            self.server.keys.append(self.headers["dd-api-key"])
            status = 503 if first else 200
            if not first:
                try:
                    self.server.take(body)
                except json_format.ParseError:
                    status = 400
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    one = Collector()
    thread = threading.Thread(target=one.serve_forever)
    thread.start()
    yield one
    one.shutdown()
    thread.join()
    one.server_close()


def test_points_reach_a_collector(
    start: Callable[..., Server], collector: Collector, tmp_path: pathlib.Path
) -> None:
    headers = tmp_path / "headers"
    headers.write_text("dd-api-key: a-key\n", encoding="utf-8")
    server = start(
        "[jobs]\nstop_grace_seconds = 1\n[[otlp]]\nname = 'collector'\n"
        f"url = 'http://127.0.0.1:{collector.server_address[1]}/v1/metrics'\n"
        f"headers_file = '{headers}'\n"
    )
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("digits", "sleep 600"))
    jobs.wait_until(sagemaker, "digits", ("Training",))
    put_metric(server, 'train:"loss"', 0.5, TrainingJobName="digits")

    def loss() -> list[tuple[dict[str, str], float]]:
        return [
            one
            for one in collector.points("trainyard_job_metric")
            if one[0].get("metric") == 'train:"loss"'
        ]

    [(attributes, value)] = wait_for(loss, "the loss at the collector")
    assert value == 0.5
    assert attributes.pop("user")
    assert attributes == {
        "region": server.env["AWS_DEFAULT_REGION"],
        "job_name": "digits",
        "metric": 'train:"loss"',
    }
    with collector.lock:
        assert set(collector.paths) == {"/v1/metrics"}
        assert set(collector.keys) == {"a-key"}
        assert all(
            one == {"service.name": "trainyard", "service.instance.id": server.listen}
            for one in collector.resources
        )
