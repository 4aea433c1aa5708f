"""Tests the input channels of jobs: manifests, groups, FIFOs for each epoch; and a model that is
not packed."""

import gzip
import json
import os
import pathlib
import struct
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests import jobs, leftovers
from tests.trainyard_server import ROOT, Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")

# The beginning of a job's scripts: read_epoch() reads as programs do, and retries a FIFO that
# does not exist yet; records() does not join parts, as SageMaker's own readers.
READER = """
import os, struct, sys, time
DATA = '/opt/ml/input/data/'
def open_epoch(channel, epoch):
    for _ in range(6000):
        try: return open(f'{DATA}{channel}_{epoch}', 'rb')
        except FileNotFoundError: time.sleep(0.01)
    sys.exit(f'no FIFO {channel}_{epoch}')
def read_epoch(channel, epoch):
    with open_epoch(channel, epoch) as fifo: return fifo.read()
def records(data):
    found, at = [], 0
    while at < len(data):
        magic, length = struct.unpack_from('<II', data, at)
        assert magic == 0xced7230a and length < 1 << 29, (magic, length)
        found.append(data[at + 8:at + 8 + length])
        at += 8 + length + -length % 4
    return found
"""


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    for name in "abcdefgh":
        s3.put_object(Bucket="yard", Key=f"in/{name}", Body=name.encode())
        s3.put_object(
            Bucket="yard", Key=f"packed/{name}.gz", Body=gzip.compress(name.encode() * 1000)
        )
    return server


