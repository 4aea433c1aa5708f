"""Tests random cut forests by AWS's image name: real data, several hosts, the SageMaker SDK."""

from __future__ import annotations

import io
import json
import os
import pathlib
import re
import statistics
import subprocess
import tarfile
from typing import Any

import pytest

from tests import jobs, sdk, trainyard_server
from tests.algorithms import breast_cancer, data_sets
from tests.algorithms.channels import channel
from tests.trainyard_server import Server

PROGRAM = os.path.join(os.path.dirname(trainyard_server.PROGRAM), "trainyard-trainer")
REGION = "us-east-1"
PLAIN = "text/csv;label_size=0"
LABELLED = "text/csv;label_size=1"
SECONDS_MAX = 300
SHARDS = 4
SEEDS = 5


@pytest.fixture(scope="module")
def image() -> str:
    """Returns AWS's image, as the SDK names it."""
    code = (
        "from sagemaker import image_uris;"
        f" print(image_uris.retrieve('randomcutforest', '{REGION}'))"
    )
    done = subprocess.run([sdk.python(2), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    rows = breast_cancer.rows()
    for shard in range(SHARDS):
        part = [features for features, _ in rows[shard::SHARDS]]
        s3.put_object(Bucket="yard", Key=f"train/{shard}.csv", Body=data_sets.as_csv(part))
    labelled = [[float(is_malignant), *features] for features, is_malignant in rows]
    s3.put_object(Bucket="yard", Key="test/all.csv", Body=data_sets.as_csv(labelled))
    return server


def run(
    cluster: Server,
    image: str,
    name: str,
    channels: list[dict[str, Any]],
    hosts: int = 1,
    status: str = "Completed",
    **more: Any,
) -> tuple[dict[str, Any], list[str]]:
    sagemaker = cluster.boto("sagemaker")
    request = jobs.request(name, hosts=hosts)
    request["AlgorithmSpecification"] = {"TrainingImage": image, "TrainingInputMode": "File"}
    request["HyperParameters"] = {
        key: str(value) for key, value in ({"feature_dim": breast_cancer.FEATURES} | more).items()
    }
    request["InputDataConfig"] = channels
    sagemaker.create_training_job(**request)
    done = jobs.wait_until(sagemaker, name, seconds_max=SECONDS_MAX)
    lines = jobs.log_lines(cluster.boto("logs"), name)
    assert done["TrainingJobStatus"] == status, f"{done.get('FailureReason')}\n" + "\n".join(
        lines[-40:]
    )
    return done, lines


def unpack(cluster: Server, done: dict[str, Any], folder: pathlib.Path) -> pathlib.Path:
    key = done["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://yard/")
    body = cluster.boto("s3").get_object(Bucket="yard", Key=key)["Body"].read()
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        archive.extractall(folder)
    assert [path.name for path in folder.iterdir()] == ["random-cut-forest.model"]
    return folder


def predict(model: pathlib.Path, request: str, *options: str) -> str:
    done = subprocess.run(
        [PROGRAM, "randomcutforest", "--predict", "--model", str(model), *options, "-"],
        input=request,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_several_hosts_train_the_same_model_as_one_host(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    models = []
    for hosts, sharded in ((1, True), (2, True), (3, True), (2, False)):
        channels = [channel("train", "train/", PLAIN, sharded), channel("test", "test/", LABELLED)]
        name = f"hosts-{hosts}-{'sharded' if sharded else 'same'}"
        done, lines = run(cluster, image, name, channels, hosts)
        models.append(unpack(cluster, done, tmp_path / name))
        assert any("channel train: 569 rows on all hosts" in line for line in lines)
        final = {each["MetricName"]: each["Value"] for each in done["FinalMetricDataList"]}
        assert set(final) == {"test:accuracy", "test:precision", "test:recall", "test:f1"}
        assert any(
            re.search(r"INFO 1\] #quality_metric: host=algo-1, test f1 <score>=", line)
            for line in lines
        )
    stored = {(model / "random-cut-forest.model").read_bytes() for model in models}
    assert len(stored) == 1

    rows = breast_cancer.rows()
    reply = json.loads(predict(models[0], data_sets.as_csv([features for features, _ in rows])))
    scores = [each["score"] for each in reply["scores"]]
    anomalies = [is_malignant for _, is_malignant in rows]
    ours = breast_cancer.f1_of_highest(scores, anomalies)
    theirs = breast_cancer.isolation_forest(SEEDS)
    assert ours >= statistics.mean(theirs), (ours, theirs)

    # The job's metrics equal the metrics computed from the response.
    limit = statistics.mean(scores) + 3 * statistics.pstdev(scores)
    correct = sum((score > limit) == bad for score, bad in zip(scores, anomalies, strict=True))
    assert final["test:accuracy"] == pytest.approx(correct / len(rows), abs=1e-6)


def test_responses_have_sagemakers_format(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    done, _ = run(cluster, image, "replies", [channel("train", "train/", PLAIN)])
    model = unpack(cluster, done, tmp_path / "replies")
    rows = [features for features, _ in breast_cancer.rows()[:3]]
    expected = json.loads(predict(model, data_sets.as_csv(rows)))["scores"]
    assert [set(each) for each in expected] == [{"score"}] * 3
    document = json.dumps({"instances": [{"features": row} for row in rows]})
    assert (
        json.loads(predict(model, document, "--content-type", "application/json"))["scores"]
        == expected
    )
    lines = predict(model, data_sets.as_csv(rows), "--accept", "application/jsonlines")
    assert [json.loads(line) for line in lines.splitlines()] == expected
    parts = json.loads(predict(model, data_sets.as_csv(rows), "--attribution"))["scores"]
    for each in parts:
        assert len(each["attribution"]) == breast_cancer.FEATURES
        assert sum(each["attribution"]) == pytest.approx(each["score"])


def test_two_hosts_train_from_pipe_mode(cluster: Server, image: str) -> None:
    channels = [
        channel("train", "train/", PLAIN, sharded=True, mode="Pipe"),
        channel("test", "test/", LABELLED, mode="Pipe"),
    ]
    done, lines = run(cluster, image, "pipes", channels, hosts=2)
    assert any("channel train: 569 rows on all hosts" in line for line in lines)
    assert "test:f1" in {each["MetricName"] for each in done["FinalMetricDataList"]}


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_sdks_estimator_trains(server: Server, tmp_path: pathlib.Path, hosts: int) -> None:
    bucket = f"sdk-{hosts}"
    server.boto("s3").create_bucket(Bucket=bucket)
    job, _, outside = sdk.run(server, 2, tmp_path, "forest_2.py", [str(hosts), bucket])
    assert not outside
    assert job["status"] == "Completed"
    assert "/randomcutforest:" in job["image"]
    assert job["hyperparameters"]["feature_dim"] == "3"
    assert job["metrics"]["test:f1"] == 1
    key = job["model"].removeprefix(f"s3://{bucket}/")
    body = server.boto("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert archive.getnames() == ["random-cut-forest.model"]


@pytest.mark.parametrize(
    ("name", "hyperparameters", "content", "text"),
    [
        (
            "unknown",
            {"tree": 3},
            "",
            "Additional properties are not allowed ('tree' was unexpected)",
        ),
        ("trees", {"num_trees": 7}, "", "num_trees: 7 is less than the minimum of 50"),
        ("dim", {"feature_dim": 3}, "", "the row has 30 columns, but feature_dim 3"),
        ("short", {"feature_dim": 2}, "1,2\n3\n", "line 2: the row has 1 columns"),
        (
            "nan",
            {"feature_dim": 2},
            "1,2\n3,NaN\n",
            "line 2: column 2: 'NaN' is not a finite number",
        ),
    ],
)
def test_wrong_input_is_the_failure_reason(
    cluster: Server,
    image: str,
    name: str,
    hyperparameters: dict[str, Any],
    content: str,
    text: str,
) -> None:
    prefix = "train/"
    if content:
        prefix = f"wrong-{name}/"
        cluster.boto("s3").put_object(Bucket="yard", Key=f"{prefix}rows.csv", Body=content)
    channels = [channel("train", prefix, PLAIN)]
    done, _ = run(cluster, image, f"wrong-{name}", channels, status="Failed", **hyperparameters)
    assert text in done["FailureReason"]
    assert done["FailureReason"].endswith("exit code: 1")


def test_a_host_without_data_is_the_failure_reason(cluster: Server, image: str) -> None:
    cluster.boto("s3").put_object(Bucket="yard", Key="one/rows.csv", Body="1,2\n3,4\n")
    channels = [channel("train", "one/", PLAIN, sharded=True)]
    done, _ = run(cluster, image, "nothing", channels, hosts=2, status="Failed", feature_dim=2)
    assert "host algo-2 has no rows" in done["FailureReason"]
