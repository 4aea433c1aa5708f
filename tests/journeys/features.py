"""Runs each feature of tests/journeys/sdk/features.txt with one version of the SDK."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
from collections.abc import Callable
from typing import Any

from tests import sdk, trainyard_server
from tests.trainyard_server import Server

FILE_SYSTEM = """
[file_systems."fs-0123456789abcdef0"]
directory = "{directory}"
type = "FSxLustre"
mount_name = "fsx"
"""
# The machine's own system with the SDK's packages, as an image of AWS has them: `@remote` imports
# the SDK in the job, and the launcher of version 3 for MPI imports paramiko. Version 2 runs pip for
# its own package, which is then there already; the tests have no index of packages.
IMAGE = """
[images."with-sdk"]
runtime = "machine"
mounts = {{ "/opt/sdk" = "{packages}" }}
environment = {{ PYTHONPATH = "/opt/sdk", PIP_NO_INDEX = "1" }}
"""
FEATURES_MIN = 40  # that each version's table has at least


def listed() -> list[tuple[str, dict[int, str]]]:
    path = os.path.join(trainyard_server.ROOT, "docs/internals/write_sdk_features.py")
    spec = importlib.util.spec_from_file_location("write_sdk_features", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: list[tuple[str, dict[int, str]]] = module.features()
    return found


def packages(version: int) -> pathlib.Path:
    """Returns the directory with the packages of the SDK's environment."""
    (found,) = pathlib.Path(sdk.python(version)).parents[1].glob("lib/python3.*/site-packages")
    return found.resolve()


def start_server(start: Callable[..., Server], directory: pathlib.Path, version: int) -> Server:
    shared = directory / "shared" / "set"
    shared.mkdir(parents=True)
    (shared / "file").write_text("shared\n")
    return start(
        "[jobs]\nstop_grace_seconds = 1\n"
        + FILE_SYSTEM.format(directory=directory / "shared")
        + IMAGE.format(packages=packages(version))
    )


def check(start: Callable[..., Server], directory: pathlib.Path, version: int) -> None:
    """Checks that every feature of this version has the outcome in the file."""
    expected = {name: outcomes[version] for name, outcomes in listed() if outcomes[version] != "-"}
    assert len(expected) >= FEATURES_MIN
    server = start_server(start, directory, version)
    program = os.path.join(os.path.dirname(__file__), "sdk", f"features_{version}.py")
    found: dict[str, Any]
    found, printed, outside = sdk.run(server, version, directory, program)
    print("\n".join(re.findall(r"^ *[\d.]+ s  .+$", printed, re.M)))  # shown when the test fails
    assert set(found) == set(expected), set(found) ^ set(expected)
    wrong = []
    for name, outcome in expected.items():
        kind, _, part = outcome.partition(": ")
        seen, text = found[name]
        if seen != kind or part not in text:
            wrong.append(f"{name}: expected {outcome!r}, but it {seen}: {text}")
    assert not wrong, "\n\n".join(wrong)
    assert outside == [], "no feature makes requests to the outside"
