"""Tests the server's HTTP front end: probes, metrics for Prometheus, rate limits and the
certificate."""

import hashlib
import os
import re
import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import botocore.exceptions
import pytest

from tests.trainyard_server import Server, wait_for

TIMEOUT_SECONDS = 60
LISTS = 7


def get(address: str, path: str) -> tuple[int, str]:
    """Returns (status, body) of a GET without a signature."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=TIMEOUT_SECONDS) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def value(text: str, sample: str) -> float:
    """Returns the value of the sample with exactly these labels, or 0 when it is absent."""
    found = re.search(rf"^{re.escape(sample)} (\S+)$", text, re.M)
    return float(found[1]) if found else 0


def test_probes_and_metrics(start: Callable[..., Server]) -> None:
    server = start('[server]\nmetrics_listen = "127.0.0.1:0"\n')
    metrics = server.metrics
    assert get(server.listen, "/healthz") == (200, "ok\n")
    assert get(server.listen, "/readyz") == (200, "ok\n")
    assert get(metrics, "/healthz") == (200, "ok\n")
    assert get(server.listen, "/metrics")[0] == 403, "jobs can reach this port"
    assert get(metrics, "/")[0] == 404

    listed = (
        'trainyard_requests_total{service="sagemaker",operation="ListTrainingJobs",status="200"}'
    )
    before = value(get(metrics, "/metrics")[1], listed)
    sagemaker, s3 = server.boto("sagemaker"), server.boto("s3")
    for _ in range(LISTS):
        sagemaker.list_training_jobs()
    s3.create_bucket(Bucket="healthz")
    assert s3.list_objects_v2(Bucket="healthz")["KeyCount"] == 0, (
        "a signed request for this path goes to S3"
    )
    status, text = get(metrics, "/metrics")
    assert status == 200
    assert value(text, listed) == before + LISTS
    assert (
        value(
            text,
            'trainyard_request_seconds_count{service="sagemaker",operation="ListTrainingJobs"}',
        )
        == before + LISTS
    )
    assert (
        value(text, 'trainyard_requests_total{service="s3",operation="CreateBucket",status="200"}')
        == 1
    )
    assert (
        value(text, 'trainyard_requests_total{service="unknown",operation="unknown",status="403"}')
        >= 1
    )
    assert value(text, "trainyard_disk_free_bytes") > 0
    assert value(text, "trainyard_connections") > 0
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)*\})? [-+.0-9e]+', line), (
            line
        )


def test_rate_limits_apply_per_user_and_can_be_reloaded(start: Callable[..., Server]) -> None:
    keys = "\n".join(
        f'[[access_key]]\nid = "AKIA{user}"\nsecret = "secret-{user}"\nuser = "{user}"'
        for user in ("ALICE", "BOB")
    )
    keys += '\n[[user]]\nname = "BOB"\npolicies = ["ReadOnlyAccess"]\n'
    # Allows three requests, and the next one after 1000 s.
    slow = keys + "\n[rate_limits]\nreads_per_second = 0.001\nburst_seconds = 3000.0\n"
    server = start(slow)
    alice = server.boto(
        "sagemaker", aws_access_key_id="AKIAALICE", aws_secret_access_key="secret-ALICE"
    )
    bob = server.boto("sagemaker", aws_access_key_id="AKIABOB", aws_secret_access_key="secret-BOB")
    for _ in range(3):
        alice.list_training_jobs()
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        alice.list_training_jobs()
    assert refused.value.response["Error"] == {
        "Code": "ThrottlingException",
        "Message": "Rate exceeded",
    }
    bob.list_training_jobs()
    server.reload(keys)

    def answered() -> dict[str, Any] | None:
        try:
            return alice.list_training_jobs()
        except botocore.exceptions.ClientError:
            return None

    wait_for(answered, "the config without rates")


def served_certificate(connection: ssl.SSLSocket) -> str:
    return hashlib.sha256(connection.getpeercert(binary_form=True)).hexdigest()


def connect(server: Server) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=os.path.join(server.data, "tls", "ca.pem"))
    host, port = server.listen.rsplit(":", 1)
    plain = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)
    return context.wrap_socket(plain, server_hostname=host)


def test_a_certificate_is_renewed_before_its_expiry_without_a_restart(
    start: Callable[..., Server],
) -> None:
    server = start("[jobs]\nstop_grace_seconds = 2\n")
    tls = os.path.join(server.data, "tls")
    before = connect(server)
    first = served_certificate(before)

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=tls)

    # A certificate of the same authority, valid for ten days.
    openssl("req", "-new", "-key", "server-key.pem", "-subj", "/CN=short", "-out", "short.csr")
    with open(os.path.join(tls, "short.cnf"), "w", encoding="utf-8") as file:
        file.write("subjectAltName = IP:127.0.0.1\n")
    openssl(
        "x509",
        "-req",
        "-in",
        "short.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca-key.pem",
        "-days",
        "10",
        "-extfile",
        "short.cnf",
        "-out",
        "server.pem",
    )
    server.process.send_signal(signal.SIGHUP)

    def renewed() -> bool:
        with connect(server) as now:
            return served_certificate(now) != first

    wait_for(renewed, "the new certificate")
    end = subprocess.run(
        ["openssl", "x509", "-noout", "-checkend", str(300 * 86400), "-in", "server.pem"],
        cwd=tls,
        check=False,
    )
    assert end.returncode == 0, "the new certificate is valid for most of a year"
    before.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
    assert before.recv(1 << 16).startswith(b"HTTP/1.1 200 "), "an open connection is still served"
