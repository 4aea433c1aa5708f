"""Tests Batch jobs of one container: the network interface of the host, and the signals and the
memory limit that end them."""

import os
import pathlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.nodes import container, describe, lines, make_queue, submit, wait_until
from tests.trainyard_server import Server, wait_for

ENDED = "Essential container in task exited"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("shared")
    os.chown(path, 1000, 1000)
    return path


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server], shared: pathlib.Path) -> Server:
    return start(
        "[jobs]\nstop_grace_seconds = 1\n[[machine]]\nname = 'box'\ncpus = 8.0\nmemory_gib = 8.0\n"
        f"[posix_users]\n'*' = '1000:1000'\n[volumes.'/shared']\ndirectory = '{shared}'\n"
    )


@pytest.fixture(scope="module")
def batch(cluster: Server) -> BaseClient:
    return cluster.boto("batch")


@pytest.fixture(scope="module")
def queue(batch: BaseClient) -> str:
    return make_queue(batch)


SHARED: dict[str, Any] = {
    "volumes": [{"name": "shared", "host": {"sourcePath": "/shared"}}],
    "mountPoints": [{"sourceVolume": "shared", "containerPath": "/shared"}],
}


def test_a_container_has_the_network_interface_of_its_last_attempt(
    cluster: Server, batch: BaseClient, queue: str, shared: pathlib.Path
) -> None:
    script = (
        "python3 -c 'import socket; print(socket.gethostbyname(socket.gethostname()))'; "
        '[ "$AWS_BATCH_JOB_ATTEMPT" = 2 ] || exit 1; '
        'until [ -e "/shared/go-$AWS_BATCH_JOB_ID" ]; do sleep 0.1; done'
    )
    job = submit(batch, queue, container(script, **SHARED), retryStrategy={"attempts": 2})
    later = submit(batch, queue, container(), dependsOn=[{"jobId": job}])
    assert describe(batch, later)["container"]["networkInterfaces"] == [], "it has no host yet"

    def second_attempt() -> dict[str, Any] | None:
        detail = describe(batch, job)
        return detail if (detail["status"], len(detail["attempts"])) == ("RUNNING", 1) else None

    running = wait_for(second_attempt, "the second attempt to run")
    (shared / f"go-{job}").touch()
    done = wait_until(batch, job)
    assert done["status"] == "SUCCEEDED", done
    (interface,) = done["container"]["networkInterfaces"]
    assert running["container"]["networkInterfaces"] == [interface]
    # The server does not store the hosts of earlier attempts.
    attempts = [attempt["container"]["networkInterfaces"] for attempt in done["attempts"]]
    assert attempts == [[], [interface]]
    assert lines(cluster, done["attempts"][1]) == [interface["privateIpv4Address"]]
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", interface["attachmentId"])
    assert wait_until(batch, later)["status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    "signal, code, cause",
    [
        ("ILL", 132, "killed by SIGILL (illegal instruction)"),
        ("KILL", 137, "killed by SIGKILL"),
        ("SEGV", 139, "killed by SIGSEGV (segmentation fault)"),
    ],
)
def test_a_signal_is_named_and_rules_match_the_text_without_it(
    batch: BaseClient, queue: str, signal: str, code: int, cause: str
) -> None:
    rules = [
        {"onStatusReason": ENDED, "action": "RETRY"},
        {"onStatusReason": "*", "action": "EXIT"},
    ]
    job = submit(
        batch,
        queue,
        container(f"kill -{signal} $$"),
        retryStrategy={"attempts": 2, "evaluateOnExit": rules},
    )
    done = wait_until(batch, job)
    assert done["status"] == "FAILED" and len(done["attempts"]) == 2, done
    for each in (done, *done["attempts"]):
        assert each["statusReason"] == f"{ENDED}: {cause}", each
        assert each["container"]["exitCode"] == code and "reason" not in each["container"], each


def test_memory_that_runs_out_is_named_with_its_limit_and_the_largest_processes(
    batch: BaseClient, queue: str
) -> None:
    # Slow enough for the agent, which checks once a second.
    script = (
        'exec python3 -c "import time; kept = []; '
        "[(kept.append(b'x' * 1048576), time.sleep(0.1)) for _ in range(1000)]\""
    )
    done = wait_until(batch, submit(batch, queue, container(script)))
    (attempt,) = done["attempts"]
    for each in (done, attempt):
        assert re.match(
            re.escape(f"{ENDED}: OutOfMemory: exceeded its 64.0 MiB memory limit")
            + r".*; largest processes: python3 \(\d+\.\d MiB\)",
            each["statusReason"],
        ), each
        assert each["container"]["exitCode"] == 137, each
        assert (
            each["container"]["reason"] == "OutOfMemoryError: Container killed due to memory usage"
        )
