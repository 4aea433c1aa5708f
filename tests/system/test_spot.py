"""Tests jobs that are interrupted, retried, exceed their time limits, or leave their hosts to the
next job, with real processes and real kill -9."""

import contextlib
import os
import pathlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import jobs, leftovers, nodes
from tests.calls import fresh, refusal
from tests.trainyard_server import Server, wait_for

SPOT: dict[str, Any] = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 300, "MaxWaitTimeInSeconds": 600},
}


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server]) -> Server:
    server = start(
        "[jobs]\nstop_grace_seconds = 2\n[spot]\nnotice_seconds = 2\n[[machine]]\nname ="
        " 'box'\ncpus = 4.0\nmemory_gib = 16.0\n"
    )
    server.boto("s3").create_bucket(Bucket="yard")
    return server


@pytest.fixture(scope="module")
def sagemaker(cluster: Server) -> BaseClient:
    return cluster.boto("sagemaker")


@pytest.fixture(scope="module")
def own(cluster: Server) -> Iterator[BaseClient]:
    """Returns boto3's client of Trainyard's own operations: the model is on the path that
    `trainyard env` sets."""
    before = os.environ.get("AWS_DATA_PATH")
    os.environ["AWS_DATA_PATH"] = cluster.env["AWS_DATA_PATH"]
    yield cluster.boto("trainyard")
    if before is None:
        del os.environ["AWS_DATA_PATH"]
    else:
        os.environ["AWS_DATA_PATH"] = before


def phases(description: dict[str, Any]) -> list[str]:
    return [one["Status"] for one in description["SecondaryStatusTransitions"]]


def wait_for_line(cluster: Server, name: str, line: str, times: int = 1) -> None:
    wait_for(
        lambda: jobs.log_lines(cluster.boto("logs"), name).count(line) >= times,
        f"{name} to say '{line}' {times} times",
    )


def test_an_interrupted_job_starts_again(
    cluster: Server, sagemaker: BaseClient, own: BaseClient
) -> None:
    name = fresh("interrupted")
    script = (
        "trap 'echo told; echo half > /opt/ml/model/half; exit 0' TERM; echo begins; while true; do"
        " sleep 0.05; done"
    )
    sagemaker.create_training_job(**jobs.request(name, script, hosts=2, **SPOT))
    wait_for_line(cluster, name, "begins", 2)
    answer = own.interrupt_training_job(
        TrainingJobName=name, HostName="algo-2", NoticeInSeconds=5, Reason="the machine is serviced"
    )
    assert answer["AttemptNumber"] == 1 and answer["TrainingJobArn"].endswith(
        f":training-job/{name}"
    )
    assert "algo-2: the machine is serviced" in answer["StatusMessage"]
    wait_for_line(cluster, name, "begins", 4)
    description = sagemaker.describe_training_job(TrainingJobName=name)
    shown = phases(description)
    assert (
        shown[0] == "Starting" and shown.count("Interrupted") == 1 and shown.count("Training") == 2
    ), shown
    assert shown[shown.index("Interrupted") + 1] == "Starting", shown
    assert jobs.log_lines(cluster.boto("logs"), name).count("told") == 2, "both had notice"
    streams = cluster.boto("logs").describe_log_streams(
        logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=f"{name}/"
    )["logStreams"]
    assert len(streams) == 4, "each attempt has its own"
    keys = [
        one["Key"]
        for one in (
            cluster.boto("s3")
            .list_objects_v2(Bucket="yard", Prefix=f"models/{name}/")
            .get("Contents", [])
        )
    ]
    assert keys == [], "no model of half a run"
    sagemaker.stop_training_job(TrainingJobName=name)
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Stopped"
    assert 0 < done["BillableTimeInSeconds"] <= done["TrainingTimeInSeconds"]
    assert "cannot be interrupted" in refusal(
        own.interrupt_training_job, "ValidationException", TrainingJobName=name
    )


def test_a_job_without_spot_can_be_interrupted_too(
    cluster: Server, sagemaker: BaseClient, own: BaseClient
) -> None:
    name = fresh("lasting")
    sagemaker.create_training_job(**jobs.request(name, "echo begins; exec sleep 1000"))
    wait_for_line(cluster, name, "begins")
    output = cluster.aws(
        "trainyard",
        "interrupt-training-job",
        "--training-job-name",
        name,
        "--notice-in-seconds",
        "0",
    )
    assert "not a spot job" in output["StatusMessage"]
    wait_for_line(cluster, name, "begins", 2)
    assert "its only host is algo-1" in refusal(
        own.interrupt_training_job, "ValidationException", TrainingJobName=name, HostName="algo-7"
    )
    sagemaker.stop_training_job(TrainingJobName=name)
    jobs.wait_until(sagemaker, name)
    assert (
        refusal(own.interrupt_training_job, "ValidationException", TrainingJobName="nobody")
        == "Requested resource not found."
    )


