"""The start of a job."""

from __future__ import annotations

import os
import re
import time

from bench import progress
from bench.loads import with_server
from bench.podman import (
    make_image,
    podman_environment,
    podman_start_milliseconds,
)
from bench.rows import Row, row
from tests import jobs, trainyard_server

START_ROUNDS = 15


def start() -> list[Row]:
    """Measures from acceptance to the user's process, next to `podman run` with a bridge.
    The process prints its clock first of all.

    Each start begins when the previous job has been removed completely,
    as `podman run --rm` returns when its container is.
    """
    server = with_server("[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n").start()
    cases: dict[int, list[float]] = {1: [], 2: []}
    peers = []
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(server.data)
        make_image(environment)
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")
        for number in progress.rounds(range(START_ROUNDS)):
            for hosts in (1, 2):
                trainyard_server.wait_for(
                    lambda: not os.listdir(os.path.join(server.data, "attempts")),
                    "the last job to be gone",
                )
                name = f"start-{hosts}-{number}"
                sagemaker.create_training_job(**jobs.request(name, "date +%s.%N", hosts=hosts))
                accepted = time.time()
                jobs.wait_until(sagemaker, name)
                began = [
                    float(line)
                    for line in jobs.log_lines(logs, name)
                    if re.fullmatch(r"\d+\.\d+", line)
                ]
                assert len(began) == hosts, (name, began)
                cases[hosts].append((max(began) - accepted) * 1000)
            trainyard_server.wait_for(
                lambda: not os.listdir(os.path.join(server.data, "attempts")),
                "the last job to be gone",
            )
            peers.append(podman_start_milliseconds(environment))
    finally:
        server.clean()
    return [
        row(
            "start",
            f"accepted -> user process, {hosts} host{'s' if hosts > 1 else ''}, runtime, no"
            " channel",
            "ms",
            measured,
            peers,
            "podman run --network=bridge",
            "p50 < 100 ms and ratio <= 0.5",
            lambda ours, peer: ours < 100 and ours <= 0.5 * peer,
        )
        for hosts, measured in cases.items()
    ]
