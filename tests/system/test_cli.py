"""Tests the output and the exit codes of the command line with a live server."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests import jobs, trainyard_server
from tests.trainyard_server import Server

WAIT = trainyard_server.WAIT_SECONDS_MAX


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    return start(
        '[jobs]\nstop_grace_seconds = 3\n\n[prices]\ncurrency = "EUR"\n\n[[prices.instance]]\n'
        'type = "ml.t3.medium"\non_demand = 3600.0\nspot = 900.0\n',
        bucket="yard",
    )


@pytest.fixture(scope="module")
def cli(server: Server) -> Callable[..., str]:
    """Runs the CLI: cli("jobs", "--json") returns its output."""

    def run(
        *arguments: str, code: int = 0, environment: dict[str, str] | None = None, **more: Any
    ) -> str:
        done = subprocess.run(
            [trainyard_server.PROGRAM, *arguments],
            env=server.environment() | (environment or {}),
            capture_output=True,
            text=True,
            timeout=WAIT,
            stdin=subprocess.DEVNULL,
            **more,
        )
        assert done.returncode == code, (
            f"trainyard {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout if code == 0 else done.stdout + done.stderr

    return run


def submit(server: Server, name: str, script: str = "true", **more: Any) -> None:
    server.boto("sagemaker").create_training_job(**jobs.request(name, script, **more))


def test_a_job_is_listed_described_and_charged(server: Server, cli: Callable[..., str]) -> None:
    submit(
        server,
        "first",
        "echo loss=0.5; sleep 1",
        hosts=2,
        Tags=[{"Key": "project", "Value": "digits"}],
        AlgorithmSpecification={"MetricDefinitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]},
    )
    jobs.wait_until(server.boto("sagemaker"), "first")
    line = next(line for line in cli("jobs").splitlines() if line.startswith("first "))
    assert "Completed" in line and "2 x ml.t3.medium" in line and "EUR" in line
    assert "\033" not in line, "no colours in a pipe"

    page = cli("describe", "first")
    for part in (
        "Timeline",
        "Downloading",
        "Training",
        "algo-2",
        "loss",
        "0.5",
        "s3://yard/models/first/output/model.tar.gz",
        "project=digits",
    ):
        assert part in page, f"{part}: {page}"
    described = json.loads(cli("describe", "first", "--json"))
    assert described["TrainingJobStatus"] == "Completed"

    # An instance costs 1 EUR a second, so the cost is the billable seconds of both hosts.
    listed = {job["Name"]: job for job in json.loads(cli("jobs", "--json"))["Jobs"]}["first"]
    assert listed["Cost"] == {
        "Currency": "EUR",
        "Amount": f"{2 * described['BillableTimeInSeconds']}.000000",
        "OnDemandAmount": f"{2 * described['TrainingTimeInSeconds']}.000000",
    }
    for by, key in (
        ("tag:project", "digits"),
        ("instance", "ml.t3.medium"),
        ("day", None),
        ("user", None),
        ("job", "first"),
    ):
        report = json.loads(cli("cost", "--by", by, "--json"))
        groups = {group["Key"]: group for group in report["Groups"]}
        assert report["Currency"] == "EUR"
        assert float(report["Total"]["Amount"]) == sum(
            float(group["Amount"]) for group in groups.values()
        )
        if key:
            assert float(groups[key]["Amount"]) >= 2 * described["BillableTimeInSeconds"]
    assert "digits" in cli("cost", "--by", "tag:project")


def test_jobs_are_found_by_name_status_and_tag(server: Server, cli: Callable[..., str]) -> None:
    submit(server, "other", "exit 3", Tags=[{"Key": "project", "Value": "letters"}])
    jobs.wait_until(server.boto("sagemaker"), "other")
    names = lambda *filters: {
        job["Name"] for job in json.loads(cli("jobs", "--json", *filters))["Jobs"]
    }
    assert names("--name", "othe") == {"other"}
    assert names("--tag", "project=letters") == {"other"}
    assert "other" in names("--status", "failed") and "other" not in names("--status", "Completed")
    assert "other" in names("--since", "1h")
    assert "AlgorithmError" in cli("jobs", "--name", "other")
    assert "unknown status 'Faled': one of" in cli("jobs", "--status", "Faled", code=1)


def test_logs_of_many_hosts_are_followed_to_the_end(
    server: Server, cli: Callable[..., str]
) -> None:
    hosts = 3
    submit(
        server,
        "talks",
        'for i in 1 2 3; do echo "line $i of $HOSTNAME"; sleep 0.3; done; printf "\\033[2Jevil\\n"',
        hosts=hosts,
    )
    out = cli("logs", "-f", "talks")
    for host in range(1, hosts + 1):
        lines = [line for line in out.splitlines() if re.match(rf"algo-{host} +\|", line)]
        assert [line.split("| ")[1] for line in lines] == [
            f"line {i} of algo-{host}" for i in (1, 2, 3)
        ] + ["?[2Jevil"], out
    assert cli("logs", "talks") == out, "the same once the job has ended"
    only = cli("logs", "talks", "--host", "2", "--times")
    assert "algo-2" in only and "algo-1" not in only and re.match(r"\d{4}-\d\d-\d\dT", only)
    assert cli("logs", "talks", "--since", "0s") == ""


@pytest.mark.parametrize(
    "script, status, code", [("true", "Completed", 0), ("echo no >&2; exit 7", "Failed", 3)]
)
def test_logs_exits_with_the_result_of_the_job(
    server: Server, cli: Callable[..., str], script: str, status: str, code: int
) -> None:
    name = f"ends-{code}"
    submit(server, name, script)
    out = subprocess.run(
        [trainyard_server.PROGRAM, "logs", "-f", name],
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert out.returncode == code, out.stderr
    assert f"{name} {status}" in out.stderr


def test_logs_reads_more_than_a_page_of_streams(server: Server, cli: Callable[..., str]) -> None:
    """A page of the API holds fifty streams; this job has the streams of sixty hosts."""
    logs = server.boto("logs")
    submit(server, "wide", "true")
    jobs.wait_until(server.boto("sagemaker"), "wide")
    now = int(time.time() * 1000)
    for host in range(2, 61):
        stream = f"wide/algo-{host}-1"
        logs.create_log_stream(logGroupName="/aws/sagemaker/TrainingJobs", logStreamName=stream)
        logs.put_log_events(
            logGroupName="/aws/sagemaker/TrainingJobs",
            logStreamName=stream,
            logEvents=[{"timestamp": now - host, "message": f"I am {host}"}],
        )
    lines = [line.split("| ")[1] for line in cli("logs", "wide").splitlines()]
    assert lines == [f"I am {host}" for host in range(60, 1, -1)], "every stream, by time"


def test_submit_uploads_the_data_of_a_job_file_and_follows_it(
    server: Server, cli: Callable[..., str], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "b.txt").write_text("hello from b")
    (tmp_path / "data" / ".hidden").write_text("not me")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "run.sh").write_text(
        "cat /opt/ml/input/data/train/deep/b.txt; echo; ls -A /opt/ml/input/data/train; echo"
        " rate=$RATE\n"
    )
    (tmp_path / "job.toml").write_text("""
