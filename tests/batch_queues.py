"""Creates what jobs of Batch are submitted to."""

from __future__ import annotations

from botocore.client import BaseClient

from tests.trainyard_server import Server


def create_queues(server: Server, **queues: dict[str, str]) -> BaseClient:
    """Creates a compute environment of the whole machine, and queues by name with their tags."""
    batch = server.boto("batch")
    environment = batch.create_compute_environment(
        computeEnvironmentName="all",
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "minvCpus": 0,
            "maxvCpus": 4096,
            "instanceTypes": ["optimal"],
        },
    )
    for name, tags in queues.items():
        batch.create_job_queue(
            jobQueueName=name,
            priority=1,
            tags=tags,
            computeEnvironmentOrder=[
                {"order": 1, "computeEnvironment": environment["computeEnvironmentArn"]}
            ],
        )
    return batch
