"""DescribeTrainingJob under load."""

from __future__ import annotations

from bench.loads import keys, rounds, values, with_server
from bench.rows import Row, row
from tests import jobs


def describe() -> list[Row]:
    """DescribeTrainingJob next to a constant response with the same HTTP and SigV4."""
    server = with_server("[[machine]]\nname = 'small'\ncpus = 1.0\nmemory_gib = 1.0\n").start()
    try:
        server.boto("sagemaker").create_training_job(
            **jobs.request("described", instance_type="ml.m5.24xlarge")
        )
        sides = rounds("load_api", "describe", *keys(server), "--job", "described")
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
