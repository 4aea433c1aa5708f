"""Runs Debian's PostgreSQL for tests: a separate cluster, on a Unix socket only."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import select
import shutil
import socket
import subprocess
import tempfile
import threading

OWNER = "postgres"  # who may not be root: the package makes this user


def programs() -> str:
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    assert found, "PostgreSQL's server is missing: install the package postgresql-15"
    return found[-1]


class Postgres:
    """Runs one cluster. `durable`: with fsync, which benches need; tests do not simulate power
    loss."""

    def __init__(self, durable: bool = False) -> None:
        self.durable = durable
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
            f"-c listen_addresses='' -k {self.place} -c fsync={'on' if self.durable else 'off'}",
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


class Relay:
    """Forwards connections to a server. After cut() they hang without being closed."""

    def __init__(self, server: Postgres) -> None:
        self.place = tempfile.mkdtemp(prefix="trainyard-relay-")
        self.target = os.path.join(server.place, ".s.PGSQL.5432")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.place, ".s.PGSQL.5432"))
        self.listener.listen(64)
        self.stalled = threading.Event()
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def url(self, database: str) -> str:
        return f"host={self.place} dbname={database} user={OWNER}"

    def cut(self) -> None:
        self.stalled.set()

    def restore(self) -> None:
        self.stalled.clear()

    def accept(self) -> None:
        while not self.stopped.is_set():
            if not select.select([self.listener], [], [], 0.05)[0]:
                continue
            client = self.listener.accept()[0]
            thread = threading.Thread(target=self.forward, args=(client,))
            self.threads.append(thread)
            thread.start()

    def forward(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(self.target)
            while not self.stopped.is_set():
                if self.stalled.is_set():
                    self.stopped.wait(0.05)
                    continue
                for ready in select.select([client, server], [], [], 0.05)[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    (server if ready is client else client).sendall(data)

    def clean(self) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        self.listener.close()
        shutil.rmtree(self.place)
