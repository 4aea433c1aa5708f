"""Tests the server's log file: it is rotated when it is full, and opened again on SIGHUP. When the
disk is full, the file is given up and the server keeps running."""

import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests import trainyard_server
from tests.trainyard_server import Server, wait_for

OWNER = "[[access_key]]\nid = 'AKIAOWNEROWNEROWNER0'\nsecret = 'owner-secret'\n"


def logged(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_the_log_goes_to_a_file_that_sighup_opens_again(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    path = str(tmp_path / "server.log")
    server = start(OWNER + f"[server]\nlog_file = '{path}'\n")
    wait_for(lambda: "serve: ready" in logged(path), "the first lines")
    assert "serve: ready" not in server.log_text(), "not on standard error"
    assert f"  log     {path}\n" in server.log_text()
    status = subprocess.run(
        [trainyard_server.PROGRAM, "status", "--json"],
        env=server.environment(),
        capture_output=True,
        check=True,
        timeout=trainyard_server.WAIT_SECONDS_MAX,
    )
    assert json.loads(status.stdout)["LogFile"] == path
    os.rename(path, path + ".moved")
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: os.path.exists(path) and "reloaded the" in logged(path), "the new file")
    server.stop()
    assert "stopping; jobs keep running" in logged(path)


def test_a_full_log_file_is_rotated(start: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "server.log")
    limits = "log_bytes_max = 65536\nlog_files = 2\n"
    server = start(OWNER + f"[server]\nlog_file = '{path}'\n{limits}")
    reloads = 0

    def rotated() -> bool:
        nonlocal reloads
        reloads += 1
        server.reload(f"unknown_{reloads}_{'x' * 1500} = 1\n")
        wait_for(
            lambda: f"unknown_{reloads}_" in logged(path) + logged_if_there(path + ".1"),
            f"reload {reloads}",
        )
        return os.path.exists(path + ".1")

    wait_for(rotated, "the rotation")
    assert os.stat(path + ".1").st_size <= 65536
    assert sorted(os.listdir(tmp_path)) == ["server.log", "server.log.1"]


def logged_if_there(path: str) -> str:
    return logged(path) if os.path.exists(path) else ""


def test_a_full_disk_does_not_stop_the_server(tmp_path: pathlib.Path) -> None:
    """Other files fill the log's file system."""
    logs = tmp_path / "logs"
    logs.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(logs)], check=True)
    server = Server(tmp_path / "data", OWNER)
    try:
        server.config = OWNER + f"[server]\nlog_file = '{logs}/server.log'\n"
        server.start()
        filler = logs / "filler"
        with open(filler, "wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(b"x" * 512)
        # The last page of the log may not be full yet.
        reloads = 0

        def full() -> bool:
            nonlocal reloads
            reloads += 1
            server.process.send_signal(signal.SIGHUP)
            return "reloaded the machines" in server.log_text()

        wait_for(full, "a line on standard error", interval_seconds=0.01)
        assert server.boto("sts").get_caller_identity()["Account"]
        filler.unlink()
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "# missing here: " in logged(f"{logs}/server.log"), "the log to continue")
        server.stop()
        assert "stopping; jobs keep running" in logged(f"{logs}/server.log")
    finally:
        server.clean()
        subprocess.run(["umount", str(logs)], check=True)


def test_a_log_file_that_cannot_be_opened_is_refused(tmp_path: pathlib.Path) -> None:
    server = Server(tmp_path / "data", OWNER + "[server]\nlog_file = '/missing/server.log'\n")
    with pytest.raises(AssertionError, match=r"opening the log file of the server.*/missing/"):
        server.start()


def test_the_log_file_of_the_command_line_comes_first(tmp_path: pathlib.Path) -> None:
    path, other = str(tmp_path / "chosen.log"), str(tmp_path / "other.log")
    server = Server(tmp_path / "data", OWNER + f"[server]\nlog_file = '{other}'\n")
    server.behind = ["sh", "-c", f'exec "$0" "$@" --log-file {path}']
    server.start()
    try:
        wait_for(lambda: "serve: ready" in logged(path), "the first lines")
        assert not os.path.exists(other)
    finally:
        server.behind = []
        server.clean()
