from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests import jobs
from tests.console import world
from tests.trainyard_server import Server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=world.SECONDS_MAX * 1000)
    with sync_playwright() as playwright:
        one = world.launch(playwright)
        yield one
        one.close()


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    """Starts a server with a job that runs on two hosts, a waiting job and a failed job."""
    one = start(world.CONFIG)
    one.boto("s3").create_bucket(Bucket="yard")
    sagemaker = one.boto("sagemaker")
    world.start_job(
        one,
        "failed-1",
        world.FAIL,
        HyperParameters={"note": world.HOSTILE, "epochs": "3"},
        Tags=[{"Key": "team", "Value": "vision"}],
    )
    jobs.wait_until(sagemaker, "failed-1", ["Failed"])
    world.start_job(one, "running-1", world.TRAIN, hosts=2)
    jobs.wait_until(sagemaker, "running-1", ["Training"])
    world.start_job(one, "waiting-1", world.TRAIN, hosts=2)
    return one
