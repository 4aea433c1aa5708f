"""Measures DescribeTrainingJob under load."""

from __future__ import annotations

from typing import Any

from bench.loads import SMALL_MACHINE, keys, rounds, values, with_server
from bench.rows import Row, row
from tests import jobs
from tests.trainyard_server import Server


def create_waiting(server: Server, **more: Any) -> None:
    """Creates the job that describe_rounds() describes. `more` are members of its request."""
    server.boto("sagemaker").create_training_job(
        **jobs.request("described", instance_type="ml.m5.24xlarge", **more)
    )


def describe_rounds(server: Server, *arguments: str) -> dict[str, list[dict[str, Any]]]:
    """Describes a waiting job under load. `arguments` are load_api's."""
    return rounds("load_api", "describe", *keys(server), "--job", "described", *arguments)


def describe() -> list[Row]:
    """Measures DescribeTrainingJob next to a constant response with the same HTTP and SigV4
    code."""
    server = with_server(SMALL_MACHINE).start()
    try:
        create_waiting(server)
        sides = describe_rounds(server)
    finally:
        server.clean()
    return [
        row(
            "describe",
            "16 connections",
            "requests/s",
            values(sides["ours"], "requests_per_second"),
            values(sides["peer"], "requests_per_second"),
            "same HTTP and SigV4, a constant",
            "ratio >= 0.5",
            lambda ours, peer: ours >= 0.5 * peer,
        ),
        row(
            "describe",
            "16 connections, p50",
            "ms",
            values(sides["ours"], "p50_ms"),
            values(sides["peer"], "p50_ms"),
            "same HTTP and SigV4, a constant",
            "shown",
            lambda ours, peer: True,
        ),
    ]
