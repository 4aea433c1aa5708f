"""Tests multi-node parallel jobs of Batch: real processes, each node with its own address."""

import json
import os
import pathlib
import re
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import leftovers
from tests.nodes import container, describe, lines, make_queue, of_nodes, submit, wait_until
from tests.trainyard_server import ROOT, Server, wait_for

HOST_LOST = r"Host EC2 \(instance i-[0-9a-f]{17}\) terminated\."

# The main node listens until all others have sent their names;
# they then sleep until they are stopped.
MEET = r"""
import os, socket, sys, time
own = {name: os.environ.get("AWS_BATCH_JOB_" + name) for name in ("NODE_INDEX", "NUM_NODES", "MAIN_NODE_INDEX", "MAIN_NODE_PRIVATE_IPV4_ADDRESS")}
print(own["NODE_INDEX"], "of", own["NUM_NODES"], "main is", own["MAIN_NODE_INDEX"], "at", own["MAIN_NODE_PRIVATE_IPV4_ADDRESS"] is not None,
      "since", open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19], flush=True)
if own["NODE_INDEX"] == own["MAIN_NODE_INDEX"]:
    server = socket.create_server(("", 5000))
    met = []
    while len(met) < int(own["NUM_NODES"]) - 1:
        link, address = server.accept()
        met.append((int(link.makefile().readline()), address[0]))
    print("met", [index for index, _ in sorted(met)], "at", len({address for _, address in met}), "addresses", flush=True)
    sys.exit(int(os.environ.get("EXIT", "0")))
for _ in range(600):
    try:
        link = socket.create_connection((own["MAIN_NODE_PRIVATE_IPV4_ADDRESS"], 5000))
        break
    except OSError:
        time.sleep(0.1)
link.sendall((own["NODE_INDEX"] + "\n").encode())
time.sleep(600)
"""


@pytest.fixture(scope="module")
def fsx(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("fsx")
    (path / "meet.py").write_text(MEET)
    os.chown(path, 1000, 1000)
    return path


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server], fsx: pathlib.Path) -> Server:
    return start(
        "[jobs]\nstop_grace_seconds = 1\n[[machine]]\nname = 'box'\ncpus = 32.0\nmemory_gib ="
        f" 32.0\n[posix_users]\n'*' = '1000:1000'\n[volumes.'/fsx']\ndirectory = '{fsx}'\n"
    )


@pytest.fixture(scope="module")
def batch(cluster: Server) -> BaseClient:
    return cluster.boto("batch")


@pytest.fixture(scope="module")
def queue(batch: BaseClient) -> str:
    return make_queue(batch)


FSX: dict[str, Any] = {
    "volumes": [{"name": "fsx", "host": {"sourcePath": "/fsx"}}],
    "mountPoints": [{"sourceVolume": "fsx", "containerPath": "/fsx"}],
}


def rendezvous_job(nodes: int = 2, main: int = 0, **more: Any) -> dict[str, Any]:
    return of_nodes("exec python3 /fsx/meet.py", nodes, main, **(FSX | more))


def test_nodes_have_network_interfaces(cluster: Server, batch: BaseClient, queue: str) -> None:
    # The job ends with its main node, so the main node waits for the other's line.
    script = (
        "python3 -c 'import socket; print(socket.gethostbyname(socket.gethostname()))'; "
        'done="/fsx/printed-$AWS_BATCH_JOB_ID"; done="${done%#*}"; '
        'case "$AWS_BATCH_JOB_NODE_INDEX" in 0) until [ -e "$done" ]; do sleep 0.1; done;; '
        '*) touch "$done";; esac'
    )
    job = submit(batch, queue, of_nodes(script, **FSX))
    assert wait_until(batch, job)["status"] == "SUCCEEDED"
    seen = set()
    for index in range(2):
        node = describe(batch, f"{job}#{index}")["container"]
        (interface,) = node["networkInterfaces"]
        (line,) = [
            event["message"]
            for event in cluster.boto("logs").get_log_events(
                logGroupName="/aws/batch/job", logStreamName=node["logStreamName"]
            )["events"]
            if not event["message"].startswith("trainyard:")
        ]
        assert interface["privateIpv4Address"] == line
        assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", interface["attachmentId"])
        seen.add((interface["privateIpv4Address"], interface["attachmentId"]))
    assert len(seen) == 2


