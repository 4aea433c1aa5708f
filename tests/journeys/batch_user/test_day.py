"""Tests a day of a user of AWS Batch, who uses boto3 and the command line. Each test is a step of
the day; the steps share a server."""

import json
import re
from collections.abc import Callable

import pytest
from botocore.client import BaseClient

from tests import nodes
from tests.command_line import CommandLine, let_go
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.in_order
QUEUE = "nightly"


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(
        '[jobs]\nstop_grace_seconds = 2\n[[machine]]\nname = "box"\ncpus = 4.0\nmemory_gib = 4.0\n'
    )


@pytest.fixture(scope="module")
def batch(server: Server) -> BaseClient:
    return server.boto("batch")


@pytest.fixture(scope="module")
def trainyard(server: Server) -> CommandLine:
    return CommandLine(server)


# A job with this script runs until a shell in it makes the file, so that nothing depends on time.
WAITS = "while [ ! -e /tmp/go ]; do sleep 0.1; done"


def submit(batch: BaseClient, name: str, definition: str = "", **more: object) -> str:
    return batch.submit_job(jobName=name, jobQueue=QUEUE, jobDefinition=definition or name, **more)[
        "jobId"
    ]


def define(batch: BaseClient, name: str, script: str) -> None:
    batch.register_job_definition(
        jobDefinitionName=name, type="container", containerProperties=nodes.container(script)
    )


def test_1_a_queue_and_a_first_job(batch: BaseClient, trainyard: CommandLine) -> None:
    batch.create_compute_environment(
        computeEnvironmentName="box",
        type="MANAGED",
        computeResources={"type": "EC2", "minvCpus": 0, "maxvCpus": 16},
    )
    batch.create_job_queue(
        jobQueueName=QUEUE,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "box"}],
    )
    define(batch, "hello", "echo hello $AWS_BATCH_JOB_ID")
    job = submit(batch, "hello")
    followed = trainyard("logs", "-f", "hello")
    assert followed.stdout == f"hello | hello {job}\n"
    assert "hello Completed" in followed.stderr


def test_2_a_failure_says_why_and_its_output_is_at_hand(
    batch: BaseClient, trainyard: CommandLine
) -> None:
    define(batch, "clean", "echo reading; echo 'no such table: sales' >&2; exit 4")
    job = submit(batch, "clean")
    failed = trainyard("logs", "-f", job, code=3)
    assert "clean | no such table: sales" in failed.stdout
    assert "Failed" in trainyard("jobs", "--name", "clean").stdout
    page = trainyard("describe", "clean").stdout
    assert "no such table: sales" in page, "the output, for users that may describe the job"
    assert f"trainyard logs {job}" in page and "Essential container in task exited" in page


def test_3_a_grid_search_is_an_array(batch: BaseClient, trainyard: CommandLine) -> None:
    define(
        batch,
        "grid",
        f"""
        i=$AWS_BATCH_JOB_ARRAY_INDEX
        if [ $i = 3 ]; then echo "rate 1e9 diverged"; exit 1; fi
        {WAITS}
        echo loss=0.$i
        """,
    )
    array = submit(
        batch,
        "grid",
        arrayProperties={"size": 6},
        tags={"trainyard:metric:loss": "loss=([0-9.]+)"},
    )
    wait_for(
        lambda: "(Running 5 of 6, 1 failed)" in trainyard("describe", "grid").stdout,
        "all children but the failed one to run",
    )
    # A child counts from its start on; its host is listed a moment later.
    wait_for(lambda: "grid:5" in trainyard("top", "--once").stdout, "the host of the last child")
    assert "rate 1e9 diverged" in trainyard("logs", "grid:3").stdout
    let_go(trainyard, *(f"grid:{child}" for child in (0, 1, 2, 4, 5)))
    followed = trainyard("logs", "-f", "grid", code=3)
    assert followed.stdout.splitlines()[0] == "grid:3 | rate 1e9 diverged", "what failed is first"
    assert "grid Failed: Array Child Job failed" in followed.stderr
    page = trainyard("describe", array).stdout
    assert "5 of 6 succeeded, 1 failed" in page
    assert re.search(r"loss +0\.5 +child 5 +0 +child 0", page), page


