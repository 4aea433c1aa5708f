"""Helpers of the benches of the server: they start it, run load programs and read their output."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from botocore.client import BaseClient

from bench.rows import BIN, ROOT
from tests import trainyard_server
from tests.trainyard_server import Server


def rounds(program: str, *arguments: str) -> dict[str, list[dict[str, Any]]]:
    """Runs a C++ bench, and returns the measurements that it prints: side -> one per round."""
    done = subprocess.run(
        [os.path.join(BIN, program), *arguments], check=True, capture_output=True, text=True
    )
    sides: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
    for line in done.stdout.splitlines():
        one = json.loads(line)
        sides[one["side"]].append(one)
    return sides


def values(side: Sequence[dict[str, Any]], name: str) -> list[float]:
    return [one[name] for one in side]


def with_server(config: str = "", below: str = os.path.join(ROOT, "build")) -> Server:
    directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=below)
    return trainyard_server.Server(os.path.join(directory, "data"), config)


def keys(server: Server) -> list[str]:
    return [
        "--server",
        server.listen,
        "--id",
        server.env["AWS_ACCESS_KEY_ID"],
        "--secret",
        server.env["AWS_SECRET_ACCESS_KEY"],
    ]


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


def definition(batch: BaseClient, name: str, vcpus: int) -> None:
    batch.register_job_definition(
        jobDefinitionName=name,
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["/bin/true"],
            "resourceRequirements": [
                {"type": "VCPU", "value": str(vcpus)},
                {"type": "MEMORY", "value": "64"},
            ],
        },
    )
