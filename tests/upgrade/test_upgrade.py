"""Tests upgrades from the last release: the current server continues a release's data directory
with its running jobs, each server works with the other's agents, programs are replaced one by one,
and a downgrade is possible.

Needs the release's programs: tests/upgrade/prepare."""

import glob
import os
import pathlib
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import boto3.s3.transfer
import pytest

from tests import jobs, nodes, trainyard_server
from tests.trainyard_server import Server, wait_for
from tests.upgrade.last_release import HOST_IMAGE
from tests.upgrade.last_release import PROGRAMS as RELEASE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")
TODAY = os.path.dirname(trainyard_server.PROGRAM)
AGENTS = ("trainyard-agent", "trainyard-entry", "trainyard-trainer")
# A config that both versions read. A gang of two and a Batch job of two use its six processors.
CONFIG = (
    "[jobs]\nstop_grace_seconds = 3\n[[machine]]\nname = 'box'\ncpus = 6.0\nmemory_gib = 24.0\n"
)
PART = 5 << 20
FINAL = ("SUCCEEDED", "FAILED")
Objects = dict[str, tuple[bytes, str, dict[str, str]]]  # name -> content, type, metadata


def old_request(name: str, script: str = "true", **more: Any) -> dict[str, Any]:
    """Returns a job request with an image name that the last release supports, too."""
    return jobs.request(name, script, image=HOST_IMAGE, **more)


def waits(name: str) -> str:
    """Returns a script that counts until let_go() ends it."""
    return (
        f"trap 'echo told; exit 0' USR1; i=0; while :; do i=$((i+1)); echo {name} $i; sleep 0.2;"
        " done"
    )


def let_go(name: str) -> None:
    """Ends the scripts of waits(name), on each host."""
    signalled = 0
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/sh") and any(
            f"echo {name} $i".encode() in word for word in words[2:3]
        ):
            os.kill(int(path.split("/")[2]), signal.SIGUSR1)
            signalled += 1
    assert signalled, f"no process of {name} runs"


def exchange(bin_directory: str | os.PathLike[str], names: Sequence[str], source: str) -> None:
    """Replaces programs, as an upgrade of the package does; running processes continue."""
    for name in names:
        shutil.copy(os.path.join(source, name), os.path.join(bin_directory, name + ".new"))
        os.replace(os.path.join(bin_directory, name + ".new"), os.path.join(bin_directory, name))


class Installed(Server):
    """Is a server with a separate folder for its programs."""

    bin: str


@pytest.fixture
def install(tmp_path: pathlib.Path) -> Iterator[Callable[..., Installed]]:
    """Returns install(server=RELEASE, agent=TODAY), which returns a server with programs of those
    releases, not started."""
    assert os.path.exists(os.path.join(RELEASE, "trainyard")), "run tests/upgrade/prepare first"
    made: list[Installed] = []

    def make(server: str, agent: str) -> Installed:
        bin_directory = tmp_path / f"bin{len(made)}"
        bin_directory.mkdir()
        exchange(str(bin_directory), ["trainyard"], server)
        exchange(str(bin_directory), AGENTS, agent)
        one = Installed(tmp_path / f"data{len(made)}", CONFIG)
        one.bin = str(bin_directory)
        one.program = os.path.join(one.bin, "trainyard")
        made.append(one)
        return one

    yield make
    for one in made:
        exchange(one.bin, ["trainyard"], TODAY)
        if hasattr(one, "log"):
            one.clean()


def prepare_queue(server: Server) -> None:
    batch = server.boto("batch")
    nodes.make_queue(batch, 6, "first", subnets=["subnet-1"])
    batch.register_job_definition(
        jobDefinitionName="two",
        type="container",
        containerProperties={
            "image": HOST_IMAGE,
            "command": ["true"],
            "resourceRequirements": [
                {"type": "VCPU", "value": "2"},
                {"type": "MEMORY", "value": "256"},
            ],
        },
    )


def submit(server: Server, name: str, script: str) -> str:
    return server.boto("batch").submit_job(
        jobName=name,
        jobQueue="first",
        jobDefinition="two",
        containerOverrides={"command": ["/bin/sh", "-c", script]},
    )["jobId"]


def batch_status(server: Server, job: str, statuses: Collection[str]) -> dict[str, Any]:
    seen = {}

    def reached() -> bool:
        seen.update(server.boto("batch").describe_jobs(jobs=[job])["jobs"][0])
        return seen["status"] in statuses

    wait_for(reached, f"the Batch job to be one of {statuses}")
    return seen


def batch_lines(server: Server, job: str) -> list[str]:
    stream = batch_status(server, job, FINAL)["container"]["logStreamName"]
    events = server.boto("logs").get_log_events(
        logGroupName="/aws/batch/job", logStreamName=stream, startFromHead=True
    )["events"]
    return [event["message"] for event in events]


