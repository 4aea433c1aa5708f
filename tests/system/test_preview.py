"""Tests PreviewJob: a preview predicts what happens, rejects what creating the job rejects, and
leaves nothing behind. Also tests the templates that teams save, which survive kill -9."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError

from tests import jobs, trainyard_server
from tests.trainyard_server import Server

pytestmark = pytest.mark.usefixtures("own_operations")

OWNER = ("AKIAOWNER00000000001", "owner-secret-0000000000000000000000000001")
ANN = ("AKIAANN0000000000001", "ann-secret-00000000000000000000000000001")
BOB = ("AKIABOB0000000000001", "bob-secret-00000000000000000000000000001")
# There is capacity for one job of two hosts with two vCPU each. Ann may preview, and create jobs
# whose names begin with ann-; bob may only preview.
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
[[access_key]]
id = "{BOB[0]}"
secret = "{BOB[1]}"
user = "bob"
[[user]]
name = "ann"
policy = '''{{"Version": "2012-10-17", "Statement": [
  {{"Effect": "Allow", "Action": ["trainyard:PreviewJob", "trainyard:ListJobTemplates"],
    "Resource": "*"}},
  {{"Effect": "Allow", "Action": ["trainyard:PutJobTemplate"],
    "Resource": "arn:aws:trainyard:*:*:job-template/ann-*"}},
  {{"Effect": "Allow", "Action": ["s3:*"], "Resource": "*"}},
  {{"Effect": "Allow", "Action": ["sagemaker:CreateTrainingJob", "iam:PassRole"],
    "Resource": ["arn:aws:sagemaker:*:*:training-job/ann-*", "arn:aws:iam::*:role/trainer"]}}]}}'''
[[user]]
name = "bob"
policy = '''{{"Version": "2012-10-17", "Statement": [
  {{"Effect": "Allow", "Action": "trainyard:PreviewJob", "Resource": "*"}}]}}'''
[[machine]]
name = "box"
cpus = 5.0
memory_gib = 16.0
"""


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(CONFIG, bucket="yard")


def client(server: Server, key: tuple[str, str] = OWNER) -> BaseClient:
    return server.boto("trainyard", aws_access_key_id=key[0], aws_secret_access_key=key[1])


def preview(
    server: Server, request: dict[str, Any], key: tuple[str, str] = OWNER, **more: Any
) -> dict[str, Any]:
    answer: dict[str, Any] = client(server, key).preview_job(
        TrainingJobRequest=json.dumps(request), **more
    )
    return answer


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        call()
    error = refused.value.response["Error"]
    return error["Code"], error["Message"]


