"""A rank that is stuck, stopped or slow is named, with its host: in describe, in the log of its
host, and as an event. So is a slow loader. A job of two hosts plants the fault in rank 1."""

import json
import os
import pathlib
import subprocess
from collections.abc import Callable

import pytest

from tests import jobs, scripts, trainyard_server
from tests.trainyard_server import ROOT, Server

LIBRARY = pathlib.Path(ROOT, "build", "release", "lib", "libtrainyard_collectives.so.1")
SDK = pathlib.Path(ROOT, "sdk", "python", "trainyard")
EVENTS_GROUP = "/aws/events/faults"

PROGRAM = """
import argparse, ctypes, os, signal, time
import _declarations as capi
import loading

parser = argparse.ArgumentParser()
parser.add_argument("--fault", required=True)
fault = parser.parse_known_args()[0].fault
library = ctypes.CDLL(os.path.abspath("libtrainyard_collectives.so.1"))
capi.declare(library)
message = ctypes.create_string_buffer(capi.TRAINYARD_ERROR_BYTES)
given = capi.Join(size=ctypes.sizeof(capi.Join), rank=-1, ranks=0, join_deadline_ms=60000,
                  silence_max_ms=600000, deterministic=1, from_launcher=1)
group = ctypes.c_void_p()
assert library.trainyard_group_join(ctypes.byref(given), ctypes.byref(group), message) == 0, (
    message.value)
values = (ctypes.c_float * 4)(1, 1, 1, 1)
call = capi.Call(ctypes.sizeof(capi.Call), capi.TRAINYARD_ALLREDUCE, capi.TRAINYARD_F32,
                 ctypes.addressof(values), ctypes.addressof(values), 4, 4, capi.TRAINYARD_SUM,
                 0.0, 0, None, None, b"gradients")
planted = False

def batches():
    for step in range(1000000):
        time.sleep(0.2 if planted and fault == "load" else 0)
        yield step

for step in loading.timed(batches()):
    time.sleep(0.2 if planted and fault == "slow" else 0.05)
    if step == 100 and int(os.environ["RANK"]) == 1:
        planted = True
        print("the fault begins", flush=True)
        if fault == "sleep":
            time.sleep(10000)
        if fault == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
    assert library.trainyard_group_run(group, ctypes.byref(call), message) == 0, message.value
"""


def start_job(server: Server, name: str, fault: str) -> None:
    files: dict[str, str | bytes] = {
        "train.py": PROGRAM,
        "_declarations.py": (SDK / "_declarations.py").read_text(),
        "loading.py": (SDK / "loading.py").read_text(),
        LIBRARY.name: LIBRARY.read_bytes(),
    }
    server.boto("sagemaker").create_training_job(
        **scripts.request(
            server,
            name,
            "train.py",
            files,
            hosts=2,
            hyperparameters={
                "fault": fault,
                "sagemaker_torch_distributed_enabled": True,
                "sagemaker_instance_type": "ml.t3.medium",
                "sagemaker_mpi_num_of_processes_per_host": 1,
            },
        )
    )


def send_events_to_a_log_group(server: Server) -> None:
    events = server.boto("events")
    rule = events.put_rule(Name="faults", EventPattern='{"source": ["trainyard"]}')
    account = rule["RuleArn"].split(":")[4]
    group = f"arn:aws:logs:us-east-1:{account}:log-group:{EVENTS_GROUP}"
    events.put_targets(Rule="faults", Targets=[{"Id": "1", "Arn": group}])


def faults_of(server: Server, job: str) -> list[dict[str, str | int]]:
    done = subprocess.run(
        [os.path.join(ROOT, "build", "trainyard"), "describe", job, "--json"],
        env=server.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return [one for one in json.loads(done.stdout).get("Activity", []) if "Fault" in one]


def event_details(server: Server, job: str) -> list[dict[str, str | int]]:
    logs = server.boto("logs")
    if not logs.describe_log_groups(logGroupNamePrefix=EVENTS_GROUP)["logGroups"]:
        return []
    lines = logs.filter_log_events(logGroupName=EVENTS_GROUP)["events"]
    details = [json.loads(line["message"])["detail"] for line in lines]
    return [detail for detail in details if detail["JobName"] == job]


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("sleep", {"StuckRank"}),
        # It may be stopped inside or outside of a collective.
        ("stop", {"StuckRank", "StoppedRank"}),
        ("slow", {"SlowRank"}),
        ("load", {"SlowLoader"}),
    ],
)
def test_the_rank_with_a_fault_is_named(
    start: Callable[..., Server], fault: str, kinds: set[str]
) -> None:
    server = start("[jobs]\nstop_grace_seconds = 1\n")
    server.boto("s3").create_bucket(Bucket="yard")
    send_events_to_a_log_group(server)
    job = f"fault-{fault}"
    start_job(server, job, fault)

    def of_rank_1(found: list[dict[str, str | int]]) -> list[dict[str, str | int]]:
        return [
            each
            for each in found
            if each["Fault"] in kinds and each["Rank"] == 1 and each["Host"] == "algo-2"
        ]

    shown = trainyard_server.wait_for(
        lambda: of_rank_1(faults_of(server, job)),
        f"the rank that should {fault}",
        seconds_max=120,
        interval_seconds=0.5,
    )
    text = str(shown[0]["Message"])
    assert "rank 1 on algo-2 " in text, text

    def is_in_the_log() -> bool:
        lines = jobs.log_lines(server.boto("logs"), job)
        return any(line.startswith("trainyard: ") and "rank 1 on algo-2 " in line for line in lines)

    trainyard_server.wait_for(is_in_the_log, "the line of the log", seconds_max=60)
    begun = trainyard_server.wait_for(
        lambda: of_rank_1(event_details(server, job)), "the event", seconds_max=60
    )
    assert begun[0]["State"] == "Begun"
    server.boto("sagemaker").stop_training_job(TrainingJobName=job)
