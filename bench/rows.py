"""Rows of the bench, and where things lie.

A row: {bench, case, unit, ours, peer, peer_name, ratio, target, met}; ours and peer are [min,
median, max]. Ratios are of medians.
"""

import os
import statistics

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(ROOT, "build", "release", "bin")
RESULTS = os.path.join(ROOT, "bench", "results")


def spread(values):
    return [round(min(values), 4), round(statistics.median(values), 4), round(max(values), 4)]


def row(bench, case, unit, ours, peer, peer_name, target, met):
    """`met` is a function of (ours median, peer median)."""
    ours, peer = spread(ours), spread(peer) if peer else None
    ratio = round(ours[1] / peer[1], 4) if peer and peer[1] else None
    return {
        "bench": bench,
        "case": case,
        "unit": unit,
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name,
        "ratio": ratio,
        "target": target,
        "met": bool(met(ours[1], peer[1] if peer else None)),
    }
