"""Records what passes the network interfaces of this network namespace."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

ALL_PROTOCOLS = 0x0003  # ETH_P_ALL
LOOK_SECONDS = 0.05


class Recorder:
    """Holds the bytes of all packets from `with` to its end."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self.socket.settimeout(LOOK_SECONDS)
        self.packets: list[bytes] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.record)

    def record(self) -> None:
        while not self.over.is_set():
            try:
                self.packets.append(self.socket.recv(1 << 16))
            except TimeoutError:
                continue

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self.thread.join()
        self.socket.close()

    def has(self, text: str) -> bool:
        return any(text.encode() in packet for packet in self.packets)
