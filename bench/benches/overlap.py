"""Measures the reduction of gradients by name (negotiation and fusion)."""

from __future__ import annotations

import json
import os
import subprocess

from bench import progress
from bench.peers import open_mpi
from bench.rows import BIN, Row, row

NAME_ROUNDS, NAME_STEPS = 5, 5
RESNET_50_BYTES = 25_557_032 * 4


def by_name(ranks: int, links: str) -> list[list[float]]:
    """Returns the milliseconds of one run's rounds: (by name, one call per gradient)."""
    done = subprocess.run(
        [os.path.join(BIN, "reduce_by_name"), str(ranks), links, str(NAME_STEPS)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    output = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        [one["milliseconds"] for one in output if one["side"] == side] for side in ("ours", "peer")
    ]


def overlap() -> list[Row]:
    """Compares the reduction of ResNet-50's gradients by name, fused in the background, with one
    call per gradient and with a single allreduce of the same size."""
    rows = []
    for ranks, links, transport, where in (
        (2, "shared", "vader", "2 ranks"),
        (4, "shared", "vader", "4 ranks"),
        (2, "tcp", "tcp", "2 ranks, TCP"),
    ):
        mine, each, whole = [], [], []
        for _ in progress.rounds(range(NAME_ROUNDS)):
            fused, apart = by_name(ranks, links)
            mine += fused
            each += apart
            whole.append(open_mpi(ranks, RESNET_50_BYTES, transport)() / 1e3)
        case = f"{where}, 161 tensors, 102 MB in total"
        rows += [
            row("overlap", case, "ms", mine, each, "a call for each", "shown", lambda a, b: True),
            row(
                "overlap",
                case,
                "ms",
                mine,
                whole,
                "Open MPI, one sum of as many bytes",
                "shown",
                lambda a, b: True,
            ),
        ]
    return rows
