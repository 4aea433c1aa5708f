"""Tests `trainyard replay`: unchanged machines give the recorded waits, and another machine
shortens them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from tests import jobs
from tests.command_line import output_of
from tests.trainyard_server import Server

pytestmark = pytest.mark.usefixtures("own_operations")

OWNER = ("AKIAOWNER00000000001", "owner-secret-0000000000000000000000000001")
ANN = ("AKIAANN0000000000001", "ann-secret-00000000000000000000000000001")
BOB = ("AKIABOB0000000000001", "bob-secret-00000000000000000000000000001")


def user(name: str, key: tuple[str, str], actions: str) -> str:
    return f"""
[[access_key]]
id = "{key[0]}"
secret = "{key[1]}"
user = "{name}"
[[user]]
name = "{name}"
policy = '''{{"Version": "2012-10-17", "Statement": [
  {{"Effect": "Allow", "Action": {actions}, "Resource": "*"}}]}}'''
"""


# Capacity for one job of two hosts of two vCPU, and for no second one.
CONFIG = f"""
[jobs]
stop_grace_seconds = 1
[[access_key]]
id = "{OWNER[0]}"
secret = "{OWNER[1]}"
user = "owner"
{user("ann", ANN, '["trainyard:ReplayJobs"]')}
{user("bob", BOB, '["trainyard:ListJobs"]')}
[[machine]]
name = "box"
cpus = 5.0
memory_gib = 16.0
"""
NAMES = ["first", "second", "third"]
SECONDS = 6  # the run time of each job
# Launching a job and noticing its end is part of a recorded wait, and takes no time in a replay.
ROUNDING_MS = 5_000


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    """Starts a server whose three jobs have run one after another."""
    one = start(CONFIG)
    one.boto("s3").create_bucket(Bucket="yard")
    sagemaker = one.boto("sagemaker")
    for name in NAMES:
        sagemaker.create_training_job(**jobs.request(name, f"sleep {SECONDS}", hosts=2))
    for name in NAMES:
        assert jobs.wait_until(sagemaker, name)["TrainingJobStatus"] == "Completed"
    return one


def cli(server: Server, *arguments: str, key: tuple[str, str] = OWNER, code: int = 0) -> str:
    return output_of(server, key, *arguments, code=code)


def replayed(server: Server, *arguments: str, key: tuple[str, str] = OWNER) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(cli(server, "replay", *arguments, "--json", key=key))
    assert answer["Completed"] and answer["Progress"] == 1
    return answer


def recorded_waits(server: Server) -> dict[str, int]:
    """Returns the milliseconds until each job had its machine."""
    waits = {}
    for name in NAMES:
        first = json.loads(cli(server, "time", name, "--json"))["Intervals"][0]
        waits[name] = first["Milliseconds"] if first["Use"] == "Queued" else 0
    return waits


def test_a_replay_without_changes_equals_the_record(server: Server) -> None:
    answer = replayed(server)
    assert [one["Name"] for one in answer["Outcomes"]] == ["recorded", "as it is"]
    assert answer["Jobs"] == len(NAMES)
    assert answer["JobsBefore"] == answer["EstimatedJobs"] == answer["RunningJobs"] == 0
    recorded, as_it_is = (one["Waits"] for one in answer["Outcomes"])
    waits = recorded_waits(server)
    assert recorded["LongestMilliseconds"] == max(waits.values())
    assert recorded["MeanMilliseconds"] == pytest.approx(sum(waits.values()) / len(waits), abs=1)
    assert recorded["LongestMilliseconds"] >= 2 * SECONDS * 1000, "the third waited for two"
    for of in ("MeanMilliseconds", "MedianMilliseconds", "LongestMilliseconds"):
        assert as_it_is[of] == pytest.approx(recorded[of], abs=ROUNDING_MS)
    assert answer["Outcomes"][1]["StartErrorP95Milliseconds"] <= ROUNDING_MS
    assert answer["Outcomes"][1]["UnfinishedJobs"] == 0


def test_another_machine_shortens_the_waits(server: Server) -> None:
    answer = replayed(
        server,
        *("--variant", "two boxes", "--add-machine", "box-2=5,16,0"),
        *("--variant", "three", "--add-machine", "a=5,16", "--add-machine", "b=5,16"),
        *("--variant", "none", "--remove-machine", "box"),
        *("--variant", "fast", "--submit-rate", "100"),
    )
    by_name = {one["Name"]: one for one in answer["Outcomes"]}
    waits = {name: one["Waits"]["LongestMilliseconds"] for name, one in by_name.items()}
    assert waits["two boxes"] < waits["as it is"] - SECONDS * 1000 / 2
    assert waits["three"] == 0
    assert waits["fast"] >= waits["as it is"]
    assert by_name["none"]["Waits"]["NotStarted"] == len(NAMES)
    assert by_name["two boxes"]["Cpus"] == 2 * by_name["as it is"]["Cpus"] == 10
    assert by_name["three"]["MakespanMilliseconds"] < by_name["as it is"]["MakespanMilliseconds"]
    assert {one["JobName"] for one in answer["MostAffected"]} == set(NAMES)


def test_the_page_shows_a_column_for_each(server: Server) -> None:
    page = cli(server, "replay", "--since", "2h", "--machines", "1xml.m5.2xlarge")
    for text in ("recorded", "as it is", "changed", "wait, p95", "vCPU in use over time", "third"):
        assert text in page, page


def test_a_user_without_permissions_learns_nothing(server: Server) -> None:
    refused = cli(server, "replay", key=BOB, code=1)
    assert "not authorized to perform: trainyard:ReplayJobs" in refused
    # ann may replay, but not describe jobs.
    answer = replayed(server, "--add-machine", "box-2=5,16,0", key=ANN)
    assert answer["MostAffected"] == []
    assert not any(f'"{name}"' in json.dumps(answer) for name in NAMES)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"Kind": "RemoveMachine", "Name": "absent"}, "unknown machine 'absent'"),
        ({"Kind": "RemoveMachine", "Name": "\x1b[2J\n<b>\u202e'"}, "unknown machine"),
        ({"Kind": "AddMachines", "Cpus": -1.0}, "invalid vCPU"),
        ({"Kind": "AddMachines", "Cpus": 1e308}, "invalid vCPU"),
        ({"Kind": "AddMachines", "Cpus": 1.0, "MachineCount": -1}, "machineCount|MachineCount"),
        ({"Kind": "AddMachines", "Cpus": 1.0, "MemoryInBytes": -1}, "invalid memory"),
        ({"Kind": "SetSubmitRate", "Value": 1e308}, "invalid submit rate"),
        ({"Kind": "SetSubmitRate", "Value": -1.0}, "invalid submit rate"),
        ({"Kind": "SetPolicy", "Name": "training jobs", "Policy": "quota"}, "no quota shares"),
        ({"Kind": "Explode"}, "Explode|enum"),
    ],
)
def test_hostile_changes_are_refused(server: Server, change: dict[str, Any], error: str) -> None:
    boto = server.boto("trainyard")
    with pytest.raises((ClientError, ParamValidationError), match=error):
        boto.replay_jobs(Variants=[{"Name": "v", "Changes": [change]}])


def test_a_thousand_variants_are_refused(server: Server) -> None:
    boto = server.boto("trainyard")
    variants = [{"Name": f"v{i}", "Changes": []} for i in range(1000)]
    with pytest.raises(ClientError, match="ValidationException"):
        boto.replay_jobs(Variants=variants)
    assert boto.replay_jobs()["Completed"]
