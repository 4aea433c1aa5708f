"""Tests jumps of a machine's wall clock while jobs run and wait, and while the server is not
running: no job ends early, and no history is reversed. libfaketime sets the clock of the server and
its agents; the machine's clock is unchanged."""

import datetime
import glob
import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Collection, Iterator
from typing import Any

import botocore.exceptions
import pytest

from tests import jobs, trainyard_server
from tests.trainyard_server import Server, wait_for

FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")[0]
# One machine that holds one host of ml.t3.medium.
CONFIG = "[[machine]]\nname = 'box'\ncpus = 2.0\nmemory_gib = 4.0\n[jobs]\nstop_grace_seconds = 5\n"
HOUR = 3600


class JumpingServer(Server):
    """Is a server whose wall clock a test sets with jump(), also for its agents; their monotonic
    clocks are the machine's."""

    def __init__(self, data: pathlib.Path) -> None:
        self.offset_file = str(data) + ".offset"
        self.fake = {
            "LD_PRELOAD": FAKETIME,
            "FAKETIME_TIMESTAMP_FILE": self.offset_file,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_NO_CACHE": "1",
            "NO_FAKE_STAT": "1",
            "FAKETIME_DONT_RESET": "1",
        }
        self.jump(0)
        super().__init__(
            data, CONFIG, behind=["env", *(f"{name}={value}" for name, value in self.fake.items())]
        )

    def jump(self, seconds: float) -> None:
        """Sets the clock ahead of the true time by this amount."""
        self.offset = seconds
        with open(self.offset_file + ".new", "w", encoding="utf-8") as file:
            file.write(f"{seconds:+d}\n")
        os.rename(self.offset_file + ".new", self.offset_file)

    def attempts(self) -> list[str]:
        return os.listdir(os.path.join(self.data, "attempts"))

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=self.offset)

    def describe(self, name: str) -> dict[str, Any]:
        """Describes with a client whose clock is set like the server's."""
        done = subprocess.run(
            [
                trainyard_server.TODAYS_AWS,
                "sagemaker",
                "describe-training-job",
                "--training-job-name",
                name,
                "--output",
                "json",
            ],
            env=self.environment() | self.fake,
            capture_output=True,
            text=True,
            timeout=trainyard_server.WAIT_SECONDS_MAX,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def create(self, request: dict[str, Any]) -> None:
        done = subprocess.run(
            [
                trainyard_server.TODAYS_AWS,
                "sagemaker",
                "create-training-job",
                "--cli-input-json",
                json.dumps(request),
            ],
            env=self.environment() | self.fake,
            capture_output=True,
            text=True,
            timeout=trainyard_server.WAIT_SECONDS_MAX,
        )
        assert done.returncode == 0, done.stderr

    def wait(self, name: str, statuses: Collection[str]) -> dict[str, Any]:
        seen = {}

        def reached() -> bool:
            seen.update(self.describe(name))
            return seen["TrainingJobStatus"] in statuses or seen["SecondaryStatus"] in statuses

        wait_for(reached, f"{name} to be one of {statuses}")
        return seen


def sleeper(seconds: str) -> int | None:
    """Returns the pid of a job's `sleep SECONDS`; once it is killed, the job continues."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if file.read().split(b"\0")[:2] == [b"sleep", seconds.encode()]:
                    return int(path.split("/")[2])
        except OSError:
            continue
    return None


def long_request(name: str, seconds: str, **more: Any) -> dict[str, Any]:
    """Runs until its sleeper is killed; its limits are far from any minute of a test,
    and nearer than an hour."""
    script = f"echo begins; sleep {seconds}; echo trained > /opt/ml/model/weights; echo ends"
    return jobs.request(
        name,
        script,
        StoppingCondition={"MaxRuntimeInSeconds": 1800, "MaxWaitTimeInSeconds": 2400},
        EnableManagedSpotTraining=True,
        **more,
    )


def instant(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def check_times(job: dict[str, Any]) -> None:
    """Checks that times are in order and durations are exact."""
    created, began, ended = (
        instant(job[name]) for name in ("CreationTime", "TrainingStartTime", "TrainingEndTime")
    )
    assert created <= began <= ended <= instant(job["LastModifiedTime"])
    phases = job["SecondaryStatusTransitions"]
    for before, after in zip(phases, phases[1:]):
        assert (
            instant(before["StartTime"])
            <= instant(before["EndTime"])
            <= instant(after["StartTime"])
        )
    assert 0 <= job["BillableTimeInSeconds"] <= job["TrainingTimeInSeconds"] < HOUR / 2


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[JumpingServer]:
    one = JumpingServer(tmp_path / "data")
    try:
        one.start()
        one.boto("s3").create_bucket(Bucket="yard")
        yield one
        wait_for(lambda: not one.attempts(), "the hosts of all jobs to be gone")
    finally:
        one.clean()


@pytest.mark.parametrize(
    "seconds", [HOUR, -HOUR, 25 * HOUR], ids=["an hour forward", "an hour back", "a day forward"]
)
def test_no_job_ends(server: JumpingServer, seconds: float) -> None:
    naps = f"86399.{os.getpid()}{abs(seconds)}"
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**long_request("runs", naps))
    pid = wait_for(lambda: sleeper(naps), "the job to run")
    sagemaker.create_training_job(**long_request("waits", naps))
    assert server.describe("waits")["SecondaryStatus"] == "Starting"

    server.jump(seconds)
    # Commands continue. The loops have read the new time
    # when a job that was created after the jump is listed.
    server.create(jobs.request("created-after", "true"))
    after = server.describe("created-after")
    assert abs((instant(after["CreationTime"]) - server.now()).total_seconds()) < 300, (
        "its creation is told by the clock"
    )
    wait_for(lambda: "the wall clock was changed" in server.log_text(), "the server to notice")
    with pytest.raises(botocore.exceptions.ClientError, match="RequestTimeTooSkewed"):
        server.boto("s3").list_buckets()
    assert server.describe("runs")["TrainingJobStatus"] == "InProgress"
    assert server.describe("waits")["TrainingJobStatus"] == "InProgress"

    os.kill(pid, signal.SIGTERM)
    check_times(server.wait("runs", jobs.FINAL))
    assert server.describe("runs")["TrainingJobStatus"] == "Completed", (
        "its own keys continued to work: the model is stored"
    )
    os.kill(wait_for(lambda: sleeper(naps), "the next job to run"), signal.SIGTERM)
    for name in ("waits", "created-after"):
        done = server.wait(name, jobs.FINAL)
        assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
        check_times(done)


def test_no_job_ends_when_the_clock_is_set_while_the_server_is_away(server: JumpingServer) -> None:
    naps = f"86398.{os.getpid()}"
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**long_request("runs", naps))
    wait_for(lambda: sleeper(naps), "the job to run")
    for seconds in (HOUR, -HOUR, 0):
        server.kill()
        server.jump(seconds)
        server.start()
        assert server.describe("runs")["TrainingJobStatus"] == "InProgress"
        assert server.wait("runs", ["Training"])["SecondaryStatus"] == "Training"
    os.kill(sleeper(naps), signal.SIGTERM)
    done = server.wait("runs", jobs.FINAL)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    check_times(done)


def test_a_suspended_agent_is_not_given_up(server: JumpingServer) -> None:
    naps = f"86397.{os.getpid()}"
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**long_request("runs", naps))
    pid = wait_for(lambda: sleeper(naps), "the job to run")
    (agent,) = server.agents()
    os.kill(agent, signal.SIGSTOP)
    try:
        os.kill(pid, signal.SIGTERM)  # the process ends while no agent watches it
        wait_for(lambda: sleeper(naps) is None, "the process to end")
        server.jump(HOUR)
        wait_for(lambda: "the wall clock was changed" in server.log_text(), "the server to notice")
        assert server.describe("runs")["TrainingJobStatus"] == "InProgress"
    finally:
        os.kill(agent, signal.SIGCONT)
    done = server.wait("runs", jobs.FINAL)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    check_times(done)


def test_a_suspended_server_ends_no_job(server: JumpingServer) -> None:
    naps = f"86396.{os.getpid()}"
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**long_request("runs", naps))
    pid = wait_for(lambda: sleeper(naps), "the job to run")
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        server.jump(HOUR)
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: sleeper(naps) is None, "the process to end")
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    done = server.wait("runs", jobs.FINAL)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    check_times(done)


def test_a_clock_set_ahead_removes_no_objects(server: JumpingServer) -> None:
    s3 = server.boto("s3")
    for key in ("kept", "over"):
        s3.put_object(Bucket="yard", Key=key, Body=b"x")
    rules: list[dict[str, Any]] = [
        {"Filter": {"Prefix": "kept"}, "Expiration": {"Days": 1}},
        {"Filter": {"Prefix": "over"}, "Expiration": {"Date": "2020-01-01T00:00:00Z"}},
    ]
    s3.put_bucket_lifecycle_configuration(
        Bucket="yard",
        LifecycleConfiguration={"Rules": [rule | {"Status": "Enabled"} for rule in rules]},
    )
    server.stop()
    server.jump(25 * 24 * HOUR)
    server.start()
    wait_for(lambda: "lifecycle rules were applied" in server.log_text(), "the rules to be applied")
    server.jump(0)  # for the client
    found = s3.list_objects_v2(Bucket="yard")["Contents"]
    assert [one["Key"] for one in found] == ["kept"]
