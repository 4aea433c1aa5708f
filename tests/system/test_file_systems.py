"""Tests FSx file systems of training jobs: filled from S3, mounted, exported and removed, also when
the server is killed meanwhile."""

import hashlib
import json
import os
import pathlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.client import BaseClient

from tests import file_systems, jobs, leftovers
from tests.calls import fresh, refusal
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")

OBJECTS = 1_500  # importing them takes some seconds, during which the server is killed
KILLS = 4


def files_of(server: Server, identity: str) -> pathlib.Path:
    return pathlib.Path(server.data) / "file_systems" / identity / "files"


def submit(server: Server, name: str, script: str, *channels: dict[str, Any]) -> None:
    request = jobs.request(name, script)
    request["InputDataConfig"] = list(channels)
    server.boto("sagemaker").create_training_job(**request)


def ended(server: Server, name: str) -> tuple[dict[str, Any], list[str]]:
    done = jobs.wait_until(server.boto("sagemaker"), name)
    return done, jobs.log_lines(server.boto("logs"), name, 1)


def test_a_file_system_around_a_training_run(server: Server) -> None:
    """Follows the tutorial: a file system is filled from S3, used by a job, exported, deleted."""
    s3, fsx, sagemaker = server.boto("s3"), server.boto("fsx"), server.boto("sagemaker")
    s3.create_bucket(Bucket="imagenet")
    s3.create_bucket(Bucket="yard")
    for number in range(10):
        s3.put_object(Bucket="imagenet", Key=f"in/resized/{number}", Body=b"%d" % number)
    before = leftovers.picture(server.data)
    identity = file_systems.create(fsx, "s3://imagenet/in", ExportPath="s3://imagenet/out")
    submit(
        server,
        "train",
        "cd /opt/ml/input/data; cat train/*; echo; touch train/x 2>/dev/null && echo writable;"
        " mkdir -p all/models && echo weights > all/models/m; rm all/resized/9;"
        " while [ ! -e all/resized/go ]; do sleep 0.1; done",
        file_systems.channel("train", identity, "/fsx/resized"),
        file_systems.channel("all", identity, "/fsx", "rw"),
    )
    written = files_of(server, identity) / "models/m"
    wait_for(
        lambda: (
            written.exists()
            or sagemaker.describe_training_job(TrainingJobName="train")["TrainingJobStatus"]
            in jobs.FINAL
        ),
        "the job to write",
        120,
    )
    assert written.exists(), ended(server, "train")
    assert "in use by 1 job" in refusal(fsx.delete_file_system, "BadRequest", FileSystemId=identity)
    (files_of(server, identity) / "resized/go").touch()
    done, lines = ended(server, "train")
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), lines)
    assert lines[0] == "0123456789" and "writable" not in lines
    exported = file_systems.run_task(fsx, identity)
    assert exported["Lifecycle"] == "SUCCEEDED", exported
    assert s3.get_object(Bucket="imagenet", Key="out/models/m")["Body"].read() == b"weights\n"
    listed = [one["Key"] for one in s3.list_objects_v2(Bucket="imagenet")["Contents"]]
    assert "out/resized/0" not in listed and "in/resized/9" in listed
    fsx.delete_file_system(FileSystemId=identity)
    file_systems.wait_until_gone(fsx, identity)
    assert not files_of(server, identity).parent.exists()
    with pytest.raises(sagemaker.exceptions.ClientError, match="unknown file system"):
        submit(server, "late", "true", file_systems.channel("train", identity))
    wait_for(
        lambda: not leftovers.left(before, leftovers.picture(server.data)), "everything to be gone"
    )


