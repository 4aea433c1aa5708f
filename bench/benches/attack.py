"""Measures how much slow clients without a key slow down other clients."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import tempfile
import time

from bench.rows import BIN, ROOT, Row, row
from tests import jobs, trainyard_server
from tests.slow_clients import JSON, UNSIGNED, SlowClients, head, made_up, presigned
from tests.trainyard_server import Server

ROUNDS = 5
SLOW_CONNECTIONS = 64
READERS = 8
READ_SECONDS = 3
OBJECT_BYTES = 4096


def describes_per_second(server: Server) -> float:
    """Returns the median rate of the load program's rounds."""
    keys = [
        "--server",
        server.listen,
        "--id",
        server.env["AWS_ACCESS_KEY_ID"],
        "--secret",
        server.env["AWS_SECRET_ACCESS_KEY"],
    ]
    done = subprocess.run(
        [os.path.join(BIN, "load_api"), "describe", *keys, "--job", "described", "--rounds", "1"],
        check=True,
        capture_output=True,
        text=True,
    )
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    return statistics.median(
        float(one["requests_per_second"]) for one in rounds if one["side"] == "ours"
    )


def gets_per_second(server: Server, target: str) -> float:
    """Returns the rate of GETs of a small object over persistent connections."""
    end = time.monotonic() + READ_SECONDS

    def read(_: int) -> int:
        count = 0
        connection = http.client.HTTPConnection(server.listen, timeout=60)
        while time.monotonic() < end:
            connection.request("GET", target)
            answer = connection.getresponse()
            if answer.status != 200 or len(answer.read()) != OBJECT_BYTES:
                raise RuntimeError(f"S3 GET: status {answer.status}, or not {OBJECT_BYTES} bytes")
            count += 1
        connection.close()
        return count

    with concurrent.futures.ThreadPoolExecutor(READERS) as readers:
        return sum(readers.map(read, range(READERS))) / READ_SECONDS


def attack() -> list[Row]:
    """Measures Describe and S3 GET while 64 slow, unauthenticated connections are open,
    next to the same server without them."""
    with tempfile.TemporaryDirectory(
        prefix="trainyard-bench-", dir=os.path.join(ROOT, "build")
    ) as directory:
        server = trainyard_server.Server(
            os.path.join(directory, "data"),
            "[[machine]]\nname = 'small'\ncpus = 1.0\nmemory_gib = 1.0\n",
        ).start()
        try:
            server.boto("sagemaker").create_training_job(
                **jobs.request("described", instance_type="ml.m5.24xlarge")
            )
            s3 = server.boto("s3")
            s3.create_bucket(Bucket="yard")
            s3.put_object(Bucket="yard", Key="small", Body=bytes(OBJECT_BYTES))
            target = presigned(s3, "get_object", "yard", "small")
            requests = [
                head(server, "PUT", "/yard/slow", {}),
                head(server, "PUT", "/yard/slow", made_up("AKIANOBODY", "s3") | UNSIGNED),
                head(server, "POST", "/", JSON),
                head(
                    server,
                    "POST",
                    "/",
                    JSON | made_up(server.env["AWS_ACCESS_KEY_ID"], "sagemaker"),
                ),
            ]
            describes: dict[bool, list[float]] = {False: [], True: []}
            gets: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(ROUNDS):
                for attacked in (False, True):
                    with (
                        SlowClients(server, SLOW_CONNECTIONS, *requests)
                        if attacked
                        else contextlib.nullcontext()
                    ):
                        describes[attacked].append(describes_per_second(server))
                        gets[attacked].append(gets_per_second(server, target))
        finally:
            server.clean()
    return [
        row(
            "attack",
            f"{case}, {SLOW_CONNECTIONS} slow connections",
            "requests/s",
            rates[True],
            rates[False],
            "no slow connections",
            "ratio >= 0.9",
            lambda ours, peer: ours >= 0.9 * peer,
        )
        for case, rates in (("Describe", describes), ("S3 GET of 4 KiB", gets))
    ]
