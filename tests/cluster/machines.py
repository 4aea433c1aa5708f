"""Runs machines for tests of `trainyard cluster`: each has namespaces and an address of its own, an
overlay over /etc, /var and /opt, and an ssh server. They share the installed packages, so Debian's
Slurm must be installed. Needs root."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

from tests.network_commands import ip
from tests.trainyard_server import PROGRAM, wait_for

BRIDGE = "tycluster"
SUBNET = "10.219.78"
RUN_SECONDS_MAX = 300
OVERLAYS = ("etc", "var", "opt")

# What a machine runs, as the first process of its namespaces. $0: the machine's directory.
INIT = """
cd "$0"
for name in etc var opt; do
  mount -t overlay overlay \
    -o "lowerdir=/$name,upperdir=$0/$name.upper,workdir=$0/$name.work" "/$name"
done
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/lock
: >/etc/resolv.conf
hostname "$1"
[ ! -e gpus ] || {
  mount -t tmpfs tmpfs /proc/driver
  for gpu in $(cat gpus); do
    mkdir -p "/proc/driver/nvidia/gpus/0000:0$gpu:00.0"
    printf 'Model: \\t\\t NVIDIA T4\\nDevice Minor: \\t %s\\n' "$gpu" \
      >"/proc/driver/nvidia/gpus/0000:0$gpu:00.0/information"
  done
  mount -t tmpfs -o mode=0755 tmpfs "$0/dev"
  for file in /dev/*; do
    name=${file#/dev/}
    if [ -d "$file" ] && [ ! -L "$file" ]; then
      mkdir "$0/dev/$name"
      mount --rbind "$file" "$0/dev/$name"
    else
      cp -a "$file" "$0/dev/$name"
    fi
  done
  for gpu in $(cat gpus); do mknod -m 0666 "$0/dev/nvidia$gpu" c 195 "$gpu"; done
  mount --rbind "$0/dev" /dev
}
/usr/sbin/sshd -D -e -f "$0/sshd_config" &
wait
"""


class Machines:
    """Makes machines and reaches them as a user would, by ssh with a configuration of its own."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.names: list[str] = []
        self.servers: dict[str, subprocess.Popen[bytes]] = {}

    def at(self, *names: str) -> str:
        return os.path.join(self.directory, *names)

    def address(self, name: str) -> str:
        return f"{SUBNET}.{11 + self.names.index(name)}"

    @staticmethod
    def namespace(name: str) -> str:
        return f"{BRIDGE}-{name}"

    def start(self, names: Sequence[str], gpus: dict[str, int]) -> None:
        self.names = list(names)
        os.chmod(self.directory, 0o755)  # for users who are not root
        self.make_key("key")
        for name in names:
            os.makedirs(self.at(name))
            self.make_key(f"{name}/host_key")
        self.write_ssh_config()
        self.make_network()
        for name in names:
            self.start_machine(name, gpus.get(name, 0))

    def make_key(self, name: str) -> None:
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.at(name)], check=True
        )

    def write_ssh_config(self) -> None:
        """Writes the configuration of ssh, which knows each machine's key. `gone` is a machine that
        is switched off."""
        hosts = {name: self.address(name) for name in self.names} | {"gone": f"{SUBNET}.200"}
        with open(self.at("ssh_config"), "w", encoding="utf-8") as file:
            for name, address in hosts.items():
                file.write(f"Host {name}\n  HostName {address}\n")
            file.write(
                f"Host *\n  User root\n  IdentityFile {self.at('key')}\n  IdentitiesOnly yes\n"
                f"  UserKnownHostsFile {self.at('known_hosts')}\n  GlobalKnownHostsFile /dev/null\n"
                "  StrictHostKeyChecking yes\n"
            )
        with open(self.at("known_hosts"), "w", encoding="utf-8") as file:
            for name in self.names:
                with open(self.at(name, "host_key.pub"), encoding="utf-8") as key:
                    file.write(f"{self.address(name)} {key.read()}")

    def make_network(self) -> None:
        self.remove_network()
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("address", "add", f"{SUBNET}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for name in self.names:
            inside = ("-n", self.namespace(name))
            ip("netns", "add", self.namespace(name))
            peer = ("peer", "name", "eth0", "netns", self.namespace(name))
            ip("link", "add", f"{BRIDGE}-{name}", "type", "veth", *peer)
            ip("link", "set", f"{BRIDGE}-{name}", "master", BRIDGE, "up")
            ip(*inside, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
            ip(*inside, "link", "set", "eth0", "up")
            ip(*inside, "link", "set", "lo", "up")
            ip(*inside, "route", "add", "default", "via", f"{SUBNET}.1")

    def remove_network(self) -> None:
        for name in self.names:
            ip("netns", "delete", self.namespace(name), check=False)
            ip("link", "delete", f"{BRIDGE}-{name}", check=False)
        ip("link", "delete", BRIDGE, check=False)

    def start_machine(self, name: str, gpus: int) -> None:
        for folder in [f"{each}.{part}" for each in OVERLAYS for part in ("upper", "work")]:
            os.makedirs(self.at(name, folder))
        if gpus:
            os.makedirs(self.at(name, "dev"))
            with open(self.at(name, "gpus"), "w", encoding="utf-8") as file:
                file.write(" ".join(str(number) for number in range(gpus)))
        with open(self.at(name, "sshd_config"), "w", encoding="utf-8") as file:
            file.write(
                f"ListenAddress {self.address(name)}\nHostKey {self.at(name, 'host_key')}\n"
                f"AuthorizedKeysFile {self.at('key.pub')}\nPermitRootLogin prohibit-password\n"
                "UsePAM no\nStrictModes no\nPidFile none\nMaxStartups 100\n"
            )
        self.boot(name)

    def boot(self, name: str) -> None:
        with open(self.at(name, "log"), "ab") as log:
            self.servers[name] = subprocess.Popen(
                [
                    "nsenter",
                    f"--net=/var/run/netns/{self.namespace(name)}",
                    "unshare",
                    *("--mount", "--uts", "--ipc", "--pid", "--fork", "--mount-proc"),
                    *("--propagation=private", "--kill-child"),
                    *("bash", "-ec", INIT, self.at(name), name),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_for(lambda: self.answers(name), f"the ssh server of {name}")

    def answers(self, name: str) -> bool:
        if self.servers[name].poll() is not None:
            with open(self.at(name, "log"), encoding="utf-8") as log:
                raise AssertionError(f"machine {name} ended: {log.read()}")
        return subprocess.run([*self.ssh(name), "true"], capture_output=True).returncode == 0

    def ssh(self, name: str) -> list[str]:
        return ["ssh", "-F", self.at("ssh_config"), "-o", "BatchMode=yes", name]

    def on(self, name: str, command: str, code: int | None = 0) -> str:
        """Runs a command on a machine, and returns its output."""
        done = subprocess.run(
            [*self.ssh(name), command], capture_output=True, text=True, timeout=RUN_SECONDS_MAX
        )
        assert code is None or done.returncode == code, (
            f"{command} on {name}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout

    def inside(self, name: str) -> list[str]:
        """Returns a command prefix that runs a command in the machine's namespaces."""
        first = self.children(self.servers[name].pid)[0]
        return ["nsenter", "--target", str(first), "--net", "--mount", "--uts", "--ipc", "--pid"]

    def switch_off(self, name: str) -> None:
        """Ends all processes of a machine at once. Its files stay."""
        server = self.servers.pop(name)
        for child in self.children(server.pid):
            os.kill(child, signal.SIGKILL)
        server.wait()

    @staticmethod
    def children(process: int) -> list[int]:
        with open(f"/proc/{process}/task/{process}/children", encoding="utf-8") as file:
            return [int(number) for number in file.read().split()]

    def command(self, *arguments: str) -> list[str]:
        """Returns `trainyard cluster` for outside of the machines, with c1 as the controller."""
        return [
            *(PROGRAM, "cluster", *arguments),
            *("--controller", "c1", "--ssh-config", self.at("ssh_config")),
        ]

    def cluster(self, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            stdin=subprocess.DEVNULL,
        )
        assert code is None or done.returncode == code, (
            f"trainyard cluster {' '.join(arguments)}: {done.returncode}\n"
            f"{done.stdout}\n{done.stderr}"
        )
        return done

    def digest(self, name: str) -> dict[str, str]:
        """Returns path -> mode, owner and content of all files that the command may change.
        /var/lib/trainyard-node is of jobs of Trainyard's server. Other tests make users of this
        machine, of which copies such as /etc/passwd- remain."""
        script = (
            "find /etc /opt /var/lib /var/log/slurm -xdev"
            " ! -path '/var/lib/munge/*' ! -path '/etc/*-'"
            " ! -path '/var/lib/dpkg/*' ! -path '/var/lib/apt/*' ! -path '/var/lib/trainyard-node*'"
            " -printf '%p|%y|%m|%u:%g|%l\\n'; "
            "find /etc/slurm /etc/munge /opt /var/log/slurm -type f -exec sha256sum {} +"
        )
        found: dict[str, str] = {}
        for line in self.on(name, script).splitlines():
            if "|" in line:
                path, rest = line.split("|", 1)
                found[path] = rest
            else:
                value, path = line.split(maxsplit=1)
                found[f"content of {path}"] = value
        return found

    def stop(self) -> None:
        for name in list(self.servers):
            self.switch_off(name)
        self.remove_network()
