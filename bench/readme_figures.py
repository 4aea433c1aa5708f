"""Writes the table of figures in README.md, from bench/results.

  python -m bench.readme_figures

./yard bench does the same after each bench. A test of tests/tidy compares the two."""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

from bench.rows import RESULTS, ROOT, Row

README = os.path.join(ROOT, "README.md")
# The rows: all lines after the heading of the table.
TABLE = re.compile(r"(?<=\n\| \| Trainyard \| peer \|\n\|---\|---\|---\|\n)(\|.*\n)+")


class Figure(NamedTuple):
    label: str
    result: str  # bench/results/NAME.json
    case: str


FIGURES = [
    Figure(
        "accepted job to user process, one host",
        "start",
        "accepted -> user process, 1 host, runtime, no channel",
    ),
    Figure(
        "the same, two hosts", "start", "accepted -> user process, 2 hosts, runtime, no channel"
    ),
    Figure(
        "two hosts, right after the previous job",
        "back_to_back",
        "accepted -> user process, 2 hosts, right after the last job",
    ),
    Figure(
        "a cold image of 12 GiB in 40 layers, from a registry",
        "image",
        "cold image of 12288 MiB in 40 layers, registry on this machine",
    ),
    Figure(
        "log lines of one process, with 40 metric regexes",
        "logs",
        "lines of 100 bytes from one process, 40 regexes, none dropped",
    ),
    Figure("DescribeTrainingJob", "describe", "16 connections"),
    Figure("CreateTrainingJob, durable, 64 clients", "create", "64 connections, durable"),
    Figure("memory of an idle server", "idle", "resident memory after first requests"),
    Figure("allreduce of 25 MiB, 2 ranks", "collectives", "2 ranks, 25 MiB"),
    Figure("the same in registered memory", "collectives", "2 ranks, 25 MiB, registered"),
    Figure("allreduce of 1 KiB by torch.distributed", "torch", "2 ranks, all_reduce of 1 KiB"),
    Figure("64 MiB between two hosts, 2.5 Gbit/s", "links", "2 hosts, 2.5gbit, 64 MiB"),
]


def shown(value: float, unit: str) -> str:
    """Returns a value with three digits: "23,500 per second"."""
    if unit == "us" and value >= 1000:
        return shown(value / 1000, "ms")
    digits = float(f"{value:.3g}")
    number = f"{digits:,.0f}" if digits >= 100 else f"{digits:g}"
    return f"{number} per second" if unit.endswith("s/s") else f"{number} {unit}"


def rows_of(figure: Figure) -> list[Row]:
    """Returns the rows of a figure: one for each peer."""
    with open(os.path.join(RESULTS, f"{figure.result}.json"), encoding="utf-8") as file:
        rows: list[Row] = json.load(file)["rows"]
    found = [row for row in rows if row["case"] == figure.case]
    assert found, f"bench/results/{figure.result}.json has no row '{figure.case}'"
    return found


def table() -> str:
    lines = []
    for figure in FIGURES:
        rows = rows_of(figure)
        peers = ", ".join(
            f"{row['peer_name']}: {shown(row['peer'][1], row['unit'])}"
            for row in rows
            if row["peer"]
        )
        ours = shown(rows[0]["ours"][1], rows[0]["unit"])
        lines.append(f"| {figure.label} | {ours} | {peers} |\n")
    return "".join(lines).replace("|  |", "| |")


def write() -> None:
    with open(README, encoding="utf-8") as file:
        text = file.read()
    with open(README, "w", encoding="utf-8") as file:
        file.write(TABLE.sub(lambda _: table(), text))


if __name__ == "__main__":
    write()
