"""Tests each line of docs/compatibility.md through unmodified boto3: only absent operations are
answered with an error that names the operation and the page."""

import importlib.util
import os
import types
from typing import Any

import botocore.exceptions
import pytest
from botocore.client import BaseClient
from botocore.config import Config

from tests import trainyard_server
from tests.trainyard_server import Server

REFUSAL = "is not offered by this version; see docs/compatibility.md"
# Labels of S3's and Batch's paths; no such bucket and no such resource exist.
LABELS = {
    "Bucket": "bucket-that-is-absent",
    "Key": "key",
    "resourceArn": "arn:aws:batch:us-east-1:123456789012:job/none",
    "SourceRegion": "us-west-2",  # botocore presigns a request to it
    "EndpointName": "EndpointName",
    # without these two the client itself rejects the operation of S3
    "RequestRoute": "route",
    "RequestToken": "token",
}


def page() -> types.ModuleType:
    path = os.path.join(trainyard_server.ROOT, "docs/internals/write_compatibility.py")
    spec = importlib.util.spec_from_file_location("write_compatibility", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# A service of each protocol that has no section, or shares the scope of its signatures with one
# that has: its operation, and what the answer names.
OTHER_SERVICES = {
    "ecr": ("DescribeRepositories", "DescribeRepositories of the service ecr"),
    "kms": ("ListKeys", "ListKeys of the service kms"),
    "sqs": ("ListQueues", "ListQueues of the service sqs"),
    "rds": ("DescribeDBInstances", "The service rds"),
    "lambda": ("ListFunctions", "The service lambda"),
    "sagemaker-runtime": ("InvokeEndpoint", "POST /endpoints/EndpointName/invocations"),
    "sagemaker-metrics": ("BatchPutMetrics", "PUT /BatchPutMetrics"),
}

OPERATIONS = page().operations()
SERVICES = sorted({operation.service for operation in OPERATIONS})


def client(server: Server, service: str) -> BaseClient:
    config = Config(
        retries={"max_attempts": 0},
        parameter_validation=False,
        inject_host_prefix=False,
        s3={"addressing_style": "path"},
        signature_version="s3v4" if service == "s3" else None,
    )
    return server.boto(service, config=config)


def message(caller: BaseClient, name: str) -> str:
    """Returns the error's message; "" without an error."""
    shape = caller.meta.service_model.operation_model(name).input_shape
    members = shape.members if shape else {}
    arguments: dict[str, Any] = {label: LABELS[label] for label in LABELS if label in members}
    try:
        caller._make_api_call(name, arguments)  # what every method of a client calls
    except botocore.exceptions.ClientError as error:
        return str(error.response["Error"].get("Message", ""))
    return ""


@pytest.mark.parametrize("service", SERVICES)
def test_every_row_of_the_page_is_correct(server: Server, service: str) -> None:
    caller = client(server, service)
    wrong = []
    for operation in OPERATIONS:
        if operation.service != service:
            continue
        text = message(caller, operation.name)
        if operation.support != "absent":
            if REFUSAL in text:
                wrong.append(f"{operation.name} is {operation.support}: {text}")
        # Some requests of S3 have two names, and answers to HEAD have no text.
        elif not (
            text.endswith(REFUSAL) if service == "s3" else text == f"{operation.name} {REFUSAL}"
        ):
            wrong.append(f"{operation.name} is absent: {text!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("service", OTHER_SERVICES)
def test_other_services_are_answered_with_their_name_and_the_page(
    server: Server, service: str
) -> None:
    caller = client(server, service)
    name, named = OTHER_SERVICES[service]
    assert message(caller, name) == f"{named} {REFUSAL}"
