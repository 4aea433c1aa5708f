"""Jobs that follow each other."""

from __future__ import annotations

import re
import time

from bench.loads import with_server
from bench.podman import (
    make_image,
    podman_environment,
    podman_start_milliseconds,
)
from bench.rows import Row, row
from tests import jobs

BACK_TO_BACK_BLOCKS, BACK_TO_BACK_JOBS = 4, 11


def back_to_back() -> list[Row]:
    """Starts each job as soon as the previous one is Completed, while the remains of that one are
    removed. The peer is `podman run --rm` after `podman run --rm`."""
    server = with_server("[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n").start()
    ours, peers = [], []
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(server.data)
        make_image(environment)
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")
        for block in range(BACK_TO_BACK_BLOCKS):
            for number in range(BACK_TO_BACK_JOBS):
                name = f"next-{block}-{number}"
                sagemaker.create_training_job(**jobs.request(name, "date +%s.%N", hosts=2))
                accepted = time.time()
                jobs.wait_until(sagemaker, name)
                began = [
                    float(line)
                    for line in jobs.log_lines(logs, name)
                    if re.fullmatch(r"\d+\.\d+", line)
                ]
                assert len(began) == 2, (name, began)
                if number:  # the first follows podman
                    ours.append((max(began) - accepted) * 1000)
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
