"""Tests channels in File mode: a mount with a writable layer if this machine permits it, whose
bytes come from S3 as they are read; otherwise a copy."""

import hashlib
import json
import os
import pathlib
import random
import signal
import stat
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import jobs, mounted_channels
from tests.mounted_channels import (
    BLOCK,
    CONFIG,
    HASHES,
    NEEDS_MOUNTS,
    WAIT,
    end_of,
    gets,
    go,
    main_agents,
    mounts_of_all,
    run,
    start_until_ready,
    without_fuse,
)
from tests.ordinary_users import User
from tests.trainyard_server import Server, wait_for

pytestmark = NEEDS_MOUNTS

LARGE = random.Random(16).randbytes(2 * BLOCK + 12345)
OBJECTS = {f"dir/{name}": name.encode() * 100 for name in "abc"} | {"empty": b"", "large": LARGE}
DIGESTS = {path: hashlib.sha256(content).hexdigest() for path, content in OBJECTS.items()}
# Prints the type of the channel's mount.
KIND = """
print([line.split(' - ')[1].split()[0] for line in open('/proc/self/mountinfo')
       if ' /opt/ml/input/data/train ' in line], flush=True)
"""


def channel(uri: str, kind: str = "S3Prefix", **more: Any) -> dict[str, Any]:
    return {**mounted_channels.channel(uri, kind, **more), "InputMode": "File"}


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server]) -> Server:
    one = start(CONFIG)
    fill(one)
    return one


def fill(server: Server) -> None:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    for path, content in OBJECTS.items():
        s3.put_object(Bucket="yard", Key=f"in/{path}", Body=content)


def test_a_job_reads_and_writes_as_after_a_copy(cluster: Server) -> None:
    change = """
def owner(path): return os.stat(path).st_uid, oct(os.stat(path).st_mode & 0o777)
print(os.getuid(), owner('.'), owner('dir'), owner('dir/a'), flush=True)
print(open('../train-manifest').read())
with open('large', 'r+b') as file: file.seek(4194300); file.write(b'changed')
with open('dir/a', 'a') as file: file.write('more')
os.truncate('dir/b', 1)
os.chmod('dir/b', 0o600)
os.remove('dir/c')
os.rename('empty', 'moved')
os.rename('dir', 'directory')
os.makedirs('new/er'); open('new/er/file', 'w').write('x')
print(sorted(os.path.relpath(os.path.join(at, name)) for at, _, names in os.walk('.')
             for name in names))
print(len(open('directory/a').read()), os.path.getsize('directory/b'), owner('directory/b'))
print(hashlib.sha256(open('large', 'rb').read()).hexdigest())
print(json.load(open('/opt/ml/input/config/inputdataconfig.json'))['train']['TrainingInputMode'])
"""
    lines = run(cluster, "writes", KIND + HASHES + change, channel("s3://yard/in/"))
    assert lines[0] == "['overlay']"
    assert json.loads(lines[1]) == DIGESTS
    assert lines[2] == "0 (0, '0o755') (0, '0o755') (0, '0o644')"
    assert sorted(json.loads(lines[3])[1:]) == sorted(OBJECTS)
    changed = LARGE[:4194300] + b"changed" + LARGE[4194307:]
    assert lines[4:8] == [
        "['directory/a', 'directory/b', 'large', 'moved', 'new/er/file']",
        "104 1 (0, '0o600')",
        hashlib.sha256(changed).hexdigest(),
        "File",
    ]
    # Neither the objects nor the channels of later jobs have changed.
    again = run(cluster, "reads-again", HASHES, channel("s3://yard/in/"))
    assert json.loads(again[0]) == DIGESTS


def test_a_second_job_moves_no_bytes(cluster: Server) -> None:
    content = random.Random("twice").randbytes(2 * BLOCK)
    cluster.boto("s3").put_object(Bucket="yard", Key="twice/a", Body=content)
    before = gets(cluster)
    first = run(cluster, "twice-1", HASHES, channel("s3://yard/twice/"))
    between = gets(cluster)
    second = run(cluster, "twice-2", HASHES, channel("s3://yard/twice/"))
    assert first == second == [json.dumps({"a": hashlib.sha256(content).hexdigest()})]
    # Each job's script is one object.
    assert (between - before, gets(cluster) - between) == (2 + 1, 1)