def channel(
    name: str,
    uri: str,
    mode: str | None = None,
    kind: str = "S3Prefix",
    distribution: str = "FullyReplicated",
    attributes: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    source: dict[str, Any] = {
        "S3DataType": kind,
        "S3Uri": uri,
        "S3DataDistributionType": distribution,
    }
    source |= {"AttributeNames": attributes} if attributes else {}
    source |= {"InstanceGroupNames": groups} if groups else {}
    return {
        "ChannelName": name,
        "DataSource": {"S3DataSource": source},
        **({"InputMode": mode} if mode else {}),
        **more,
    }


def python(script: str) -> str:
    return f"cat > /tmp/job.py <<'END'\n{READER}{script}\nEND\nexec python3 /tmp/job.py"


def submit(cluster: Server, name: str, script: str, channels: Any, **more: Any) -> None:
    """Submits a job. Its script is sent as a channel, since it may be longer than a member of the
    request."""
    cluster.boto("s3").put_object(Bucket="yard", Key=f"code/{name}/run", Body=script.encode())
    request = jobs.request(name, "/bin/sh /opt/ml/input/data/code/run", **more)
    request["InputDataConfig"] = [channel("code", f"s3://yard/code/{name}/", "File"), *channels]
    cluster.boto("sagemaker").create_training_job(**request)


def run(
    cluster: Server, name: str, script: str, channels: Any, status: str = "Completed", **more: Any
) -> Any:
    submit(cluster, name, script, channels, **more)
    done = jobs.wait_until(cluster.boto("sagemaker"), name)
    lines = jobs.log_lines(cluster.boto("logs"), name)
    assert done["TrainingJobStatus"] == status, (done.get("FailureReason"), lines)
    return done if status == "Failed" else lines


def test_a_manifest_names_the_objects(cluster: Server) -> None:
    s3 = cluster.boto("s3")
    s3.put_object(
        Bucket="yard",
        Key="lists/some",
        Body=json.dumps([{"prefix": "s3://yard/"}, "in/c", "in/a", "packed/b.gz"]),
    )
    lines = run(
        cluster,
        "manifest",
        "cd /opt/ml/input/data; cat train-manifest; echo; find train -type f | sort; cat train/in/a"
        " train/in/c; echo; ls shard/in",
        [
            channel("train", "s3://yard/lists/some", kind="ManifestFile"),
            channel(
                "shard", "s3://yard/lists/some", kind="ManifestFile", distribution="ShardedByS3Key"
            ),
        ],
    )
    assert json.loads(lines[0]) == [{"prefix": "s3://yard/"}, "in/c", "in/a", "packed/b.gz"]
    assert lines[1:5] == ["train/in/a", "train/in/c", "train/packed/b.gz", "ac"] and lines[5:] == [
        "a",
        "c",
    ]
    s3.put_object(Bucket="yard", Key="lists/bad", Body="[1]")
    failed = run(
        cluster,
        "manifest-bad",
        "true",
        [channel("train", "s3://yard/lists/bad", kind="ManifestFile")],
        "Failed",
    )
    assert failed["FailureReason"].startswith(
        "ClientError: Data download failed: channel train: s3://yard/lists/bad: a manifest's first"
        " entry"
    )


def test_fifos_epoch_by_epoch(cluster: Server) -> None:
    """One of two channels is closed early, the other is never read. The configuration says Pipe,
    and the directory does not exist."""
    lines = run(
        cluster,
        "pipe",
        python("""
import json
print(sorted(os.listdir(DATA)), flush=True)
print(json.load(open('/opt/ml/input/config/inputdataconfig.json'))['train']['TrainingInputMode'])
print(read_epoch('train', 0), read_epoch('train', 1))
with open_epoch('train', 2) as fifo: print(fifo.read(3))
print(read_epoch('train', 3))
print(read_epoch('packed', 0) == b''.join(c.encode() * 1000 for c in 'abcdefgh'))
print([record[:2] for record in records(read_epoch('wrapped', 0))])
print([len(record) for record in records(read_epoch('both', 0))])
"""),
        [
            channel("train", "s3://yard/in/"),
            channel("unread", "s3://yard/in/"),
            channel("packed", "s3://yard/packed/", CompressionType="Gzip"),
            channel("wrapped", "s3://yard/in/", RecordWrapperType="RecordIO"),
            channel(
                "both", "s3://yard/packed/", CompressionType="Gzip", RecordWrapperType="RecordIO"
            ),
        ],
        AlgorithmSpecification={"TrainingInputMode": "Pipe"},
    )
    assert lines[0] == str(
        sorted(["code", "code-manifest", "train_0", "unread_0", "packed_0", "wrapped_0", "both_0"])
    )
    assert lines[1:] == [
        "Pipe",
        "b'abcdefgh' b'abcdefgh'",
        "b'abc'",
        "b'abcdefgh'",
        "True",
        str([name.encode() for name in "abcdefgh"]),
        str([1000] * 8),
    ]


def test_dmlcs_reader_reads_the_records(cluster: Server, tmp_path: pathlib.Path) -> None:
    """dmlc's reader reads back every byte, also if a payload contains RecordIO's magic."""
    magic = struct.pack("<I", 0xCED7230A)
    payloads = [b"", b"1", b"12345678", magic, b"abcd" + magic * 3, os.urandom(100_001), b"\n"]
    for number, payload in enumerate(payloads):
        cluster.boto("s3").put_object(Bucket="yard", Key=f"payloads/{number}", Body=payload)
    run(
        cluster,
        "records",
        python("open('/opt/ml/model/records', 'wb').write(read_epoch('train', 0))"),
        [channel("train", "s3://yard/payloads/", "Pipe", RecordWrapperType="RecordIO")],
        OutputDataConfig={"CompressionType": "NONE"},
    )
    stream = (
        cluster.boto("s3")
        .get_object(Bucket="yard", Key="models/records/output/model/records")["Body"]
        .read()
    )
    reader = str(tmp_path / "reader")
    subprocess.run(
        ["g++", "-O1", "-o", reader, os.path.join(ROOT, "tests/system/dmlc_records.cpp"), "-ldmlc"],
        check=True,
    )
    read = (
        subprocess.run([reader], input=stream, capture_output=True, check=True)
        .stdout.decode()
        .splitlines()
    )
    assert [bytes.fromhex(line) for line in read] == payloads


def test_shuffled_shards_change_hands(cluster: Server) -> None:
    script = python(
        "for epoch in range(4): print(os.uname().nodename, epoch, read_epoch('train',"
        " epoch).decode(), flush=True)"
    )
    lines = run(
        cluster,
        "shuffled",
        script,
        [
            channel(
                "train",
                "s3://yard/in/",
                "Pipe",
                distribution="ShardedByS3Key",
                ShuffleConfig={"Seed": 3},
            )
        ],
        hosts=2,
    )
    shares = {(host, int(epoch)): share for host, epoch, share in (line.split() for line in lines)}
    for epoch in range(4):
        assert sorted(shares["algo-1", epoch] + shares["algo-2", epoch]) == list("abcdefgh")
    assert len({"".join(sorted(shares["algo-1", epoch])) for epoch in range(4)}) > 1
    again = run(
        cluster,
        "shuffled-again",
        script,
        [
            channel(
                "train",
                "s3://yard/in/",
                "Pipe",
                distribution="ShardedByS3Key",
                ShuffleConfig={"Seed": 3},
            )
        ],
        hosts=2,
    )
    assert sorted(again) == sorted(lines), "the seed says it all"
    dealt = run(
        cluster,
        "shuffled-files",
        "echo $(hostname) $(ls /opt/ml/input/data/train)",
        [
            channel(
                "train",
                "s3://yard/in/",
                "File",
                distribution="ShardedByS3Key",
                ShuffleConfig={"Seed": 3},
            )
        ],
        hosts=2,
    )
    files = {line.split()[0]: "".join(line.split()[1:]) for line in dealt}
    assert files == {host: "".join(sorted(shares[host, 0])) for host in ("algo-1", "algo-2")}


def test_an_augmented_manifest(cluster: Server) -> None:
    s3 = cluster.boto("s3")
    records = [
        {
            "source-ref": f"s3://yard/in/{name}",
            "class": number,
            "note": "n" + name,
            "box": {"x": [number]},
        }
        for number, name in enumerate("abc")
    ]
    s3.put_object(
        Bucket="yard",
        Key="lists/augmented",
        Body="\n".join(json.dumps(record) for record in records) + "\n",
    )
    lines = run(
        cluster,
        "augmented",
        python(
            "print(records(read_epoch('train', 0))); print(read_epoch('plain', 0));"
            " print(records(read_epoch('train', 1))[2])"
        ),
        [
            channel(
                "train",
                "s3://yard/lists/augmented",
                "Pipe",
                "AugmentedManifestFile",
                attributes=["source-ref", "class", "box"],
                RecordWrapperType="RecordIO",
            ),
            channel(
                "plain",
                "s3://yard/lists/augmented",
                "Pipe",
                "AugmentedManifestFile",
                attributes=["note"],
            ),
        ],
    )
    assert lines == [
        str([b"a", b"0", b'{"x":[0]}', b"b", b"1", b'{"x":[1]}', b"c", b"2", b'{"x":[2]}']),
        "b'nanbnc'",
        str(b'{"x":[0]}'),
    ]
    failed = run(
        cluster,
        "augmented-bad",
        python("read_epoch('train', 0)"),
        [
            channel(
                "train",
                "s3://yard/lists/augmented",
                "Pipe",
                "AugmentedManifestFile",
                attributes=["label"],
            )
        ],
        "Failed",
    )
    assert (
        "ClientError: Data download failed: channel train: the manifest's record 1: attribute"
        " label not found" in failed["FailureReason"]
    )


def test_unreadable_objects_of_a_stream_fail_the_job(cluster: Server) -> None:
    """The reader waits for bytes that never arrive. It is ended, so that it does not hang or use
    half an epoch as a whole one."""
    s3 = cluster.boto("s3")
    for name in ("a", "b"):
        s3.put_object(Bucket="yard", Key=f"gone/{name}", Body=name.encode())
    submit(
        cluster,
        "gone",
        python(
            "for epoch in range(10**6): print('epoch', epoch, len(read_epoch('train', epoch)),"
            " flush=True); time.sleep(0.2)"
        ),
        [channel("train", "s3://yard/gone/", "Pipe")],
    )
    jobs.wait_until(cluster.boto("sagemaker"), "gone", ("Training",))
    s3.delete_object(Bucket="yard", Key="gone/b")
    done = jobs.wait_until(cluster.boto("sagemaker"), "gone")
    assert done["FailureReason"].startswith(
        "ClientError: Data download failed: channel train: s3://yard/gone/b: "
    ), done["FailureReason"]
    assert all(line.endswith(" 2") for line in jobs.log_lines(cluster.boto("logs"), "gone")), (
        "no epoch was cut short"
    )
    s3.put_object(Bucket="yard", Key="not-gzip/a", Body=b"plain text")
    failed = run(
        cluster,
        "not-gzip",
        python("read_epoch('train', 0)"),
        [channel("train", "s3://yard/not-gzip/", "Pipe", CompressionType="Gzip")],
        "Failed",
    )
    assert (
        "ClientError: Data download failed: channel train: s3://yard/not-gzip/a: invalid gzip data"
        in failed["FailureReason"]
    )


def test_a_channel_is_for_its_groups(cluster: Server) -> None:
    resources = {
        "InstanceGroups": [
            {"InstanceGroupName": name, "InstanceType": "ml.t3.medium", "InstanceCount": count}
            for name, count in (("loaders", 1), ("trainers", 2))
        ],
        "VolumeSizeInGB": 1,
    }
    script = """cd /opt/ml/input; echo $(hostname) $(ls data | grep -v code) $(python3 -c "
import json; print('/'.join(sorted(json.load(open('config/inputdataconfig.json')))))") $(cat data/train/* 2>/dev/null)"""
    name = "groups"
    cluster.boto("s3").put_object(Bucket="yard", Key=f"code/{name}/run", Body=script.encode())
    request = jobs.request(name, "/bin/sh /opt/ml/input/data/code/run")
    request["ResourceConfig"] = resources
    request["InputDataConfig"] = [
        channel("code", f"s3://yard/code/{name}/", "File"),
        channel("raw", "s3://yard/packed/", groups=["loaders"]),
        channel("train", "s3://yard/in/", distribution="ShardedByS3Key", groups=["trainers"]),
    ]
    cluster.boto("sagemaker").create_training_job(**request)
    done = jobs.wait_until(cluster.boto("sagemaker"), name)
    lines = jobs.log_lines(cluster.boto("logs"), name)
    assert done["TrainingJobStatus"] == "Completed", (done, lines)
    assert sorted(lines) == [
        "algo-1 raw raw-manifest code/raw",
        "algo-2 train train-manifest code/train aceg",
        "algo-3 train train-manifest code/train bdfh",
    ]


def test_a_model_without_an_archive(cluster: Server) -> None:
    lines = run(
        cluster,
        "loose",
        "mkdir -p /opt/ml/model/a; echo $(hostname) > /opt/ml/model/same; echo x >"
        " /opt/ml/model/a/$(hostname); ln -s same /opt/ml/model/link; echo o >"
        " /opt/ml/output/data/o",
        [],
        hosts=2,
        OutputDataConfig={"CompressionType": "NONE"},
    )
    assert any("link was left out" in line for line in lines)
    listed = cluster.boto("s3").list_objects_v2(Bucket="yard", Prefix="models/loose/output/")[
        "Contents"
    ]
    assert [entry["Key"][len("models/loose/output/") :] for entry in listed] == [
        "model/a/algo-1",
        "model/a/algo-2",
        "model/same",
        "model/same.algo-2",
        "output.tar.gz",
    ]
    described = cluster.boto("sagemaker").describe_training_job(TrainingJobName="loose")
    assert described["ModelArtifacts"]["S3ModelArtifacts"] == "s3://yard/models/loose/output/model/"
    assert described["OutputDataConfig"]["CompressionType"] == "NONE"


REFUSED = [
    (
        channel("train", "s3://yard/in/", "File", CompressionType="Gzip"),
        "CompressionType Gzip can be used only in Pipe mode",
    ),
    (
        channel("train", "s3://yard/in/", RecordWrapperType="RecordIO"),
        "RecordWrapperType RecordIO can be used only in Pipe mode",
    ),
    (
        channel("train", "s3://yard/in/", kind="AugmentedManifestFile", attributes=["a"]),
        "AugmentedManifestFile can be used only in Pipe mode",
    ),
    (channel("train", "s3://yard/in/", "Pipe", "AugmentedManifestFile"), "needs AttributeNames"),
    (channel("train", "s3://yard/in/", attributes=["a"]), "AttributeNames are only for"),
    (channel("train", "s3://yard/in/", groups=["nobody"]), "instance group not found: nobody"),
    (
        channel("train", "s3://yard/in/", "FastFile", "AugmentedManifestFile", attributes=["a"]),
        "AugmentedManifestFile can be used only in Pipe mode",
    ),
    (channel("code_0", "s3://yard/in/"), "that is the name of a file of channel code"),
    (channel("code", "s3://yard/in/"), "Channel names must be unique"),
]


@pytest.mark.parametrize("refused, words", REFUSED, ids=range(len(REFUSED)))
def test_contradictions_are_refused_with_an_explanation(
    cluster: Server, refused: dict[str, Any], words: str
) -> None:
    request = jobs.request("refused")
    request["InputDataConfig"] = [channel("code", "s3://yard/code/", "Pipe"), refused]
    with pytest.raises(cluster.boto("sagemaker").exceptions.ClientError, match=words):
        cluster.boto("sagemaker").create_training_job(**request)


def file_system(
    name: str,
    path: str,
    identity: str = "fs-0123456789abcdef0",
    kind: str = "FSxLustre",
    mode: str = "ro",
) -> dict[str, Any]:
    return {
        "ChannelName": name,
        "DataSource": {
            "FileSystemDataSource": {
                "FileSystemId": identity,
                "FileSystemType": kind,
                "DirectoryPath": path,
                "FileSystemAccessMode": mode,
            }
        },
    }


def test_shared_file_systems(start: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    """They are mounted on every host, not copied. Links do not lead out of the root, and nothing
    stays mounted."""
    lustre, efs = tmp_path / "lustre", tmp_path / "efs"
    (lustre / "sets/one").mkdir(parents=True)
    (lustre / "sets/one/data").write_text("data\n")
    (lustre / "inner").symlink_to("sets/one")
    (lustre / "outer").symlink_to(tmp_path)
    efs.mkdir()
    os.chown(efs, 1000, 1000)
    (tmp_path / "secret").write_text("secret")
    server = start(f"""
[posix_users]
"*" = "1000:1000"
[file_systems."fs-0123456789abcdef0"]
directory = "{lustre}"
type = "FSxLustre"
mount_name = "fsx"
[file_systems."fs-0000000000000000e"]
directory = "{efs}"
""")
    sagemaker = server.boto("sagemaker")
    server.boto("s3").create_bucket(Bucket="yard")
    before = leftovers.picture(server.data)

    def submit(name: str, *channels: dict[str, Any], script: str = "true", **more: Any) -> None:
        request = jobs.request(name, script, **more)
        request["InputDataConfig"] = list(channels)
        sagemaker.create_training_job(**request)

    submit(
        "shared",
        file_system("train", "/fsx/inner"),
        file_system("out", "/", "fs-0000000000000000e", "EFS", "rw"),
        hosts=2,
        script=(
            "cd /opt/ml/input/data; cat train/data; touch train/x 2>/dev/null && echo writable;"
            " echo $(hostname) > out/$(hostname); cat ../config/inputdataconfig.json; echo"
        ),
    )
    done = jobs.wait_until(sagemaker, "shared")
    lines = jobs.log_lines(server.boto("logs"), "shared", 1)
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
    assert (
        lines[0] == "data"
        and json.loads(lines[1])["train"]["S3DistributionType"] == "FullyReplicated"
    )
    assert (
        sorted(path.name for path in efs.iterdir()) == ["algo-1", "algo-2"]
        and (efs / "algo-2").read_text() == "algo-2\n"
    )

    submit("escape", file_system("train", "/outer"))
    reason = jobs.wait_until(sagemaker, "escape")["FailureReason"]
    assert reason.startswith(
        "ClientError: Data download failed: channel train: fs-0123456789abcdef0: outer: a link"
        " leads out of"
    ), reason
    submit("missing", file_system("train", "/none"))
    assert (
        "ClientError: Data download failed: channel train: fs-0123456789abcdef0: none: No such file"
        in jobs.wait_until(sagemaker, "missing")["FailureReason"]
    )
    for channel_asked, words in (
        (file_system("t", "/a/../.."), "must not contain '..'"),
        (file_system("t", "/", "fs-99999999999999999"), "unknown file system"),
        (file_system("t", "/", kind="EFS"), "is of type FSxLustre"),
        (file_system("t", "x"), "must start with /"),
        (file_system("t", "/") | {"InputMode": "Pipe"}, "only in File mode"),
    ):
        with pytest.raises(sagemaker.exceptions.ClientError, match=words):
            submit("refused", channel_asked)
    wait_for(
        lambda: not leftovers.left(before, leftovers.picture(server.data)), "everything to be gone"
    )
    assert (lustre / "sets/one/data").read_text() == "data\n" and (efs / "algo-1").exists()
