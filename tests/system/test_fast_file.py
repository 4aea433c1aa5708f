"""Channels in FastFile mode as jobs meet them: a read-only mount whose bytes come from S3 as they
are read, and the machine's cache behind it."""

import hashlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests import jobs
from tests.trainyard_server import Server, wait_for

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="containers need root"),
    pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse"),
]

BLOCK = 4 << 20
LARGE = random.Random(7).randbytes(2 * BLOCK + 12345)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        metrics = f"127.0.0.1:{one.getsockname()[1]}"
    config = f'[server]\nmetrics_listen = "{metrics}"\n'
    server = Server(tmp_path_factory.mktemp("yard") / "data", config)
    server.start()
    global METRICS
    METRICS = metrics
    fill(server)
    yield server
    server.clean()


METRICS = ""


def fill(server: Server) -> None:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    for name in "abc":
        s3.put_object(Bucket="yard", Key=f"in/dir/{name}", Body=name.encode() * 100)
    s3.put_object(Bucket="yard", Key="in/empty", Body=b"")
    s3.put_object(Bucket="yard", Key="in/marker/", Body=b"")
    s3.put_object(Bucket="yard", Key="in/large", Body=LARGE)


def gets() -> int:
    """Requests for objects' bytes that the server has answered."""
    with urllib.request.urlopen(f"http://{METRICS}/metrics") as answer:
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


def start(cluster: Server, name: str, script: str, data: dict[str, Any]) -> None:
    key = f"code/{name}/run"
    cluster.boto("s3").put_object(Bucket="yard", Key=key, Body=script.encode())
    request = jobs.request(name, "exec python3 /opt/ml/input/data/code/run")
    code = {"S3DataType": "S3Prefix", "S3Uri": f"s3://yard/code/{name}/"}
    request["InputDataConfig"] = [
        {"ChannelName": "code", "DataSource": {"S3DataSource": code}},
        data,
    ]
    cluster.boto("sagemaker").create_training_job(**request)


def run(
    cluster: Server, name: str, script: str, data: dict[str, Any], status: str = "Completed"
) -> list[str]:
    start(cluster, name, script, data)
    done = jobs.wait_until(cluster.boto("sagemaker"), name)
    lines = jobs.log_lines(cluster.boto("logs"), name)
    assert done["TrainingJobStatus"] == status, (done.get("FailureReason"), lines)
    return lines


HASHES = """
import hashlib, json, os
os.chdir('/opt/ml/input/data/train')
print(json.dumps({os.path.relpath(os.path.join(at, name)):
    hashlib.sha256(open(os.path.join(at, name), 'rb').read()).hexdigest()
    for at, _, names in os.walk('.') for name in names}, sort_keys=True))
"""


def test_a_job_reads_the_objects_through_a_mount(cluster: Server) -> None:
    lines = run(
        cluster,
        "fast",
        HASHES
        + """
print(open('../train-manifest').read())
print([line.split()[2] for line in open('/proc/self/mountinfo').read().splitlines()
       if ' /opt/ml/input/data/train ' in line and 'fuse.fastfile' in line] != [])
try: open('dir/a', 'w')
except OSError as error: print(error.strerror)
with open('large', 'rb') as file:
    file.seek(4194300); print(file.read(8).hex())
print(json.load(open('/opt/ml/input/config/inputdataconfig.json'))['train']['TrainingInputMode'])
""",
        channel("s3://yard/in/"),
    )
    wanted = {f"dir/{name}": name.encode() * 100 for name in "abc"} | {"empty": b"", "large": LARGE}
    assert json.loads(lines[0]) == {
        path: hashlib.sha256(content).hexdigest() for path, content in wanted.items()
    }
    assert sorted(json.loads(lines[1])[1:]) == sorted(wanted)
    assert lines[2:] == [
        "True",
        "Read-only file system",
        LARGE[4194300:4194308].hex(),
        "FastFile",
    ]


