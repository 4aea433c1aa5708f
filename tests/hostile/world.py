"""Prepares the server that requests attack, with a job and an object of another user, and the
callers."""

import datetime
import http.client
import socket
import urllib.parse
from collections.abc import Callable
from typing import Any

import botocore.config

from tests.hostile.signer import Caller
from tests.trainyard_server import Server

JSON = {
    "Content-Type": "application/x-amz-json-1.1",
    "X-Amz-Target": "SageMaker.DescribeTrainingJob",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
DESCRIBE = b'{"TrainingJobName": "victim"}'
SECRET_OBJECT = "/yard/secret/object"
ANSWER_SECONDS_MAX = 30


class World:
    """Has the names, endpoints and keys that attackers from outside know."""

    def __init__(self, server: Server, poor: dict[str, str], job: dict[str, str]) -> None:
        self.server = server
        self.endpoint = server.env["AWS_ENDPOINT_URL"]
        self.keys = {
            "AccessKeyId": server.env["AWS_ACCESS_KEY_ID"],
            "SecretAccessKey": server.env["AWS_SECRET_ACCESS_KEY"],
        }
        self.owner = Caller(self.endpoint, self.keys)
        self.anonymous = Caller(
            self.endpoint, {"AccessKeyId": "AKIANOBODY0000000000", "SecretAccessKey": "guessed"}
        )
        self.guesser = Caller(self.endpoint, self.keys | {"SecretAccessKey": "guessed"})
        self.poor = Caller(self.endpoint, poor)
        self.job = Caller(self.endpoint, job)  # of a job that has ended
        # boto3 presigns in an older form by default, which is refused as a whole.
        self.s3 = server.boto(
            "s3",
            config=botocore.config.Config(
                signature_version="s3v4", s3={"addressing_style": "path"}
            ),
        )

    def plain(
        self, method: str, target: str, fields: dict[str, str], body: bytes = b""
    ) -> tuple[int, str]:
        return self.owner.send(method, target, fields, body)

    def job_with(self, **changed: str | None) -> Caller:
        keys = {
            name: value for name, value in (self.job.keys | changed).items() if value is not None
        }
        return Caller(self.endpoint, keys)

    def presigned(
        self, operation: str, seconds: int = 600, key: str = "secret/object"
    ) -> tuple[str, str]:
        parts = urllib.parse.urlsplit(
            self.s3.generate_presigned_url(
                operation, Params={"Bucket": "yard", "Key": key}, ExpiresIn=seconds
            )
        )
        return parts.path, parts.query

    def bytes(self, text: bytes) -> tuple[int, str]:
        """Sends raw bytes, and returns the response: (status, text)."""
        host, port = self.server.listen.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS_MAX) as one:
            one.sendall(text)
            answer = http.client.HTTPResponse(one)
            answer.begin()
            Caller.last_request_id = (
                answer.getheader("x-amzn-requestid") or answer.getheader("x-amz-request-id") or ""
            )
            return answer.status, answer.read(1 << 16).decode(errors="replace")


Attempt = Callable[[World], tuple[int, str]]


def ago(hours: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=hours)


def describe(caller: Caller, **more: Any) -> tuple[int, str]:
    return caller.call("sagemaker", headers=JSON, body=DESCRIBE, **more)


def get(caller: Caller, **more: Any) -> tuple[int, str]:
    return caller.call("s3", "GET", SECRET_OBJECT, **more)
