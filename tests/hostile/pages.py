"""Lists attacks on the console: its routes without a session, with a forged one, and from other
sites.

The server's log has each attack, by its request id."""

import json

from tests.hostile.rows import row
from tests.hostile.signer import Caller
from tests.hostile.table import Attack

PAGE = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
FORGED = {"Cookie": "trainyard_console=" + "0" * 64}


def sign_in(caller: Caller) -> tuple[int, str]:
    """Signs in as the sign-in page does."""
    path, body = "/console/session", b"{}"
    fields = caller.signed("trainyard", path=path, body=body)
    return caller.send("POST", path, fields | PAGE, body)


def page_row(
    name: str,
    tried: str,
    method: str,
    path: str,
    refused: str = "401",
    fields: dict[str, str] = PAGE,
    body: bytes = b"{}",
) -> Attack:
    return row(
        f"console-{name}",
        tried,
        refused,
        lambda w: w.plain(method, "/console/" + path, fields, body if method == "POST" else b""),
    )


ATTACKS = (
    page_row("session", "query the console for the signed-in user", "GET", "session"),
    page_row("events", "follow the console's events", "GET", "events?region=us-east-1"),
    page_row("log", "follow a log", "GET", "events?region=us-east-1&job=victim"),
    page_row("jobs", "list jobs", "POST", "api/trainyard/ListJobs?region=us-east-1"),
    page_row(
        "job",
        "describe a job",
        "POST",
        "api/trainyard/DescribeJob?region=us-east-1",
        body=b'{"JobName": "victim"}',
    ),
    page_row("metric", "read metrics", "POST", "api/cloudwatch/GetMetricStatistics"),
    page_row(
        "key",
        "create an access key",
        "POST",
        "api/iam/CreateAccessKey",
        body=b'{"UserName": "victim"}',
    ),
    page_row(
        "rights",
        "query the rights of a session",
        "POST",
        "rights?region=us-east-1",
        body=b'{"Calls": [{"Service": "iam", "Operation": "ListUsers"}]}',
    ),
    page_row("kill", "end a job", "POST", "api/trainyard/KillJob", body=b'{"JobName": "victim"}'),
    page_row(
        "forged-session",
        "list jobs with a session that was never opened",
        "POST",
        "api/trainyard/ListJobs",
        fields=PAGE | FORGED,
    ),
    page_row(
        "forged-link",
        "sign in with a token that was never made",
        "POST",
        "session",
        "403",
        body=json.dumps({"Token": "0" * 64}).encode(),
    ),
    page_row(
        "other-site",
        "sign a user of another site in",
        "POST",
        "session",
        "403",
        {"Origin": "https://mallory.example"},
    ),
    page_row(
        "other-port",
        "sign the user out from a page of another port",
        "DELETE",
        "session",
        "403",
        {"Sec-Fetch-Site": "same-site"},
    ),
    page_row("no-json", "sign in with bytes", "POST", "session", "403", body=b"\xff" * 1000),
    row(
        "console-wrong-secret",
        "sign in with a wrong secret",
        "403",
        lambda w: sign_in(w.guesser),
    ),
    row(
        "console-ended-job",
        "sign in with the keys of a job that has ended",
        "403",
        lambda w: sign_in(w.job),
    ),
)
