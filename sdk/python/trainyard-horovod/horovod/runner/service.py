"""The service that gives ranks to processes (collectives/elastic), as horovodrun has it."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from horovod.common import engine as engines

CAME, SEATED, DONE, LOST, DISMISSED = range(1, 6)
_text, _int, _long, _pointer = ctypes.c_char_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p


class Event(NamedTuple):
    """What the service saw."""

    kind: int
    name: str
    words: str
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
        self._library = engines.library()
        self._service = self._library.service_start(
            address.encode(),
            0,
            secret.encode(),
            least,
            most,
            int(1000 * settle_seconds),
            generations_max,
        )
        if not self._service:
            raise RuntimeError(engines.said())
        self.port = self._library.service_port(self._service)

    def stop(self) -> None:
        service, self._service = self._service, None
        if service:
            self._library.service_stop(service)

    def expect(self, name: str) -> None:
        self._library.service_expect(self._service, name.encode())

    def gone(self, name: str, why: str) -> None:
        self._library.service_gone(self._service, name.encode(), why.encode())

    def host_leaves(self, host: str) -> None:
        self._library.service_host(self._service, host.encode(), 1)

    def host_returns(self, host: str) -> None:
        self._library.service_host(self._service, host.encode(), 0)

    def missing(self) -> str:
        text: bytes = self._library.service_missing(self._service)
        return text.decode(errors="replace")

    def next(self, seconds: float) -> Event | None:
        """What happened, or None."""
        name, words, generation, ranks = _text(), _text(), ctypes.c_uint64(), _int()
        kind = self._library.service_next(
            self._service,
            int(1000 * seconds),
            ctypes.byref(name),
            ctypes.byref(words),
            ctypes.byref(generation),
            ctypes.byref(ranks),
        )
        if not kind:
            return None
        assert name.value is not None and words.value is not None
        return Event(
            kind,
            name.value.decode(errors="replace"),
            words.value.decode(errors="replace"),
            generation.value,
            ranks.value,
        )
