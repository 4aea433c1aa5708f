"""Tests that `trainyard explain` shows what would make a waiting job start, and that its advice is
right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests import jobs
from tests.command_line import output_of
from tests.trainyard_server import Server, wait_for

OWNER = ("AKIAOWNER00000000001", "owner-secret-0000000000000000000000000001")
ANN = ("AKIAANN0000000000001", "ann-secret-00000000000000000000000000001")
# Capacity for one job of two hosts of two vCPU, and for no second one.
CONFIG = f"""
[jobs]
stop_grace_seconds = 1
[[access_key]]
id = "{OWNER[0]}"
secret = "{OWNER[1]}"
user = "owner"
[[access_key]]
id = "{ANN[0]}"
secret = "{ANN[1]}"
user = "ann"
[[user]]
name = "ann"
policy = '''{{"Version": "2012-10-17", "Statement": [
  {{"Effect": "Allow", "Action": ["trainyard:ExplainJob", "trainyard:DescribeJob"],
    "Resource": "arn:aws:trainyard:*:*:job/waits*"}},
  {{"Effect": "Allow", "Action": "sagemaker:DescribeTrainingJob",
    "Resource": "arn:aws:sagemaker:*:*:training-job/waits*"}}]}}'''
[[machine]]
name = "box"
cpus = 5.0
memory_gib = 16.0
"""


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(CONFIG, bucket="yard")


def submit(server: Server, name: str, hosts: int, script: str = "sleep 3600") -> None:
    request = jobs.request(name, script, hosts=hosts)
    server.boto("sagemaker").create_training_job(**request)


@pytest.fixture(scope="module")
def waiting(server: Server) -> Iterator[str]:
    """Starts a job of two hosts that waits for a job with almost all of the machine."""
    sagemaker = server.boto("sagemaker")
    submit(server, "holds", 2)
    jobs.wait_until(sagemaker, "holds", ["Training"])
    submit(server, "waits", 2)
    yield "waits"


def cli(server: Server, *arguments: str, key: tuple[str, str] = OWNER, code: int = 0) -> str:
    return output_of(server, key, *arguments, code=code)


def explained(server: Server, name: str, key: tuple[str, str] = OWNER) -> dict[str, Any]:
    """Returns the explanation once the scheduler has planned the job."""

    def planned() -> dict[str, Any] | None:
        answer: dict[str, Any] = json.loads(cli(server, "explain", name, "--json", key=key))
        return answer if answer.get("WaitReason") else None

    return wait_for(planned, f"an explanation of {name}")


def test_explain_shows_why_a_job_waits_and_what_would_help(server: Server, waiting: str) -> None:
    answer = explained(server, waiting)
    assert "held by training-job/holds (4)" in answer["WaitReason"]
    assert answer["Waiting"] and answer["Complete"]
    limit = server.boto("sagemaker").describe_training_job(TrainingJobName="holds")
    runs_until = limit["TrainingStartTime"].timestamp() + 300
    assert answer["StartTime"] >= runs_until, "a start that is certain"
    changes = {one["Kind"]: one for one in answer["Changes"]}
    assert changes["StopRunningJob"]["JobName"] == "holds"
    assert changes["StopRunningJob"]["Now"]
    assert changes["AddMachines"]["To"] == 1
    assert all(one["Now"] or one["StartTime"] < answer["StartTime"] for one in answer["Changes"])
    page = cli(server, "explain", waiting)
    assert "stop training-job/holds, which runs" in page
    assert "if nothing changes" in page


def test_a_principal_learns_nothing_of_other_jobs(
    server: Server, waiting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = explained(server, waiting, ANN)
    assert "held by another job (4)" in answer["WaitReason"]
    assert "holds" not in json.dumps(answer)
    assert "StopRunningJob" not in {one["Kind"] for one in answer["Changes"]}
    refused = cli(server, "explain", "holds", key=ANN, code=1)
    assert "not authorized to perform: trainyard:DescribeJob" in refused
    monkeypatch.setenv("AWS_DATA_PATH", server.env["AWS_DATA_PATH"])
    boto = server.boto("trainyard", aws_access_key_id=ANN[0], aws_secret_access_key=ANN[1])
    with pytest.raises(ClientError, match="trainyard:ExplainJob"):
        boto.explain_job(JobName="holds")


def test_a_description_names_only_jobs_that_its_reader_may_see(
    server: Server, waiting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DATA_PATH", server.env["AWS_DATA_PATH"])
    for key, holder in ((OWNER, "training-job/holds"), (ANN, "another job")):
        keys = {"aws_access_key_id": key[0], "aws_secret_access_key": key[1]}
        job = server.boto("sagemaker", **keys).describe_training_job(TrainingJobName=waiting)
        own = server.boto("trainyard", **keys).describe_job(JobName=waiting)
        for reason in (job["SecondaryStatusTransitions"][-1]["StatusMessage"], own["WaitReason"]):
            assert f"held by {holder} (4)" in reason


def test_types_that_it_names_can_be_requested(server: Server, waiting: str) -> None:
    sagemaker = server.boto("sagemaker")
    allowed = sagemaker.meta.service_model.shape_for("TrainingInstanceType").enum
    named = []
    for size in ("2xlarge", "4xlarge", "12xlarge"):  # more than the machine has
        name = f"needs-{size}"
        request = jobs.request(name, "true", instance_type=f"ml.m5.{size}")
        sagemaker.create_training_job(**request)
        changes = explained(server, name)["Changes"]
        named += [one["Name"] for one in changes if one["Kind"] == "ChangeType"]
        sagemaker.stop_training_job(TrainingJobName=name)
        jobs.wait_until(sagemaker, name)
    assert named
    assert set(named) <= set(allowed)


# The last test: it ends the job that the others wait for.
def test_the_advice_is_correct(server: Server, waiting: str) -> None:
    sagemaker = server.boto("sagemaker")
    stop = next(
        one for one in explained(server, waiting)["Changes"] if one["Kind"] == "StopRunningJob"
    )
    assert stop["Now"]
    sagemaker.stop_training_job(TrainingJobName=stop["JobName"])
    jobs.wait_until(sagemaker, waiting, ["Training"])
    assert "does not wait" in cli(server, "explain", waiting)
    assert not json.loads(cli(server, "explain", waiting, "--json"))["Waiting"]
