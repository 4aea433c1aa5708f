"""Tests `trainyard stop --now`: jobs whose programs ignore SIGTERM end at once, and show who
stopped them."""

import json
import re
import subprocess
from collections.abc import Callable

import pytest

from tests import jobs, nodes, trainyard_server
from tests.trainyard_server import Server

# Without --now the job would end after this time: a test that waits for it exceeds its deadline.
GRACE_SECONDS = 3600
DEADLINE_SECONDS = 60
STUBBORN = "trap '' TERM; echo stubborn; while true; do sleep 1; done"


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(f"[jobs]\nstop_grace_seconds = {GRACE_SECONDS}\n", bucket="yard")


def cli(server: Server, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [trainyard_server.PROGRAM, *arguments],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == code, (arguments, done.stdout, done.stderr)
    return done.stdout + (done.stderr if code else "")


def start_stubborn(server: Server, name: str, hosts: int = 1) -> None:
    """Starts a job that ignores SIGTERM on all hosts, and waits until it does."""
    script = f"echo kept > /opt/ml/model/kept; {STUBBORN}"
    server.boto("sagemaker").create_training_job(**jobs.request(name, script, hosts))
    logs = server.boto("logs")

    def ignores() -> bool:
        return jobs.log_lines(logs, name).count("stubborn") == hosts

    jobs.wait_until(server.boto("sagemaker"), name, ("InProgress",))
    trainyard_server.wait_for(ignores, "the script to ignore SIGTERM")


def test_a_job_that_ignores_sigterm_ends_at_once(server: Server) -> None:
    start_stubborn(server, "stubborn", hosts=2)
    assert cli(server, "stop", "stubborn", "--now", "--wait") == "stubborn has ended: Stopped\n"
    described = json.loads(cli(server, "describe", "stubborn", "--json"))
    assert described["TrainingJobStatus"] == "Stopped"
    page = cli(server, "describe", "stubborn")
    assert "killed by assumed-role/TrainyardOwner/owner" in re.sub(r"\s+", " ", page), page
    # Its output is still uploaded.
    model = server.boto("s3").list_objects_v2(Bucket="yard", Prefix="models/stubborn/output/")
    assert model["KeyCount"] >= 1
    assert "has ended" in cli(server, "stop", "stubborn", "--now", code=1)


def test_a_job_that_is_already_stopping_ends_at_once(server: Server) -> None:
    start_stubborn(server, "stopping")
    cli(server, "stop", "stopping")
    waiting = r"waiting for algo-1 to exit after SIGTERM, until [\d-]* ?\d\d:\d\d:\d\d"
    trainyard_server.wait_for(
        lambda: re.search(waiting, cli(server, "describe", "stopping")) is not None,
        "the job to wait for its script",
    )
    assert cli(server, "stop", "stopping", "--now", "--wait") == "stopping has ended: Stopped\n"


def test_a_batch_job_shows_who_terminated_it(server: Server) -> None:
    batch = server.boto("batch")
    job = nodes.submit(
        batch, nodes.make_queue(batch, 2), nodes.container(STUBBORN), jobName="stubborn"
    )
    nodes.wait_until(batch, job, ("RUNNING",))
    cli(server, "stop", job, "--now", "--wait")
    (done,) = batch.describe_jobs(jobs=[job])["jobs"]
    assert (done["status"], done["isTerminated"]) == ("FAILED", True)
    assert done["statusReason"].startswith("killed by "), done["statusReason"]
