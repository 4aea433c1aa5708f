"""Measures CreateTrainingJob under load."""

from __future__ import annotations

import json
import os
from typing import Any

from bench.loads import SMALL_MACHINE, keys, rounds, values, with_server
from bench.rows import Row, row
from tests import jobs
from tests.trainyard_server import Server


def create_rounds(server: Server, *arguments: str, **more: Any) -> dict[str, list[dict[str, Any]]]:
    """Creates waiting jobs under load. `arguments` are load_api's; `more` are members of the
    requests."""
    request = os.path.join(server.data, "request.json")
    with open(request, "w", encoding="utf-8") as file:
        json.dump(jobs.request("x", instance_type="ml.m5.24xlarge", **more), file)
    return rounds(
        "load_api",
        "create",
        *keys(server),
        "--request",
        request,
        "--prefix",
        "made",
        *arguments,
    )


def create() -> list[Row]:
    """Measures durable CreateTrainingJob: many clients, whose requests share commits, next to one
    client."""
    server = with_server(SMALL_MACHINE).start()
    try:
        sides = create_rounds(server)
    finally:
        server.clean()
    return [
        row(
            "create",
            "64 connections, durable",
            "jobs/s",
            values(sides["ours"], "requests_per_second"),
            values(sides["peer"], "requests_per_second"),
            "one connection, a commit each",
            "more than one by one",
            lambda ours, peer: ours > peer,
        )
    ]
