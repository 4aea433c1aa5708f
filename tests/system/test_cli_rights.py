"""Tests the commands about one job for users with few permissions: docs/operating/security.md."""

import json
from collections.abc import Callable

import pytest

from tests import jobs, nodes, trainyard_server
from tests.command_line import output_of
from tests.trainyard_server import Server

OWNER = ("AKIAOWNER00000000001", "owner-secret-0000000000000000000000000001")
ANN = ("AKIAANN0000000000001", "ann-secret-00000000000000000000000000001")
EVE = ("AKIAEVE0000000000001", "eve-secret-00000000000000000000000000001")
ZOE = ("AKIAZOE0000000000001", "zoe-secret-00000000000000000000000000001")
# The permissions that the page lists, with DescribeJob only for ann.
ACTIONS = [
    "sagemaker:StopTrainingJob",
    "batch:DescribeJobs",
    "batch:TerminateJob",
    "logs:DescribeLogStreams",
    "logs:GetLogEvents",
]
RUNNING = "echo seen; exec sleep 600"


def user(name: str, key: tuple[str, str], actions: list[str]) -> str:
    statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    return (
        f"[[access_key]]\nid = '{key[0]}'\nsecret = '{key[1]}'\nuser = '{name}'\n"
        f"[[user]]\nname = '{name}'\npolicy = '''{policy}'''\n"
    )


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(
        "[jobs]\nstop_grace_seconds = 1\n"
        f"[[access_key]]\nid = '{OWNER[0]}'\nsecret = '{OWNER[1]}'\n"
        + user("ann", ANN, [*ACTIONS, "trainyard:DescribeJob"])
        + user("eve", EVE, ACTIONS)
        + user("zoe", ZOE, ["trainyard:DescribeJob", "trainyard:Shell"]),
        bucket="yard",
    )


def cli(server: Server, key: tuple[str, str], *arguments: str, code: int = 0) -> str:
    return output_of(server, key, *arguments, code=code)


def training_job(server: Server) -> str:
    server.boto("sagemaker").create_training_job(**jobs.request("mnist", RUNNING))
    jobs.wait_until(server.boto("sagemaker"), "mnist", ("Training",))
    return "mnist"


def batch_job(server: Server) -> str:
    batch = server.boto("batch")
    job = nodes.submit(
        batch, nodes.make_queue(batch, 2), nodes.container(RUNNING), jobName="nightly"
    )
    nodes.wait_until(batch, job, ("RUNNING",))
    return job


@pytest.mark.parametrize("make", [training_job, batch_job])
def test_describe_job_is_what_stop_and_logs_need(
    server: Server, make: Callable[[Server], str]
) -> None:
    job = make(server)
    denied = "is not authorized to perform: trainyard:DescribeJob on resource: arn:aws:trainyard:"
    for command in (["logs", job], ["stop", job], ["shell", job, "algo-1", "true"]):
        output = cli(server, EVE, *command, code=1)
        assert "user/eve" in output and denied in output and f":job/{job} " in output, output
    trainyard_server.wait_for(lambda: "seen" in cli(server, ANN, "logs", job), "the log")
    # By a name, a Batch job is found in lists.
    by_name = cli(server, ANN, "stop", "nightly", code=1)
    assert "is not authorized to perform: trainyard:ListJobs" in by_name, by_name
    shell = cli(server, ANN, "shell", job, "algo-1", "true", code=1)
    assert "is not authorized to perform: trainyard:Shell" in shell, shell
    assert cli(server, ZOE, "shell", job, "algo-1", "echo", "inside") == "inside\n"
    now = cli(server, ANN, "stop", job, "--now", code=1)
    assert "is not authorized to perform: trainyard:KillJob" in now, now
    assert "has ended" in cli(server, ANN, "stop", job, "--wait")
