"""Tests that clients that send or read as slowly as possible, with a key and without, do not
disturb other clients."""

import socket
from collections.abc import Callable

import botocore.config
import pytest
from botocore.client import BaseClient

from tests import jobs
from tests.slow_clients import FORM, JSON, UNSIGNED, SlowClients, head, made_up, presigned
from tests.trainyard_server import Server, wait_for

CONNECTIONS = 80  # more than an earlier server's threads for streams
CONNECTIONS_OF_ONE_USER = 200  # more than one user may have
REQUESTS = 20
READ_TIMEOUT_SECONDS = 60
LARGE_BYTES = 64 << 20  # more than the capacity of both sockets

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


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server]) -> Server:
    server = start(CONFIG)
    s3 = server.boto("s3")
    s3.create_bucket(Bucket="yard")
    s3.put_object(Bucket="yard", Key="large", Body=bytes(LARGE_BYTES))
    server.boto("sagemaker").create_training_job(**jobs.request("described"))
    jobs.wait_until(server.boto("sagemaker"), "described")
    return server


def hostile(server: Server) -> BaseClient:
    return server.boto(
        "s3", aws_access_key_id="AKIAHOSTILE", aws_secret_access_key="hostile-secret"
    )


def put(server: Server, fields: dict[str, str]) -> bytes:
    return head(server, "PUT", "/yard/slow", fields)


def post(server: Server, fields: dict[str, str]) -> bytes:
    return head(server, "POST", "/", fields)


def slow_put(server: Server, client: BaseClient) -> bytes:
    return head(server, "PUT", presigned(client, "put_object", "yard", "slow"), {})


def unread_get(server: Server, client: BaseClient) -> bytes:
    return head(server, "GET", presigned(client, "get_object", "yard", "large"), {}, 0)


CAMPAIGN = JSON | {"X-Amz-Target": "Trainyard.StartCampaign"}

ATTACKS = {
    "puts-without-a-key": (CONNECTIONS, lambda server: put(server, {})),
    "puts-of-an-unknown-key": (
        CONNECTIONS,
        lambda server: put(server, made_up("AKIANOBODY", "s3") | UNSIGNED),
    ),
    "puts-of-a-wrong-signature": (
        CONNECTIONS,
        lambda server: put(server, made_up("AKIAOWNER", "s3") | UNSIGNED),
    ),
    "json-without-a-key": (CONNECTIONS, lambda server: post(server, JSON)),
    "json-of-a-wrong-signature": (
        CONNECTIONS,
        lambda server: post(server, JSON | made_up("AKIAOWNER", "sagemaker")),
    ),
    "forms-of-a-wrong-signature": (
        CONNECTIONS,
        lambda server: post(server, FORM | made_up("AKIAOWNER", "sts")),
    ),
    "campaigns-of-a-wrong-signature": (
        CONNECTIONS,
        lambda server: post(server, CAMPAIGN | made_up("AKIAOWNER", "trainyard")),
    ),
    "puts-with-the-same-key": (CONNECTIONS, lambda server: slow_put(server, server.boto("s3"))),
    "unread-gets-with-the-same-key": (
        CONNECTIONS,
        lambda server: unread_get(server, server.boto("s3")),
    ),
    "puts-with-another-key": (
        CONNECTIONS_OF_ONE_USER,
        lambda server: slow_put(server, hostile(server)),
    ),
    "unread-gets-with-another-key": (
        CONNECTIONS_OF_ONE_USER,
        lambda server: unread_get(server, hostile(server)),
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_slow_clients_leave_the_server_to_others(cluster: Server, attack: str) -> None:
    count, request = ATTACKS[attack]
    config = botocore.config.Config(
        retries={"max_attempts": 0},
        read_timeout=READ_TIMEOUT_SECONDS,
        s3={"addressing_style": "path"},
    )
    s3, sagemaker = cluster.boto("s3", config=config), cluster.boto("sagemaker", config=config)
    with SlowClients(cluster, count, request(cluster)) as slow:
        before = slow.rounds
        for number in range(REQUESTS):
            body = str(number).encode()
            s3.put_object(Bucket="yard", Key="quick", Body=body)
            assert s3.get_object(Bucket="yard", Key="quick")["Body"].read() == body
            assert (
                sagemaker.describe_training_job(TrainingJobName="described")["TrainingJobStatus"]
                == "Completed"
            )
        wait_for(lambda: slow.rounds > before, "the slow clients, which continued meanwhile")


def test_a_put_without_a_key_is_answered_before_its_body(cluster: Server) -> None:
    host, port = cluster.listen.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=READ_TIMEOUT_SECONDS) as one:
        one.sendall(head(cluster, "PUT", "/yard/never", {}, 1 << 40))
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 403 ")
