"""Tests the scratch space of a Batch job (ephemeralStorage), with images with and without a volume.
A job that fills it, with bytes or with files, gets an error that its log explains; the job next to
it keeps running."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import oci
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
NEIGHBOUR = "while :; do { echo x > /tmp/beside && echo x > /beside; } || exit 7; sleep 0.2; done"
# name -> image ("" = one of layers), the command that fills it, the text in the log
FILLS = {
    "layer-bytes": (
        "",
        "busybox fallocate -l 2G /full || busybox dd if=/dev/zero of=/full bs=1M count=2000",
        "the volume of 1 GiB (ephemeralStorage) is full",
    ),
    "layer-files": (
        "",
        "mkdir /f; cd /f; busybox seq 100000 | busybox xargs busybox touch",
        "the volume of 1 GiB (ephemeralStorage) is full",
    ),
    "own-volume-bytes": (
        "",
        (
            "busybox fallocate -l 2G /scratch/full || busybox dd if=/dev/zero of=/scratch/full"
            " bs=1M count=2000"
        ),
        "the volume of 1 GiB (ephemeralStorage) is full",
    ),
    "layer-tmp-files": (
        "",
        "cd /tmp; busybox seq 400000 | busybox xargs busybox touch",
        "No space left on device",
    ),
    "memory-root-bytes": (
        "trainyard/host",
        "dd if=/dev/zero of=/full bs=1M count=2000",
        "No space left on device",
    ),
    "memory-tmp-bytes": (
        "trainyard/host",
        "dd if=/dev/zero of=/tmp/full bs=1M count=2000",
        "No space left on device",
    ),
    "memory-root-files": (
        "trainyard/host",
        "mkdir /f; cd /f; seq 400000 | xargs touch",
        "No space left on device",
    ),
    "memory-shm-files": (
        "trainyard/host",
        "cd /dev/shm; seq 400000 | xargs touch",
        "No space left on device",
    ),
}


@pytest.fixture(scope="module")
def batch(
    start: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory
) -> tuple[BaseClient, Callable[..., str], BaseClient]:
    server = start(
        "[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 32.0\n[jobs]\nstop_grace_seconds ="
        " 1\n[volumes.'/scratch']\n"
    )
    client = server.boto("batch")
    client.create_compute_environment(
        computeEnvironmentName="all",
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 8, "minvCpus": 0, "subnets": ["subnet-1"]},
    )
    client.create_job_queue(
        jobQueueName="queue",
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "all"}],
    )
    layout = oci.Layout(tmp_path_factory.mktemp("oci") / "layout")
    layout.image("v1", [oci.base()])

    def submit(name: str, image: str, command: Sequence[str]) -> str:
        image = image or f"oci:{layout.path}:v1"
        client.register_job_definition(
            jobDefinitionName=name,
            type="container",
            containerProperties={
                "image": image,
                "command": ["/bin/sh", "-c", command],
                "ephemeralStorage": {"sizeInGiB": 1},
                "resourceRequirements": [
                    {"type": "VCPU", "value": "1"},
                    {"type": "MEMORY", "value": "1024"},
                ],
                "volumes": (
                    [{"name": "v", "host": {"sourcePath": "/scratch"}}]
                    if "own-volume" in name
                    else []
                ),
                "mountPoints": (
                    [{"sourceVolume": "v", "containerPath": "/scratch"}]
                    if "own-volume" in name
                    else []
                ),
            },
        )
        return client.submit_job(jobName=name, jobQueue="queue", jobDefinition=name)["jobId"]

    return client, submit, server.boto("logs")


def described(client: BaseClient, number: str) -> dict[str, Any]:
    return client.describe_jobs(jobs=[number])["jobs"][0]


def test_a_job_that_fills_its_storage_fails_alone(
    batch: tuple[BaseClient, Callable[..., str], BaseClient],
) -> None:
    client, submit, logs = batch
    neighbours = [
        submit(f"beside-{number}", image, NEIGHBOUR)
        for number, image in enumerate(("", "trainyard/host"))
    ]
    wait_for(
        lambda: all(described(client, number)["status"] == "RUNNING" for number in neighbours),
        "the neighbours to run",
    )
    filling = {name: submit(name, image, command) for name, (image, command, _) in FILLS.items()}
    for name, number in filling.items():
        done = wait_for(
            lambda one=number: (
                (seen := described(client, one))["status"] in ("SUCCEEDED", "FAILED") and seen
            ),
            f"{name} to be over",
        )
        assert done["status"] == "FAILED" and done["container"]["exitCode"] != 0, (name, done)
        stream = done["container"]["logStreamName"]
        lines = [
            event["message"]
            for event in logs.get_log_events(
                logGroupName="/aws/batch/job", logStreamName=stream, startFromHead=False, limit=50
            )["events"]
        ]
        assert any(FILLS[name][2] in line for line in lines), (name, lines[-5:])
    for number in neighbours:
        assert described(client, number)["status"] == "RUNNING", described(client, number)
        client.terminate_job(jobId=number, reason="over")
