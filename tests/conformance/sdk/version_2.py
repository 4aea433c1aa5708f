"""Uses the SageMaker Python SDK 2 as its users do: the unmodified SDK from PyPI, after
`eval "$(trainyard env)"`.

Several jobs run at once, since fit() sleeps between its polls.
The last line printed has the results for the test, as JSON.
"""

import concurrent.futures
import json
import os
import sys
import time
from typing import Any

import boto3
import sagemaker
from sagemaker.debugger import DebuggerHookConfig
from sagemaker.estimator import Estimator
from sagemaker.exceptions import UnexpectedStatusException

from tests import json_schemas
from tests.model_archives import model_files

json_schemas.validate_once()

IMAGE = "trainyard/host"
POLLS_MAX = 600
directory = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
found = {"version": sagemaker.__version__}


def session() -> sagemaker.Session:
    """Returns a session for this thread: boto's sessions are not thread-safe."""
    return sagemaker.Session(boto3.session.Session())


first = session()
found["region"] = first.boto_region_name
found["bucket"] = first.default_bucket()
found["bucket_again"] = session().default_bucket()
found["role"] = sagemaker.get_execution_role(first)
with open(os.path.join(directory, "rows.csv"), "w", encoding="utf-8") as file:
    file.write("1\n2\n3\n")
found["data"] = first.upload_data(os.path.join(directory, "rows.csv"), key_prefix="digits/train")
data = found["data"].rsplit("/", 1)[0] + "/"
code = (
    first.upload_data(os.path.join(here, "train.py"), key_prefix="digits/code").rsplit("/", 1)[0]
    + "/"
)


def estimator(name: str, script: str, hosts: int = 1, **more: Any) -> Estimator:
    return Estimator(
        image_uri=IMAGE,
        role=more.pop("role", found["role"]),
        instance_count=hosts,
        instance_type="ml.m5.large",
        base_job_name=name,
        sagemaker_session=session(),
        container_entry_point=["/bin/bash", "-c"],
        container_arguments=[script],
        max_run=300,
        **more,
    )


def fit_and_attach() -> dict[str, Any]:
    job = estimator(
        "two",
        "python3 /opt/ml/input/data/code/train.py",
        hosts=2,
        hyperparameters={"epochs": 3, "name": "abc"},
        environment={"COLOUR": "green"},
        metric_definitions=[{"Name": "rows", "Regex": "read ([0-9]+) rows"}],
        tags=[{"Key": "team", "Value": "vision"}],
        subnets=["subnet-0123"],
        security_group_ids=["sg-0123"],
        debugger_hook_config=DebuggerHookConfig(s3_output_path=data + "tensors"),
    )
    job.fit({"train": data, "code": code}, wait=True, logs="All")
    name = job.latest_training_job.name
    again = Estimator.attach(name, sagemaker_session=session())
    return {
        "name": name,
        "model_data": job.model_data,
        "attached": again.model_data,
        "hyperparameters": again.hyperparameters(),
        "files": model_files(job.model_data),
        "description": json.loads(json.dumps(job.latest_training_job.describe(), default=str)),
    }


def failing_fit() -> dict[str, Any]:
    try:
        estimator(
            "fails", "echo out of ideas >&2; printf 'out of ideas' > /opt/ml/output/failure; exit 3"
        ).fit(wait=True, logs=False)
    except UnexpectedStatusException as failure:
        return {"words": str(failure), "status": failure.actual_status}
    return {"words": "it did not fail"}


def stopped_fit() -> dict[str, Any]:
    # The role by its name: the SDK looks it up.
    job = estimator(
        "stops",
        "trap 'echo saved > /opt/ml/model/saved; exit 0' TERM; while true; do sleep 0.1; done",
        role="trainer",
    )
    job.fit(wait=False)
    for _ in range(POLLS_MAX):
        if job.latest_training_job.describe()["SecondaryStatus"] == "Training":
            break
        time.sleep(0.1)
    job.latest_training_job.stop()
    job.latest_training_job.wait(logs="None")
    description = job.latest_training_job.describe()
    return {
        "status": description["TrainingJobStatus"],
        "role": description["RoleArn"],
        "files": model_files(job.model_data),
    }


def refused_fit() -> list[str]:
    """Checks that an unsupported request is rejected with an explanation."""
    words = []
    for more in ({"output_kms_key": "alias/mine"}, {"volume_kms_key": "alias/mine"}):
        try:
            estimator("refused", "true", hosts=2, **more).fit(wait=False)
            words.append("it was accepted")
        except Exception as refusal:  # botocore's ClientError, which each client makes again
            words.append(str(refusal))
    return words


parts = {part.__name__: part for part in (fit_and_attach, failing_fit, stopped_fit, refused_fit)}
with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
    running = {name: pool.submit(part) for name, part in parts.items()}
    for name, part in running.items():
        found[name] = part.result()
print("\n" + json.dumps(found))
