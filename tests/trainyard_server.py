"""Runs a server for tests, on a free loopback port, with a separate data directory. Clients reach
it with the output of `trainyard env`; tests may kill it."""

from __future__ import annotations

import functools
import glob
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from tests import aws_commands

if TYPE_CHECKING:  # boto3 is not everywhere where this module is
    import boto3.session
    from botocore.client import BaseClient

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "build", "release", "bin", "trainyard")
TODAYS_AWS = os.path.join(ROOT, "build", "venv", "bin", "aws")
DEBIANS_AWS = "/usr/bin/aws"
START_SECONDS_MAX = 30
WAIT_SECONDS_MAX = 120

Value = TypeVar("Value")
Answer = Any  # of the AWS CLI: decoded JSON, text, or the process where it is not checked


def wait_for(
    condition: Callable[[], Value | Literal[False] | None],
    what: str,
    seconds_max: float = WAIT_SECONDS_MAX,
    interval_seconds: float = 0.05,
) -> Value:
    """Waits for a true value of condition() and returns it; fails with `what` after the timeout."""
    end = time.monotonic() + seconds_max
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds_max} s for {what}")
        time.sleep(interval_seconds)


MAKING_CLIENT = threading.Lock()


@functools.cache
def boto_session(data_path: str | None) -> boto3.session.Session:
    """Returns the session that makes all clients, so that each service's model is decoded once.
    There is one for each AWS_DATA_PATH, in which a session searches for models."""
    import boto3

    return boto3.session.Session()


class Server:
    """Runs one server. `config` is TOML text. start() may be called again after stop() or kill(),
    with the same data and port.

    `behind`: a command prefix for the server and all commands of its owner, for another user or
    other mounts."""

    process: subprocess.Popen[bytes]  # the one that was started last

    def __init__(
        self,
        data: str | os.PathLike[str],
        config: str = "",
        listen: str = "127.0.0.1:0",
        behind: Iterable[str] = (),
    ) -> None:
        self.data = str(data)
        self.behind = list(behind)
        self.program = PROGRAM
        self.config = config
        self.listen = listen
        self.metrics = ""
        self.env: dict[str, str] = {}

    def start(self) -> Self:
        os.makedirs(self.data, exist_ok=True)
        arguments = [
            *self.behind,
            self.program,
            "serve",
            "--data",
            self.data,
            "--listen",
            self.listen,
        ]
        if self.config:
            config_file = self.data.rstrip("/") + ".toml"
            with open(config_file, "w", encoding="utf-8") as file:
                file.write(self.config)
            arguments += ["--config", config_file]
        record = os.path.join(self.data, "server.json")
        if os.path.exists(record):
            os.remove(record)
        # closed by clean()
        self.log = open(self.data.rstrip("/") + ".log", "ab")
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )

        def ready() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(
                    f"the server ended with {self.process.returncode}: {self.log_text()[-3000:]}"
                )
            return os.path.exists(record)

        wait_for(ready, "the server to say where it listens", START_SECONDS_MAX)
        with open(record, encoding="utf-8") as file:
            written = json.load(file)
        self.listen = written["host_and_port"]
        # "": the config does not export metrics. A port 0 there is a free one here.
        self.metrics = written.get("metrics_host_and_port", "")
        exports = subprocess.run(
            [self.program, "env", "--data", self.data], check=True, capture_output=True, text=True
        ).stdout
        self.env = dict(re.findall(r"^export (\w+)='(.*)'$", exports, re.M))
        return self

    def runs(self) -> bool:
        return hasattr(self, "process") and self.process.poll() is None

    def log_text(self) -> str:
        with open(self.data.rstrip("/") + ".log", encoding="utf-8", errors="replace") as file:
            return file.read()

    def reload(self, config: str) -> None:
        """Replaces the config, and reloads it by SIGHUP."""
        self.config = config
        with open(self.data.rstrip("/") + ".toml", "w", encoding="utf-8") as file:
            file.write(config)
        self.process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        if self.runs():
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(START_SECONDS_MAX) == 0, self.log_text()[-3000:]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def agents(self) -> list[int]:
        """Returns the process ids of its running agents."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"trainyard-agent") and any(
                self.data.encode() + b"/" in word for word in words
            ):
                found.append(int(path.split("/")[2]))
        return found

    def clean(self) -> None:
        """Ends the server and all processes of its jobs, as a crash does, and removes their
        remains."""
        if self.runs():
            self.process.kill()
            self.process.wait()
        for agent in self.agents():
            os.kill(agent, signal.SIGKILL)
        self.log.close()
        subprocess.run(
            [*self.behind, self.program, "doctor", "--data", self.data, "--clean"],
            check=True,
            capture_output=True,
        )

    # -- clients ----------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return kept | self.env | {"HOME": self.data, "AWS_PAGER": "", "AWS_MAX_ATTEMPTS": "1"}

    def boto(self, service: str, **more: Any) -> BaseClient:
        """Returns a client of the current, unmodified boto3."""
        from botocore.config import Config

        # By default boto3 presigns URLs of us-east-1 with signature version 2, which S3 rejects for
        # buckets made since 2020.
        config = Config(
            retries={"max_attempts": 0},
            s3={"addressing_style": "path"},
            signature_version="s3v4" if service == "s3" else None,
        )
        keys = {
            "aws_access_key_id": self.env["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": self.env["AWS_SECRET_ACCESS_KEY"],
            "region_name": self.env["AWS_DEFAULT_REGION"],
            "endpoint_url": self.env["AWS_ENDPOINT_URL"],
            "verify": self.env["AWS_CA_BUNDLE"],
            "config": config,
        }
        with MAKING_CLIENT:  # one thread at a time may use a session
            return boto_session(os.environ.get("AWS_DATA_PATH")).client(service, **keys | more)

    def aws(self, *arguments: str, program: str = TODAYS_AWS, check: bool = True) -> Answer:
        """Runs an unmodified AWS CLI; returns its standard output, decoded if it is JSON."""
        done = aws_commands.run(program, arguments, self.environment(), WAIT_SECONDS_MAX)
        if not check:
            return done
        assert done.returncode == 0, f"aws {' '.join(arguments)}: {done.stderr}"
        try:
            return json.loads(done.stdout)
        except ValueError:
            return done.stdout
