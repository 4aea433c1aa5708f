"""Measures the time from a clone without a compiler cache until the demo trains."""

from __future__ import annotations

import collections
import os
import re
import shutil
import subprocess
import tempfile
import time

from bench.rows import ROOT, Row, row

DEMO_MINUTES_MAX, TEST_MINUTES_MAX = 6, 25
HOURS_MAX = 2
SHOWN_LINES = 80


def minutes_to(command: list[str], directory: str, pattern: str) -> float:
    """Runs a command, which must succeed; returns the minutes until a line of its output
    matches."""
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=os.environ | {"CCACHE_DISABLE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    found = None
    last: collections.deque[str] = collections.deque(maxlen=SHOWN_LINES)
    for line in process.stdout:
        last.append(line)
        if found is None and re.search(pattern, line):
            found = (time.monotonic() - began) / 60
    if process.wait(HOURS_MAX * 3600) != 0 or found is None:
        raise RuntimeError(
            f"{' '.join(command)} in {directory} ended with {process.returncode}, or never printed"
            f" {pattern}:\n{''.join(last)}"
        )
    return found


def row_of(about: str, minutes: float, minutes_max: int) -> Row:
    return row(
        "clone",
        f"a clone, to {about}",
        "min",
        [minutes],
        None,
        None,
        f"at most {minutes_max} min",
        lambda ours, peer: ours <= minutes_max,
    )


def clone() -> list[Row]:
    """Measures from a clone to the demo's first epoch; every source is compiled.

    With TRAINYARD_BENCH_TESTS=1 also to the end of ./yard test. Debian's packages are already
    installed; Python's are downloaded."""
    directory = tempfile.mkdtemp(prefix="trainyard-bench-")
    os.chmod(directory, 0o755)  # ordinary users run tests in it
    commands = [("demo", r"epoch +1/", "the demo's first epoch", DEMO_MINUTES_MAX)]
    if os.environ.get("TRAINYARD_BENCH_TESTS") == "1":
        commands.append(
            ("test", r"\d+ passed, 0 failed$", "the end of ./yard test", TEST_MINUTES_MAX)
        )
    rows = []
    for command, pattern, about, minutes_max in commands:
        tree = os.path.join(directory, command)
        began = time.monotonic()
        subprocess.run(["git", "clone", "-q", ROOT, tree], check=True)
        cloned = (time.monotonic() - began) / 60
        minutes = cloned + minutes_to(["./yard", command], tree, pattern)
        rows.append(row_of(about, minutes, minutes_max))
    shutil.rmtree(directory)  # after a failure the trees are kept, for their logs
    return rows
