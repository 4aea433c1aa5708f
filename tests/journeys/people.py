"""People at a terminal of their own, who have evaluated `trainyard env` and nothing else."""

from __future__ import annotations

import os
import pathlib
import subprocess
import textwrap

from tests import sdk, trainyard_server
from tests.trainyard_server import Server

COMMAND_SECONDS_MAX = 300


class Person:
    """Types commands and programs. Their directory has what the person would have in it."""

    def __init__(self, server: Server, directory: pathlib.Path) -> None:
        self.directory = directory
        build = os.path.join(trainyard_server.ROOT, "build")
        self.environment = server.environment() | {
            "PATH": f"{build}/release/bin:{build}/venv/bin:{os.environ['PATH']}",
            "HOME": str(directory),
            "COLUMNS": "200",
        }

    def has(self, name: str, text: str) -> None:
        """Puts a file into the person's directory."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())

    def types(self, line: str, code: int = 0) -> str:
        """What a line of shell prints, errors included."""
        return self._run(["bash", "-c", line], code)

    def runs(self, version: int, program: str, code: int = 0) -> str:
        """What a Python program prints, with the SageMaker SDK of that version."""
        return self._run([sdk.python(version), "-c", textwrap.dedent(program)], code)

    def _run(self, words: list[str], code: int) -> str:
        done = subprocess.run(
            words,
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        )
        assert done.returncode == code, f"{words[-1]}\n{done.returncode}\n{done.stdout[-6000:]}"
        return done.stdout
