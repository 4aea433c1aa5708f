"""Registers and runs the features of an SDK for the programs of both SDKs, and waits for jobs.

Each feature has a function that uses it through the SDK and returns the outcome. The last line that
a program prints contains all outcomes, as JSON."""

from __future__ import annotations

import concurrent.futures
import contextlib
import io
import itertools
import json
import logging
import tarfile
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import boto3

from tests import json_schemas

json_schemas.validate_once()

# (kind, text). The kind is "works", "no effect", "refused", "fails", "silently ignored" or
# "crashes".
Outcome = tuple[str, str]
FEATURES: dict[str, Callable[[], Outcome | None]] = {}

AT_A_TIME = 6  # features that run in parallel; most of them wait for their jobs
POLL_SECONDS = 0.2
JOB_SECONDS_MAX = 120
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
FINAL = ("Completed", "Failed", "Stopped")
ROLE = "arn:aws:iam::123456789012:role/trainer"
IMAGE = "trainyard/host"
IMAGE_WITH_SDK = "with-sdk"  # tests/journeys/features.py
NO_EFFECT = " has no effect here: "
# Shell commands with which a job prints properties of its host's network: whether it is encrypted
# (wire0 carries the datagrams of the tunnel), and whether it has a default route.
SHOW_WIRES = "grep -q wire0: /proc/net/dev && echo encrypted || echo plain"
SHOW_ISOLATION = (
    "grep -q '^[^[:space:]]*[[:space:]]00000000' /proc/net/route && echo connected || echo isolated"
)


def feature(name: str) -> Callable[[Callable[[], Outcome | None]], None]:
    """Registers a function that uses a feature. If the function returns None, the feature works."""

    def add(function: Callable[[], Outcome | None]) -> None:
        assert name not in FEATURES, name
        FEATURES[name] = function

    return add


NUMBERS = itertools.count()


def base_name() -> str:
    """Returns a unique prefix for a job's name, since the time that the SDKs add may be equal in
    two threads."""
    return f"f{next(NUMBERS)}"


# Each thread has its own sessions of boto and of the SDK, which are not thread-safe. They are
# reused because making one takes longer than most features.
OF_THREAD = threading.local()


def of_thread(name: str, make: Callable[[], Any]) -> Any:
    """Returns this thread's object of this name; makes it at the first call."""
    if not hasattr(OF_THREAD, name):
        setattr(OF_THREAD, name, make())
    return getattr(OF_THREAD, name)


def boto_session() -> Any:
    return of_thread("boto", boto3.session.Session)


def client(service: str) -> Any:
    return of_thread(service, lambda: boto_session().client(service))


def finish(name: str, status: str = "Completed") -> dict[str, Any]:
    """Waits for the end of a job in the state `status`; returns DescribeTrainingJob's response."""
    sagemaker = client("sagemaker")
    end = time.monotonic() + JOB_SECONDS_MAX
    while True:
        job: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
        if job["TrainingJobStatus"] in FINAL:
            break
        assert time.monotonic() < end, f"{name} is {job['SecondaryStatus']}"
        time.sleep(POLL_SECONDS)
    assert job["TrainingJobStatus"] == status, (job.get("FailureReason"), log_lines(name)[-20:])
    return job


def upload_data(bucket: str) -> str:
    """Uploads four small objects, and data.manifest, which names two of them. Returns the objects'
    S3 prefix."""
    s3 = client("s3")
    for number in range(4):
        s3.put_object(Bucket=bucket, Key=f"data/part-{number}", Body=f"row {number}\n".encode())
    s3.put_object(
        Bucket=bucket,
        Key="data.manifest",
        Body=f'[{{"prefix": "s3://{bucket}/data/"}}, "part-0", "part-2"]'.encode(),
    )
    return f"s3://{bucket}/data/"


