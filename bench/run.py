"""Runs benches, whose measurements are interleaved with those of peers; prints a table and writes
bench/results/NAME.json.

  ./yard bench            all of them, without those of names.ONLY_BY_NAME
  ./yard bench NAME       one of them (an unknown NAME lists them)

rows.py defines a row. Machines are shared and noisy: a ratio within one run is more reliable than
times of two runs."""

from __future__ import annotations

import datetime
import importlib
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Sequence

from bench import plot, readme_figures
from bench.names import chosen, unknown_names
from bench.rows import RESULTS, Row


def machine() -> dict[str, str | int | float | None]:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*:\s*(.+)", file.read())
    with open("/proc/meminfo", encoding="utf-8") as file:
        found = re.search(r"MemTotal:\s+(\d+)", file.read())
    assert found, "/proc/meminfo has no MemTotal"
    memory = int(found[1]) / 1024 / 1024
    return {
        "cpu": model[1].strip() if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "kernel": platform.release().split("-")[0],
    }


def paint(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() else text


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def show(rows: Sequence[Row]) -> None:
    for one in rows:
        print(f"  {one['case']:<58} {number(one['ours'][1]):>10} {one['unit']:<11}", end="")
        if one["peer"]:
            print(
                f" next to {number(one['peer'][1]):>10}  ({one['peer_name']})  ratio"
                f" {paint('1', str(one['ratio']))}",
                end="",
            )
        print(
            f"  target: {one['target']} "
            f" {paint('32', 'met') if one['met'] else paint('31', 'missed')}"
        )


def bench_of(name: str) -> Callable[[], list[Row]]:
    function: Callable[[], list[Row]] = getattr(
        importlib.import_module(f"bench.benches.{name}"), name
    )
    return function


def first_sentence(bench: Callable[[], list[Row]]) -> str:
    return " ".join((bench.__doc__ or "").split()).split(". ")[0]


def main(names: Sequence[str]) -> int:
    if wrong := unknown_names(names):
        sys.exit(wrong)
    os.makedirs(RESULTS, exist_ok=True)
    missed = 0
    for name in chosen(names):
        bench = bench_of(name)
        print(f"{paint('1', name)}: {first_sentence(bench)}", flush=True)
        rows = bench()
        show(rows)
        missed += sum(not one["met"] for one in rows)
        with open(os.path.join(RESULTS, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(
                {"date": datetime.date.today().isoformat(), "machine": machine(), "rows": rows},
                file,
                indent=1,
            )
            file.write("\n")
        if any(one["peer"] for one in rows):
            plot.write(rows, os.path.join(RESULTS, name + ".svg"))
        readme_figures.write()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
