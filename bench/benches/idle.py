"""Measures an idle server."""

from __future__ import annotations

import re
import time

from bench.loads import with_server
from bench.rows import Row, row
from tests.trainyard_server import Server


def resident_mebibytes(server: Server) -> float:
    """Sends the first requests to a server, and returns its resident memory after them."""
    server.boto("sts").get_caller_identity()
    server.boto("sagemaker").list_training_jobs()
    time.sleep(1)
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
        found = re.search(r"VmRSS:\s+(\d+) kB", file.read())
    assert found, "the server's status has no VmRSS"
    return int(found[1]) / 1024


def idle() -> list[Row]:
    """Measures the resident memory of an idle server."""
    samples: list[float] = []
    for _ in range(3):
        server = with_server().start()
        try:
            samples.append(resident_mebibytes(server))
        finally:
            server.clean()
    return [
        row(
            "idle",
            "resident memory after first requests",
            "MiB",
            samples,
            None,
            None,
            "< 40 MiB",
            lambda ours, _: ours < 40,
        )
    ]