name = "from-file"
image = "trainyard/host"
instance_type = "ml.t3.medium"
output = "s3://new-bucket/models"
channels = {train = "./data"}
code = {directory = "./src", entry = "run.sh"}
environment = {RATE = 0.5}
""")
    out = cli("submit", str(tmp_path / "job.toml"), "--follow")
    assert "upload train" not in out, "progress is on standard error"
    assert (
        "algo-1 | hello from b" in out
        and "algo-1 | deep" in out
        and "hidden" not in out
        and "rate=0.5" in out
    )
    assert re.search(r"^from-file Completed after ", out, re.M), out
    dry = json.loads(cli("submit", str(tmp_path / "job.toml"), "--dry-run", "--name", "again"))
    assert dry["TrainingJobName"] == "again"
    described = server.boto("sagemaker").describe_training_job(TrainingJobName="from-file")
    account = described["TrainingJobArn"].split(":")[4]
    assert dry["RoleArn"] == described["RoleArn"] == f"arn:aws:iam::{account}:role/trainer"
    assert "already exists" in cli("submit", str(tmp_path / "job.toml"), code=1)


@pytest.mark.parametrize(
    ("instance_type", "entry", "refusal"),
    [
        (
            "ml.m5.larg",
            "run.sh",
            "unknown instance type 'ml.m5.larg'; did you mean ml.m5.large?",
        ),
        ("ml.m5.large", "rum.sh", "rum.sh"),
    ],
)
def test_invalid_submissions_upload_nothing(
    server: Server,
    cli: Callable[..., str],
    tmp_path: pathlib.Path,
    instance_type: str,
    entry: str,
    refusal: str,
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "run.sh").write_text("true\n")
    (tmp_path / "job.toml").write_text(f"""
