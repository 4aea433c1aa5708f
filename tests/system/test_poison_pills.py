"""Extreme numbers in every numeric member of requests that create something: none ends the server or the next start.

Each request is valid but for one number. Whatever is refused is refused as the client's mistake; whatever is accepted is
planned, and survives a restart.
"""

import copy
import json

import botocore.exceptions
from botocore.config import Config

import jobs
from trainyard_server import wait_for

PILLS = (0, -1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, -(2**31), -(2**63))
TEXT_PILLS = ("0", "-1", str(2**31), str(2**32), str(2**63 - 1), "9" * 40, "1e308", "NaN")
MACHINE = "[[machine]]\nname = 'box'\ncpus = 4.0\nmemory_gib = 16.0\n"
CONTAINER = {
    "image": "trainyard/machine", "command": ["true"], "resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64"}],
    "linuxParameters": {"sharedMemorySize": 1, "maxSwap": 0, "swappiness": 1, "tmpfs": [{"containerPath": "/scratch", "size": 1}]},
    "ulimits": [{"name": "nofile", "softLimit": 64, "hardLimit": 64}],
}


def job(name):
    request = jobs.request(name)
    request["ResourceConfig"] = {
        "VolumeSizeInGB": 1, "KeepAlivePeriodInSeconds": 60,
        "InstanceGroups": [{"InstanceGroupName": group, "InstanceType": "ml.t3.medium", "InstanceCount": 1} for group in ("a", "b", "c")],
    }
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": 60, "MaxPendingTimeInSeconds": 7200}
    request["RetryStrategy"] = {"MaximumRetryAttempts": 1}
    return request


def spot_job(name):
    return jobs.request(name, EnableManagedSpotTraining=True, StoppingCondition={"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60})


# (service, operation, the member that names what is made, a valid request)
REQUESTS = (
    ("sagemaker", "create_training_job", "TrainingJobName", job("x")),
    ("sagemaker", "create_training_job", "TrainingJobName", spot_job("x")),
    ("batch", "create_compute_environment", "computeEnvironmentName", {
        "type": "MANAGED", "computeResources": {"type": "EC2", "minvCpus": 0, "maxvCpus": 4, "desiredvCpus": 0, "bidPercentage": 50, "subnets": ["subnet-1"]}}),
    ("batch", "create_job_queue", "jobQueueName", {"priority": 1, "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "first"}], "jobStateTimeLimitActions": [
        {"reason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT", "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}]}),
    ("batch", "create_scheduling_policy", "name", {"fairsharePolicy": {"shareDecaySeconds": 60, "computeReservation": 1, "shareDistribution": [{"shareIdentifier": "a", "weightFactor": 1.0}]}}),
    ("batch", "create_consumable_resource", "consumableResourceName", {"totalQuantity": 1}),
    ("batch", "register_job_definition", "jobDefinitionName", {
        "type": "container", "schedulingPriority": 1, "containerProperties": CONTAINER, "retryStrategy": {"attempts": 1}, "timeout": {"attemptDurationSeconds": 60}}),
    ("batch", "register_job_definition", "jobDefinitionName", {
        "type": "multinode", "nodeProperties": {"numNodes": 2, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:1", "container": CONTAINER}]}}),
    ("batch", "submit_job", "jobName", {
        "jobQueue": "first", "jobDefinition": "first", "arrayProperties": {"size": 2}, "retryStrategy": {"attempts": 1}, "timeout": {"attemptDurationSeconds": 60},
        "containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64"}]}}),
    ("logs", "put_log_events", None, {"logGroupName": "/pills", "logStreamName": "one", "logEvents": [{"timestamp": 1, "message": "x"}]}),
    ("cloudwatch", "put_metric_data", None, {"Namespace": "Pills", "MetricData": [{"MetricName": "x", "Value": 1.0, "Timestamp": 1, "StorageResolution": 1}]}),
)


def places(value, path=()):
    """The paths of all numbers in a request, those written as text among them."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from places(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from places(member, (*path, index))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path
    elif isinstance(value, str) and value.isdigit():
        yield path


def poisoned(request, pills):
    """The request with other values at some paths."""
    changed = copy.deepcopy(request)
    for path, pill in pills:
        at = changed
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = str(pill) if isinstance(at[path[-1]], str) else pill
    return changed


def variants(request):
    for path in places(request):
        at = request
        for step in path:
            at = at[step]
        for pill in TEXT_PILLS if isinstance(at, str) else PILLS:
            yield poisoned(request, [(path, pill)])
    groups = [path for path in places(request) if path[-1] == "InstanceCount"]
    if len(groups) == 3:  # sums that are 0, 1 and negative in 32 bits
        for counts in ((2**31 - 1, 2**31 - 1, 2), (2**31 - 1, 2**31 - 1, 3), (2**31 - 1, 1, 1)):
            yield poisoned(request, list(zip(groups, counts)))


def test_no_number_stops_the_server(start):
    server = start(MACHINE)
    server.boto("s3").create_bucket(Bucket="yard")
    unchecked = Config(retries={"max_attempts": 0}, parameter_validation=False)
    clients = {service: server.boto(service, config=unchecked) for service in ("sagemaker", "batch", "logs", "cloudwatch")}
    batch = clients["batch"]
    batch.create_compute_environment(computeEnvironmentName="first", type="MANAGED", computeResources={"type": "EC2", "minvCpus": 0, "maxvCpus": 4, "subnets": ["subnet-1"]})
    batch.create_job_queue(jobQueueName="first", priority=1, computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "first"}])
    batch.register_job_definition(jobDefinitionName="first", type="container", containerProperties=CONTAINER)
    clients["logs"].create_log_group(logGroupName="/pills")
    clients["logs"].create_log_stream(logGroupName="/pills", logStreamName="one")

    sent = refused = 0
    accepted_jobs = []
    for service, operation, member, request in REQUESTS:
        for body in variants(request):
            name = f"pill-{sent}"
            sent += 1
            try:
                getattr(clients[service], operation)(**body | ({member: name} if member else {}))
            except botocore.exceptions.ClientError as error:
                status = error.response["ResponseMetadata"]["HTTPStatusCode"]
                assert status < 500, (operation, error.response["Error"], json.dumps(body))
                refused += 1
            except (ValueError, TypeError, OverflowError, RuntimeError):
                refused += 1  # the client itself cannot write it
            else:
                if operation == "create_training_job":
                    accepted_jobs.append(name)
    assert sent > 300 and refused > 100, (sent, refused)

    # What was accepted is looked at by the planner before any later job is.
    for name in accepted_jobs:
        try:
            server.boto("sagemaker").stop_training_job(TrainingJobName=name)
        except botocore.exceptions.ClientError as over:
            assert "The request was rejected because the training job is in status" in str(over)
    for _ in range(2):
        server.kill()
        server.start()
    for name in accepted_jobs:
        jobs.wait_until(server.boto("sagemaker"), name)
    server.boto("sagemaker").create_training_job(**jobs.request("ordinary"))
    assert jobs.wait_until(server.boto("sagemaker"), "ordinary")["TrainingJobStatus"] == "Completed"
    assert wait_for(lambda: server.boto("batch").describe_job_queues(jobQueues=["first"])["jobQueues"], "the queue")
