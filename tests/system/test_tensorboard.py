"""`trainyard tensorboard`: metrics of jobs in the real TensorBoard, also while a job runs."""

import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
from collections.abc import Callable
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
    one = start()
    one.boto("s3").create_bucket(Bucket="yard")
    return one


def submit(server: Server, name: str, script: str) -> None:
    request = jobs.request(name, script)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [LOSS]
    request["HyperParameters"] = {"learning_rate": "0.5", "optimizer": "adam"}
    server.boto("sagemaker").create_training_job(**request)


def command(server: Server, *arguments: str) -> list[str]:
    return [trainyard_server.PROGRAM, "tensorboard", *arguments, "--data", server.data]


def free_port() -> int:
    """An unused port of the loopback, outside of the range that clients get."""
    while True:
        port = random.randrange(15000, 30000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def fetched(port: int, path: str, question: dict | None = None) -> dict | list | None:
    """The answer to a page of TensorBoard; None while it has none."""
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
    """Requests what TensorBoard's own page of hyperparameters does: run -> name -> value."""
    statuses = [f"STATUS_{status}" for status in ("UNKNOWN", "SUCCESS", "FAILURE", "RUNNING")]
    question = {"startIndex": 0, "sliceSize": 10, "colParams": [], "allowedStatuses": statuses}
    answer = fetched(port, "hparams/session_groups", question)
    groups = answer.get("sessionGroups", []) if isinstance(answer, dict) else []
    return {group["name"]: group["hparams"] for group in groups}


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
    port = free_port()
    environment = os.environ | {"PATH": f"{TENSORBOARD}:{os.environ['PATH']}"}
    with subprocess.Popen(
        command(server, "done-1", "live-1", "--port", str(port)),
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as shown:
        try:
            check_pages(server, port)
        finally:
            shown.send_signal(signal.SIGINT)
        _, errors = shown.communicate(timeout=trainyard_server.WAIT_SECONDS_MAX)
        assert shown.returncode == 130
    assert f"TensorBoard: http://127.0.0.1:{port}/ (Ctrl-C ends it)" in errors
    directory = re.search(r"2 jobs in (\S+)", errors)
    assert directory and not os.path.exists(directory[1]), "temporary files are removed"


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
