"""Runs the CLI without a terminal."""

import functools
import os
import subprocess
from collections.abc import Mapping

from tests import trainyard_server
from tests.trainyard_server import Server, wait_for


class CommandLine:
    """Runs commands: cli("jobs", "--json") returns the finished process, whose exit code must be
    `code`."""

    def __init__(self, server: Server, directory: str | os.PathLike[str] | None = None) -> None:
        self.server = server
        self.directory = directory

    def __call__(
        self, *arguments: str, code: int | None = 0, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [trainyard_server.PROGRAM, *arguments],
            env=self.server.environment() | dict(environment or {}),
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=trainyard_server.WAIT_SECONDS_MAX,
            stdin=subprocess.DEVNULL,
        )
        assert code is None or done.returncode == code, (
            f"trainyard {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command without waiting for its end: for commands that follow a job."""
        return subprocess.Popen(
            [trainyard_server.PROGRAM, *arguments],
            env=self.server.environment(),
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def output_of(server: Server, key: tuple[str, str], *arguments: str, code: int = 0) -> str:
    """Runs a command with a key (id, secret); returns both of its outputs."""
    keys = {"AWS_ACCESS_KEY_ID": key[0], "AWS_SECRET_ACCESS_KEY": key[1]}
    done = CommandLine(server)(*arguments, code=code, environment=keys)
    return done.stdout + done.stderr


def touch_go(cli: CommandLine, job: str) -> subprocess.CompletedProcess[str] | None:
    """Makes the file in the first host of a job. Returns None while the host is being prepared."""
    done = cli("shell", job, "1", "--", "touch", "/tmp/go", code=None)
    return None if "is preparing: a shell needs a running host" in done.stderr else done


def let_go(cli: CommandLine, *jobs: str) -> None:
    """Makes the file /tmp/go, for which the script waits, in the first host of each job. The host
    may end before its shell reports success."""
    for job in jobs:
        # A job counts as running shortly before its host accepts shells.
        done = wait_for(functools.partial(touch_go, cli, job), f"the host of {job}")
        assert done.returncode == 0 or "the host has ended" in done.stderr, done.stderr
