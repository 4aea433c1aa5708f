"""Compares the current programs with those of the last release."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench import progress
from bench.benches.back_to_back import block_milliseconds
from bench.benches.create import create_rounds
from bench.benches.describe import create_waiting, describe_rounds
from bench.benches.idle import resident_mebibytes
from bench.benches.logs import flood_rate
from bench.loads import (
    LARGE_MACHINE,
    SMALL_MACHINE,
    start_milliseconds,
    values,
    wait_for_removal,
    with_server,
)
from bench.peers import MIB, ours
from bench.rows import BIN, ROOT, Row, row
from tests.trainyard_server import Server
from tests.upgrade import last_release

ROUNDS = int(os.environ.get("TRAINYARD_BENCH_RELEASE_ROUNDS", "7"))
STARTS, LOAD_ROUNDS, ALLREDUCE_RUNS = 3, 4, 8  # in each round, on each side
# Not worse than 5%.
RATIO_MAX, RATE_RATIO_MIN = 1.05, 0.95


@dataclasses.dataclass(frozen=True)
class Side:
    name: str
    programs: str  # the folder
    image: str  # the name of the host's own file system


TODAY = Side("today", BIN, "trainyard/host")
RELEASE = Side(last_release.VERSION, last_release.PROGRAMS, last_release.HOST_IMAGE)

Found = dict[str, list[float]]  # case -> measurements

ONE_HOST = "accepted -> user process, 1 host, runtime, no channel"
TWO_HOSTS = "accepted -> user process, 2 hosts, runtime, no channel"
NEXT_JOB = "accepted -> user process, 2 hosts, right after the last job"
DESCRIBE = "DescribeTrainingJob, 16 connections"
CREATE = "CreateTrainingJob, 64 connections, durable"
LOGS = "log lines of 100 bytes from one process, 40 regexes"
IDLE = "resident memory after first requests"
ALLREDUCES = {
    "allreduce, 2 ranks, 1 KiB": 1024,
    "allreduce, 2 ranks, 1 MiB": MIB,
    "allreduce, 2 ranks, 25 MiB": 25 * MIB,
}
UNITS = {
    ONE_HOST: "ms",
    TWO_HOSTS: "ms",
    NEXT_JOB: "ms",
    DESCRIBE: "requests/s",
    CREATE: "jobs/s",
    LOGS: "MB/s",
    IDLE: "MiB",
} | dict.fromkeys(ALLREDUCES, "us")


def build_release() -> None:
    """Builds the last release's programs of the upgrade tests, and its allreduce."""
    print(f"  building {last_release.VERSION}, unless it is built", file=sys.stderr, flush=True)
    subprocess.run([os.path.join(ROOT, "tests", "upgrade", "prepare")], check=True)
    subprocess.run(
        ["ninja", "-C", last_release.BUILD, "reduce_with_ours"], check=True, stdout=sys.stderr
    )


@contextlib.contextmanager
def running(side: Side, config: str = "") -> Iterator[Server]:
    """Runs a new server of one side, and removes its data afterwards."""
    server = with_server(config, programs=side.programs).start()
    try:
        yield server
    finally:
        server.clean()
    # After a failure the data is kept, for its logs.
    with open("/proc/self/mounts", encoding="utf-8") as file:
        assert server.data not in file.read(), f"a mount is left below {server.data}"
    shutil.rmtree(os.path.dirname(server.data))


def measure_starts(side: Side) -> Found:
    """Starts jobs after the previous one has been removed, then a block of jobs back to back. The
    first job of a server does not count."""
    starts: Found = {ONE_HOST: [], TWO_HOSTS: []}
    with running(side, LARGE_MACHINE) as server:
        server.boto("s3").create_bucket(Bucket="yard")
        sagemaker, logs = server.boto("sagemaker"), server.boto("logs")

        def start(name: str, hosts: int) -> float:
            measured = start_milliseconds(sagemaker, logs, name, hosts, image=side.image)
            wait_for_removal(server)
            return measured

        start("first", 2)
        for number in range(STARTS):
            starts[ONE_HOST].append(start(f"one-{number}", 1))
            starts[TWO_HOSTS].append(start(f"two-{number}", 2))
        following = block_milliseconds(sagemaker, logs, "next", image=side.image)
        wait_for_removal(server)
    return starts | {NEXT_JOB: following}


