"""Runs a function of programs.py, or of another file here, in local ranks that connect through a
file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS_MAX = 600  # messages of 4 GiB, next to other work, take minutes
# Ranks in PID namespaces of their own cannot share memory, as ranks on two hosts: they use TCP.
APART = ["unshare", "--pid", "--fork", "--kill-child"]
TRANSPORTS = {"shared memory": [], "tcp": APART}  # prefixes of the ranks' commands


def loopback_bytes() -> int:
    """Returns the bytes that the loopback interface has received."""
    with open("/proc/net/dev", encoding="utf-8") as file:
        (line,) = (line for line in file if line.strip().startswith("lo:"))
    return int(line.split()[1])


class Rank(subprocess.Popen[bytes]):
    """Is a process, with its number and the folder of its output."""

    folder: str
    rank: int


class Ended(Exception):
    """Raised when a rank failed."""


def start(
    program: str,
    ranks: int,
    backend: str = "trainyard",
    arguments: Sequence[str] = (),
    only: Iterable[int] | None = None,
    programs: str = "programs.py",
    within: Callable[[int], list[str]] = lambda rank: [],
    transport: str = "shared memory",
    python: str = sys.executable,
    **variables: str,
) -> list[Rank]:
    """Starts the processes of all ranks, or of some; each prints its result as JSON in the last
    line. `within` and `transport`: prefixes of the ranks' commands."""
    folder = tempfile.mkdtemp(prefix="ranks-")
    processes = []
    for rank in only or range(ranks):
        env = dict(
            os.environ,
            OMP_NUM_THREADS="1",
            GLOO_SOCKET_IFNAME="lo",
            RANK=str(rank),
            WORLD_SIZE=str(ranks),
            LOCAL_RANK=str(rank),
            LOCAL_WORLD_SIZE=str(ranks),
            MEET_AT="file://" + os.path.join(folder, "store"),
            TRAINYARD_RENDEZVOUS=folder,
            BACKEND=backend,
            PYTHONPATH=os.path.dirname(os.path.dirname(HERE)),
        )
        env.update(variables)
        with (
            open(os.path.join(folder, f"out-{rank}"), "wb") as out,
            open(os.path.join(folder, f"err-{rank}"), "wb") as err,
        ):
            process = Rank(
                [
                    *within(rank),
                    *TRANSPORTS[transport],
                    python,
                    os.path.join(HERE, programs),
                    program,
                    *arguments,
                ],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        process.folder, process.rank = folder, rank
        processes.append(process)
    return processes


def read(process: Rank, name: str) -> str:
    with open(
        os.path.join(process.folder, f"{name}-{process.rank}"), encoding="utf-8", errors="replace"
    ) as file:
        return file.read()


def finish(processes: Sequence[Rank]) -> list[Any]:
    """Waits for all ranks; returns their results."""
    results = []
    try:
        for process in processes:
            process.wait(SECONDS_MAX)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    for process in processes:
        if process.returncode != 0:
            raise Ended(
                f"rank {process.rank} ended with"
                f" {process.returncode}:\n{read(process, 'err')[-6000:]}"
            )
        results.append(json.loads(read(process, "out").splitlines()[-1]))
    return results


def run(program: str, ranks: int, **more: Any) -> list[Any]:
    return finish(start(program, ranks, **more))
