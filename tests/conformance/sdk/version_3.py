"""Uses the SageMaker Python SDK 3 from PyPI as its users do, after `eval "$(trainyard env)"` only.

Prints its findings as JSON in the last line, which the test reads.
"""

import concurrent.futures
import importlib.metadata
import json
import logging
import os
import sys
import time
from typing import Any

import boto3
from sagemaker.core.helper.session_helper import Session, get_execution_role
from sagemaker.core.resources import TrainingJob
from sagemaker.core.utils.exceptions import FailedStatusError
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, InputData, SourceCode
from sagemaker.train.distributed import MPI, Torchrun

from tests import json_schemas
from tests.model_archives import model_files

json_schemas.validate_once()

IMAGE = "trainyard/host"
logging.basicConfig(level=logging.INFO)  # the SDK's way of showing logs
directory = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
found: dict[str, Any] = {"version": importlib.metadata.version("sagemaker")}


def session() -> Session:
    """Returns a session for this thread: boto's sessions are not thread-safe."""
    return Session(boto3.session.Session())


first = session()
found["bucket"] = first.default_bucket()
found["role"] = get_execution_role(first)
with open(os.path.join(directory, "rows.csv"), "w", encoding="utf-8") as file:
    file.write("1\n2\n3\n")
data = (
    first.upload_data(os.path.join(directory, "rows.csv"), key_prefix="digits/train").rsplit(
        "/", 1
    )[0]
    + "/"
)


def train() -> dict[str, Any]:
    """Trains a script on two hosts with a channel, with the caller's role; shows the logs."""
    trainer = ModelTrainer(
        training_image=IMAGE,
        source_code=SourceCode(source_dir=here, entry_script="train.py"),
        base_job_name="two",
        compute=Compute(instance_type="ml.m5.large", instance_count=2),
        hyperparameters={"epochs": 3},
        sagemaker_session=session(),
    )
    trainer.train(
        input_data_config=[InputData(channel_name="train", data_source=data)], wait=True, logs=True
    )
    job = TrainingJob.get(trainer._latest_training_job.training_job_name)
    return {
        "status": job.training_job_status,
        "model": job.model_artifacts.s3_model_artifacts,
        "files": model_files(job.model_artifacts.s3_model_artifacts),
    }


def failing_train() -> dict[str, Any]:
    trainer = ModelTrainer(
        training_image=IMAGE,
        source_code=SourceCode(command="python3 -c 'raise ValueError(\"out of ideas\")'"),
        base_job_name="fails",
        compute=Compute(instance_type="ml.m5.large", instance_count=1),
        role="trainer",
        sagemaker_session=session(),
    )
    try:
        trainer.train(wait=True, logs=False)
    except Exception as failure:
        return {"kind": type(failure).__name__, "words": str(failure)}
    return {"words": "it did not fail"}


def trainer_of(name: str, script: str, **more: Any) -> ModelTrainer:
    return ModelTrainer(
        training_image=IMAGE,
        source_code=SourceCode(source_dir=here, entry_script=script),
        base_job_name=name,
        compute=Compute(instance_type="ml.m5.large", instance_count=1),
        role="trainer",
        sagemaker_session=session(),
        **more,
    )


def end_of(trainer: ModelTrainer) -> dict[str, Any]:
    name = trainer._latest_training_job.training_job_name
    job = TrainingJob.get(name)
    logs = boto3.session.Session().client("logs")
    group = "/aws/sagemaker/TrainingJobs"
    events = logs.filter_log_events(logGroupName=group, logStreamNamePrefix=name + "/")["events"]
    return {
        "name": name,
        "status": job.training_job_status,
        "reason": job.failure_reason if isinstance(job.failure_reason, str) else "",
        "log": [event["message"] for event in events],
    }


def end_of_run(trainer: ModelTrainer) -> dict[str, Any]:
    try:
        trainer.train(wait=True, logs=False)
    except FailedStatusError:
        pass  # its end says so
    return end_of(trainer)


def failing_script() -> dict[str, Any]:
    return end_of_run(trainer_of("failing", "failing.py"))


def torchrun() -> dict[str, Any]:
    return end_of_run(
        trainer_of("torchrun", "ranks.py", distributed=Torchrun(process_count_per_node=2))
    )


def wrong_argument() -> dict[str, Any]:
    return end_of_run(trainer_of("argument", "arguments.py", hyperparameters={"epochs": "x"}))


def wrong_argument_of_ranks() -> dict[str, Any]:
    distributed = Torchrun(process_count_per_node=2)
    arguments = {"epochs": "x"}
    return end_of_run(
        trainer_of("rank", "arguments.py", hyperparameters=arguments, distributed=distributed)
    )


def failing_command() -> dict[str, Any]:
    trainer = trainer_of("command", "failing.py")
    trainer.source_code = SourceCode(command="echo epoch 1; ls /absent")
    return end_of_run(trainer)


def mpi() -> dict[str, Any]:
    return end_of_run(trainer_of("mpi", "ranks.py", distributed=MPI(process_count_per_node=2)))


def stopped() -> dict[str, Any]:
    """Stops a job whose script has a handler."""
    trainer = trainer_of("saving", "saving.py")
    trainer.train(wait=False)
    deadline = time.monotonic() + 120
    while not any("ready to be stopped" in line for line in end_of(trainer)["log"]):
        assert time.monotonic() < deadline, end_of(trainer)
        time.sleep(1)
    job = trainer._latest_training_job
    job.stop()
    try:
        job.wait(poll=1)
    except FailedStatusError:
        pass  # the SDK takes Stopped for a failure
    end = end_of(trainer)
    end["files"] = model_files(TrainingJob.get(end["name"]).model_artifacts.s3_model_artifacts)
    return end


parts = {
    part.__name__: part
    for part in (
        train,
        failing_train,
        failing_script,
        wrong_argument,
        wrong_argument_of_ranks,
        failing_command,
        torchrun,
        mpi,
        stopped,
    )
}
with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
    running = {name: pool.submit(part) for name, part in parts.items()}
    for name, part in running.items():
        found[name] = part.result()
print("\n" + json.dumps(found))
