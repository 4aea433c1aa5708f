"""Uses framework estimators of the SageMaker Python SDK 2 in script mode, with distributions. Their
images are AWS's, which are not public: this machine's runtime replaces them.

Prints the results for the test as JSON in the last line."""

import concurrent.futures
import io
import json
import os
import sys
import tarfile
import traceback
from typing import Any

import boto3
import sagemaker
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow

from tests import json_schemas

json_schemas.validate_once()

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
directory = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))


def session() -> sagemaker.Session:
    """Returns a session for this thread: boto's sessions are not thread-safe."""
    return sagemaker.Session(boto3.session.Session())


first = session()
role = sagemaker.get_execution_role(first)
with open(os.path.join(directory, "rows.csv"), "w", encoding="utf-8") as file:
    file.write("1\n2\n3\n")
data = (
    first.upload_data(os.path.join(directory, "rows.csv"), key_prefix="digits/train").rsplit(
        "/", 1
    )[0]
    + "/"
)


def log_lines(job: str) -> list[str]:
    logs = boto3.session.Session().client("logs")
    streams = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=job + "/")[
        "logStreams"
    ]
    return [
        event["message"]
        for stream in streams
        for event in logs.get_log_events(
            logGroupName=LOG_GROUP, logStreamName=stream["logStreamName"], startFromHead=True
        )["events"]
    ]


def model_names(uri: str) -> list[str]:
    bucket, key = uri.removeprefix("s3://").split("/", 1)
    body = boto3.session.Session().client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return sorted(archive.getnames())


def fit(kind: Any, name: str, **more: Any) -> dict[str, Any]:
    job = kind(
        entry_point="framework.py",
        source_dir=here,
        role=role,
        instance_count=2,
        base_job_name=name,
        sagemaker_session=session(),
        max_run=300,
        hyperparameters={"epochs": 3, "name": "abc"},
        **more,
    )
    try:
        job.fit({"train": data}, wait=True, logs="All")
    except Exception:
        return {
            "failure": traceback.format_exc(),
            "lines": log_lines(job.latest_training_job.name) if job.latest_training_job else [],
        }
    name = job.latest_training_job.name
    attached = kind.attach(name, sagemaker_session=session())
    return {
        "image": job.training_image_uri(),
        "entry_point": attached.entry_point,
        "files": model_names(job.model_data),
        "messages": [
            one.get("StatusMessage")
            for one in job.latest_training_job.describe()["SecondaryStatusTransitions"]
        ],
        "ranks": [
            json.loads(line.split("FOUND ", 1)[1]) for line in log_lines(name) if "FOUND " in line
        ],
    }


def torch() -> dict[str, Any]:
    return fit(
        PyTorch,
        "torch",
        framework_version="2.0.0",
        py_version="py310",
        instance_type="ml.g4dn.xlarge",
        distribution={"torch_distributed": {"enabled": True}},
    )


def tensorflow() -> dict[str, Any]:
    return fit(
        TensorFlow,
        "tensorflow",
        framework_version="2.13",
        py_version="py310",
        instance_type="ml.m5.large",
        distribution={"parameter_server": {"enabled": True}},
    )


def mpi() -> dict[str, Any]:
    return fit(
        TensorFlow,
        "mpi",
        framework_version="2.13",
        py_version="py310",
        instance_type="ml.m5.large",
        distribution={
            "mpi": {
                "enabled": True,
                "processes_per_host": 2,
                "custom_mpi_options": "--mca btl_base_verbose 0",
            }
        },
    )


parts = {part.__name__: part for part in (torch, tensorflow, mpi)}
with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
    running = {name: pool.submit(part) for name, part in parts.items()}
    print("\n" + json.dumps({name: part.result() for name, part in running.items()}))
