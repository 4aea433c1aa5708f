"""Tests the real agent without the other programs: a real order, a real container in a separate
network namespace, and a small server (tests/agent_server.py). Needs root."""

import io
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tarfile
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.agent_server import Store, WireServer
from tests.trainyard_server import ROOT, wait_for

AGENT = os.path.join(ROOT, "build", "release", "bin", "trainyard-agent")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")


@pytest.fixture
def namespace() -> Iterator[str]:
    name = "agent-test-" + uuid.uuid4().hex[:8]
    subprocess.run(["ip", "netns", "add", name], check=True)
    for command in (["link", "set", "lo", "up"], ["addr", "add", "169.254.170.2/32", "dev", "lo"]):
        subprocess.run(["ip", "-n", name, *command], check=True)
    yield "/run/netns/" + name
    subprocess.run(["ip", "netns", "delete", name], check=True)


class AgentFixture:
    def __init__(self, directory: pathlib.Path, namespace: str) -> None:
        self.directory, self.namespace = directory, namespace
        self.server = WireServer(directory / "wire.sock")
        self.store = Store({"data", "out"})
        self.agents = []

    def start(
        self, script: str, host: int = 0, hosts: int = 1, memory_bytes: int = 256 << 20, **spec: Any
    ) -> subprocess.Popen[bytes]:
        place = self.directory / str(host)
        place.mkdir()
        order = {
            "version": 1,
            "attempt": "j7a1",
            "token": "t",
            "host": host,
            "job": {"region": "eu-west-1", "name": "digits"},
            "job_arn": "arn:aws:sagemaker:eu-west-1:123456789012:training-job/digits",
            "account": "123456789012",
            "share": {"cpus": 1, "memory_bytes": memory_bytes, "gpus": 0},
            "created": 0,
            "wire_address": self.server.address,
            "api_address": self.store.authority,
            "objects_endpoint": "http://" + self.store.authority,
            "log_stream": "digits/algo-1-1",
            "image": {
                "kind": "machine",
                "source": "",
                "mounts": {},
                "entrypoint": [],
                "environment": {},
            },
            "outward": {},
            "spec": {
                "image": "machine",
                "entrypoint": ["/bin/bash", "-c", script],
                "output_uri": "s3://out/models",
                "groups": [
                    {"name": "homogeneousCluster", "instance_type": "ml.m5.large", "count": hosts}
                ],
                "role_arn": "arn:aws:iam::123456789012:role/train",
                "request": {"TrainingJobName": "digits"},
                **spec,
            },
        }
        (place / "order.json").write_text(json.dumps(order))
        (place / "hosts").write_text("127.0.0.1 localhost\n10.0.0.2 algo-1\n")
        with open(place / "agent.log", "w", encoding="utf-8") as log:
            agent = subprocess.Popen(
                [
                    AGENT,
                    "--order",
                    place / "order.json",
                    "--directory",
                    place,
                    "--network-namespace",
                    self.namespace,
                    "--address",
                    "10.0.0.2",
                    "--host-table",
                    place / "hosts",
                ],
                stdout=log,
                stderr=log,
            )
        self.agents.append(agent)
        return agent

    def finish(self, agent: subprocess.Popen[bytes]) -> dict[str, Any]:
        try:
            agent.wait(60)
        except subprocess.TimeoutExpired:
            print((self.directory / "0" / "agent.log").read_text())
            raise
        return self.server.facts[-1]

    def archive(self, key: str) -> dict[str, bytes | None]:
        with tarfile.open(fileobj=io.BytesIO(self.store.objects["out", key])) as tar:
            return {
                member.name: tar.extractfile(member).read() if member.isfile() else None
                for member in tar
            }

    def clean(self) -> None:
        for agent in self.agents:
            if agent.poll() is None:
                agent.send_signal(signal.SIGINT)
                agent.wait(30)
        self.store.shutdown()


@pytest.fixture
def cluster(tmp_path: pathlib.Path, namespace: str) -> Iterator[AgentFixture]:
    one = AgentFixture(tmp_path, namespace)
    yield one
    one.clean()


def channel(name: str, uri: str, distribution: str = "FullyReplicated") -> dict[str, Any]:
    return {
        "name": name,
        "input_mode": "File",
        "s3_data_type": "S3Prefix",
        "s3_uri": uri,
        "distribution": distribution,
        "compression": "None",
        "record_wrapper": "None",
        "content_type": "",
    }


