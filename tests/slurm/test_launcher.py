"""Runs the tests that every launcher must pass, on a real cluster."""

import os
import subprocess

from tests.slurm.cluster import Cluster
from tests.trainyard_server import ROOT

TESTS = os.path.join(ROOT, "build", "release", "bin", "launch_test")


def test_the_slurm_launcher_passes_the_tests_of_all_launchers(cluster: Cluster) -> None:
    done = subprocess.run(
        [TESTS, "--gtest_filter=RealSlurm/*", "--gtest_brief=1"],
        env=os.environ | {"TRAINYARD_SLURM_CONF": cluster.config},
        cwd=os.path.join(ROOT, "src", "control_plane", "launch"),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "SKIPPED" not in done.stdout
    assert "[  PASSED  ] 13 tests" in done.stdout, done.stdout[-1000:]