def test_nodes_meet_and_the_job_is_its_main_node(
    cluster: Server, batch: BaseClient, queue: str
) -> None:
    before = leftovers.picture(cluster.data)
    # A shell prints at once; the output of an interpreter would not show which node began
    # first.
    job = submit(batch, queue, of_nodes("echo began; exec python3 /fsx/meet.py", 3, 1, **FSX))
    done = wait_until(batch, job)
    assert (
        done["status"] == "SUCCEEDED"
        and done["statusReason"] == "Essential container in task exited"
    ), done
    assert (
        "container" not in done
        and done["nodeProperties"]["numNodes"] == 3
        and done["nodeProperties"]["mainNode"] == 1
    )
    assert [attempt["container"]["exitCode"] for attempt in done["attempts"]] == [0]
    nodes = [describe(batch, f"{job}#{index}") for index in range(3)]
    assert [node["nodeDetails"] for node in nodes] == [
        {"nodeIndex": index, "isMainNode": index == 1} for index in range(3)
    ]
    assert {node["status"] for node in nodes} == {"SUCCEEDED"} and nodes[0][
        "statusReason"
    ] == "Main node of the job has ended"
    assert len({node["container"]["logStreamName"] for node in nodes}) == 3
    assert (
        nodes[1]["container"]["logStreamName"] == done["attempts"][0]["container"]["logStreamName"]
    )
    assert (
        nodes[0]["container"]["command"][2] == "echo began; exec python3 /fsx/meet.py"
        and "exitCode" in nodes[1]["container"]
    )
    started = []  # the processes, in ticks of the kernel
    for index, node in enumerate(nodes):
        output = lines(cluster, node)
        own, since = output[1].split(" since ")
        assert output[0] == "began" and own == f"{index} of 3 main is 1 at {index != 1}", output
        started.append(int(since))
    assert lines(cluster, nodes[1])[2] == "met [0, 2] at 2 addresses"
    assert started[1] <= min(started), ("the main node is the first to run", started)
    listed = batch.list_jobs(multiNodeJobId=job, jobStatus="SUCCEEDED")["jobSummaryList"]
    assert [(one["jobId"], one["nodeProperties"]) for one in listed] == [
        (f"{job}#{index}", {"isMainNode": index == 1, "numNodes": 3, "nodeIndex": index})
        for index in range(3)
    ]
    pages = list(
        batch.get_paginator("list_jobs").paginate(
            multiNodeJobId=job, jobStatus="SUCCEEDED", PaginationConfig={"PageSize": 2}
        )
    )
    assert [len(page["jobSummaryList"]) for page in pages] == [2, 1]
    assert batch.list_jobs(multiNodeJobId=job)["jobSummaryList"] == [], "none is RUNNING"
    assert [
        one["nodeProperties"]
        for one in batch.list_jobs(jobQueue=queue, jobStatus="SUCCEEDED")["jobSummaryList"]
        if one["jobId"] == job
    ] == [{"numNodes": 3}]
    assert batch.describe_jobs(jobs=[f"{job}#3", f"{job}#x"])["jobs"] == []
    wait_for(
        lambda: not leftovers.left(before, leftovers.picture(cluster.data)),
        "nothing of it to be left",
    )


def test_the_death_of_a_child_does_not_affect_others(
    cluster: Server, batch: BaseClient, queue: str
) -> None:
    script = (
        "if [ $AWS_BATCH_JOB_NODE_INDEX = 1 ]; then exit 3; fi; while [ ! -e"
        " /fsx/over-$AWS_BATCH_JOB_ID ]; do sleep 0.1; done"
    )
    job = submit(batch, queue, of_nodes(script, 3, **FSX))
    child = wait_until(batch, f"{job}#1", ("FAILED",))
    assert (
        child["container"]["exitCode"] == 3
        and child["statusReason"] == "Essential container in task exited"
    )
    wait_until(batch, f"{job}#2", ("RUNNING",))
    assert describe(batch, job)["status"] == "RUNNING"
    os.close(os.open(os.path.join(fsx_of(cluster), f"over-{job}"), os.O_CREAT))
    done = wait_until(batch, job)
    assert done["status"] == "SUCCEEDED" and len(done["attempts"]) == 1
    assert (
        describe(batch, f"{job}#1")["status"] == "FAILED"
        and describe(batch, f"{job}#2")["status"] == "SUCCEEDED"
    )


