"""The membership of this process in an elastic training: horovodrun assigns it a rank, and a new
rank when the set of ranks changes."""

from __future__ import annotations

import ctypes
import os

from horovod.common import engine as engines
from horovod.common.c_interface import declarations as c
from horovod.common.c_interface import library as c_library
from horovod.common.launch import Launch

_member: Member | None = None


class Member:
    def __init__(self, launch: Launch) -> None:
        assert launch.service is not None
        options = c_library.sized(
            c.MemberOptions,
            service_host=launch.service[0].encode(),
            service_port=launch.service[1],
            secret=launch.secret.encode(),
            name=launch.member.encode(),
            host=launch.host.encode(),
            wanted_rank=launch.rank,
        )
        address = ctypes.c_void_p()
        engines.call("trainyard_member_connect", ctypes.byref(options), ctypes.byref(address))
        assert address.value is not None
        self.address = address.value
        self.complaint = ""  # why the last generation ended, if it failed

    def next_assignment(self) -> c.Assignment:
        assignment, complaint, self.complaint = c_library.sized(c.Assignment), self.complaint, ""
        wait_ms = int(1000 * float(os.environ.get("HOROVOD_ELASTIC_TIMEOUT", 365 * 86400)))
        try:
            c_library.call(
                "trainyard_member_next",
                self.address,
                complaint.encode(),
                wait_ms,
                ctypes.byref(assignment),
            )
        except c_library.Failure as failure:
            raise Dismissed(str(failure)) from None
        return assignment

    def changed(self) -> tuple[bool, bool]:
        """Returns (a rank waits to be admitted, a rank is to leave)."""
        bits = engines.library().trainyard_member_changed(self.address)
        return bool(bits & c.TRAINYARD_MEMBERS_ADDED), bool(bits & c.TRAINYARD_MEMBERS_REMOVED)

    def leave(self, done: bool) -> None:
        if done:
            engines.library().trainyard_member_done(self.address)
        engines.library().trainyard_member_free(self.address)


class Dismissed(SystemExit):
    """Raised when this process no longer has a rank, since its host leaves or the training has
    ended. It is not an error of the script."""

    def __init__(self, reason: str) -> None:
        super().__init__(0)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def of_this_process(launch: Launch) -> Member:
    global _member
    if _member is None:
        _member = Member(launch)
    return _member


def current() -> Member | None:
    """Returns None where membership is fixed."""
    return _member


def leave(done: bool) -> None:
    """Leaves the group at the end of the process. `done`: the process ends successfully."""
    global _member
    leaving, _member = _member, None
    if leaving is not None:
        leaving.leave(done)
