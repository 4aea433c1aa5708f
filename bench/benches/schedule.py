"""Measures the scheduler without a server."""

from __future__ import annotations

import json
import os
import subprocess

from bench import progress
from bench.loads import values
from bench.rows import BIN, Row, row

SCHEDULE_ROUNDS = 3
# Mean wait to admission that Kueue publishes for its baseline, by class: the maximum that its own
# tests allow.
KUEUE_SECONDS = {"large": 6.7, "medium": 77, "small": 215}
KUEUE_USE_MIN = 0.58


def schedule() -> list[Row]:
    """Measures the scheduler without a server: placements per second on one core, growth, and
    Kueue's published baseline."""

    def one(mode: str) -> dict[str, float]:
        output: dict[str, float] = json.loads(
            subprocess.run(
                [os.path.join(BIN, "schedule_clusters"), mode],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        return output

    rates = [one("rate") for _ in progress.rounds(range(SCHEDULE_ROUNDS))]
    growth, kueue = one("growth"), one("kueue")
    rows = [
        row(
            "schedule",
            "100,000 waiting jobs, 5,000 hosts, one core",
            "placements/s",
            values(rates, "placements_per_second"),
            None,
            None,
            ">= 5000",
            lambda ours, peer: ours >= 5000,
        ),
        row(
            "schedule",
            "the same, an iteration with its snapshot",
            "ms",
            values(rates, "turn_ms"),
            None,
            None,
            "shown",
            lambda ours, peer: True,
        ),
        row(
            "schedule",
            "0 -> 4096 vCPU, machines come in 30 s",
            "s",
            [growth["grown_seconds"]],
            None,
            None,
            "shown",
            lambda ours, peer: True,
        ),
        row(
            "schedule",
            "4096 -> 0 vCPU, idle for 60 s",
            "s",
            [growth["gone_seconds"] - growth["over_seconds"]],
            None,
            None,
            "shown",
            lambda ours, peer: True,
        ),
    ]
    for name, seconds in KUEUE_SECONDS.items():
        rows.append(
            row(
                "schedule",
                f"Kueue's baseline, mean wait of {name}",
                "s",
                [kueue[f"{name}_s"]],
                [seconds],
                "Kueue, as published: with an API server; ours is simulated",
                "no more than Kueue's",
                lambda ours, peer: ours <= peer,
            )
        )
    return rows + [
        row(
            "schedule",
            "Kueue's baseline, use of the queues",
            "of 1",
            [kueue["used"]],
            [KUEUE_USE_MIN],
            "Kueue, as published",
            ">= 0.58",
            lambda ours, peer: ours >= KUEUE_USE_MIN,
        ),
        row(
            "schedule",
            "Kueue's baseline, useful: without what evictions threw away",
            "of 1",
            [kueue["useful"]],
            [KUEUE_USE_MIN],
            "Kueue, as published",
            ">= 0.58",
            lambda ours, peer: ours >= KUEUE_USE_MIN,
        ),
        row(
            "schedule",
            "Kueue's baseline, evictions",
            "workloads",
            [kueue["evictions"]],
            None,
            None,
            "shown",
            lambda ours, peer: True,
        ),
    ]