def test_a_preview_predicts_what_happens(server: Server) -> None:
    sagemaker = server.boto("sagemaker")
    first = jobs.request("first", "sleep 3600", hosts=2)
    answer = preview(server, first)
    assert answer["StartsNow"] and "WaitReason" not in answer, answer
    hour, most = (float(answer[each]["Amount"]) for each in ("CostPerHour", "CostAtMaxRuntime"))
    assert hour > 0
    assert most == pytest.approx(hour * 300 / 3600, abs=2e-6)
    assert refusal(lambda: sagemaker.describe_training_job(TrainingJobName="first"))
    sagemaker.create_training_job(**first)
    jobs.wait_until(sagemaker, "first", ["Training"])

    second = jobs.request("second", "true", hosts=2)
    answer = preview(server, second, WithChanges=True)
    assert not answer["StartsNow"]
    assert "held by training-job/first (4)" in answer["WaitReason"]
    assert answer["StartTime"] > jobs.wait_until(sagemaker, "first", ["Training"])["CreationTime"]
    kinds = {change["Kind"] for change in answer["Changes"]}
    assert {"StopRunningJob", "AddMachines"} <= kinds
    sagemaker.create_training_job(**second)
    waits = trainyard_server.wait_for(
        lambda: client(server).explain_job(JobName="second").get("WaitReason"), "second waits"
    )
    assert waits == answer["WaitReason"]
    # The suggested change makes the job start.
    [stop] = [change for change in answer["Changes"] if change["Kind"] == "StopRunningJob"]
    assert stop["Now"]
    sagemaker.stop_training_job(TrainingJobName=stop["JobName"])
    jobs.wait_until(sagemaker, "second", ["Completed"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"TrainingJobName": "-"},
        {"RoleArn": "arn:aws:iam::123456789012:user/x"},
        {"AlgorithmSpecification": {"TrainingImage": "absent"}},
        {"ResourceConfig": {"InstanceType": "ml.absent.large"}},
        {"ResourceConfig": {"InstanceCount": 100_000}},
        {"OutputDataConfig": {"S3OutputPath": "http://yard/x"}},
        {"StoppingCondition": {"MaxRuntimeInSeconds": 99_999_999}},
        {"Tags": [{"Key": "aws:x", "Value": "y"}]},
        {"HyperParameters": {"x" * 300: "y"}},
        {"EnableManagedSpotTraining": True, "StoppingCondition": {"MaxWaitTimeInSeconds": 1}},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_preview_rejects_what_creating_rejects(server: Server, wrong: dict[str, Any]) -> None:
    request = jobs.request("wrong", "true", **wrong)
    unchecked = Config(parameter_validation=False, retries={"max_attempts": 0})
    boto = server.boto("sagemaker", config=unchecked)
    created = refusal(lambda: boto.create_training_job(**request))
    assert refusal(lambda: preview(server, request)) == created


def test_a_preview_needs_the_permissions_to_create(server: Server) -> None:
    request = jobs.request("ann-1", "true")
    assert preview(server, request, ANN)["StartsNow"] in (True, False)
    for name, key in (("other-1", ANN), ("ann-1", BOB), ("first", BOB)):
        request["TrainingJobName"] = name
        code, message = refusal(lambda: preview(server, request, key))
        assert code == "AccessDeniedException"
        assert "not authorized to perform: sagemaker:CreateTrainingJob" in message
    request = jobs.request("ann-1", "true", RoleArn="arn:aws:iam::123456789012:role/admin")
    assert "iam:PassRole" in refusal(lambda: preview(server, request, ANN))[1]


def test_jobs_of_others_are_not_disclosed(server: Server) -> None:
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("holds-all", "sleep 3600", hosts=2))
    jobs.wait_until(sagemaker, "holds-all", ["Training"])
    answer = preview(server, jobs.request("ann-2", "true", hosts=2), ANN, WithChanges=True)
    assert "held by another job (4)" in answer["WaitReason"]
    assert "holds-all" not in json.dumps(answer, default=str)
    sagemaker.stop_training_job(TrainingJobName="holds-all")
    jobs.wait_until(sagemaker, "holds-all", ["Stopped"])


def test_the_command_line_previews_a_file(server: Server, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text('image = "trainyard/host"\ncommand = "echo hello"\ninstance_count = 50\n')
    done = subprocess.run(
        [trainyard_server.PROGRAM, "submit", str(file), "--name", "of-a-file", "--preview"],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=trainyard_server.WAIT_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert "unknown, if nothing changes" in done.stdout
    assert "an hour" in done.stdout
    assert refusal(
        lambda: server.boto("sagemaker").describe_training_job(TrainingJobName="of-a-file")
    )


# Last: it kills the server.
def test_templates_survive_kill_9(server: Server) -> None:
    boto = client(server)
    request = {"HyperParameters": {"epochs": "3"}, "Environment": {"DEBUG": "1"}}
    boto.put_job_template(
        TemplateName="digits",
        Description="of the team",
        TrainingJobRequest=json.dumps(request),
        SecretEnvironment=["HF_TOKEN"],
    )
    client(server, ANN).put_job_template(TemplateName="ann-own", TrainingJobRequest="{}")
    code, message = refusal(
        lambda: client(server, ANN).put_job_template(TemplateName="digits", TrainingJobRequest="{}")
    )
    assert (code, "job-template/digits" in message) == ("AccessDeniedException", True)
    request["Environment"]["HF_TOKEN"] = "hunter2"
    code, message = refusal(
        lambda: boto.put_job_template(TemplateName="leak", TrainingJobRequest=json.dumps(request))
    )
    assert (code, "hunter2" in message) == ("ValidationException", False)
    server.kill()
    server.start()
    first, second = client(server).list_job_templates()["Templates"]
    assert (first["TemplateName"], second["TemplateName"]) == ("ann-own", "digits")
    assert json.loads(second["TrainingJobRequest"])["HyperParameters"] == {"epochs": "3"}
    assert (second["Description"], second["SecretEnvironment"]) == ("of the team", ["HF_TOKEN"])
    client(server).delete_job_template(TemplateName="digits")
    server.kill()
    server.start()
    [left] = client(server).list_job_templates()["Templates"]
    assert left["TemplateName"] == "ann-own"
