"""Has scripts and steps for tests of jobs on clusters of each kind."""

from __future__ import annotations

from typing import Any

from tests import jobs
from tests.calls import fresh
from tests.trainyard_server import Server, wait_for

REACH_THE_FIRST = """
import socket as s, time
if s.gethostname() == "algo-1":
    peer = s.create_server(("0.0.0.0", 7777)).accept()[0]
    peer.sendall(b"x" * 1000000)
else:
    for _ in range(600):
        try:
            peer = s.create_connection(("algo-1", 7777))
            break
        except OSError:
            time.sleep(0.1)
    print("received", sum(len(got) for got in iter(lambda: peer.recv(65536), b"")))
"""
WAIT_FOR_STOP = "trap 'echo stopping; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
# Long enough that an interrupted part is usually back before the end. Tests must pass in either
# order.
SOME_SECONDS = (
    "echo ready; n=0; while [ $n -lt 80 ]; do n=$((n+1)); sleep 0.1; done; echo continued"
)


def create(server: Server, script: str, **more: Any) -> str:
    name = fresh("job")
    server.boto("sagemaker").create_training_job(**jobs.request(name, script, **more))
    return name


def lines(server: Server, name: str, host: int | None = None) -> list[str]:
    """Returns the lines of the script, without the platform's."""
    found = jobs.log_lines(server.boto("logs"), name, host)
    return [line for line in found if not line.startswith("trainyard: ")]


def finish(server: Server, name: str) -> dict[str, Any]:
    return jobs.wait_until(server.boto("sagemaker"), name)


def wait_for_line(server: Server, name: str, text: str, host: int | None = None) -> None:
    wait_for(lambda: text in lines(server, name, host), f"{name} to log '{text}'")
