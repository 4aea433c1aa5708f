"""Measures the start of a job, by the source of its code."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from typing import Any

from botocore.client import BaseClient

from bench import progress
from bench.benches.image import layer_of
from bench.loads import with_server
from bench.podman import (
    podman,
    podman_environment,
    uptime,
)
from bench.rows import ROOT, Row, row
from tests import jobs, oci, trainyard_server

START_UP_ROUNDS = 5
START_UP_COLD = "an image, cold: 64 MiB in 9 layers from a registry on this machine"


def began_at(logs: BaseClient, name: str) -> float:
    """Returns when a job's processes began: the machine's uptime, which each prints first."""
    return max(
        float(line.split()[0])
        for line in jobs.log_lines(logs, name)
        if re.fullmatch(r"[0-9.]+ [0-9.]+", line)
    )


def start_up() -> list[Row]:
    """Measures from acceptance to user code, by the source of the code: the table of
    docs/operating."""
    server = with_server("[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n")
    names = ("a runtime", "an image, warm", START_UP_COLD, "a warm pool")
    ours: dict[str, list[float]] = {name: [] for name in names}
    peers: dict[str, list[float]] = {name: [] for name in names}
    registry = None
    try:
        os.makedirs(server.data, exist_ok=True)
        directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=os.path.join(ROOT, "build"))
        layout, registry = oci.Layout(os.path.join(directory, "layout")), oci.Registry(directory)
        for number in range(START_UP_ROUNDS):
            layout.image(
                f"cold{number}",
                [oci.base(), *(layer_of(f"{number}-{each}", 8) for each in range(8))],
            )
            registry.push(layout, f"cold{number}", "bench/start")
        server.start()
        server.boto("s3").create_bucket(Bucket="yard")
        environment = podman_environment(directory)
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")

        def measure(case: str, name: str, **request: Any) -> None:
            trainyard_server.wait_for(
                lambda: not os.listdir(os.path.join(server.data, "attempts")),
                "the last job to be gone",
            )
            sagemaker.create_training_job(**jobs.request(name, "cat /proc/uptime", **request))
            accepted = uptime()
            jobs.wait_until(sagemaker, name)
            ours[case].append((began_at(logs, name) - accepted) * 1000)

        def podman_run(case: str, image: str, *more: str) -> None:
            requested = uptime()
            began = float(
                podman(
                    environment,
                    "run",
                    "--rm",
                    "--network=bridge",
                    *more,
                    image,
                    "sh",
                    "-c",
                    "cat /proc/uptime",
                ).split()[0]
            )
            peers[case].append((began - requested) * 1000)

        for number in progress.rounds(range(START_UP_ROUNDS)):
            image = f"{registry.host}/bench/start:cold{number}"
            measure("a runtime", f"runtime-{number}")
            measure(START_UP_COLD, f"cold-{number}", image=image)
            measure("an image, warm", f"warm-{number}", image=image)
            podman_run(START_UP_COLD, image, "--tls-verify=false")
            podman_run("an image, warm", image)
            pool = {"KeepAlivePeriodInSeconds": 60}
            trainyard_server.wait_for(
                lambda: not os.listdir(os.path.join(server.data, "attempts")),
                "the last job to be gone",
            )
            sagemaker.create_training_job(
                **jobs.request(f"pool-{number}", "true", image=image, ResourceConfig=pool)
            )
            jobs.wait_until(sagemaker, f"pool-{number}")
            measure("a warm pool", f"pooled-{number}", image=image)
    finally:
        if registry:
            registry.stop()
            shutil.rmtree(directory)
        server.clean()
    return [
        row(
            "start up",
            case,
            "ms",
            ours[case],
            peers[case] or None,
            "podman run --network=bridge" if peers[case] else None,
            "shown",
            lambda ours, peer: True,
        )
        for case in names
    ]
