"""Runs Slurm's accounting for tests: slurmdbd with a separate MariaDB, which listens on a Unix
socket only. Needs root."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.ports import free_port

if TYPE_CHECKING:
    from tests.slurm.cluster import Cluster

CONFIG = """
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
DbdHost=localhost
DbdPort={port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
LogFile={directory}/slurmdbd.log
PidFile={directory}/slurmdbd.pid
"""

# The accounts that root's jobs may have. A user with an account in Slurm cannot use others.
ACCOUNTS = ("chemistry", "guests", "lab", "physics")


class Accounting:
    def __init__(self, slurm: Cluster) -> None:
        self.slurm = slurm
        self.port = free_port()
        # Only for root: the database has no password.
        self.directory = os.path.join(slurm.directory, "accounting")
        self.socket = os.path.join(self.directory, "socket")

    def start(self) -> None:
        """Requires: munged runs."""
        os.makedirs(self.directory, mode=0o700)
        self.start_database()
        config = os.path.join(self.slurm.directory, "slurmdbd.conf")
        with open(os.open(config, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(CONFIG.format(directory=self.slurm.directory, port=self.port))
            file.write(self.slurm.plugin_line())
        # libmariadb's name for the socket of "localhost".
        self.slurm.environment["MYSQL_UNIX_PORT"] = self.socket
        self.slurm.launch("slurmdbd", "-D")
        self.slurm.wait_for(self.answers, "slurmdbd to answer")
        self.manage("add", "cluster", "trainyard")
        self.manage("add", "account", ",".join(ACCOUNTS))
        self.manage("add", "user", "root", f"account={','.join(ACCOUNTS)}")

    def manage(self, *command: str) -> None:
        self.slurm.run("sacctmgr", "--immediate", *command)

    def start_database(self) -> None:
        data = os.path.join(self.directory, "data")
        subprocess.run(
            [
                "mariadb-install-db",
                "--no-defaults",
                "--user=root",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                f"--datadir={data}",
            ],
            check=True,
            capture_output=True,
        )
        self.slurm.launch(
            "mariadbd",
            "--no-defaults",
            "--user=root",
            "--skip-networking",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-lock-wait-timeout=900",
            f"--datadir={data}",
            f"--socket={self.socket}",
            f"--pid-file={self.directory}/pid",
            f"--log-error={self.directory}/log",
        )
        self.slurm.wait_for(lambda: os.path.exists(self.socket), "MariaDB")

    def answers(self) -> bool:
        return "Cluster" in self.slurm.run("sacctmgr", "show", "cluster", check=False)

    def jobs(self, *options: str) -> list[list[str]]:
        text = self.slurm.run("sacct", "--noheader", "--parsable2", "--allocations", *options)
        return [line.split("|") for line in text.splitlines()]
