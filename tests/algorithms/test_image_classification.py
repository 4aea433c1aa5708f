"""Tests image classification by AWS's image name, on the handwritten digits."""

from __future__ import annotations

import io
import json
import os
import pathlib
import re
import subprocess
import tarfile
from typing import Any

import pytest

from tests import jobs, sdk, trainyard_server
from tests.algorithms import digits
from tests.trainyard_server import Server

PROGRAM = os.path.join(os.path.dirname(trainyard_server.PROGRAM), "trainyard-algorithms")
REGION = "us-east-1"
RECORDS = "application/x-recordio"
SECONDS_MAX = 900
ACCURACY_MIN = 0.985
HYPERPARAMETERS = {
    "num_layers": 20,
    "image_shape": "1,8,8",
    "num_classes": 10,
    "num_training_samples": 1437,
    "mini_batch_size": 32,
    "epochs": 20,
    "learning_rate": 0.1,
    "lr_scheduler_step": "10,15,18",
    "optimizer": "nag",
    "weight_decay": 0.0005,
}


@pytest.fixture(scope="module")
def image() -> str:
    """Returns AWS's image, as the SDK names it."""
    code = (
        "from sagemaker import image_uris;"
        f" print(image_uris.retrieve('image-classification', '{REGION}'))"
    )
    done = subprocess.run([sdk.python(2), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    train, test = digits.rows("train/*.csv"), digits.rows("test.csv")
    s3.put_object(Bucket="yard", Key="train/digits.rec", Body=digits.records(train))
    s3.put_object(Bucket="yard", Key="validation/digits.rec", Body=digits.records(test))
    for shard in range(4):
        s3.put_object(
            Bucket="yard",
            Key=f"shards/{shard}.rec",
            Body=digits.records(train[shard::4]),
        )
    return server


def channel(name: str, prefix: str, content_type: str, sharded: bool = False) -> dict[str, Any]:
    return {
        "ChannelName": name,
        "ContentType": content_type,
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": f"s3://yard/{prefix}",
                "S3DataDistributionType": "ShardedByS3Key" if sharded else "FullyReplicated",
            }
        },
    }


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
        key: str(value) for key, value in (HYPERPARAMETERS | more).items()
    }
    request["InputDataConfig"] = channels
    request["StoppingCondition"] = {"MaxRuntimeInSeconds": SECONDS_MAX}
    sagemaker.create_training_job(**request)
    done = jobs.wait_until(sagemaker, name, seconds_max=SECONDS_MAX)
    lines = jobs.log_lines(cluster.boto("logs"), name)
    assert done["TrainingJobStatus"] == status, f"{done.get('FailureReason')}\n" + "\n".join(
        lines[-40:]
    )
    return done, lines


def accuracies(lines: list[str]) -> list[float]:
    return [
        float(found[1])
        for line in lines
        if (found := re.search(r"Epoch\[\d+\] Validation-accuracy=([0-9.]+)", line))
    ]


def test_training_on_digits_gives_an_accurate_model(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    channels = [channel("train", "train/", RECORDS), channel("validation", "validation/", RECORDS)]
    done, lines = run(cluster, image, "digits", channels)
    assert max(accuracies(lines)) >= ACCURACY_MIN, accuracies(lines)
    final = {each["MetricName"]: each["Value"] for each in done["FinalMetricDataList"]}
    assert final["validation:accuracy"] == pytest.approx(accuracies(lines)[-1], abs=1e-6)
    assert final["train:accuracy"] > ACCURACY_MIN
    for expected in (
        r"INFO 1\] Epoch\[0\] Batch \[20\]\tSpeed: [0-9.]+ samples/sec\taccuracy=",
        r"Epoch\[19\] Train-accuracy=",
        r"Storing the best model with validation accuracy: ",
    ):
        assert any(re.search(expected, line) for line in lines), expected

    key = done["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://yard/")
    body = cluster.boto("s3").get_object(Bucket="yard", Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        archive.extractall(tmp_path)
    test = digits.rows("test.csv")
    paths = []
    for number, (pixels, _) in enumerate(test):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(digits.png(pixels))
    scored = subprocess.run(
        [PROGRAM, "image-classification", "--predict", "--model", str(tmp_path), *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
    )
    predictions = [json.loads(line)["prediction"] for line in scored.stdout.splitlines()]
    assert len(predictions) == len(test)
    correct = sum(
        max(range(10), key=prediction.__getitem__) == digit
        for prediction, (_, digit) in zip(predictions, test, strict=True)
    )
    assert correct / len(test) == pytest.approx(max(accuracies(lines)), abs=1e-6)


def test_two_hosts_train_on_shards(cluster: Server, image: str) -> None:
    channels = [
        channel("train", "shards/", RECORDS, sharded=True),
        channel("validation", "validation/", RECORDS),
    ]
    _, lines = run(cluster, image, "two", channels, hosts=2, mini_batch_size=16, epochs=8)
    assert max(accuracies(lines)) >= 0.95, accuracies(lines)
    assert any("1437 on all hosts, each with images of its own" in line for line in lines)


def test_training_on_image_files_with_a_list(cluster: Server, image: str) -> None:
    s3 = cluster.boto("s3")
    rows = digits.rows("test.csv")[:60]
    for number, (pixels, _) in enumerate(rows):
        s3.put_object(Bucket="yard", Key=f"images/{number}.png", Body=digits.png(pixels))
    listed = "".join(f"{n}\t{digit}\t{n}.png\n" for n, (_, digit) in enumerate(rows))
    s3.put_object(Bucket="yard", Key="lists/train.lst", Body=listed)
    content_type = "application/x-image"
    channels = [
        channel("train", "images/", content_type),
        channel("train_lst", "lists/", content_type),
    ]
    _, lines = run(cluster, image, "files", channels, epochs=1, resize=8)
    assert any("channel train: 60 images on host algo-1" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "hyperparameters", "text"),
    [
        ("unknown", {"epoch": 3}, "Additional properties are not allowed ('epoch' was unexpected)"),
        (
            "classes",
            {"num_classes": 5},
            "is out of range: num_classes is 5, so labels are integers",
        ),
        ("weights", {"use_pretrained_model": 1}, "this server has no pretrained weights"),
    ],
)
def test_wrong_input_is_the_failure_reason(
    cluster: Server, image: str, name: str, hyperparameters: dict[str, Any], text: str
) -> None:
    channels = [channel("train", "train/", RECORDS)]
    done, _ = run(cluster, image, f"wrong-{name}", channels, status="Failed", **hyperparameters)
    assert text in done["FailureReason"]
    assert done["FailureReason"].endswith("exit code: 1")


def test_the_server_does_not_link_torch() -> None:
    server = os.path.join(trainyard_server.ROOT, "build", "release", "bin", "trainyard")
    linked = subprocess.run(["ldd", server], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in linked
    assert "torch" not in linked
