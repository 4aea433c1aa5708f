"""Tests the command line with Batch jobs: logs, names, stopping, reasons and costs of jobs, arrays
and multi-node parallel jobs."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import nodes, trainyard_server
from tests.command_line import CommandLine, let_go
from tests.trainyard_server import Server, wait_for

WAIT = trainyard_server.WAIT_SECONDS_MAX


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    """Starts a server on which a second of a vCPU costs a euro."""
    return start(
        '[jobs]\nstop_grace_seconds = 2\n\n[[machine]]\nname = "box"\ncpus = 4.0\n'
        "memory_gib = 8.0\n"
        '\n[prices]\ncurrency = "EUR"\n\n[[prices.instance]]\ntype = "vCPU"\non_demand = 3600.0\n'
        'spot = 3600.0\n\n[[prices.instance]]\ntype = "GiB"\non_demand = 0.0\nspot = 0.0\n'
    )


@pytest.fixture(scope="module")
def batch(server: Server) -> BaseClient:
    return server.boto("batch")


@pytest.fixture(scope="module")
def queue(batch: BaseClient) -> str:
    return nodes.make_queue(batch)


@pytest.fixture(scope="module")
def cli(server: Server) -> CommandLine:
    return CommandLine(server)


def submit(batch: BaseClient, queue: str, name: str, script: str, **more: Any) -> str:
    return nodes.submit(batch, queue, nodes.container(script), jobName=name, **more)


# A job with this script runs until let_go().
WAITS = "while [ ! -e /tmp/go ]; do sleep 0.1; done"


def runs(batch: BaseClient, *jobs: str) -> None:
    for job in jobs:
        nodes.wait_until(batch, job, ("RUNNING",))


def row(cli: CommandLine, *filters: str) -> str:
    """Returns the only row of `trainyard jobs`, below its titles."""
    lines = cli("jobs", *filters).stdout.splitlines()
    assert len(lines) == 2, lines
    return lines[1]


def test_logs_of_a_job_of_all_its_attempts(batch: BaseClient, queue: str, cli: CommandLine) -> None:
    job = submit(
        batch,
        queue,
        "retried",
        "echo attempt $AWS_BATCH_JOB_ATTEMPT; [ $AWS_BATCH_JOB_ATTEMPT = 2 ]",
        retryStrategy={"attempts": 2},
    )
    followed = cli("logs", "-f", "retried")
    assert followed.stdout == "retried | attempt 1\nretried | attempt 2\n"
    assert followed.stderr.startswith("trainyard: retried Completed")
    for reference in (job, job[:8], f"arn:aws:batch:us-east-1:123456789012:job/{job}"):
        assert cli("logs", reference).stdout == followed.stdout
    assert cli("logs", job, "--since", "0s").stdout == ""


def test_the_exit_code_of_a_followed_job_is_the_jobs(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    submit(batch, queue, "fails", "echo going; exit 9")
    followed = cli("logs", "-f", "fails", code=3)
    assert followed.stdout == "fails | going\n"
    assert "fails Failed: " in followed.stderr and "exit code: 9" in followed.stderr


def test_logs_of_an_array_begin_with_its_failed_children(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    script = "echo child $AWS_BATCH_JOB_ARRAY_INDEX; [ $AWS_BATCH_JOB_ARRAY_INDEX != 2 ]"
    array = submit(batch, queue, "grid", script, arrayProperties={"size": 4})
    followed = cli("logs", "-f", "grid", code=3)
    assert sorted(followed.stdout.splitlines()) == [f"grid:{i} | child {i}" for i in range(4)]
    assert "grid Failed: Array Child Job failed" in followed.stderr
    assert cli("logs", array).stdout.splitlines() == [f"grid:{i} | child {i}" for i in (2, 0, 1, 3)]
    assert cli("logs", array + ":1").stdout == cli("logs", "grid:1").stdout == "grid:1 | child 1\n"
    missing = cli("logs", "grid:4", code=1).stderr
    assert f"array '{array}' has the children :0 to :3" in missing


def test_an_array_is_followed_while_its_children_run(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    script = f"echo begun; {WAITS}; echo over"
    submit(batch, queue, "slow", script, arrayProperties={"size": 2})
    follower = cli.begin("logs", "-f", "slow")
    assert follower.stdout
    assert {follower.stdout.readline() for _ in range(2)} == {
        "slow:0 | begun\n",
        "slow:1 | begun\n",
    }
    let_go(cli, "slow:0", "slow:1")
    rest, _ = follower.communicate(timeout=WAIT)
    assert sorted(rest.splitlines()) == ["slow:0 | over", "slow:1 | over"]
    assert follower.returncode == 0


def test_logs_of_the_nodes_of_a_gang(batch: BaseClient, queue: str, cli: CommandLine) -> None:
    job = nodes.submit(
        batch,
        queue,
        nodes.of_nodes(
            f"i=$AWS_BATCH_JOB_NODE_INDEX; echo node $i; [ $i = 1 ] || {{ {WAITS}; }}", nodes=2
        ),
        jobName="gang",
    )
    # The others end with the main node.
    wait_for(lambda: cli("logs", job + "#1").stdout, "node 1 to log its line", WAIT)
    let_go(cli, "gang")
    followed = cli("logs", "-f", "gang")
    assert sorted(followed.stdout.splitlines()) == ["gang#0 | node 0", "gang#1 | node 1"]
    assert cli("logs", job + "#1").stdout == "gang#1 | node 1\n"
    assert cli("logs", job, "--host", "algo-2").stdout == "gang#1 | node 1\n"
    assert "has the nodes #0 to #1" in cli("logs", job + "#2", code=1).stderr
    assert "nodeDetails" in json.loads(cli("describe", job + "#1", "--json").stdout)


def test_a_single_node_is_a_gang(batch: BaseClient, queue: str, cli: CommandLine) -> None:
    nodes.submit(batch, queue, nodes.of_nodes("echo alone", nodes=1), jobName="single")
    assert cli("logs", "-f", "single").stdout == "single#0 | alone\n"


def test_every_command_accepts_ids_and_unique_names(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    script = f"trap 'exit 0' TERM; {WAITS}"
    job = submit(batch, queue, "found_by_name", script)
    runs(batch, job)
    for reference in (job, job[:8], "found_by_name"):
        assert job in cli("describe", reference).stdout
        assert "found_by_name" in cli("top", reference, "--once").stdout
        assert "found_by_name" in cli("cost", reference).stdout
        assert cli("logs", reference).returncode == 0
        assert cli("shell", reference, "1", "echo", "inside").stdout == "inside\n"
    assert job in cli("jobs", "--name", "by_name").stdout
    assert "was interrupted" in cli("interrupt", "found_by_name", "--notice", "1s").stdout
    nodes.wait_until(batch, job, ("RUNNING", "RUNNABLE", "STARTING"))
    stopped = cli("stop", "found_by_name", "--wait", "--reason", "wrong data").stdout
    assert stopped == f"found_by_name ({job}) has ended: Stopped\n"
    assert nodes.describe(batch, job)["statusReason"] == "wrong data"
    again = cli("stop", job, code=1).stderr
    assert f"found_by_name ({job}) has already ended: Stopped" in again


def test_a_name_of_several_jobs_lists_them(batch: BaseClient, queue: str, cli: CommandLine) -> None:
    first, second = (submit(batch, queue, "twins", WAITS) for _ in range(2))
    runs(batch, first, second)
    output = cli("stop", "twins", code=1).stderr.splitlines()
    assert output[0] == "trainyard: 'twins' names 2 jobs; choose one by its id:"
    assert output[1].split() == ["id", "name", "status", "age"]
    assert [line.split()[:4] for line in output[2:]] == [
        [job, "twins", "InProgress", "Training"] for job in (second, first)
    ]
    cli("stop", first, "--wait")
    assert "'twins' names 2 jobs" in cli("describe", "twins", code=1).stderr
    assert cli("stop", "twins", "--wait").stdout == f"twins ({second}) has ended: Stopped\n", (
        "the only one that runs"
    )
    assert "all of the 2 jobs that 'twins' names have ended" in cli("stop", "twins", code=1).stderr


def test_a_child_of_an_array_is_stopped_alone(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    script = f"trap 'exit 1' TERM; {WAITS}"
    array = submit(batch, queue, "half", script, arrayProperties={"size": 2})
    runs(batch, array + ":0", array + ":1")
    assert "has ended: " in cli("stop", "half:1", "--wait").stdout
    assert nodes.describe(batch, array + ":0")["status"] == "RUNNING"
    let_go(cli, "half:0")
    nodes.wait_until(batch, array)
    assert row(cli, "--name", "half").split("  ")[0] == "half"
    assert "1 of 2 succeeded, 1 failed" in row(cli, "--name", "half")


def test_a_stopped_job_shows_who_stopped_it(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    waits, reasoned = (submit(batch, queue, name, WAITS) for name in ("hers", "its_own_reason"))
    runs(batch, waits, reasoned)
    iam = cli.server.boto("iam")
    iam.create_user(UserName="alice")
    iam.attach_user_policy(
        UserName="alice", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess"
    )
    key = iam.create_access_key(UserName="alice")["AccessKey"]
    hers = {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }
    cli("stop", waits, "--wait", environment=hers)
    cli("stop", reasoned, "--wait", "--reason", "a typing error", environment=hers)
    assert nodes.describe(batch, waits)["statusReason"] == "requested by alice"
    assert nodes.describe(batch, reasoned)["statusReason"] == "a typing error"


def test_a_job_that_ended_before_it_began_has_ended(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    """The job has no attempt, but the responses are as for a job that had one."""
    before = submit(batch, queue, "before", WAITS)
    unbegun = submit(batch, queue, "unbegun", "true", dependsOn=[{"jobId": before}])
    assert f"{unbegun} does not run yet" in cli("shell", unbegun, "1", code=1).stderr
    batch.cancel_job(jobId=unbegun, reason="no longer needed")
    nodes.wait_until(batch, unbegun)
    assert f"{unbegun} has ended" in cli("shell", unbegun, "1", code=1).stderr
    assert "cannot be interrupted: it has ended" in cli("interrupt", unbegun, code=1).stderr
    assert "has already ended" in cli("stop", unbegun, code=1).stderr
    assert "has already ended" in cli("stop", "--now", unbegun, code=1).stderr
    assert cli("logs", unbegun).stdout == ""
    cli("stop", before, "--wait")


def test_nodes_are_not_stopped_alone(batch: BaseClient, queue: str, cli: CommandLine) -> None:
    job = nodes.submit(batch, queue, nodes.of_nodes(WAITS), jobName="together")
    runs(batch, job)
    runs(batch, f"{job}#1")
    assert "end together: name the job" in cli("stop", "together#1", code=1).stderr
    assert cli("shell", "together#1", "--", "echo", "in").stdout == "in\n"
    cli("stop", "together", "--wait")


def test_the_reasons_of_dependencies_and_cancelled_jobs_are_shown(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    fails = submit(batch, queue, "upstream", f"{WAITS}; exit 1")
    after = submit(batch, queue, "downstream", "true", dependsOn=[{"jobId": fails}])
    cancelled = submit(batch, queue, "unwanted", "true", dependsOn=[{"jobId": fails}])
    batch.cancel_job(jobId=cancelled, reason="no longer needed")
    runs(batch, fails)
    let_go(cli, fails)
    nodes.wait_until(batch, after)
    nodes.wait_until(batch, cancelled)
    assert row(cli, "--name", "downstream").endswith("Dependent Job failed")
    assert row(cli, "--name", "unwanted").endswith("no longer needed")
    assert re.search(r"^reason +Dependent Job failed$", cli("describe", after).stdout, re.M)
    assert re.search(r"^reason +no longer needed$", cli("describe", cancelled).stdout, re.M)


def test_an_array_shows_the_state_and_the_cost_of_its_children(
    batch: BaseClient, queue: str, cli: CommandLine
) -> None:
    """Four children of one vCPU run on the machine of four; the first has failed before."""
    script = (
        "[ $AWS_BATCH_JOB_ARRAY_INDEX != 0 ] || exit 1;"
        f" [ $AWS_BATCH_JOB_ARRAY_INDEX -gt 4 ] || {{ {WAITS}; }}; sleep 1"
    )
    array = nodes.submit(
        batch,
        queue,
        nodes.container(
            script,
            resourceRequirements=[
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "64"},
            ],
        ),
        jobName="wide",
        arrayProperties={"size": 7},
    )
    waiting = submit(batch, queue, "later", "true", dependsOn=[{"jobId": array}])
    state = "InProgress Running 4 of 7, 1 failed"
    wait_for(lambda: state in row(cli, "--name", "wide"), "four children to run", WAIT)
    # A child is counted after its start, when it has a host.
    wait_for(lambda: cli("top", "--once").stdout.count("wide:") == 4, "their hosts", WAIT)
    assert f"{array}  InProgress (Running 4 of 7, 1 failed)" in cli("describe", "wide").stdout

    def array_job() -> dict[str, Any]:
        listed: dict[str, Any] = json.loads(cli("jobs", "--name", "wide", "--json").stdout)
        found: dict[str, Any] = listed["Jobs"][0]
        return found

    # A child that has a host may not be billed yet.
    wait_for(
        lambda: array_job()["BillableTimeInSeconds"] >= 5,
        "the bill of the one that failed and of four that run",
        WAIT,
    )
    running = array_job()
    assert running["Cost"]["Amount"] == f"{running['BillableTimeInSeconds']}.000000"
    assert re.search(r" [1-9]\d*\.00 EUR", row(cli, "--name", "wide"))
    page = cli("top", "--once").stdout
    assert page.startswith("trainyard top  1 job on 4 hosts, 1 job waiting  "), page
    assert "later" not in page
    assert cli("top", "wide", "--once").stdout.count("wide:") == 4
    let_go(cli, *(f"wide:{index}" for index in range(1, 5)))
    nodes.wait_until(batch, array)
    done = array_job()
    seconds = done["BillableTimeInSeconds"]
    assert seconds >= 6, "of the six that slept, together"
    assert done["Cost"]["Amount"] == f"{seconds}.000000"
    assert f"{seconds}.00 EUR" in row(cli, "--name", "wide")
    assert f"{seconds}.00 EUR" in cli("cost", "wide").stdout
    assert json.loads(cli("cost", "wide", "--json").stdout)["Amount"] == f"{seconds}.000000"
    nodes.wait_until(batch, waiting)
    assert "no jobs are running" in cli("top", "--once").stdout
