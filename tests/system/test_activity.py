"""Tests that a hang of a minute is visible: `describe` shows when each host and rank was last
active."""

import json
import os
import pathlib
import re
import subprocess
from collections.abc import Callable
from typing import Any

from tests import scripts, terminals, trainyard_server
from tests.trainyard_server import ROOT, Server

LIBRARY = pathlib.Path(ROOT, "build", "release", "lib", "libtrainyard_collectives.so.1")
DECLARATIONS = pathlib.Path(ROOT, "sdk", "python", "trainyard", "_declarations.py")

# Rank 1 stops taking part after some collectives; rank 0 waits for it, and still prints.
PROGRAM = """
import ctypes, os, threading, time
import _declarations as capi

library = ctypes.CDLL(os.path.abspath("libtrainyard_collectives.so.1"))
capi.declare(library)
message = ctypes.create_string_buffer(capi.TRAINYARD_ERROR_BYTES)
given = capi.Join(size=ctypes.sizeof(capi.Join), rank=-1, ranks=0, join_deadline_ms=60000,
                  silence_max_ms=600000, deterministic=1, from_launcher=1)
group = ctypes.c_void_p()
assert library.trainyard_group_join(ctypes.byref(given), ctypes.byref(group), message) == 0, (
    message.value)
values = (ctypes.c_float * 4)(1, 1, 1, 1)
call = capi.Call(ctypes.sizeof(capi.Call), capi.TRAINYARD_ALLREDUCE, capi.TRAINYARD_F32,
                 ctypes.addressof(values), ctypes.addressof(values), 4, 4, capi.TRAINYARD_SUM,
                 0.0, 0, None, None, b"gradients")
rank = int(os.environ["RANK"])
print("rank", rank, "joined", flush=True)

def chatter():
    while True:
        print("still here", flush=True)
        time.sleep(0.2)

if rank == 0:
    threading.Thread(target=chatter, daemon=True).start()
for step in range(20):
    assert library.trainyard_group_run(group, ctypes.byref(call), message) == 0, message.value
if rank == 1:
    time.sleep(10000)
library.trainyard_group_run(group, ctypes.byref(call), message)
"""


def test_a_rank_that_hangs_is_seen_by_its_last_output_and_collective(
    start: Callable[..., Server],
) -> None:
    server = start("[jobs]\nstop_grace_seconds = 1\n")
    server.boto("s3").create_bucket(Bucket="yard")
    files: dict[str, str | bytes] = {
        "train.py": PROGRAM,
        "_declarations.py": DECLARATIONS.read_text(),
        LIBRARY.name: LIBRARY.read_bytes(),
    }
    server.boto("sagemaker").create_training_job(
        **scripts.request(
            server,
            "hangs",
            "train.py",
            files,
            hyperparameters={
                "sagemaker_torch_distributed_enabled": True,
                "sagemaker_instance_type": "ml.t3.medium",
                "sagemaker_mpi_num_of_processes_per_host": 2,
            },
        )
    )

    def cli(*arguments: str) -> str:
        done = subprocess.run(
            [os.path.join(ROOT, "build", "trainyard"), *arguments],
            env=server.env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def activity() -> dict[Any, dict[str, int]]:
        shown = json.loads(cli("describe", "hangs", "--json")).get("Activity", [])
        return {one.get("Rank", "all"): one for one in shown if "Fault" not in one}

    def faults() -> list[str]:
        shown = json.loads(cli("describe", "hangs", "--json")).get("Activity", [])
        return [one["Message"] for one in shown if one.get("Fault") == "StuckRank"]

    def hang_is_seen() -> bool:
        now = activity()
        if set(now) != {"all", 0, 1}:
            return False
        # Reports are up to five seconds apart, so smaller ages are not meaningful.
        return (
            now[1].get("SecondsSinceOutput", 0) > 10
            and all(now[rank].get("SecondsSinceCollective", 0) > 10 for rank in (0, 1))
            and now[0]["SecondsSinceOutput"] < 10 > now["all"]["SecondsSinceOutput"]
        )

    trainyard_server.wait_for(
        hang_is_seen, "the ages of the hang", seconds_max=120, interval_seconds=0.5
    )
    # Rank 1 sleeps, and rank 0 waits for it.
    message = "rank 1 on algo-1 seems to be stuck: it has not begun collective 21 for "
    trainyard_server.wait_for(
        lambda: any(message in each for each in faults()), "the stuck rank", seconds_max=60
    )
    trainyard_server.wait_for(
        lambda: "trainyard: " + message in cli("logs", "hangs"), "its line of the log", 60
    )
    page = cli("describe", "hangs")
    assert "seems to be stuck" in page
    lines = [line.split() for line in table_lines(page)]
    assert [line[:2] for line in lines] == [
        ["host", "rank"],
        ["algo-1", "all"],
        ["algo-1", "0"],
        ["algo-1", "1"],
    ], page
    for columns in (80, 120):
        check_on_a_terminal(server, columns)
    server.boto("sagemaker").stop_training_job(TrainingJobName="hangs")


def table_lines(page: str) -> list[str]:
    """Returns the title and the rows of the table, which follows the faults of ranks."""
    lines = page[page.index("\nActivity\n") :].splitlines()
    title = next(i for i, line in enumerate(lines) if line.startswith("host"))
    return lines[title : title + 4]


def check_on_a_terminal(server: Server, columns: int) -> None:
    """Checks the table of describe in a terminal: aligned columns, and no line wider than the
    terminal."""
    with terminals.Terminal(server, "describe", "hangs", columns=columns) as terminal:
        assert terminal.ends() == 0
    page = terminal.shown.replace("\r\n", "\n")
    plain = re.sub(r"\x1b\[[\d;]*m", "", page)
    assert all(len(line) <= columns for line in plain.splitlines()), plain
    lines = table_lines(plain)
    assert re.fullmatch(r"host +rank +last output +last collective", lines[0]), plain
    age = r"(?:\d+s|\d+m\d\ds) ago"
    for line, pattern in zip(
        lines[1:],
        (rf"algo-1 +all +{age}", rf"algo-1 +0 +{age} +{age}", rf"algo-1 +1 +{age} +{age}"),
        strict=True,
    ):
        assert re.fullmatch(pattern, line), line
    at = lines[0].index("last output")
    assert all(line[at - 1] == " " and line[at].isdigit() for line in lines[1:]), lines
