"""Tests Prometheus' remote write: to Debian's Prometheus, from it, and to receivers that fail."""

from __future__ import annotations

import http.server
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import jobs
from tests.ports import free_port
from tests.prometheus_server import Prometheus
from tests.system.test_prometheus import put_metric, scrape, token_of
from tests.trainyard_server import Server, wait_for

RECEIVE = "--web.enable-remote-write-receiver"
POINTS = 500


@pytest.fixture
def receiver(tmp_path: pathlib.Path) -> Iterator[Prometheus]:
    one = Prometheus(tmp_path / "receiver", "global: {}\n", RECEIVE)
    one.start()
    yield one
    one.stop()


def config_of(url: str) -> str:
    return (
        "[jobs]\nstop_grace_seconds = 1\n"
        f'[[prometheus.remote_write]]\nname = "receiver"\nurl = "{url}"\n'
    )


def write_url(receiver: Prometheus) -> str:
    return f"http://{receiver.address}/api/v1/write"


def put_numbers(server: Server, first: int, count: int) -> None:
    server.boto("cloudwatch").put_metric_data(
        Namespace="Team",
        MetricData=[
            {
                "MetricName": "number",
                "Value": i,
                "Dimensions": [{"Name": "n", "Value": str(i)}],
            }
            for i in range(first, first + count)
        ],
    )


def counted(server: Server, name: str) -> float:
    text = scrape(server, token_of(server))[2]
    for line in text.splitlines():
        if line.startswith(f"trainyard_remote_write_{name}"):
            return float(line.split(" ")[1])
    raise AssertionError(f"no {name}: {text}")


def test_points_reach_a_real_prometheus(start: Callable[..., Server], receiver: Prometheus) -> None:
    server = start(config_of(write_url(receiver)))
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("digits", "sleep 600"))
    jobs.wait_until(sagemaker, "digits", ("Training",))
    put_metric(server, "train:loss", 0.5, TrainingJobName="digits")
    put_metric(server, "GPUUtilization", 150, Host="digits/algo-1")
    wait_for(
        lambda: receiver.value('trainyard_job_metric{metric="train:loss"}') == 0.5,
        "the loss at the receiver",
    )
    [loss] = receiver.query('trainyard_job_metric{metric="train:loss"}')
    labels = dict(loss["metric"])
    assert labels.pop("user")
    assert labels == {
        "__name__": "trainyard_job_metric",
        "job": "trainyard",
        "instance": server.listen,
        "region": server.env["AWS_DEFAULT_REGION"],
        "job_name": "digits",
        "metric": "train:loss",
    }
    wait_for(
        lambda: receiver.value('trainyard_job_host_gpu_used_gpus{host="algo-1"}') == 1.5,
        "the GPUs at the receiver",
    )
    put_numbers(server, 0, POINTS)
    wait_for(
        lambda: (
            receiver.value('sum(trainyard_metric{namespace="Team"})') == POINTS * (POINTS - 1) / 2
        ),
        "all points at the receiver",
    )
    wait_for(lambda: counted(server, "behind_points") == 0, "the end of the journal")
    assert counted(server, "samples_total") >= POINTS + 2


def test_no_point_is_missing_after_a_kill_of_both(
    start: Callable[..., Server], receiver: Prometheus
) -> None:
    receiver.stop()
    server = start(config_of(write_url(receiver)))
    put_numbers(server, 0, POINTS)
    wait_for(lambda: counted(server, "failures_total") > 0, "a failed request")
    server.kill()
    server.start()
    put_numbers(server, POINTS, POINTS)
    receiver.start()
    wait_for(
        lambda: receiver.value('count(trainyard_metric{namespace="Team"})') == 2 * POINTS,
        "all points at the receiver",
    )
    assert receiver.value('sum(trainyard_metric{namespace="Team"})') == POINTS * (2 * POINTS - 1)


class Hanging(http.server.BaseHTTPRequestHandler):
    """Is a receiver that reads requests and does not answer until the test ends."""

    begun = threading.Event()
    released = threading.Event()

    def do_POST(self) -> None:
        self.begun.set()
        self.released.wait()
        self.close_connection = True

    def log_message(self, *arguments: Any) -> None:
        pass


def test_a_hanging_receiver_affects_nothing_else(start: Callable[..., Server]) -> None:
    hanging = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hanging)
    thread = threading.Thread(target=hanging.serve_forever)
    thread.start()
    try:
        server = start(config_of(f"http://127.0.0.1:{hanging.server_address[1]}/"))
        put_numbers(server, 0, POINTS)
        assert Hanging.begun.wait(60)
        put_numbers(server, POINTS, POINTS)
        assert counted(server, "behind_points") == 2 * POINTS
        assert server.boto("cloudwatch").list_metrics(Namespace="Team")["Metrics"]
    finally:
        Hanging.released.set()
        hanging.shutdown()
        thread.join()
        hanging.server_close()


def test_a_real_prometheus_writes_to_the_server(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    server = start()
    token = tmp_path / "token"
    token.write_text(token_of(server, "--write"), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    sender = Prometheus(
        tmp_path / "sender",
        "global: {scrape_interval: 1s, external_labels: {cluster: one}}\n"
        f"scrape_configs: [{{job_name: own, static_configs: [{{targets: ['{address}']}}]}}]\n"
        "remote_write:\n"
        f"  - url: https://{server.listen}/api/v1/write\n"
        f"    authorization: {{credentials_file: {token}}}\n"
        f"    tls_config: {{ca_file: {server.data}/tls/ca.pem}}\n",
        address=address,
    )
    sender.start()
    try:
        cloudwatch = server.boto("cloudwatch")

        def stored() -> list[Any]:
            found: list[Any] = cloudwatch.list_metrics(Namespace="Prometheus", MetricName="up")[
                "Metrics"
            ]
            return found

        [up] = wait_for(stored, "a series of Prometheus")
        assert {one["Name"]: one["Value"] for one in up["Dimensions"]} == {
            "cluster": "one",
            "instance": address,
            "job": "own",
        }
    finally:
        sender.stop()
