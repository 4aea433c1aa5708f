"""Clients that send or read as slowly as they can, with a key and without, leave the server to the others."""

import datetime
import socket
import threading
import urllib.parse

import botocore.config
import pytest

import jobs
from trainyard_server import wait_for

CONNECTIONS = 80  # more than the server had threads for streams
CONNECTIONS_OF_ONE_KEY = 200  # more than one key's share of them is now
REQUESTS = 20
READ_TIMEOUT_SECONDS = 60
LARGE_BYTES = 64 << 20  # more than the sockets of both sides hold

CONFIG = """
[jobs]
stop_grace_seconds = 2
[[access_key]]
id = "AKIAOWNER"
secret = "owner-secret"
[[access_key]]
id = "AKIAHOSTILE"
secret = "hostile-secret"
user = "hostile"
"""


class SlowClients:
    """`request` on so many connections; then a byte of its body on each, again and again. Those that the server ends
    come again. Nothing that it answers is read."""

    def __init__(self, server, request, count):
        host, port = server.listen.rsplit(":", 1)
        self.address, self.request, self.count = (host, int(port)), request, count
        self.rounds = 0
        self.ending = threading.Event()
        self.sockets = []
        self.thread = threading.Thread(target=self.run)

    def connect(self):
        one = socket.create_connection(self.address, timeout=READ_TIMEOUT_SECONDS)
        one.sendall(self.request)
        one.setblocking(False)
        return one

    def run(self):
        self.sockets = [self.connect() for _ in range(self.count)]
        while not self.ending.wait(0.05):
            for index, one in enumerate(self.sockets):
                try:
                    one.send(b"x")
                except BlockingIOError:
                    pass
                except OSError:
                    one.close()
                    self.sockets[index] = self.connect()
            self.rounds += 1

    def __enter__(self):
        self.thread.start()
        wait_for(lambda: self.rounds > 3, "the slow clients to be there")
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        for one in self.sockets:
            one.close()


@pytest.fixture(scope="module")
def yard(start):
    server = start(CONFIG)
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="large", Body=bytes(LARGE_BYTES))
    server.boto("sagemaker").create_training_job(**jobs.request("described"))
    jobs.wait_until(server.boto("sagemaker"), "described")
    return server


def head(server, method, target, fields, length=100_000):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {server.listen}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in fields.items()), "", ""]).encode()


def made_up(key, service):
    """An Authorization field as a signer writes it, by someone who has no secret."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "X-Amz-Date": now.strftime("%Y%m%dT%H%M%SZ"),
        "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{now:%Y%m%d}/us-east-1/{service}/aws4_request, "
        f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}",
    }


def presigned(server, operation, key, as_hostile=False):
    keys = {"aws_access_key_id": "AKIAHOSTILE", "aws_secret_access_key": "hostile-secret"} if as_hostile else {}
    url = server.boto("s3", **keys).generate_presigned_url(operation, Params={"Bucket": "yard", "Key": key})
    parts = urllib.parse.urlsplit(url)
    return f"{parts.path}?{parts.query}"


JSON = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "SageMaker.DescribeTrainingJob"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UNSIGNED = {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}

ATTACKS = {
    "puts-without-a-key": (CONNECTIONS, lambda server: head(server, "PUT", "/yard/slow", {})),
    "puts-of-an-unknown-key": (CONNECTIONS, lambda server: head(server, "PUT", "/yard/slow", made_up("AKIANOBODY", "s3") | UNSIGNED)),
    "puts-of-a-wrong-signature": (CONNECTIONS, lambda server: head(server, "PUT", "/yard/slow", made_up("AKIAOWNER", "s3") | UNSIGNED)),
    "json-without-a-key": (CONNECTIONS, lambda server: head(server, "POST", "/", JSON)),
    "json-of-a-wrong-signature": (CONNECTIONS, lambda server: head(server, "POST", "/", JSON | made_up("AKIAOWNER", "sagemaker"))),
    "forms-of-a-wrong-signature": (CONNECTIONS, lambda server: head(server, "POST", "/", FORM | made_up("AKIAOWNER", "sts"))),
    "campaigns-of-a-wrong-signature": (
        CONNECTIONS,
        lambda server: head(server, "POST", "/", JSON | {"X-Amz-Target": "Trainyard.StartCampaign"} | made_up("AKIAOWNER", "trainyard")),
    ),
    "puts-with-the-same-key": (CONNECTIONS, lambda server: head(server, "PUT", presigned(server, "put_object", "slow"), {})),
    "gets-with-the-same-key-that-nobody-reads": (
        CONNECTIONS,
        lambda server: head(server, "GET", presigned(server, "get_object", "large"), {}, 0),
    ),
    "puts-with-another-key": (
        CONNECTIONS_OF_ONE_KEY,
        lambda server: head(server, "PUT", presigned(server, "put_object", "slow", as_hostile=True), {}),
    ),
    "gets-with-another-key-that-nobody-reads": (
        CONNECTIONS_OF_ONE_KEY,
        lambda server: head(server, "GET", presigned(server, "get_object", "large", as_hostile=True), {}, 0),
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_slow_clients_leave_the_server_to_others(yard, attack):
    count, request = ATTACKS[attack]
    config = botocore.config.Config(
        retries={"max_attempts": 0}, read_timeout=READ_TIMEOUT_SECONDS, s3={"addressing_style": "path"}
    )
    s3, sagemaker = yard.boto("s3", config=config), yard.boto("sagemaker", config=config)
    with SlowClients(yard, request(yard), count) as slow:
        before = slow.rounds
        for number in range(REQUESTS):
            body = str(number).encode()
            s3.put_object(Bucket="yard", Key="quick", Body=body)
            assert s3.get_object(Bucket="yard", Key="quick")["Body"].read() == body
            assert sagemaker.describe_training_job(TrainingJobName="described")["TrainingJobStatus"] == "Completed"
        wait_for(lambda: slow.rounds > before, "the slow clients, which went on meanwhile")


def test_a_put_without_a_key_is_answered_before_its_body(yard):
    host, port = yard.listen.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=READ_TIMEOUT_SECONDS) as one:
        one.sendall(head(yard, "PUT", "/yard/never", {}, 1 << 40))
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 403 ")
