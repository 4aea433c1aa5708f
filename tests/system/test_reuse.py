"""Tests queues whose hosts run one job after another: what each job has for itself, what is emptied
between jobs, and what they share (docs/decisions/26)."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import leftovers
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
FINAL = ("SUCCEEDED", "FAILED")


class Watched(Server):
    """Is a server with a record of the machine's state before its first job."""

    before: dict[str, set[str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    server = Watched(
        tmp_path_factory.mktemp("reuse") / "data",
        '[[machine]]\nname = "box"\ncpus = 1.0\nmemory_gib = 4.0\n',
    ).start()
    server.before = leftovers.picture(server.data)
    yield server
    server.clean()


@pytest.fixture(scope="module")
def batch(server: Server) -> BaseClient:
    """Has capacity for one job at a time: the next job follows on the same host, if permitted."""
    batch = server.boto("batch")
    environment = batch.create_compute_environment(
        computeEnvironmentName="all",
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 1},
    )
    for name, tags in (("kept", {"trainyard:reuse-hosts": "true"}), ("fresh", {"team": "a"})):
        batch.create_job_queue(
            jobQueueName=name,
            priority=1,
            tags=tags,
            computeEnvironmentOrder=[
                {"order": 1, "computeEnvironment": environment["computeEnvironmentArn"]}
            ],
        )
    for name, memory in (("small", "64"), ("larger", "128")):
        batch.register_job_definition(
            jobDefinitionName=name,
            type="container",
            containerProperties={
                "image": "trainyard/host",
                "command": ["true"],
                "resourceRequirements": [
                    {"type": "VCPU", "value": "1"},
                    {"type": "MEMORY", "value": memory},
                ],
            },
        )
    return batch


def run(
    server: Server,
    batch: BaseClient,
    scripts: Sequence[str],
    queue: str = "kept",
    definition: str = "small",
) -> list[dict[str, Any]]:
    """Submits all jobs at once; returns how each ended, with the lines of its log."""
    ids = [
        batch.submit_job(
            jobName="one",
            jobQueue=queue,
            jobDefinition=definition,
            containerOverrides={
                "command": ["/bin/sh", "-c", script],
                "environment": [{"name": "NUMBER", "value": str(number)}],
            },
        )["jobId"]
        for number, script in enumerate(scripts)
    ]
    seen = []

    def over() -> bool:
        seen[:] = sorted(
            batch.describe_jobs(jobs=ids)["jobs"], key=lambda job: ids.index(job["jobId"])
        )
        return all(job["status"] in FINAL for job in seen)

    wait_for(over, f"{len(ids)} jobs to be over")
    logs = server.boto("logs")
    for job in seen:
        stream = job["container"].get("logStreamName")
        events = logs.get_log_events(
            logGroupName="/aws/batch/job", logStreamName=stream, startFromHead=True
        )["events"]
        job["lines"] = [event["message"] for event in events]
    return seen


def host_of(job: dict[str, Any]) -> list[str]:
    return [line for line in job["lines"] if line.startswith("host ")]


# A host keeps its addresses while it is reused, and a new host gets the next ones. The number
# of a network namespace may be assigned again after its removal.
HOST = "echo host $(md5sum < /proc/net/fib_trie); "


def test_a_host_runs_one_job_after_another(server: Server, batch: BaseClient) -> None:
    done = run(
        server,
        batch,
        [HOST + "echo $NUMBER $AWS_BATCH_JOB_ID $AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] * 3,
    )
    assert {job["status"] for job in done} == {"SUCCEEDED"}
    assert len({host_of(job)[0] for job in done}) == 1, "one host"
    words = [job["lines"][1].split() for job in done]
    assert [word[:2] for word in words] == [
        [str(number), job["jobId"]] for number, job in enumerate(done)
    ]
    assert len({word[2] for word in words}) == 3, "keys of its own"
    assert all(len(job["attempts"]) == 1 for job in done)


def test_without_the_tag_each_has_its_own_host(server: Server, batch: BaseClient) -> None:
    done = run(server, batch, [HOST] * 2, queue="fresh")
    assert len({host_of(job)[0] for job in done}) == 2


def test_a_reused_host_is_cleared_of_processes_and_temporary_files(
    server: Server, batch: BaseClient
) -> None:
    first = (
        HOST
        + "sleep 1000 & echo mine > /tmp/left; echo mine > /dev/shm/left; mkdir -p /tmp/.deep/er;"
        " echo mine > /var-of-the-first; true"
    )
    second = (
        HOST
        + "ls -A /tmp /dev/shm; cat /var-of-the-first; for p in /proc/[0-9]*; do cat $p/comm; done"
        " | grep -c sleep; tr '\\0' ' ' < /proc/1/cmdline"
    )
    done = run(server, batch, [first, second])
    assert host_of(done[0]) == host_of(done[1])
    assert done[1]["lines"][1:] == [
        "/dev/shm:",
        "/tmp:",
        "mine",
        "0",
        "/proc/1/cmdline: Permission denied",
    ] or done[1]["lines"][1:6] == ["/dev/shm:", "/tmp:", "mine", "0", done[1]["lines"][5]], done[1][
        "lines"
    ]


def test_other_shapes_and_failures_get_a_new_host(server: Server, batch: BaseClient) -> None:
    one = run(server, batch, [HOST])
    other = run(server, batch, [HOST], definition="larger")
    assert host_of(one[0]) != host_of(other[0])
    failed = run(server, batch, [HOST + "exit 7", HOST])
    assert [job["status"] for job in failed] == ["FAILED", "SUCCEEDED"] and failed[0]["container"][
        "exitCode"
    ] == 7
    assert host_of(failed[0]) != host_of(failed[1])


def test_a_missing_command_fails_the_job(server: Server, batch: BaseClient) -> None:
    job = batch.submit_job(
        jobName="one",
        jobQueue="kept",
        jobDefinition="small",
        containerOverrides={"command": ["/no/such/program"]},
    )["jobId"]
    seen = {}

    def over() -> bool:
        seen.update(batch.describe_jobs(jobs=[job])["jobs"][0])
        return seen["status"] in FINAL

    wait_for(over, "the job to be over")
    assert (
        seen["status"] == "FAILED"
        and "not found" in seen["container"].get("reason", "") + seen["statusReason"]
    ), seen


def test_terminating_one_leaves_the_next_alone(server: Server, batch: BaseClient) -> None:
    first = batch.submit_job(
        jobName="one",
        jobQueue="kept",
        jobDefinition="small",
        containerOverrides={
            "command": [
                "/bin/sh",
                "-c",
                "trap 'echo told; exit 3' TERM; echo on; while :; do sleep 0.1; done",
            ]
        },
    )["jobId"]
    wait_for(
        lambda: batch.describe_jobs(jobs=[first])["jobs"][0]["status"] == "RUNNING",
        "the first job to run",
    )
    batch.terminate_job(jobId=first, reason="enough")
    done = run(server, batch, ["echo next"])
    assert done[0]["status"] == "SUCCEEDED" and done[0]["lines"] == ["next"]
    assert batch.describe_jobs(jobs=[first])["jobs"][0]["statusReason"] == "enough"


def test_nothing_is_left(server: Watched, batch: BaseClient) -> None:
    run(server, batch, ["true"] * 2)
    wait_for(
        lambda: not leftovers.left(server.before, leftovers.picture(server.data)),
        "everything to be gone",
    )