def processes_with(mark: str) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(int(entry))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("interrupted_job", ["agent", "machine"])
def test_dead_agents_and_machines_of_a_spot_job_are_replaced(
    cluster: Server, sagemaker: BaseClient, interrupted_job: str
) -> None:
    name = fresh(interrupted_job)
    sagemaker.create_training_job(
        **jobs.request(name, "echo begins; exec sleep 1000", hosts=2, **SPOT)
    )
    wait_for_line(cluster, name, "begins", 2)
    agents = cluster.agents()
    assert len(agents) == 2
    if interrupted_job == "agent":
        os.kill(agents[0], signal.SIGKILL)
    else:  # kills all processes on it, and the server
        cluster.kill()
        for agent in agents:
            os.kill(agent, signal.SIGKILL)
        for process in processes_with(f"TRAINING_JOB_NAME={name}"):
            with contextlib.suppress(ProcessLookupError):  # it has ended with its init
                os.kill(process, signal.SIGKILL)
        cluster.start()
    wait_for_line(cluster, name, "begins", 4)
    shown = phases(sagemaker.describe_training_job(TrainingJobName=name))
    assert shown.count("Interrupted") == 1 and shown.count("Training") == 2, shown
    sagemaker.stop_training_job(TrainingJobName=name)
    jobs.wait_until(sagemaker, name)


def test_other_jobs_are_retried_as_often_as_requested(
    cluster: Server, sagemaker: BaseClient
) -> None:
    name = fresh("retried")
    sagemaker.create_training_job(
        **jobs.request(
            name, "echo begins; exec sleep 1000", RetryStrategy={"MaximumRetryAttempts": 1}
        )
    )
    for attempt in (1, 2):
        wait_for_line(cluster, name, "begins", attempt)
        os.kill(cluster.agents()[0], signal.SIGKILL)
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Failed" and done["FailureReason"].startswith(
        "InternalServerError"
    ), done["FailureReason"]
    assert done["RetryStrategy"] == {"MaximumRetryAttempts": 1}
    assert phases(done).count("Training") == 2


def test_the_agent_enforces_the_time_limit_while_the_server_is_not_running(
    cluster: Server, sagemaker: BaseClient
) -> None:
    name = fresh("alone")
    sagemaker.create_training_job(
        **jobs.request(
            name,
            "echo begins; echo x > /opt/ml/model/x; exec sleep 1000",
            StoppingCondition={"MaxRuntimeInSeconds": 3},
        )
    )
    wait_for_line(cluster, name, "begins")
    cluster.kill()
    wait_for(lambda: not processes_with(f"TRAINING_JOB_NAME={name}"), "its processes to end")
    cluster.start()
    done = jobs.wait_until(sagemaker, name)
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")


