"""Runs a node of a Kubernetes cluster: kubelet, containerd and CNI's bridge plugin, in namespaces
for its network, mounts and host name. Needs root.

The nodes are attached to the bridge of tests/kubernetes/network.py. Each has a subnet for its pods.
The kubelet is the one of tests/kubernetes/prepare, the rest are Debian's packages. Cgroups have
version 1, in a tree of each node."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator

from tests.kubernetes.cluster import ADMIN_TOKEN, Cluster
from tests.kubernetes.network import BRIDGE, GATEWAY, SUBNET
from tests.network_commands import ip
from tests.ports import free_port
from tests.trainyard_server import wait_for

PAUSE = "localhost/pause:1"
# The kubelet and containerd use these paths of the machine, whatever their settings say.
HIDE = """mount --make-rshared /
mount -t tmpfs tmpfs /var/log
mount -t tmpfs tmpfs {overlay}
mkdir {overlay}/upper {overlay}/work
mount -t overlay overlay -o lowerdir=/var/lib,upperdir={overlay}/upper,workdir={overlay}/work \
/var/lib
hostname {name}
echo ready
exec sleep infinity"""
# What a kubelet sets on its machine.
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
CONTROLLERS = "/sys/fs/cgroup"
# Pods are not evicted because this machine has little memory or space left.
EVICTION_SIGNALS = ("memory.available", "nodefs.available", "imagefs.available")
CONTAINERD = """
version = 2
root = "{root}"
state = "{state}"
[grpc]
address = "{socket}"
[ttrpc]
address = "{socket}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
path = "{root}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{cni}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


@contextlib.contextmanager
def restored_sysctls() -> Iterator[None]:
    paths = [f"/proc/sys/{name}" for name in SYSCTLS]
    before = {}
    for path in paths:
        with open(path) as file:
            before[path] = file.read()
    try:
        yield
    finally:
        for path, value in before.items():
            with open(path, "w") as file:
                file.write(value)


