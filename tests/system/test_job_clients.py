"""Tests that AWS clients inside a job which do not know AWS_ENDPOINT_URL, Debian's boto3 and AWS
CLI, reach this server with the job's own keys, in the machine's own system and in images."""

import json
import os
import pathlib
from collections.abc import Callable

import pytest

from tests import jobs, oci
from tests.trainyard_server import Server

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="containers need root")

# Runs with Debian's Python, which has Debian's boto3.
CALLS = """
import os, boto3, botocore
print("botocore", botocore.__version__)
mine = os.environ["OUTPUT"]
s3 = boto3.client("s3")
s3.put_object(Bucket="data", Key=mine + "/by-boto3", Body=b"bytes of boto3")
print(s3.get_object(Bucket="data", Key=mine + "/by-boto3")["Body"].read().decode())
print(boto3.client("sts").get_caller_identity()["Arn"])
print(s3.meta.endpoint_url, boto3.client("logs", region_name="eu-west-1").meta.endpoint_url)
"""
SCRIPT = """
set -e
/usr/bin/python3 /opt/ml/input/data/code/calls.py
echo bytes of the cli > /tmp/file
/usr/bin/aws s3 cp --quiet /tmp/file "s3://data/$OUTPUT/by-cli"
/usr/bin/aws s3 cp --quiet "s3://data/$OUTPUT/by-cli" -
/usr/bin/aws s3 ls "s3://data/$OUTPUT/" | sed 's/.* //'
touch "$AWS_DATA_PATH/endpoints.json" 2>/dev/null && echo it can be changed || true
"""


def test_debians_boto3_and_cli_reach_this_server(start: Callable[..., Server]) -> None:
    server = start()
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="data")
    s3.put_object(Bucket="data", Key="code/calls.py", Body=CALLS.encode())
    s3.put_object(Bucket="data", Key="code/run.sh", Body=SCRIPT.encode())
    server.boto("sagemaker").create_training_job(
        **jobs.request(
            "clients",
            "sh /opt/ml/input/data/code/run.sh 2>&1",
            channels={"code": ("s3://data/code/", "FullyReplicated")},
            Environment={"OUTPUT": "models/clients"},
            bucket="data",
        )
    )
    done = jobs.wait_until(server.boto("sagemaker"), "clients")
    output = jobs.log_lines(server.boto("logs"), "clients")
    assert done["TrainingJobStatus"] == "Completed", (done.get("FailureReason"), output)
    version, body, identity, urls, *rest = output
    assert int(version.split(".")[1]) < 31, "later versions know AWS_ENDPOINT_URL: another client"
    assert body == "bytes of boto3" and ":assumed-role/trainer/" in identity, output
    assert urls == "http://169.254.170.2:4566 http://169.254.170.2:4566"
    assert rest == ["bytes of the cli", "by-boto3", "by-cli"], output
    kept = s3.get_object(Bucket="data", Key="models/clients/by-cli")["Body"].read()
    assert kept == b"bytes of the cli\n"


def test_the_containers_of_images_have_the_same_file(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    layout = oci.Layout(tmp_path / "layout")
    layout.image("v1", [oci.base()], {"Env": ["PATH=/bin"]})
    layout.image("own", [oci.base()], {"Env": ["PATH=/bin", "AWS_DATA_PATH=/mine"]})
    server = start()
    server.boto("s3").create_bucket(Bucket="data")
    for tag, path in (("v1", "/opt/trainyard/clients"), ("own", "/mine")):
        script = "echo $AWS_DATA_PATH; cat /opt/trainyard/clients/endpoints.json"
        server.boto("sagemaker").create_training_job(
            **jobs.request(f"image-{tag}", script, bucket="data", image=f"oci:{layout.path}:{tag}")
        )
        done = jobs.wait_until(server.boto("sagemaker"), f"image-{tag}")
        assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
        output = jobs.log_lines(server.boto("logs"), f"image-{tag}")
        assert output[0] == path, "the image's own setting wins"
        partition = json.loads("\n".join(output[1:]))["partitions"][0]
        assert partition["defaults"]["hostname"] == "169.254.170.2:4566"
