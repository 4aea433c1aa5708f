"""Runs unmodified AWS CLIs without their start: a process for each program imports it once, and
each command is a fork of that process. Importing takes two thirds of a command's processor time.

As a program, this file is that process: `python aws_commands.py SOCKET`, where SOCKET is the number
of an inherited descriptor. It ends when the other end is closed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO

# What every command imports, in the CLIs of today and of Debian.
IMPORTED = ("awscli.clidriver", "awscli.handlers", "botocore.endpoint", "botocore.regions")
DATA_PATH = "AWS_DATA_PATH"
STREAMS = 3  # standard input, output and error
REQUEST_BYTES_MAX = 1 << 20


class Starter:
    """Starts the commands of one CLI, one at a time. Threads: any."""

    def __init__(self, program: str) -> None:
        self.lock = threading.Lock()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [interpreter_of(program), os.path.abspath(__file__), str(theirs.fileno())],
                env=without_aws(os.environ),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], seconds_max: float
    ) -> subprocess.CompletedProcess[str]:
        """The finished command, with what it printed as text. Raises TimeoutError when it takes too
        long; this starter is unusable then."""
        request = json.dumps([list(arguments), dict(environment), os.getcwd()]).encode()
        assert len(request) <= REQUEST_BYTES_MAX, "the arguments are too long"
        with (
            self.lock,
            open(os.devnull, "rb") as source,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as error,
        ):
            socket.send_fds(
                self.socket, [request], [each.fileno() for each in (source, output, error)]
            )
            self.socket.settimeout(seconds_max)
            try:
                reply = self.socket.recv(100)
            except TimeoutError:
                self.process.kill()
                raise
            assert reply, f"the process that runs {arguments} ended with {self.process.wait()}"
            return subprocess.CompletedProcess(
                list(arguments), int(reply), text_of(output), text_of(error)
            )


STARTERS: dict[str, Starter] = {}


def run(
    program: str, arguments: Sequence[str], environment: Mapping[str, str], seconds_max: float
) -> subprocess.CompletedProcess[str]:
    """As Starter.run(), by the starter of this program."""
    if program not in STARTERS:
        STARTERS[program] = Starter(program)
    return STARTERS[program].run([program, *arguments], environment, seconds_max)


def interpreter_of(program: str) -> str:
    with open(program, encoding="utf-8") as file:
        return file.readline().removeprefix("#!").strip()


def without_aws(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("AWS_")}


def text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


# -- the process that forks ------------------------------------------------------------------------


def serve(requests: socket.socket) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    own_data = os.environ[DATA_PATH]  # set by importing the CLI
    gc.freeze()  # no collection copies pages that the forks share
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, REQUEST_BYTES_MAX, STREAMS)
        if not request:
            return
        command = os.fork()
        if command == 0:
            requests.close()
            arguments, environment, directory = json.loads(request)
            whole = [own_data, *filter(None, [environment.get(DATA_PATH)])]
            environment[DATA_PATH] = os.pathsep.join(whole)
            become(arguments, environment, directory, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(command, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(
    arguments: list[str], environment: dict[str, str], directory: str, descriptors: Sequence[int]
) -> None:
    """Runs the command in this process, and ends it."""
    for stream, descriptor in enumerate(descriptors):
        os.dup2(descriptor, stream)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv = arguments
    sys.exit(importlib.import_module("awscli.clidriver").main())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ends with its parent
    serve(socket.socket(fileno=int(sys.argv[1])))