def fsx_of(server: Server) -> str:
    return server.config.split("directory = '")[1].split("'")[0]


def test_the_main_nodes_failure_is_the_jobs_and_is_tried_again(
    cluster: Server, batch: BaseClient, queue: str
) -> None:
    script = (
        "[ $AWS_BATCH_JOB_NODE_INDEX != 0 ] && exec sleep 600; exit $((6 - AWS_BATCH_JOB_ATTEMPT))"
    )
    job = submit(batch, queue, of_nodes(script, 2), retryStrategy={"attempts": 2})
    done = wait_until(batch, job)
    assert done["status"] == "FAILED"
    assert [attempt["container"]["exitCode"] for attempt in done["attempts"]] == [5, 4]
    assert describe(batch, f"{job}#0")["container"]["exitCode"] == 4


def test_overrides_reach_the_nodes_that_they_name(
    cluster: Server, batch: BaseClient, queue: str
) -> None:
    say = (
        "echo $WHO $MORE; [ $AWS_BATCH_JOB_NODE_INDEX != 0 ] && touch"
        " /fsx/$AWS_BATCH_JOB_ID-$AWS_BATCH_JOB_NODE_INDEX && exec sleep 600; while [ $(ls /fsx |"
        " grep -c $AWS_BATCH_JOB_ID) != $((AWS_BATCH_JOB_NUM_NODES - 1)) ]; do sleep 0.1; done"
    )
    who = lambda name: [{"name": "WHO", "value": name}]
    ranges = {
        "0": container(say, environment=who("main"), **FSX),
        "1:": container(say, environment=who("child"), **FSX),
    }
    properties = of_nodes("", 2, ranges=ranges)
    job = submit(
        batch,
        queue,
        properties,
        nodeOverrides={
            "numNodes": 5,
            "nodePropertyOverrides": [
                {
                    "targetNodes": "2:3",
                    "containerOverrides": {"environment": [{"name": "MORE", "value": "more"}]},
                },
                {
                    "targetNodes": "3:",
                    "containerOverrides": {
                        "environment": who("last"),
                        "resourceRequirements": [{"type": "MEMORY", "value": "96"}],
                    },
                },
            ],
        },
    )
    done = wait_until(batch, job)
    assert done["status"] == "SUCCEEDED", done
    assert [lines(cluster, describe(batch, f"{job}#{index}"))[0] for index in range(5)] == [
        "main",
        "child",
        "child more",
        "last more",
        "last",
    ]
    assert [each["targetNodes"] for each in done["nodeProperties"]["nodeRangeProperties"]] == [
        "0:0",
        "1:1",
        "2:2",
        "3:3",
        "4:4",
    ]
    assert done["nodeProperties"]["numNodes"] == 5


def test_a_terminated_job_ends_on_all_nodes(cluster: Server, batch: BaseClient, queue: str) -> None:
    before = leftovers.picture(cluster.data)
    job = submit(batch, queue, of_nodes("exec sleep 600", 4))
    wait_for(
        lambda: len(batch.list_jobs(multiNodeJobId=job)["jobSummaryList"]) == 4, "all nodes to run"
    )
    batch.cancel_job(jobId=job, reason="it runs, so this does nothing")
    batch.terminate_job(jobId=job, reason="enough")
    done = wait_until(batch, job)
    assert done["status"] == "FAILED" and done["statusReason"] == "enough" and done["isTerminated"]
    wait_for(
        lambda: not leftovers.left(before, leftovers.picture(cluster.data)),
        "nothing of it to be left",
    )