def test_a_spot_job_waits_no_longer_than_it_may(cluster: Server, sagemaker: BaseClient) -> None:
    big, name = fresh("big"), fresh("waits")
    sagemaker.create_training_job(
        **jobs.request(big, "exec sleep 1000", instance_type="ml.m5.xlarge")
    )
    sagemaker.create_training_job(
        **jobs.request(
            name,
            instance_type="ml.m5.xlarge",
            EnableManagedSpotTraining=True,
            StoppingCondition={"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 2},
        )
    )
    done = jobs.wait_until(sagemaker, name)
    assert (done["TrainingJobStatus"], done["SecondaryStatus"]) == (
        "Stopped",
        "MaxWaitTimeExceeded",
    )
    assert phases(done) == ["Starting", "Stopping", "MaxWaitTimeExceeded"]
    sagemaker.stop_training_job(TrainingJobName=big)
    jobs.wait_until(sagemaker, big)


def test_a_warm_pool_is_kept_reused_and_given_back(cluster: Server, sagemaker: BaseClient) -> None:
    first, other, second = fresh("first"), fresh("other"), fresh("second")
    warm = {"InstanceType": "ml.m5.xlarge", "KeepAlivePeriodInSeconds": 60}
    sagemaker.create_training_job(**jobs.request(first, "sleep 1", ResourceConfig=warm))
    jobs.wait_until(sagemaker, first, ("Training",))
    assert sagemaker.describe_training_job(TrainingJobName=first)["WarmPoolStatus"] == {
        "Status": "InUse"
    }
    done = jobs.wait_until(sagemaker, first)
    assert done["WarmPoolStatus"]["Status"] == "Available"
    sagemaker.create_training_job(**jobs.request(other, instance_type="ml.t3.medium"))
    wait_for(
        lambda: (
            "held by the warm pool"
            in sagemaker.describe_training_job(TrainingJobName=other)["SecondaryStatusTransitions"][
                -1
            ]["StatusMessage"]
        ),
        "the other to wait for the pool",
    )
    cluster.kill()
    cluster.start()
    sagemaker.create_training_job(**jobs.request(second, ResourceConfig=warm))
    done = jobs.wait_until(sagemaker, second)
    assert done["TrainingJobStatus"] == "Completed"
    left = sagemaker.describe_training_job(TrainingJobName=first)["WarmPoolStatus"]
    assert (
        left["Status"] == "Reused"
        and left["ReusedByJob"] == second
        and left["ResourceRetainedBillableTimeInSeconds"] > 0
    )
    listed = sagemaker.list_training_jobs(WarmPoolStatusEquals="Available")["TrainingJobSummaries"]
    assert [(one["TrainingJobName"], one["WarmPoolStatus"]["Status"]) for one in listed] == [
        (second, "Available")
    ]
    sagemaker.update_training_job(
        TrainingJobName=second, ResourceConfig={"KeepAlivePeriodInSeconds": 0}
    )
    assert (
        sagemaker.describe_training_job(TrainingJobName=second)["WarmPoolStatus"]["Status"]
        == "Terminated"
    )
    assert jobs.wait_until(sagemaker, other)["TrainingJobStatus"] == "Completed", (
        "the machine is free again"
    )
    assert "cannot be updated" in refusal(
        sagemaker.update_training_job,
        "ValidationException",
        TrainingJobName=other,
        ResourceConfig={"KeepAlivePeriodInSeconds": 5},
    )


def test_a_trace_takes_spot_jobs_only(start: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "# seconds,region,instance type,hosts\n"
        + "".join(f"{second},,,9\n" for second in range(3, 120, 3))
    )
    server = start(
        "[jobs]\nstop_grace_seconds = 1\n[spot]\nnotice_seconds = 1\ntrace ="
        f" '{trace}'\n[[machine]]\nname = 'box'\ncpus = 4.0\nmemory_gib = 16.0\n"
    )
    server.boto("s3").create_bucket(Bucket="yard")
    client = server.boto("sagemaker")
    client.create_training_job(**jobs.request("lasting", "echo begins; exec sleep 1000"))
    client.create_training_job(**jobs.request("spot", "echo begins; exec sleep 1000", **SPOT))
    wait_for_line(server, "spot", "begins", 2)
    shown = client.describe_training_job(TrainingJobName="spot")["SecondaryStatusTransitions"]
    assert any(
        one["Status"] == "Interrupted" and "of the trace" in one["StatusMessage"] for one in shown
    ), shown
    assert "Interrupted" not in phases(client.describe_training_job(TrainingJobName="lasting"))
    for name in ("lasting", "spot"):
        client.stop_training_job(TrainingJobName=name)
        jobs.wait_until(client, name)


def test_a_trace_takes_what_runs_in_an_environment_of_spot_machines(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    """Uses the usual rule for retries: attempts that ended with a lost host are retried, failed
    ones are not."""
    trace = tmp_path / "trace.csv"
    trace.write_text("".join(f"{second},,,9\n" for second in range(1, 120)))
    server = start(
        "[jobs]\nstop_grace_seconds = 1\n[spot]\nnotice_seconds = 1\ntrace ="
        f" '{trace}'\n[[machine]]\nname = 'box'\ncpus = 4.0\nmemory_gib = 16.0\n"
    )
    batch = server.boto("batch")
    for name, kind in (("spot", "SPOT"), ("lasting", "EC2")):
        batch.create_compute_environment(
            computeEnvironmentName=name,
            type="MANAGED",
            computeResources={"type": kind, "minvCpus": 0, "maxvCpus": 4},
        )
        batch.create_job_queue(
            jobQueueName=name,
            priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": name}],
        )
    rules = {
        "attempts": 2,
        "evaluateOnExit": [
            {"onStatusReason": "Host EC2*", "action": "RETRY"},
            {"onReason": "*", "action": "EXIT"},
        ],
    }
    stays = nodes.submit(batch, "lasting", nodes.container("exec sleep 1000"))
    again = nodes.submit(
        batch,
        "spot",
        nodes.container("[ $AWS_BATCH_JOB_ATTEMPT = 2 ] && exit 3; exec sleep 1000"),
        retryStrategy=rules,
    )
    once = nodes.submit(batch, "spot", nodes.container("exec sleep 1000"))
    ended = nodes.wait_until(batch, once)
    assert ended["status"] == "FAILED" and ended["statusReason"].startswith("Host EC2"), ended
    ended = nodes.wait_until(batch, again)
    reasons = [attempt["statusReason"] for attempt in ended["attempts"]]
    assert len(reasons) == 2 and reasons[0].startswith("Host EC2"), ended
    assert nodes.describe(batch, stays)["status"] == "RUNNING"
    batch.terminate_job(jobId=stays, reason="enough")
    nodes.wait_until(batch, stays)


def test_nothing_is_left(cluster: Server) -> None:
    wait_for(
        lambda: not leftovers.picture(cluster.data)["attempts"], "every attempt to be removed", 60
    )
    assert not cluster.agents()
