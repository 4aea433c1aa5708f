"""Uses a queue of AWS Batch for training jobs, with either unmodified SageMaker SDK from PyPI:
`training_queue.py DIRECTORY QUEUE` after `eval "$(trainyard env)"`. Prints the results for the test
as JSON in the last line."""

import importlib.metadata
import json
import logging
import sys
from typing import Any

import boto3

from tests import json_schemas

json_schemas.validate_once()

logging.basicConfig(level=logging.INFO)
QUEUE = sys.argv[2]
COMMAND = "echo the lesson is $LESSON; echo $LESSON > /opt/ml/model/lesson.txt"
version = importlib.metadata.version("sagemaker")

if version.startswith("3."):
    from sagemaker.core.helper.session_helper import Session
    from sagemaker.train import ModelTrainer
    from sagemaker.train.aws_batch.training_queue import TrainingQueue
    from sagemaker.train.configs import Compute, SourceCode

    def trainer(lesson: str, command: str = COMMAND) -> Any:
        return ModelTrainer(
            training_image="trainyard/host",
            source_code=SourceCode(command=command),
            base_job_name=lesson,
            environment={"LESSON": lesson},
            compute=Compute(instance_type="ml.m5.large", instance_count=1),
            role="trainer",
            sagemaker_session=Session(boto3.session.Session()),
        )

    def training_job_of(job: Any) -> str:
        return job.get_model_trainer()._latest_training_job.training_job_name
else:
    from sagemaker.aws_batch.training_queue import TrainingQueue
    from sagemaker.estimator import Estimator

    def trainer(lesson: str, command: str = COMMAND) -> Any:
        return Estimator(
            image_uri="trainyard/host",
            role="trainer",
            instance_count=1,
            instance_type="ml.m5.large",
            environment={"LESSON": lesson},
            container_entry_point=["/bin/sh", "-c", command],
            base_job_name=lesson,
        )

    def training_job_of(job: Any) -> str:
        return job.get_estimator().latest_training_job.name


queue = TrainingQueue(QUEUE)
one = queue.submit(trainer("one"), inputs=None, job_name="one", priority=7)
many = queue.map(trainer("many"), inputs=[None, None], job_names=["many-1", "many-2"])
failing = queue.submit(
    trainer("failing", "echo out of ideas >&2; exit 3"), inputs=None, job_name="failing"
)
found = {
    "version": version,
    "done": one.wait(timeout=120),
    "many": [job.wait(timeout=120)["status"] for job in many],
}
found["training_job"] = training_job_of(one)
found["listed"] = sorted(
    job.job_name
    for status in ("SUCCEEDED", "FAILED")
    for job in queue.list_jobs(status=status)
    if failing.wait(timeout=120)
)
found["got"] = queue.get_job("one").job_arn == one.job_arn
try:
    failing.result(timeout=120)
except RuntimeError as failure:
    found["failing"] = str(failure)
print(json.dumps(found, default=str))
