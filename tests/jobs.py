"""Has helpers for training jobs that run a shell line on n hosts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from botocore.client import BaseClient

from tests import trainyard_server

ROLE = "arn:aws:iam::123456789012:role/trainer"
ARGUMENT_CHARACTERS_MAX = 256  # AWS's limit; an environment variable may hold 512
FINAL = ("Completed", "Failed", "Stopped")


def request(
    name: str,
    script: str = "true",
    hosts: int = 1,
    instance_type: str = "ml.t3.medium",
    channels: Mapping[str, tuple[str, str]] | None = None,
    bucket: str = "yard",
    image: str = "trainyard/host",
    **more: Any,
) -> dict[str, Any]:
    """Returns a CreateTrainingJob request: /bin/sh runs `script` on each host."""
    body: dict[str, Any] = {
        "TrainingJobName": name,
        "AlgorithmSpecification": {
            "TrainingImage": image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["/bin/sh", "-c"],
            "ContainerArguments": [
                script if len(script) <= ARGUMENT_CHARACTERS_MAX else 'eval "$SCRIPT"'
            ],
        },
        "RoleArn": ROLE,
        "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/models"},
        "ResourceConfig": {
            "InstanceType": instance_type,
            "InstanceCount": hosts,
            "VolumeSizeInGB": 1,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 300},
    }
    if len(script) > ARGUMENT_CHARACTERS_MAX:
        body["Environment"] = {"SCRIPT": script}
    if channels:
        body["InputDataConfig"] = [
            {
                "ChannelName": channel,
                "DataSource": {
                    "S3DataSource": {
                        "S3DataType": "S3Prefix",
                        "S3Uri": uri,
                        "S3DataDistributionType": distribution,
                    }
                },
            }
            for channel, (uri, distribution) in channels.items()
        ]
    for key, value in more.items():
        if isinstance(value, dict) and key in body:
            body[key] = body[key] | value
        else:
            body[key] = value
    return body


def wait_until(
    sagemaker: BaseClient,
    name: str,
    statuses: Collection[str] = FINAL,
    seconds_max: float = trainyard_server.WAIT_SECONDS_MAX,
) -> dict[str, Any]:
    """Waits until TrainingJobStatus or SecondaryStatus is one of `statuses`; returns Describe's
    response."""
    seen = {}

    def reached() -> dict[str, Any] | None:
        seen.update(sagemaker.describe_training_job(TrainingJobName=name))
        return (
            seen
            if seen["TrainingJobStatus"] in statuses or seen["SecondaryStatus"] in statuses
            else None
        )

    try:
        return trainyard_server.wait_for(reached, f"{name} to be one of {statuses}", seconds_max)
    except AssertionError as late:
        raise AssertionError(
            f"{late}; it is {seen.get('TrainingJobStatus')}/{seen.get('SecondaryStatus')}:"
            f" {seen.get('SecondaryStatusTransitions')}"
        ) from None


def log_lines(logs: BaseClient, name: str, host: int | None = None) -> list[str]:
    """Returns the lines of a job's log, of all hosts or of one (1, 2, ..)."""
    group = "/aws/sagemaker/TrainingJobs"
    prefix = f"{name}/" if host is None else f"{name}/algo-{host}-"
    lines = []
    try:
        streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=prefix)[
            "logStreams"
        ]
    except logs.exceptions.ResourceNotFoundException:
        return []  # no job has begun yet
    for stream in streams:
        token: dict[str, str] = {}
        while True:
            page = logs.get_log_events(
                logGroupName=group,
                logStreamName=stream["logStreamName"],
                startFromHead=True,
                **token,
            )
            lines += [event["message"] for event in page["events"]]
            if not page["events"]:
                break
            token = {"nextToken": page["nextForwardToken"]}
    return lines