class Node:
    """`number`: 1 or 2."""

    def __init__(self, cluster: Cluster, number: int, dns: str) -> None:
        self.cluster = cluster
        self.name = f"k{number}"
        self.number = number
        self.dns = dns
        self.namespace = f"{BRIDGE}-k{number}"
        self.address = f"{SUBNET}.{1 + number}"
        self.pods = f"10.219.{80 + number}"
        self.directory = cluster.at(self.name)
        self.socket = self.at("containerd.sock")
        self.holder: subprocess.Popen[bytes] | None = None
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def at(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def write(self, name: str, text: str) -> str:
        os.makedirs(os.path.dirname(self.at(name)), exist_ok=True)
        with open(self.at(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.at(name)

    def cgroups(self) -> list[str]:
        return [
            os.path.join(CONTROLLERS, controller, f"trainyard-{self.name}")
            for controller in os.listdir(CONTROLLERS)
            if os.path.isdir(os.path.join(CONTROLLERS, controller))
        ]

    # -- namespaces -------------------------------------------------------------------------------

    def start(self, images: list[str]) -> None:
        self.make_network()
        self.make_cgroups()
        os.makedirs(self.at("overlay"))
        script = HIDE.format(overlay=self.at("overlay"), name=self.name)
        within = ["nsenter", f"--net=/run/netns/{self.namespace}", "unshare", "--mount", "--uts"]
        self.holder = subprocess.Popen(
            [*within, "sh", "-ec", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self.holder.stdout
        assert self.holder.stdout.readline() == b"ready\n"
        self.start_containerd()
        for image in images:
            self.run("ctr", "--address", self.socket, "-n", "k8s.io", "images", "import", image)
        self.start_kubelet()

    def make_network(self) -> None:
        ip("netns", "delete", self.namespace, check=False)
        ip("netns", "add", self.namespace)
        ip("link", "add", self.namespace, "type", "veth", "peer", "eth0", "netns", self.namespace)
        ip("link", "set", self.namespace, "master", BRIDGE, "up")
        inside = ("-n", self.namespace)
        ip(*inside, "link", "set", "lo", "up")
        ip(*inside, "address", "add", f"{self.address}/24", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")
        ip(*inside, "route", "add", "default", "via", GATEWAY)
        ip("netns", "exec", self.namespace, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        ip("route", "add", f"{self.pods}.0/24", "via", self.address)

    def join(self, other: Node) -> None:
        """Makes the other node's pods known here."""
        ip("-n", self.namespace, "route", "add", f"{other.pods}.0/24", "via", other.address)

    def make_cgroups(self) -> None:
        """Makes the tree of this node's pods. A new group of cpuset has no processors."""
        for path in self.cgroups():
            os.makedirs(path, exist_ok=True)
            if path.startswith(f"{CONTROLLERS}/cpuset/"):
                for name in ("cpuset.cpus", "cpuset.mems"):
                    with open(os.path.join(os.path.dirname(path), name)) as file:
                        value = file.read()
                    with open(os.path.join(path, name), "w") as file:
                        file.write(value)

    # -- programs ---------------------------------------------------------------------------------

    def enter(self, *command: str) -> list[str]:
        assert self.holder
        return ["nsenter", "-t", str(self.holder.pid), "--mount", "--net", "--uts", "--", *command]

    def run(self, *command: str) -> str:
        done = subprocess.run(self.enter(*command), capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def launch(self, name: str, *command: str) -> None:
        with open(self.at(f"{name}.log"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                self.enter(*command), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def start_containerd(self) -> None:
        bridge = {
            "cniVersion": "0.4.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "pods",
                    "isGateway": True,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": self.at("addresses"),
                        "subnet": f"{self.pods}.0/24",
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                }
            ],
        }
        self.write("cni/pods.conflist", json.dumps(bridge))
        config = CONTAINERD.format(
            root=self.at("containerd"),
            state=self.at("containerd-state"),
            socket=self.socket,
            pause=PAUSE,
            cni=self.at("cni"),
        )
        self.launch("containerd", "containerd", "--config", self.write("containerd.toml", config))
        wait_for(
            lambda: (
                subprocess.run(
                    self.enter("ctr", "--address", self.socket, "version"), capture_output=True
                ).returncode
                == 0
            ),
            f"containerd of {self.name}",
        )

    def start_kubelet(self) -> None:
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/trainyard-{self.name}",
            "clusterDNS": [self.dns],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "evictionHard": dict.fromkeys(EVICTION_SIGNALS, "0%"),
            "failSwapOn": False,
            "healthzPort": 0,
            "makeIPTablesUtilChains": False,
            "maxOpenFiles": 20000,
            "nodeStatusUpdateFrequency": "1s",
            "nodeLeaseDurationSeconds": 4,
            "oomScoreAdj": 0,
            "port": free_port(),
            "resolvConf": "",
        }
        access = self.write("access.json", json.dumps(self.cluster.kubeconfig(ADMIN_TOKEN)))
        self.launch(
            "kubelet",
            *Cluster.program("kubelet"),
            f"--config={self.write('kubelet.json', json.dumps(config))}",
            f"--kubeconfig={access}",
            f"--root-dir={self.at('kubelet')}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
        )

    def is_ready(self) -> bool:
        nodes = self.cluster.call("GET", "/api/v1/nodes")["items"]
        for node in nodes:
            if node["metadata"]["name"] == self.name:
                return any(
                    each["type"] == "Ready" and each["status"] == "True"
                    for each in node["status"]["conditions"]
                )
        return False

    def kill_kubelet(self) -> None:
        kubelet = self.processes.pop("kubelet")
        kubelet.kill()
        kubelet.wait()

    def processes_of_pods(self) -> list[int]:
        """Returns the processes in the cgroups of this node's pods."""
        found = set()
        for path in self.cgroups():
            for directory, _, _ in os.walk(path):
                with contextlib.suppress(OSError), open(f"{directory}/cgroup.procs") as file:
                    found |= {int(line) for line in file}
        return sorted(found)

    def lose(self) -> None:
        """Simulates a power failure: the kubelet and all processes of pods end at once."""
        self.kill_kubelet()
        for process in self.processes_of_pods():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    # -- the end ----------------------------------------------------------------------------------

    def shims(self) -> list[int]:
        """Returns containerd's processes for pods, which outlive it."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                arguments = file.read().split(b"\0")
                if b"containerd-shim" in arguments[0] and self.socket.encode() in arguments:
                    found.append(int(name))
        return found

    def stop(self) -> None:
        for name in ("kubelet", "containerd"):
            if process := self.processes.pop(name, None):
                process.kill()
                process.wait()
        wait_for(self.kill_rest, f"the processes of {self.name} to end")
        if self.holder:
            self.holder.kill()
            self.holder.wait()
        for path in self.cgroups():
            for directory, _, _ in os.walk(path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
        ip("netns", "delete", self.namespace, check=False)

    def kill_rest(self) -> bool:
        rest = self.processes_of_pods() + self.shims()
        for process in rest:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return not rest
