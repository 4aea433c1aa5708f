"""Calls Debian's boto3, which is two years older. It cannot be imported next to the current one, so
each call runs in a separate process."""

import json
import subprocess
from typing import Any

from tests import trainyard_server

PYTHON = "/usr/bin/python3"
CALL_SECONDS_MAX = 120

SCRIPT = """
import datetime, json, os, sys
import boto3, botocore.exceptions
service, method, arguments = json.load(sys.stdin)
def times(value):
    if isinstance(value, dict) and set(value) == {"time"}:
        return datetime.datetime.fromtimestamp(value["time"], datetime.timezone.utc)
    if isinstance(value, dict):
        return {name: times(each) for name, each in value.items()}
    return [times(each) for each in value] if isinstance(value, list) else value
where = {"endpoint_url": os.environ["AWS_ENDPOINT_URL"],
         "region_name": os.environ["AWS_DEFAULT_REGION"]}
client = boto3.client(service, **where)
try:
    answer = getattr(client, method)(**times(arguments))
except botocore.exceptions.ClientError as error:
    answer = {"Error": error.response["Error"]}
answer.pop("ResponseMetadata", None)
print(json.dumps(answer, default=lambda time: time.timestamp()))
"""


def call(
    server: trainyard_server.Server, service: str, method: str, **arguments: Any
) -> dict[str, Any]:
    """Calls an operation; returns the response with times in seconds. A time argument: {"time":
    seconds}. An error is {"Error": ..}."""
    done = subprocess.run(
        [PYTHON, "-c", SCRIPT],
        input=json.dumps([service, method, arguments]),
        env=server.environment(),
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
