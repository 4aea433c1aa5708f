"""Tests that two servers with one ledger in PostgreSQL lose no job and run none twice, while
servers, Slurm's daemons, agents and connections fail at random.

TRAINYARD_CHAOS_MINUTES and TRAINYARD_CHAOS_JOBS make it longer than the default, which is for each
run of the suite; TRAINYARD_CHAOS_SEED selects other failures."""

from __future__ import annotations

import contextlib
import glob
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.network_commands import ip
from tests.nodes import make_queue
from tests.ports import free_port
from tests.postgres_server import Postgres, Relay
from tests.slurm.cluster import BRIDGE, CONTROLLER, Cluster
from tests.slurm.conftest import config_of
from tests.trainyard_server import Server, wait_for

MINUTES = float(os.environ.get("TRAINYARD_CHAOS_MINUTES", "1.5"))
JOBS = int(os.environ.get("TRAINYARD_CHAOS_JOBS", "60"))
SEED = int(os.environ.get("TRAINYARD_CHAOS_SEED", "20261130"))
LEASE_SECONDS = 3
ATTEMPTS_MAX = 10  # the most that Batch allows
# The lock is held as long as any process of the run lives: a second run at the same time sees it.
SCRIPT = (
    "exec 9>>/marks/$AWS_BATCH_JOB_ID.lock;"
    " flock -n 9 || { echo $AWS_BATCH_JOB_ID >> /marks/twice; exit 9; };"
    " sleep 2; echo ran >> /marks/$AWS_BATCH_JOB_ID"
)
OVER = ("SUCCEEDED", "FAILED")
FINISH_SECONDS_MAX = 900


class Pair:
    """Is a writer and its standby at one address, each started again when it ends, as by a
    supervisor."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.second: subprocess.Popen[bytes] | None = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.supervise)

    def start_one(self) -> subprocess.Popen[bytes]:
        command = [self.server.program, "serve", "--data", self.server.data]
        command += ["--listen", self.server.listen, "--config", self.server.data + ".toml"]
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.server.log, stderr=self.server.log
        )

    def supervise(self) -> None:
        while not self.over.wait(0.2):
            if self.server.process.poll() is not None:
                self.server.process = self.start_one()
            if self.second is None or self.second.poll() is not None:
                self.second = self.start_one()

    def both(self) -> list[subprocess.Popen[bytes]]:
        return [self.server.process, *([self.second] if self.second else [])]

    def __enter__(self) -> Pair:
        self.thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.over.set()
        self.thread.join()
        if self.second:
            self.second.kill()
            self.second.wait()


class Failures:
    """Makes things fail, and repairs them."""

    def __init__(self, cluster: Cluster, pair: Pair, database: Relay) -> None:
        self.cluster = cluster
        self.pair = pair
        self.database = database
        self.random = random.Random(SEED)
        self.made: list[str] = []

    def all(self) -> list[Callable[[], None]]:
        return [
            self.kill_a_server,
            self.stop_a_server,
            self.restart_slurmctld,
            self.fail_a_node,
            self.kill_an_agent,
            self.cut_a_node,
            self.cut_the_database,
        ]

    def make_one(self) -> None:
        failure = self.random.choice(self.all())
        self.made.append(failure.__name__)
        failure()

    def node(self) -> str:
        return self.random.choice(self.cluster.names)

    def kill_a_server(self) -> None:
        self.random.choice(self.pair.both()).kill()

    def stop_a_server(self) -> None:
        server = self.random.choice(self.pair.both())
        server.send_signal(signal.SIGSTOP)
        time.sleep(LEASE_SECONDS + 2)
        with contextlib.suppress(ProcessLookupError):  # the other has ended it
            server.send_signal(signal.SIGCONT)

    def restart_slurmctld(self) -> None:
        try:
            self.cluster.kill_controller()
        except RuntimeError:  # it saves its state too slowly to be killed now
            return
        self.cluster.start_controller()

    def fail_a_node(self) -> None:
        node = self.node()
        self.cluster.fail_node(node)
        time.sleep(self.random.uniform(0, 3))
        self.cluster.start_node(node)
        wait_for(self.cluster.resume_nodes, "the node to be back")

    def kill_an_agent(self) -> None:
        if agents := self.pair.server.agents():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.random.choice(agents), signal.SIGKILL)

    def cut_a_node(self) -> None:
        link = f"{BRIDGE}-{self.node()}"
        ip("link", "set", link, "down")
        time.sleep(self.random.uniform(0.5, 4))
        ip("link", "set", link, "up")

    def cut_the_database(self) -> None:
        self.database.cut()
        time.sleep(self.random.uniform(0.5, LEASE_SECONDS + 2))
        self.database.restore()


class Submitter(threading.Thread):
    """Submits JOBS jobs over the time of the failures; keeps the ids of acknowledged ones."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.client: Any = server.boto("batch")
        self.acknowledged: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        while len(self.acknowledged) < JOBS and not self.over.is_set():
            with contextlib.suppress(Exception):  # an outage, which is what this is about
                answer = self.client.submit_job(
                    jobName="chaos", jobQueue="queue", jobDefinition="mark"
                )
                self.acknowledged.append(answer["jobId"])
            self.over.wait(MINUTES * 60 / JOBS / 2)


