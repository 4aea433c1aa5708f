"""Measures how fast the server ingests a flood of log lines."""

from __future__ import annotations

from typing import Any

from botocore.client import BaseClient

from bench import progress
from bench.loads import LARGE_MACHINE, with_server
from bench.podman import (
    IMAGE,
    make_image,
    podman_environment,
    podman_script,
)
from bench.rows import Row, row
from tests import jobs

FLOOD_ROUNDS = 5
FLOOD_MEGABYTES = 500
FLOOD_LINE = (
    "epoch 3 step 1700 of 12000: loss 0.25731 learning rate 0.001 samples per second 12345.6 and"
    " so on"
)
FLOOD = f"yes '{FLOOD_LINE}' | head -c {FLOOD_MEGABYTES}000000"


def flood_rate(
    sagemaker: BaseClient, events: BaseClient, name: str, **more: Any
) -> tuple[float, int]:
    """Runs a job that floods its log, and returns MB/s until the last line is durable, and the
    number of messages about dropped lines."""
    request = jobs.request(name, "date +%s.%N; " + FLOOD, **more)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": f"metric{number}", "Regex": f"metric_{number}=([0-9.e+-]+)"}
        for number in range(40)
    ]
    sagemaker.create_training_job(**request)
    jobs.wait_until(sagemaker, name, seconds_max=300)
    where = {"logGroupName": "/aws/sagemaker/TrainingJobs"}
    stream = events.describe_log_streams(**where, logStreamNamePrefix=f"{name}/")["logStreams"][0]
    first = events.get_log_events(
        **where, logStreamName=stream["logStreamName"], startFromHead=True, limit=1
    )["events"][0]
    dropped = events.filter_log_events(
        **where, logStreamNamePrefix=f"{name}/", filterPattern='"were dropped"'
    )["events"]
    seconds = stream["lastIngestionTime"] / 1000 - float(first["message"])
    return FLOOD_MEGABYTES / seconds, len(dropped)


def logs() -> list[Row]:
    """Measures the time until the last of many log lines is durable, with forty metric regexes,
    next to podman's log file without metrics."""
    server = with_server(LARGE_MACHINE).start()
    ours, peers, dropped = [], [], 0
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(server.data)
        make_image(environment)
        sagemaker, events = server.boto("sagemaker"), server.boto("logs")
        for number in progress.rounds(range(FLOOD_ROUNDS)):
            rate, dropped_now = flood_rate(sagemaker, events, f"flood-{number}")
            ours.append(rate)
            dropped += dropped_now
            ended, began = podman_script(
                environment,
                f"""c=$(podman run -d --log-driver=k8s-file {IMAGE} \\
                  sh -c "cat /proc/uptime; {FLOOD}")
                podman wait $c >/dev/null
                cut -d' ' -f1 /proc/uptime
                log=$(podman inspect --format={{{{.HostConfig.LogConfig.Path}}}} $c)
                head -n 1 $log | cut -d' ' -f4
                podman rm $c >/dev/null""",
            ).split()
            peers.append(FLOOD_MEGABYTES / (float(ended) - float(began)))
    finally:
        server.clean()
    return [
        row(
            "logs",
            "lines of 100 bytes from one process, 40 regexes, none dropped",
            "MB/s",
            ours,
            peers,
            "podman run, k8s-file, no regexes",
            ">= 100 MB/s",
            lambda ours, peer: ours >= 100 and dropped == 0,
        )
    ]
