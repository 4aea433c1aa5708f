"""Measures arrays of short jobs on a Slurm cluster, next to the same array of Slurm's own."""

from __future__ import annotations

import os
import re
import tempfile
import time

from bench import progress
from bench.loads import definition
from bench.rows import ROOT, Row, row
from tests.batch_queues import create_queues
from tests.slurm import loopback
from tests.slurm.cluster import CONTROLLER, NODE_CPUS, NODE_MEMORY_MIB, Cluster
from tests.trainyard_server import Server, wait_for

CHILDREN = int(os.environ.get("TRAINYARD_BENCH_SLURM_ARRAY_CHILDREN", "10000"))
# Isolated children take longer, so fewer of them suffice to measure the rate.
ISOLATED = int(
    os.environ.get("TRAINYARD_BENCH_SLURM_ARRAY_ISOLATED_CHILDREN", str(max(1, CHILDREN // 10)))
)
ROUNDS = int(os.environ.get("TRAINYARD_BENCH_SLURM_ARRAY_ROUNDS", "3"))
NODES = 4
# As tests/slurm/loopback.conf, of the peer of ./yard bench array: first come, first served.
QUICK = {
    "SchedulerType": "sched/builtin",
    "SchedulerParameters": f"sched_min_interval={loopback.INTERVAL_MICROSECONDS},"
    f"batch_sched_delay=0,default_queue_depth={NODES * NODE_CPUS},partition_job_depth=0,"
    "sched_max_job_start=0,max_array_tasks=10001",
    "ProctrackType": f"proctrack/{loopback.PROCTRACK}",
    "SlurmdTimeout": "600",
    "MessageTimeout": "60",
}
# Without a default of memory, each task of Slurm's array would take all that its node has.
MORE = f"""SlurmctldDebug=error
SlurmdDebug=error
MinJobAge=30
MaxJobCount=20000
MaxArraySize=10001
DefMemPerCPU={NODE_MEMORY_MIB // NODE_CPUS}
"""


class QuickCluster(Cluster):
    def write_config(self) -> None:
        super().write_config()
        with open(self.config, encoding="utf-8") as file:
            text = file.read()
        for key, value in QUICK.items():
            text = re.sub(rf"^{key}=.*$", f"{key}={value}", text, flags=re.MULTILINE)
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(MORE + text)


def server_on(cluster: Cluster, directory: str) -> Server:
    config = f"""
[server]
allow_plain_http_from_other_machines = true
[slurm]
partition = "train"
config_file = "{cluster.config}"
server_address = "{CONTROLLER}"
node_directory = "{directory}/nodes"
"""
    return Server(os.path.join(directory, "data"), config, listen=f"{CONTROLLER}:0")


def slurm_array() -> list[Row]:
    """Submits, runs and finishes an array of children that do nothing on four nodes, next to the
    same array of Slurm's."""
    cluster = QuickCluster(tempfile.mkdtemp(prefix="ty-slurm-"), NODES)
    directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=os.path.join(ROOT, "build"))
    server = server_on(cluster, directory)
    ours: dict[str, list[float]] = {"isolated": [], "reuse": []}
    peers: list[float] = []
    try:
        cluster.start()
        server.start()
        batch = create_queues(
            server,
            isolated={"trainyard:reuse-hosts": "false"},
            reuse={"trainyard:reuse-hosts": "true"},
        )
        definition(batch, "true", 1)

        def rate(queue: str, children: int) -> float:
            began = time.monotonic()
            one = batch.submit_job(
                jobName="array",
                jobQueue=queue,
                jobDefinition="true",
                arrayProperties={"size": children},
                timeout={"attemptDurationSeconds": 600},
            )["jobId"]
            while (status := batch.describe_jobs(jobs=[one])["jobs"][0]["status"]) not in (
                "SUCCEEDED",
                "FAILED",
            ):
                if time.monotonic() - began > loopback.ARRAY_SECONDS_MAX:
                    raise RuntimeError(f"an array of {children} takes too long")
                time.sleep(loopback.POLL_SECONDS)
            assert status == "SUCCEEDED", status
            seconds = time.monotonic() - began
            wait_for(lambda: not cluster.live_jobs(), "idle Slurm jobs to end")
            return children / seconds

        for side in progress.rounds([*ours, "slurm"] * ROUNDS):
            if side in ours:
                ours[side].append(rate(side, ISOLATED if side == "isolated" else CHILDREN))
            else:
                peers.append(CHILDREN / cluster.array(CHILDREN))
    finally:
        server.clean()
        cluster.stop()
    peer = f"Slurm's own array on the same {NODES} slurmd; load {os.getloadavg()[1]:.1f}"
    return [
        row(
            "slurm_array",
            f"{ISOLATED:,} children of true on Slurm, full isolation of each",
            "children/s",
            ours["isolated"],
            peers,
            peer,
            "ratio >= 1.0",
            lambda ours, peer: ours >= peer,
        ),
        row(
            "slurm_array",
            f"{CHILDREN:,} children of true on Slurm, hosts used again",
            "children/s",
            ours["reuse"],
            peers,
            peer,
            "ratio >= 3.0",
            lambda ours, peer: ours >= 3 * peer,
        ),
    ]
