"""Reads the archives in which jobs store their models."""

import io
import tarfile
from typing import Any

import boto3


def model_files(uri: str) -> dict[str, Any]:
    bucket, key = uri.removeprefix("s3://").split("/", 1)
    body = boto3.session.Session().client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return {name: archive.extractfile(name).read().decode() for name in archive.getnames()}
