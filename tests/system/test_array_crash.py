"""Tests that nothing is lost and nothing runs twice when the server is killed repeatedly in the
middle of an array, at times drawn from a seed.

Each child writes a line with its index and attempt into a pipe that this test reads, and one into
its log. After the last child there is exactly one of each for every index, and the ledger knows of
one attempt each. An attempt may only be lost where its agent was killed,
and no agents are killed here.

A few hundred children by default; `./yard test --array-kills` is the guarantee of the product, with
10,000, and writes tests/results/array_kills.json."""

import collections
import datetime
import json
import os
import pathlib
import platform
import random
import threading
import time
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import trainyard_server
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
CHILDREN = int(os.environ.get("TRAINYARD_ARRAY_CHILDREN", "150"))
KILLS = int(os.environ.get("TRAINYARD_ARRAY_KILLS", "4"))
SEED = int(os.environ.get("TRAINYARD_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
RESULT = os.environ.get("TRAINYARD_RESULT", "")  # the file for the results
SECONDS_MAX = 120 + CHILDREN
SCRIPT = (
    "echo $AWS_BATCH_JOB_ARRAY_INDEX $AWS_BATCH_JOB_ATTEMPT > /shared/ran; echo ran"
    " $AWS_BATCH_JOB_ARRAY_INDEX"
)


class Witness:
    """Reads lines that the children write into a pipe, independent of the platform. Files of the
    machine are mounted read-only, but a pipe can still be written to."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        path = os.path.join(directory, "ran")
        os.mkfifo(path)
        os.chmod(path, 0o666)
        self.pipe = os.open(path, os.O_RDWR)  # both ends are open, so that reading never ends
        self.text = b""
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        while True:
            self.text += os.read(self.pipe, 1 << 16)

    def lines(self) -> list[str]:
        return self.text.decode().splitlines()


def log_lines(server: Server) -> list[str]:
    logs, token, lines = server.boto("logs"), {}, []
    while True:
        page = logs.filter_log_events(logGroupName="/aws/batch/job", **token)
        lines += [event["message"] for event in page["events"]]
        if not page.get("nextToken"):
            return lines
        token = {"nextToken": page["nextToken"]}


def children(batch: BaseClient, array: str) -> dict[int, dict[str, Any]]:
    """Returns index -> how the child ended, for all ended children."""
    found = {}
    for status in ("SUCCEEDED", "FAILED"):
        token = {}
        while True:
            page = batch.list_jobs(arrayJobId=array, jobStatus=status, **token)
            found |= {each["arrayProperties"]["index"]: each for each in page["jobSummaryList"]}
            if not page.get("nextToken"):
                break
            token = {"nextToken": page["nextToken"]}
    return found


@pytest.mark.parametrize("reuse", [False, True], ids=["a-host-each", "hosts-used-again"])
def test_a_server_killed_during_an_array_continues_it(tmp_path: pathlib.Path, reuse: bool) -> None:
    print(f"\nTRAINYARD_SEED={SEED}")
    draw = random.Random(SEED)
    shared = tmp_path / "shared"
    shared.mkdir()
    witness = Witness(shared)
    server = trainyard_server.Server(
        tmp_path / "data",
        f"""
[[machine]]
name = "box"
cpus = 32.0
memory_gib = 64.0

[images."shared"]
runtime = "machine"
mounts = {{"/shared" = "{shared}"}}
""",
    ).start()
    try:
        batch = server.boto("batch")
        environment = batch.create_compute_environment(
            computeEnvironmentName="all",
            type="MANAGED",
            computeResources={
                "type": "EC2",
                "minvCpus": 0,
                "maxvCpus": 32,
                "instanceTypes": ["optimal"],
            },
        )
        batch.create_job_queue(
            jobQueueName="queue",
            priority=1,
            tags={"trainyard:reuse-hosts": str(reuse).lower()},
            computeEnvironmentOrder=[
                {"order": 1, "computeEnvironment": environment["computeEnvironmentArn"]}
            ],
        )
        batch.register_job_definition(
            jobDefinitionName="child",
            type="container",
            containerProperties={
                "image": "shared",
                "command": ["/bin/sh", "-c", SCRIPT],
                "resourceRequirements": [
                    {"type": "VCPU", "value": "1"},
                    {"type": "MEMORY", "value": "64"},
                ],
            },
        )
        array = batch.submit_job(
            jobName="array",
            jobQueue="queue",
            jobDefinition="child",
            arrayProperties={"size": CHILDREN},
        )["jobId"]
        began, kills = time.monotonic(), []
        # Each kill is after an equal part of the children, and a random time later.
        for number in range(KILLS):
            goal = CHILDREN * (number + draw.random()) / (KILLS + 1)
            wait_for(
                lambda: len(witness.lines()) >= goal,
                f"{goal:.0f} children to have run",
                SECONDS_MAX,
                0.005,
            )
            time.sleep(draw.random() * 0.1)
            server.kill()
            kills.append(len(witness.lines()))
            time.sleep(draw.choice((0, 0.3)))
            server.start()
        status = {}

        def over() -> bool:
            status.update(server.boto("batch").describe_jobs(jobs=[array])["jobs"][0])
            return status["status"] in ("SUCCEEDED", "FAILED")

        wait_for(over, "the array to be over", SECONDS_MAX, 0.5)
        seconds = time.monotonic() - began
        ran = collections.Counter(witness.lines())
        wanted = {f"{index} 1": 1 for index in range(CHILDREN)}
        assert not ran - collections.Counter(wanted), (
            f"ran twice, or in a second attempt: {ran - collections.Counter(wanted)}"
        )
        assert ran == wanted, f"lost: {collections.Counter(wanted) - ran}"
        assert status["status"] == "SUCCEEDED", status
        ended = children(server.boto("batch"), array)
        assert sorted(ended) == list(range(CHILDREN))
        assert {each["status"] for each in ended.values()} == {"SUCCEEDED"}
        lines = collections.Counter(line for line in log_lines(server) if line.startswith("ran "))
        assert lines == {f"ran {index}": 1 for index in range(CHILDREN)}
        if RESULT:
            path = os.path.join(trainyard_server.ROOT, RESULT)
            results = json.load(open(path, encoding="utf-8")) if os.path.exists(path) else {}
            results["hosts used again" if reuse else "a host each"] = {
                "date": datetime.date.today().isoformat(),
                "kernel": platform.release(),
                "cores": os.cpu_count(),
                "seed": SEED,
                "children": CHILDREN,
                "killed_after_so_many": kills,
                "lost": 0,
                "run_twice": 0,
                "seconds": round(seconds, 1),
            }
            with open(path, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
                file.write("\n")
    finally:
        server.clean()
