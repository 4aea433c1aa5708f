"""Tests that the examples' job files run unchanged on each launcher, with the same results."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from typing import Any

import pytest

from tests import jobs, nodes, scripts
from tests.trainyard_server import ROOT, Server

JOB_SECONDS_MAX = 300
# The weights of the digits, by launcher: gangs of the same size train the same model everywhere.
DIGESTS: dict[str, str] = {}


def run(server: Server, example: str, hosts: int | None = None) -> tuple[dict[str, Any], list[str]]:
    """Runs the example's job file with the AWS CLI; returns Describe's response and its log.
    `hosts`: the options of another gang, by which those of the file are replaced."""
    file = os.path.join(ROOT, "examples", example, "job.json")
    arguments = ["--cli-input-json", f"file://{file}"]
    with open(file, encoding="utf-8") as text:
        request = json.load(text)
    name = request["TrainingJobName"]
    if hosts is not None:
        name = f"{name}-{hosts}"
        resources = request["ResourceConfig"] | {"InstanceCount": hosts}
        arguments += ["--training-job-name", name, "--resource-config", json.dumps(resources)]
    server.aws("sagemaker", "create-training-job", *arguments)
    job = jobs.wait_until(server.boto("sagemaker"), name, seconds_max=JOB_SECONDS_MAX)
    lines = jobs.log_lines(server.boto("logs"), name)
    assert job["TrainingJobStatus"] == "Completed", (job.get("FailureReason"), lines[-20:])
    return job, lines


def upload_sources(server: Server, bucket: str, example: str, distribution: str) -> None:
    files, _ = scripts.example(example)
    body = scripts.archive(files | scripts.wheels("torch", distribution))
    server.boto("s3").put_object(Bucket=bucket, Key="sourcedir.tar.gz", Body=body)


def test_the_digits(server: Server, request: pytest.FixtureRequest) -> None:
    server.aws("s3", "cp", "--recursive", f"{ROOT}/build/digits/train", "s3://digits/train/")
    job, _ = run(server, "01_digits")
    bucket, _, key = job["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://").partition("/")
    model = server.boto("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    digest = hashlib.sha256()
    with tarfile.open(fileobj=io.BytesIO(model)) as archive:
        for member in sorted(archive.getmembers(), key=lambda each: each.name):
            if (content := archive.extractfile(member)) is not None:
                digest.update(content.read())
    launcher = request.node.callspec.params["server"]
    DIGESTS[launcher] = digest.hexdigest()
    assert DIGESTS[launcher] == next(iter(DIGESTS.values())), "another launcher's model differs"


def test_ddp(server: Server) -> None:
    upload_sources(server, "ddp", "02_ddp", "trainyard")
    _, lines = run(server, "02_ddp")
    scripts.check_example(lines, scripts.example("02_ddp")[1])


def test_horovod(server: Server) -> None:
    upload_sources(server, "horovod", "03_horovod", "trainyard-horovod")
    _, lines = run(server, "03_horovod")
    scripts.check_example(lines, scripts.example("03_horovod")[1])


def test_horovod_on_four_hosts(server: Server) -> None:
    upload_sources(server, "horovod", "03_horovod", "trainyard-horovod")
    _, lines = run(server, "03_horovod", hosts=4)
    weights = [line.split("weights ")[1] for line in lines if "weights" in line]
    assert len(weights) == 8 and len(set(weights)) == 1, lines[-20:]


def test_multinode(server: Server) -> None:
    """With small nodes, since the definition requests 62 vCPUs for each of 20."""
    folder = os.path.join(ROOT, "examples", "05_multinode")
    server.aws(
        "batch",
        "register-job-definition",
        "--cli-input-json",
        f"file://{folder}/job_definition.json",
    )
    small = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]
    environment = [{"name": "MPI_GPUS", "value": "20"}]
    overrides = {
        "nodePropertyOverrides": [
            {
                "targetNodes": "0:",
                "containerOverrides": {"resourceRequirements": small, "environment": environment},
            }
        ],
    }
    batch = server.boto("batch")
    queue = nodes.make_queue(batch, 4096)
    job = batch.submit_job(
        jobName="digits",
        jobQueue=queue,
        jobDefinition="mnptensorflow-gpu-mnp1",
        nodeOverrides=overrides,
    )["jobId"]
    done = nodes.wait_until(batch, job)
    output = nodes.lines(server, nodes.describe(batch, f"{job}#0"))
    assert done["status"] == "SUCCEEDED", (done, output)
    with open(os.path.join(folder, "expected_output.txt"), encoding="utf-8") as file:
        expected = file.read().splitlines()
    for beginning in expected:
        assert any(line.startswith(beginning) for line in output), (beginning, output)
