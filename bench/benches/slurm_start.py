"""Measures the start of a job on a Slurm cluster, next to srun and sbatch."""

from __future__ import annotations

import collections
import os
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial

from bench import progress
from bench.benches.slurm_array import server_on
from bench.loads import start_milliseconds
from bench.rows import ROOT, Row, row
from tests.slurm.cluster import Cluster
from tests.trainyard_server import wait_for

ROUNDS = int(os.environ.get("TRAINYARD_BENCH_SLURM_START_ROUNDS", "15"))
HOSTS = (1, 2)
OVERHEAD_MILLISECONDS_MAX = 100
PRINT_CLOCK = ("date", "+%s.%N")


def srun_milliseconds(cluster: Cluster, hosts: int) -> float:
    """Returns the time from the call of srun to the process on its last node."""
    began = time.time()
    return last_of(cluster.run("srun", *request(hosts), *PRINT_CLOCK), hosts, began)


def sbatch_milliseconds(cluster: Cluster, hosts: int) -> float:
    """Returns the time from the call of sbatch to the process of the script's step on its last
    node."""
    output = cluster.at("clocks")
    script = f"srun {' '.join(PRINT_CLOCK)} >{output}.new; mv {output}.new {output}"
    began = time.time()
    cluster.run("sbatch", *request(hosts), "--output=/dev/null", f"--wrap={script}")
    wait_for(lambda: os.path.exists(output), "the batch job to end")
    with open(output, encoding="utf-8") as file:
        printed = file.read()
    os.remove(output)
    return last_of(printed, hosts, began)


def request(hosts: int) -> list[str]:
    return [f"--nodes={hosts}", "--mem=1024"]


def last_of(printed: str, hosts: int, began: float) -> float:
    clocks = [float(line) for line in printed.split()]
    assert len(clocks) == hosts, printed
    return (max(clocks) - began) * 1000


def slurm_start() -> list[Row]:
    """Measures from acceptance to the user's process on Slurm, next to `srun` and `sbatch` of the
    same program.

    Each start begins when the Slurm job before has ended and its nodes are idle, at a random part
    of a second: Slurm starts batch jobs in passes."""
    cluster = Cluster(tempfile.mkdtemp(prefix="ty-slurm-"), max(HOSTS))
    directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=os.path.join(ROOT, "build"))
    server = server_on(cluster, directory)
    seconds: dict[tuple[str, int], list[float]] = collections.defaultdict(list)
    random_part = random.Random(1)

    def measure(side: str, hosts: int, start: Callable[[], float]) -> None:
        wait_for(lambda: not cluster.live_jobs(), "the last Slurm job to end")
        cluster.wait_for_idle()
        time.sleep(random_part.random())
        seconds[side, hosts].append(start())

    try:
        cluster.start()
        server.start()
        server.boto("s3").create_bucket(Bucket="yard")
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")
        for number in progress.rounds(range(ROUNDS)):
            for hosts in HOSTS:
                name = f"start-{hosts}-{number}"
                measure("ours", hosts, partial(start_milliseconds, sagemaker, logs, name, hosts))
                measure("srun", hosts, partial(srun_milliseconds, cluster, hosts))
                measure("sbatch", hosts, partial(sbatch_milliseconds, cluster, hosts))
    finally:
        server.clean()
        cluster.stop()
    return [
        row(
            "slurm_start",
            f"accepted -> user process on Slurm, {hosts} host{'s' if hosts > 1 else ''}",
            "ms",
            seconds["ours", hosts],
            seconds[peer, hosts],
            f"{peer} of the same program on the same slurmd",
            f"p50 at most {peer}'s + {OVERHEAD_MILLISECONDS_MAX} ms",
            lambda ours, peer: ours <= peer + OVERHEAD_MILLISECONDS_MAX,
        )
        for hosts in HOSTS
        for peer in ("srun", "sbatch")
    ]