def test_jobs_need_an_available_file_system_and_the_right_to_describe_it(server: Server) -> None:
    fsx, iam = server.boto("fsx"), server.boto("iam")
    root = pathlib.Path(server.data) / "file_systems"
    aside = root.with_suffix(".aside")
    root.mkdir(mode=0o700, exist_ok=True)
    root.rename(aside)
    root.touch()  # a file, so that no directory can be made in it
    failed = fsx.create_file_system(**file_systems.request())["FileSystem"]
    assert file_systems.settled(fsx, failed["FileSystemId"])["Lifecycle"] == "FAILED"
    root.unlink()
    aside.rename(root)
    sagemaker = server.boto("sagemaker")
    with pytest.raises(sagemaker.exceptions.ClientError, match="is failed: a job can use it once"):
        submit(server, "failed", "true", file_systems.channel("t", failed["FileSystemId"]))
    available = file_systems.create(fsx)
    name = fresh("ann")
    iam.create_user(UserName=name)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    own = server.boto(
        "sagemaker",
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )
    document = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["sagemaker:*", "iam:PassRole", "s3:*"], "Resource": "*"}
        ],
    }
    iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=json.dumps(document))
    request = jobs.request(fresh("denied"))
    request["InputDataConfig"] = [file_systems.channel("t", available)]
    arn = file_systems.describe(fsx, available)["ResourceARN"]
    denied = refusal(own.create_training_job, "AccessDeniedException", **request)
    assert f"fsx:DescribeFileSystems on resource: {arn}" in denied


def digest(files: pathlib.Path) -> dict[str, str]:
    return {
        str(path.relative_to(files)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files.rglob("*")
        if path.is_file()
    }


def fill_bucket(s3: BaseClient) -> dict[str, str]:
    s3.create_bucket(Bucket="many")
    bodies = {f"d{n % 7}/{n}": os.urandom(n * 37 % 50_000) for n in range(OBJECTS)}
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda item: s3.put_object(Bucket="many", Key=item[0], Body=item[1]),
                bodies.items(),
            )
        )
    return {key: hashlib.sha256(body).hexdigest() for key, body in bodies.items()}


def test_killed_servers_lose_nothing(start: Callable[..., Server]) -> None:
    """Filling, exporting and removing continue after kill -9: whole files, each record once."""
    server = start()
    wanted = fill_bucket(server.boto("s3"))
    request = file_systems.request("s3://many", ExportPath="s3://many/out")
    request |= {"ClientRequestToken": "once"}
    identity = server.boto("fsx").create_file_system(**request)["FileSystem"]["FileSystemId"]
    files = files_of(server, identity)
    seen = 0
    for _ in range(KILLS):
        wait_for(
            lambda: (
                file_systems.describe(server.boto("fsx"), identity)["Lifecycle"] != "CREATING"
                or sum(path.is_file() for path in files.rglob("*")) > seen
            ),
            "progress",
            120,
        )
        seen = sum(path.is_file() for path in files.rglob("*"))
        server.kill()
        server.start()
    fsx = server.boto("fsx")
    assert fsx.create_file_system(**request)["FileSystem"]["FileSystemId"] == identity
    assert file_systems.settled(fsx, identity)["Lifecycle"] == "AVAILABLE"
    assert digest(files) == wanted
    assert not list((files.parent / "work").iterdir())

    for path in files.rglob("*"):
        if path.is_file():
            os.utime(path)  # now newer than its object, so it is exported
    task = fsx.create_data_repository_task(
        FileSystemId=identity, Type="EXPORT_TO_REPOSITORY", Report={"Enabled": False}
    )["DataRepositoryTask"]["TaskId"]
    server.kill()
    server.start()
    fsx = server.boto("fsx")
    done = wait_for(
        lambda: (
            (
                found := fsx.describe_data_repository_tasks(TaskIds=[task])["DataRepositoryTasks"][
                    0
                ]
            ).get("EndTime")
            and found
        ),
        "the task to end",
        120,
    )
    assert done["Lifecycle"] == "SUCCEEDED" and done["Status"]["TotalCount"] == OBJECTS
    exported = {
        one["Key"].removeprefix("out/")
        for page in server.boto("s3")
        .get_paginator("list_objects_v2")
        .paginate(Bucket="many", Prefix="out/")
        for one in page["Contents"]
    }
    assert exported == set(wanted)

    fsx.delete_file_system(FileSystemId=identity)
    server.kill()
    server.start()
    file_systems.wait_until_gone(server.boto("fsx"), identity)
    assert not files.parent.exists()
