"""Tests two servers with one ledger in PostgreSQL: one writes, and the other becomes the writer
when the first is killed, suspended or disconnected. Nothing that was acknowledged is lost, and
nothing runs twice."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.config import Config

from tests import trainyard_server
from tests.nodes import make_queue
from tests.postgres_server import Postgres, Relay
from tests.trainyard_server import Server, wait_for

POOL = "10.233.0.0/16"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    cluster = Postgres().start()
    yield cluster
    cluster.clean()


class Standby:
    """Is a second server of the same data directory, which is not ready before it is the writer."""

    def __init__(self, first: Server, url: str | None = None, listen: str = "127.0.0.1:0") -> None:
        self.first = first
        config = first.data.rstrip("/") + ".toml"
        if url:
            with open(config, encoding="utf-8") as file:
                text = re.sub(r'url = ".*"', f'url = "{url}"', file.read())
            config = first.data.rstrip("/") + "-second.toml"
            pathlib.Path(config).write_text(text, encoding="utf-8")
        self.log_path = first.data.rstrip("/") + f"-standby-{time.monotonic_ns()}.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [
                    trainyard_server.PROGRAM,
                    "serve",
                    "--data",
                    first.data,
                    "--listen",
                    listen,
                    "--config",
                    config,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def log_text(self) -> str:
        return pathlib.Path(self.log_path).read_text(encoding="utf-8", errors="replace")

    def address(self) -> str:
        """Returns the address of the standby, from its log."""
        found = wait_for(
            lambda: re.search(r"standby: the writer is .*listens=(\S+)", self.log_text()),
            "the second server to say that it is a standby",
        )
        return found[1]

    def wait_until_writer(self) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.log_text()[-3000:]
            return "serve: ready" in self.log_text()

        wait_for(ready, "the standby to take over", 60)

    def environment_of_first(self) -> None:
        """Makes the clients of `first` use this server."""
        with open(os.path.join(self.first.data, "server.json"), encoding="utf-8") as file:
            self.first.listen = json.load(file)["host_and_port"]
        exports = subprocess.run(
            [trainyard_server.PROGRAM, "env", "--data", self.first.data],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        self.first.env = dict(re.findall(r"^export (\w+)='(.*)'$", exports, re.M))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def patient(server: Server) -> BaseClient:
    """Returns a client that repeats requests while the writer has no lease, on a slow machine."""

    return server.boto("batch", config=Config(retries={"mode": "standard", "max_attempts": 8}))


def write_mark(server: Server) -> str:
    """Runs a job; returns its id."""
    batch: Any = patient(server)
    job: str = batch.submit_job(jobName="one", jobQueue="queue", jobDefinition="mark")["jobId"]

    def over() -> bool:
        status = batch.describe_jobs(jobs=[job])["jobs"][0]["status"]
        assert status != "FAILED"
        return bool(status == "SUCCEEDED")

    wait_for(over, "the job")
    return job


# The lease of tests that wait for its expiry, and of other tests, whose writer must keep it on a
# slow machine.
SHORT_LEASE_SECONDS, LONG_LEASE_SECONDS = 3, 15


def a_server(
    tmp_path: pathlib.Path,
    postgres: Postgres,
    database: str,
    url: str | None = None,
    lease_seconds: int = SHORT_LEASE_SECONDS,
) -> Server:
    postgres.sql(f"CREATE DATABASE {database}")
    marks = tmp_path / "marks"
    marks.mkdir()
    os.chown(marks, 1000, 1000)
    config = (
        f'[network]\npool = "{POOL}"\n[ledger]\nurl = "{url or postgres.url(database)}"\n'
        f"lease_seconds = {lease_seconds}\n"
        '[[machine]]\nname = "m1"\ncpus = 64.0\nmemory_gib = 256.0\n'
        f'[volumes."/marks"]\ndirectory = "{marks}"\n[posix_users]\n"*" = "1000:1000"\n'
    )
    return Server(tmp_path / "data", config).start()


def get(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Submitter(threading.Thread):
    """Creates jobs one after another, and records those that were acknowledged. Each appends one
    line to its own file when it runs."""

    def __init__(self, server: Server, marks: pathlib.Path, prefix: str) -> None:
        super().__init__()
        self.client = server.boto("batch")
        self.marks, self.prefix = marks, prefix
        self.acknowledged: list[str] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            try:
                self.client.submit_job(
                    jobName=f"{self.prefix}-{number}", jobQueue="queue", jobDefinition="mark"
                )
            except Exception:
                self.stopping.wait(0.05)
                continue
            self.acknowledged.append(f"{self.prefix}-{number}")


def prepare_queue(server: Server) -> None:
    batch: Any = patient(server)
    make_queue(batch, 64, "queue")
    batch.register_job_definition(
        jobDefinitionName="mark",
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["/bin/sh", "-c", "echo ran >> /marks/$AWS_BATCH_JOB_ID"],
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "64"},
            ],
            "volumes": [{"name": "marks", "host": {"sourcePath": "/marks"}}],
            "mountPoints": [{"sourceVolume": "marks", "containerPath": "/marks"}],
        },
    )


def all_jobs(server: Server) -> dict[str, list[dict[str, Any]]]:
    """Returns all jobs of the queue, by name."""
    found: dict[str, list[dict[str, Any]]] = {}
    batch: Any = patient(server)
    for status in (
        "SUBMITTED",
        "PENDING",
        "RUNNABLE",
        "STARTING",
        "RUNNING",
        "SUCCEEDED",
        "FAILED",
    ):
        pages = batch.get_paginator("list_jobs").paginate(jobQueue="queue", jobStatus=status)
        for page in pages:
            for job in page["jobSummaryList"]:
                found.setdefault(job["jobName"], []).append(job)
    return found


def check_jobs(server: Server, acknowledged: list[str], marks: pathlib.Path) -> None:
    assert acknowledged, "no job was acknowledged"

    def over() -> dict[str, list[dict[str, Any]]] | None:
        jobs = all_jobs(server)
        done = all(
            job["status"] in ("SUCCEEDED", "FAILED") for same in jobs.values() for job in same
        )
        return jobs if done else None

    jobs = wait_for(over, "all jobs to be over")
    assert set(acknowledged) <= set(jobs), "an acknowledged job is missing"
    for name in acknowledged:
        assert len(jobs[name]) == 1, f"{name} is there {len(jobs[name])} times"
    for same in jobs.values():
        for job in same:
            path = marks / job["jobId"]
            ran = path.read_text().splitlines() if path.exists() else []
            assert len(ran) <= 1, f"{job['jobName']} ran {len(ran)} times"
            if job["status"] != "SUCCEEDED" or len(ran) != 1:
                batch: Any = patient(server)
                described = batch.describe_jobs(jobs=[job["jobId"]])["jobs"][0]
                raise AssertionError(f"{job['jobName']}: {ran}: {described}")


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_a_standby_takes_over_from_a_writer_that_is_killed_or_stopped(
    tmp_path: pathlib.Path, postgres: Postgres, how: str
) -> None:
    marks = tmp_path / "marks"
    postgres_database = f"takeover_{how.lower()}"
    server = a_server(tmp_path, postgres, postgres_database)
    standby = Standby(server)
    submitters = []
    try:
        prepare_queue(server)
        address = standby.address()
        assert get(address, "/healthz") == (200, "ok\n")
        status, text = get(address, "/readyz")
        assert status == 503 and "standby: the writer is" in text, text
        shown = subprocess.run(
            [trainyard_server.PROGRAM, "status"],
            env=server.environment() | {"AWS_ENDPOINT_URL": f"http://{address}"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert shown.returncode == 1 and "standby: the writer is" in shown.stderr, shown.stderr
        submitters = [Submitter(server, marks, f"before-{n}") for n in range(2)]
        for each in submitters:
            each.start()
        wait_for(lambda: all(len(each.acknowledged) > 10 for each in submitters), "some jobs")
        began = time.monotonic()
        server.process.send_signal(getattr(signal, how))
        standby.wait_until_writer()
        took = time.monotonic() - began
        for each in submitters:
            each.stopping.set()
        if how == "SIGSTOP":
            # The new writer has ended the stopped one: it will never wake up.
            assert server.process.wait(30) == -signal.SIGKILL
        for each in submitters:
            each.join()
        standby.environment_of_first()
        after = Submitter(server, marks, "after")
        submitters.append(after)
        after.start()
        wait_for(lambda: len(after.acknowledged) > 5, "jobs of the new writer")
        after.stopping.set()
        after.join()
        check_jobs(server, [name for each in submitters for name in each.acknowledged], marks)
        print(f"taking over took {took:.1f} s")
        fencing = postgres.rows("SELECT fencing FROM trainyard_ledger.lease", postgres_database)
        assert fencing == [["2"]], "the start of the first server, and the takeover"
    finally:
        for each in submitters:
            each.stopping.set()
        standby.end()
        server.clean()


def test_a_writer_that_is_cut_off_serves_nothing_and_is_replaced(
    tmp_path: pathlib.Path, postgres: Postgres
) -> None:
    relay = Relay(postgres)
    server = a_server(tmp_path, postgres, "cut_off", relay.url("cut_off"))
    standby = None
    try:
        prepare_queue(server)
        write_mark(server)
        relay.cut()
        # Without a standby it waits for the database, and reports that.
        status, text = wait_for(
            lambda: (answer := get(server.listen, "/readyz"))[0] == 503 and answer, "the suspension"
        )
        assert "PostgreSQL server does not answer" in text
        status, text = get(server.listen, "/bucket/key")
        assert status == 503 and "PostgreSQL server does not answer" in text
        relay.restore()
        wait_for(lambda: get(server.listen, "/readyz")[0] == 200, "the writer to come back")
        write_mark(server)
        standby = Standby(server, postgres.url("cut_off"))
        standby.address()
        relay.cut()
        standby.wait_until_writer()
        assert server.process.wait(30) == -signal.SIGKILL
        standby.environment_of_first()
        write_mark(server)
    finally:
        relay.clean()
        if standby:
            standby.end()
        server.clean()


def test_a_former_writer_that_wakes_up_writes_nothing_and_ends(
    tmp_path: pathlib.Path, postgres: Postgres
) -> None:
    server = a_server(tmp_path, postgres, "wakes_up", lease_seconds=LONG_LEASE_SECONDS)
    submitter = None
    try:
        prepare_queue(server)
        write_mark(server)
        server.process.send_signal(signal.SIGSTOP)
        # Requests that are pending when the server continues.
        submitter = Submitter(server, tmp_path / "marks", "late")
        submitter.start()
        # A server on another machine has become the writer.
        postgres.sql(
            "UPDATE trainyard_ledger.lease SET fencing = fencing + 1, holder = 'elsewhere', "
            "expires = clock_timestamp() + interval '1 hour'",
            "wakes_up",
        )
        count = "SELECT count(*), max(sequence) FROM trainyard_ledger.commands"
        before = postgres.rows(count, "wakes_up")
        server.process.send_signal(signal.SIGCONT)
        assert server.process.wait(60) == 1
        assert "another server has become the writer of the ledger" in server.log_text()
        submitter.stopping.set()
        submitter.join()
        assert submitter.acknowledged == []
        assert postgres.rows(count, "wakes_up") == before
    finally:
        if submitter:
            submitter.stopping.set()
        server.clean()


def test_a_standby_takes_the_address_of_a_writer_that_is_stopped(
    tmp_path: pathlib.Path, postgres: Postgres
) -> None:
    server = a_server(tmp_path, postgres, "same_address", lease_seconds=LONG_LEASE_SECONDS)
    standby = Standby(server, listen=server.listen)
    try:
        prepare_queue(server)
        assert standby.address() == "no"
        job = write_mark(server)
        batch: Any = patient(server)
        running = batch.submit_job(
            jobName="running",
            jobQueue="queue",
            jobDefinition="mark",
            containerOverrides={
                "command": [
                    "/bin/sh",
                    "-c",
                    "echo ran >> /marks/$AWS_BATCH_JOB_ID; while [ ! -e /marks/end ]; do sleep 0.1;"
                    " done",
                ]
            },
        )["jobId"]
        marks = tmp_path / "marks"
        wait_for(lambda: (marks / running).exists(), "the job to run")
        server.stop()  # it exits with 0
        standby.wait_until_writer()
        assert batch.describe_jobs(jobs=[job])["jobs"][0]["status"] == "SUCCEEDED"
        # The job ran meanwhile, and its agent finds the new writer.
        (marks / "end").touch()
        wait_for(
            lambda: batch.describe_jobs(jobs=[running])["jobs"][0]["status"] == "SUCCEEDED",
            "the end of the job that was running",
        )
        assert (marks / running).read_text() == "ran\n"
        write_mark(server)
        # A standby ends when it is stopped.
        third = Standby(server)
        third.address()
        third.process.terminate()
        assert third.process.wait(30) == 0
    finally:
        standby.end()
        server.clean()


def test_a_restarted_server_leaves_its_address_to_the_new_writer(
    tmp_path: pathlib.Path, postgres: Postgres
) -> None:
    """A supervisor starts a killed writer again before its lease expires: at that moment the
    address is free, and the standby is not the writer yet."""
    server = a_server(tmp_path, postgres, "restarted", lease_seconds=LONG_LEASE_SECONDS)
    standby = Standby(server, listen=server.listen)
    restarted = None
    try:
        assert standby.address() == "no"
        server.kill()
        restarted = Standby(server, listen=server.listen)
        assert restarted.address() == server.listen
        restarted.process.send_signal(signal.SIGSTOP)  # the other one becomes the writer
        wait_for(lambda: "is the writer of the ledger" in standby.log_text(), "a new writer")
        restarted.process.send_signal(signal.SIGCONT)
        standby.wait_until_writer()
        assert "listens=no" in restarted.log_text()
        prepare_queue(server)
        write_mark(server)
        assert restarted.process.poll() is None
    finally:
        if restarted:
            restarted.end()
        standby.end()
        server.clean()


def test_a_restart_of_the_database_is_a_pause(tmp_path: pathlib.Path) -> None:
    own = Postgres().start()
    server = a_server(tmp_path, own, "restarts", lease_seconds=LONG_LEASE_SECONDS)
    try:
        prepare_queue(server)
        own.stop()
        wait_for(lambda: get(server.listen, "/readyz")[0] == 503, "the suspension")
        own.start()
        wait_for(lambda: get(server.listen, "/readyz")[0] == 200, "the writer to come back")
        write_mark(server)
        assert own.rows("SELECT fencing FROM trainyard_ledger.lease", "restarts") == [["1"]]
    finally:
        server.clean()
        own.clean()


def test_a_stalled_server_does_not_end_its_successor(
    tmp_path: pathlib.Path, postgres: Postgres
) -> None:
    """A server that stalled after it took the lease must not end its successor, whose fencing
    number in the record of the writer is larger."""
    server = a_server(tmp_path, postgres, "stalled", lease_seconds=LONG_LEASE_SECONDS)
    record = pathlib.Path(server.data) / "writer"
    successor = subprocess.Popen(["sleep", "600"])
    try:
        own, started, fencing = record.read_text().split()
        assert (int(own), fencing) == (server.process.pid, "1")
        server.stop()
        assert not record.exists()
        stat = pathlib.Path(f"/proc/{successor.pid}/stat").read_text()
        ticks = stat.rsplit(")", 1)[1].split()[19]
        text = f"{successor.pid} {ticks} 99\n"
        record.write_text(text)
        late = Standby(server)
        assert late.process.wait(60) == 1
        assert f"process {successor.pid} has become the writer" in late.log_text()
        assert successor.poll() is None
        assert record.read_text() == text
        # A writer with a smaller number is a predecessor.
        record.write_text(f"{successor.pid} {ticks} 1\n")
        server.start()
        assert successor.wait(30) == -signal.SIGKILL
        assert record.read_text().split()[2] == "3"
    finally:
        successor.kill()
        successor.wait()
        server.clean()
