"""Forwards connections to a port of loopback to another address, as `kubectl port-forward` does."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from typing import Self

LOOK_SECONDS = 0.05


class PortForward:
    """`target` is called for each connection."""

    def __init__(self, target: Callable[[], tuple[str, int]]) -> None:
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ignored: object) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        self.listener.close()

    def accept(self) -> None:
        while not self.stopped.is_set():
            if select.select([self.listener], [], [], LOOK_SECONDS)[0]:
                client = self.listener.accept()[0]
                thread = threading.Thread(target=self.forward, args=(client,))
                self.threads.append(thread)
                thread.start()

    def forward(self, client: socket.socket) -> None:
        with (
            client,
            contextlib.suppress(OSError),
            socket.create_connection(self.target()) as server,
        ):
            while not self.stopped.is_set():
                for ready in select.select([client, server], [], [], LOOK_SECONDS)[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    (server if ready is client else client).sendall(data)
