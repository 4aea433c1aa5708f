"""Edits of sources for a measurement, which are removed when the bench ends.

A bench that is killed cannot remove its edit. The edit is a last line that nothing else writes, so
the next bench finds and removes it; tests/tidy rejects it meanwhile.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from types import FrameType

EDIT = re.compile(r"^namespace edited_\d+ \{\}\n?\Z", re.M)


def remove_edit(path: str) -> bool:
    """Removes the edit of an ended bench. Returns whether there was one."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    original = EDIT.sub("", text)
    if original == text:
        return False
    with open(path, "w", encoding="utf-8") as file:
        file.write(original)
    return True


def remove_edits(paths: Iterable[str]) -> list[str]:
    """Removes the edits that ended benches left. Returns the paths of these sources."""
    return [path for path in paths if remove_edit(path)]


@contextlib.contextmanager
def edited(path: str) -> Iterator[None]:
    """Appends a line to the source that no compiler cache has seen, and removes it at the end."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"namespace edited_{time.time_ns()} {{}}\n")
        yield
    finally:
        remove_edit(path)


def end_on_signals() -> None:
    """Makes SIGTERM and SIGHUP raise an exception, so that edits are removed."""

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
