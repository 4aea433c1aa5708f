"""This process as one of those that horovodrun started: it is given a rank,
and another one when ranks came or went."""

from __future__ import annotations

import ctypes
import os

from horovod.common import engine as engines
from horovod.common.exceptions import HorovodInternalError
from horovod.common.launch import Launch

_text, _int, _long, _pointer = ctypes.c_char_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
_member: Member | None = None


class Member:
    def __init__(self, launch: Launch) -> None:
        self._library = engines.library()
        host = os.environ.get("HOROVOD_HOSTNAME", "localhost")
        name = (
            os.environ.get("TRAINYARD_MEMBER")
            or f"{host}/{os.environ.get('HOROVOD_LOCAL_RANK', '0')}"
        )
        assert launch.service is not None
        address, port = launch.service
        self.address = self._library.member_connect(
            address.encode(),
            port,
            launch.secret.encode(),
            name.encode(),
            host.encode(),
            launch.rank,
        )
        if not self.address:
            raise HorovodInternalError(engines.said())
        self.complaint = ""  # why the last generation ended, when it failed

    def next_seat(self) -> engines.Seat:
        seat, complaint, self.complaint = engines.Seat(), self.complaint, ""
        wait_ms = int(1000 * float(os.environ.get("HOROVOD_ELASTIC_TIMEOUT", 365 * 86400)))
        if (
            self._library.member_next(self.address, complaint.encode(), wait_ms, ctypes.byref(seat))
            != 0
        ):
            raise Dismissed(engines.said())
        return seat

    def changed(self) -> tuple[bool, bool]:
        """Returns (a rank waits to be admitted, a rank is to leave)."""
        bits = self._library.member_changed(self.address)
        return bool(bits & 1), bool(bits & 2)

    def leave(self, done: bool) -> None:
        if done:
            self._library.member_done(self.address)
        self._library.member_leave(self.address)


class Dismissed(SystemExit):
    """Raised when this process has no rank any more: its host leaves, or the training has ended.
    Not an error of the script."""

    def __init__(self, words: str) -> None:
        super().__init__(0)
        self.words = words

    def __str__(self) -> str:
        return self.words


def of_this_process(launch: Launch) -> Member:
    global _member
    if _member is None:
        _member = Member(launch)
    return _member


def current() -> Member | None:
    """Returns None where membership is fixed."""
    return _member


def leave(done: bool) -> None:
    """At the end of the process. `done`: nothing is wrong."""
    global _member
    leaving, _member = _member, None
    if leaving is not None:
        leaving.leave(done)
