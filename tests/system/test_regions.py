"""Tests local SGD between two jobs of two hosts each: one is killed and returns, and the other
continues meanwhile."""

from __future__ import annotations

import glob
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

from tests import jobs
from tests.trainyard_server import Server

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRAINER = os.path.join(ROOT, "build", "release", "bin", "trainyard-trainer")
SECONDS_MAX = 120
HOSTS = 2  # of each region
CHANNEL = "train"


def rows(seed: int, count: int) -> str:
    """Returns points around a different centre for each of three classes."""
    drawn = random.Random(seed)
    lines = []
    for _ in range(count):
        label = drawn.randrange(3)
        lines.append(
            ",".join(
                f"{(12 if column == label else 2) + drawn.random() * 6:.3f}" for column in range(4)
            )
            + f",{label}"
        )
    return "\n".join(lines) + "\n"


class Host:
    """Is one process of a job, with its output."""

    def __init__(self, base: str, environment: dict[str, str]) -> None:
        self.lines = []
        self.process = subprocess.Popen(
            [TRAINER, "train", "--base", base],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def wait_for(self, what: Callable[[str], bool], since: int = 0) -> int:
        """Waits for a line for which `what` is true; returns its number."""
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            for number, line in enumerate(self.lines[since:], since):
                if what(line):
                    return number
            assert self.process.poll() is None, self.lines[-20:]
            time.sleep(0.002)
        raise AssertionError(f"not said in time: {self.lines[-20:]}")

    def ends_well(self) -> None:
        assert self.process.wait(SECONDS_MAX) == 0, self.lines[-20:]
        self.reader.join()


class Region:
    def __init__(
        self,
        folder: str | os.PathLike[str],
        region: int,
        regions: int,
        hyperparameters: dict[str, Any],
    ) -> None:
        self.folder = str(folder)
        self.hosts = []
        process = os.getpid()

        def address(region: int, host: int) -> str:
            return f"127.{1 + process // 250 % 250}.{1 + process % 250}.{1 + 10 * region + host}"

        self.bases = [f"{folder}/region-{region}/algo-{host + 1}" for host in range(HOSTS)]
        names = [address(region, host) for host in range(HOSTS)]
        hyperparameters = hyperparameters | {
            "region": str(region),
            "region_secret": "between us",
            "port": "7990",
            "region_leaders": ",".join(f"{address(each, 0)}:7991" for each in range(regions)),
        }
        for host, base in enumerate(self.bases):
            os.makedirs(f"{base}/input/config")
            os.makedirs(f"{base}/input/data/{CHANNEL}")
            for name, value in (
                ("hyperparameters", hyperparameters),
                (
                    "resourceconfig",
                    {"current_host": names[host], "hosts": names, "network_interface_name": "lo"},
                ),
            ):
                with open(f"{base}/input/config/{name}.json", "w", encoding="utf-8") as file:
                    json.dump(value, file)
            with open(
                f"{base}/input/data/{CHANNEL}/part-{host}.csv", "w", encoding="utf-8"
            ) as file:
                file.write(rows(10 * region + host, 64))
        self.environment = {
            "PATH": os.environ["PATH"],
            "TRAINING_JOB_NAME": f"regions-{process}-{region}",
        }

    def start(self) -> Region:
        self.hosts = [Host(base, self.environment) for base in self.bases]
        return self

    @property
    def leader(self) -> Host:
        return self.hosts[0]

    def model(self) -> str:
        return f"{self.bases[0]}/model"

    def clean_up(self) -> None:
        for host in self.hosts:
            if host.process.poll() is None:
                host.process.kill()
            host.process.wait()


def test_the_example_is_a_job_of_two_regions(server: Server) -> None:
    """Runs the request of examples/04_regions unchanged, except for fewer epochs."""
    example = os.path.join(ROOT, "examples", "04_regions")
    subprocess.run(
        [os.path.join(ROOT, "examples", "01_digits", "prepare")],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    s3, sagemaker = server.boto("s3"), server.boto("sagemaker")
    s3.create_bucket(Bucket="digits")
    for path in glob.glob(os.path.join(ROOT, "build", "digits", "train", "*")):
        s3.upload_file(path, "digits", f"train/{os.path.basename(path)}")
    with open(os.path.join(example, "job.json"), encoding="utf-8") as file:
        request = json.load(file)
    request["HyperParameters"]["epochs"] = "20"
    sagemaker.create_training_job(**request)
    job = jobs.wait_until(sagemaker, request["TrainingJobName"])
    lines = jobs.log_lines(server.boto("logs"), request["TrainingJobName"])
    assert job["TrainingJobStatus"] == "Completed", (job.get("FailureReason"), lines[-20:])
    with open(os.path.join(example, "expected_output.txt"), encoding="utf-8") as file:
        for expected in file.read().splitlines():
            expected = expected.replace("rounds=46", "rounds=5").replace("round=46", "round=5")
            assert any(expected in line for line in lines), f"not said: {expected}: {lines[-20:]}"
    s3.head_object(
        Bucket="digits", Key=job["ModelArtifacts"]["S3ModelArtifacts"].split("digits/", 1)[1]
    )


def round_of(line: str) -> int:
    return int(line.split()[0].split("=")[1]) if line.startswith("round=") else 0


def test_a_killed_region_comes_back_and_ends_with_the_same_model(tmp_path: pathlib.Path) -> None:
    # 600 rounds
    hyperparameters = {"epochs": "3000", "batch_size": "32", "hidden": "8", "region_steps": "40"}
    regions = [Region(tmp_path, region, 2, hyperparameters).start() for region in range(2)]
    try:
        survivor, interrupted_job = (
            regions[1],
            regions[0],
        )  # the first host is the leader: the other must replace it
        interrupted_job.leader.wait_for(lambda line: round_of(line) >= 20)
        interrupted_job.leader.process.send_signal(signal.SIGKILL)
        interrupted_job.leader.process.wait()
        # A rank without its leader ends, and names the missing leader.
        other = interrupted_job.hosts[1]
        assert other.process.wait(SECONDS_MAX) != 0
        other.reader.join()
        assert any("rank 0" in line for line in other.lines), other.lines[-5:]

        alone = survivor.leader.wait_for(lambda line: " regions=1 " in line)
        survivor.leader.wait_for(
            lambda line: round_of(line) >= round_of(survivor.leader.lines[alone]) + 5
        )
        assert any("lost region 0" in line for line in survivor.leader.lines)
        # On any machine, the region has epochs left when it rejoins.
        survivor.leader.process.send_signal(signal.SIGSTOP)
        interrupted_job.start()
        interrupted_job.leader.wait_for(lambda line: line.startswith("host="))
        resumed = len(survivor.leader.lines)
        survivor.leader.process.send_signal(signal.SIGCONT)
        survivor.leader.wait_for(lambda line: " regions=2 " in line, since=resumed)
        assert (
            round_of(
                interrupted_job.leader.lines[
                    interrupted_job.leader.wait_for(lambda line: line.startswith("round="))
                ]
            )
            > 20
        )

        for region in regions:
            for host in region.hosts:
                host.ends_well()
        compared = subprocess.run(
            [TRAINER, "compare", survivor.model(), interrupted_job.model(), "--tolerance", "0"],
            capture_output=True,
            text=True,
        )
        assert compared.returncode == 0, compared.stdout + compared.stderr
        # It sends two bytes for each number every 40 steps instead of four in each step.
        share = next(
            line for line in reversed(survivor.leader.lines) if "share_of_allreduce=" in line
        )
        assert float(share.split("share_of_allreduce=")[1]) < 1 / 25, share
    finally:
        for region in regions:
            region.clean_up()


def test_a_region_that_waits_for_others_can_be_stopped(tmp_path: pathlib.Path) -> None:
    region = Region(tmp_path, 1, 2, {"epochs": "3", "hidden": "8"})
    region.start()
    try:
        region.leader.wait_for(lambda line: line.startswith("host="))
        # Stopped while it waits, it exits without a failure.
        for host in region.hosts:
            host.process.send_signal(signal.SIGTERM)
        assert region.leader.process.wait(SECONDS_MAX) == 0
        region.leader.reader.join()
        assert any("stopped before the first step" in line for line in region.leader.lines), (
            region.leader.lines
        )
    finally:
        region.clean_up()
