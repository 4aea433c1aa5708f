"""./yard shows the progress of what it installs and builds: on one line of a terminal, elsewhere as
a line for each phase."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pty
import re
import shutil
import subprocess

import pytest

from tests.tidy import sources

# What ./yard runs, without its effects.
PROGRAMS = {
    "dpkg-query": "true",
    "sudo": 'exec "$@"',
    "apt-get": """[ "$1" = update ] && exit 0
echo "0 upgraded, 3 newly installed, 0 to remove"
echo "Get:1 http://deb.debian.org bookworm/main amd64 ninja-build amd64 1.11 [130 kB]"
for package in a b c; do echo "Setting up $package (1.0) ..."; done""",
    "npm": "true",
    "node": "true",
    "cmake": "mkdir -p build/release && touch build/release/build.ninja",
    "ninja": 'for step in $(seq 40); do echo "[$step/40] Building CXX object src/x.cpp.o"; done',
}


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with ./yard and programs in its bin; the models of AWS are there."""
    shutil.copy(os.path.join(sources.ROOT, "yard"), tmp_path)
    shutil.copytree(os.path.join(sources.ROOT, "packaging"), tmp_path / "packaging")
    pin = next(
        line
        for line in sources.read("packaging/python-requirements.txt").splitlines()
        if line.startswith("botocore==")
    )
    (tmp_path / "build" / "venv").mkdir(parents=True)
    (tmp_path / "build" / "venv" / ".models").write_text(pin + "\n")
    (tmp_path / "bin").mkdir()
    for name, script in PROGRAMS.items():
        (tmp_path / "bin" / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def build(checkout: pathlib.Path, stderr: int) -> subprocess.Popen[bytes]:
    """Starts ./yard build."""
    return subprocess.Popen(
        [checkout / "yard", "build"],
        env={**os.environ, "PATH": f"{checkout}/bin:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )


def without_a_terminal(checkout: pathlib.Path) -> tuple[int, str]:
    """Returns the exit status and what it prints."""
    with open(checkout / "output", "w+b") as output:
        status = build(checkout, output.fileno()).wait()
        output.seek(0)
        return status, output.read().decode()


def on_a_terminal(checkout: pathlib.Path) -> tuple[int, str]:
    """Returns the exit status and what it prints."""
    ours, theirs = pty.openpty()
    process = build(checkout, theirs)
    os.close(theirs)
    text = b""
    with open(ours, "rb", buffering=0) as terminal, contextlib.suppress(OSError):  # EIO: its end
        while part := terminal.read(1 << 16):
            text += part
    return process.wait(), text.decode()


def test_each_phase_has_a_line_without_a_terminal(checkout: pathlib.Path) -> None:
    status, text = without_a_terminal(checkout)
    assert status == 0, text
    assert "\r" not in text and "\033" not in text
    phases = [
        re.sub(r", \d+ min left$", "", line.removeprefix("==> ")) for line in text.splitlines()
    ]
    assert phases[0].startswith("installing ") and " packages: " in phases[0]
    assert phases[1:] == [
        "configuring release",
        "building release programs trainyard_collectives",
        "10 of 40 steps",
        "20 of 40 steps",
        "30 of 40 steps",
        "40 of 40 steps",
        "built build/trainyard",
    ]


def test_progress_is_one_line_of_a_terminal(checkout: pathlib.Path) -> None:
    status, text = on_a_terminal(checkout)
    assert status == 0, text
    shown = text.replace("\r\n", "\n").split("\r\033[K")
    assert any("downloading ninja-build" in each for each in shown)
    assert any("3 of 3 packages" in each for each in shown)
    assert any("40 of 40 steps" in each and "x.cpp.o" in each for each in shown)
    assert not any("\n" in each and " of 40 steps" in each for each in shown)


@pytest.mark.parametrize(
    "program, reason", [("apt-get", "apt-get install failed"), ("ninja", "building release failed")]
)
def test_a_failed_phase_ends_with_its_output(
    checkout: pathlib.Path, program: str, reason: str
) -> None:
    (checkout / "bin" / program).write_text("#!/usr/bin/env bash\necho the cause\nexit 1\n")
    status, text = without_a_terminal(checkout)
    assert status == 1 and reason in text and "the cause" in text, text
