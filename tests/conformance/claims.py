"""Checks claims of docs/compatibility.md about partial operations, one function for each."""

from collections.abc import Callable, Mapping
from typing import Any

from botocore.client import BaseClient

from tests.calls import fresh, refused
from tests.trainyard_server import Server


class World:
    """Has a server with a bucket and an object in it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.bucket = fresh("partial")
        self.client("s3").create_bucket(Bucket=self.bucket)
        self.client("s3").put_object(Bucket=self.bucket, Key="key", Body=b"bytes")

    def client(self, service: str) -> BaseClient:
        return self.server.boto(service)


Claim = Callable[[World], None]
Value = Any  # of a request


def rejects(
    service: str, method: str, text: str, arguments: Callable[[World], Mapping[str, Any]]
) -> Claim:
    """Claims that a call fails with an error whose code or message contains the text."""

    def check(world: World) -> None:
        call = getattr(world.client(service), method)
        code, message = refused(call, **arguments(world))
        assert text in f"{code}: {message}", (code, message)

    return check


def holds(true: bool) -> None:
    assert true