def test_all_bytes_are_fetched_without_a_read(cluster: Server) -> None:
    for name in range(20):
        body = random.Random(f"ahead {name}").randbytes(BLOCK // 8)
        cluster.boto("s3").put_object(Bucket="yard", Key=f"ahead/{name:02}", Body=body)
    before = gets(cluster)
    agent = start_until_ready(cluster, "ahead", WAIT + HASHES, channel("s3://yard/ahead/"))
    # Each job's script is one object.
    wait_for(lambda: gets(cluster) - before == 20 + 1, "all objects")
    go(cluster, agent)
    assert len(json.loads(end_of(cluster, "ahead")[-1])) == 20
    assert gets(cluster) - before == 20 + 1


def test_a_manifest_names_the_objects_and_hosts_share_them(cluster: Server) -> None:
    s3 = cluster.boto("s3")
    for name in range(8):
        body = random.Random(f"share {name}").randbytes(BLOCK)
        s3.put_object(Bucket="yard", Key=f"shared/{name}", Body=body)
    manifest = [{"prefix": "s3://yard/shared/"}, *(str(name) for name in range(6))]
    s3.put_object(Bucket="yard", Key="lists/six", Body=json.dumps(manifest))
    data = channel("s3://yard/lists/six", "ManifestFile", S3DataDistributionType="ShardedByS3Key")
    script = KIND + "import os; print(sorted(os.listdir('/opt/ml/input/data/train')))"
    s3.put_object(Bucket="yard", Key="code/shares/run", Body=script.encode())
    request = jobs.request("shares", "exec python3 /opt/ml/input/data/code/run", hosts=2)
    code = {"S3DataType": "S3Prefix", "S3Uri": "s3://yard/code/shares/"}
    request["InputDataConfig"] = [
        {"ChannelName": "code", "DataSource": {"S3DataSource": code}},
        data,
    ]
    cluster.boto("sagemaker").create_training_job(**request)
    end_of(cluster, "shares")
    shown = [jobs.log_lines(cluster.boto("logs"), "shares", host) for host in (1, 2)]
    assert [lines[0] for lines in shown] == ["['overlay']"] * 2
    shares = [json.loads(lines[1].replace("'", '"')) for lines in shown]
    assert sorted(name for share in shares for name in share) == [str(name) for name in range(6)]
    assert [len(share) for share in shares] == [3, 3]


def test_writes_count_as_the_volume(cluster: Server) -> None:
    fill_up = """
with open('large', 'r+b') as file:
    try: os.posix_fallocate(file.fileno(), 0, 2 << 30)
    except OSError as error: print(error.strerror)
"""
    lines = run(cluster, "full", HASHES + fill_up, channel("s3://yard/in/"))
    assert lines[-1] == "No space left on device"


def test_a_retry_begins_with_the_objects(cluster: Server) -> None:
    """After the agent is killed nothing stays mounted, and the next attempt does not see earlier
    writes."""
    script = """
import os
path = '/opt/ml/input/data/train/dir/a'
print('found', os.path.exists(path), os.path.getsize(path), flush=True)
open(path, 'a').write('more')
"""
    name = "again"
    key = f"code/{name}/run"
    cluster.boto("s3").put_object(Bucket="yard", Key=key, Body=(script + WAIT).encode())
    request = jobs.request(name, "exec python3 /opt/ml/input/data/code/run")
    code = {"S3DataType": "S3Prefix", "S3Uri": f"s3://yard/code/{name}/"}
    request["InputDataConfig"] = [
        {"ChannelName": "code", "DataSource": {"S3DataSource": code}},
        channel("s3://yard/in/"),
    ]
    request["RetryStrategy"] = {"MaximumRetryAttempts": 1}
    before = main_agents(cluster)
    cluster.boto("sagemaker").create_training_job(**request)
    found = "found True 100"

    def starts() -> int:
        lines = jobs.log_lines(cluster.boto("logs"), name)
        assert all(line == found for line in lines if line.startswith("found")), lines
        return lines.count("ready")

    wait_for(lambda: starts() == 1, "the first attempt")
    (agent,) = main_agents(cluster) - before
    os.kill(agent, signal.SIGKILL)
    wait_for(lambda: starts() == 2, "the second attempt")
    (agent,) = main_agents(cluster) - before
    go(cluster, agent)
    end_of(cluster, name)
    own = str(cluster.data)
    wait_for(lambda: own not in mounts_of_all(), "the end of the mounts")


def test_a_failed_read_is_reported_in_the_log(cluster: Server) -> None:
    s3 = cluster.boto("s3")
    s3.put_object(Bucket="yard", Key="gone/a", Body=LARGE)
    s3.put_object(Bucket="yard", Key="gone/z", Body=b"old")
    read = """
try: print(open('/opt/ml/input/data/train/z').read())
except OSError as error: print(error.strerror)
"""
    agent = start_until_ready(cluster, "gone", WAIT + read, channel("s3://yard/gone/"))
    blocks = pathlib.Path(cluster.data, "images.blocks")
    wait_for(lambda: holds(blocks, b"gone/z"), "the block of the small object")
    for block in blocks.glob("??/*"):
        if b"gone/z" in block.read_bytes()[:1000]:
            block.unlink()
    s3.put_object(Bucket="yard", Key="gone/z", Body=b"new")
    go(cluster, agent)
    lines = end_of(cluster, "gone")
    assert "Input/output error" in lines, lines
    (line,) = [each for each in lines if "cannot read train/z " in each]
    assert "the object was replaced since the job listed it" in line


def holds(blocks: pathlib.Path, key: bytes) -> bool:
    for block in blocks.glob("??/*"):
        try:
            if key in block.read_bytes()[:1000]:
                return True
        except FileNotFoundError:
            continue
    return False


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
    lines = run(server, "copied", KIND + HASHES, channel("s3://yard/in/"))
    assert lines[:2] == [
        f"trainyard: channel train is copied before the script starts: {why}",
        "[]",
    ]
    assert json.loads(lines[2]) == DIGESTS


@pytest.fixture
def ordinary(tmp_path: pathlib.Path) -> Iterator[Server]:
    """Starts a server of an ordinary user that may open /dev/fuse."""
    user = User(f"tyfuse{os.getpid()}", True)
    device = f"/dev/trainyard-test-fuse-{os.getpid()}"
    os.mknod(device, stat.S_IFCHR, os.makedev(10, 229))
    os.chmod(device, 0o666)
    shown = f'mount --bind {device} /dev/fuse; exec "$@"'
    before = ["unshare", "--mount", "sh", "-ec", shown, "sh"]
    server = Server(user.directory("mounts"), CONFIG, behind=[*before, *user.words()])
    server.program = user.program()
    server.start()
    yield server
    server.clean()
    os.remove(device)
    user.remove()


def test_an_ordinary_users_jobs_have_mounts(ordinary: Server) -> None:
    fill(ordinary)
    change = """
with open('dir/a', 'a') as file: file.write('more')
os.chmod('dir/b', 0o600)
os.remove('dir/c')
os.rename('empty', 'moved')
try: os.rename('dir', 'directory')
except OSError as error: print(error.strerror)
shutil.move('dir', 'directory')
print(os.getuid(), os.stat('.').st_uid, os.stat('large').st_uid)
print(sorted(os.path.relpath(os.path.join(at, name)) for at, _, names in os.walk('.')
             for name in names))
"""
    lines = run(
        ordinary, "writes", KIND + HASHES + "import shutil\n" + change, channel("s3://yard/in/")
    )
    printed = [line for line in lines if not line.startswith("trainyard: ")]
    assert printed[0] == "['overlay']", lines
    assert json.loads(printed[1]) == DIGESTS
    assert printed[2:] == [
        "Invalid cross-device link",
        "0 0 0",
        "['directory/a', 'directory/b', 'large', 'moved']",
    ]


def test_a_server_can_be_configured_to_copy(start: Callable[..., Server]) -> None:
    server = start('[jobs]\nfile_mode = "copy"\n')
    fill(server)
    lines = run(server, "configured", KIND + HASHES, channel("s3://yard/in/"))
    assert lines[0] == "[]"
    assert json.loads(lines[1]) == DIGESTS