name = "wrong"
image = "trainyard/host"
instance_type = "{instance_type}"
output = "s3://never-made/models"
code = {{directory = "./src", entry = "{entry}"}}
""")
    assert refusal in cli("submit", str(tmp_path / "job.toml"), code=1)
    buckets = server.boto("s3").list_buckets()["Buckets"]
    assert "never-made" not in {bucket["Name"] for bucket in buckets}


def test_settings_without_effect_are_in_the_log_and_in_describe(
    server: Server, cli: Callable[..., str]
) -> None:
    submit(
        server,
        "in-a-vpc",
        "echo ran",
        hosts=2,
        VpcConfig={"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        ExperimentConfig={"ExperimentName": "one"},
    )
    jobs.wait_until(server.boto("sagemaker"), "in-a-vpc")
    page = cli("describe", "in-a-vpc")
    lines = jobs.log_lines(server.boto("logs"), "in-a-vpc")
    for member in ("VpcConfig", "ExperimentConfig"):
        assert f"{member} has no effect here: " in page
        printed = [line for line in lines if f"{member} has no effect here: " in line]
        assert len(printed) == 1, "only in the log of the first host"
    assert sorted(line for line in lines if line == "ran") == ["ran", "ran"]


def test_ctrl_c_leaves_the_job_running(server: Server, cli: Callable[..., str]) -> None:
    submit(server, "stays", "echo begun; sleep 60")
    follower = subprocess.Popen(
        [trainyard_server.PROGRAM, "logs", "-f", "stays"],
        env=server.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout.readline() == "algo-1 | begun\n"
    follower.send_signal(signal.SIGINT)
    _, errors = follower.communicate(timeout=WAIT)
    assert follower.returncode == 130 and "stays keeps running" in errors
    assert "stays" in cli("top", "--once") and "algo-1" in cli("top", "stays", "--once")
    assert "has ended: Stopped" in cli("stop", "stays", "--wait")
    assert (
        subprocess.run(
            [trainyard_server.PROGRAM, "logs", "-f", "stays"],
            env=server.environment(),
            capture_output=True,
            timeout=WAIT,
        ).returncode
        == 4
    ), "4 stands for Stopped"


def test_the_local_server_is_found_without_any_setting(server: Server) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [trainyard_server.PROGRAM, "jobs", "--max", "1"],
        env=bare | {"TRAINYARD_DATA": server.data},
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 0 and "name" in done.stdout, done.stderr
    done = subprocess.run(
        [trainyard_server.PROGRAM, "jobs"],
        env=bare | {"TRAINYARD_DATA": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 1 and "trainyard serve" in done.stderr


def test_a_server_is_reached_over_tls(server: Server, cli: Callable[..., str]) -> None:
    over_tls = {"AWS_ENDPOINT_URL": server.env["AWS_ENDPOINT_URL"].replace("http://", "https://")}
    assert "name" in cli("jobs", "--max", "1", environment=over_tls)
    printed = cli(
        "jobs",
        code=1,
        environment=over_tls | {"AWS_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt"},
    )
    assert "AWS_CA_BUNDLE" in printed


def test_mistakes_are_explained(server: Server, cli: Callable[..., str]) -> None:
    assert "did you mean `trainyard jobs`?" in cli("jbos", code=2)
    assert "missing argument JOB" in cli("describe", code=2)
    assert "`trainyard jobs` lists the jobs, with the ids of Batch jobs" in cli(
        "describe", "nothing-there", code=1
    )
    cli("jobs", code=1, environment={"AWS_SECRET_ACCESS_KEY": "wrong"})
    assert "127.0.0.1:1" in cli(
        "jobs", code=1, environment={"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    )
    for command in (
        "jobs",
        "describe",
        "logs",
        "top",
        "stop",
        "interrupt",
        "cost",
        "submit",
        "serve",
    ):
        assert "examples:" in cli(command, "--help")
