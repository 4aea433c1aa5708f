"""Tests the start of a server: requests wait or get a 503 in the form of their protocol, which
clients retry automatically."""

import http.client
import json
import os
import sqlite3
import subprocess
import threading
from collections.abc import Callable

import botocore.exceptions
from botocore.config import Config

from tests import jobs
from tests.trainyard_server import START_SECONDS_MAX, Server, wait_for

MACHINE = "[[machine]]\nname = 'box'\ncpus = 2.0\nmemory_gib = 8.0\n"
# the server listens before it reads them, which takes as long as some hundred requests
WAITING_JOBS = 12_000
SERVICES = {  # a call of each protocol
    "sagemaker": lambda client: client.list_training_jobs(MaxResults=1),
    "s3": lambda client: client.list_buckets(),
    "batch": lambda client: client.describe_job_queues(),
    "sts": lambda client: client.get_caller_identity(),
    "cloudwatch": lambda client: client.list_metrics(),
}
CODES = dict.fromkeys(SERVICES, ("ServiceUnavailable", "ServiceUnavailableException")) | {
    "batch": ("ServerException",)
}


def fill_ledger(server: Server) -> None:
    """Fills the ledger with copies of one waiting job, so that reading it takes a while."""
    server.boto("s3").create_bucket(Bucket="yard")
    # larger than the machine
    server.boto("sagemaker").create_training_job(
        **jobs.request("waits", instance_type="ml.m5.4xlarge")
    )
    server.stop()
    ledger = sqlite3.connect(os.path.join(server.data, "ledger.db"))
    (number,) = ledger.execute("SELECT number FROM jobs WHERE name = 'waits'").fetchone()
    ledger.execute(
        "WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < ?) INSERT"
        " INTO jobs SELECT number + n, region, name || '-' || n, state, live, status_order,"
        " created, modified, spec, json_set(progress, '$.number', number + n, '$.key.name', name ||"
        " '-' || n), queue, parent, reserved, batch_status FROM jobs, count WHERE number = ?",
        (WAITING_JOBS, number),
    )
    ledger.commit()
    ledger.close()


def probe(server: Server, path: str) -> tuple[int, str, http.client.HTTPMessage] | None:
    host, port = server.listen.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=START_SECONDS_MAX)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    except OSError:
        return None  # it does not listen yet
    finally:
        connection.close()


class Client(threading.Thread):
    """Sends requests until the server is ready, and records their errors."""

    def __init__(self, server: Server, service: str) -> None:
        super().__init__()
        self.service, self.client = (
            service,
            server.boto(
                service,
                config=Config(retries={"max_attempts": 0}, connect_timeout=START_SECONDS_MAX),
            ),
        )
        self.errors, self.wrong, self.done, self.ending = [], [], 0, threading.Event()

    def run(self) -> None:
        while not self.ending.is_set():
            try:
                SERVICES[self.service](self.client)
                self.done += 1
            except botocore.exceptions.ClientError as error:
                self.errors.append(
                    (
                        error.response["ResponseMetadata"]["HTTPStatusCode"],
                        error.response["Error"]["Code"],
                        error.response["Error"]["Message"],
                    )
                )
            except (
                botocore.exceptions.EndpointConnectionError,
                botocore.exceptions.ConnectionClosedError,
            ):
                pass  # it does not listen yet
            except Exception as error:  # responses that cannot be parsed
                self.wrong.append(repr(error))


def test_requests_of_a_start_are_answered_so_that_clients_repeat_them(
    start: Callable[..., Server],
) -> None:
    server = start(MACHINE)
    fill_ledger(server)
    clients = [Client(server, service) for service in SERVICES]
    # The default settings of clients, which retry temporary rejections.
    patient = server.boto(
        "sagemaker", config=Config(retries={"mode": "standard", "max_attempts": 10})
    )
    listed, probes = [], []
    caller = threading.Thread(
        target=lambda: listed.append(patient.list_training_jobs(MaxResults=1))
    )

    def watch() -> None:
        while not any(thread.ending.is_set() for thread in clients):
            answer = probe(server, "/readyz")
            if answer:
                probes.append(answer[:2])
                if answer[0] == 503:
                    assert answer[2]["Retry-After"], "a supervisor is told when to retry"

    watcher = threading.Thread(target=watch)
    for thread in (*clients, watcher):
        thread.start()
    starting = threading.Thread(target=server.start)
    starting.start()
    wait_for(
        lambda: any(thread.errors for thread in clients),
        "a request to be refused",
        START_SECONDS_MAX,
    )
    caller.start()
    starting.join()
    wait_for(
        lambda: all(thread.done for thread in clients), "a request of each service to be served"
    )
    for thread in clients:
        thread.ending.set()
    for thread in (*clients, watcher, caller):
        thread.join()

    assert [len(each["TrainingJobSummaries"]) for each in listed] == [1], (
        "the client retried by itself"
    )
    for thread in clients:
        assert not thread.wrong, (thread.service, thread.wrong)
        assert thread.errors, thread.service
        for status, code, message in thread.errors:
            assert status == 503 and code in CODES[thread.service], (thread.service, status, code)
            assert message == "The server is starting. Please try again.", message
    assert (503, "the server is starting\n") in probes and probes[-1] == (200, "ok\n"), json.dumps(
        probes
    )


def test_records_that_cannot_be_read_do_not_keep_a_server_from_starting(
    start: Callable[..., Server],
) -> None:
    """They are set aside, the log and the doctor report them, and all others are served."""
    server = start(MACHINE)
    iam = server.boto("iam")
    for name in ("ann", "bob"):
        iam.create_user(UserName=name)
    server.kill()
    ledger = sqlite3.connect(os.path.join(server.data, "ledger.db"))
    assert (
        ledger.execute(
            "UPDATE records SET body = '{\"half' WHERE kind = 'user' AND name = 'ann'"
        ).rowcount
        == 1
    )
    ledger.commit()
    ledger.close()
    for _ in range(2):
        server.start()
        assert [user["UserName"] for user in server.boto("iam").list_users()["Users"]] == ["bob"]
        server.stop()
    assert "a record that cannot be read was set aside kind=user name=ann" in server.log_text()
    examined = subprocess.run(
        [server.program, "doctor", "--data", server.data],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (
        "the record of user ann was set aside: ledger: the record user/ann is not a JSON object"
        in examined.stdout
    ), examined.stdout
    server.start()
    server.boto("iam").create_user(UserName="ann")
