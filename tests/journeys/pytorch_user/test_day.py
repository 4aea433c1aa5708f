"""Tests a day of a user with a PyTorch script: a job file, the command line, and the results. Each
test is a step of the day; the steps share a server and a directory."""

import io
import json
import pathlib
import re
import tarfile
from collections.abc import Callable

import pytest

from tests.command_line import CommandLine
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.in_order
TRAIN = """
import argparse, os, time
import torch
import data

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--pause-after", type=int, default=-1)
arguments = parser.parse_args()

x, y = data.read(os.environ["SM_CHANNEL_TRAIN"])
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=arguments.rate)
checkpoint, first = "/opt/ml/checkpoints/last.pt", 0
if os.path.exists(checkpoint):
    state = torch.load(checkpoint)
    model.load_state_dict(state["model"])
    first = state["epoch"] + 1
    print(f"resumes at epoch {first}", flush=True)
for epoch in range(first, arguments.epochs):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch} loss={loss.item():.4f}", flush=True)
    if os.path.isdir("/opt/ml/checkpoints"):
        torch.save({"model": model.state_dict(), "epoch": epoch}, checkpoint + ".new")
        os.rename(checkpoint + ".new", checkpoint)
    if first == 0 and epoch == arguments.pause_after:
        print("pauses", flush=True)
        time.sleep(3600)
torch.save(model.state_dict(), os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
"""
DATA = """
import os, torch

def read(directory):
    rows = [line.split(",") for line in open(os.path.join(directory, "points.csv"))]
    values = torch.tensor([[float(x), float(y)] for x, y in rows])
    return values[:, :1], values[:, 1:]
"""
JOB = """
image = "trainyard/host"
instance_type = "ml.t3.medium"
output = "s3://work/jobs"
channels = {train = "./points"}

[code]
directory = "./src"
entry = "train.py"

[hyperparameters]
epochs = 3
rate = 0.05

[metrics]
loss = "loss=([0-9.]+)"
"""


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start("[jobs]\nstop_grace_seconds = 2\n")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    directory = tmp_path_factory.mktemp("project")
    for name, text in {
        "src/train.py": TRAIN,
        "src/data.py": DATA,
        "points/points.csv": "".join(f"{x},{2 * x + 1}\n" for x in range(4)),
        "job.toml": JOB,
    }.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)
    return directory


@pytest.fixture(scope="module")
def trainyard(server: Server, project: pathlib.Path) -> CommandLine:
    return CommandLine(server, project)


def variant(project: pathlib.Path, file: str, *changes: tuple[str, str]) -> str:
    """Makes a copy of the job file with other settings."""
    text = JOB
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (project / file).write_text(text)
    return file


def test_1_the_request_can_be_read_before_anything_happens(
    trainyard: CommandLine, server: Server
) -> None:
    dry = trainyard("submit", "job.toml", "--dry-run", "--name", "first")
    request = json.loads(dry.stdout)
    assert request["HyperParameters"]["epochs"] == "3"
    assert "s3://work/jobs/first/source/sourcedir.tar.gz" in dry.stderr
    assert server.boto("s3").list_buckets()["Buckets"] == []


def test_2_a_typing_error_is_reported_before_anything_is_uploaded(
    trainyard: CommandLine, project: pathlib.Path, server: Server
) -> None:
    file = variant(project, "typo.toml", ("train.py", "trian.py"))
    assert "did you mean train.py?" in trainyard("submit", file, code=1).stderr
    assert server.boto("s3").list_buckets()["Buckets"] == []


def test_3_the_script_gets_its_arguments_and_data(trainyard: CommandLine, server: Server) -> None:
    followed = trainyard("submit", "job.toml", "--name", "first", "--follow").stdout
    losses = re.findall(r"epoch \d loss=([0-9.]+)", followed)
    assert len(losses) == 3 and float(losses[2]) < float(losses[0]), followed
    assert "first Completed" in followed
    model = server.boto("s3").get_object(Bucket="work", Key="jobs/first/output/model.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(model["Body"].read()), mode="r:gz") as tar:
        assert tar.getnames() == ["model.pt"]
    page = trainyard("describe", "first").stdout
    assert re.search(rf"^loss +{losses[2].rstrip('0')}", page, re.M), "its last metric"


def test_4_a_script_that_fails_says_why(
    trainyard: CommandLine, project: pathlib.Path, server: Server
) -> None:
    file = variant(project, "bad.toml", ("epochs = 3", 'epochs = "many"'))
    failed = trainyard("submit", file, "--name", "bad", "--follow", code=3).stdout
    assert "argument --epochs: invalid int value: 'many'" in failed
    described = server.boto("sagemaker").describe_training_job(TrainingJobName="bad")
    assert "invalid int value: 'many'" in described["FailureReason"]
    assert "invalid int value" in trainyard("describe", "bad").stdout


def test_5_an_interrupted_job_continues_from_its_checkpoint(
    trainyard: CommandLine, project: pathlib.Path
) -> None:
    file = variant(
        project,
        "long.toml",
        ("epochs = 3", "epochs = 6\npause-after = 2"),
        ("[code]", 'checkpoints = "s3://work/checkpoints/long"\n[code]'),
    )
    name = trainyard("submit", file, "--name", "long").stdout.strip()
    assert name == "long"
    wait_for(lambda: "pauses" in trainyard("logs", name).stdout, "three epochs")
    trainyard("interrupt", name, "--notice", "1s", "--reason", "the machine is needed")
    followed = trainyard("logs", "-f", name).stdout
    assert "resumes at epoch 3" in followed and "epoch 5" in followed
    assert followed.count("epoch 2 loss") == 1, "no epoch is trained twice"


def test_6_a_job_that_is_not_needed_is_stopped(
    trainyard: CommandLine, project: pathlib.Path, server: Server
) -> None:
    file = variant(project, "pauses.toml", ("epochs = 3", "epochs = 3\npause-after = 0"))
    trainyard("submit", file, "--name", "unwanted")
    wait_for(lambda: "pauses" in trainyard("logs", "unwanted").stdout, "the first epoch")
    assert "unwanted" in trainyard("top", "--once").stdout
    assert trainyard("stop", "unwanted", "--wait").stdout == "unwanted has ended: Stopped\n"
    assert trainyard("logs", "-f", "unwanted", code=4).stdout.count("epoch") == 1


def test_7_what_the_jobs_cost(trainyard: CommandLine) -> None:
    report = json.loads(trainyard("cost", "--by", "job", "--json").stdout)
    assert {group["Key"] for group in report["Groups"]} == {"first", "bad", "long", "unwanted"}
    assert "first" in trainyard("cost", "first").stdout
