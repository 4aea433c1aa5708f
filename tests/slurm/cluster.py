"""Runs a Slurm cluster for tests: munge, one controller, its accounting and some nodes on this
machine, each slurmd in a separate network and UTS namespace behind a bridge. Needs root."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

from tests.network_commands import ip
from tests.ports import free_port
from tests.slurm import loopback
from tests.slurm.accounting import Accounting

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = os.path.join(HERE, "slurm.conf")
BRIDGE = "tyslurm"
SUBNET = "10.219.77"
CONTROLLER = f"{SUBNET}.1"
NODE_CPUS = 16
NODE_MEMORY_MIB = 60_000
WAIT_SECONDS_MAX = 60
# Nodes that Slurm's power saving starts and stops, which are off at first.
CLOUD_NODES = ["n21", "n22"]
CLOUD_FEATURE = "c5.4xlarge"


# A command prefix: without name servers. Slurm 24.11 queries them for the names of peers, and waits
# for seconds where none answers.
WITHOUT_NAMES = (
    "unshare",
    "--mount",
    "--propagation=slave",
    "sh",
    "-ec",
    'mount --bind /dev/null /etc/resolv.conf; exec "$@"',
    "sh",
)
# Where Debian's packages install Slurm's programs.
DEBIAN_FOLDERS = ("/usr/bin", "/usr/sbin")
# The versions of slurmrestd's API that the tests use, by Slurm's release.
REST_VERSIONS = {"22.05": ["v0.0.38"], "24.11": ["v0.0.40", "v0.0.41", "v0.0.42"]}


def controller_program() -> str | None:
    """Returns the slurmctld that is first on the path; None if Slurm is not installed."""
    return shutil.which("slurmctld", path=os.environ["PATH"] + ":/usr/sbin")


def slurm_folder() -> str:
    """Returns the folder of Slurm's programs; "" if Debian's packages have installed them."""
    folder = os.path.dirname(os.path.realpath(controller_program() or "/usr/sbin/slurmctld"))
    return "" if folder in DEBIAN_FOLDERS else folder


@functools.cache
def slurm_release() -> str:
    """Returns the release of Slurm, as "24.11"; "" if it is not installed."""
    program = controller_program()
    if program is None:
        return ""
    answer = subprocess.run([program, "-V"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"\d+\.\d+", answer)
    assert found, f"{program} -V printed {answer!r}, without a release"
    return found[0]


def rest_versions() -> list[str]:
    return REST_VERSIONS.get(slurm_release(), [])


class Cluster(loopback.Slurm):
    """Runs the cluster of the Slurm that is first on the path. Node n1 has the address SUBNET.11,
    n2 SUBNET.12, and so on."""

    def __init__(self, directory: str, nodes: int = 3) -> None:
        super().__init__(directory)
        self.folder = slurm_folder()
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.rest_port = 0
        self.accounting = Accounting(self)
        self.controller: subprocess.Popen[bytes] | None = None
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def at(self, name: str) -> str:
        return os.path.join(self.directory, name)

    @staticmethod
    def address(node: str) -> str:
        return f"{SUBNET}.{10 + int(node[1:])}"

    @staticmethod
    def namespace(node: str) -> str:
        return f"tyslurm-{node}"

    def start(self) -> Cluster:
        for name in ("state", "spool"):
            os.makedirs(self.at(name), exist_ok=True)
        for name, size in (("munge.key", 1024), ("jwt.key", 32)):
            with open(os.open(self.at(name), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as secret:
                secret.write(os.urandom(size))
        os.mknod(self.at("tun"), stat.S_IFCHR | 0o666, os.makedev(10, 200))
        os.chmod(self.at("tun"), 0o666)
        self.write_config()
        self.make_network()
        self.write_power_programs()
        self.start_munge()
        self.accounting.start()
        self.start_controller()
        for node in self.names:
            self.start_node(node)
        self.start_rest()
        self.wait_for_idle()
        return self

    def wait_for_idle(self) -> None:
        self.wait_for(
            lambda: (
                self.run("sinfo", "-h", "-p", "train", "-o", "%t %D", check=False).strip()
                == f"idle {len(self.names)}"
            ),
            "its nodes to be idle",
        )

    def write_config(self) -> None:
        with open(CONFIG, encoding="utf-8") as file:
            text = file.read()
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={node} NodeAddr={self.address(node)} CPUs={NODE_CPUS}"
            f" RealMemory={NODE_MEMORY_MIB}"
            + (" Gres=gpu:t4:4" if node == self.names[-1] else "")
            + f" Feature=rack{1 + index % 2} State=UNKNOWN"
            for index, node in enumerate(self.names)
        )
        for node in CLOUD_NODES:
            nodes += (
                f"\nNodeName={node} NodeHostname={node} NodeAddr={self.address(node)}"
                f" CPUs={NODE_CPUS} RealMemory={NODE_MEMORY_MIB} Feature={CLOUD_FEATURE}"
                " State=CLOUD"
            )
        for name, value in {
            "HOST": socket.gethostname().split(".")[0],
            "CONTROLLER": CONTROLLER,
            "DIRECTORY": self.directory,
            "CONTROLLER_PORT": free_port(),
            "NODE_PORT": free_port(),
            "ACCOUNTING_PORT": self.accounting.port,
            "NODES": nodes,
            "COUNT": len(self.names),
            "CLOUD": ",".join(CLOUD_NODES),
        }.items():
            text = text.replace(f"@{name}@", str(value))
        text += self.plugin_line()
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)
        with open(self.at("gres.conf"), "w", encoding="utf-8") as file:
            file.write(
                f"NodeName={self.names[-1]} Name=gpu Type=t4 File=/dev/tty[1-4] AutoDetect=off\n"
            )

    def write_power_programs(self) -> None:
        """Writes ResumeProgram and SuspendProgram, which start and stop slurmd. A node does not
        start while a file `held-NODE` exists, and never with a file `broken-NODE`. -b: slurmd
        reports a reboot, without which Slurm does not take a node for powered up."""
        head = (
            f"#!/bin/sh\nexport PATH='{os.environ['PATH']}:/usr/sbin' SLURM_CONF='{self.config}'\n"
        )
        each = 'for node in $(scontrol show hostnames "$1"); do\n'
        log = f"  echo $0 $node >> {self.at('power.log')}\n"
        address, log_file = f"{SUBNET}.$((10 + ${{node#n}}))", self.at("boot.log")
        programs = {
            # slurmctld ends what a program leaves in its session. Newer releases forget the address
            # of a node that is powered down.
            "resume": f"{each}{log}"
            f"  scontrol update nodename=$node nodehostname=$node nodeaddr={address}\n"
            f"  setsid sh -c '{self.directory}/boot-$0 < /dev/null >> {log_file} 2>&1 &' $node\n"
            "done\n",
            "suspend": f"{each}{log}  ip netns pids {self.namespace('$node')} | xargs -r kill -9\n"
            "done\n",
        }
        for node in CLOUD_NODES:
            slurmd = self.slurmd(node, "-b")
            programs[f"boot-{node}"] = (
                f"[ ! -e {self.at(f'broken-{node}')} ] || exit\n"
                f"while [ -e {self.at(f'held-{node}')} ]; do sleep 0.1; done\n"
                f"exec {shlex.join(slurmd)}\n"
            )
        for name, text in programs.items():
            with open(os.open(self.at(name), os.O_WRONLY | os.O_CREAT, 0o755), "w") as file:
                file.write(head + text)

    def plugin_line(self) -> str:
        """Returns the line of a configuration file that names the folder of Slurm's plugins."""
        lib = os.path.join(os.path.dirname(self.folder), "lib", "slurm-wlm")
        return f"PluginDir={lib}\n" if self.folder else ""

    def make_network(self) -> None:
        self.remove_network()
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("address", "add", f"{CONTROLLER}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for node in self.names + CLOUD_NODES:
            namespace, link = self.namespace(node), f"{BRIDGE}-{node}"
            ip("netns", "add", namespace)
            ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            ip("link", "set", link, "master", BRIDGE, "up")
            inside = ("-n", namespace)
            ip(*inside, "link", "set", "lo", "up")
            ip(*inside, "address", "add", f"{self.address(node)}/24", "dev", "eth0")
            ip(*inside, "link", "set", "eth0", "up")
            ip(*inside, "route", "add", "default", "via", CONTROLLER)

    def remove_network(self) -> None:
        for node in self.names + CLOUD_NODES:
            ip("netns", "delete", self.namespace(node), check=False)
            ip("link", "delete", f"{BRIDGE}-{node}", check=False)
        ip("link", "delete", BRIDGE, check=False)

    def start_munge(self) -> None:
        self.launch(
            "munged",
            "--foreground",
            "--force",
            "--key-file",
            self.at("munge.key"),
            "--socket",
            self.at("munge.socket"),
            "--pid-file",
            self.at("munged.pid"),
            "--log-file",
            self.at("munged.log"),
            "--seed-file",
            self.at("munged.seed"),
        )
        self.wait_for(lambda: os.path.exists(self.at("munge.socket")), "munged")

    def start_controller(self) -> None:
        program = controller_program() or "slurmctld"
        self.launch(*WITHOUT_NAMES, program, "-D", "-f", self.config)
        self.controller = self.processes[-1]
        self.wait_for(
            lambda: "UP" in self.run("scontrol", "ping", check=False), "slurmctld to answer"
        )
        if self.daemons:
            self.wait_for(self.nodes_respond, "the nodes to register again")

    def start_rest(self) -> None:
        """Starts slurmrestd, as another user: it refuses to run as root."""
        os.chmod(self.directory, 0o755)
        self.rest_port = free_port()
        self.environment["SLURM_JWT"] = "daemon"
        self.launch(
            *WITHOUT_NAMES,
            "setpriv",
            "--reuid=slurm",
            "--regid=slurm",
            "--clear-groups",
            os.path.join(self.folder or "/usr/sbin", "slurmrestd"),
            "-f",
            self.config,
            *(["-s", "openapi/v0.0.38"] if slurm_release() == "22.05" else []),
            "-a",
            "rest_auth/jwt",
            f"127.0.0.1:{self.rest_port}",
        )
        del self.environment["SLURM_JWT"]
        self.wait_for(self.rest_listens, "slurmrestd")

    def rest_listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.rest_port)).close()
            return True
        except OSError:
            return False

    def token(self, seconds: int = 3600, user: str = "root") -> str:
        text = self.run("scontrol", "token", f"username={user}", f"lifespan={seconds}")
        return text.strip().removeprefix("SLURM_JWT=")

    def nodes_respond(self) -> bool:
        states = self.run("sinfo", "-h", "-p", "train", "-o", "%t", check=False).split()
        return bool(states) and all(state in ("idle", "mix", "alloc") for state in states)

    def save_state(self) -> None:
        """Waits until slurmctld has written its state, some seconds after a change. The next
        slurmctld reads only what was written, and ends running jobs that it does not know."""
        began = time.time()
        job = self.run("sbatch", "--parsable", "--hold", "--wrap=true").strip()
        self.run("scancel", job)
        self.wait_for(
            lambda: os.path.getmtime(self.at("state/job_state")) > began, "its state to be saved"
        )

    def kill_controller(self) -> None:
        assert self.controller
        self.save_state()
        self.controller.kill()
        self.controller.wait()
        self.processes.remove(self.controller)

    def pause_controller(self) -> None:
        """Stops slurmctld, which then accepts connections without answering."""
        assert self.controller
        self.controller.send_signal(signal.SIGSTOP)

    def resume_controller(self) -> None:
        assert self.controller
        self.controller.send_signal(signal.SIGCONT)
        # slurmctld may have marked the nodes as down, since they did not respond.
        self.wait_for(self.resume_nodes, "the nodes to be resumed")

    def resume_nodes(self) -> bool:
        names = ",".join(self.names)
        self.run("scontrol", "update", f"nodename={names}", "state=resume", check=False)
        return self.nodes_respond()

    def in_node(self, node: str, command: str) -> list[str]:
        """Returns the command in the node's network, with a tunnel device that each user may open,
        as udev makes it, and without name servers, as WITHOUT_NAMES. Slurm's programs for jobs are
        where Debian's package has them."""
        device = self.at("tun")
        programs = "".join(
            f" mount --bind {self.folder}/{name} /usr/bin/{name};"
            for name in ("srun", "scontrol")
            if self.folder
        )
        return [
            "nsenter",
            f"--net=/var/run/netns/{self.namespace(node)}",
            "unshare",
            "--uts",
            "--mount",
            "--propagation=slave",
            "sh",
            "-ec",
            f"hostname {node}; mount --bind {device} /dev/net/tun;{programs}"
            f" mount --bind /dev/null /etc/resolv.conf; exec {command}",
        ]

    def run_on(self, node: str, *command: str) -> None:
        subprocess.run(self.in_node(node, " ".join(command)), check=True, capture_output=True)

    def slurmd(self, node: str, *options: str) -> list[str]:
        steps = ("-d", f"{self.folder}/slurmstepd") if self.folder else ()
        words = ("slurmd", "-D", "-N", node, "-f", self.config, *steps, *options)
        return self.in_node(node, " ".join(words))

    def start_node(self, node: str) -> None:
        self.launch(*self.slurmd(node))
        self.daemons[node] = self.processes[-1]

    def fail_node(self, node: str) -> None:
        """Simulates a power failure: slurmd and its children end at once."""
        for process in self.processes_of(node):
            os.kill(process, signal.SIGKILL)
        daemon = self.daemons.pop(node)
        daemon.wait()
        self.processes.remove(daemon)

    def processes_of(self, node: str) -> list[int]:
        """Returns the processes in the node's network namespace."""
        found = subprocess.run(
            ["ip", "netns", "pids", self.namespace(node)], capture_output=True, text=True
        ).stdout
        return [int(number) for number in found.split()]

    def set_option(self, name: str, value: str) -> None:
        """Changes an option of slurm.conf in the running controller."""
        with open(self.config, encoding="utf-8") as file:
            lines = [line for line in file if not line.startswith(f"{name}=")]
        with open(self.config, "w", encoding="utf-8") as file:
            file.writelines([*lines, f"{name}={value}\n"])
        self.run("scontrol", "reconfigure")

    def jobs(self, columns: str = "%A|%T|%r|%N|%j|%k") -> list[list[str]]:
        text = self.run("squeue", "--noheader", "--all", "--states=all", "-o", columns)
        return [line.split("|") for line in text.splitlines()]

    def live_jobs(self) -> list[str]:
        """Returns the ids of jobs that have not ended."""
        return self.run("squeue", "--noheader", "--all", "-o", "%A").split()

    def cancel_all(self) -> None:
        for job in self.live_jobs():
            self.run("scancel", job, check=False)
        self.wait_for(lambda: not self.live_jobs(), "all jobs to end")

    def take_the_licence(self) -> None:
        """Submits a job of another program that takes the only licence."""
        self.run(
            "sbatch",
            "--licenses=solver:1",
            "--mem=100",
            "--output=/dev/null",
            "--wrap",
            "sleep 600",
        )
        job = max(self.live_jobs(), key=int)
        self.wait_for(lambda: [job, "RUNNING"] in self.jobs("%A|%T"), "its job to run")

    def cancel_foreign(self) -> None:
        for job, _, _, _, _, comment in self.jobs():
            if not comment.startswith("trainyard/"):
                self.run("scancel", job, check=False)

    def stop(self) -> None:
        if self.controller and self.controller.poll() is None:
            self.run("scancel", "--user=root", check=False)
        self.end_nodes()
        super().stop()
        self.end_nodes()  # slurmctld may have powered up another one until its end
        self.remove_network()

    def end_nodes(self) -> None:
        for node in self.names + CLOUD_NODES:
            for process in self.processes_of(node):
                os.kill(process, signal.SIGKILL)


# For inspection by hand, and to record answers of another release: runs until it is interrupted.
#   python -m tests.slurm.cluster DIRECTORY [NODES]
if __name__ == "__main__":
    with_nodes = Cluster(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    try:
        with_nodes.start()
        print(f"export SLURM_CONF={with_nodes.config}", flush=True)
        while True:
            time.sleep(1)
    finally:
        with_nodes.stop()
