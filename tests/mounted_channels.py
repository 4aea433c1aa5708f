"""Has helpers for jobs with a mounted channel, and scripts that read it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import urllib.request
from typing import Any

import pytest

from tests import jobs
from tests.trainyard_server import Server, wait_for

NEEDS_MOUNTS = [
    pytest.mark.skipif(os.geteuid() != 0, reason="containers need root"),
    pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse"),
]
BLOCK = 4 << 20
# Capacity for several jobs at once, and gets().
CONFIG = (
    '[server]\nmetrics_listen = "127.0.0.1:0"\n[jobs]\nstop_grace_seconds = 1\n'
    '[[machine]]\nname = "box"\ncpus = 16\nmemory_gib = 32\n'
)
# Prints the digests of all files of the channel.
HASHES = """
import hashlib, json, os
os.chdir('/opt/ml/input/data/train')
print(json.dumps({os.path.relpath(os.path.join(at, name)):
    hashlib.sha256(open(os.path.join(at, name), 'rb').read()).hexdigest()
    for at, _, names in os.walk('.') for name in names}, sort_keys=True))
"""
# Waits for go().
WAIT = """
import os, time
print('ready', flush=True)
for _ in range(25_000):
    if os.path.exists('/opt/ml/go'): break
    time.sleep(0.01)
"""


def gets(server: Server) -> int:
    """Returns the number of GETs of objects that the server has answered."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as answer:
        text = answer.read().decode()
    counted = re.findall(
        r'^trainyard_requests_total{service="s3",operation="GetObject".*} (\d+)', text, re.M
    )
    return sum(map(int, counted))


def channel(uri: str, kind: str = "S3Prefix", **more: Any) -> dict[str, Any]:
    return {
        "ChannelName": "train",
        "InputMode": "FastFile",
        "DataSource": {"S3DataSource": {"S3DataType": kind, "S3Uri": uri, **more}},
    }


def start(server: Server, name: str, script: str, data: dict[str, Any]) -> None:
    """Starts a job. Its script is an object as well, and counts as one more read."""
    key = f"code/{name}/run"
    server.boto("s3").put_object(Bucket="yard", Key=key, Body=script.encode())
    request = jobs.request(name, "exec python3 /opt/ml/input/data/code/run")
    code = {"S3DataType": "S3Prefix", "S3Uri": f"s3://yard/code/{name}/"}
    request["InputDataConfig"] = [
        {"ChannelName": "code", "DataSource": {"S3DataSource": code}},
        data,
    ]
    server.boto("sagemaker").create_training_job(**request)


def run(
    server: Server, name: str, script: str, data: dict[str, Any], status: str = "Completed"
) -> list[str]:
    start(server, name, script, data)
    return end_of(server, name, status)


def end_of(server: Server, name: str, status: str = "Completed") -> list[str]:
    """Waits for the end of a job, and returns its log."""
    done = jobs.wait_until(server.boto("sagemaker"), name)
    lines = jobs.log_lines(server.boto("logs"), name)
    assert done["TrainingJobStatus"] == status, (done.get("FailureReason"), lines)
    return lines


def start_until_ready(server: Server, name: str, script: str, data: dict[str, Any]) -> int:
    """Starts a job whose script begins with WAIT; returns the process of its agent."""
    before = main_agents(server)
    start(server, name, script, data)
    wait_for(lambda: "ready" in jobs.log_lines(server.boto("logs"), name), "the script's start")
    (agent,) = main_agents(server) - before
    return agent


def main_agents(server: Server) -> set[int]:
    """Returns the agents, without processes that an agent forked to start a program."""
    agents = set(server.agents())
    found = set()
    for agent in agents:
        with contextlib.suppress(OSError):
            stat = pathlib.Path(f"/proc/{agent}/stat").read_text()
            if int(stat.rpartition(")")[2].split()[1]) not in agents:
                found.add(agent)
    return found


def go(server: Server, agent: int) -> None:
    """Lets the script continue after WAIT; its /opt/ml is in the agent's namespace."""
    words = pathlib.Path(f"/proc/{agent}/cmdline").read_bytes().decode().split("\0")
    (attempt,) = {
        found[0] for word in words if (found := re.match(r".*/attempts/[^/]+/[^/]+", word))
    }
    pathlib.Path(f"/proc/{agent}/root{attempt}/ml/go").touch()


def mounts_of_all() -> str:
    """Returns the mounts in the namespace of every process."""
    texts = []
    for path in pathlib.Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            texts.append(path.read_text())
        except OSError:
            continue  # it has ended
    return "".join(texts)


def without_fuse(what: str, tmp_path: pathlib.Path) -> list[str]:
    """Returns a command prefix that hides a part of FUSE."""
    if what == "device":
        # A socket cannot be opened.
        replacement, path = tmp_path / "socket", "/dev/fuse"
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(replacement))
    else:
        replacement = pathlib.Path("/dev/null")
        known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
        (line,) = [each for each in known.stdout.splitlines() if "libfuse3.so.3 " in each]
        path = os.path.realpath(line.split(" => ")[1])
    hide = f"mount --bind {replacement} {path}"
    return ["unshare", "--mount", "sh", "-ec", f'{hide}; exec "$@"', "sh"]