ONE_ROUND = ("--rounds", "1", "--peer", "no")


def one_rate(loaded: dict[str, list[dict[str, Any]]]) -> list[float]:
    return values(loaded["ours"], "requests_per_second")


def measure_rates(order: Sequence[Side]) -> dict[Side, Found]:
    """Runs both servers at once and loads them in turn, each time for two seconds or less: on a
    machine with neighbours a rate changes by half within seconds. The current load_api loads both
    sides, so that only the servers differ."""
    found: dict[Side, Found] = {side: {DESCRIBE: [], CREATE: []} for side in order}
    with contextlib.ExitStack() as stack:
        servers = {side: stack.enter_context(running(side, SMALL_MACHINE)) for side in order}
        for side, server in servers.items():
            create_waiting(server, image=side.image)
        for _ in range(LOAD_ROUNDS):
            for side, server in servers.items():
                found[side][DESCRIBE] += one_rate(describe_rounds(server, *ONE_ROUND))
        for number in range(LOAD_ROUNDS):
            for side, server in servers.items():
                names = ("--prefix", f"made-{number}")
                loaded = create_rounds(server, *ONE_ROUND, *names, image=side.image)
                found[side][CREATE] += one_rate(loaded)
    return found


def measure_logs(side: Side) -> Found:
    with running(side, LARGE_MACHINE) as server:
        server.boto("s3").create_bucket(Bucket="yard")
        rate, dropped = flood_rate(
            server.boto("sagemaker"), server.boto("logs"), "flood", image=side.image
        )
    if dropped:
        print(f"  {side.name} dropped log lines: its rate is too high", file=sys.stderr)
    return {LOGS: [rate]}


def measure_idle(side: Side) -> Found:
    with running(side) as server:
        return {IDLE: [resident_mebibytes(server)]}


# Each measures both sides, the first of a sequence first.
Measure = Callable[[Sequence[Side]], dict[Side, Found]]


def measure_allreduces(order: Sequence[Side]) -> dict[Side, Found]:
    """Runs the programs of both sides in turn: the time of a run depends on which pages of memory
    it was given."""
    found: dict[Side, Found] = {side: {case: [] for case in ALLREDUCES} for side in order}
    for case, size in ALLREDUCES.items():
        runs = {side: ours(2, size, programs=side.programs) for side in order}
        for _ in range(ALLREDUCE_RUNS):
            for side, run in runs.items():
                found[side][case].append(run())
    return found


def one_by_one(measure: Callable[[Side], Found]) -> Measure:
    return lambda order: {side: measure(side) for side in order}


MEASURES: Sequence[Measure] = (
    one_by_one(measure_starts),
    measure_rates,
    one_by_one(measure_logs),
    one_by_one(measure_idle),
    measure_allreduces,
)


def row_of(case: str, today: Sequence[float], peer: Sequence[float]) -> Row:
    is_rate = UNITS[case].endswith("/s")
    return row(
        "release",
        case,
        UNITS[case],
        today,
        peer,
        last_release.VERSION,
        f"ratio >= {RATE_RATIO_MIN}" if is_rate else f"ratio <= {RATIO_MAX}",
        lambda our, their: our >= RATE_RATIO_MIN * their if is_rate else our <= RATIO_MAX * their,
    )


def release() -> list[Row]:
    """Measures the current programs next to those of the last release. Measurements alternate
    between the two sides, and so does the side that is first."""
    build_release()
    found = {side: {case: list[float]() for case in UNITS} for side in (TODAY, RELEASE)}
    for number in progress.rounds(range(ROUNDS)):
        for measure in MEASURES:
            order = (RELEASE, TODAY) if number % 2 else (TODAY, RELEASE)
            for side, measured in measure(order).items():
                for case, amounts in measured.items():
                    found[side][case] += amounts
    return [row_of(case, found[TODAY][case], found[RELEASE][case]) for case in UNITS]
