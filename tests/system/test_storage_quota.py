"""Tests storage quotas of buckets and users: clients get QuotaExceeded, writes of jobs count for
the user that started them, and /metrics shows the usage."""

import io
import json
import os
import re
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

import botocore.exceptions
import pytest
from botocore.client import BaseClient

from tests import jobs
from tests.trainyard_server import Server, wait_for

KEYS = "[[access_key]]\nid = 'AKIAOWNEROWNEROWNER0'\nsecret = 'owner-secret'\n"
QUOTAS = """[[storage_quota]]
bucket = "small"
gib = 0.01
[[storage_quota]]
user = "ann"
gib = 0.02
objects = 6
"""
MEBIBYTE = 1 << 20
METRICS = "[server]\nmetrics_listen = '127.0.0.1:0'\n"


def refused(call: Callable[..., Any], **arguments: Any) -> tuple[str, int, str]:
    with pytest.raises(botocore.exceptions.ClientError) as raised:
        call(**arguments)
    error = raised.value.response
    return (
        error["Error"]["Code"],
        error["ResponseMetadata"]["HTTPStatusCode"],
        error["Error"]["Message"],
    )


def user(server: Server, name: str, *actions: Sequence[str]) -> Callable[[str], BaseClient]:
    iam = server.boto("iam")
    iam.create_user(UserName=name)
    iam.put_user_policy(
        UserName=name,
        PolicyName="p",
        PolicyDocument=json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}],
            }
        ),
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]

    def boto(service: str) -> BaseClient:
        import boto3
        from botocore.config import Config

        return boto3.client(
            service,
            aws_access_key_id=key["AccessKeyId"],
            aws_secret_access_key=key["SecretAccessKey"],
            region_name="eu-west-1",
            endpoint_url=server.env["AWS_ENDPOINT_URL"],
            config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}),
        )

    return boto


def sample(server: Server, name: str) -> float | None:
    text = urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=60).read().decode()
    found = re.search("^" + re.escape(name) + r" (\S+)$", text, re.M)
    return float(found[1]) if found else None


def test_quotas_of_buckets_and_users(start: Callable[..., Server]) -> None:
    server = start(KEYS + "[regions.'eu-west-1']\n" + METRICS + QUOTAS)
    s3 = server.boto("s3")
    for bucket in ("small", "large"):
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="small", Key="a", Body=b"x" * 6 * MEBIBYTE)
    code, status, message = refused(
        s3.put_object, Bucket="small", Key="b", Body=b"x" * 6 * MEBIBYTE
    )
    assert (code, status) == (
        "QuotaExceeded",
        403,
    ) and "the storage quota of the bucket 'small'" in message
    assert (
        refused(s3.copy_object, Bucket="small", Key="b", CopySource="small/a")[0] == "QuotaExceeded"
    )
    assert sample(server, 'trainyard_bucket_bytes{bucket="small"}') == 6 * MEBIBYTE
    assert sample(server, 'trainyard_bucket_objects{bucket="small"}') == 1
    upload = s3.create_multipart_upload(Bucket="small", Key="parts")["UploadId"]
    arguments = {"Bucket": "small", "Key": "parts", "UploadId": upload}
    s3.upload_part(PartNumber=1, Body=b"p" * 3 * MEBIBYTE, **arguments)
    assert (
        refused(s3.upload_part, PartNumber=2, Body=b"p" * 3 * MEBIBYTE, **arguments)[0]
        == "QuotaExceeded"
    ), "parts of running uploads count"
    s3.abort_multipart_upload(**arguments)
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="small")["Contents"]] == ["a"]

    ann = user(server, "ann", "s3:*")("s3")
    ann.put_object(Bucket="large", Key="ann/1", Body=b"x" * 15 * MEBIBYTE)
    code, status, message = refused(
        ann.put_object, Bucket="large", Key="ann/2", Body=b"x" * 6 * MEBIBYTE
    )
    assert (code, status) == (
        "QuotaExceeded",
        403,
    ) and "the storage quota of the user 'ann'" in message
    assert (
        refused(
            ann.upload_fileobj, Fileobj=io.BytesIO(b"x" * 9 * MEBIBYTE), Bucket="large", Key="ann/3"
        )[0]
        == "QuotaExceeded"
    )
    s3.put_object(Bucket="large", Key="owner", Body=b"x" * 30 * MEBIBYTE)

    server.kill()
    server.start()
    assert (
        refused(ann.put_object, Bucket="large", Key="ann/2", Body=b"x" * 6 * MEBIBYTE)[0]
        == "QuotaExceeded"
    ), "and after a crash"
    server.reload(server.config.replace("gib = 0.02", "gib = 0.03"))
    wait_for(lambda: "reloaded the machines" in server.log_text(), "the config to be reloaded")
    ann.put_object(Bucket="large", Key="ann/2", Body=b"x" * 6 * MEBIBYTE)
    ann.delete_object(Bucket="large", Key="ann/1")
    for number in range(5):
        ann.put_object(Bucket="large", Key=f"ann/small-{number}", Body=b"")
    code, _, message = refused(ann.put_object, Bucket="large", Key="ann/more", Body=b"")
    assert code == "QuotaExceeded" and "6 objects" in message