def test_a_job_runs_end_to_end(cluster: AgentFixture) -> None:
    cluster.store.objects["data", "in/a.csv"] = b"1,2\n"
    cluster.store.objects["data", "in/sub/b.csv"] = b"3,4\n"
    script = r"""
set -e
hostname
cat /opt/ml/input/data/train/a.csv /opt/ml/input/data/train/sub/b.csv
cat /opt/ml/input/config/resourceconfig.json; echo
cat /opt/ml/input/data/train-manifest; echo
grep algo-1 /etc/hosts
echo "epoch 1	loss=0.5"
echo stderr too >&2
df /dev/shm | tail -1
exec 3<>/dev/tcp/169.254.170.2/80
printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: %s\r\n\r\n' "$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI" "$AWS_CONTAINER_AUTHORIZATION_TOKEN" >&3
cat <&3
echo
exec 4<>/dev/tcp/169.254.170.2/4566
printf 'GET /data/in/a.csv HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&4
cat <&4
echo "$AWS_ENDPOINT_URL $S3_ENDPOINT_URL $TRAINING_JOB_NAME $MINE"
mkdir -p /opt/ml/model/weights /opt/ml/output/data
echo model > /opt/ml/model/weights/w.bin
echo out > /opt/ml/output/data/report.txt
"""
    agent = cluster.start(
        script,
        channels=[channel("train", "s3://data/in/")],
        environment={"MINE": "yes"},
        metrics=[{"name": "loss", "regex": "loss=([0-9.]+)"}],
    )
    last = cluster.finish(agent)
    print((cluster.directory / "0" / "agent.log").read_text(), cluster.server.lines)
    assert agent.returncode == 0
    assert cluster.server.states() == [
        "preparing",
        "downloading",
        "running",
        "draining",
        "uploading",
        "finished",
    ]
    lines = cluster.server.lines
    assert lines[0] == "algo-1"
    for line in [
        "1,2",
        "3,4",
        '[{"prefix":"s3://data/in/"},"a.csv","sub/b.csv"]',
        "10.0.0.2 algo-1",
        "epoch 1\tloss=0.5",
        "stderr too",
        "http://169.254.170.2:4566 http://169.254.170.2:4566 digits yes",
    ]:
        assert line in lines
    resources = json.loads(next(line for line in lines if "network_interface_name" in line))
    assert (
        resources["current_host"] == "algo-1"
        and resources["current_group_name"] == "homogeneousCluster"
    )
    keys = json.loads(next(line for line in lines if "AccessKeyId" in line))
    assert keys["AccessKeyId"] == "AKIATEST" and keys["RoleArn"].endswith("role/train")
    assert lines.count("1,2") == 2  # from the channel, and through the relay
    assert ("loss", 0.5, False) in cluster.server.points
    assert any(
        name == "MemoryUtilization" and of_host for name, _, of_host in cluster.server.points
    )
    assert last["model_uri"] == "s3://out/models/digits/output/model.tar.gz"
    assert last["output_uri"] == "s3://out/models/digits/output/output.tar.gz"
    assert last["lines_before"] == len(lines)
    assert cluster.archive("models/digits/output/model.tar.gz") == {
        "weights": None,
        "weights/w.bin": b"model\n",
    }
    assert cluster.archive("models/digits/output/output.tar.gz") == {"report.txt": b"out\n"}
    left = set(os.listdir(cluster.directory / "0"))
    # "left": it ended normally
    assert left == {"order.json", "hosts", "agent.log", "alive", "left"}, left


def test_a_failure_is_reported_with_the_scripts_exception(cluster: AgentFixture) -> None:
    agent = cluster.start(
        "echo kept > /opt/ml/output/data/x; echo 'no such column: price' > /opt/ml/output/failure;"
        " exit 3"
    )
    last = cluster.finish(agent)
    assert (last["state"], last["fault"], last["exit_code"], last["message"]) == (
        "failed",
        "algorithm",
        3,
        "no such column: price",
    )
    assert list(cluster.store.objects) == [("out", "models/digits/output/output.tar.gz")]


def test_without_a_failure_file_the_last_lines_say_why(cluster: AgentFixture) -> None:
    last = cluster.finish(cluster.start("echo Traceback; echo 'ValueError: bad'; exit 1"))
    assert last["message"] == "Traceback\nValueError: bad"


def test_a_failure_file_that_is_a_link_is_not_followed(cluster: AgentFixture) -> None:
    last = cluster.finish(cluster.start("ln -s /etc/shadow /opt/ml/output/failure; exit 1"))
    assert "root:" not in last["message"]


def test_out_of_memory_is_named_with_its_limit(cluster: AgentFixture) -> None:
    last = cluster.finish(
        cluster.start(
            "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}", memory_bytes=64 << 20
        )
    )
    assert last["state"] == "failed" and last["fault"] == "algorithm"
    assert (
        "OutOfMemory: exceeded its 64.0 MiB memory limit (1/128 of ml.m5.large)" in last["message"]
    )


