"""Frames of the console in a real browser, with 1,000 jobs that run and report metrics.

The server, its ledger, its metrics and the browser are as always; the jobs' agents are emulated
(bench/programs/emulated_agent.cpp), since two processors cannot run a thousand containers."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from bench.loads import call_signed, with_server
from bench.rows import BIN, ROOT, Row, row
from tests import jobs
from tests.trainyard_server import PROGRAM, Server, wait_for

JOBS = int(os.environ.get("TRAINYARD_BENCH_FRAMES_JOBS", "1000"))
SECONDS = float(os.environ.get("TRAINYARD_BENCH_FRAMES_SECONDS", "10"))
ROUNDS = int(os.environ.get("TRAINYARD_BENCH_FRAMES_ROUNDS", "5"))
METRICS = 100  # that each job reports
DEFINED = 40  # of them in the job's definition, the most of CreateTrainingJob: those are shown
COMPARED = 24  # the most that the console compares
# Seconds between the points of a metric: each read of a page finds new ones of the compared jobs.
COMPARED_PERIOD, PERIOD = 1, 10
CREATORS = 4
CHANGE_SECONDS = 1  # a job begins, and another ends
SHORT_SECONDS = 2  # the length of such a job
START_SECONDS_MAX = 600
BROWSER_SECONDS_MAX = 1800
HISTORY_SECONDS = 60  # of points, before frames are measured
PYTHON = os.path.join(ROOT, "build", "browser", "bin", "python")
CONFIG = (
    "[[machine]]\nname = 'box'\ncpus = 64000.0\nmemory_gib = 256000.0\n"
    "[[quota]]\ninstance_type = 'ml.t3.medium'\ncount = 4000\n"
)
FRAME_MILLISECONDS = 1000 / 60  # of 60 frames a second
JITTER_MILLISECONDS = 0.5  # of the time that the browser names
SHARE_MIN = 95  # percent
PAINT_MILLISECONDS_MAX = 1000


@contextlib.contextmanager
def emulated_programs() -> Iterator[str]:
    """A folder with the server's programs and the emulated agent in place of the real one."""
    folder = tempfile.mkdtemp(prefix="trainyard-bench-programs-", dir=os.path.join(ROOT, "build"))
    try:
        for name in ("trainyard", "trainyard-entry"):
            os.link(os.path.join(BIN, name), os.path.join(folder, name))
        os.symlink(os.path.join(BIN, "console"), os.path.join(folder, "console"))
        os.link(os.path.join(BIN, "emulated_agent"), os.path.join(folder, "trainyard-agent"))
        yield folder
    finally:
        shutil.rmtree(folder)


def name_of(number: int) -> str:
    return f"frames-{number:04}"


def request(name: str, period: int, **environment: str) -> dict[str, Any]:
    """A job that reports metrics until it is stopped, or for LENGTH seconds."""
    body = jobs.request(name, "emulated", StoppingCondition={"MaxRuntimeInSeconds": 86_400})
    body["Environment"] = {"PERIOD": str(period), "METRICS": str(METRICS)} | environment
    body["HyperParameters"] = {"learning-rate": "0.001", "epochs": "90"}
    body["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": f"metric-{i:02}", "Regex": f"metric-{i:02}=(\\S+)"} for i in range(DEFINED)
    ]
    return body


def listed(server: Server) -> list[dict[str, Any]]:
    """All jobs in progress."""
    found: list[dict[str, Any]] = []
    token: dict[str, str] = {}
    while True:
        page = call_signed(
            server,
            "trainyard",
            "Trainyard.ListJobs",
            {"MaxResults": 100, "StatusEquals": "InProgress"} | token,
        )
        found += page["Jobs"]
        if "NextToken" not in page:
            return found
        token = {"NextToken": page["NextToken"]}


def start_jobs(server: Server) -> None:
    """Starts the jobs, and waits until all of them run."""
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    periods = [PERIOD] * (JOBS - COMPARED) + [COMPARED_PERIOD] * COMPARED
    with concurrent.futures.ThreadPoolExecutor(CREATORS) as creators:
        made = [
            creators.submit(sagemaker.create_training_job, **request(name_of(number), period))
            for number, period in enumerate(periods)
        ]
        for one in made:
            one.result()
    wait_for(
        lambda: sum(job["SecondaryStatus"] == "Training" for job in listed(server)) >= JOBS,
        f"{JOBS} jobs to run",
        START_SECONDS_MAX,
        interval_seconds=1,
    )


