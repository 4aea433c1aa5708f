"""Tests the image of packaging/image/build: its files suffice for pods, and equal programs make an
equal image."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster_jobs import create, finish, lines
from tests.kubernetes.conftest import IMAGE
from tests.kubernetes.images import build_image
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def server(image: str, start: Callable[..., Server]) -> Server:
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
    assert build_image() == image
