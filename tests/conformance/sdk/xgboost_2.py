"""Runs SageMaker's XGBoost with version 2 of its SDK: an Estimator of the built-in algorithm, on as
many hosts as the second argument says. Prints the job's description."""

from __future__ import annotations

import json
import sys

import boto3
import sagemaker
from sagemaker import image_uris
from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput

_, _directory, hosts, bucket = sys.argv
session = sagemaker.Session(default_bucket=bucket)
estimator = Estimator(
    image_uris.retrieve("xgboost", session.boto_region_name, "1.7-1"),
    role="arn:aws:iam::123456789012:role/trainer",
    instance_count=int(hosts),
    instance_type="ml.t3.medium",
    output_path=f"s3://{bucket}/models",
    sagemaker_session=session,
)
estimator.set_hyperparameters(
    objective="binary:logistic", eval_metric="auc", num_round=30, eta=0.2, tree_method="hist"
)
estimator.fit(
    {
        "train": TrainingInput(
            f"s3://{bucket}/train", content_type="csv", distribution="ShardedByS3Key"
        ),
        "validation": TrainingInput(f"s3://{bucket}/validation", content_type="csv"),
    }
)
name = estimator.latest_training_job.name
job = boto3.client("sagemaker").describe_training_job(TrainingJobName=name)
print(
    json.dumps(
        {
            "name": name,
            "status": job["TrainingJobStatus"],
            "image": job["AlgorithmSpecification"]["TrainingImage"],
            "metrics": {each["MetricName"]: each["Value"] for each in job["FinalMetricDataList"]},
        }
    )
)