@pytest.fixture
def database() -> Iterator[Relay]:
    postgres = Postgres().start()
    postgres.sql("CREATE DATABASE chaos")
    relay = Relay(postgres)
    yield relay
    relay.clean()
    postgres.clean()


@pytest.fixture
def pair(
    cluster: Cluster, database: Relay, tmp_path: pathlib.Path
) -> Iterator[tuple[Pair, pathlib.Path]]:
    marks = tmp_path / "marks"
    marks.mkdir()
    os.chown(marks, 1000, 1000)
    data = str(tmp_path / "data")
    more = f"""
agents_listen = "{CONTROLLER}:{free_port()}"
[ledger]
url = "{database.url("chaos")}"
lease_seconds = {LEASE_SECONDS}
[volumes."/marks"]
directory = "{marks}"
[posix_users]
"*" = "1000:1000"
"""
    server = Server(data, config_of(cluster, data, more), listen=f"{CONTROLLER}:{free_port()}")
    server.start()
    with Pair(server) as both:
        yield both, marks
    server.clean()


def prepare(server: Server) -> None:
    batch: Any = server.boto("batch")
    make_queue(batch, 64, "queue")
    batch.register_job_definition(
        jobDefinitionName="mark",
        type="container",
        retryStrategy={"attempts": ATTEMPTS_MAX},
        containerProperties={
            "image": "trainyard/host",
            "command": ["/bin/sh", "-c", SCRIPT],
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "64"},
            ],
            "volumes": [{"name": "marks", "host": {"sourcePath": "/marks"}}],
            "mountPoints": [{"sourceVolume": "marks", "containerPath": "/marks"}],
        },
    )


def describe(server: Server, ids: list[str]) -> list[dict[str, Any]]:
    """Returns the jobs; fewer while the server is away."""
    batch: Any = server.boto("batch")
    found: list[dict[str, Any]] = []
    with contextlib.suppress(Exception):
        for start in range(0, len(ids), 100):
            found += batch.describe_jobs(jobs=ids[start : start + 100])["jobs"]
    return found


def own_jobs(cluster: Cluster) -> list[list[str]]:
    """Returns the server's jobs that have not ended. Others are of restarts of slurmctld, which can
    lose that they were cancelled."""
    ended = ("COMPLETED", "CANCELLED", "FAILED", "NODE_FAIL", "TIMEOUT")
    jobs = cluster.jobs("%A|%T|%j")
    return [job for job in jobs if "trainyard-" in job[2] and job[1] not in ended]


def test_no_job_is_lost_or_runs_twice(
    cluster: Cluster, pair: tuple[Pair, pathlib.Path], database: Relay
) -> None:
    both, marks = pair
    server = both.server
    prepare(server)
    failures = Failures(cluster, both, database)
    submitter = Submitter(server)
    submitter.start()
    until = time.monotonic() + MINUTES * 60
    try:
        while time.monotonic() < until:
            failures.make_one()
            time.sleep(failures.random.uniform(0.5, 3))
    finally:
        print(f"seed {SEED}: {' '.join(failures.made)}")
        submitter.over.set()
        submitter.join()
    ids = submitter.acknowledged
    assert ids, "no job was acknowledged"

    def over() -> list[dict[str, Any]] | None:
        jobs = describe(server, ids)
        done = len(jobs) == len(ids) and all(job["status"] in OVER for job in jobs)
        return jobs if done else None

    jobs = wait_for(over, "all jobs to be over", FINISH_SECONDS_MAX, 1)
    twice = marks / "twice"
    assert not twice.exists(), f"ran twice at the same time: {twice.read_text().split()}"
    for job in jobs:
        path = marks / job["jobId"]
        ran = path.read_text().splitlines() if path.exists() else []
        reasons = [each.get("statusReason") for each in job["attempts"]]
        assert job["status"] == "SUCCEEDED", (job["statusReason"], reasons)
        # An agent that is killed after the end of the script cannot say that it ended.
        assert 1 <= len(ran) <= len(job["attempts"]), (ran, reasons)
    wait_for(lambda: not own_jobs(cluster), "Slurm's jobs to end")
    assert not server.agents()
    wait_for(lambda: not glob.glob(f"{server.data}/nodes/*/attempts/*"), "the nodes to be cleaned")
