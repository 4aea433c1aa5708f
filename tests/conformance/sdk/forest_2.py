"""Runs SageMaker's RandomCutForest with version 2 of its SDK: records of a numpy array, and a job
on as many hosts as the second argument says. Prints the job's description."""

from __future__ import annotations

import json
import sys

import boto3
import numpy
import sagemaker
from sagemaker import RandomCutForest

_, _directory, hosts, bucket = sys.argv
session = sagemaker.Session(default_bucket=bucket)
forest = RandomCutForest(
    role="arn:aws:iam::123456789012:role/trainer",
    instance_count=int(hosts),
    instance_type="ml.t3.medium",
    num_samples_per_tree=64,
    num_trees=50,
    data_location=f"s3://{bucket}/sdk",
    output_path=f"s3://{bucket}/models",
    sagemaker_session=session,
)
rows = numpy.random.default_rng(1).normal(size=(400, 3)).astype("float32")
labels = numpy.zeros(400, dtype="float32")
labels[::50] = 1
tests = rows.copy()
tests[::50] += 40
forest.fit(
    [
        forest.record_set(rows),
        forest.record_set(tests, labels, channel="test", distribution="FullyReplicated"),
    ],
    mini_batch_size=1000,
)
name = forest.latest_training_job.name
job = boto3.client("sagemaker").describe_training_job(TrainingJobName=name)
print(
    json.dumps(
        {
            "name": name,
            "status": job["TrainingJobStatus"],
            "image": job["AlgorithmSpecification"]["TrainingImage"],
            "metrics": {each["MetricName"]: each["Value"] for each in job["FinalMetricDataList"]},
            "model": job["ModelArtifacts"]["S3ModelArtifacts"],
            "hyperparameters": job["HyperParameters"],
        }
    )
)
