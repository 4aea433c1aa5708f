"""Starts the machines of a test file: a controller, and three more, of which n2 has two GPUs."""

import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

from tests.cluster.machines import Machines


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    assert os.geteuid() == 0, "namespaces and mounts need root"
    one = Machines(tempfile.mkdtemp(prefix="ty-cluster-"))
    try:
        one.start(["c1", "n1", "n2", "n3"], {"n2": 2})
        yield one
    finally:
        one.stop()
        shutil.rmtree(one.directory, ignore_errors=True)
