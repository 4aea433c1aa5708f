"""Measures arrays of short jobs."""

from __future__ import annotations

import os
import time

from bench import disk, progress
from bench.loads import definition, with_server
from bench.rows import Row, row
from tests import trainyard_server
from tests.batch_queues import create_queues
from tests.slurm import loopback

# With fewer children, the peer's start and end would matter more.
ARRAY_CHILDREN = int(os.environ.get("TRAINYARD_BENCH_ARRAY_CHILDREN", "10000"))
ARRAY_ROUNDS = int(os.environ.get("TRAINYARD_BENCH_ARRAY_ROUNDS", "3"))
# Concurrent children, the same number as the peer's: on a busy machine, the side with more children
# would get more of the processors.
ARRAY_CPUS = int(os.environ.get("TRAINYARD_BENCH_ARRAY_CPUS", "64"))


def array() -> list[Row]:
    """Submits, runs and finishes an array of children that do nothing,
    next to the same array under Slurm."""
    with disk.Disk() as path:
        return array_on(path)


def array_on(path: str) -> list[Row]:
    server = with_server(
        f"[[machine]]\nname = 'box'\ncpus = {ARRAY_CPUS}.0\nmemory_gib = 256.0\n", path
    ).start()
    slurm = loopback.Slurm(os.path.join(path, "slurm"))
    ours: dict[str, list[float]] = {"isolated": [], "reuse": []}
    peers: list[float] = []
    try:
        slurm.start()
        batch = create_queues(
            server,
            isolated={"trainyard:reuse-hosts": "false"},
            reuse={"trainyard:reuse-hosts": "true"},
        )
        definition(batch, "true", 1)

        def rate(queue: str) -> float:
            began = time.monotonic()
            one = batch.submit_job(
                jobName="array",
                jobQueue=queue,
                jobDefinition="true",
                arrayProperties={"size": ARRAY_CHILDREN},
            )["jobId"]
            while (status := batch.describe_jobs(jobs=[one])["jobs"][0]["status"]) not in (
                "SUCCEEDED",
                "FAILED",
            ):
                time.sleep(loopback.POLL_SECONDS)
            assert status == "SUCCEEDED", status
            seconds = time.monotonic() - began
            trainyard_server.wait_for(
                lambda: not os.listdir(os.path.join(server.data, "attempts")),
                "the last child to be removed",
            )
            return ARRAY_CHILDREN / seconds

        for side in progress.rounds([*ours, "slurm"] * ARRAY_ROUNDS):
            if side in ours:
                ours[side].append(rate(side))
            else:
                peers.append(ARRAY_CHILDREN / slurm.array(ARRAY_CHILDREN))
    finally:
        slurm.stop()
        server.clean()
    load = f"load {os.getloadavg()[1]:.1f}"
    return [
        row(
            "array",
            f"{ARRAY_CHILDREN:,} children of true, full isolation of each",
            "children/s",
            ours["isolated"],
            peers,
            f"Slurm, tests/slurm/loopback.conf; {load}",
            "ratio >= 1.0",
            lambda ours, peer: ours >= peer,
        ),
        row(
            "array",
            f"{ARRAY_CHILDREN:,} children of true, hosts used again",
            "children/s",
            ours["reuse"],
            peers,
            f"Slurm, tests/slurm/loopback.conf; {load}",
            "ratio >= 3.0",
            lambda ours, peer: ours >= 3 * peer,
        ),
    ]