def test_4_a_pipeline_stops_where_it_breaks(batch: BaseClient, trainyard: CommandLine) -> None:
    define(batch, "extract", f"{WAITS}; exit 1")
    define(batch, "step", "true")
    extract = submit(batch, "extract")
    transform = submit(batch, "transform", "step", dependsOn=[{"jobId": extract}])
    load = submit(batch, "load", "step", dependsOn=[{"jobId": transform}])
    report = submit(batch, "report", "step", dependsOn=[{"jobId": extract}])
    batch.cancel_job(jobId=report, reason="the report is late anyway")
    nodes.wait_until(batch, extract, ("RUNNING",))
    let_go(trainyard, "extract")
    nodes.wait_until(batch, load)
    shown = trainyard("jobs").stdout.splitlines()
    reasons = {line.split()[0]: line for line in shown}
    assert reasons["transform"].endswith("Dependent Job failed")
    assert reasons["load"].endswith("Dependent Job failed")
    assert reasons["report"].endswith("the report is late anyway")


def test_5_what_runs_is_found_by_name_and_stopped(
    batch: BaseClient, trainyard: CommandLine
) -> None:
    define(batch, "forever", WAITS)
    first, second = submit(batch, "forever"), submit(batch, "forever")
    for job in (first, second):
        nodes.wait_until(batch, job, ("RUNNING",))
    assert trainyard("shell", first, "1", "--", "echo", "inside").stdout == "inside\n"
    several = trainyard("stop", "forever", code=1).stderr
    assert "'forever' names 2 jobs; choose one by its id:" in several
    assert first in several and second in several
    trainyard("stop", first[:13], "--wait", "--reason", "the wrong branch")
    assert nodes.describe(batch, first)["statusReason"] == "the wrong branch"
    assert second in trainyard("stop", "forever", "--wait").stdout, "the one that is left"


def test_6_two_nodes_are_one_job(batch: BaseClient, trainyard: CommandLine) -> None:
    batch.register_job_definition(
        jobDefinitionName="gang",
        type="multinode",
        nodeProperties=nodes.of_nodes(
            f"i=$AWS_BATCH_JOB_NODE_INDEX; echo node $i of 2; [ $i = 1 ] || {{ {WAITS}; }}", nodes=2
        ),
    )
    job = submit(batch, "gang")
    # The others end with the main node.
    wait_for(lambda: trainyard("logs", job + "#1").stdout, "node 1 to log its line")
    let_go(trainyard, "gang")
    assert sorted(trainyard("logs", "-f", "gang").stdout.splitlines()) == [
        "gang#0 | node 0 of 2",
        "gang#1 | node 1 of 2",
    ]
    assert trainyard("logs", job + "#1").stdout == "gang#1 | node 1 of 2\n"


def test_7_what_the_day_cost(trainyard: CommandLine) -> None:
    report = json.loads(trainyard("cost", "--by", "job", "--since", "1d", "--json").stdout)
    array = json.loads(trainyard("jobs", "--name", "grid", "--json").stdout)["Jobs"][0]
    assert float(array["Cost"]["Amount"]) > 0, "of its children"
    (of_array,) = [group for group in report["Groups"] if group["Key"] == array["Name"]]
    assert of_array["DisplayName"] == "grid"
    listed = trainyard("cost", "--by", "job").stdout
    assert re.search(rf"^grid +{array['Name']} +6 ", listed, re.M), listed
    assert of_array["Amount"] == array["Cost"]["Amount"]
    assert float(report["Total"]["Amount"]) > float(of_array["Amount"])
    assert re.search(r"^grid +6 ", trainyard("cost", "grid").stdout, re.M)
