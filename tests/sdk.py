"""Runs programs with the unmodified SageMaker Python SDKs from PyPI, in a shell that has only
evaluated `trainyard env`."""

import json
import os
import shlex
import socket
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

from tests import trainyard_server

PROGRAMS = os.path.join(trainyard_server.ROOT, "tests", "conformance", "sdk")
SCRIPT_SECONDS_MAX = 600


class Outside:
    """Acts as the HTTP proxy to the internet: records each request and rejects it."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return  # closed
            with connection:
                connection.settimeout(5)
                try:
                    self.requested.append(
                        connection.recv(200).decode(errors="replace").split("\r\n")[0]
                    )
                    connection.sendall(
                        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    )
                except OSError:
                    self.requested.append("nothing")

    def close(self) -> None:
        self.socket.close()


def python(version: int) -> str:
    """Returns the interpreter with the SDK of a major version; ./yard setup makes it."""
    path = os.path.join(trainyard_server.ROOT, "build", f"sagemaker{version}", "bin", "python")
    assert os.path.exists(path), f"{path} is missing: run ./yard setup"
    return path


def run(
    server: trainyard_server.Server,
    version: int,
    directory: str | os.PathLike[str],
    program: str | None = None,
    arguments: Sequence[str] = (),
) -> tuple[Any, str, list[str]]:
    """Runs a program; returns its last line, decoded, its whole output, and the requests to the
    internet."""
    outside = Outside()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "HTTP_PROXY": outside.url,
        "HTTPS_PROXY": outside.url,
        "COLUMNS": "200",
        "PYTHONPATH": trainyard_server.ROOT,  # for modules that the programs share
    }
    words = [
        python(version),
        os.path.join(PROGRAMS, program or f"version_{version}.py"),
        str(directory),
        *arguments,
    ]
    line = (
        f'eval "$({shlex.quote(trainyard_server.PROGRAM)} env --data {shlex.quote(server.data)})";'
        f" exec {shlex.join(words)}"
    )
    try:
        done = subprocess.run(
            ["bash", "-c", line],
            env=environment,
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS_MAX,
        )
    finally:
        outside.close()
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return (
        json.loads(done.stdout.strip().splitlines()[-1]),
        done.stdout + done.stderr,
        outside.requested,
    )
