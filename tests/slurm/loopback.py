"""Runs Debian's Slurm on the loopback interface, in a directory of its own: the base of the cluster
of tests (cluster.py), and the peer of `./yard bench array`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable

from tests.ports import free_port

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "loopback.conf")
# The fastest value from 8 to 128 on two cores: starts overlap, and each pass of the scheduler finds
# free slots.
CPUS = int(os.environ.get("TRAINYARD_BENCH_SLURM_CPUS", "64"))
INTERVAL_MICROSECONDS = int(os.environ.get("TRAINYARD_BENCH_SLURM_INTERVAL", "1000"))
# How Slurm finds the processes of a job: searching /proc (linuxproc) takes a quarter of its time.
PROCTRACK = os.environ.get("TRAINYARD_BENCH_SLURM_PROCTRACK", "pgid")
MUNGE_THREADS = 10  # the value that Slurm's guide to many short jobs suggests
START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 20
ARRAY_SECONDS_MAX = 1800
POLL_SECONDS = 1.0  # each query starts one of Slurm's programs, which takes as long as a job


class Slurm:
    """Slurm with its daemons in `directory`, whose path must be short for munge's socket. Requires
    root."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.processes: list[subprocess.Popen[bytes]] = []
        self.config = os.path.join(directory, "slurm.conf")
        self.environment = dict(os.environ, SLURM_CONF=self.config)

    def start(self) -> Slurm:
        os.makedirs(os.path.join(self.directory, "state"))
        os.makedirs(os.path.join(self.directory, "spool"))
        with open(CONFIG, encoding="utf-8") as file:
            text = file.read()
        host = socket.gethostname().split(".")[0]
        for name, value in {
            "PROCTRACK": PROCTRACK,
            "HOST": host,
            "DIRECTORY": self.directory,
            "CPUS": CPUS,
            "INTERVAL": INTERVAL_MICROSECONDS,
            "CONTROLLER_PORT": free_port(),
            "NODE_PORT": free_port(),
        }.items():
            text = text.replace(f"@{name}@", str(value))
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)
        key = os.path.join(self.directory, "munge.key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as secret:
            secret.write(os.urandom(1024))

        def at(name: str) -> str:
            return os.path.join(self.directory, name)

        self.launch(
            "munged",
            "--foreground",
            "--force",
            "--num-threads",
            str(MUNGE_THREADS),
            "--key-file",
            key,
            "--socket",
            at("munge.socket"),
            "--pid-file",
            at("munged.pid"),
            "--log-file",
            at("munged.log"),
            "--seed-file",
            at("munged.seed"),
        )
        self.wait_for(lambda: os.path.exists(at("munge.socket")), "munged")
        self.launch("slurmctld", "-D", "-f", self.config)
        self.launch("slurmd", "-D", "-f", self.config)
        self.wait_for(
            lambda: self.run("sinfo", "-h", "-o", "%t", check=False).strip() == "idle",
            "its node to be idle",
        )
        return self

    def launch(self, program: str, *arguments: str) -> None:
        path = self.environment["PATH"] + ":/usr/sbin"
        with open(os.path.join(self.directory, os.path.basename(program) + ".out"), "ab") as log:
            self.processes.append(
                subprocess.Popen(
                    [shutil.which(program, path=path) or program, *arguments],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def run(self, program: str, *arguments: str, check: bool = True) -> str:
        return subprocess.run(
            [program, *arguments], env=self.environment, check=check, capture_output=True, text=True
        ).stdout

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + START_SECONDS_MAX
        while not condition():
            ended = [process.args for process in self.processes if process.poll() is not None]
            if ended or time.monotonic() > end:
                raise RuntimeError(
                    f"Slurm: waiting for {what}; ended: {ended}; its logs are in {self.directory}"
                )
            time.sleep(0.1)

    def array(self, children: int) -> float:
        """Returns the seconds from the submission of an array of `true` until all children have
        ended."""
        began = time.monotonic()
        job = self.run(
            "sbatch",
            "--parsable",
            f"--array=0-{children - 1}",
            "--ntasks=1",
            "--output=/dev/null",
            "--chdir=/",
            "--wrap=true",
        ).strip()
        end = began + ARRAY_SECONDS_MAX
        while self.run(
            "squeue", "-h", "-j", job, "-t", "PENDING,RUNNING,COMPLETING", "-o", "%i", check=False
        ).strip():
            if time.monotonic() > end:
                raise RuntimeError(
                    f"Slurm: an array of {children} took longer than {ARRAY_SECONDS_MAX} s"
                )
            time.sleep(POLL_SECONDS)
        return time.monotonic() - began

    def stop(self) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(STOP_SECONDS_MAX)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
