"""Makes and removes ordinary users of this machine. Needs root."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess

from tests.trainyard_server import PROGRAM, wait_for


class User:
    """Is an ordinary user of this machine with a home directory, with or without subordinate
    ids."""

    def __init__(self, name: str, with_ids: bool) -> None:
        self.name = name
        options = ["--create-home"] if with_ids else ["--system", "--create-home"]
        subprocess.run(["useradd", *options, "--shell", "/bin/sh", name], check=True)
        self.home = pwd.getpwnam(name).pw_dir
        self.number = pwd.getpwnam(name).pw_uid

    def program(self) -> str:
        """Returns the path of the program, or of a copy if the user cannot read it."""
        if subprocess.run([*self.words(), "test", "-x", PROGRAM], check=False).returncode == 0:
            return PROGRAM
        copies = os.path.join(self.home, "bin")
        if not os.path.isdir(copies):
            os.makedirs(copies)
            for name in ("trainyard", "trainyard-agent", "trainyard-entry"):
                shutil.copy(os.path.join(os.path.dirname(PROGRAM), name), copies)
        return os.path.join(copies, "trainyard")

    def words(self) -> list[str]:
        """Returns a command prefix that runs a command as the user, with an empty environment."""
        return [
            "setpriv",
            f"--reuid={self.name}",
            f"--regid={self.name}",
            "--init-groups",
            "env",
            "-i",
            f"HOME={self.home}",
            f"PATH={os.environ['PATH']}",
        ]

    def directory(self, name: str) -> str:
        path = os.path.join(self.home, name)
        os.makedirs(path)
        shutil.chown(path, self.name, self.name)
        return path

    def processes(self) -> list[tuple[int, str]]:
        """Returns the processes that run as the user or as one of the user's subordinate ids, with
        their command lines."""
        found = []
        for path in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError):
                with open(path + "/status", encoding="utf-8", errors="replace") as file:
                    status = dict(
                        line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line
                    )
                owner = int(status["Uid"].split()[0])
                mine = owner == self.number or any(
                    first <= owner < first + count for first, count in self.ids()
                )
                if mine and not status["State"].startswith(("Z", "X")):
                    with open(path + "/cmdline", encoding="utf-8", errors="replace") as file:
                        found.append((int(path.split("/")[2]), file.read().replace("\0", " ")))
        return found

    def ids(self) -> list[tuple[int, int]]:
        with open("/etc/subuid", encoding="utf-8") as file:
            return [
                (int(first), int(count))
                for name, first, count in (line.strip().split(":") for line in file)
                if name == self.name
            ]

    def remove(self) -> None:
        for process, _ in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        wait_for(lambda: not self.processes(), f"the processes of {self.name} to end")
        subprocess.run(["userdel", "--remove", self.name], check=True, capture_output=True)
