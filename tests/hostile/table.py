"""Describes attacks as rows: the attempt, the expected error, and where the rejection is recorded.
tests/system/test_hostile.py runs them."""

import collections
import dataclasses
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.trainyard_server import Server

# The places where rejections are recorded; the test of a row checks the record.
JOB_LOG = "job log"  # a line of the job's own log
AUDIT = "audit log"  # a record with the operation, the principal and the error
SERVER_LOG = "server log"  # a line of the server's log
REASON = "FailureReason"  # of the job, as DescribeTrainingJob shows it
NOWHERE = "nowhere"  # nothing was refused, so nothing is recorded: the attack changes nothing


@dataclasses.dataclass(frozen=True)
class Attack:
    name: str
    tried: str
    # a regular expression of the error that is answered, or of the text that tells of it
    refused: str
    logged: str
    # How it is tried: an expression, a script, a function;
    # each group of attacks says what it takes.
    attempt: Any = None
    more: tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of an attack: the error in the response, and the record of the attack in the log
    ("": not found)."""

    answer: str
    record: str


def check(attack: Attack, outcome: Outcome) -> None:
    assert "REACHED" not in outcome.answer, (
        f"{attack.name}: {attack.tried} succeeded: {outcome.answer}"
    )
    assert re.search(attack.refused, outcome.answer), (
        f"{attack.name}: expected {attack.refused}, found: {outcome.answer}"
    )
    assert attack.logged == NOWHERE or outcome.record, (
        f"{attack.name}: not found in the {attack.logged} ({outcome.answer})"
    )


def audit_records(server: Server) -> list[dict[str, Any]]:
    """Returns the records of the audit log so far."""
    directory, records = os.path.join(server.data, "audit"), []
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            records += [json.loads(line) for line in file if line.endswith("\n")]
    return records


def find_record(
    records: Iterable[dict[str, Any]], request_id: str, event: str, resource: str = ""
) -> str:
    """Returns the record of a denied request that names the operation and a resource with this text
    in its ARN; "" when there is none."""
    for record in records:
        arns = [one["ARN"] for one in record.get("resources", [])]
        if (
            record["requestID"] == request_id
            and record["eventName"] == event
            and (not resource or any(resource in arn for arn in arns))
        ):
            return json.dumps(record)
    return ""


def find_line(text: str, *parts: str) -> str:
    """Returns the first line that has all the parts; "" when there is none."""
    return next((line for line in text.splitlines() if all(part in line for part in parts)), "")


def summary(groups: Mapping[str, Sequence[Attack]]) -> str:
    """Formats a table of counts: group -> [attacks]."""
    places = [JOB_LOG, AUDIT, SERVER_LOG, REASON, NOWHERE]
    lines = [f"{'attacks':34}{'rows':>6}" + "".join(f"{place:>15}" for place in places)]
    for group, attacks in groups.items():
        count = collections.Counter(attack.logged for attack in attacks)
        lines.append(
            f"{group:34}{len(attacks):>6}"
            + "".join(f"{count[place] or '-':>15}" for place in places)
        )
    return "\n".join(lines)
