"""Tests `trainyard timeline`: the trace of a real job, with the files that its hosts wrote."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests import jobs, trainyard_server
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.usefixtures("own_operations")

FOLDER = "/opt/ml/output/intermediate/timelines"
CLOCKS_DIFFER_MICROSECONDS_MAX = 1_000_000  # of the agent and of `date`, on one machine
# A file without an end, as a killed process leaves it.
TRACER = r"""d=FOLDER; mkdir -p $d; t=$(date +%s%6N); sleep 0.3
m='{"name":"process_name","ph":"M","args":{"start_time_since_epoch_in_micros":'
e='{"name":"step","ph":"X","tid":0,"ts":5,"dur":100000}'
printf '[%s%s}},\n%s,\n' "$m" $t "$e" > $d/$(hostname)
echo '<html>' > $d/page.html""".replace("FOLDER", FOLDER)


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start("[jobs]\nstop_grace_seconds = 1\n", bucket="yard")


def cli(server: Server, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [trainyard_server.PROGRAM, *arguments],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=trainyard_server.WAIT_SECONDS_MAX,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done


def spans_of(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["name"] == name]


def end_of(span: dict[str, Any]) -> int:
    return int(span["ts"] + span["dur"])


def inside(inner: dict[str, Any], outer: dict[str, Any], tolerance: int = 0) -> bool:
    begins = inner["ts"] >= outer["ts"] - tolerance
    return begins and end_of(inner) <= end_of(outer) + tolerance


def test_hosts_and_their_files_are_on_the_clock_of_the_job(
    server: Server, tmp_path: pathlib.Path
) -> None:
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("traced", TRACER, hosts=2))
    jobs.wait_until(sagemaker, "traced", ["Completed"])
    file = tmp_path / "traced.json"
    done = cli(server, "timeline", "traced", "-o", str(file))
    assert f"wrote {file}" in done.stdout
    assert done.stderr == "note: page.html: it has no list of trace events\n"
    trace = json.loads(file.read_text(encoding="utf-8"))

    [job] = spans_of(trace, "traced")
    time = json.loads(cli(server, "time", "traced", "--json").stdout)
    uses = [event for event in trace["traceEvents"] if event.get("cat") == "time"]
    assert [(use["name"], use["dur"]) for use in uses] == [
        (one["Use"], one["Milliseconds"] * 1000) for one in time["Intervals"]
    ]
    assert job["dur"] == time["WallMilliseconds"] * 1000 == sum(use["dur"] for use in uses)
    assert all(inside(use, job) for use in uses)

    for host in ("algo-1", "algo-2"):
        [whole] = spans_of(trace, host)
        assert whole["args"]["exit_code"] == 0
        states = [
            event
            for event in trace["traceEvents"]
            if event["ph"] == "X" and event["pid"] == whole["pid"] and event is not whole
        ]
        names = [state["name"] for state in states]
        assert names[0] == "placed" and "preparing" in names and "running" in names, names
        assert all(inside(state, whole) for state in states)
        assert sum(state["dur"] for state in states) == whole["dur"]

    steps = spans_of(trace, "step")
    assert len({step["pid"] for step in steps}) == len(steps) == 2
    for step in steps:
        assert step["dur"] == 100_000
        assert inside(step, job, CLOCKS_DIFFER_MICROSECONDS_MAX)
    labels = {
        event["pid"]: event["args"]["name"]
        for event in trace["traceEvents"]
        if event["name"] == "process_name"
    }
    assert {labels[step["pid"]] for step in steps} == {"algo-1", "algo-2"}


def test_a_running_job_has_a_timeline_up_to_now(server: Server) -> None:
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("runs", "sleep 3600"))
    jobs.wait_until(sagemaker, "runs", ["Training"])

    def length() -> int:
        trace = json.loads(cli(server, "timeline", "runs", "-o", "-").stdout)
        [running] = spans_of(trace, "running")
        return int(running["dur"])

    first = length()
    wait_for(lambda: length() > first, "the timeline to grow")
    sagemaker.stop_training_job(TrainingJobName="runs")
    jobs.wait_until(sagemaker, "runs")
    trace = json.loads(cli(server, "timeline", "runs", "-o", "-").stdout)
    assert any(event["name"] == "stop requested" for event in trace["traceEvents"])


def test_an_interrupted_job_shows_both_attempts(server: Server) -> None:
    sagemaker = server.boto("sagemaker")
    spot: dict[str, Any] = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
    }
    sagemaker.create_training_job(**jobs.request("spot", "sleep 3600", **spot))
    jobs.wait_until(sagemaker, "spot", ["Training"])
    trainyard = server.boto("trainyard")
    trainyard.interrupt_training_job(TrainingJobName="spot", NoticeInSeconds=1)

    def again() -> bool:
        job = trainyard.describe_job(JobName="spot")
        return job["Attempts"] == 2 and job["SecondaryStatus"] == "Training"

    wait_for(again, "the second attempt")
    answer = trainyard.get_job_timeline(JobName="spot")
    assert answer["Notes"] == [
        "the hosts of the last attempt only: those of earlier ones are not recorded"
    ]
    trace = json.loads(answer["Trace"])
    [first], [second] = spans_of(trace, "attempt 1"), spans_of(trace, "attempt 2")
    assert "interruption" in first["args"] and end_of(first) <= second["ts"]
    [host] = spans_of(trace, "algo-1")
    assert host["args"]["attempt"] == 2 and inside(host, second)
    sagemaker.stop_training_job(TrainingJobName="spot")
    jobs.wait_until(sagemaker, "spot")


def test_the_trainer_traces_its_collectives(server: Server) -> None:
    s3, sagemaker = server.boto("s3"), server.boto("sagemaker")
    rows = "\n".join(f"{row % 7},{row % 5},{row % 2}" for row in range(64))
    for shard in range(2):
        s3.put_object(Bucket="yard", Key=f"rows/{shard}.csv", Body=rows.encode())
    request = jobs.request(
        "trained",
        hosts=2,
        image="trainyard/trainer",
        channels={"train": ("s3://yard/rows/", "ShardedByS3Key")},
        Environment={"TRAINYARD_TIMELINES": FOLDER},
        HyperParameters={"epochs": "1"},
    )
    request["AlgorithmSpecification"] = {
        "TrainingImage": "trainyard/trainer",
        "TrainingInputMode": "File",
    }
    sagemaker.create_training_job(**request)
    jobs.wait_until(sagemaker, "trained", ["Completed"])
    trace = json.loads(cli(server, "timeline", "trained", "-o", "-").stdout)
    [job] = spans_of(trace, "trained")
    labels = {
        event["args"]["name"]: event["pid"]
        for event in trace["traceEvents"]
        if event["name"] == "process_name"
    }
    for rank, host in enumerate(("algo-1", "algo-2")):
        process = labels[f"{host}.json: rank {rank}"]
        spans = [
            event
            for event in trace["traceEvents"]
            if event["ph"] == "X" and event["pid"] == process
        ]
        assert any("allreduce" in span["name"] for span in spans), spans[:10]
        assert all(inside(span, job, CLOCKS_DIFFER_MICROSECONDS_MAX) for span in spans)
