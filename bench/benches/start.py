"""Measures the start of a job."""

from __future__ import annotations

from bench import progress
from bench.loads import (
    LARGE_MACHINE,
    start_milliseconds,
    wait_for_removal,
    with_server,
)
from bench.podman import (
    make_image,
    podman_environment,
    podman_start_milliseconds,
)
from bench.rows import Row, row

START_ROUNDS = 15


def start() -> list[Row]:
    """Measures from acceptance to the user's process, next to `podman run` with a bridge.

    Each start begins when the previous job has been removed completely,
    as `podman run --rm` returns when its container is.
    """
    server = with_server(LARGE_MACHINE).start()
    cases: dict[int, list[float]] = {1: [], 2: []}
    peers = []
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(server.data)
        make_image(environment)
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")
        for number in progress.rounds(range(START_ROUNDS)):
            for hosts in (1, 2):
                wait_for_removal(server)
                name = f"start-{hosts}-{number}"
                cases[hosts].append(start_milliseconds(sagemaker, logs, name, hosts))
            wait_for_removal(server)
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
