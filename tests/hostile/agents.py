"""Lists attacks by a peer that poses as an agent (docs/formats/wire.md).

`attempt`: a function that returns the frames to send, given the attempt of a running job. A line of
the server's log records the rejection."""

import socket
import struct
from collections.abc import Callable

from tests.agent_server import text
from tests.hostile.table import SERVER_LOG, Attack

ANSWER_SECONDS_MAX = 30
HELLO, STATE, GOODBYE = 1, 2, 11


def frame(kind: int, body: bytes = b"") -> bytes:
    payload = struct.pack("<B", kind) + body
    return struct.pack("<I", len(payload)) + payload


def hello(
    job: int, attempt: int = 1, host: int = 0, token: str = "guessed", version: int = 1
) -> bytes:
    oldest = struct.pack("<I", version) if version > 1 else b""
    return frame(HELLO, struct.pack("<IQII", version, job, attempt, host) + text(token) + oldest)


def row(name: str, tried: str, refused: str, frames: Callable[[int], bytes]) -> Attack:
    return Attack(name, tried, refused, SERVER_LOG, frames)


ATTACKS = (
    row(
        "agent-guessed-token",
        "greet as the agent of a job, with a guessed token",
        "an agent is refused.*token",
        lambda job: hello(job),
    ),
    row(
        "agent-empty-token",
        "greet with an empty token",
        "an agent is refused.*token",
        lambda job: hello(job, token=""),
    ),
    row(
        "agent-other-attempt",
        "greet as a later attempt of the job",
        "an agent is refused.*attempt has ended",
        lambda job: hello(job, attempt=7),
    ),
    row(
        "agent-no-job",
        "greet as the agent of a job that is not there",
        "an agent is refused.*unknown job",
        lambda job: hello(2**63),
    ),
    row(
        "agent-other-version",
        "greet in an unknown version",
        r"an agent(?:'s link is closed| is refused)",
        lambda job: hello(job, version=2**32 - 1),
    ),
    row(
        "agent-without-hello",
        "report a state without a greeting",
        "an agent's link is closed",
        lambda job: frame(STATE, bytes(64)),
    ),
    row(
        "agent-servers-words",
        "say what only the server says",
        "an agent's link is closed",
        lambda job: frame(GOODBYE),
    ),
    row(
        "agent-unknown-message",
        "send a message of an unknown kind",
        "an agent's link is closed",
        lambda job: frame(250, b"x"),
    ),
    row(
        "agent-cut-message",
        "cut a greeting short",
        "an agent's link is closed",
        lambda job: frame(HELLO, b"\1"),
    ),
)


def attack(path: str, frames: bytes) -> bytes:
    """Sends the frames; returns the answers of the server until it rejects the peer or closes the
    link."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(ANSWER_SECONDS_MAX)
        one.connect(path)
        one.sendall(frames)
        try:
            return one.recv(1 << 16)
        except ConnectionResetError:
            return b""
