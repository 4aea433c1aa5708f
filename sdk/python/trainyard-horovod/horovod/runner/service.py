"""The membership service that assigns ranks to processes, in horovodrun."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from horovod.common import engine as engines
from horovod.common.c_interface import declarations as c
from horovod.common.c_interface import library as c_library

CAME, FORMED, DONE = c.TRAINYARD_MEMBER_CAME, c.TRAINYARD_GENERATION_FORMED, c.TRAINYARD_MEMBER_DONE
LOST, DISMISSED = c.TRAINYARD_MEMBER_LOST, c.TRAINYARD_MEMBER_DISMISSED


class Event(NamedTuple):
    """An event that the service reports."""

    kind: int
    name: str
    text: str
    generation: int
    ranks: int


class Service:
    def __init__(
        self,
        address: str,
        secret: str,
        least: int,
        most: int,
        settle_seconds: float,
        generations_max: int = 0,
    ) -> None:
        options = c_library.sized(
            c.MembershipOptions,
            host=address.encode(),
            secret=secret.encode(),
            ranks_min=least,
            ranks_max=most,
            settle_ms=int(1000 * settle_seconds),
            generations_max=generations_max,
        )
        service = ctypes.c_void_p()
        try:
            c_library.call(
                "trainyard_membership_start", ctypes.byref(options), ctypes.byref(service)
            )
        except c_library.Failure as failure:
            raise RuntimeError(str(failure)) from None
        self._library = engines.library()
        self._service: int | None = service.value
        self.port: int = self._library.trainyard_membership_port(self._service)

    def stop(self) -> None:
        service, self._service = self._service, None
        if service:
            self._library.trainyard_membership_free(service)

    def expect(self, name: str) -> None:
        self._library.trainyard_membership_expect(self._service, name.encode())

    def gone(self, name: str, reason: str) -> None:
        self._library.trainyard_membership_gone(self._service, name.encode(), reason.encode())

    def host_leaves(self, host: str) -> None:
        self._library.trainyard_membership_host_leaves(self._service, host.encode())

    def host_returns(self, host: str) -> None:
        self._library.trainyard_membership_host_returns(self._service, host.encode())

    def missing(self) -> str:
        return c_library.text("trainyard_membership_missing", self._service)

    def next(self, seconds: float) -> Event | None:
        """Waits at most `seconds` for the next event."""
        event = c_library.sized(c.MembershipEvent)
        if not self._library.trainyard_membership_next(
            self._service, int(1000 * seconds), ctypes.byref(event)
        ):
            return None
        return Event(
            event.kind,
            event.name.decode(errors="replace"),
            event.text.decode(errors="replace"),
            event.generation,
            event.ranks,
        )
