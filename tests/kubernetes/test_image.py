"""Tests the image of packaging/image/build: its files suffice for pods, and equal programs make an
equal image."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Callable

import pytest

from tests.cluster_jobs import create, finish, lines
from tests.kubernetes.nodes import Nodes
from tests.trainyard_server import ROOT, Server

BUILD = f"{ROOT}/packaging/image/build"
LAYOUT = pathlib.Path(ROOT, "build/image")
IMAGE = "registry.lan/trainyard:1"


def build() -> str:
    """Makes the image; returns the digest of its manifest."""
    subprocess.run([BUILD], check=True, capture_output=True)
    digest = json.loads((LAYOUT / "index.json").read_text())["manifests"][0]["digest"]
    assert isinstance(digest, str)
    return digest


def blob(digest: str) -> pathlib.Path:
    return LAYOUT / "blobs" / digest.replace(":", "/")


@pytest.fixture(scope="module")
def image() -> str:
    return build()


@pytest.fixture(scope="module")
def server(
    image: str, nodes: Nodes, start: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory
) -> Server:
    root = tmp_path_factory.mktemp("image")
    for layer in json.loads(blob(image).read_text())["layers"]:
        subprocess.run(["tar", "-xzf", blob(layer["digest"]), "-C", root], check=True)
    nodes.images[IMAGE] = str(root)
    one = start(image=IMAGE, programs="/opt/trainyard/bin")
    one.boto("s3").create_bucket(Bucket="yard")
    return one


def test_a_gang_runs_in_pods_of_the_image(server: Server) -> None:
    name = create(
        server,
        "[ -e /usr/bin/python3 ] || echo without Python; getent hosts algo-1 >/dev/null && echo ok",
        hosts=2,
        instance_type="ml.c5.4xlarge",
    )
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    # This machine has Python, and the image has not.
    assert lines(server, name, 2) == ["without Python", "ok"]


def test_equal_programs_make_an_equal_image(image: str) -> None:
    assert build() == image