def test_nodes_find_each_other_although_the_server_is_killed(
    start: Callable[..., Server], fsx: pathlib.Path
) -> None:
    server = start(
        "[jobs]\nstop_grace_seconds = 1\n[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib ="
        f" 8.0\n[posix_users]\n'*' = '1000:1000'\n[volumes.'/fsx']\ndirectory = '{fsx}'\n"
    )
    batch = server.boto("batch")
    queue = make_queue(batch)
    job = submit(batch, queue, rendezvous_job(3))
    for status in ("STARTING", "RUNNING"):
        wait_until(batch, job, (status, "RUNNING", "SUCCEEDED"))
        server.kill()
        server.start()
        batch = server.boto("batch")
    done = wait_until(batch, job)
    assert done["status"] == "SUCCEEDED" and len(done["attempts"]) == 1
    output = lines(server, describe(batch, f"{job}#0"))
    assert [line.split(" since ")[0] for line in output] == [
        "0 of 3 main is 0 at False",
        "met [1, 2] at 2 addresses",
    ]


def test_a_lost_child_leaves_the_job_alone_and_a_lost_main_node_ends_its_attempt(
    cluster: Server, batch: BaseClient, queue: str
) -> None:
    before = set(cluster.agents())
    job = submit(
        batch,
        queue,
        of_nodes(
            "[ $AWS_BATCH_JOB_NODE_INDEX$AWS_BATCH_JOB_ATTEMPT = 02 ] && exit 0; exec sleep 600", 2
        ),
        retryStrategy={"attempts": 2},
    )
    wait_for(
        lambda: len(batch.list_jobs(multiNodeJobId=job)["jobSummaryList"]) == 2, "both nodes to run"
    )
    of_node = {}
    for agent in set(cluster.agents()) - before:
        with open(f"/proc/{agent}/cmdline", "rb") as file:
            order = file.read().split(b"\0")[2].decode()
        of_node[int(os.path.basename(os.path.dirname(order)))] = agent
    os.kill(of_node[1], signal.SIGKILL)
    child = wait_until(batch, f"{job}#1", ("FAILED",))
    assert re.fullmatch(HOST_LOST, child["statusReason"])
    assert describe(batch, job)["status"] == "RUNNING"
    os.kill(of_node[0], signal.SIGKILL)
    done = wait_until(batch, job)
    assert done["status"] == "SUCCEEDED", done
    first, second = [attempt["statusReason"] for attempt in done["attempts"]]
    assert re.fullmatch(HOST_LOST, first) and second == "Essential container in task exited"


def test_the_posts_definition_runs_mpirun_across_twenty_nodes(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    """examples/05_multinode: its definition as it is. Machines of the size that it requests, in
    name, are quicker than shares of this one: nothing holds a node back then."""
    example = os.path.join(ROOT, "examples", "05_multinode")
    config = subprocess.run(
        [os.path.join(example, "prepare"), tmp_path / "fsx"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    server = start(
        config
        + "".join(
            f'\n[[machine]]\nname = "small-{number}"\ncpus = 62.0\nmemory_gib = 415.0\n'
            for number in range(20)
        )
    )
    batch = server.boto("batch")
    queue = make_queue(batch, 4096)
    with open(os.path.join(example, "job_definition.json"), encoding="utf-8") as file:
        definition = batch.register_job_definition(**json.load(file))["jobDefinitionArn"]
    job = batch.submit_job(
        jobName="digits",
        jobQueue=queue,
        jobDefinition=definition,
        nodeOverrides={
            "nodePropertyOverrides": [
                {
                    "targetNodes": "0:",
                    "containerOverrides": {"environment": [{"name": "MPI_GPUS", "value": "20"}]},
                }
            ]
        },
    )["jobId"]
    done = wait_until(batch, job, seconds_max=300)
    output = lines(server, describe(batch, f"{job}#0"))
    assert done["status"] == "SUCCEEDED", (done, output)
    with open(os.path.join(example, "expected_output.txt"), encoding="utf-8") as file:
        for expected in file.read().splitlines():
            assert any(line.startswith(expected) for line in output), (
                f"not said: {expected}: {output}"
            )
    assert lines(server, describe(batch, f"{job}#19")) == ["node 19: told the main node of 1 slots"]
    results = list((tmp_path / "fsx" / "resized" / "results").iterdir())
    assert [path.name for path in results] == [f"{job}.json"] and json.loads(
        results[0].read_text()
    )["ranks"] == 20
