"""Channels in FastFile mode as jobs meet them: a read-only mount whose bytes come from S3 as they
are read, and the machine's cache behind it."""

import json
import os
import pathlib
import random
from typing import Any

import pytest

from tests import jobs
from tests.trainyard_server import Server

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="containers need root"),
    pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse"),
]

BLOCK = 4 << 20
LARGE = random.Random(7).randbytes(2 * BLOCK + 12345)


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    for name in "abc":
        s3.put_object(Bucket="yard", Key=f"in/dir/{name}", Body=name.encode() * 100)
    s3.put_object(Bucket="yard", Key="in/empty", Body=b"")
    s3.put_object(Bucket="yard", Key="in/marker/", Body=b"")
    s3.put_object(Bucket="yard", Key="in/large", Body=LARGE)
    return server


def channel(uri: str, kind: str = "S3Prefix", **more: Any) -> dict[str, Any]:
    return {
        "ChannelName": "train",
        "InputMode": "FastFile",
        "DataSource": {"S3DataSource": {"S3DataType": kind, "S3Uri": uri, **more}},
    }


def run(
    cluster: Server, name: str, script: str, data: dict[str, Any], status: str = "Completed"
) -> Any:
    key = f"code/{name}/run"
    cluster.boto("s3").put_object(Bucket="yard", Key=key, Body=script.encode())
    request = jobs.request(name, "exec python3 /opt/ml/input/data/code/run")
    code = {"S3DataType": "S3Prefix", "S3Uri": f"s3://yard/code/{name}/"}
    request["InputDataConfig"] = [
        {"ChannelName": "code", "DataSource": {"S3DataSource": code}},
        data,
    ]
    cluster.boto("sagemaker").create_training_job(**request)
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
    import hashlib

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
