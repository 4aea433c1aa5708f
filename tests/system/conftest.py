"""Lists the files that run without other files at the same time; all others run three at a time."""

from __future__ import annotations

import pytest

# These files load the machine to its limits, search it for leftovers, count its processes, or
# kill at times that the load of other tests would change.
ALONE = {
    "test_agent.py",
    "test_array_crash.py",
    "test_bad_input.py",
    "test_collectives.py",
    "test_crash.py",
    "test_egress.py",
    "test_encryption.py",
    "test_gpus.py",
    "test_hostile.py",
    "test_reuse.py",
    "test_scratch.py",
    "test_shell.py",
    "test_slirp_restart.py",
    "test_slow_clients.py",
    "test_start.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.name in ALONE:
            item.add_marker("alone")
