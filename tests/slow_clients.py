"""Has clients that send or read as slowly as possible: an attack that needs no key and little
work."""

from __future__ import annotations

import datetime
import socket
import threading
import urllib.parse
from collections.abc import Mapping

from botocore.client import BaseClient

from tests.trainyard_server import Server, wait_for

CONNECT_SECONDS_MAX = 60
PAUSE_SECONDS = 0.05  # between two bytes of a connection

JSON = {
    "Content-Type": "application/x-amz-json-1.1",
    "X-Amz-Target": "SageMaker.DescribeTrainingJob",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UNSIGNED = {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}


class SlowClients:
    """Sends `request` on a number of connections, and then a byte of its body on each, repeatedly.
    Connects again where the server closes a connection. Reads no response. `requests`: further
    requests, which are sent one after another."""

    def __init__(self, server: Server, count: int, *requests: bytes) -> None:
        host, port = server.listen.rsplit(":", 1)
        self.address, self.requests, self.count = (host, int(port)), requests, count
        self.rounds = 0
        self.ending = threading.Event()
        self.sockets: list[socket.socket] = []
        self.thread = threading.Thread(target=self.run)

    def connect(self, index: int) -> socket.socket:
        one = socket.create_connection(self.address, timeout=CONNECT_SECONDS_MAX)
        one.sendall(self.requests[index % len(self.requests)])
        one.setblocking(False)
        return one

    def run(self) -> None:
        self.sockets = [self.connect(index) for index in range(self.count)]
        while not self.ending.wait(PAUSE_SECONDS):
            for index, one in enumerate(self.sockets):
                try:
                    one.send(b"x")
                except BlockingIOError:
                    pass
                except OSError:
                    one.close()
                    self.sockets[index] = self.connect(index)
            self.rounds += 1

    def __enter__(self) -> SlowClients:
        self.thread.start()
        wait_for(lambda: self.rounds > 3, "the slow clients to be there")
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()
        for one in self.sockets:
            one.close()


def head(
    server: Server, method: str, target: str, fields: Mapping[str, str], length: int = 100_000
) -> bytes:
    """Returns the head of a request whose body is not sent."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {server.listen}", f"Content-Length: {length}"]
    return "\r\n".join(
        [*lines, *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    ).encode()


def made_up(key: str, service: str) -> dict[str, str]:
    """Returns an Authorization field as a signer writes it, made without the secret."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "X-Amz-Date": now.strftime("%Y%m%dT%H%M%SZ"),
        "Authorization": (
            f"AWS4-HMAC-SHA256 Credential={key}/{now:%Y%m%d}/us-east-1/{service}/aws4_request, "
            f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
        ),
    }


def presigned(client: BaseClient, operation: str, bucket: str, key: str) -> str:
    """Returns path and query of a presigned request."""
    parts = urllib.parse.urlsplit(
        client.generate_presigned_url(operation, Params={"Bucket": bucket, "Key": key})
    )
    return f"{parts.path}?{parts.query}"
