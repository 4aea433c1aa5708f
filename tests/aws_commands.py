"""Runs commands of unmodified AWS CLIs without their start-up time: for each CLI, one process
imports it and forks for each command. Importing takes two thirds of a command's processor time.

Run as a program, this file is that process: `python aws_commands.py SOCKET`, where SOCKET is the
number of an inherited descriptor. It ends when the other end is closed.
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

# The modules that every command imports, in the current CLI and in Debian's.
IMPORTED = ("awscli.clidriver", "awscli.handlers", "botocore.endpoint", "botocore.regions")
DATA_PATH = "AWS_DATA_PATH"
STREAMS = 3  # standard input, output and error
REQUEST_BYTES_MAX = 1 << 20


class ForkServer:
    """Runs the commands of one CLI, one at a time. Threads: any."""

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
        """Returns the finished command with its output as text. Raises TimeoutError when it takes
        too long; then the fork server cannot be used again."""
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
            assert reply, f"running {arguments}: the fork server ended with {self.process.wait()}"
            return subprocess.CompletedProcess(
                list(arguments), int(reply), text_of(output), text_of(error)
            )


SERVERS: dict[str, ForkServer] = {}


def run(
    program: str, arguments: Sequence[str], environment: Mapping[str, str], seconds_max: float
) -> subprocess.CompletedProcess[str]:
    """Runs a command with the fork server of its program: see ForkServer.run()."""
    if program not in SERVERS:
        SERVERS[program] = ForkServer(program)
    return SERVERS[program].run([program, *arguments], environment, seconds_max)


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
    gc.freeze()  # collections must not write to pages that the forks share
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
            run_here(arguments, environment, directory, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        _, status = os.waitpid(command, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def run_here(
    arguments: list[str], environment: dict[str, str], directory: str, descriptors: Sequence[int]
) -> None:
    """Runs the command in this process, and ends the process."""
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
