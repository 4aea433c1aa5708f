"""Runs one allreduce with our collectives or with a peer, and returns microseconds."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable

from bench.rows import BIN, ROOT

MIB = 1 << 20
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def microseconds(*command: str, **environment: str) -> float:
    """Returns the measurement of rank 0 of one run. A run that fails ends the bench."""
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env=dict(os.environ, **environment),
        timeout=120,
    )
    return float(json.loads(done.stdout.strip().splitlines()[-1])["microseconds"])


def ours(
    ranks: int, size: int, kind: str = "f32", links: str = "ordinary", programs: str = BIN
) -> Callable[[], float]:
    return lambda: microseconds(
        os.path.join(programs, "reduce_with_ours"), str(ranks), str(size), kind, links
    )


def open_mpi(ranks: int, size: int, transport: str = "vader") -> Callable[[], float]:
    words = [
        "mpirun.openmpi",
        "-np",
        str(ranks),
        "--oversubscribe",
        "--mca",
        "pml",
        "ob1",
        "--mca",
        "btl",
        "self," + transport,
    ]
    words += ["--mca", "btl_tcp_if_include", "lo"] if transport == "tcp" else []
    return lambda: microseconds(
        *words, os.path.join(BIN, "reduce_with_mpi"), str(size), **MPI_AS_ROOT
    )


def mpich(ranks: int, size: int) -> Callable[[], float]:
    return lambda: microseconds(
        "mpirun.mpich",
        "-np",
        str(ranks),
        "-iface",
        "lo",
        os.path.join(BIN, "reduce_with_mpich"),
        str(size),
    )


def gloo(ranks: int, size: int) -> Callable[[], float]:
    def run() -> float:
        with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as store:
            return microseconds(os.path.join(BIN, "reduce_with_gloo"), str(ranks), str(size), store)

    return run
