"""Measures how long a rank waits for its input, so that a slow loader can be distinguished from
slow computation: the fault SlowLoader of `trainyard describe`.

    for batch in trainyard.loading.timed(loader):
        ...

The time is added to the record of this rank in the activity table of its host, which the agent
reads (src/foundation/base/activity_table.hpp has the layout). Outside of a job, and while this
process has no group of ranks, nothing is counted.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Batch = TypeVar("Batch")

_SLOTS = 512
_SLOT_BYTES = 32
_RECORD_BYTES = 192
_TABLE_BYTES = _SLOTS * (_SLOT_BYTES + _RECORD_BYTES)
_LOADING_OFFSET = 88  # offset in a record, which begins with its writer
_NUMBER = struct.Struct("<Q")


class _Table:
    """The activity table of this host. Confined to the thread that loads."""

    def __init__(self) -> None:
        self._bytes: mmap.mmap | None = None
        self._record = 0
        path = os.environ.get("TRAINYARD_ACTIVITY", "")
        if not path:
            return
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return
        try:
            # An agent of an earlier release makes a table without records.
            if os.fstat(descriptor).st_size >= _TABLE_BYTES:
                self._bytes = mmap.mmap(descriptor, _TABLE_BYTES)
        except OSError:
            pass
        finally:
            os.close(descriptor)

    def add(self, nanoseconds: int) -> None:
        if self._bytes is None or not self._find(self._bytes):
            return
        at = self._record + _LOADING_OFFSET
        total = _NUMBER.unpack_from(self._bytes, at)[0] + max(nanoseconds, 0)
        _NUMBER.pack_into(self._bytes, at, total & (2**64 - 1))

    def _find(self, table: mmap.mmap) -> bool:
        """Finds the record that a group of this process writes."""
        process = os.getpid()
        if self._record and _NUMBER.unpack_from(table, self._record)[0] >> 32 == process:
            return True
        for slot in range(_SLOTS):
            record = _SLOTS * _SLOT_BYTES + slot * _RECORD_BYTES
            if _NUMBER.unpack_from(table, record)[0] >> 32 == process:
                self._record = record
                return True
            if _NUMBER.unpack_from(table, slot * _SLOT_BYTES)[0] == 0:
                break  # slots are occupied in their order
        return False


def timed(loader: Iterable[Batch]) -> Iterator[Batch]:
    """Yields the loader's items, and adds up the time of waiting for them."""
    table = _Table()
    batches = iter(loader)
    while True:
        begin = time.monotonic_ns()
        try:
            batch = next(batches)
        except StopIteration:
            return
        table.add(time.monotonic_ns() - begin)
        yield batch
