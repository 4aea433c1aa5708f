"""Has helpers for Batch jobs that run a shell line in a container, or on each of n nodes."""

from collections.abc import Collection, Mapping
from typing import Any

from botocore.client import BaseClient

from tests import trainyard_server
from tests.calls import fresh
from tests.trainyard_server import WAIT_SECONDS_MAX, wait_for

IMAGE = "trainyard/host"
FINAL = ("SUCCEEDED", "FAILED")


def make_queue(
    batch: BaseClient, cpus_max: int = 256, queue: str | None = None, **resources: Any
) -> str:
    """Makes a queue with one environment; returns its name. `resources`: further members of the
    environment's resources."""
    environment, queue = fresh("environment"), queue or fresh("queue")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "minvCpus": 0, "maxvCpus": cpus_max} | resources,
    )
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    return queue


def container(script: str = "true", **more: Any) -> dict[str, Any]:
    sizes = {
        "resourceRequirements": [
            {"type": "VCPU", "value": "0.25"},
            {"type": "MEMORY", "value": "64"},
        ]
    }
    return {"image": IMAGE, "command": ["/bin/sh", "-c", script]} | sizes | more


def of_nodes(
    script: str,
    nodes: int = 2,
    main: int = 0,
    ranges: Mapping[str, dict[str, Any]] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Returns nodeProperties: all nodes run `script`, or each of `ranges` its own container
    ({"0:3": container})."""
    ranges = ranges or {"0:": container(script, **more)}
    return {
        "numNodes": nodes,
        "mainNode": main,
        "nodeRangeProperties": [
            {"targetNodes": nodes, "container": each} for nodes, each in ranges.items()
        ],
    }


def submit(batch: BaseClient, queue: str, properties: dict[str, Any], **more: Any) -> str:
    """Submits a job of a new definition with these nodeProperties or containerProperties; returns
    its id."""
    kind = (
        {"type": "multinode", "nodeProperties": properties}
        if "numNodes" in properties
        else {"type": "container", "containerProperties": properties}
    )
    definition = batch.register_job_definition(jobDefinitionName=fresh("definition"), **kind)[
        "jobDefinitionArn"
    ]
    return batch.submit_job(
        **({"jobName": "nodes", "jobQueue": queue, "jobDefinition": definition} | more)
    )["jobId"]


def describe(batch: BaseClient, job: str) -> dict[str, Any]:
    return batch.describe_jobs(jobs=[job])["jobs"][0]


def wait_until(
    batch: BaseClient,
    job: str,
    statuses: Collection[str] = FINAL,
    seconds_max: float = WAIT_SECONDS_MAX,
) -> dict[str, Any]:
    seen = {}

    def reached() -> bool:
        seen.update(describe(batch, job))
        return seen["status"] in statuses

    try:
        wait_for(reached, f"{job} to be one of {statuses}", seconds_max)
    except AssertionError as late:
        raise AssertionError(
            f"{late}; it is {seen.get('status')}: {seen.get('statusReason')}"
        ) from None
    return seen


def events(
    server: trainyard_server.Server, detail: dict[str, Any], group: str = "/aws/batch/job"
) -> list[dict[str, Any]]:
    """Returns the log of a container, or of a node."""
    found = server.boto("logs").get_log_events(
        logGroupName=group, logStreamName=detail["container"]["logStreamName"], startFromHead=True
    )["events"]
    return [event for event in found if not event["message"].startswith("trainyard: ")]


def lines(server: trainyard_server.Server, detail: dict[str, Any], **more: str) -> list[str]:
    return [event["message"] for event in events(server, detail, **more)]
