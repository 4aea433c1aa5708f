"""Records what passes the network interfaces of this network namespace."""

from __future__ import annotations

import socket
import threading
import time
from typing import Self

ALL_PROTOCOLS = 0x0003  # ETH_P_ALL
SO_RCVBUFFORCE = 33  # as root beyond the limit of the system
BUFFER_BYTES = 256 << 20  # so that no packet is lost while other processes run
LOOK_SECONDS = 0.05
REST_SECONDS_MAX = 5  # for packets that wait in the buffer at the end


class Recorder:
    """Holds the bytes of all packets from `with` to its end."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self.socket.settimeout(LOOK_SECONDS)
        self.packets: list[bytes] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.record)

    def record(self) -> None:
        while not self.over.is_set():
            self.take_one()
        end = time.monotonic() + REST_SECONDS_MAX
        while self.take_one() and time.monotonic() < end:
            pass

    def take_one(self) -> bool:
        """Returns False if no packet has arrived."""
        try:
            self.packets.append(self.socket.recv(1 << 16))
            return True
        except TimeoutError:
            return False

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.over.set()
        self.thread.join()
        self.socket.close()

    def has(self, text: str) -> bool:
        return any(text.encode() in packet for packet in self.packets)
