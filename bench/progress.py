"""Shows the progress of a bench that takes minutes: a bar in a terminal, otherwise one line per
round."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

WIDTH = 24
Number = TypeVar("Number")


def line(done: int, total: int, seconds: float) -> str:
    """`done` of `total` rounds took `seconds`."""
    left = f", some {seconds / done * (total - done):.0f} s to go" if 0 < done < total else ""
    filled = WIDTH * done // total
    return f"  [{'#' * filled}{'.' * (WIDTH - filled)}] {done} of {total}, {seconds:.0f} s{left}"


def rounds(numbers: Iterable[Number], out: TextIO = sys.stderr) -> Iterator[Number]:
    """Yields the numbers, and shows the progress on `out`."""
    everything, began = list(numbers), time.monotonic()
    begin, end = ("\r\033[K", "") if out.isatty() else ("", "\n")
    for done, number in enumerate(everything):
        if out.isatty():
            print(
                begin + line(done, len(everything), time.monotonic() - began),
                end=end,
                file=out,
                flush=True,
            )
        yield number
        if not out.isatty():
            print(line(done + 1, len(everything), time.monotonic() - began), file=out, flush=True)
    print(begin, end="", file=out, flush=True)
