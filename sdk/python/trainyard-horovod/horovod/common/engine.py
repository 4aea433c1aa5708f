"""A group of ranks with its negotiator, through the C interface of Trainyard."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from horovod.common.c_interface import declarations as c
from horovod.common.c_interface import library as c_library
from horovod.common.exceptions import HorovodInternalError

Request = c.Request
F64, F32, F16, BF16 = c.TRAINYARD_F64, c.TRAINYARD_F32, c.TRAINYARD_F16, c.TRAINYARD_BF16
F8E4M3, F8E5M2 = c.TRAINYARD_F8E4M3, c.TRAINYARD_F8E5M2
I64, I32, I16, I8 = c.TRAINYARD_I64, c.TRAINYARD_I32, c.TRAINYARD_I16, c.TRAINYARD_I8
U8, BOOL = c.TRAINYARD_U8, c.TRAINYARD_BOOL
ITEM_BYTES = {F64: 8, F32: 4, F16: 2, BF16: 2, F8E4M3: 1, F8E5M2: 1}
ITEM_BYTES |= {I64: 8, I32: 4, I16: 2, I8: 1, U8: 1, BOOL: 1}
SUM, AVERAGE = c.TRAINYARD_SUM, c.TRAINYARD_AVERAGE
MINIMUM, MAXIMUM, PRODUCT = c.TRAINYARD_MINIMUM, c.TRAINYARD_MAXIMUM, c.TRAINYARD_PRODUCT
ALLREDUCE, ADASUM = c.TRAINYARD_NAMED_ALLREDUCE, c.TRAINYARD_NAMED_ADASUM
ALL_GATHER, BROADCAST = c.TRAINYARD_NAMED_ALL_GATHER, c.TRAINYARD_NAMED_BROADCAST
REDUCE_SCATTER, ALL_TO_ALL = c.TRAINYARD_NAMED_REDUCE_SCATTER, c.TRAINYARD_NAMED_ALL_TO_ALL
BARRIER = c.TRAINYARD_NAMED_BARRIER
INT8, LOW_RANK = c.TRAINYARD_COMPRESSED_INT8, c.TRAINYARD_COMPRESSED_LOW_RANK


def library() -> ctypes.CDLL:
    return c_library.library()


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the C interface. Raises HorovodInternalError."""
    try:
        c_library.call(name, *arguments)
    except c_library.Failure as failure:
        raise HorovodInternalError(str(failure)) from None


def new_request() -> Request:
    return c_library.sized(Request)


class Engine:
    """One group of ranks, between init() and shutdown()."""

    def __init__(
        self,
        join: c.Join,
        options: c.NegotiatorOptions,
        place: tuple[int, int] | None,
        member: int | None = None,
    ) -> None:
        """Joins a group. `place`: local rank and local size, if the launcher set them. `member`: a
        trainyard_member, which joins its membership group instead of the ranks of `join`."""
        self._library = library()
        self._negotiator: int | None = None
        group = ctypes.c_void_p()
        if member is None:
            call("trainyard_group_join", ctypes.byref(join), ctypes.byref(group))
        else:
            call("trainyard_member_join", member, ctypes.byref(join), ctypes.byref(group))
        try:
            self.rank: int = self._library.trainyard_group_rank(group)
            self.size: int = self._library.trainyard_group_size(group)
            self.hosts: list[int] = [
                self._library.trainyard_group_host(group, rank) for rank in range(self.size)
            ]
            self.places = self._exchange(group, place)
        except BaseException:
            self._library.trainyard_group_free(group)
            raise
        negotiator = ctypes.c_void_p()
        call("trainyard_negotiator_start", group, ctypes.byref(options), ctypes.byref(negotiator))
        self._negotiator = negotiator.value

    def _exchange(
        self, group: ctypes.c_void_p, place: tuple[int, int] | None
    ) -> list[tuple[int, int] | None]:
        """Returns the local rank and local size of each rank whose launcher set them."""
        mine = (ctypes.c_int32 * 2)(*(place or (-1, -1)))
        all_places = (ctypes.c_int32 * (2 * self.size))()
        gather = c_library.sized(
            c.Call,
            operation=c.TRAINYARD_ALL_GATHER,
            type=c.TRAINYARD_I32,
            input=ctypes.addressof(mine),
            output=ctypes.addressof(all_places),
            input_count=len(mine),
            output_count=len(all_places),
            name=b"places of ranks",
        )
        call("trainyard_group_run", group, ctypes.byref(gather))
        pairs = zip(all_places[::2], all_places[1::2])
        return [None if local_rank < 0 else (local_rank, size) for local_rank, size in pairs]

    def leave(self) -> None:
        negotiator, self._negotiator = self._negotiator, None
        if negotiator:
            self._library.trainyard_negotiator_free(negotiator)

    def _alive(self) -> int:
        if not self._negotiator:
            raise HorovodInternalError(
                "Horovod has been shut down: this operation was for the ranks before"
            )
        return int(self._negotiator)

    def submit(self, requests: Sequence[Request]) -> list[int]:
        """Returns a handle for each request; several complete together. Raises ValueError when a
        request is invalid, or its name is outstanding; then none was submitted."""
        handles = (ctypes.c_int64 * len(requests))()
        try:
            c_library.call(
                "trainyard_negotiator_submit",
                self._alive(),
                (Request * len(requests))(*requests),
                len(requests),
                handles,
            )
        except c_library.Failure as failure:
            refused = failure.kind in (c.TRAINYARD_INVALID, c.TRAINYARD_CONFLICT)
            raise (ValueError if refused else HorovodInternalError)(str(failure)) from None
        return list(handles)

    def join_ranks(self, number: int = 0) -> int:
        return int(self._library.trainyard_negotiator_join(self._alive(), number))

    def done(self, handle: int) -> bool:
        return self._negotiator is None or bool(
            self._library.trainyard_negotiator_done(self._negotiator, handle)
        )

    def wait(self, handle: int) -> None:
        """Waits for an operation. Releases the handle if the operation failed."""
        try:
            call("trainyard_negotiator_wait", self._alive(), handle)
        except HorovodInternalError:
            self.forget(handle)
            raise

    def last(self, handle: int) -> int:
        return int(self._library.trainyard_negotiator_last_rank(self._alive(), handle))

    def rows(self, handle: int) -> list[int]:
        rows = (ctypes.c_uint64 * self.size)()
        count = self._library.trainyard_negotiator_rows(self._alive(), handle, rows, self.size)
        return list(rows[:count])

    def take(self, handle: int, address: int, size: int) -> None:
        call("trainyard_negotiator_copy_output", self._alive(), handle, address, size)

    def forget(self, handle: int) -> None:
        if self._negotiator:
            self._library.trainyard_negotiator_forget(self._negotiator, handle)

    def add_set(self, ranks: Sequence[int]) -> int:
        number = ctypes.c_int()
        call(
            "trainyard_negotiator_add_set",
            self._alive(),
            (ctypes.c_int * len(ranks))(*ranks),
            len(ranks),
            ctypes.byref(number),
        )
        return number.value

    def remove_set(self, number: int) -> None:
        call("trainyard_negotiator_remove_set", self._alive(), number)

    def start_timeline(self, path: str, mark_cycles: bool) -> None:
        try:
            c_library.call(
                "trainyard_negotiator_start_timeline",
                self._alive(),
                path.encode(),
                int(mark_cycles),
            )
        except c_library.Failure as failure:
            raise ValueError(str(failure)) from None

    def stop_timeline(self) -> None:
        self._library.trainyard_negotiator_stop_timeline(self._alive())
