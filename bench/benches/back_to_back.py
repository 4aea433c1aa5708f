"""Measures the start of jobs that run one directly after another."""

from __future__ import annotations

from typing import Any

from botocore.client import BaseClient

from bench.loads import LARGE_MACHINE, start_milliseconds, with_server
from bench.podman import (
    make_image,
    podman_environment,
    podman_start_milliseconds,
)
from bench.rows import Row, row

BACK_TO_BACK_BLOCKS, BACK_TO_BACK_JOBS = 4, 11


def block_milliseconds(
    sagemaker: BaseClient, logs: BaseClient, prefix: str, **more: Any
) -> list[float]:
    """Runs jobs of two hosts, each as soon as the previous one is Completed, and returns the time
    to the start of each. The first does not count, since no job precedes it."""
    return [
        start_milliseconds(sagemaker, logs, f"{prefix}-{number}", 2, **more)
        for number in range(BACK_TO_BACK_JOBS)
    ][1:]


def back_to_back() -> list[Row]:
    """Starts each job as soon as the previous one is Completed, while the previous one is still
    being removed. The peer is `podman run --rm` after `podman run --rm`."""
    server = with_server(LARGE_MACHINE).start()
    ours: list[float] = []
    peers: list[float] = []
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(server.data)
        make_image(environment)
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")
        for block in range(BACK_TO_BACK_BLOCKS):
            ours += block_milliseconds(sagemaker, logs, f"next-{block}")
            for _ in range(BACK_TO_BACK_JOBS - 1):
                peers.append(podman_start_milliseconds(environment))
    finally:
        server.clean()
    return [
        row(
            "back to back",
            "accepted -> user process, 2 hosts, right after the last job",
            "ms",
            ours,
            peers,
            "podman run --rm --network=bridge",
            "p50 < 100 ms and ratio <= 0.5",
            lambda ours, peer: ours < 100 and ours <= 0.5 * peer,
        )
    ]