def test_a_stop_gives_grace_then_uploads(cluster: AgentFixture) -> None:
    agent = cluster.start(
        "trap 'echo saving; echo m > /opt/ml/model/m; exit 0' TERM; echo ready; while :; do sleep"
        " 0.1; done"
    )
    wait_for(lambda: "ready" in cluster.server.lines, "the process to run")
    cluster.server.stop()
    last = cluster.finish(agent)
    assert last["state"] == "finished" and "saving" in cluster.server.lines
    assert cluster.archive("models/digits/output/model.tar.gz") == {"m": b"m\n"}


def test_a_process_without_a_handler_ends_at_once(cluster: AgentFixture) -> None:
    script = "import time; print('ready', flush=True); time.sleep(1000)"
    agent = cluster.start("", entrypoint=["/usr/bin/python3", "-c", script])
    wait_for(lambda: "ready" in cluster.server.lines, "the process to run")
    cluster.server.stop(grace_seconds=3600)
    last = cluster.finish(agent)
    assert (last["state"], last["exit_code"]) == ("finished", 143)


def test_a_script_below_shells_gets_the_stop_and_its_grace(cluster: AgentFixture) -> None:
    # Shells without a handler start a script with one.
    script = (
        "trap 'sleep 1; echo saved; echo m > /opt/ml/model/m; exit 4' TERM; echo ready;"
        " while :; do sleep 0.1; done"
    )
    agent = cluster.start(f"bash -c {shlex.quote(script)}; exit $?")
    wait_for(lambda: "ready" in cluster.server.lines, "the script to run")
    cluster.server.stop(grace_seconds=3600)
    last = cluster.finish(agent)
    assert (last["state"], last["exit_code"]) == ("finished", 4)
    assert "saved" in cluster.server.lines
    assert cluster.archive("models/digits/output/model.tar.gz") == {"m": b"m\n"}


def test_orphans_are_reaped(cluster: AgentFixture) -> None:
    # Each inner shell leaves a child that ends after it.
    last = cluster.finish(
        cluster.start(
            "for i in 1 2 3; do (sleep 0.1 &); done; sleep 1;"
            " grep -l '^State:.*zombie' /proc/[0-9]*/status 2>/dev/null | wc -l"
        )
    )
    assert last["state"] == "finished" and "0" in cluster.server.lines


def test_a_process_that_ignores_the_stop_is_killed_and_its_model_kept(
    cluster: AgentFixture,
) -> None:
    agent = cluster.start(
        "trap '' TERM; echo m > /opt/ml/model/m; echo ready; while :; do sleep 0.1; done"
    )
    wait_for(lambda: "ready" in cluster.server.lines, "the process to run")
    cluster.server.stop(grace_seconds=1)
    last = cluster.finish(agent)
    assert (last["state"], last["exit_code"]) == ("finished", 137)
    assert cluster.archive("models/digits/output/model.tar.gz") == {"m": b"m\n"}


def test_an_agent_that_gets_sigterm_saves_checkpoints_and_reports_no_end(
    cluster: AgentFixture,
) -> None:
    script = (
        "trap 'echo saved > /opt/ml/checkpoints/state; echo the last line; exit 7' TERM; echo ready; "
        "while :; do sleep 0.1; done"
    )
    agent = cluster.start(
        script, checkpoint={"uri": "s3://out/ckpt", "path": "/opt/ml/checkpoints"}
    )
    wait_for(lambda: "ready" in cluster.server.lines, "the script to be ready")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(60) == 0
    assert cluster.store.objects["out", "ckpt/state"] == b"saved\n"
    assert ("out", "models/digits/output/model.tar.gz") not in cluster.store.objects
    assert cluster.server.states()[-2:] == ["draining", "uploading"]
    assert cluster.server.lines[-1] == "the last line"


def test_a_refused_agent_kills_and_leaves(cluster: AgentFixture) -> None:
    cluster.server.refuse = "the token is old"
    agent = cluster.start("echo never")
    agent.wait(30)
    assert cluster.server.facts == [] and cluster.server.lines == []


def test_agents_survive_an_outage_of_the_server(cluster: AgentFixture) -> None:
    agent = cluster.start(
        "echo before; while [ ! -e /opt/ml/model/go ]; do sleep 0.05; done; echo while away; exit 0"
    )
    wait_for(lambda: "before" in cluster.server.lines, "the process to run")
    cluster.server.go_away()
    # The path in the agent's namespace: a job's volume is mounted for its agent only.
    open(f"/proc/{agent.pid}/root{cluster.directory}/0/ml/model/go", "w", encoding="utf-8").close()
    wait_for(
        lambda: ("out", "models/digits/output/model.tar.gz") in cluster.store.objects, "the upload"
    )
    cluster.server.open()
    last = cluster.finish(agent)
    assert last["state"] == "finished"
    assert cluster.server.states() == [
        "preparing",
        "downloading",
        "running",
        "draining",
        "uploading",
        "finished",
    ]
    assert [line for line in cluster.server.lines if not line.startswith("trainyard:")] == [
        "before",
        "while away",
    ]
    assert len(cluster.server.hellos) >= 2


