"""CreateTrainingJob under load."""

from __future__ import annotations

import json
import os

from bench.loads import keys, rounds, values, with_server
from bench.rows import Row, row
from tests import jobs


def create() -> list[Row]:
    """CreateTrainingJob with durability on: clients that share commits, next to one client."""
    server = with_server("[[machine]]\nname = 'small'\ncpus = 1.0\nmemory_gib = 1.0\n").start()
    try:
        request = os.path.join(server.data, "request.json")
        with open(request, "w", encoding="utf-8") as file:
            json.dump(jobs.request("x", instance_type="ml.m5.24xlarge"), file)
        sides = rounds(
            "load_api", "create", *keys(server), "--request", request, "--prefix", "made"
        )
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
