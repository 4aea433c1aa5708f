"""Tests array jobs of AWS Batch through unmodified clients: children, their dependencies,
cancellation and termination."""

from collections.abc import Callable
from typing import Any

import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests import debians_boto
from tests.conformance.test_batch import batch as batch  # a fixture
from tests.conformance.test_batch import fresh, lines, refusal, register, submit, wait_until
from tests.conformance.test_batch import queue as queue  # a fixture
from tests.trainyard_server import Answer, Server, wait_for

STATUSES = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")
NEVER = "while [ ! -e /tmp/never ]; do sleep 0.1; done"


def counts(batch: BaseClient, job: str) -> dict[str, Any]:
    summary = batch.describe_jobs(jobs=[job])["jobs"][0]["arrayProperties"]["statusSummary"]
    assert set(summary) == set(STATUSES)
    return {status: count for status, count in summary.items() if count}


def children(batch: BaseClient, job: str, **more: Any) -> list[dict[str, Any]]:
    pages = batch.get_paginator("list_jobs").paginate(arrayJobId=job, **more)
    return [one for page in pages for one in page["jobSummaryList"]]


def test_an_array_runs_once_for_each_index(
    server: Server, batch: BaseClient, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "env | grep ^AWS_BATCH_JOB_A | sort; echo $AWS_BATCH_JOB_ID"
    definition = register(batch, fresh("indexed"), script)["jobDefinitionArn"]
    made = batch.submit_job(
        jobName="indexed",
        jobQueue=queue,
        jobDefinition=definition,
        arrayProperties={"size": 3},
        tags={"team": "a"},
    )
    array = made["jobId"]
    assert made["jobName"] == "indexed" and made["jobArn"].endswith(":job/" + array)
    done = wait_until(batch, array)
    assert done["status"] == "SUCCEEDED", done
    properties = done["arrayProperties"]
    assert properties["size"] == 3 and "index" not in properties
    assert properties["statusSummary"] == {
        status: 3 if status == "SUCCEEDED" else 0 for status in STATUSES
    }
    assert done["createdAt"] <= properties["statusSummaryLastUpdatedAt"] == done["stoppedAt"]
    assert done["attempts"] == [] and done["tags"] == {"team": "a"}
    shown = batch.describe_jobs(jobs=[f"{array}:{index}" for index in range(4)])["jobs"]
    assert [one["jobId"] for one in shown] == [f"{array}:{index}" for index in range(3)], (
        "a fourth is not listed"
    )
    for index, child in enumerate(shown):
        assert (
            child["status"] == "SUCCEEDED"
            and child["jobName"] == "indexed"
            and child["arrayProperties"] == {"index": index}
        )
        assert (
            child["jobArn"] == f"{made['jobArn']}:{index}"
            and child["container"]["exitCode"] == 0
            and len(child["attempts"]) == 1
        )
        assert lines(server, child["container"]["logStreamName"]) == [
            f"AWS_BATCH_JOB_ARRAY_INDEX={index}",
            "AWS_BATCH_JOB_ARRAY_SIZE=3",
            "AWS_BATCH_JOB_ATTEMPT=1",
            f"{array}:{index}",
        ]
    assert len({child["container"]["logStreamName"] for child in shown}) == 3
    listed = children(batch, array, jobStatus="SUCCEEDED")
    assert [one["jobId"] for one in listed] == [f"{array}:{index}" for index in range(3)]
    assert [one["arrayProperties"] for one in listed] == [{"index": index} for index in range(3)]
    in_queue = [
        one
        for one in batch.list_jobs(jobQueue=queue, jobStatus="SUCCEEDED")["jobSummaryList"]
        if one["jobId"].startswith(array)
    ]
    assert [one["jobId"] for one in in_queue] == [array], "children are listed by their array only"
    assert in_queue[0]["arrayProperties"]["size"] == 3
    monkeypatch.setenv("AWS_DATA_PATH", server.env["AWS_DATA_PATH"])
    own = server.boto("trainyard")
    (mine,) = own.list_jobs(NameContains=array)["Jobs"]
    assert mine["Array"]["Succeeded"] == 3
    described = own.describe_job(JobName=array)["Cost"]
    assert float(described["Amount"]) > 0
    assert mine["Cost"] == described, "the sum of its children"
    assert own.list_jobs(NameContains=array)["Jobs"][0]["Cost"] == described, "as it was kept"


def test_a_child_that_fails_is_tried_again_by_itself_and_fails_its_array(
    server: Server, batch: BaseClient, queue: str
) -> None:
    script = "echo $AWS_BATCH_JOB_ATTEMPT; [ $AWS_BATCH_JOB_ARRAY_INDEX != 1 ] || exit 5"
    array = submit(
        batch,
        queue,
        script,
        arrayProperties={"size": 3},
        retryStrategy={"attempts": 2},
        timeout={"attemptDurationSeconds": 600},
    )
    done = wait_until(batch, array)
    assert done["status"] == "FAILED" and done["statusReason"] == "Array Child Job failed"
    assert counts(batch, array) == {"SUCCEEDED": 2, "FAILED": 1}
    failed = children(batch, array, jobStatus="FAILED")
    assert [one["jobId"] for one in failed] == [f"{array}:1"] and failed[0]["container"][
        "exitCode"
    ] == 5
    child = batch.describe_jobs(jobs=[f"{array}:1"])["jobs"][0]
    assert [attempt["container"]["exitCode"] for attempt in child["attempts"]] == [5, 5]
    assert (
        child["timeout"] == {"attemptDurationSeconds": 600}
        and child["retryStrategy"]["attempts"] == 2
    )


def test_sequential_children_run_one_after_another(batch: BaseClient, queue: str) -> None:
    array = submit(
        batch, queue, "true", arrayProperties={"size": 3}, dependsOn=[{"type": "SEQUENTIAL"}]
    )
    assert wait_until(batch, array)["dependsOn"] == [{"type": "SEQUENTIAL"}]
    shown = batch.describe_jobs(jobs=[f"{array}:{index}" for index in range(3)])["jobs"]
    for before, after in zip(shown, shown[1:]):
        assert before["stoppedAt"] <= after["startedAt"]
    array = submit(
        batch,
        queue,
        "[ $AWS_BATCH_JOB_ARRAY_INDEX = 0 ] || exit 1",
        arrayProperties={"size": 4},
        dependsOn=[{"type": "SEQUENTIAL"}],
    )
    wait_until(batch, array)
    assert [
        one["status"]
        for one in batch.describe_jobs(jobs=[f"{array}:{index}" for index in range(4)])["jobs"]
    ] == ["SUCCEEDED", "FAILED", "FAILED", "FAILED"]
    last = batch.describe_jobs(jobs=[f"{array}:3"])["jobs"][0]
    assert last["statusReason"] == "Dependent Job failed" and last["attempts"] == []


def test_arrays_depend_on_children_or_on_whole_arrays(batch: BaseClient, queue: str) -> None:
    first = submit(
        batch,
        queue,
        "[ $AWS_BATCH_JOB_ARRAY_INDEX != 2 ] || exit 1; [ $AWS_BATCH_JOB_ARRAY_INDEX != 0 ] ||"
        " sleep 1.5",
        arrayProperties={"size": 3},
    )
    second = submit(
        batch,
        queue,
        "true",
        arrayProperties={"size": 3},
        dependsOn=[{"jobId": first, "type": "N_TO_N"}],
    )
    whole = submit(batch, queue, "true", dependsOn=[{"jobId": first}])
    of_one = submit(batch, queue, "true", dependsOn=[{"jobId": f"{first}:1"}])
    assert wait_until(batch, second)["status"] == "FAILED"
    parents = batch.describe_jobs(jobs=[f"{first}:{index}" for index in range(3)])["jobs"]
    shown = batch.describe_jobs(jobs=[f"{second}:{index}" for index in range(3)])["jobs"]
    assert (
        [one["status"] for one in shown]
        == ["SUCCEEDED", "SUCCEEDED", "FAILED"]
        == [one["status"] for one in parents]
    )
    for before, after in list(zip(parents, shown))[:2]:
        assert before["stoppedAt"] <= after["startedAt"]
    assert shown[1]["startedAt"] < parents[0]["stoppedAt"], (
        "each depends on its own counterpart, not the array"
    )
    assert shown[2]["statusReason"] == "Dependent Job failed"
    assert wait_until(batch, whole)["statusReason"] == "Dependent Job failed", (
        "a whole array must succeed"
    )
    assert wait_until(batch, of_one)["status"] == "SUCCEEDED"


def test_invalid_arrays_are_rejected(batch: BaseClient, queue: str) -> None:
    definition = register(batch, fresh("definition"))["jobDefinitionArn"]
    base = {"jobName": "x", "jobQueue": queue, "jobDefinition": definition}
    for size in 0, 1, 10_001:
        assert f"must be between 2 and 10000, not {size}" in refusal(
            batch.submit_job, **base, arrayProperties={"size": size}
        )
    first = batch.submit_job(**base, arrayProperties={"size": 2})["jobId"]
    n_to_n = [{"jobId": first, "type": "N_TO_N"}]
    assert "has 2 children" in refusal(
        batch.submit_job, **base, arrayProperties={"size": 3}, dependsOn=n_to_n
    )
    assert "this job has no arrayProperties" in refusal(batch.submit_job, **base, dependsOn=n_to_n)
    assert "has no jobId" in refusal(
        batch.submit_job,
        **base,
        arrayProperties={"size": 2},
        dependsOn=[{"jobId": first, "type": "SEQUENTIAL"}],
    )
    assert "at most 20" in refusal(batch.submit_job, **base, dependsOn=[{"jobId": first}] * 21)
    assert "does not exist" in refusal(batch.list_jobs, arrayJobId="nobody")
    assert "one of jobQueue, arrayJobId and multiNodeJobId" in refusal(
        batch.list_jobs, arrayJobId=first, jobQueue=queue
    )
    assert "nextToken" in refusal(batch.list_jobs, arrayJobId=first, nextToken="elsewhere")
    wait_until(batch, first)


@pytest.fixture(scope="module")
def narrow(batch: BaseClient) -> str:
    """Makes a queue with capacity for two jobs at a time."""
    environment, name = fresh("narrow"), fresh("queue")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "maxvCpus": 1},
    )
    batch.create_job_queue(
        jobQueueName=name,
        priority=5,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    return name


def register_half(batch: BaseClient, script: str) -> str:
    return register(batch, fresh("half"), script, vcpus="0.5")["jobDefinitionArn"]


def test_terminate_ends_ten_thousand(batch: BaseClient, narrow: str) -> None:
    array = batch.submit_job(
        jobName="many",
        jobQueue=narrow,
        jobDefinition=register_half(batch, NEVER),
        arrayProperties={"size": 10_000},
    )["jobId"]
    wait_for(lambda: counts(batch, array).get("RUNNING") == 2, "two children to run")
    assert counts(batch, array) == {"RUNNABLE": 9_998, "RUNNING": 2}
    assert wait_until(batch, array, ("PENDING",))["arrayProperties"]["size"] == 10_000
    assert [
        one["jobId"]
        for one in batch.list_jobs(jobQueue=narrow, jobStatus="PENDING")["jobSummaryList"]
    ] == [array]
    running = children(batch, array)  # without a status: those that run
    assert [one["jobId"] for one in running] == [f"{array}:0", f"{array}:1"]
    # One by one: what runs, what waits, and what was not even made.
    for index in 1, 2, 9_999:
        batch.terminate_job(jobId=f"{array}:{index}", reason=f"not {index}")
        done = wait_until(batch, f"{array}:{index}")
        assert (
            done["status"] == "FAILED"
            and done["statusReason"] == f"not {index}"
            and done["isTerminated"]
        )
    wait_for(
        lambda: counts(batch, array) == {"RUNNABLE": 9_995, "RUNNING": 2, "FAILED": 3},
        "another child to run",
    )
    waiting = children(batch, array, jobStatus="RUNNABLE", PaginationConfig={"PageSize": 1_000})
    assert len(waiting) == len({one["jobId"] for one in waiting}) == 9_995
    assert [one["arrayProperties"]["index"] for one in waiting[-2:]] == [9_997, 9_998]
    batch.terminate_job(jobId=array, reason="enough")
    done = wait_until(batch, array)
    assert done["status"] == "FAILED" and done["statusReason"] == "enough" and done["isTerminated"]
    assert counts(batch, array) == {"FAILED": 10_000}
    assert batch.describe_jobs(jobs=[f"{array}:9998"])["jobs"][0]["statusReason"] == "enough"
    assert batch.describe_jobs(jobs=[f"{array}:9999"])["jobs"][0]["statusReason"] == "not 9999"
    ids = [f"{array}:{index}" for index in range(9_900, 10_000)]
    assert [one["jobId"] for one in batch.describe_jobs(jobs=ids)["jobs"]] == ids
    assert "at most 100" in refusal(batch.describe_jobs, jobs=ids + [array])


def test_cancel_does_not_stop_running_jobs(batch: BaseClient, narrow: str) -> None:
    array = batch.submit_job(
        jobName="some",
        jobQueue=narrow,
        jobDefinition=register_half(batch, NEVER),
        arrayProperties={"size": 5},
    )["jobId"]
    wait_for(lambda: counts(batch, array) == {"RUNNABLE": 3, "RUNNING": 2}, "two children to run")
    batch.cancel_job(jobId=f"{array}:4", reason="not this one")
    assert wait_until(batch, f"{array}:4")["isCancelled"]
    batch.cancel_job(jobId=array, reason="no more")
    wait_for(
        lambda: counts(batch, array) == {"RUNNING": 2, "FAILED": 3}, "the others to be cancelled"
    )
    for index in 0, 1:
        batch.terminate_job(jobId=f"{array}:{index}", reason="these too")
    done = wait_until(batch, array)
    assert done["status"] == "FAILED" and done["statusReason"] == "no more" and done["isCancelled"]
    assert [one["statusReason"] for one in children(batch, array, jobStatus="FAILED")] == [
        "these too"
    ] * 2 + ["no more"] * 2 + ["not this one"]


def test_rules_ignore_case(batch: BaseClient, queue: str) -> None:
    job = submit(
        batch,
        queue,
        "exit 3",
        retryStrategy={"attempts": 3, "evaluateOnExit": [{"onExitCode": "3", "action": "exit"}]},
    )
    done = wait_until(batch, job)
    assert done["status"] == "FAILED" and len(done["attempts"]) == 1
    for words, rules in (
        ("RETRY or EXIT", [{"onExitCode": "3", "action": "AGAIN"}]),
        ("a . only at its end", [{"onReason": "Cannot*Error", "action": "EXIT"}]),
        ("at most 5 rules", [{"onExitCode": "3", "action": "EXIT"}] * 6),
    ):
        strategy = {"attempts": 3, "evaluateOnExit": rules}
        with pytest.raises(botocore.exceptions.ClientError, match=words):
            submit(batch, queue, "exit 3", retryStrategy=strategy)
        with pytest.raises(botocore.exceptions.ClientError, match=words):
            register(batch, fresh("refused"), retryStrategy=strategy)


def test_an_older_boto3_and_both_command_lines(
    server: Server, batch: BaseClient, queue: str, aws: Callable[..., Answer]
) -> None:
    definition = register(batch, fresh("both"), "echo $AWS_BATCH_JOB_ARRAY_INDEX")[
        "jobDefinitionArn"
    ]
    older = debians_boto.call(
        server,
        "batch",
        "submit_job",
        jobName="older",
        jobQueue=queue,
        jobDefinition=definition,
        arrayProperties={"size": 2},
    )["jobId"]
    array = aws(
        "batch",
        "submit-job",
        "--job-name",
        "by-hand",
        "--job-queue",
        queue,
        "--job-definition",
        definition,
        "--array-properties",
        "size=2",
        "--depends-on",
        f"jobId={older},type=N_TO_N",
        "type=SEQUENTIAL",
    )["jobId"]
    assert wait_until(batch, array)["status"] == "SUCCEEDED"
    shown = aws("batch", "describe-jobs", "--jobs", array, f"{array}:1")["jobs"]
    assert shown[0]["arrayProperties"]["statusSummary"]["SUCCEEDED"] == 2 and shown[1][
        "arrayProperties"
    ] == {"index": 1}
    assert lines(server, shown[1]["container"]["logStreamName"]) == ["1"]
    listed = aws("batch", "list-jobs", "--array-job-id", array, "--job-status", "SUCCEEDED")[
        "jobSummaryList"
    ]
    assert [one["jobId"] for one in listed] == [f"{array}:0", f"{array}:1"]
    assert (
        debians_boto.call(server, "batch", "describe_jobs", jobs=[older])["jobs"][0][
            "arrayProperties"
        ]["statusSummary"]["SUCCEEDED"]
        == 2
    )
