"""Tests the confinement of a job: its user namespace, the permitted system calls, and the
directories that it shares with other jobs."""

import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import jobs
from tests.system.test_channels import file_system
from tests.trainyard_server import Server, wait_for

ADA = "[[access_key]]\nid = 'AKIAADA0000000000000'\nsecret = 'ada-secret'\nuser = 'ada'\n"
EVE = (
    "[[access_key]]\nid = 'AKIAEVE0000000000000'\nsecret = 'eve-secret'\nuser ="
    " 'eve'\n[[user]]\nname = 'eve'\npolicies = ['AdministratorAccess']\n"
)
LUSTRE = "fs-0123456789abcdef0"
TRAINING = "arn:aws:iam::123456789012:role/training"


@pytest.fixture
def unmappable(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Makes a directory of a file system that does not support id-mapped mounts."""
    path = tmp_path / "ramfs"
    path.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "-o", "mode=0777", "ramfs", path], check=True)
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def submit(
    server: Server,
    name: str,
    script: str,
    channel: dict[str, Any] | None,
    key: tuple[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    request = jobs.request(name, script) | more
    request["InputDataConfig"] = [channel]
    if key:
        return server.boto(
            "sagemaker", aws_access_key_id=key[0], aws_secret_access_key=key[1]
        ).create_training_job(**request)
    return server.boto("sagemaker").create_training_job(**request)


def test_a_job_fails_rather_than_run_without_a_user_namespace(
    start: Callable[..., Server], unmappable: pathlib.Path
) -> None:
    tables = f"[file_systems.'{LUSTRE}']\ndirectory = '{unmappable}'\n"
    writable = file_system("out", "/", mode="rw")
    server = start(tables)
    server.boto("s3").create_bucket(Bucket="yard")
    submit(server, "strict", "true", writable)
    reason = jobs.wait_until(server.boto("sagemaker"), "strict")["FailureReason"]
    assert "user namespace" in reason and 'isolation = "best-effort"' in reason, reason
    server.stop()

    server = start('isolation = "best-effort"\n' + tables)
    server.boto("s3").create_bucket(Bucket="yard")
    submit(server, "effort", "cat /proc/self/uid_map", writable)
    done = jobs.wait_until(server.boto("sagemaker"), "effort")
    lines = jobs.log_lines(server.boto("logs"), "effort")
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
    assert any("4294967295" in line for line in lines), lines
    assert any("isolation is best-effort" in line for line in lines), lines
    output = [one.get("StatusMessage", "") for one in done["SecondaryStatusTransitions"]]
    assert any("no user namespace" in text for text in output), output


def test_shared_directories_are_not_written_as_root(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chown(shared, 1234, 1234)
    (shared / "roots").write_text("secret\n")
    os.chmod(shared / "roots", 0o600)
    server = start(
        f"[posix_users]\n'*' = '1234:1234'\n[file_systems.'{LUSTRE}']\ndirectory = '{shared}'\n"
    )
    server.boto("s3").create_bucket(Bucket="yard")
    submit(
        server,
        "squashed",
        "cd /opt/ml/input/data/out; id -u; cat roots || echo refused; rm -f /tmp/x; cp /bin/sh made"
        " && chmod 4755 made && stat -c %u made",
        file_system("out", "/", mode="rw"),
    )
    done = jobs.wait_until(server.boto("sagemaker"), "squashed")
    lines = jobs.log_lines(server.boto("logs"), "squashed")
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
    assert lines[0] == "0" and "refused" in lines and "secret" not in lines, lines
    assert (shared / "made").stat().st_uid == 1234 and (shared / "made").stat().st_gid == 1234


def test_shared_directories_are_named_by_those_on_their_lists(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    server = start(
        f"account_id = '123456789012'\n{ADA}{EVE}[file_systems.'{LUSTRE}']\ndirectory ="
        f" '{shared}'\nusers = ['ada']\nroles = ['training']\n[volumes.'/fsx']\ndirectory ="
        f" '{shared}'\nusers = ['ada']\n"
    )
    ada, eve = ("AKIAADA0000000000000", "ada-secret"), ("AKIAEVE0000000000000", "eve-secret")
    server.boto("s3", aws_access_key_id=ada[0], aws_secret_access_key=ada[1]).create_bucket(
        Bucket="yard"
    )
    channel = file_system("in", "/")
    submit(server, "adas", "true", channel, ada)
    with pytest.raises(Exception, match=f"user eve may not use {LUSTRE}"):
        submit(server, "eves", "true", channel, eve)
    submit(server, "of-the-role", "true", channel, eve, RoleArn=TRAINING)

    batch = server.boto("batch", aws_access_key_id=eve[0], aws_secret_access_key=eve[1])
    batch.create_compute_environment(
        computeEnvironmentName="here",
        type="MANAGED",
        computeResources={
            "type": "EC2",
            "maxvCpus": 1,
            "subnets": [],
            "minvCpus": 0,
            "instanceTypes": [],
            "instanceRole": "x",
        },
    )
    batch.create_job_queue(
        jobQueueName="quick",
        priority=1,
        computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "here"}],
    )
    definition = dict(
        jobDefinitionName="peek",
        type="container",
        containerProperties={
            "image": "trainyard/host",
            "command": ["ls", "/fsx"],
            "resourceRequirements": [
                {"type": "VCPU", "value": "1"},
                {"type": "MEMORY", "value": "64"},
            ],
            "volumes": [{"name": "fsx", "host": {"sourcePath": "/fsx"}}],
            "mountPoints": [{"sourceVolume": "fsx", "containerPath": "/fsx"}],
        },
    )
    with pytest.raises(batch.exceptions.ClientException, match="user eve may not use /fsx"):
        batch.register_job_definition(**definition)
    server.boto(
        "batch", aws_access_key_id=ada[0], aws_secret_access_key=ada[1]
    ).register_job_definition(**definition)
    with pytest.raises(batch.exceptions.ClientException, match="user eve may not use /fsx"):
        batch.submit_job(jobName="peek", jobQueue="quick", jobDefinition="peek")
    sagemaker = server.boto("sagemaker", aws_access_key_id=ada[0], aws_secret_access_key=ada[1])
    for name in ("adas", "of-the-role"):
        jobs.wait_until(sagemaker, name)


# -- egress

OUTSIDE, NETWORK, HERE, THERE = "trainyard-test-egress", "10.232.7.0/30", "10.232.7.1", "10.232.7.2"
METADATA = "100.100.100.200"


@pytest.fixture
def outside() -> Iterator[None]:
    """Makes a namespace that simulates a private network next to this machine, and a cloud's
    metadata service; an HTTP server answers there."""

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)

    ip("netns", "add", OUTSIDE)
    server = None
    try:
        ip("link", "add", "test-egress0", "type", "veth", "peer", "name", "eth0", "netns", OUTSIDE)
        ip("addr", "add", f"{HERE}/30", "dev", "test-egress0")
        ip("link", "set", "test-egress0", "up")
        ip("route", "add", f"{METADATA}/32", "via", THERE)
        for address in (f"{THERE}/30", f"{METADATA}/32"):
            ip("-n", OUTSIDE, "addr", "add", address, "dev", "eth0")
        ip("-n", OUTSIDE, "link", "set", "eth0", "up")
        server = subprocess.Popen(
            ["ip", "netns", "exec", OUTSIDE, "/usr/bin/python3", "-m", "http.server", "8000"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(
            lambda: (
                subprocess.run(
                    ["curl", "-sf", "-o", "/dev/null", f"http://{METADATA}:8000/"], check=False
                ).returncode
                == 0
            ),
            "the server outside to answer",
        )
        yield
    finally:
        if server:
            server.kill()
            server.wait()
        # at once; the namespace's mount is removed later
        subprocess.run(["ip", "link", "del", "test-egress0"], check=False)
        ip("netns", "del", OUTSIDE)


def test_private_networks_are_reached_by_rule_only(
    start: Callable[..., Server], outside: None
) -> None:
    server = start(
        f"[network]\ndeny = ['{NETWORK}']\n[network.roles.training]\nallow = ['{THERE}',"
        f" '{METADATA}']\n"
    )
    server.boto("s3").create_bucket(Bucket="yard")
    script = (
        f"for a in {THERE} {METADATA}; do curl -s -o /dev/null -m 3 http://$a:8000/ && echo reached"
        " $a; done; echo over"
    )
    for name, role, seen in (
        ("plain", "arn:aws:iam::123456789012:role/other", ["over"]),
        ("of-role", TRAINING, [f"reached {THERE}", "over"]),
    ):
        server.boto("sagemaker").create_training_job(
            **jobs.request(name, script) | {"RoleArn": role}
        )
        done = jobs.wait_until(server.boto("sagemaker"), name)
        assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
        assert jobs.log_lines(server.boto("logs"), name) == seen


def test_connections_of_a_job_are_limited(start: Callable[..., Server], outside: None) -> None:
    server = start(f"[network]\nallow = ['{NETWORK}']\nconnections_per_job_max = 5\n")
    server.boto("s3").create_bucket(Bucket="yard")
    # Each file stays open until the end.
    script = (
        "import socket; held = [socket.socket() for _ in range(8)]; [one.settimeout(2) for one in"
        f" held]; ends = [one.connect_ex(('{THERE}', 8000)) for one in held]; print(ends.count(0),"
        " 'held', 8 - ends.count(0), 'refused')"
    )
    server.boto("sagemaker").create_training_job(**jobs.request("many", f'python3 -c "{script}"'))
    done = jobs.wait_until(server.boto("sagemaker"), "many")
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert jobs.log_lines(server.boto("logs"), "many") == ["5 held 3 refused"]


# -- devices


@pytest.mark.parametrize(
    "config",
    (
        "[jobs]\ndevices = ['/dev/nvidia0']\n",
        (
            "[jobs]\ndevices = ['/dev/fuse']\n[[machine]]\nname = 'm'\ncpus = 1.0\nmemory_gib ="
            " 1.0\ngpu_devices = ['/dev/fuse']\n"
        ),
    ),
)
def test_gpus_are_not_shared_by_name(start: Callable[..., Server], config: str) -> None:
    with pytest.raises(AssertionError, match="belongs to one job at a time"):
        start(config)
