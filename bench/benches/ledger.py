"""Measures group commit of the ledger, in a file and in PostgreSQL."""

from __future__ import annotations

import os
import tempfile

from bench.loads import rounds, values
from bench.rows import ROOT, Row, row
from tests.postgres_server import Postgres


def ledger() -> list[Row]:
    """Measures group commit next to one transaction per command, in SQLite and in PostgreSQL on a
    unix socket of this machine. All wait for fsync."""
    with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as directory:
        sides = rounds("commit_ledger", directory)
    rows = [
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
    return rows + with_postgres()


def with_postgres() -> list[Row]:
    """Measures PostgreSQL next to SQLite, alternating rounds."""
    server = Postgres(durable=True).start()
    rows = []
    try:
        server.sql("CREATE DATABASE ledger")
        for group, name in ((64, "groups of 64"), (1, "one by one")):
            with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as directory:
                sides = rounds("commit_ledger", directory, server.url("ledger"), str(group))
            rows.append(
                row(
                    "ledger",
                    f"commit to PostgreSQL, {name}",
                    "commands/s",
                    values(sides["ours"], "commands_per_second"),
                    values(sides["peer"], "commands_per_second"),
                    "SQLite",
                    "a tenth of SQLite",
                    lambda ours, peer: ours > peer / 10,
                )
            )
    finally:
        server.clean()
    return rows