def put_objects(server: Server, prefix: str) -> Objects:
    s3 = server.boto("s3")
    s3.put_object(Bucket="yard", Key=f"{prefix}/small", Body=b"small", Metadata={"a": "b"})
    upload = boto3.s3.transfer.TransferConfig(
        multipart_threshold=PART, multipart_chunksize=PART, use_threads=False
    )
    path = server.data + ".big"
    with open(path, "wb") as file:
        file.write(bytes(range(256)) * (PART * 5 // 2 // 256))
    s3.upload_file(
        path,
        "yard",
        f"{prefix}/big",
        Config=upload,
        ExtraArgs={"Metadata": {"c": "d"}, "ContentType": "text/big"},
    )
    return read_objects(server, prefix)


def read_objects(server: Server, prefix: str) -> Objects:
    found = {}
    for key in ("small", "big"):
        read = server.boto("s3").get_object(Bucket="yard", Key=f"{prefix}/{key}")
        found[key] = (read["Body"].read(), read["ContentType"], read["Metadata"])
    assert found["big"][0] == bytes(range(256)) * (PART * 5 // 2 // 256)
    return found


def run_one(server: Server, name: str, **more: Any) -> dict[str, Any]:
    server.boto("sagemaker").create_training_job(
        **old_request(
            name,
            "cat /opt/ml/input/data/in/*; echo > /opt/ml/model/$(hostname)",
            channels={"in": ("s3://yard/in/small", "FullyReplicated")},
            **more,
        )
    )
    done = jobs.wait_until(server.boto("sagemaker"), name)
    assert done["TrainingJobStatus"] == "Completed", done["FailureReason"]
    assert jobs.log_lines(server.boto("logs"), name) == ["small"] * more.get("hosts", 1)
    assert (
        server.boto("s3")
        .get_object(
            Bucket="yard", Key=done["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://yard/")
        )["Body"]
        .read()
    )
    return done


def fill(server: Server) -> dict[str, Any]:
    """Makes the data of a release: ended, running and waiting training and Batch jobs, and
    objects."""
    server.boto("s3").create_bucket(Bucket="yard")
    objects = put_objects(server, "in")
    prepare_queue(server)
    done = run_one(server, "done")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**old_request("fails", "echo about to; exit 3"))
    failed = jobs.wait_until(sagemaker, "fails")
    over = submit(server, "over", "echo over")
    assert batch_lines(server, over) == ["over"]
    sagemaker.create_training_job(**old_request("runs", waits("runs"), hosts=2))
    jobs.wait_until(sagemaker, "runs", ("Training",))
    running = submit(server, "running", waits("running"))
    batch_status(server, running, ("RUNNING",))
    sagemaker.create_training_job(**old_request("queued", "echo at last"))
    queued = submit(server, "queued", "echo at last")
    wait_for(lambda: len(jobs.log_lines(server.boto("logs"), "runs")) >= 4, "lines of both hosts")
    return {
        "objects": objects,
        "done": done,
        "fails": failed,
        "over": over,
        "running": running,
        "queued": queued,
    }


def check_history(server: Server, left: dict[str, Any]) -> None:
    """Checks that jobs that had ended are described as before."""
    for name in ("done", "fails"):
        now = server.boto("sagemaker").describe_training_job(TrainingJobName=name)
        before = {key: value for key, value in left[name].items() if key != "ResponseMetadata"}
        assert {key: now.get(key) for key in before} == before
    assert jobs.log_lines(server.boto("logs"), "fails") == ["about to"]
    assert batch_lines(server, left["over"]) == ["over"]
    assert read_objects(server, "in") == left["objects"]
    names = {
        job["TrainingJobName"]
        for job in server.boto("sagemaker").list_training_jobs()["TrainingJobSummaries"]
    }
    assert {"done", "fails", "runs", "queued"} <= names


def counted(lines: Sequence[str], name: str) -> bool:
    """Returns True if a log has each number once, in order and to the end."""
    return lines == [f"{name} {number}" for number in range(1, len(lines))] + ["told"]


def finish_all(server: Server, left: dict[str, Any]) -> None:
    """Checks that running jobs continue to their end, and that waiting jobs run."""
    for name, job in (("runs", None), ("running", left["running"])):
        let_go(name)
        if job:
            assert batch_status(server, job, FINAL)["status"] == "SUCCEEDED"
            assert counted(batch_lines(server, job), name)
            continue
        done = jobs.wait_until(server.boto("sagemaker"), name)
        assert done["TrainingJobStatus"] == "Completed", done
        for host in (1, 2):
            assert counted(jobs.log_lines(server.boto("logs"), name, host), name)
    assert jobs.wait_until(server.boto("sagemaker"), "queued")["TrainingJobStatus"] == "Completed"
    assert jobs.log_lines(server.boto("logs"), "queued") == ["at last"]
    assert batch_lines(server, left["queued"]) == ["at last"]


@pytest.mark.parametrize("how", ("stop", "kill"))
def test_the_current_server_continues_a_release_data_directory(
    install: Callable[..., Installed], how: str
) -> None:
    """Replaces the release's programs by the current ones before the server is started again."""
    server = install(RELEASE, RELEASE).start()
    left = fill(server)
    getattr(server, how)()
    agents = sorted(server.agents())
    assert len(agents) == 3, "two hosts and a Batch job"
    exchange(server.bin, ["trainyard", *AGENTS], TODAY)
    server.start()
    assert sorted(server.agents()) == agents, "they continue"
    copies = glob.glob(server.data + "/ledger.db.version-*")
    assert len(copies) == 1 and os.path.getsize(copies[0]) > 0
    check_history(server, left)
    finish_all(server, left)
    run_one(server, "after")
    put_objects(server, "after")
    server.stop()
    server.start()
    check_history(server, left)
    assert glob.glob(server.data + "/ledger.db.version-*") == copies, "one copy for each migration"
    assert "cannot be read" not in server.log_text()


@pytest.mark.parametrize("which", ("today", "release"))
def test_each_server_works_with_the_agents_of_the_other(
    install: Callable[..., Installed], which: str
) -> None:
    server = install(TODAY, RELEASE) if which == "today" else install(RELEASE, TODAY)
    server.start()
    server.boto("s3").create_bucket(Bucket="yard")
    put_objects(server, "in")
    prepare_queue(server)
    run_one(server, "gang", hosts=2)
    run_one(server, "kept", CheckpointConfig={"S3Uri": "s3://yard/kept"})
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(
        **old_request("stopped", f"echo > /opt/ml/model/part; {waits('stopped')}")
    )
    sagemaker.create_training_job(**old_request("runs", waits("runs"), hosts=2))
    for name in ("stopped", "runs"):
        jobs.wait_until(sagemaker, name, ("Training",))
    sagemaker.stop_training_job(TrainingJobName="stopped")
    assert jobs.wait_until(sagemaker, "stopped")["TrainingJobStatus"] == "Stopped"
    server.kill()
    server.start()
    running = submit(server, "running", waits("running"))
    batch_status(server, running, ("RUNNING",))
    for name in ("runs", "running"):
        let_go(name)
    assert batch_status(server, running, FINAL)["status"] == "SUCCEEDED"
    assert counted(batch_lines(server, running), "running")
    assert jobs.wait_until(server.boto("sagemaker"), "runs")["TrainingJobStatus"] == "Completed"
    for host in (1, 2):
        assert counted(jobs.log_lines(server.boto("logs"), "runs", host), "runs")
    server.boto("sagemaker").create_training_job(**old_request("fails", "exit 3"))
    assert jobs.wait_until(server.boto("sagemaker"), "fails")["FailureReason"].startswith(
        "AlgorithmError"
    )
    assert "is refused" not in server.log_text() and "link is closed" not in server.log_text()


def test_programs_can_be_replaced_one_by_one(install: Callable[..., Installed]) -> None:
    """Replaces agents first, then the server; at each step there are jobs of both."""
    server = install(RELEASE, RELEASE).start()
    server.boto("s3").create_bucket(Bucket="yard")
    put_objects(server, "in")
    names = []
    for step in (None, AGENTS, ["trainyard"]):
        if step:
            exchange(server.bin, step, TODAY)
            server.kill()
            server.start()
        names.append(f"runs-{len(names)}")
        server.boto("sagemaker").create_training_job(**old_request(names[-1], waits(names[-1])))
        jobs.wait_until(server.boto("sagemaker"), names[-1], ("Training",))
    assert len(server.agents()) == 3, "of the release; today's with the release's server; today's"
    for name in names:
        let_go(name)
        assert jobs.wait_until(server.boto("sagemaker"), name)["TrainingJobStatus"] == "Completed"
        assert counted(jobs.log_lines(server.boto("logs"), name), name)


def test_an_old_server_rejects_the_directory_until_it_is_downgraded(
    install: Callable[..., Installed],
) -> None:
    server = install(RELEASE, RELEASE).start()
    left = fill(server)
    server.stop()
    exchange(server.bin, ["trainyard", *AGENTS], TODAY)
    server.start()
    finish_all(server, left)
    later = put_objects(server, "later")
    run_one(server, "of-today")
    server.stop()

    exchange(server.bin, ["trainyard", *AGENTS], RELEASE)
    refused = subprocess.run(
        [server.program, "serve", "--data", server.data, "--listen", server.listen],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode != 0
    assert "newer" in refused.stderr + refused.stdout

    # The log of the current server, which upgraded the directory.
    output = [line for line in server.log_text().splitlines() if "trainyard downgrade" in line]
    assert output, "the log says how to go back"
    command = [os.path.join(TODAY, "trainyard"), "downgrade", "--data", server.data]
    assert " ".join(command[1:]) in output[0]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    server.start()
    check_history(server, left)
    assert read_objects(server, "later") == later, "what was uploaded since is there"
    names = {
        job["TrainingJobName"]
        for job in server.boto("sagemaker").list_training_jobs()["TrainingJobSummaries"]
    }
    assert "of-today" not in names, "what happened since the upgrade is lost, as the command says"
    run_one(server, "of-release")
    # Upgrade again.
    server.stop()
    exchange(server.bin, ["trainyard", *AGENTS], TODAY)
    server.start()
    check_history(server, left)
    assert read_objects(server, "later") == later
    run_one(server, "of-today-again")
