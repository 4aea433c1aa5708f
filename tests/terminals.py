"""Runs `trainyard` in a pseudo-terminal."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from types import TracebackType

from tests import trainyard_server
from tests.trainyard_server import Server

WAIT = trainyard_server.WAIT_SECONDS_MAX


class Terminal:
    """Runs a command in a terminal. A context manager, which kills the remaining processes at its
    end."""

    def __init__(
        self,
        server: Server,
        *arguments: str,
        columns: int = 100,
        rows: int = 30,
        environment: Mapping[str, str] | None = None,
        program: str = trainyard_server.PROGRAM,
    ) -> None:
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.usual = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [program, *arguments],
            env=server.environment() | {"TERM": "xterm-256color"} | dict(environment or {}),
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.shown = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, columns: int, rows: int) -> None:
        """Resizes the terminal; its processes get SIGWINCH."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read(self, seconds: float) -> None:
        if select.select([self.master], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                self.shown += self.decoder.decode(os.read(self.master, 65536))

    def until(self, pattern: str) -> re.Match[str]:
        """Waits until the pattern is shown, and removes the output up to it."""
        end = time.monotonic() + WAIT
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < end, f"waited for {pattern!r}, saw {self.shown!r}"
            self.read(0.2)
        self.shown = self.shown[found.end() :]
        return found

    def ends(self) -> int:
        """Waits for the end and returns the exit code; `shown` then has the whole output."""
        end = time.monotonic() + WAIT
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end; saw {self.shown!r}"
            self.read(0.1)
        while select.select([self.master], [], [], 0)[0]:
            self.read(0)
        return self.process.returncode

    def is_as_before(self) -> bool:
        return termios.tcgetattr(self.slave) == self.usual
