"""Runs the type checks of the pages and their unit tests in Node.js."""

import subprocess

import pytest

from tests.trainyard_server import ROOT


@pytest.mark.parametrize("script", ["check", "test"])
def test_npm(script: str) -> None:
    done = subprocess.run(
        ["npm", "--prefix", "console", "run", "--silent", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
