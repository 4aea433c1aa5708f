"""The collectives as a shared library: what a program that is not C++ sees of them,
and what its ranks leave behind."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIBRARY = os.path.join(ROOT, "build", "release", "lib", "libtrainyard_collectives.so.1")
SECONDS_MAX = 60


def ranks(
    count: int, secrets: Sequence[str], does: str = "sum", deadline_ms: int = 30000
) -> list[subprocess.Popen]:
    port = 20000 + os.getpid() % 20000
    return [
        subprocess.Popen(
            [
                sys.executable,
                os.path.join(HERE, "collectives_rank.py"),
                does,
                LIBRARY,
                str(rank),
                str(count),
                str(port),
                secrets[rank],
                str(deadline_ms),
                "0",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]


@pytest.mark.parametrize("does", ["sum", "old", "meet"])
def test_ranks_join_and_sum_through_the_c_interface(does: str) -> None:
    processes = ranks(3, ["same"] * 3, does)
    said = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said


def test_a_wrong_secret_is_refused_by_name() -> None:
    processes = ranks(2, ["one", "other"], deadline_ms=3000)
    said = [process.communicate(timeout=SECONDS_MAX)[0] for process in processes]
    assert "rank 0" in said[1] and "secret" in said[1], said
    assert "rank 1" in said[0] and "did not join" in said[0], said


def test_only_the_c_interface_is_seen() -> None:
    names = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=just-symbols", LIBRARY],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert names and all(
        name.startswith(("trainyard_", "TRAINYARD_COLLECTIVES_")) for name in names
    ), names


def test_nothing_is_left_of_ranks_that_are_killed() -> None:
    """No file, no memory, no listener, no process; whether all die at once or one before the
    others, by whose side they share memory or not."""
    run = subprocess.run(
        [
            "unshare",
            "--mount",
            "--net",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            sys.executable,
            os.path.join(HERE, "killed_ranks.py"),
            LIBRARY,
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    for play, seen in json.loads(run.stdout).items():
        assert seen["said"][:3] == ["works"] * 3, (play, seen)
        if "first" in play:
            name = f"rank {play.split()[-2]} ("
            assert all(line.startswith("ended: ") and name in line for line in seen["said"][3:]), (
                play,
                seen,
            )
        # Else the picture would not see what it is for.
        assert {"listening", "processes", "memory without a name"} <= set(seen["working"]), (
            play,
            seen,
        )
        assert ("memory of several processes" in seen["working"]) == play.startswith(
            "shared memory"
        ), (play, seen)
        assert "files in /dev/shm" not in seen["working"], "no name is there that could be left"
        assert seen["left"] == {}, (play, seen)
