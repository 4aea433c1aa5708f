"""Measures the start of a job while many browsers show the console."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

from bench import progress
from bench.loads import call_signed, with_server
from bench.rows import ROOT, Row, row
from tests import jobs, trainyard_server
from tests.trainyard_server import Server

BROWSERS = int(os.environ.get("TRAINYARD_BENCH_BROWSERS", "100"))
TABS = 2  # of each session: one user may have 64
ROUNDS, JOBS = 4, 4  # jobs of each round, with and without browsers
CLOSED_SECONDS = 16  # seconds after which the server has noticed that the pages are closed
PROGRAM = os.path.join(ROOT, "bench", "programs", "browse_console.py")
CONFIG = "[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n"


@contextlib.contextmanager
def browsing(server: Server) -> Iterator[None]:
    """Reads the console from many clients, at a lower priority than the server's: real browsers are
    on other machines."""
    host, _, port = server.listen.rpartition(":")
    process = subprocess.Popen(
        ["nice", "-n", "10", sys.executable, PROGRAM, host, port, str(TABS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    try:
        for _ in range(BROWSERS // TABS):
            answer = call_signed(server, "trainyard", "Trainyard.CreateConsoleSession", {})
            process.stdin.write(answer["Token"] + "\n")
        process.stdin.write("\n")
        process.stdin.flush()
        ready = process.stdout.readline().strip()
        assert ready == "ready", "the browsers did not sign in"
        yield
        output, _ = process.communicate(timeout=60)
        lists = int(output)
        assert lists > BROWSERS, "the browsers did not follow the jobs"
    finally:
        process.kill()
        process.wait()


def start_milliseconds(server: Server, name: str) -> float:
    """Returns the time from acceptance to the user's process, which first prints its clock."""
    trainyard_server.wait_for(
        lambda: not os.listdir(os.path.join(server.data, "attempts")), "the last job to be gone"
    )
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request(name, "date +%s.%N"))
    accepted = time.time()
    jobs.wait_until(sagemaker, name)
    lines = jobs.log_lines(server.boto("logs"), name)
    (began,) = [float(line) for line in lines if re.fullmatch(r"\d+\.\d+", line)]
    return (began - accepted) * 1000


def browsers() -> list[Row]:
    """Starts jobs with and without browsers that show the list of jobs."""
    times: dict[bool, list[float]] = {True: [], False: []}
    server = with_server(CONFIG).start()
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        for number in progress.rounds(range(ROUNDS)):
            for watched in (True, False):
                with browsing(server) if watched else contextlib.nullcontext():
                    for job in range(JOBS):
                        name = f"start-{'watched' if watched else 'alone'}-{number}-{job}"
                        times[watched].append(start_milliseconds(server, name))
                time.sleep(CLOSED_SECONDS if watched else 0)
    finally:
        server.clean()
    return [
        row(
            "browsers",
            f"accepted -> user process, {BROWSERS} browsers",
            "ms",
            times[True],
            times[False],
            "no browsers",
            "ratio <= 1.1",
            lambda ours, peer: ours <= 1.1 * peer,
        )
    ]