def test_a_gigabyte_of_log_neither_blocks_nor_fills(cluster: AgentFixture) -> None:
    cluster.server.acknowledges_data = False
    agent = cluster.start(
        "head -c 1000000000 /dev/zero | tr '\\0' 'x' | fold -w 1000; echo; echo done"
    )
    wait_for(lambda: "draining" in cluster.server.states(), "the process to end")
    spool = sum(file.stat().st_size for file in (cluster.directory / "0" / "spool").iterdir())
    assert spool < 100 << 20
    cluster.server.acknowledges_data = True
    cluster.server.go_away()
    cluster.server.open()
    last = cluster.finish(agent)
    assert last["state"] == "finished"
    assert cluster.server.lines[-1] == "done"
    # Points of the host's usage may be dropped with the lines: "N bytes of log and 4 metric points
    # were dropped here ..".
    dropped = [
        line
        for line in cluster.server.lines
        if re.match(r"trainyard: \d+ bytes of log.* dropped here", line)
    ]
    assert (
        sum(int(line.split()[1]) for line in dropped)
        + sum(len(line) + 1 for line in cluster.server.lines if line not in dropped)
        >= 1_000_000_000
    )


@pytest.mark.parametrize(
    "uri, words",
    [
        ("s3://nowhere/in", "bucket nowhere not found"),
        ("s3://data/empty/", 'No S3 objects found under S3 URL "s3://data/empty/"'),
    ],
)
def test_an_unreadable_channel_is_a_client_error(
    cluster: AgentFixture, uri: str, words: str
) -> None:
    last = cluster.finish(cluster.start("echo never", channels=[channel("train", uri)]))
    assert (last["state"], last["fault"]) == ("failed", "client")
    assert last["message"].startswith("Data download failed: channel train: " + words)


def test_traversal_in_keys_is_refused(cluster: AgentFixture) -> None:
    cluster.store.objects["data", "in/../../../evil"] = b"x"
    last = cluster.finish(cluster.start("echo never", channels=[channel("train", "s3://data/in/")]))
    assert last["fault"] == "client" and "would lead out of its directory" in last["message"]


def test_a_missing_program_is_reported(cluster: AgentFixture) -> None:
    last = cluster.finish(cluster.start("", entrypoint=["/no/such/program"]))
    assert (last["state"], last["fault"]) == ("failed", "client")
    assert "executable file `/no/such/program` not found in $PATH" in last["message"]


def test_two_hosts_make_one_model(cluster: AgentFixture) -> None:
    second = cluster.start(
        "echo two > /opt/ml/model/same; echo b > /opt/ml/model/b; echo o > /opt/ml/output/data/o",
        host=1,
        hosts=2,
    )
    cluster.finish(second)
    staged = next(
        fact["staged_model"] for fact in cluster.server.facts if fact["state"] == "uploading"
    )
    cluster.server.facts.clear()
    cluster.server.state_acknowledged = cluster.server.data_acknowledged = 0
    first = cluster.start("echo one > /opt/ml/model/same", host=0, hosts=2)
    wait_for(lambda: "uploading" in cluster.server.states(), "the first host to wait for its peer")
    cluster.server.drained([staged])
    last = cluster.finish(first)
    assert last["state"] == "finished"
    assert cluster.archive("models/digits/output/model.tar.gz") == {
        "same": b"one\n",
        "same.algo-2": b"two\n",
        "b": b"b\n",
    }
    assert cluster.archive("models/digits/output/output.tar.gz") == {"o": b"o\n"}
    assert any(
        "/opt/ml/model/same of algo-2 was kept as same.algo-2" in line
        for line in cluster.server.lines
    )
    assert set(cluster.store.objects) == {
        ("out", "models/digits/output/model.tar.gz"),
        ("out", "models/digits/output/output.tar.gz"),
    }


def test_the_death_of_an_agent_is_reported_by_its_successor(cluster: AgentFixture) -> None:
    agent = cluster.start("echo ready; sleep 1000")
    wait_for(lambda: "ready" in cluster.server.lines, "the process to run")
    agent.kill()
    agent.wait()
    place = cluster.directory / "0"
    order = place / "order.json"
    again = subprocess.Popen(
        [
            AGENT,
            "--order",
            order,
            "--directory",
            place,
            "--network-namespace",
            cluster.namespace,
            "--address",
            "10.0.0.2",
            "--host-table",
            place / "hosts",
        ]
    )
    cluster.agents.append(again)
    last = cluster.finish(again)
    assert (last["state"], last["fault"]) == ("failed", "lost")
    assert "died" in last["message"]
