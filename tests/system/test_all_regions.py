"""Tests `trainyard jobs --all-regions`: one list of the jobs of a server, of its partitions and of
another server, which may be away."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests import jobs, trainyard_server
from tests.trainyard_server import Server

KEY = ("AKIAREMOTEREGION00002", "remote-secret-of-the-other-server-000002")
SECONDS_MAX = 90


@pytest.fixture
def remote(tmp_path: pathlib.Path) -> Iterator[Server]:
    """Starts the region eu-west-1: a separate server with its own keys."""
    running = Server(
        tmp_path / "remote",
        f'region = "eu-west-1"\n[[access_key]]\nid = "{KEY[0]}"\nsecret = "{KEY[1]}"\n'
        '[network]\npool = "10.236.0.0/16"\n',
    ).start()
    yield running
    running.clean()


@pytest.fixture
def home(tmp_path: pathlib.Path, remote: Server) -> Iterator[Server]:
    """Starts the region us-east-1, with the partition us-west-2."""
    running = Server(
        tmp_path / "home",
        f"""
[network]
pool = "10.235.0.0/16"
[regions.us-west-2]
[regions.eu-west-1]
endpoint = "{remote.env["AWS_ENDPOINT_URL"]}"
access_key_id = "{KEY[0]}"
secret_access_key = "{KEY[1]}"
""",
    ).start()
    yield running
    running.clean()


def list_jobs(server: Server, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [trainyard_server.PROGRAM, "jobs", "--all-regions", *options],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )


def rows(done: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)["Jobs"]
    return [(job["Name"], job["Region"]) for job in listed]


def test_jobs_of_all_regions_are_one_list_without_a_region_that_is_away(
    home: Server, remote: Server
) -> None:
    for name, region in (("one", "us-east-1"), ("two", "eu-west-1"), ("three", "us-west-2")):
        client = home.boto("sagemaker", region_name=region)
        client.create_training_job(**jobs.request(name))
    # Not through the home server.
    remote.boto("sagemaker").create_training_job(**jobs.request("four"))

    done = list_jobs(home, "--json")
    everything = [
        ("four", "eu-west-1"),
        ("three", "us-west-2"),
        ("two", "eu-west-1"),
        ("one", "us-east-1"),
    ]
    assert rows(done) == everything
    assert done.stderr == ""
    assert rows(list_jobs(home, "--json", "--max", "2")) == everything[:2]
    assert rows(list_jobs(home, "--json", "--name", "t")) == everything[1:3]
    table = list_jobs(home).stdout.splitlines()
    assert table[0].split()[:3] == ["name", "region", "status"], table
    assert [tuple(line.split()[:2]) for line in table[1:]] == everything

    here = [("three", "us-west-2"), ("one", "us-east-1")]
    missing = "the jobs of region eu-west-1 are missing: "
    remote.process.send_signal(signal.SIGSTOP)
    try:
        done = list_jobs(home, "--json")
    finally:
        remote.process.send_signal(signal.SIGCONT)
    assert rows(done) == here
    assert done.stderr.startswith(missing) and done.stderr.count("\n") == 1, done.stderr
    assert rows(list_jobs(home, "--json")) == everything, "it continues"

    remote.kill()
    done = list_jobs(home, "--json")
    assert rows(done) == here
    assert done.stderr.startswith(missing) and done.stderr.count("\n") == 1, done.stderr
    absent = json.loads(done.stdout)["MissingRegions"]
    assert [one["Region"] for one in absent] == ["eu-west-1"]
    assert absent[0]["Message"] in done.stderr

    home.kill()
    done = list_jobs(home)
    assert done.returncode == 1 and done.stdout == "", done
    assert "listing the regions" in done.stderr
