"""Tests `trainyard tensorboard`: metrics of jobs, and the files that jobs write, in the real
TensorBoard, also while a job runs."""

import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import jobs, trainyard_server
from tests.command_line import CommandLine, let_go
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TENSORBOARD = ROOT / "build" / "tensorboard" / "bin"
LOSS = {"Name": "loss", "Regex": "loss=([0-9.]+)"}


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(bucket="yard")


def submit(server: Server, name: str, script: str) -> None:
    request = jobs.request(name, script)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [LOSS]
    request["HyperParameters"] = {"learning_rate": "0.5", "optimizer": "adam"}
    server.boto("sagemaker").create_training_job(**request)


def command(server: Server, *arguments: str) -> list[str]:
    return [trainyard_server.PROGRAM, "tensorboard", *arguments, "--data", server.data]


def free_port() -> int:
    """Returns an unused port of the loopback interface, outside of the range for clients."""
    while True:
        port = random.randrange(15000, 30000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def fetched(port: int, path: str, question: dict | None = None) -> dict | list | None:
    """Returns the response to a page of TensorBoard; None while it has none."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=trainyard_server.WAIT_SECONDS_MAX
    )
    try:
        body = None if question is None else json.dumps(question)
        headers = {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", f"/data/plugin/{path}", body, headers)
        answer = connection.getresponse()
        found: dict | list | None = json.load(answer) if answer.status == 200 else None
        return found
    except OSError:  # it has not started
        return None
    finally:
        connection.close()


def values(port: int, job: str) -> list[float]:
    points = fetched(port, f"scalars/scalars?run={job}&tag=loss")
    return [round(value, 6) for _, _, value in points] if points else []


def hyperparameters(port: int) -> dict[str, dict[str, Any]]:
    """Sends the requests of TensorBoard's page of hyperparameters; returns run -> name -> value."""
    statuses = [f"STATUS_{status}" for status in ("UNKNOWN", "SUCCESS", "FAILURE", "RUNNING")]
    question = {"startIndex": 0, "sliceSize": 10, "colParams": [], "allowedStatuses": statuses}
    answer = fetched(port, "hparams/session_groups", question)
    groups = answer.get("sessionGroups", []) if isinstance(answer, dict) else []
    return {group["name"]: group["hparams"] for group in groups}


@contextlib.contextmanager
def shown(server: Server, *jobs_shown: str) -> Iterator[tuple[int, list[str]]]:
    """Runs `trainyard tensorboard`; yields the port of TensorBoard. Its output is available
    afterwards."""
    port, errors = free_port(), list[str]()
    environment = os.environ | {"PATH": f"{TENSORBOARD}:{os.environ['PATH']}"}
    with subprocess.Popen(
        command(server, *jobs_shown, "--port", str(port)),
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield port, errors
        finally:
            running.send_signal(signal.SIGINT)
            errors += running.communicate(timeout=trainyard_server.WAIT_SECONDS_MAX)[1].splitlines()
        assert running.returncode == 130, errors
    assert f"TensorBoard: http://127.0.0.1:{port}/ (Ctrl-C ends it)" in errors


def check_pages(server: Server, port: int) -> None:
    wait_for(lambda: values(port, "done-1") == [0.5, 0.25], "the points of the ended job")
    wait_for(lambda: values(port, "live-1") == [4.0], "the first point of the running job")
    tags = fetched(port, "scalars/tags")
    assert isinstance(tags, dict)
    assert set(tags) == {"done-1", "live-1"}
    assert "loss" in tags["done-1"]
    let_go(CommandLine(server), "live-1")
    wait_for(lambda: values(port, "live-1") == [4.0, 2.0], "the last point of the job")
    shown = wait_for(
        lambda: len(found := hyperparameters(port)) == 2 and found, "the hyperparameters of both"
    )
    assert shown["done-1"] == {"learning_rate": 0.5, "optimizer": "adam"}


def test_tensorboard_shows_jobs_also_while_they_run(server: Server) -> None:
    submit(server, "done-1", "echo loss=0.5; sleep 1.1; echo loss=0.25")
    jobs.wait_until(server.boto("sagemaker"), "done-1")
    submit(server, "live-1", "echo loss=4; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo loss=2")
    jobs.wait_until(server.boto("sagemaker"), "live-1", ["Training"])
    with shown(server, "done-1", "live-1") as (port, errors):
        check_pages(server, port)
    directory = re.search(r"2 jobs in (\S+)", "\n".join(errors))
    assert directory and not os.path.exists(directory[1]), "temporary files are removed"


# -- the files that a job writes

# An event file with an image in each of two steps. Prints a position within the second record.
WRITE_EVENTS = """
import io, sys
from PIL import Image
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

with open(sys.argv[1], "wb") as file:
    writer = RecordWriter(file)
    writer.write(Event(wall_time=1, file_version="brain.Event:2").SerializeToString())
    for step, colour in ((1, (255, 0, 0)), (2, (0, 0, 255))):
        if step == 2:
            print(file.tell() + 20)
        png = io.BytesIO()
        Image.new("RGB", (3, 2), colour).save(png, "png")
        image = Summary.Image(
            height=2, width=3, colorspace=3, encoded_image_string=png.getvalue()
        )
        summary = Summary(value=[Summary.Value(tag="digit", image=image)])
        writer.write(Event(wall_time=step, step=step, summary=summary).SerializeToString())
"""
EVENTS = "train/events.out.tfevents.1700000000.algo-1.7.0"
UNTIL_GO = "while [ ! -e /tmp/go ]; do sleep 0.1; done"


def event_file(directory: pathlib.Path) -> tuple[bytes, bytes]:
    """Returns an event file in two parts: the first ends within a record."""
    path = directory / "events"
    middle = subprocess.run(
        [TENSORBOARD / "python", "-c", WRITE_EVENTS, path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    content = path.read_bytes()
    return content[: int(middle)], content[int(middle) :]


def submit_writer(server: Server, name: str, script: str, **config: str) -> None:
    request = jobs.request(name, script, channels={"in": ("s3://yard/in/", "FullyReplicated")})
    request["TensorBoardOutputConfig"] = {"S3OutputPath": "s3://yard/board", **config}
    server.boto("sagemaker").create_training_job(**request)


def uploaded(server: Server, job: str) -> dict[str, bytes]:
    """Returns name -> content of the files that a job has uploaded for TensorBoard."""
    s3, prefix = server.boto("s3"), f"board/{job}/tensorboard-output/"
    listed = s3.list_objects_v2(Bucket="yard", Prefix=prefix).get("Contents", [])
    return {
        each["Key"].removeprefix(prefix): s3.get_object(Bucket="yard", Key=each["Key"])[
            "Body"
        ].read()
        for each in listed
    }


def put_parts(server: Server, directory: pathlib.Path) -> tuple[bytes, bytes]:
    parts = event_file(directory)
    for number, part in enumerate(parts):
        server.boto("s3").put_object(Bucket="yard", Key=f"in/{number}", Body=part)
    return parts


def images(port: int, run: str) -> list[int]:
    """Returns the steps of the images that TensorBoard shows, each of which is a PNG."""
    found = fetched(port, f"images/images?run={run}&tag=digit&sample=0")
    return [each["step"] for each in found or []]


def test_the_jobs_own_files_are_in_s3_while_it_runs(server: Server, tmp_path: pathlib.Path) -> None:
    first, rest = put_parts(server, tmp_path)
    submit_writer(
        server,
        "board-1",
        "cat /opt/ml/input/config/tensorboardoutputconfig.json; echo; mkdir /runs/train;"
        f" f=/runs/{EVENTS} d=/opt/ml/input/data/in; cat $d/0 > $f; {UNTIL_GO}; cat $d/1 >> $f;"
        " echo text > /runs/notes; ln -s /etc/passwd /runs/link",
        LocalPath="/runs/",
    )
    wait_for(lambda: uploaded(server, "board-1") == {EVENTS: first}, "the first records")
    described = server.boto("sagemaker").describe_training_job(TrainingJobName="board-1")
    assert described["TrainingJobStatus"] == "InProgress"
    assert described["TensorBoardOutputConfig"] == {
        "S3OutputPath": "s3://yard/board",
        "LocalPath": "/runs/",
    }
    let_go(CommandLine(server), "board-1")
    done = jobs.wait_until(server.boto("sagemaker"), "board-1")
    assert done["TrainingJobStatus"] == "Completed", done
    assert uploaded(server, "board-1") == {EVENTS: first + rest, "notes": b"text\n"}
    lines = jobs.log_lines(server.boto("logs"), "board-1")
    assert lines[0] == '{"LocalPath":"/runs"}'
    assert any("/runs/link is not copied" in line and "it is a link" in line for line in lines)


def test_tensorboard_shows_images_while_the_job_runs(
    server: Server, tmp_path: pathlib.Path
) -> None:
    put_parts(server, tmp_path)
    submit_writer(
        server,
        "board-2",
        f"cd /opt/ml/output/tensorboard; mkdir train; f={EVENTS} d=/opt/ml/input/data/in;"
        f" cat $d/0 > $f; {UNTIL_GO}; cat $d/1 >> $f",
    )
    jobs.wait_until(server.boto("sagemaker"), "board-2", ["Training"])
    run = "board-2/tensorboard-output/train"
    with shown(server, "board-2") as (port, errors):
        wait_for(lambda: images(port, run) == [1], "the image of the first step")
        let_go(CommandLine(server), "board-2")
        wait_for(lambda: images(port, run) == [1, 2], "the image of the second step")
    assert not [line for line in errors if line.startswith("trainyard: ")]


def test_files_that_cannot_be_read_do_not_hide_the_metrics(
    server: Server, tmp_path: pathlib.Path
) -> None:
    submit_writer(server, "board-3", "echo 1 > /opt/ml/output/tensorboard/a..b; true")
    jobs.wait_until(server.boto("sagemaker"), "board-3")
    server.boto("s3").put_object(
        Bucket="yard", Key="board/board-3/tensorboard-output/../../evil", Body=b"evil"
    )
    done = subprocess.run(
        command(server, "board-3", "--no-server", "--logdir", str(tmp_path / "runs")),
        check=True,
        capture_output=True,
        text=True,
    )
    assert "evil is left out: a part of its name is empty, '.' or '..'" in done.stderr
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert found == [
        "runs",
        "runs/board-3",
        "runs/board-3/events.out.tfevents.trainyard",
        "runs/board-3/tensorboard-output",
        "runs/board-3/tensorboard-output/a..b",
    ]


def test_an_unusable_location_is_reported_before_the_job_runs(server: Server) -> None:
    submit_writer(server, "board-4", "true", S3OutputPath="s3://absent/board")
    done = jobs.wait_until(server.boto("sagemaker"), "board-4")
    assert done["FailureReason"] == (
        "ClientError: TensorBoard output cannot be uploaded to"
        " s3://absent/board/board-4/tensorboard-output: bucket absent not found"
        " (s3://absent/board/board-4/tensorboard-output/)"
    )


def test_files_without_a_server(server: Server, tmp_path: pathlib.Path) -> None:
    submit(server, "files-1", "echo loss=1.5")
    jobs.wait_until(server.boto("sagemaker"), "files-1")
    subprocess.run(command(server, "files-1", "--no-server", "--logdir", str(tmp_path)), check=True)
    (file,) = (tmp_path / "files-1").iterdir()
    assert file.name == "events.out.tfevents.trainyard"
    read = "import sys; from tensorboard.backend.event_processing.event_file_loader import *;"
    read += "print([v.tag for e in EventFileLoader(sys.argv[1]).Load() for v in e.summary.value])"
    tags = subprocess.run(
        [TENSORBOARD / "python", "-c", read, file], check=True, capture_output=True, text=True
    ).stdout
    assert tags.splitlines()[-1] == (
        "['_hparams_/session_start_info', 'loss', '_hparams_/session_end_info']"
    )


def test_errors_explain_why_nothing_is_shown(server: Server, tmp_path: pathlib.Path) -> None:
    def error(*arguments: str, path: str = os.environ["PATH"]) -> str:
        done = subprocess.run(
            command(server, *arguments),
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=trainyard_server.WAIT_SECONDS_MAX,
        )
        assert done.returncode == 1, done.stderr
        return " ".join(done.stderr.split())

    assert "job 'absent' not found" in error("absent")
    assert "--no-server needs --logdir DIR" in error("absent", "--no-server")
    assert "--port must be from 1 to 65535" in error("absent", "--port", "70000")
    submit(server, "lonely-1", "true")
    jobs.wait_until(server.boto("sagemaker"), "lonely-1")
    missing = error("lonely-1", path="/nonexistent")
    assert "install it with `pip install tensorboard`" in missing
