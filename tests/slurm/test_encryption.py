"""Tests that what passes the network between server and nodes is encrypted."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest

from tests.calls import fresh
from tests.cluster_jobs import (
    REACH_THE_FIRST,
    WAIT_FOR_STOP,
    create,
    finish,
    lines,
    wait_for_line,
)
from tests.hostile.agents import hello
from tests.packets import Recorder
from tests.ports import free_port
from tests.slurm.cluster import CONTROLLER, Cluster
from tests.trainyard_server import Server

# Reads an object, logs it, and copies it by the API's endpoint.
BUCKET = "texts"
TEXT = "/opt/ml/input/data/train/text"
COPY = f"cat {TEXT}; aws s3 cp {TEXT} s3://{BUCKET}/models/$TRAINING_JOB_NAME/copy"


def run_copy(server: Server) -> tuple[str, Recorder]:
    """Runs a job that reads, logs and writes a text; returns the text and the packets."""
    text = fresh("secret-text")
    s3 = server.boto("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="train/text", Body=f"{text}\n".encode())
    with Recorder() as recorder:
        name = create(
            server,
            COPY,
            bucket=BUCKET,
            channels={"train": (f"s3://{BUCKET}/train", "FullyReplicated")},
        )
        job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert text in lines(server, name)
    assert (
        s3.get_object(Bucket=BUCKET, Key=f"models/{name}/copy")["Body"].read()
        == f"{text}\n".encode()
    )
    return text, recorder


def agents_by_tcp() -> str:
    return f'agents_listen = "{CONTROLLER}:{free_port()}"'


def test_links_and_objects_are_encrypted(start: Callable[..., Server]) -> None:
    text, recorder = run_copy(start(agents_by_tcp()))
    assert recorder.packets
    assert not recorder.has(text)
    assert not recorder.has("aws-chunked")


def test_objects_use_plain_http_where_the_config_allows_it(start: Callable[..., Server]) -> None:
    """Also shows that the recorder sees what is not encrypted."""
    server = start(f"{agents_by_tcp()}\n[server]\nallow_plain_http_from_other_machines = true")
    text, recorder = run_copy(server)
    assert recorder.has(text)


@pytest.mark.parametrize("encrypted", [True, False])
def test_traffic_of_a_gang_is_encrypted_where_it_asks_for_it(
    server: Server, encrypted: bool
) -> None:
    with Recorder() as recorder:
        name = create(
            server,
            f"python3 -c '{REACH_THE_FIRST}'",
            hosts=2,
            instance_type="ml.c5.4xlarge",  # each fills a node
            EnableInterContainerTrafficEncryption=encrypted,
        )
        job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name, 2) == ["received 1000000"]
    assert recorder.has("x" * 1000) is not encrypted


def test_a_token_is_useless_without_the_certificate(
    cluster: Cluster, start: Callable[..., Server]
) -> None:
    """A thief has read it in Slurm's messages, and connects as an agent of release 0.1.0 does."""
    port = free_port()
    server = start(f'agents_listen = "{CONTROLLER}:{port}"')
    server.boto("s3").create_bucket(Bucket=BUCKET)
    name = create(server, WAIT_FOR_STOP, bucket=BUCKET)
    wait_for_line(server, name, "ready")
    job = max(cluster.live_jobs(), key=int)
    script = cluster.run("scontrol", "write", "batch_script", job, "-")
    order = json.loads(json.loads(script.split("<<'ORDER'\n")[1].split("\n")[0])["order"])
    number, attempt = map(int, order["attempt"].removeprefix("j").split("a"))
    with socket.create_connection((CONTROLLER, port), timeout=60) as link:
        link.sendall(hello(number, attempt, token=order["token"]))
        answer = link.recv(1024)
    assert answer[4] == 6, answer  # Refused
    assert b"the attempt's agents must connect by TLS" in answer
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"
