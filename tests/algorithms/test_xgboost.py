"""Tests XGBoost by AWS's image names: real data, several hosts, the stock library, the SageMaker
SDK."""

from __future__ import annotations

import io
import json
import os
import pathlib
import signal
import subprocess
import tarfile
from typing import Any

import pytest

from tests import jobs, sdk, trainyard_server
from tests.algorithms import data_sets, stock_xgboost
from tests.algorithms.channels import channel
from tests.trainyard_server import Server, wait_for

PROGRAM = os.path.join(os.path.dirname(trainyard_server.PROGRAM), "trainyard-xgboost")
REGION = "us-east-1"
SECONDS_MAX = 300
SHARDS = 4
CANCER = {"objective": "binary:logistic", "eval_metric": "logloss,auc", "tree_method": "hist"}
AUC_MIN = 0.985
AUC_DIFFERENCE_MAX = 1e-3


def names(*versions: str) -> list[str]:
    """Returns AWS's images, as the SDK names them."""
    code = (
        "from sagemaker import image_uris;"
        f" [print(image_uris.retrieve('xgboost', '{REGION}', each)) for each in {versions!r}]"
    )
    done = subprocess.run([sdk.python(2), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-len(versions) :]


@pytest.fixture(scope="module")
def image() -> str:
    return names("1.7-1")[0]


def parts(rows: data_sets.Rows) -> tuple[data_sets.Rows, data_sets.Rows]:
    """Returns four fifths of the rows for training and one fifth for validation."""
    return [row for i, row in enumerate(rows) if i % 5], rows[::5]


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    for name, rows in (
        ("cancer", data_sets.breast_cancer()),
        ("iris", data_sets.iris()),
        ("diabetes", data_sets.diabetes()),
    ):
        train, validation = parts(rows)
        for shard in range(SHARDS):
            body = data_sets.as_csv(train[shard::SHARDS])
            s3.put_object(Bucket="yard", Key=f"{name}/train/{shard}.csv", Body=body)
        body = data_sets.as_csv(validation)
        s3.put_object(Bucket="yard", Key=f"{name}/validation/all.csv", Body=body)
    return server


def both(name: str, sharded: bool = False, mode: str = "File") -> list[dict[str, Any]]:
    return [
        channel("train", f"{name}/train/", sharded=sharded, mode=mode),
        channel("validation", f"{name}/validation/", mode=mode),
    ]


def create(
    cluster: Server,
    image: str,
    name: str,
    channels: list[dict[str, Any]],
    hyperparameters: dict[str, Any],
    hosts: int = 1,
    **more: Any,
) -> None:
    request = jobs.request(name, hosts=hosts, **more)
    request["AlgorithmSpecification"] = {"TrainingImage": image, "TrainingInputMode": "File"}
    request["HyperParameters"] = {
        key: str(value) for key, value in ({"num_round": 30} | hyperparameters).items()
    }
    request["InputDataConfig"] = channels
    cluster.boto("sagemaker").create_training_job(**request)


def finish(cluster: Server, name: str, status: str) -> tuple[dict[str, Any], list[str]]:
    done = jobs.wait_until(cluster.boto("sagemaker"), name, seconds_max=SECONDS_MAX)
    lines = jobs.log_lines(cluster.boto("logs"), name)
    assert done["TrainingJobStatus"] == status, f"{done.get('FailureReason')}\n" + "\n".join(
        lines[-40:]
    )
    return done, lines


def run(
    cluster: Server,
    image: str,
    name: str,
    channels: list[dict[str, Any]],
    hyperparameters: dict[str, Any],
    hosts: int = 1,
    status: str = "Completed",
    **more: Any,
) -> tuple[dict[str, Any], list[str]]:
    create(cluster, image, name, channels, hyperparameters, hosts, **more)
    return finish(cluster, name, status)


def unpack(cluster: Server, done: dict[str, Any], folder: pathlib.Path) -> pathlib.Path:
    key = done["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://yard/")
    body = cluster.boto("s3").get_object(Bucket="yard", Key=key)["Body"].read()
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        archive.extractall(folder)
    return folder


def predict(model: pathlib.Path, request: str, *options: str) -> str:
    done = subprocess.run(
        [PROGRAM, "--predict", "--model", str(model), *options, "-"],
        input=request,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def metrics_of(done: dict[str, Any]) -> dict[str, float]:
    return {each["MetricName"]: each["Value"] for each in done["FinalMetricDataList"]}


def metric_lines(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("[") and "#011train-" in line]


def features_of(rows: data_sets.Rows) -> str:
    return data_sets.as_csv([row[1:] for row in rows])


def test_breast_cancer_on_one_host_and_on_several(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    _, validation = parts(data_sets.breast_cancer())
    labels = [row[0] for row in validation]
    found = {}
    for hosts, sharded in ((1, False), (2, True), (2, False), (3, True)):
        name = f"cancer-{hosts}-{'sharded' if sharded else 'same'}"
        done, lines = run(cluster, image, name, both("cancer", sharded), CANCER, hosts)
        shown = metric_lines(lines)
        assert len(shown) == 30
        assert shown[0].startswith("[0]#011train-logloss:0.")
        assert "#011validation-auc:" in shown[-1]
        model = unpack(cluster, done, tmp_path / name)
        assert [path.name for path in model.iterdir()] == ["xgboost-model"]
        scores = [float(line) for line in predict(model, features_of(validation)).splitlines()]
        found[name] = data_sets.auc(labels, scores)
        assert found[name] >= AUC_MIN, found
        final = metrics_of(done)
        assert set(final) >= {"train:auc", "validation:auc", "validation:logloss"}
        assert final["validation:auc"] == pytest.approx(found[name], abs=1e-5)
        # The stock library loads the model, and predicts the same.
        theirs = stock_xgboost.predict(str(model / "xgboost-model"), features_of(validation))
        assert scores == pytest.approx(theirs, abs=1e-7)
    assert max(found.values()) - min(found.values()) <= AUC_DIFFERENCE_MAX, found


def test_the_model_equals_that_of_the_stock_library(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    channels = [channel("train", "diabetes/train/")]
    done, _ = run(
        cluster, image, "stock", channels, {"max_depth": 3, "eta": 0.2, "tree_method": "hist"}
    )
    model = unpack(cluster, done, tmp_path / "stock")
    train, validation = parts(data_sets.diabetes())
    rows = [row for shard in range(SHARDS) for row in train[shard::SHARDS]]
    other = str(tmp_path / "theirs")
    stock_xgboost.train(
        {"max_depth": 3, "eta": 0.2, "tree_method": "hist"}, 30, data_sets.as_csv(rows), other
    )
    ours = stock_xgboost.predict(str(model / "xgboost-model"), features_of(validation))
    assert ours == stock_xgboost.predict(other, features_of(validation))


def test_softprob_predicts_probabilities_of_classes(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    done, _ = run(
        cluster,
        image,
        "iris",
        both("iris"),
        {
            "objective": "multi:softprob",
            "num_class": 3,
            "eval_metric": "mlogloss,accuracy,f1_macro",
            "early_stopping_rounds": 5,
        },
    )
    final = metrics_of(done)
    assert final["validation:accuracy"] >= 0.9
    assert final["validation:f1_macro"] >= 0.9
    model = unpack(cluster, done, tmp_path / "iris")
    _, validation = parts(data_sets.iris())
    replies = [
        [float(score) for score in line.split(",")]
        for line in predict(model, features_of(validation)).splitlines()
    ]
    assert all(sum(scores) == pytest.approx(1, abs=1e-5) for scores in replies)
    right = sum(
        scores.index(max(scores)) == row[0] for scores, row in zip(replies, validation, strict=True)
    )
    assert right / len(validation) >= 0.9
    document = json.loads(predict(model, features_of(validation), "--accept", "application/json"))
    assert [each["score"] for each in document["predictions"]] == [
        pytest.approx(scores) for scores in replies
    ]


def test_formats_and_modes_train_the_same_model(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    train, validation = parts(data_sets.diabetes())
    cluster.boto("s3").put_object(Bucket="yard", Key="libsvm/rows", Body=data_sets.as_libsvm(train))
    cluster.boto("s3").put_object(Bucket="yard", Key="csv/rows", Body=data_sets.as_csv(train))
    scores = []
    for name, channels in (
        ("libsvm", [channel("train", "libsvm/", "text/libsvm")]),
        ("csv", [channel("train", "csv/")]),
        ("pipe", [channel("train", "csv/", mode="Pipe")]),
        ("fast", [channel("train", "csv/", mode="FastFile")]),
    ):
        done, _ = run(cluster, image, f"format-{name}", channels, {"max_depth": 3})
        model = unpack(cluster, done, tmp_path / name)
        scores.append(predict(model, features_of(validation)))
    assert len(set(scores)) == 1


def test_training_continues_from_a_model(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    first, lines = run(cluster, image, "first", both("diabetes"), {"max_depth": 3, "eta": 0.1})
    model = unpack(cluster, first, tmp_path / "first") / "xgboost-model"
    cluster.boto("s3").put_object(
        Bucket="yard", Key="models/first/xgboost-model", Body=model.read_bytes()
    )
    channels = [
        *both("diabetes"),
        channel("model", "models/first/", "application/x-sagemaker-model"),
    ]
    second, more = run(cluster, image, "second", channels, {"max_depth": 3, "eta": 0.1}, hosts=2)
    assert metrics_of(second)["train:rmse"] < metrics_of(first)["train:rmse"]
    assert len(metric_lines(more)) == len(metric_lines(lines)) == 30


def test_cross_validation_saves_a_model_for_each_fold(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    done, lines = run(
        cluster, image, "folds", both("cancer"), CANCER | {"_kfold": 3, "num_round": 5}
    )
    model = unpack(cluster, done, tmp_path / "folds")
    assert sorted(path.name for path in model.iterdir()) == [
        f"xgboost-model-{fold}" for fold in range(3)
    ]
    assert metric_lines(lines)[-1].startswith("[5]#011train-logloss:")
    assert metrics_of(done)["validation:auc"] >= 0.95
    _, validation = parts(data_sets.breast_cancer())
    scores = [float(line) for line in predict(model, features_of(validation)).splitlines()]
    assert data_sets.auc([row[0] for row in validation], scores) >= AUC_MIN


def programs_of(job: str) -> list[int]:
    """Returns the processes of the algorithm on all hosts of a job, which run on this machine."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if os.readlink(entry / "exe").endswith("/xgboost/train") or os.readlink(
                entry / "exe"
            ).endswith("/trainyard-xgboost"):
                environment = (entry / "environ").read_bytes().split(b"\0")
                if f"TRAINING_JOB_NAME={job}".encode() in environment:
                    found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def host_of(process: int) -> str:
    environment = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    [name] = [each for each in environment if each.startswith(b"HOSTNAME=")]
    return name.decode().removeprefix("HOSTNAME=")


ENDLESS = {"num_round": 1_000_000, "objective": "binary:logistic", "tree_method": "hist"}


def wait_for_rounds(cluster: Server, name: str) -> None:
    wait_for(
        lambda: metric_lines(jobs.log_lines(cluster.boto("logs"), name)),
        f"rounds of {name}",
        SECONDS_MAX,
    )


def test_a_killed_host_fails_the_job_and_is_named(cluster: Server, image: str) -> None:
    create(cluster, image, "killed", both("cancer", sharded=True), ENDLESS, hosts=2)
    wait_for_rounds(cluster, "killed")
    [process] = [each for each in programs_of("killed") if host_of(each) == "algo-2"]
    os.kill(process, signal.SIGKILL)
    done, _ = finish(cluster, "killed", "Failed")
    assert "algo-2" in done["FailureReason"], done["FailureReason"]


def write_job(base: pathlib.Path, hosts: list[str], host: int, rows: data_sets.Rows) -> None:
    """Writes the files of one host of a job that runs without a server."""
    config = base / "input" / "config"
    config.mkdir(parents=True)
    (base / "model").mkdir()
    (base / "input" / "data" / "train").mkdir(parents=True)
    (base / "input" / "data" / "train" / "rows").write_text(data_sets.as_csv(rows))
    channel_config = {"ContentType": "text/csv", "S3DistributionType": "ShardedByS3Key"}
    for name, content in (
        ("hyperparameters", {key: str(value) for key, value in ENDLESS.items()}),
        (
            "resourceconfig",
            {"current_host": hosts[host], "hosts": hosts, "network_interface_name": "lo"},
        ),
        ("inputdataconfig", {"train": channel_config | {"TrainingInputMode": "File"}}),
    ):
        (config / f"{name}.json").write_text(json.dumps(content))


def test_the_other_hosts_name_a_killed_one(tmp_path: pathlib.Path) -> None:
    number = os.getpid()
    hosts = [f"127.{1 + number // 250 % 250}.{1 + number % 250}.{200 + host}" for host in range(2)]
    rows = data_sets.breast_cancer()
    started = []
    try:
        for host in range(2):
            base = tmp_path / str(host)
            write_job(base, hosts, host, rows[host::2])
            with open(tmp_path / f"log-{host}", "w", encoding="utf-8") as log:
                started.append(
                    subprocess.Popen(
                        [PROGRAM, "train", "--base", str(base)],
                        stdout=log,
                        stderr=log,
                        env=dict(os.environ, TRAINING_JOB_NAME="killed", OMP_NUM_THREADS="1"),
                    )
                )
        wait_for(lambda: "[3]#011train-" in (tmp_path / "log-0").read_text(), "rounds", SECONDS_MAX)
        started[1].kill()
        assert started[0].wait(timeout=SECONDS_MAX) == 1
        failure = (tmp_path / "0" / "output" / "failure").read_text()
        assert failure.startswith("training has lost a host: "), failure
        assert hosts[1] in failure
    finally:
        for each in started:
            each.kill()
            each.wait()


def test_a_stopped_job_saves_its_model(cluster: Server, image: str, tmp_path: pathlib.Path) -> None:
    create(cluster, image, "stopped", both("cancer", sharded=True), ENDLESS, hosts=2)
    wait_for_rounds(cluster, "stopped")
    cluster.boto("sagemaker").stop_training_job(TrainingJobName="stopped")
    done, lines = finish(cluster, "stopped", "Stopped")
    assert any("stopped after round" in line for line in lines)
    model = unpack(cluster, done, tmp_path / "stopped")
    _, validation = parts(data_sets.breast_cancer())
    scores = [float(line) for line in predict(model, features_of(validation)).splitlines()]
    assert data_sets.auc([row[0] for row in validation], scores) >= 0.95


def test_checkpoints_resume_a_job(cluster: Server, image: str) -> None:
    checkpoints = {"S3Uri": "s3://yard/checkpoints/xgboost"}
    for name, first in (("rounds-1", 0), ("rounds-2", 30)):
        _, lines = run(
            cluster,
            image,
            name,
            both("cancer"),
            CANCER | {"num_round": first + 30},
            CheckpointConfig=checkpoints,
        )
        shown = metric_lines(lines)
        assert len(shown) == 30
        assert shown[0].startswith(f"[{first}]#011train-logloss:")
    listed = cluster.boto("s3").list_objects_v2(Bucket="yard", Prefix="checkpoints/xgboost/")
    keys = {each["Key"].rsplit("/", 1)[1] for each in listed["Contents"]}
    assert {f"xgboost-checkpoint.{round}" for round in range(55, 60)} <= keys


@pytest.mark.parametrize(
    ("name", "hyperparameters", "content", "text"),
    [
        (
            "unknown",
            {"tree": 3},
            "1,2\n",
            "Customer Error: Extraneous hyperparameter found: tree",
        ),
        ("eta", {"eta": 2}, "1,2\n", "Customer Error: Hyperparameter eta: 2.0 is not in [0, 1]"),
        ("short", {}, "1,2,3\n1,2\n", "rows.csv: line 2: the row has 2 columns, but those before"),
        (
            "label",
            {"objective": "multi:softmax", "num_class": 2},
            "1,2\n2,3\n",
            "rows.csv: line 2: the label 2 is out of range: label must be in [0, num_class)",
        ),
        ("text", {}, "1,2\n1,x\n", "rows.csv: line 2: column 2: 'x' is not a number"),
        ("nan", {}, "1,2\nnan,3\n", "rows.csv: line 2: the label is NaN"),
        ("empty", {}, "\n", "channel train: host algo-1 has no data"),
        ("gpu", {"tree_method": "gpu_hist"}, "1,2\n", "gpu_hist needs a GPU"),
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
    prefix = f"wrong-{name}/"
    cluster.boto("s3").put_object(Bucket="yard", Key=f"{prefix}rows.csv", Body=content)
    channels = [channel("train", prefix)]
    done, _ = run(cluster, image, f"wrong-{name}", channels, hyperparameters, status="Failed")
    assert text in done["FailureReason"]
    assert "Customer Error: " in done["FailureReason"]
    assert done["FailureReason"].endswith("exit code: 1")


def test_a_host_without_data_is_the_failure_reason(cluster: Server, image: str) -> None:
    cluster.boto("s3").put_object(Bucket="yard", Key="one/rows.csv", Body="1,2\n0,4\n")
    channels = [channel("train", "one/", sharded=True)]
    done, _ = run(cluster, image, "nothing", channels, {}, hosts=2, status="Failed")
    assert "channel train: host algo-2 has no data" in done["FailureReason"]


def test_older_images_run_the_same_algorithm(cluster: Server) -> None:
    for index, name in enumerate(names("1", "1.0-1", "1.5-1")):
        _, lines = run(
            cluster, name, f"older-{index}", [channel("train", "iris/train/")], {"num_round": 2}
        )
        assert len(metric_lines(lines)) == 2, name


def test_a_named_script_runs_instead_of_the_algorithm(
    cluster: Server, image: str, tmp_path: pathlib.Path
) -> None:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as archive:
        text = b"print('the script runs')\n"
        member = tarfile.TarInfo("train.py")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    cluster.boto("s3").put_object(Bucket="yard", Key="code.tar.gz", Body=body.getvalue())
    hyperparameters = {
        "sagemaker_program": json.dumps("train.py"),
        "sagemaker_submit_directory": json.dumps("s3://yard/code.tar.gz"),
    }
    _, lines = run(cluster, image, "script", [channel("train", "iris/train/")], hyperparameters)
    assert any("the script runs" in line for line in lines)


def test_workers_of_the_stock_library_join_the_tracker(tmp_path: pathlib.Path) -> None:
    workers = 3
    rows = data_sets.breast_cancer()
    parameters = {"objective": "binary:logistic", "tree_method": "hist"}
    tracker = subprocess.Popen(
        [PROGRAM, "tracker", "--host", "127.0.0.1", "--port", "0", "--workers", str(workers)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert tracker.stdout
        [_, host] = tracker.stdout.readline().strip().split("=")
        [_, port] = tracker.stdout.readline().strip().split("=")
        started = []
        for worker in range(workers):
            part = tmp_path / f"part-{worker}"
            part.write_text(data_sets.as_csv(rows[worker::workers]))
            words = [host, port, f"task-{worker}", json.dumps(parameters), "20"]
            with open(part, encoding="utf-8") as file:
                started.append(
                    subprocess.Popen(
                        stock_xgboost.command("work", *words, str(tmp_path / "model")),
                        stdin=file,
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                )
        printed = [each.communicate(timeout=SECONDS_MAX)[0] for each in started]
        assert [each.returncode for each in started] == [0] * workers
        assert [each.splitlines()[-1] for each in printed] == [
            f"{worker} {workers}" for worker in range(workers)
        ]
        assert tracker.wait(timeout=SECONDS_MAX) == 0
    finally:
        tracker.kill()
        tracker.wait()
    scores = stock_xgboost.predict(str(tmp_path / "model"), features_of(rows))
    assert data_sets.auc([row[0] for row in rows], scores) > 0.99


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_sdks_estimator_trains(server: Server, tmp_path: pathlib.Path, hosts: int) -> None:
    bucket = f"sdk-{hosts}"
    s3 = server.boto("s3")
    s3.create_bucket(Bucket=bucket)
    train, validation = parts(data_sets.breast_cancer())
    for shard in range(SHARDS):
        body = data_sets.as_csv(train[shard::SHARDS])
        s3.put_object(Bucket=bucket, Key=f"train/{shard}.csv", Body=body)
    s3.put_object(Bucket=bucket, Key="validation/all.csv", Body=data_sets.as_csv(validation))
    job, _, outside = sdk.run(server, 2, tmp_path, "xgboost_2.py", [str(hosts), bucket])
    assert not outside
    assert job["status"] == "Completed"
    assert "/sagemaker-xgboost:1.7-1" in job["image"]
    assert job["metrics"]["validation:auc"] >= 0.97


def test_the_server_does_not_link_xgboost() -> None:
    server = os.path.join(trainyard_server.ROOT, "build", "release", "bin", "trainyard")
    linked = subprocess.run(["ldd", server], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in linked
    assert "xgboost" not in linked
