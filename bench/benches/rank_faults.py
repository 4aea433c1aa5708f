"""Measures how soon the rank, loader or link with a fault is named."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

from botocore.client import BaseClient

from bench import progress
from bench.loads import with_server
from bench.rows import Row, row
from tests import faulty_ranks, jobs, trainyard_server
from tests.trainyard_server import Server

ROUNDS = int(os.environ.get("TRAINYARD_BENCH_RANK_FAULTS_ROUNDS", "5"))
HOSTS = 3
VALUES = 1 << 22  # of a gradient: 16 MiB
LINK_RATE = "400mbit"
TARGET_SECONDS = 15
SECONDS_MAX = 60  # a fault that has not been named by then counts as named at this time
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# The text in the log by the planted fault; {} is the rank.
EXPECTED = {
    "sleep": r"rank {} on algo-\d+ seems to be stuck",
    "stop": r"rank {} on algo-\d+ (seems to be stuck|has stopped)",
    "slow": r"^trainyard: rank {} on algo-\d+ is slow",
    "load": r"the loader of rank {} on algo-\d+ is slow",
    "link": r"the link from rank {} on",
}


class Named(NamedTuple):
    seconds: float
    wrong: list[str]  # lines that name another rank, or another fault


def lines_of(logs: BaseClient, job: str) -> Iterator[tuple[float, str]]:
    """Returns the time and text of each line of a job's log."""
    try:
        found = logs.filter_log_events(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{job}/")
    except logs.exceptions.ResourceNotFoundException:
        return
    for event in found["events"]:
        yield event["timestamp"] / 1000, event["message"]


def process_of(job: str, host: int) -> int:
    """Returns the pid of a process on a host (1, 2, ..) of a job."""
    wanted = {f"TRAINING_JOB_NAME={job}".encode(), f"SM_CURRENT_HOST=algo-{host}".encode()}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/environ", "rb") as file:
                if wanted <= set(file.read().split(b"\0")):
                    return int(number)
        except OSError:  # it has ended
            continue
    raise RuntimeError(f"algo-{host} of {job} has no process")


def shape_link(job: str, source: int, destination: int) -> float:
    """Limits the rate from one host of a job to another; returns the time."""
    process = process_of(job, source)
    with open(f"/proc/{process}/root/etc/hosts", encoding="ascii") as file:
        found = re.search(rf"^(\S+)\s.*\balgo-{destination}\b", file.read(), re.M)
    assert found, f"/etc/hosts of algo-{source} has no algo-{destination}"
    inside = ["nsenter", "-t", str(process), "-n"]
    route = subprocess.run(
        [*inside, "ip", "-j", "route", "get", found[1]], check=True, capture_output=True
    )
    device = json.loads(route.stdout)[0]["dev"]
    for command in (
        f"qdisc add dev {device} root handle 1: htb default 10",
        f"class add dev {device} parent 1: classid 1:10 htb rate 40gbit quantum 60000",
        f"class add dev {device} parent 1: classid 1:3 htb rate {LINK_RATE} burst 64k quantum 1514",
        f"filter add dev {device} protocol ip parent 1: prio 1 u32 match ip dst {found[1]}/32"
        " flowid 1:3",
    ):
        subprocess.run([*inside, "tc", *command.split()], check=True)
    return time.time()


def begin_of_fault(logs: BaseClient, job: str, fault: str, rank: int) -> float:
    """Waits for the fault, and returns its time. Links are not planted by the job."""

    def begun() -> str:
        lines = [line for _, line in lines_of(logs, job)]
        return next((line for line in lines if line.startswith(faulty_ranks.BEGINS)), "")

    line = trainyard_server.wait_for(begun, f"the fault of {job}", seconds_max=120)
    if fault != "link":
        return float(line.removeprefix(faulty_ranks.BEGINS))
    return shape_link(job, rank + 1, (rank + 1) % HOSTS + 1)


def measure(server: Server, job: str, fault: str, rank: int, step: int) -> Named:
    logs = server.boto("logs")
    faulty_ranks.start_job(server, job, fault, HOSTS, rank, step, VALUES)
    began = begin_of_fault(logs, job, fault, rank)
    pattern = EXPECTED[fault].format(rank)
    found: list[tuple[float, str]] = []
    while not found and time.time() < began + SECONDS_MAX:
        time.sleep(0.5)
        found = [each for each in lines_of(logs, job) if re.search(pattern, each[1])]
    wrong = [
        line
        for _, line in lines_of(logs, job)
        if re.match(r"trainyard: .*rank \d+ on algo", line) and not re.search(pattern, line)
    ]
    sagemaker = server.boto("sagemaker")
    sagemaker.stop_training_job(TrainingJobName=job)
    jobs.wait_until(sagemaker, job)
    return Named(min(found)[0] - began if found else SECONDS_MAX, wrong)


def rank_faults() -> list[Row]:
    """Plants faults in jobs of three hosts, in a rank and at a step that a seed chooses, and
    measures from each to the line of the log that names it."""
    chosen = random.Random(15)
    seconds: dict[str, list[float]] = {fault: [] for fault in EXPECTED}
    wrong: list[str] = []
    server = with_server("[jobs]\nstop_grace_seconds = 1\n").start()
    try:
        server.boto("s3").create_bucket(Bucket="yard")
        for number in progress.rounds(range(ROUNDS)):
            for fault in EXPECTED:
                rank, step = chosen.randrange(HOSTS), chosen.randrange(60, 160)
                named = measure(server, f"{fault}-{number}", fault, rank, step)
                seconds[fault].append(named.seconds)
                wrong += named.wrong
    finally:
        server.clean()
    for line in wrong:
        print(f"  named instead: {line}")
    rows = [
        row(
            "rank_faults",
            f"{fault} in one rank of {HOSTS}, named after",
            "s",
            measured,
            None,
            None,
            f"median <= {TARGET_SECONDS} s",
            lambda ours, _: ours <= TARGET_SECONDS,
        )
        for fault, measured in seconds.items()
    ]
    every = [one for measured in seconds.values() for one in measured]
    share = 100 * sum(one <= TARGET_SECONDS for one in every) / len(every)
    rows.append(
        row(
            "rank_faults",
            f"of {len(every)} faults, named within {TARGET_SECONDS} s",
            "%",
            [share],
            None,
            None,
            ">= 90%",
            lambda ours, _: ours >= 90,
        )
    )
    rows.append(
        row(
            "rank_faults",
            "lines that name another rank or fault",
            "lines",
            [len(wrong)],
            None,
            None,
            "0",
            lambda ours, _: ours == 0,
        )
    )
    return rows
