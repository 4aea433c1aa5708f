"""Tests that a stuck, stopped or slow rank, or a slow data loader, is reported with its rank and
host: in `describe`, in the host's log and as an event. A job of two hosts has the fault in rank
1."""

import json
import os
import subprocess
from collections.abc import Callable

import pytest

from tests import faulty_ranks, jobs, trainyard_server
from tests.trainyard_server import ROOT, Server

EVENTS_GROUP = "/aws/events/faults"


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
        # The rank may be stopped inside or outside of a collective.
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
    faulty_ranks.start_job(server, job, fault)

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

    def has_ended() -> bool:
        return any(each["State"] == "Ended" for each in of_rank_1(event_details(server, job)))

    trainyard_server.wait_for(has_ended, "the event of its end", seconds_max=60)
