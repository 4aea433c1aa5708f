"""A real PostgreSQL server for tests, of Debian's programs: a cluster of its own, on a unix socket
alone."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import tempfile

OWNER = "postgres"  # who may not be root: the package makes this user


def programs() -> str:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    assert found, "PostgreSQL's server is missing: install the package postgresql-15"
    return found[-1]


class Postgres:
    def __init__(self) -> None:
        self.place = tempfile.mkdtemp(prefix="trainyard-postgres-")
        user = pwd.getpwnam(OWNER)
        os.chown(self.place, user.pw_uid, user.pw_gid)
        self.data = os.path.join(self.place, "data")
        self.run(
            "initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D", self.data
        )

    def url(self, database: str, user: str = OWNER) -> str:
        return f"host={self.place} dbname={database} user={user}"

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                "setpriv",
                f"--reuid={OWNER}",
                f"--regid={OWNER}",
                "--clear-groups",
                f"{programs()}/{program}",
                *arguments,
            ],
            check=True,
            capture_output=True,
            cwd=self.place,
            timeout=60,
            text=True,
        )

    def start(self) -> Postgres:
        self.run(
            "pg_ctl",
            "-D",
            self.data,
            "-w",
            "-l",
            os.path.join(self.place, "log"),
            "-o",
            f"-c listen_addresses='' -k {self.place} -c fsync=off",
            "start",
        )
        return self

    def stop(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def sql(self, statement: str, database: str = "postgres") -> None:
        self.run("psql", "-h", self.place, "-d", database, "-qc", statement)

    def rows(self, statement: str, database: str = "postgres") -> list[list[str]]:
        done = self.run("psql", "-h", self.place, "-d", database, "-qAtc", statement)
        return [line.split("|") for line in done.stdout.splitlines()]

    def clean(self) -> None:
        self.stop()
        shutil.rmtree(self.place)
