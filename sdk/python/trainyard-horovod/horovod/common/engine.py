"""The compiled engine (sdk/python/engine), by ctypes: it takes addresses,
so it fits every torch and every TensorFlow.

The distribution trainyard brings it, in the package of that name.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

import trainyard

from horovod.common._declarations import (
    TRAINYARD_ENGINE_VERSION,
    Launch,
    Options,
    Request,
    Seat,
    declare,
)
from horovod.common.exceptions import HorovodInternalError

__all__ = ["Engine", "Launch", "Options", "Request", "Seat", "library", "said"]

VERSION = TRAINYARD_ENGINE_VERSION
_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(trainyard.__file__)), "_engine.so")
_INSTALL = (
    "pip install --force-reinstall --no-cache-dir ./sdk/python ./sdk/python/trainyard-horovod (in a"
    " checkout of Trainyard)"
)

# As numbered in collectives/types.hpp, fusion/request.hpp and compress/compression.hpp.
F64, F32, F16, BF16, F8E4M3, F8E5M2, I64, I32, I16, I8, U8, BOOL = range(12)
ITEM_BYTES = [8, 4, 2, 2, 1, 1, 8, 4, 2, 1, 1, 1]
SUM, AVERAGE, MINIMUM, MAXIMUM, PRODUCT = range(5)
ALLREDUCE, ADASUM, ALL_GATHER, BROADCAST, REDUCE_SCATTER, ALL_TO_ALL, BARRIER = range(7)
INT8, LOW_RANK = 3, 4

_int, _long, _size = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64
_loaded: ctypes.CDLL | None = None


def _check_version(here: int) -> None:
    if here != VERSION:
        raise ImportError(
            f"the compiled engine of trainyard ({_LIBRARY}) is of version {here}, and"
            f" trainyard-horovod needs version {VERSION}: they come from two checkouts. Install"
            f" both again: {_INSTALL}"
        )


def library() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        try:
            loaded = ctypes.CDLL(_LIBRARY)
        except OSError as failure:
            raise ImportError(
                f"the compiled engine of trainyard cannot be loaded here: {failure}. It is compiled"
                f" for one kind of processor and system. Install it again: {_INSTALL}"
            ) from failure
        _check_version(loaded.engine_version())
        declare(loaded)
        _loaded = loaded
    return _loaded


def said() -> str:
    text: bytes = library().engine_error()
    return text.decode(errors="replace")


class Engine:
    """One group of ranks, between init() and shutdown()."""

    def __init__(self, options: Options) -> None:
        self._library = library()
        self._engine: int | None = self._library.engine_join(ctypes.byref(options))
        if not self._engine:
            raise HorovodInternalError(said())
        self.rank: int = self._library.engine_rank(self._engine)
        self.size: int = self._library.engine_ranks(self._engine)
        self.heard: list[str] = [
            self._library.engine_heard(self._engine, rank).decode() for rank in range(self.size)
        ]
        self.hosts: list[int] = [
            self._library.engine_host_of(self._engine, rank) for rank in range(self.size)
        ]

    def leave(self) -> None:
        engine, self._engine = self._engine, None
        if engine:
            self._library.engine_leave(engine)

    def _alive(self) -> int:
        if not self._engine:
            raise HorovodInternalError(
                "Horovod has been shut down: this operation was for the ranks before"
            )
        return int(self._engine)

    def submit(self, requests: Sequence[Request]) -> list[int]:
        """-> a handle each. `requests`: of class Request; more than one complete together.
        ValueError: a request cannot be, or its name is under way; none was submitted."""
        handles = (_long * len(requests))()
        failed = self._library.engine_submit(
            self._alive(), (Request * len(requests))(*requests), len(requests), handles
        )
        if failed:
            raise (ValueError if failed == 1 else HorovodInternalError)(said())
        return list(handles)

    def join_ranks(self, number: int = 0) -> int:
        return int(self._library.engine_join_ranks(self._alive(), number))

    def done(self, handle: int) -> bool:
        return self._engine is None or bool(self._library.engine_done(self._engine, handle))

    def wait(self, handle: int) -> None:
        """Forgets the handle when it failed."""
        if self._library.engine_wait(self._alive(), handle) != 0:
            words = said()
            self.forget(handle)
            raise HorovodInternalError(words)

    def last(self, handle: int) -> int:
        return int(self._library.engine_last(self._alive(), handle))

    def rows(self, handle: int) -> list[int]:
        rows = (_size * self.size)()
        count = self._library.engine_rows(self._alive(), handle, rows, self.size)
        return list(rows[:count])

    def take(self, handle: int, address: int, size: int) -> None:
        if self._library.engine_take(self._alive(), handle, address, size) != 0:
            raise HorovodInternalError(said())

    def forget(self, handle: int) -> None:
        if self._engine:
            self._library.engine_forget(self._engine, handle)

    def add_set(self, ranks: Sequence[int]) -> int:
        number: int = self._library.engine_add_set(
            self._alive(), (_int * len(ranks))(*ranks), len(ranks)
        )
        if number < 0:
            raise HorovodInternalError(said())
        return number

    def remove_set(self, number: int) -> None:
        if self._library.engine_remove_set(self._alive(), number) != 0:
            raise HorovodInternalError(said())

    def start_timeline(self, path: str, mark_cycles: bool) -> None:
        if self._library.engine_timeline_start(self._alive(), path.encode(), int(mark_cycles)) != 0:
            raise ValueError(said())

    def stop_timeline(self) -> None:
        self._library.engine_timeline_stop(self._alive())
