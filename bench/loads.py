"""Starts servers, runs load programs and reads their output, for the benches of the server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

import botocore.auth
import botocore.awsrequest
import botocore.credentials
from botocore.client import BaseClient

from bench.rows import BIN, ROOT
from tests import jobs, trainyard_server
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


TIMEOUT_SECONDS = 120
# Configs: a machine on which all jobs of a bench fit, and one on which ml.m5.24xlarge waits.
LARGE_MACHINE = "[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 256.0\n"
SMALL_MACHINE = "[[machine]]\nname = 'small'\ncpus = 1.0\nmemory_gib = 1.0\n"


def with_server(
    config: str = "", below: str = os.path.join(ROOT, "build"), programs: str = BIN
) -> Server:
    """Returns a server, not started, with a data directory of its own. `programs`: the folder of
    the server and its agents."""
    directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=below)
    server = trainyard_server.Server(os.path.join(directory, "data"), config)
    server.program = os.path.join(programs, "trainyard")
    return server


def wait_for_removal(server: Server) -> None:
    """Waits until the last job has been removed completely."""
    trainyard_server.wait_for(
        lambda: not os.listdir(os.path.join(server.data, "attempts")), "the last job to be gone"
    )


def start_milliseconds(
    sagemaker: BaseClient, logs: BaseClient, name: str, hosts: int, **more: Any
) -> float:
    """Runs a job, and returns the time from its acceptance to the user process of its last host.
    The process first prints its clock."""
    sagemaker.create_training_job(**jobs.request(name, "date +%s.%N", hosts=hosts, **more))
    accepted = time.time()
    jobs.wait_until(sagemaker, name)
    began = [float(line) for line in jobs.log_lines(logs, name) if re.fullmatch(r"\d+\.\d+", line)]
    assert len(began) == hosts, (name, began)
    return (max(began) - accepted) * 1000


def keys(server: Server) -> list[str]:
    return [
        "--server",
        server.listen,
        "--id",
        server.env["AWS_ACCESS_KEY_ID"],
        "--secret",
        server.env["AWS_SECRET_ACCESS_KEY"],
    ]


def call_signed(
    server: Server, service: str, target: str, request: Mapping[str, Any] | bytes
) -> dict[str, Any]:
    """Sends a signed request, or its JSON, and parses the answer. boto3 takes longer than many
    operations: two seconds to make a datetime of each of 100,000 points."""
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": target}
    signed = botocore.awsrequest.AWSRequest("POST", f"http://{server.listen}/", headers, body)
    keys = botocore.credentials.Credentials(
        server.env["AWS_ACCESS_KEY_ID"], server.env["AWS_SECRET_ACCESS_KEY"]
    )
    botocore.auth.SigV4Auth(keys, service, "us-east-1").add_auth(signed)
    with urllib.request.urlopen(
        urllib.request.Request(signed.url, body, dict(signed.headers.items())),
        timeout=TIMEOUT_SECONDS,
    ) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


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
