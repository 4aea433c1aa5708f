"""Runs moto's own tests against this server, as a plugin of pytest next to moto.

In moto's server mode its tests talk to the address in TEST_SERVER_MODE_ENDPOINT. This plugin keeps
the server's own access keys, empties the account before each test, where moto would reset its
server, and skips tests that send the server no request."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Callable, Generator

import boto3
import moto.core.config
import moto.core.models
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.client import BaseClient
from botocore.httpsession import URLLib3Session
from moto import settings

RESET_SECONDS_MAX = 120


class Requests:
    """Counts the requests that a test sends to the server, except the requests that empty it."""

    count = 0
    resetting = False


def client(service: str, region: str = "us-east-1") -> BaseClient:
    return boto3.client(
        service, endpoint_url=settings.test_server_mode_endpoint(), region_name=region
    )


def empty_s3() -> None:
    s3 = client("s3")
    for bucket in s3.list_buckets().get("Buckets", []):
        name = bucket["Name"]
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
            keys = [{"Key": one["Key"]} for one in page.get("Versions", [])]
            if keys:
                s3.delete_objects(Bucket=name, Delete={"Objects": keys, "Quiet": True})
        for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=name):
            for upload in page.get("Uploads", []):
                s3.abort_multipart_upload(
                    Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"]
                )
        s3.delete_bucket(Bucket=name)


def make_delivery_bucket() -> None:
    client("s3").create_bucket(Bucket="test-s3-bucket")


# The functions that remove what moto's tests leave, by the service's folder of tests.
EMPTY: dict[str, list[Callable[[], None]]] = {
    "test_s3": [empty_s3],
    "test_logs": [empty_s3],  # export tasks and deliveries write to buckets
}
# Resources that moto's tests name without making them.
PREPARE: dict[str, list[Callable[[], None]]] = {"test_logs": [make_delivery_bucket]}


def empty_account(folder: str) -> None:
    Requests.resetting = True
    try:
        for step in EMPTY.get(folder, []) + PREPARE.get(folder, []):
            step()
    finally:
        Requests.resetting = False


def count_requests() -> None:
    send = URLLib3Session.send

    def counted(session: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
        answer = send(session, request)
        if not Requests.resetting and request.url.startswith(settings.test_server_mode_endpoint()):
            Requests.count += 1
        return answer

    URLLib3Session.send = counted


def pytest_configure(config: pytest.Config) -> None:
    assert settings.TEST_SERVER_MODE
    moto.core.config.default_user_config["core"]["mock_credentials"] = False
    moto.core.models.ServerModeMockAWS.reset = lambda self: None
    count_requests()


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Here, since a test may freeze the clock around moto's own.
    if reset := os.environ.get("SERVER_RESET"):
        with urllib.request.urlopen(reset, timeout=RESET_SECONDS_MAX):
            pass
    empty_account(item.nodeid.split("/")[1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    Requests.count = 0
    yield
    if Requests.count == 0:
        pytest.skip("the test sent the server no request")
