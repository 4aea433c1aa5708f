"""Tests `trainyard shell`: a real terminal on this side, a real container on the other."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import jobs, trainyard_server
from tests.terminals import Terminal
from tests.trainyard_server import Server

WAIT = 20


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    # Capacity for another job in addition to the one that runs.
    one = start(
        '[jobs]\nstop_grace_seconds = 2\n\n[[machine]]\nname = "box"\ncpus = 16.0\nmemory_gib ='
        " 32.0\n"
    )
    one.boto("s3").create_bucket(Bucket="yard")
    one.boto("sagemaker").create_training_job(
        **jobs.request(
            "runs",
            "trap 'exit 0' TERM; echo begun; while :; do sleep 0.2; done",
            hosts=2,
            Environment={"COLOUR": "blue"},
        )
    )
    jobs.wait_until(one.boto("sagemaker"), "runs", ("Training",))
    trainyard_server.wait_for(
        lambda: len(jobs.log_lines(one.boto("logs"), "runs")) == 2, "both hosts to run"
    )
    return one


def shell(server: Server, *arguments: str, **more: Any) -> subprocess.CompletedProcess:
    return subprocess.run(
        [trainyard_server.PROGRAM, "shell", *arguments],
        env=server.environment(),
        timeout=WAIT,
        **({"capture_output": True} | more),
    )


@pytest.fixture
def open_shell(server: Server) -> Iterator[Callable[..., Terminal]]:
    with contextlib.ExitStack() as terminals:
        yield lambda *arguments: terminals.enter_context(Terminal(server, "shell", *arguments))


def test_a_shell_inside_the_host(server: Server, open_shell: Callable[..., Terminal]) -> None:
    one = open_shell("runs", "algo-2")
    one.type("echo I am $(hostname), $COLOUR, $TERM\r")
    one.until(r"I am algo-2, blue, xterm-256color")
    one.type("tty; ls /opt/ml/input/config/resourceconfig.json; stty size\r")
    one.until(r"/dev/pts/\d+")
    one.until(r"resourceconfig.json")
    one.until(r"30 100")
    one.resize(120, 40)
    one.process.send_signal(signal.SIGWINCH)
    trainyard_server.wait_for(
        lambda: (one.type("stty size\r"), one.read(0.3), "40 120" in one.shown)[2],
        "the new size inside",
        WAIT,
    )
    # ctrl-C goes to the program in the shell.
    one.type("sleep 1000\r")
    time.sleep(0.3)
    one.type("\x03")
    one.type("echo still he''re\r")
    one.until(r"still here")
    one.type("exit 7\r")
    assert one.ends() == 7
    assert one.is_as_before()


def test_the_terminal_is_restored_in_every_case(
    server: Server, open_shell: Callable[..., Terminal]
) -> None:
    for ending in (signal.SIGTERM, signal.SIGHUP, signal.SIGABRT):
        one = open_shell("runs", "1")
        one.type("echo rea''dy\r")
        one.until("ready")
        assert not one.is_as_before()
        one.process.send_signal(ending)
        assert one.ends() == -ending
        assert one.is_as_before(), ending
    one = open_shell("runs", "1")
    one.type("echo rea''dy\r")
    one.until("ready")
    one.type("\r~.")
    assert one.ends() == 0 and one.is_as_before()


def test_a_shell_is_in_its_hosts_own_network(server: Server) -> None:
    addresses = {
        host: (
            shell(
                server,
                "runs",
                host,
                "--",
                "/bin/sh",
                "-c",
                "readlink /proc/self/ns/net /proc/1/ns/net",
                text=True,
                stdin=subprocess.DEVNULL,
            ).stdout.split()
        )
        for host in ("1", "2")
    }
    ours = os.readlink("/proc/self/ns/net")
    for own, first in addresses.values():
        assert own == first != ours
    assert addresses["1"] != addresses["2"]


def test_commands_without_a_terminal_carry_bytes(server: Server) -> None:
    data = os.urandom(1 << 20)
    done = shell(server, "runs", "1", "--no-terminal", "cat", input=data)
    assert done.returncode == 0 and done.stdout == data, (len(done.stdout), done.stderr)
    done = shell(
        server,
        "runs",
        "2",
        "--",
        "/bin/sh",
        "-c",
        "echo out; echo err >&2; exit 42",
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 42 and set(done.stdout.split()) == {b"out", b"err"}
    assert shell(server, "runs", "1", "no-such-program", stdin=subprocess.DEVNULL).returncode != 0


def test_many_requests_are_limited_without_harm(server: Server) -> None:
    flood = subprocess.Popen(
        [trainyard_server.PROGRAM, "shell", "runs", "1", "--", "cat", "/dev/zero"],
        env=server.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert len(flood.stdout.read(8 << 20)) == 8 << 20
    # The client stops reading: everything between it and the host waits, and other shells continue.
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
        before = int(file.read().split()[1]) * 4096
    assert shell(server, "runs", "1", "echo", "fine", stdin=subprocess.DEVNULL).stdout == b"fine\n"
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
        assert int(file.read().split()[1]) * 4096 < before + (32 << 20)
    flood.kill()
    flood.wait()
    cats = "for one in /proc/[0-9]*/exe; do readlink $one; done | grep -c /cat$"
    gone = lambda: (
        shell(
            server, "runs", "1", "--", "/bin/sh", "-c", cats, stdin=subprocess.DEVNULL
        ).stdout.strip()
        == b"0"
    )
    trainyard_server.wait_for(gone, "what it ran to be gone", WAIT, interval_seconds=0.5)


def test_rights_and_errors(server: Server) -> None:
    assert (
        "runs has no host algo-3"
        in shell(server, "runs", "3", text=True, stdin=subprocess.DEVNULL).stderr
    )
    assert shell(server, "nothing", "1", stdin=subprocess.DEVNULL).returncode == 1
    server.boto("sagemaker").create_training_job(**jobs.request("over"))
    jobs.wait_until(server.boto("sagemaker"), "over")
    assert (
        "over has ended" in shell(server, "over", "1", text=True, stdin=subprocess.DEVNULL).stderr
    )
    # A job's keys cannot open a shell, not even in the same job.
    script = (
        "exec 3<>/dev/tcp/169.254.170.2/80; printf 'GET %s HTTP/1.1\\r\\nHost: x\\r\\nConnection:"
        ' close\\r\\n\\r\\n\' "$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI" >&3; cat <&3'
    )
    keys = shell(
        server, "runs", "1", "--", "/bin/bash", "-c", script, text=True, stdin=subprocess.DEVNULL
    ).stdout
    found = dict(re.findall(r'"(AccessKeyId|SecretAccessKey|Token)"\s*:\s*"([^"]+)"', keys))
    assert "AccessKeyId" in found, keys.splitlines()[:1]
    theirs = {
        "AWS_ACCESS_KEY_ID": found["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": found["SecretAccessKey"],
        "AWS_SESSION_TOKEN": found["Token"],
    }
    denied = subprocess.run(
        [trainyard_server.PROGRAM, "shell", "runs", "1"],
        env=server.environment() | theirs,
        capture_output=True,
        text=True,
        timeout=WAIT,
        stdin=subprocess.DEVNULL,
    )
    assert denied.returncode == 1 and "not authorized" in denied.stderr, denied.stderr
    log = server.log_text()
    opened = re.findall(
        r"a shell is opened .*host=runs/algo-1 .*principal=\S+ .*peer=127\.0\.0\.1:\d+"
        r" .*command=.?cat",
        log,
    )
    assert opened and "a shell has ended" in log and "exit_code=42" in log


def test_shells_are_in_the_audit_log(server: Server) -> None:
    iam = server.boto("iam")
    iam.create_user(UserName="nosy")
    statement = {"Effect": "Allow", "Action": "trainyard:DescribeJob", "Resource": "*"}
    iam.put_user_policy(
        UserName="nosy",
        PolicyName="p",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    key = iam.create_access_key(UserName="nosy")["AccessKey"]
    theirs = {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }
    denied = subprocess.run(
        [trainyard_server.PROGRAM, "shell", "runs", "2"],
        env=server.environment() | theirs,
        capture_output=True,
        text=True,
        timeout=WAIT,
        stdin=subprocess.DEVNULL,
    )
    assert denied.returncode == 1 and "not authorized" in denied.stderr, denied.stderr
    assert (
        shell(
            server,
            "runs",
            "2",
            "--",
            "/bin/sh",
            "-c",
            "sleep 1; echo hunter2",
            stdin=subprocess.DEVNULL,
        ).stdout
        == b"hunter2\n"
    )

    def recorded(event: str, key_id: str) -> list[dict[str, Any]]:
        found = server.boto("cloudtrail").lookup_events(
            LookupAttributes=[{"AttributeKey": "EventName", "AttributeValue": event}]
        )["Events"]
        return [
            record
            for record in (json.loads(one["CloudTrailEvent"]) for one in found)
            if record["userIdentity"]["accessKeyId"] == key_id
        ]

    refused = recorded("Shell", key["AccessKeyId"])
    assert [record["errorCode"] for record in refused] == ["AccessDeniedException"], refused
    assert (
        refused[0]["userIdentity"]["userName"] == "nosy"
        and recorded("ShellEnded", key["AccessKeyId"]) == []
    )
    begun = recorded("Shell", server.env["AWS_ACCESS_KEY_ID"])[0]  # the newest
    of_this_one = lambda: [
        record
        for record in recorded("ShellEnded", server.env["AWS_ACCESS_KEY_ID"])
        if record["requestID"] == begun["requestID"]
    ]
    trainyard_server.wait_for(of_this_one, "the record of the shell's end", WAIT)
    ended = of_this_one()[0]
    for record in (begun, ended):
        assert record["sourceIPAddress"] == "127.0.0.1" and "errorCode" not in record, record
        assert record["resources"][0]["ARN"].endswith(":training-job/runs") and record[
            "additionalEventData"
        ] == {"host": "algo-2"}, record
        assert "hunter2" not in json.dumps(record)
    assert ended["serviceEventDetails"]["durationSeconds"] >= 1, ended


def test_a_shell_ends_with_its_job_and_its_server(
    server: Server, open_shell: Callable[..., Terminal]
) -> None:
    one = open_shell("runs", "1")
    one.type("echo rea''dy\r")
    one.until("ready")
    server.kill()
    assert one.ends() == 1 and one.is_as_before()
    server.start()
    trainyard_server.wait_for(
        lambda: shell(server, "runs", "1", "true", stdin=subprocess.DEVNULL).returncode == 0,
        "shells to open again",
        interval_seconds=0.3,
    )
    two = open_shell("runs", "1")
    two.type("echo rea''dy\r")
    two.until("ready")
    server.boto("sagemaker").stop_training_job(TrainingJobName="runs")
    assert two.ends() != 0 and two.is_as_before()
    assert jobs.wait_until(server.boto("sagemaker"), "runs")["TrainingJobStatus"] == "Stopped"
