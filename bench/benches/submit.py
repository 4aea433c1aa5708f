"""Measures SubmitJob under load."""

from __future__ import annotations

import json
import os

from bench.loads import definition, keys, rounds, values, with_server
from bench.rows import Row, row
from tests.batch_queues import create_queues

SUBMIT_ROUNDS, SUBMIT_REQUESTS = 7, 2000


def submit() -> list[Row]:
    """Measures durable SubmitJob: the requests of many clients share commits, those of one client
    cannot. The jobs wait for more capacity than there is."""
    server = with_server("[[machine]]\nname = 'small'\ncpus = 1.0\nmemory_gib = 1.0\n").start()
    try:
        definition(create_queues(server, queue={"bench": "submit"}), "large", 96)
        request = os.path.join(server.data, "request.json")
        with open(request, "w", encoding="utf-8") as file:
            json.dump({"jobName": "one", "jobQueue": "queue", "jobDefinition": "large"}, file)
        sides = rounds(
            "load_api",
            "submit",
            *keys(server),
            "--request",
            request,
            "--rounds",
            str(SUBMIT_ROUNDS),
            "--requests",
            str(SUBMIT_REQUESTS),
        )
    finally:
        server.clean()
    return [
        row(
            "submit",
            "SubmitJob, 64 connections, durable",
            "jobs/s",
            values(sides["ours"], "requests_per_second"),
            values(sides["peer"], "requests_per_second"),
            "one connection, a commit each",
            ">= 1000",
            lambda ours, peer: ours >= 1000,
        )
    ]
