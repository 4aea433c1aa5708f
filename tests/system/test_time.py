"""Tests `trainyard time`: how the time of real jobs was used, including interrupted ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests import jobs, trainyard_server
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.usefixtures("own_operations")

SPOT: dict[str, Any] = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
}


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start("[jobs]\nstop_grace_seconds = 1\n", bucket="yard")


def cli(server: Server, *arguments: str) -> str:
    done = subprocess.run(
        [trainyard_server.PROGRAM, *arguments],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=trainyard_server.WAIT_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def time_of(server: Server, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(cli(server, "time", name, "--json"))
    uses = sum(one["Milliseconds"] for one in answer["Uses"])
    intervals = sum(one["Milliseconds"] for one in answer["Intervals"])
    assert uses == intervals == answer["WallMilliseconds"], answer
    return answer


def uses_of(answer: dict[str, Any]) -> list[str]:
    return [one["Use"] for one in answer["Intervals"]]


def test_the_uses_of_a_job_add_up_to_its_wall_time(server: Server) -> None:
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("plain", "sleep 1"))
    described = jobs.wait_until(sagemaker, "plain")
    answer = time_of(server, "plain")
    end = described["SecondaryStatusTransitions"][-1]["EndTime"]
    wall = (end - described["CreationTime"]).total_seconds() * 1000
    assert answer["WallMilliseconds"] == pytest.approx(wall, abs=1)
    uses = uses_of(answer)
    assert uses[-2:] == ["Training", "Uploading"] or uses[-1] == "Training"
    assert {one["Use"]: one for one in answer["Uses"]}["Training"]["Milliseconds"] >= 1000
    assert 0 < answer["EffectiveTrainingTimeRatio"] <= answer["Goodput"] <= 1
    assert answer["LostWorkIsKnown"]
    page = cli(server, "time", "plain")
    assert "ETTR" in page and "training" in page


def interrupt(server: Server, name: str) -> None:
    """Interrupts the first attempt, and waits for the end of the second one."""
    sagemaker = server.boto("sagemaker")
    jobs.wait_until(sagemaker, name, ["Training"])
    server.boto("trainyard").interrupt_training_job(TrainingJobName=name, NoticeInSeconds=1)

    def again() -> bool:
        job = server.boto("trainyard").describe_job(JobName=name)
        return job["Attempts"] == 2 and job["SecondaryStatus"] == "Training"

    wait_for(again, f"the second attempt of {name}")
    sagemaker.stop_training_job(TrainingJobName=name)
    jobs.wait_until(sagemaker, name)


def test_work_before_an_interruption_is_lost(server: Server) -> None:
    server.boto("sagemaker").create_training_job(**jobs.request("spot", "sleep 3600", **SPOT))
    interrupt(server, "spot")
    answer = time_of(server, "spot")
    uses = uses_of(answer)
    assert uses.index("Lost") < uses.index("Interrupted") < uses.index("QueuedAgain")
    assert "Training" in uses[uses.index("QueuedAgain") :]
    assert "Stopping" in uses
    lost = {one["Use"]: one["Milliseconds"] for one in answer["Uses"]}["Lost"]
    held = answer["HeldMilliseconds"]
    assert 0 < lost < held <= answer["WallMilliseconds"]
    assert answer["Goodput"] < 1
    assert answer["LostWorkIsKnown"]


def test_with_checkpoints_the_lost_part_is_unknown(server: Server) -> None:
    request = jobs.request(
        "checkpointed",
        "sleep 3600",
        CheckpointConfig={"S3Uri": "s3://yard/checkpoints"},
        **SPOT,
    )
    server.boto("sagemaker").create_training_job(**request)
    interrupt(server, "checkpointed")
    answer = time_of(server, "checkpointed")
    assert "Lost" not in uses_of(answer)
    assert not answer["LostWorkIsKnown"]
    assert "at most" in cli(server, "time", "checkpointed")


# After the jobs above.
def test_the_time_of_all_jobs_is_added_up(server: Server) -> None:
    report = json.loads(cli(server, "time", "--by", "job", "--json"))
    single = {name: time_of(server, name) for name in ("plain", "spot", "checkpointed")}
    groups = {group["Key"]: group for group in report["Groups"]}
    assert groups.keys() == single.keys()
    for name, answer in single.items():
        assert groups[name]["WallMilliseconds"] == answer["WallMilliseconds"]
        assert groups[name]["Uses"] == answer["Uses"]
    total = sum(answer["WallMilliseconds"] for answer in single.values())
    assert report["Total"]["WallMilliseconds"] == total
    for by in ("user", "queue", "month"):
        [group] = json.loads(cli(server, "time", "--by", by, "--json"))["Groups"]
        assert group["WallMilliseconds"] == total
        assert group["Jobs"] == len(single)
    assert "goodput" in cli(server, "time")
