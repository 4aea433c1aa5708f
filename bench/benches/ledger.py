"""Group commit of the ledger."""

from __future__ import annotations

import os
import tempfile

from bench.loads import rounds, values
from bench.rows import ROOT, Row, row


def ledger() -> list[Row]:
    """Group commit next to one fsync per command."""
    with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as directory:
        sides = rounds("commit_ledger", directory)
    return [
        row(
            "ledger",
            "commit, groups of 64",
            "commands/s",
            values(sides["ours"], "commands_per_second"),
            values(sides["peer"], "commands_per_second"),
            "one by one",
            "more than one by one",
            lambda ours, peer: ours > peer,
        )
    ]
