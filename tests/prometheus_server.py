"""Runs Debian's Prometheus for tests, with a separate directory, on a free loopback port."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from tests.ports import free_port
from tests.trainyard_server import Answer, wait_for

TIMEOUT_SECONDS = 30
STARTS_MAX = 5
PORT_IN_USE = "address already in use"
# Prometheus logs this after it has bound its port.
READY = "Server is ready to receive web requests"


def program(name: str) -> str:
    found = shutil.which(name)
    assert found, f"{name} is missing: install Debian's package prometheus"
    return found


def promtool(*arguments: str, text: str = "", directory: str | None = None) -> str:
    """Runs promtool, which must find no error; returns its output."""
    done = subprocess.run(
        [program("promtool"), *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=directory,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"promtool {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


class Prometheus:
    """`config`: the text of prometheus.yml. `more`: further arguments.

    Without `address`, the first start() finds a port, and later ones use the same. If another
    process takes the free port first, that start() uses another one.
    """

    process: subprocess.Popen[bytes]

    def __init__(
        self, place: pathlib.Path, config: str, *more: str, address: str | None = None
    ) -> None:
        self.place = place
        self.more = more
        self.address_is_fixed = address is not None
        self.address = address or f"127.0.0.1:{free_port()}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "prometheus.yml").write_text(config, encoding="utf-8")

    def start(self) -> Prometheus:
        for _ in range(STARTS_MAX):
            self.start_process()
            wait_for(self.ready_or_over, "Prometheus to start")
            over = self.process.poll() is not None
            if not over or self.address_is_fixed or PORT_IN_USE not in self.new_log_text():
                break
            self.stop()
            self.address = f"127.0.0.1:{free_port()}"
        assert self.process.poll() is None, self.log_text()
        self.address_is_fixed = True
        return self

    def start_process(self) -> None:
        self.log = open(self.place / "log", "ab")  # closed by stop()
        self.log_begin = (self.place / "log").stat().st_size
        self.process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={self.place}/prometheus.yml",
                f"--storage.tsdb.path={self.place}/data",
                f"--web.listen-address={self.address}",
                *self.more,
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env={"PATH": os.environ["PATH"], "GOMAXPROCS": "2"},
        )

    def ready_or_over(self) -> bool:
        if self.process.poll() is not None:
            return True
        # Another process may answer at the same address.
        if READY not in self.new_log_text():
            return False
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def new_log_text(self) -> str:
        """Returns the log of the current process."""
        log = (self.place / "log").read_bytes()
        return log[self.log_begin :].decode("utf-8", errors="replace")

    def log_text(self) -> str:
        return (self.place / "log").read_text(encoding="utf-8", errors="replace")[-3000:]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(TIMEOUT_SECONDS)
        self.log.close()

    def get(self, path: str, **parameters: str) -> Answer:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(
            f"http://{self.address}/api/v1/{path}?{query}", timeout=TIMEOUT_SECONDS
        ) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Returns the series of an instant query, with their labels (`metric`) and `value`."""
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found

    def value(self, expression: str) -> float | None:
        """Returns the value of the only series of an expression; None: there is no series."""
        found = self.query(expression)
        assert len(found) <= 1, f"{expression}: {found}"
        return float(found[0]["value"][1]) if found else None