def printed_by(call: Callable[[], object]) -> str:
    """Returns the SDK's output and log during a call. Output of other features may be among it."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        with contextlib.redirect_stdout(text):
            call()
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    print(text.getvalue())
    return text.getvalue()


def check_spot(name: str) -> None:
    """Checks that the job ran on spot capacity, billed for at most its training time."""
    job = finish(name)
    assert job["EnableManagedSpotTraining"] is True
    assert 0 < job["BillableTimeInSeconds"] <= job["TrainingTimeInSeconds"], job


def wait_for_pool(name: str, status: str) -> None:
    """Waits until the job's warm pool has the status `status`."""
    end = time.monotonic() + JOB_SECONDS_MAX
    while True:
        job = client("sagemaker").describe_training_job(TrainingJobName=name)
        if job.get("WarmPoolStatus", {}).get("Status") == status:
            return
        assert time.monotonic() < end, (name, status, job.get("WarmPoolStatus"))
        time.sleep(POLL_SECONDS)


def final_metric(name: str) -> float:
    """Waits for the final metric of an ended job, which must have only one. Returns the value."""
    end = time.monotonic() + JOB_SECONDS_MAX
    while True:
        job = client("sagemaker").describe_training_job(TrainingJobName=name)
        if found := job.get("FinalMetricDataList"):
            (metric,) = found
            return float(metric["Value"])
        assert time.monotonic() < end, f"{name} has no metrics"
        time.sleep(POLL_SECONDS)


def make_training_queue(name: str) -> None:
    """Creates a job queue of AWS Batch for training jobs."""
    batch = client("batch")
    batch.create_service_environment(
        serviceEnvironmentName=name, serviceEnvironmentType="SAGEMAKER_TRAINING",
        capacityLimits=[{"maxCapacity": 4, "capacityUnit": "NUM_INSTANCES"}],
    )  # fmt: skip
    batch.create_job_queue(
        jobQueueName=name, jobQueueType="SAGEMAKER_TRAINING", priority=1,
        serviceEnvironmentOrder=[{"order": 1, "serviceEnvironment": name}],
    )  # fmt: skip


def log_lines(name: str) -> list[str]:
    logs = client("logs")
    events = logs.get_paginator("filter_log_events").paginate(
        logGroupName=LOG_GROUP, logStreamNamePrefix=name + "/"
    )
    return [event["message"] for page in events for event in page["events"]]


def model_files(uri: str) -> dict[str, str]:
    bucket, key = uri.removeprefix("s3://").split("/", 1)
    body = client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return {
            name: file.read().decode()
            for name in archive.getnames()
            if (file := archive.extractfile(name))
        }


def notes(name: str, *members: str) -> Outcome:
    """Waits for a job. Returns "no effect" if its log reports that each of `members` has no effect,
    and "silently ignored" if it does not."""
    finish(name)
    printed = [line for line in log_lines(name) if NO_EFFECT in line]
    missing = [
        member for member in members if not any(member + NO_EFFECT in line for line in printed)
    ]
    return (
        ("silently ignored", f"{missing} of {printed}")
        if missing
        else ("no effect", "; ".join(printed))
    )


def refused(call: Callable[[], object]) -> Outcome:
    """Returns the outcome of a call that the server must reject."""
    return raised(call, "refused")


def failed(call: Callable[[], object]) -> Outcome:
    """Returns the outcome of a call that waits for a job that fails."""
    return raised(call, "fails")


def raised(call: Callable[[], object], kind: str) -> Outcome:
    try:
        call()
    except Exception as failure:
        return kind, " ".join(str(failure).split())
    return "silently ignored", "it was accepted"


def outcome_of(name: str, function: Callable[[], Outcome | None]) -> Outcome:
    began = time.monotonic()
    try:
        return function() or ("works", "")
    except Exception:
        return "crashes", traceback.format_exc()
    finally:
        print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)


def main() -> None:
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        running = {name: pool.submit(outcome_of, name, one) for name, one in FEATURES.items()}
        found = {name: part.result() for name, part in running.items()}
    print("\n" + json.dumps(found))
