"""Measures the scheduler without a server."""

from __future__ import annotations

import json
import os
import subprocess
from typing import NamedTuple

from bench import progress
from bench.loads import values
from bench.rows import BIN, Row, row

SCHEDULE_ROUNDS = 3


class Kueue(NamedTuple):
    """Figures that Kueue publishes for a configuration of its performance tests."""

    mode: str
    name: str
    seconds: dict[str, float]  # the mean wait to admission, by class
    use: float  # of the queues' quotas


KUEUE = [
    Kueue("kueue", "baseline", {"large": 16.5, "medium": 76.8, "small": 215.5}, 0.559),
    Kueue(
        "kueue-topology",
        "topology",
        {"large": 38, "medium": 106, "small": 238},
        0.624,
    ),
    Kueue(
        "kueue-large",
        "large scale",
        {"large": 106, "medium": 256, "small": 700},
        0.386,
    ),
]


def schedule() -> list[Row]:
    """Measures the scheduler without a server: placements per second on one core, growth, and
    the configurations of Kueue's performance tests."""

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
    growth = one("growth")
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
    for published in progress.rounds(KUEUE):
        rows += kueue_rows(published, one(published.mode))
    return rows


def kueue_rows(published: Kueue, ours: dict[str, float]) -> list[Row]:
    """Ours is simulated, without the time that planning takes, which is a row of its own; Kueue's
    figures are of its scheduler with an API server."""
    case = f"Kueue's {published.name}"
    rows = [
        row(
            "schedule",
            f"{case}, mean wait of {name}",
            "s",
            [ours[f"{name}_s"]],
            [seconds],
            "Kueue, as published",
            "no more than Kueue's",
            lambda mine, peer: mine <= peer,
        )
        for name, seconds in published.seconds.items()
    ]
    for key, about in (
        ("used", "use of the queues"),
        ("useful", "useful"),
    ):
        rows.append(
            row(
                "schedule",
                f"{case}, {about}",
                "of 1",
                [ours[key]],
                [published.use],
                "Kueue, as published",
                f">= {published.use}",
                lambda mine, peer: mine >= peer,
            )
        )
    shown = {"evictions": "workloads", "cpu_s": "s of one core, all plans and the simulation"}
    if ours["gangs"]:
        shown["in_one_rack"] = f"of {ours['gangs']:.0f} gangs"
    for key, unit in shown.items():
        rows.append(
            row(
                "schedule",
                f"{case}, {key.replace('_', ' ')}",
                unit,
                [ours[key]],
                None,
                None,
                "shown",
                lambda mine, peer: True,
            )
        )
    return rows
