"""Simulates a user whose shell has only evaluated `trainyard env`."""

from __future__ import annotations

import os
import pathlib
import shlex
import subprocess
import textwrap

from tests import sdk, trainyard_server
from tests.trainyard_server import Server

COMMAND_SECONDS_MAX = 300


class Person:
    """Simulates a user with a directory of files."""

    def __init__(self, server: Server, directory: pathlib.Path) -> None:
        self.directory = directory
        self.login = f'eval "$(trainyard env --data {shlex.quote(server.data)})"; '
        programs = [
            os.path.dirname(path)
            for path in (trainyard_server.PROGRAM, trainyard_server.TODAYS_AWS, "/usr/bin/env")
        ]
        self.environment = {
            "PATH": ":".join(programs),
            "HOME": str(directory),
            "COLUMNS": "200",
            "AWS_PAGER": "",
            "LANG": "C.UTF-8",
        }

    def write_file(self, name: str, text: str) -> None:
        """Writes a file below the user's directory."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())

    def run_shell(self, line: str, code: int = 0) -> str:
        """Runs a line of shell and returns its output, including errors."""
        done = subprocess.run(
            ["bash", "-c", self.login + line],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == code, f"{line}\n{done.returncode}\n{done.stdout[-6000:]}"
        return done.stdout

    def run_python(self, version: int, program: str, code: int = 0) -> str:
        """Runs a Python program with this version of the SageMaker SDK, and returns its output."""
        return self.run_shell(
            shlex.join([sdk.python(version), "-c", textwrap.dedent(program)]), code
        )
