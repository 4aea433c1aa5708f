"""Jobs of Batch as tests say them: a shell line in a container, or on each of n nodes."""

from calls import fresh
from trainyard_server import WAIT_SECONDS_MAX, wait_for

IMAGE = "trainyard/machine"
FINAL = ("SUCCEEDED", "FAILED")


def make_queue(batch, cpus_max=256):
    """The name of a new queue with one environment."""
    environment, queue = fresh("environment"), fresh("queue")
    batch.create_compute_environment(
        computeEnvironmentName=environment,
        type="MANAGED",
        computeResources={"type": "EC2", "minvCpus": 0, "maxvCpus": cpus_max},
    )
    batch.create_job_queue(
        jobQueueName=queue,
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": environment}],
    )
    return queue


def container(script="true", **more):
    sizes = {
        "resourceRequirements": [
            {"type": "VCPU", "value": "0.25"},
            {"type": "MEMORY", "value": "64"},
        ]
    }
    return {"image": IMAGE, "command": ["/bin/sh", "-c", script]} | sizes | more


def of_nodes(script, nodes=2, main=0, ranges=None, **more):
    """nodeProperties: all nodes run `script`, or each of `ranges` ({"0:3": container}) its own."""
    ranges = ranges or {"0:": container(script, **more)}
    return {
        "numNodes": nodes,
        "mainNode": main,
        "nodeRangeProperties": [
            {"targetNodes": nodes, "container": each} for nodes, each in ranges.items()
        ],
    }


def submit(batch, queue, properties, **more):
    """The id of a new job of a new definition with these nodeProperties or containerProperties."""
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


def describe(batch, job):
    return batch.describe_jobs(jobs=[job])["jobs"][0]


def wait_until(batch, job, statuses=FINAL, seconds_max=WAIT_SECONDS_MAX):
    seen = {}

    def reached():
        seen.update(describe(batch, job))
        return seen["status"] in statuses

    try:
        wait_for(reached, f"{job} to be one of {statuses}", seconds_max)
    except AssertionError as late:
        raise AssertionError(
            f"{late}; it is {seen.get('status')}: {seen.get('statusReason')}"
        ) from None
    return seen


def events(server, detail, group="/aws/batch/job"):
    """The log of a container, or of a node."""
    found = server.boto("logs").get_log_events(
        logGroupName=group, logStreamName=detail["container"]["logStreamName"], startFromHead=True
    )["events"]
    return [event for event in found if not event["message"].startswith("trainyard: ")]


def lines(server, detail, **more):
    return [event["message"] for event in events(server, detail, **more)]
