"""Defines the rows of the bench, and the paths of programs and results.

A row: {bench, case, unit, ours, peer, peer_name, ratio, target, met}; ours and peer are [min,
median, max]. Ratios are of medians.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Sequence
from typing import TypedDict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(ROOT, "build", "release", "bin")
RESULTS = os.path.join(ROOT, "bench", "results")


def spread(values: Sequence[float]) -> list[float]:
    return [round(min(values), 4), round(statistics.median(values), 4), round(max(values), 4)]


class Row(TypedDict):
    bench: str
    case: str
    unit: str
    ours: list[float]
    peer: list[float] | None
    peer_name: str | None
    ratio: float | None
    target: str
    met: bool


def row(
    bench: str,
    case: str,
    unit: str,
    ours: Sequence[float],
    peer: Sequence[float] | None,
    peer_name: str | None,
    target: str,
    met: Callable[[float, float], bool],
) -> Row:
    """`met` is a function of (ours median, peer median), which is not a number without a peer."""
    our, their = spread(ours), spread(peer) if peer else None
    ratio = round(our[1] / their[1], 4) if their and their[1] else None
    return {
        "bench": bench,
        "case": case,
        "unit": unit,
        "ours": our,
        "peer": their,
        "peer_name": peer_name,
        "ratio": ratio,
        "target": target,
        "met": met(our[1], their[1] if their else math.nan),
    }