def test_a_second_job_moves_no_bytes(cluster: Server) -> None:
    for name in "abc":
        cluster.boto("s3").put_object(
            Bucket="yard", Key=f"twice/{name}", Body=random.Random(name).randbytes(3 * BLOCK // 2)
        )
    data = channel("s3://yard/twice/")
    before = gets()
    first = run(cluster, "twice-1", HASHES, data)
    between = gets()
    second = run(cluster, "twice-2", HASHES, data)
    assert first == second and len(json.loads(first[0])) == 3
    # Each job's script is one object.
    assert (between - before, gets() - between) == (1 + 2 * 3, 1)


def test_a_manifest_names_the_objects(cluster: Server) -> None:
    manifest = [{"prefix": "s3://yard/in/"}, "dir/c", "dir/a"]
    cluster.boto("s3").put_object(Bucket="yard", Key="lists/some", Body=json.dumps(manifest))
    lines = run(cluster, "listed", HASHES, channel("s3://yard/lists/some", "ManifestFile"))
    assert list(json.loads(lines[0])) == ["dir/a", "dir/c"]


def test_hostile_keys_fail_the_job_by_name(cluster: Server) -> None:
    s3 = cluster.boto("s3")
    s3.put_object(Bucket="yard", Key="clash/a/b", Body=b"1")
    s3.put_object(Bucket="yard", Key="clash/a", Body=b"2")
    run(cluster, "clash", "", channel("s3://yard/clash/"), "Failed")
    reason = cluster.boto("sagemaker").describe_training_job(TrainingJobName="clash")
    assert "'clash/a'" in reason["FailureReason"] and "directory" in reason["FailureReason"]


WAIT = """
import os, time
print('ready', flush=True)
for _ in range(6000):
    if os.path.exists('/opt/ml/go'): break
    time.sleep(0.01)
"""


def test_a_replaced_object_is_an_error_with_a_line(cluster: Server) -> None:
    s3 = cluster.boto("s3")
    for name in ("kept", "replaced", "removed"):
        s3.put_object(Bucket="yard", Key=f"changed/{name}", Body=name.encode())
    read = """
for name in ('kept', 'replaced', 'removed'):
    try: print(name, open('/opt/ml/input/data/train/' + name).read(), flush=True)
    except OSError as error: print(name, error.strerror, flush=True)
"""
    run_until_ready(cluster, "changed", WAIT + read, channel("s3://yard/changed/"))
    s3.put_object(Bucket="yard", Key="changed/replaced", Body=b"another")
    s3.delete_object(Bucket="yard", Key="changed/removed")
    (agent,) = cluster.agents()
    go(cluster, agent)
    done = jobs.wait_until(cluster.boto("sagemaker"), "changed")
    lines = jobs.log_lines(cluster.boto("logs"), "changed")
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
    printed = [line for line in lines if not line.startswith("trainyard:")]
    assert printed == [
        "ready", "kept kept", "replaced Input/output error", "removed Input/output error"
    ]  # fmt: skip
    (replaced,) = [line for line in lines if "cannot read train/replaced " in line]
    assert "was replaced since the job listed it" in replaced
    (removed,) = [line for line in lines if "cannot read train/removed " in line]
    assert removed.startswith("trainyard: cannot read train/removed (s3://yard/changed/removed): ")


def test_reads_wait_for_a_server_that_restarts(cluster: Server) -> None:
    cluster.boto("s3").put_object(Bucket="yard", Key="later/a", Body=b"content")
    read = "print(open('/opt/ml/input/data/train/a').read())"
    run_until_ready(cluster, "later", WAIT + read, channel("s3://yard/later/"))
    (agent,) = cluster.agents()
    cluster.kill()
    go(cluster, agent)
    cluster.start()
    done = jobs.wait_until(cluster.boto("sagemaker"), "later")
    lines = jobs.log_lines(cluster.boto("logs"), "later")
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
    assert "content" in lines


def go(cluster: Server, agent: int) -> None:
    """Lets the script of a job continue after WAIT; its /opt/ml is in the agent's namespace."""
    (inside,) = pathlib.Path(f"/proc/{agent}/root{cluster.data}/attempts").glob("*/*/ml")
    (inside / "go").touch()


def test_a_killed_agent_leaves_no_mount(cluster: Server) -> None:
    run_until_ready(cluster, "killed", WAIT, channel("s3://yard/in/"))
    (agent,) = cluster.agents()
    os.kill(agent, signal.SIGKILL)
    done = jobs.wait_until(cluster.boto("sagemaker"), "killed")
    assert done["TrainingJobStatus"] == "Failed" and done["FailureReason"], done
    wait_for(lambda: "fastfile" not in mounts_of_all(), "the end of the mount")


def run_until_ready(cluster: Server, name: str, script: str, data: dict[str, Any]) -> None:
    start(cluster, name, script, data)
    wait_for(lambda: "ready" in jobs.log_lines(cluster.boto("logs"), name), "the script's start")


def mounts_of_all() -> str:
    """The mounts in the namespace of every process."""
    texts = []
    for path in pathlib.Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            texts.append(path.read_text())
        except OSError:
            continue  # it has ended
    return "".join(texts)
