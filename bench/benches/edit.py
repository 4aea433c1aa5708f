"""Measures the time from a change of one source to the result of its module's tests, for each
module in the preset dev, which compiles each source alone, and the time of a build without changes.

All objects of dev are compiled first: some 40 minutes on two processors, if ccache has none."""

from __future__ import annotations

import glob
import os
import statistics
import subprocess
import sys
import time

from bench import edits, progress
from bench.rows import ROOT, Row, row
from tests import reach

EDIT_SECONDS_MAX = 15
UNCHANGED_SECONDS_MAX = 1
UNCHANGED_BUILDS = 5
EDITED, UNCHANGED = (os.path.join(ROOT, "build", preset) for preset in ("dev", "release"))


def source_of(folder: str) -> str | None:
    """Returns the module's source of median size."""
    sources = [
        path
        for path in glob.glob(os.path.join(folder, "**", "*.cpp"), recursive=True)
        if not path.endswith(("_test.cpp", "_fuzz.cpp")) and "/programs/" not in path
    ]
    return sorted(sources, key=os.path.getsize)[len(sources) // 2] if sources else None


def ninja(folder: str, *targets: str) -> None:
    subprocess.run(["ninja", "-C", folder, *targets], check=True, stdout=subprocess.DEVNULL)


def build(module: str) -> None:
    ninja(EDITED, f"{module}_test")


def seconds_without_changes() -> list[float]:
    """Measures builds of a tree in which everything is built."""
    ninja(UNCHANGED)
    seconds = []
    for _ in range(UNCHANGED_BUILDS):
        began = time.monotonic()
        ninja(UNCHANGED)
        seconds.append(time.monotonic() - began)
    return seconds


def seconds_of(module: str, folder: str, source: str) -> float:
    """Measures one edit; afterwards the source is restored and built again."""
    try:
        with edits.edited(source):
            began = time.monotonic()
            build(module)
            subprocess.run(
                [os.path.join(EDITED, "bin", f"{module}_test"), "--gtest_brief=1"],
                check=True,
                cwd=folder,
                stdout=subprocess.DEVNULL,
            )
            return time.monotonic() - began
    finally:
        build(module)


def edit() -> list[Row]:
    """Measures the time from an edit to the result of the module's tests, over all modules, and the
    time of a build without changes."""
    edits.end_on_signals()
    subprocess.run(["cmake", "--preset", "dev"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    every_source = glob.glob(os.path.join(ROOT, "src", "**", "*.cpp"), recursive=True)
    for source in edits.remove_edits(every_source):
        print(f"removed the edit of a killed bench from {source}", file=sys.stderr)
    unchanged = seconds_without_changes()
    seconds: dict[str, float] = {}
    for module in progress.rounds(reach.tested()):
        folder = os.path.join(ROOT, "src", reach.folder_of(module))
        if median := source_of(folder):
            build(module)
            seconds[module] = seconds_of(module, folder, median)
    slowest = sorted(seconds, key=lambda module: seconds[module])[-3:]

    def shown(case: str, values: list[float], target: str, met: bool) -> Row:
        return row("edit", case, "s", values, None, None, target, lambda ours, peer: met)

    median_seconds = statistics.median(seconds.values())
    return [
        shown(
            f"one changed source to the test result, over {len(seconds)} modules",
            list(seconds.values()),
            f"median at most {EDIT_SECONDS_MAX} s",
            median_seconds <= EDIT_SECONDS_MAX,
        ),
        shown(
            "build without changes",
            unchanged,
            f"median at most {UNCHANGED_SECONDS_MAX} s",
            statistics.median(unchanged) <= UNCHANGED_SECONDS_MAX,
        ),
    ] + [
        shown(f"of these the slowest: {module}", [seconds[module]], "shown", True)
        for module in slowest
    ]
