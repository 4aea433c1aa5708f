"""Tests the Slurm options that a job gets from its queue and its submitter."""

from collections.abc import Callable
from typing import Any

import pytest

from tests import jobs, nodes
from tests.calls import fresh
from tests.slurm.cluster import Cluster
from tests.slurm.conftest import INTERFACES, interface_keys
from tests.trainyard_server import Server

OWNER = "owner"  # the user of a server's own key


def last_job(cluster: Cluster, columns: str) -> str:
    """Returns some columns of squeue for the last job that Slurm lists."""
    return max(cluster.jobs("%A|" + columns), key=lambda job: int(job[0]))[1]


def train(server: Server) -> dict[str, Any]:
    name = fresh("job")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request(name, "true"))
    return jobs.wait_until(sagemaker, name)


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_job_has_the_account_of_its_submitter(
    cluster: Cluster, start: Callable[..., Server], interface: str
) -> None:
    users = f'[slurm.users]\n{OWNER} = {{ account = "physics" }}\n"*" = {{ account = "guests" }}\n'
    server = start(
        f'{interface_keys(cluster, interface)}account = "lab"\nrequire_user = true\n{users}'
    )
    server.boto("s3").create_bucket(Bucket="yard")
    job = train(server)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert last_job(cluster, "%a") == "physics"
    assert f" by={OWNER} " in last_job(cluster, "%k")


def test_a_job_of_an_unknown_submitter_is_rejected(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    server = start('require_user = true\n[slurm.users]\nana = { account = "physics" }')
    server.boto("s3").create_bucket(Bucket="yard")
    before = len(cluster.jobs())
    job = train(server)
    assert job["TrainingJobStatus"] == "Failed"
    assert (
        f"the user or role '{OWNER}' is not in the config's [slurm.users]" in job["FailureReason"]
    )
    assert len(cluster.jobs()) == before


def test_jobs_of_a_queue_have_its_account_and_licences(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    server = start(
        'account = "lab"\n[slurm.queues.solving]\naccount = "chemistry"\nlicenses = "solver:1"'
    )
    batch = server.boto("batch")
    environment = batch.create_compute_environment(
        computeEnvironmentName="nodes",
        type="MANAGED",
        computeResources={"type": "EC2", "minvCpus": 0, "maxvCpus": 16},
    )["computeEnvironmentArn"]
    for queue, account, licences in (
        ("plain", "lab", "(null)"),
        ("solving", "chemistry", "solver:1"),
    ):
        batch.create_job_queue(
            jobQueueName=queue,
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
        )
        job = nodes.wait_until(
            batch,
            nodes.submit(
                batch, queue, nodes.container("echo hello"), timeout={"attemptDurationSeconds": 600}
            ),
        )
        assert job["status"] == "SUCCEEDED", job.get("statusReason")
        assert nodes.lines(server, job) == ["hello"]
        assert last_job(cluster, "%a") == account
        assert last_job(cluster, "%W") == licences