def test_a_jobs_objects_count_for_the_person_behind_it(start: Callable[..., Server]) -> None:
    server = start(
        KEYS
        + "[regions.'eu-west-1']\n[jobs]\nstop_grace_seconds = 3\n[[machine]]\nname = 'box'\ncpus ="
        " 8.0\nmemory_gib = 32.0\n" + QUOTAS
    )
    owner = server.boto("s3")
    for bucket in ("yard", "other"):
        owner.create_bucket(Bucket=bucket)
    boto = user(server, "ann", "s3:*", "sagemaker:*", "iam:PassRole")
    request = jobs.request("writer")
    request["AlgorithmSpecification"] |= {
        "ContainerEntrypoint": ["/bin/sh", "-c"],
        "ContainerArguments": [
            "head -c 12000000 /dev/zero > /opt/ml/checkpoints/one; sleep 2; exit 0"
        ],
    }
    request["CheckpointConfig"] = {
        "S3Uri": "s3://yard/checkpoints/",
        "LocalPath": "/opt/ml/checkpoints",
    }
    sagemaker = boto("sagemaker")
    sagemaker.create_training_job(**request)
    assert jobs.wait_until(sagemaker, "writer")["TrainingJobStatus"] == "Completed"
    assert owner.head_object(Bucket="yard", Key="checkpoints/one")["ContentLength"] == 12_000_000
    ann = boto("s3")
    assert (
        refused(ann.put_object, Bucket="other", Key="mine", Body=b"x" * 12 * MEBIBYTE)[0]
        == "QuotaExceeded"
    ), "the job's checkpoint is ann's"
    owner.delete_object(Bucket="yard", Key="checkpoints/one")
    ann.put_object(Bucket="other", Key="mine", Body=b"x" * 12 * MEBIBYTE)


def test_broken_objects_are_counted(start: Callable[..., Server]) -> None:
    server = start(METRICS)
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="good", Body=b"x" * 100)
    s3.put_object(Bucket="yard", Key="broken", Body=b"x" * 100)
    with open(os.path.join(server.data, "objects/buckets/yard/keys/obroken"), "r+b") as file:
        file.write(b"y")
    assert sample(server, "trainyard_broken_object_reads_total") == 0
    assert refused(s3.get_object, Bucket="yard", Key="broken")[1] == 500
    assert sample(server, "trainyard_broken_object_reads_total") == 1
    import subprocess

    assert sample(server, "trainyard_scrub_broken_objects") is None
    assert (
        subprocess.run(
            [server.program, "scrub", "--data", server.data], capture_output=True, timeout=60
        ).returncode
        != 0
    )
    assert (
        sample(server, "trainyard_scrub_broken_objects") == 1
        and sample(server, "trainyard_scrub_objects") == 2
    )