@contextlib.contextmanager
def changes(server: Server) -> Iterator[None]:
    """Starts a job again and again that ends soon, so that the list changes."""
    ended = threading.Event()
    sagemaker = server.boto("sagemaker")

    def change() -> None:
        while not ended.wait(CHANGE_SECONDS):
            name = f"short-{os.urandom(4).hex()}"
            sagemaker.create_training_job(**request(name, 1, LENGTH=str(SHORT_SECONDS)))

    with concurrent.futures.ThreadPoolExecutor(1) as one:
        running = one.submit(change)
        try:
            yield
        finally:
            ended.set()
            running.result()


def measure(server: Server) -> dict[str, Any]:
    """Runs the browser."""
    link = subprocess.run(
        [PROGRAM, "console", "--data", server.data],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=server.environment(),
    ).stdout.strip()
    names = ",".join(name_of(number) for number in range(JOBS - COMPARED, JOBS))
    done = subprocess.run(
        [PYTHON, "-m", "bench.programs.measure_frames", f"http://{server.listen}/console", link]
        + [str(JOBS), str(SECONDS), str(ROUNDS), names],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        timeout=BROWSER_SECONDS_MAX,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kept_share(rounds: list[dict[str, Any]]) -> list[float]:
    """The percentage of the frames of 60 a second that were shown, of each round."""
    shares = []
    for one in rounds:
        intervals = one["intervals"]
        # An interval of two frames has left out one.
        due = sum(max(1, round(interval / FRAME_MILLISECONDS)) for interval in intervals)
        shares.append(100 * len(intervals) / due)
    return shares


def slowest_frames(rounds: list[dict[str, Any]]) -> list[float]:
    """The 99th percentile of the intervals between frames, of each round."""
    return [sorted(one["intervals"])[len(one["intervals"]) * 99 // 100] for one in rounds]


def rows_of(found: dict[str, Any]) -> list[Row]:
    cases = {
        "jobs": f"list of {JOBS:,} jobs, scrolled while jobs begin and end",
        "compare": f"{DEFINED} metrics of {COMPARED} jobs, scrolled while they grow",
    }
    frames = found["frames"]
    rows = [
        row(
            "frames",
            f"{case}: frames shown of 60 a second",
            "%",
            kept_share(frames[name]),
            kept_share(frames["empty"]),
            "an empty page",
            f">= {SHARE_MIN}",
            lambda ours, _: ours >= SHARE_MIN,
        )
        for name, case in cases.items()
    ]
    rows += [
        row(
            "frames",
            f"{case}: time between frames, 99th percentile",
            "ms",
            slowest_frames(frames[name]),
            slowest_frames(frames["empty"]),
            "an empty page",
            "<= 2 frames",
            lambda ours, _: ours <= 2 * FRAME_MILLISECONDS + JITTER_MILLISECONDS,
        )
        for name, case in cases.items()
    ]
    rows += [
        row(
            "frames",
            f"first paint of {page}, {JOBS:,} jobs",
            "ms",
            found["paints"][key],
            None,
            None,
            "< 1 s",
            lambda ours, _: ours < PAINT_MILLISECONDS_MAX,
        )
        for key, page in (("sign-in", "the sign-in page"), ("first row", "the list's first row"))
    ]
    return rows


def frames() -> list[Row]:
    """Scrolls the list and a comparison in Chromium while the jobs run, next to an empty page."""
    with emulated_programs() as programs:
        server = with_server(CONFIG, programs=programs).start()
        try:
            start_jobs(server)
            time.sleep(HISTORY_SECONDS)
            with changes(server):
                found = measure(server)
        finally:
            server.clean()
    for name, rounds in found["frames"].items():
        busy = statistics.median(one["busy"] for one in rounds)
        answers = sum(one["answers"] for one in rounds)
        print(f"{name}: main thread busy {busy:.0%}, {answers} answers read", flush=True)
    return rows_of(found)
