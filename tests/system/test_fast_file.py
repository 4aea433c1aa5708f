"""Tests channels in FastFile mode: a read-only mount whose bytes come from S3 as they are read,
with the machine's cache."""

import hashlib
import json
import os
import pathlib
import random
import signal
from collections.abc import Callable

import pytest

from tests import jobs
from tests.mounted_channels import (
    BLOCK,
    CONFIG,
    HASHES,
    NEEDS_MOUNTS,
    WAIT,
    channel,
    end_of,
    gets,
    go,
    mounts_of_all,
    run,
    start_until_ready,
    without_fuse,
)
from tests.trainyard_server import Server, wait_for

pytestmark = NEEDS_MOUNTS

LARGE = random.Random(7).randbytes(2 * BLOCK + 12345)


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server]) -> Server:
    one = start(CONFIG)
    fill(one)
    return one


def fill(server: Server) -> None:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    for name in "abc":
        s3.put_object(Bucket="yard", Key=f"in/dir/{name}", Body=name.encode() * 100)
    s3.put_object(Bucket="yard", Key="in/empty", Body=b"")
    s3.put_object(Bucket="yard", Key="in/marker/", Body=b"")
    s3.put_object(Bucket="yard", Key="in/large", Body=LARGE)


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
    before = gets(cluster)
    first = run(cluster, "twice-1", HASHES, data)
    between = gets(cluster)
    second = run(cluster, "twice-2", HASHES, data)
    assert first == second and len(json.loads(first[0])) == 3
    # Each job's script is one object.
    assert (between - before, gets(cluster) - between) == (1 + 2 * 3, 1)


def test_two_jobs_at_once_move_the_bytes_once(cluster: Server) -> None:
    for name in "abc":
        cluster.boto("s3").put_object(
            Bucket="yard", Key=f"once/{name}", Body=random.Random(name).randbytes(3 * BLOCK - 7)
        )
    before = gets(cluster)
    names = ("once-1", "once-2")
    data = channel("s3://yard/once/")
    agents = [start_until_ready(cluster, name, WAIT + HASHES, data) for name in names]
    for agent in agents:
        go(cluster, agent)
    first, second = (json.loads(end_of(cluster, name)[-1]) for name in names)
    assert first == second and len(first) == 3
    # Each job's script is one object.
    assert gets(cluster) - before == 3 * 3 + 2


def test_a_killed_agent_does_not_hold_up_another_job(cluster: Server) -> None:
    for name in range(16):
        cluster.boto("s3").put_object(
            Bucket="yard", Key=f"shared/{name:02}", Body=random.Random(name).randbytes(BLOCK)
        )
    data = channel("s3://yard/shared/")
    dying = start_until_ready(cluster, "dies", WAIT + HASHES, data)
    living = start_until_ready(cluster, "lives", WAIT + HASHES, data)
    blocks = pathlib.Path(cluster.data, "images.blocks")
    before = sum(1 for _ in blocks.glob("??/*"))
    go(cluster, dying)
    # Kills the agent while it fetches.
    wait_for(lambda: sum(1 for _ in blocks.glob("??/*")) > before, "a block", interval_seconds=0)
    os.kill(dying, signal.SIGKILL)
    go(cluster, living)
    lines = end_of(cluster, "lives")
    assert json.loads(lines[-1]) == {
        f"{name:02}": hashlib.sha256(random.Random(name).randbytes(BLOCK)).hexdigest()
        for name in range(16)
    }
    end_of(cluster, "dies", "Failed")


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


def test_a_replaced_object_is_an_error_with_a_line(cluster: Server) -> None:
    s3 = cluster.boto("s3")
    for name in ("kept", "replaced", "removed"):
        s3.put_object(Bucket="yard", Key=f"changed/{name}", Body=name.encode())
    read = """
for name in ('kept', 'replaced', 'removed'):
    try: print(name, open('/opt/ml/input/data/train/' + name).read(), flush=True)
    except OSError as error: print(name, error.strerror, flush=True)
"""
    agent = start_until_ready(cluster, "changed", WAIT + read, channel("s3://yard/changed/"))
    s3.put_object(Bucket="yard", Key="changed/replaced", Body=b"another")
    s3.delete_object(Bucket="yard", Key="changed/removed")
    go(cluster, agent)
    lines = end_of(cluster, "changed")
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
    agent = start_until_ready(cluster, "later", WAIT + read, channel("s3://yard/later/"))
    cluster.kill()
    go(cluster, agent)
    cluster.start()
    assert "content" in end_of(cluster, "later")


def test_a_killed_agent_leaves_no_mount(cluster: Server) -> None:
    agent = start_until_ready(cluster, "killed", WAIT, channel("s3://yard/in/"))
    os.kill(agent, signal.SIGKILL)
    done = jobs.wait_until(cluster.boto("sagemaker"), "killed")
    assert done["TrainingJobStatus"] == "Failed" and done["FailureReason"], done
    wait_for(lambda: "fastfile" not in mounts_of_all(), "the end of the mount")


@pytest.mark.parametrize(
    "what, why",
    [
        ("device", "/dev/fuse cannot be opened on this machine"),
        ("library", "this machine does not have libfuse3"),
    ],
)
def test_without_fuse_channels_are_copied(
    start: Callable[..., Server], tmp_path: pathlib.Path, what: str, why: str
) -> None:
    server = start(behind=without_fuse(what, tmp_path))
    fill(server)
    write = """
with open('dir/a', 'a') as file: file.write('it is writable, as in File mode')
print(open('/proc/self/mountinfo').read().count('fuse.fastfile'))
"""
    lines = run(server, "copied", HASHES + write, channel("s3://yard/in/"))
    assert lines[0] == (
        "trainyard: channel train: FastFile mode is not available, copying as in File mode: " + why
    )
    assert sorted(json.loads(lines[1])) == ["dir/a", "dir/b", "dir/c", "empty", "large"]
    assert lines[2:] == ["0"]
