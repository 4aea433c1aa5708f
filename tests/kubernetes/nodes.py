"""Simulates the nodes of a control plane. Each pod's program runs on this machine, in separate
network, mount, process and UTS namespaces behind a bridge, and its status is written as a kubelet
does. Needs root.

Replaces kubelet, container runtime, CNI plugin and cluster DNS. The program and its files are this
machine's, except in pods of an image in Nodes.images. Secrets and empty directories are mounted,
and /etc/hosts has the names of pods in headless services."""

from __future__ import annotations

import base64
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
from typing import Any

from tests.kubernetes.cluster import Cluster, Object, Refused
from tests.network_commands import ip
from tests.trainyard_server import wait_for

BRIDGE = "tykube"
SUBNET = "10.219.78"
GATEWAY = f"{SUBNET}.1"
ADDRESSES = range(10, 250)
LOOK_SECONDS = 0.1
LOG_BYTES = 2000
# Makes a directory the root, as container runtimes do: after a chroot, no user namespace could be
# made.
ENTER_ROOT = """cd {root}
mkdir host
pivot_root . host"""
LEAVE_HOST = "umount -l /host; rmdir /host; cd /; "


class Pod:
    """Is a pod with a started program."""

    def __init__(self, shown: Object, directory: str, number: int) -> None:
        self.name = shown["metadata"]["name"]
        self.uid = shown["metadata"]["uid"]
        self.node = shown["spec"]["nodeName"]
        self.spec = shown["spec"]
        self.shown = shown
        self.directory = directory
        self.number = number
        self.address = f"{SUBNET}.{number}"
        self.namespace = f"{BRIDGE}-{number}"
        self.domain = self.spec.get("subdomain", "")
        self.process: subprocess.Popen[bytes] | None = None
        self.reported = False

    def at(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def program(self) -> int | None:
        """Returns the first process of the pod's PID namespace."""
        assert self.process
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
                found = file.read().split()
        except OSError:
            return None
        return int(found[0]) if found else None

    def signal(self, number: int) -> None:
        if program := self.program():
            try:
                os.kill(program, number)
            except ProcessLookupError:
                pass

    def ended(self) -> int | None:
        """Returns the exit code, as a container runtime reports it."""
        assert self.process
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def log_text(self) -> str:
        with open(self.at("log"), encoding="utf-8", errors="replace") as file:
            return file.read()


class Nodes:
    def __init__(self, cluster: Cluster, names: tuple[str, ...] = ("n1", "n2")) -> None:
        self.cluster = cluster
        self.names = names
        self.images: dict[str, str] = {}  # name -> the directory with its files
        self.lost: set[str] = set()
        self.killed_by: dict[str, str] = {}  # pod -> the reason to report
        self.running: dict[str, Pod] = {}  # by uid
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.loop)

    def start(self) -> Nodes:
        self.remove_network()
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("address", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for name in self.names:
            node = {"apiVersion": "v1", "kind": "Node"}
            labels = {"kubernetes.io/hostname": name, "disk": f"of-{name}"}
            self.cluster.create(node | {"metadata": {"name": name, "labels": labels}})
            amounts = {"cpu": "16", "memory": "60Gi", "pods": "110"}
            self.set_node(name, {"capacity": amounts, "allocatable": amounts})
            self.set_ready(name, "True", "KubeletReady", "kubelet is posting ready status")
        wait_for(self.all_admit, "the nodes to lose the taint of new ones")
        self.thread.start()
        return self

    def all_admit(self) -> bool:
        nodes = self.cluster.call("GET", "/api/v1/nodes")["items"]
        return not any(node["spec"].get("taints") for node in nodes)

    def stop(self) -> None:
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join()
        for pod in list(self.running.values()):
            self.end(pod)
        self.remove_network()

    @staticmethod
    def remove_network() -> None:
        for number in ADDRESSES:
            if os.path.exists(f"/run/netns/{BRIDGE}-{number}"):
                ip("netns", "delete", f"{BRIDGE}-{number}", check=False)
        ip("link", "delete", BRIDGE, check=False)

    # -- what tests change ------------------------------------------------------------------------

    def set_node(self, name: str, status: Object) -> None:
        self.cluster.patch(f"/api/v1/nodes/{name}/status", {"status": status})

    def set_ready(self, name: str, status: str, reason: str, message: str) -> None:
        ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
        self.set_node(name, {"conditions": [ready]})

    def cordon(self, name: str, on: bool = True) -> None:
        self.cluster.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": on}})

    def lose(self, name: str) -> None:
        """Simulates a power failure: the processes end, and no further status is reported."""
        with self.lock:
            self.lost.add(name)
            for pod in self.running.values():
                if pod.node == name:
                    pod.signal(signal.SIGKILL)
        self.set_ready(name, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def recover(self, name: str) -> None:
        with self.lock:
            self.lost.discard(name)
        self.set_ready(name, "True", "KubeletReady", "kubelet is posting ready status")

    def pod_of(self, host: int) -> Pod:
        """Returns the running pod of a host. Requires: only one gang runs."""
        with self.lock:
            found = [
                pod
                for pod in self.running.values()
                if pod.shown["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
                == str(host)
            ]
        assert len(found) == 1, [pod.name for pod in found]
        return found[0]

    def kill(self, pod: Pod, reason: str) -> None:
        """Kills the process as the kernel does when memory is exhausted."""
        with self.lock:
            self.killed_by[pod.uid] = reason
            pod.signal(signal.SIGKILL)

    # -- the kubelets -----------------------------------------------------------------------------

    def loop(self) -> None:
        while not self.stopping.wait(LOOK_SECONDS):
            try:
                pods = self.cluster.pods()
            except (Refused, OSError):
                continue  # a test has stopped the API server
            with self.lock:
                self.look(pods)

    def look(self, pods: list[Object]) -> None:
        present = {shown["metadata"]["uid"] for shown in pods}
        for shown in pods:
            node = shown["spec"].get("nodeName")
            if node not in self.names or node in self.lost:
                continue
            try:
                self.look_at(shown)
            except (Refused, OSError) as error:
                print(f"pod {shown['metadata']['name']}: {error}")
        for uid, pod in list(self.running.items()):
            if uid not in present:
                self.end(pod)

    def look_at(self, shown: Object) -> None:
        uid = shown["metadata"]["uid"]
        deleting = "deletionTimestamp" in shown["metadata"]
        pod = self.running.get(uid)
        if pod is None:
            if not deleting and shown["status"]["phase"] == "Pending":
                self.run(shown)
            elif deleting:
                self.forget(shown)
            return
        code = pod.ended()
        if code is None:
            if deleting:
                pod.signal(signal.SIGTERM)
            return
        if not pod.reported:
            self.report_end(pod, code)
        if deleting:
            self.forget(shown)
            self.end(pod)

    def run(self, shown: Object) -> None:
        used = {pod.number for pod in self.running.values()}
        number = next(number for number in ADDRESSES if number not in used)
        pod = Pod(shown, self.cluster.at(f"pods/{shown['metadata']['uid']}"), number)
        shutil.rmtree(pod.directory, ignore_errors=True)
        os.makedirs(pod.directory)
        container = pod.spec["containers"][0]
        mounts = self.mounts_of(pod, container)
        if mounts is None:
            return  # its Secret is not there yet
        self.make_network(pod)
        self.write_hosts(pod)
        hostname = pod.spec.get("hostname", pod.name)
        image = self.images.get(container["image"])
        root = pod.at("root") if image else ""
        script = [
            *(self.root_script(pod, image) if image else []),
            f"mount -t tmpfs tmpfs {root}/run",
            f"mount --bind {pod.at('hosts')} {root}/etc/hosts",
            *(
                f"mkdir -p {shlex.quote(root + to)} && mount --bind {at} {shlex.quote(root + to)}"
                for at, to in mounts
            ),
            f"hostname {hostname}",
            *(ENTER_ROOT.format(root=root).splitlines() if image else []),
            f"exec {shlex.join(container['command'])}",
        ]
        if image:  # the shell of the image does the rest
            script[-1] = (
                f"exec /usr/sbin/chroot . /bin/sh -ec {shlex.quote(LEAVE_HOST + script[-1])}"
            )
        within = ["nsenter", f"--net=/run/netns/{pod.namespace}", "unshare", "--mount", "--uts"]
        own = ["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", "\n".join(script)]
        with open(pod.at("log"), "wb") as log:
            pod.process = subprocess.Popen(
                within + own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={"PATH": os.environ["PATH"]} | self.environment_of(shown, container),
            )
        self.running[pod.uid] = pod
        state = {"running": {"startedAt": shown["metadata"]["creationTimestamp"]}}
        self.set_status(pod, "Running", state, podIP=pod.address, podIPs=[{"ip": pod.address}])

    @staticmethod
    def root_script(pod: Pod, image: str) -> list[str]:
        """Returns commands that make a writable copy of the image's files, with what a container
        runtime mounts there."""
        root, upper, work = pod.at("root"), pod.at("upper"), pod.at("work")
        for directory in (root, upper, work):
            os.makedirs(directory)
        options = f"lowerdir={image},upperdir={upper},workdir={work}"
        return [
            f"mount -t overlay overlay -o {options} {root}",
            f"touch {root}/etc/hosts",
            f"mount -t proc proc {root}/proc",
            f"mount --rbind /sys {root}/sys",
            f"mount --rbind /dev {root}/dev",
        ]

    def mounts_of(self, pod: Pod, container: Object) -> list[tuple[str, str]] | None:
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
        mounts = []
        for mount in container.get("volumeMounts", []):
            volume = volumes[mount["name"]]
            directory = pod.at(f"volume-{mount['name']}")
            os.makedirs(directory, mode=0o700)
            if "secret" in volume:
                name = volume["secret"]["secretName"]
                path = f"/api/v1/namespaces/{pod.shown['metadata']['namespace']}/secrets/{name}"
                try:
                    data = self.cluster.call("GET", path)["data"]
                except Refused as refused:
                    if refused.status == 404:
                        return None
                    raise
                for key, value in data.items():
                    with open(os.path.join(directory, key), "wb") as file:
                        file.write(base64.b64decode(value))
            mounts.append((directory, mount["mountPath"]))
        return mounts

    @staticmethod
    def environment_of(shown: Object, container: Object) -> dict[str, str]:
        values = {}
        for variable in container.get("env", []):
            path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            if label := re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path):
                values[variable["name"]] = shown["metadata"][label[1]][label[2]]
            elif path:
                assert path == "metadata.name", path
                values[variable["name"]] = shown["metadata"]["name"]
            else:
                values[variable["name"]] = variable["value"]
        return values

    def make_network(self, pod: Pod) -> None:
        ip("netns", "delete", pod.namespace, check=False)
        # The kernel removes the links of a deleted namespace later.
        ip("link", "delete", pod.namespace, check=False)
        ip("netns", "add", pod.namespace)
        ip("link", "add", pod.namespace, "type", "veth", "peer", "eth0", "netns", pod.namespace)
        ip("link", "set", pod.namespace, "master", BRIDGE, "up")
        inside = ("-n", pod.namespace)
        ip(*inside, "link", "set", "lo", "up")
        ip(*inside, "address", "add", f"{pod.address}/24", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")
        ip(*inside, "route", "add", "default", "via", GATEWAY)

    def write_hosts(self, pod: Pod) -> None:
        """Writes the names of the service's pods into each one's hosts file when a pod starts."""
        with open(pod.at("hosts"), "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
        if not pod.domain:
            return
        alike = [other for other in self.running.values() if other.domain == pod.domain]

        def add(to: Pod, of: Pod) -> None:
            with open(to.at("hosts"), "ab", buffering=0) as file:
                file.write(f"{of.address} {of.spec['hostname']}.{of.domain}\n".encode())

        for other in [*alike, pod]:
            add(pod, other)
        for other in alike:
            add(other, pod)

    def set_status(self, pod: Pod, phase: str, state: Object, **more: Any) -> None:
        name = pod.spec["containers"][0]["name"]
        ready = phase == "Running"
        container = {"name": name, "state": state, "ready": ready, "restartCount": 0}
        container |= {"image": "trainyard", "imageID": ""}
        conditions = [
            {"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady")
        ] + [{"type": "PodScheduled", "status": "True"}]
        status = {"phase": phase, "containerStatuses": [container], "conditions": conditions}
        path = f"/api/v1/namespaces/{pod.shown['metadata']['namespace']}/pods/{pod.name}/status"
        self.cluster.patch(path, {"status": status | more})

    def report_end(self, pod: Pod, code: int) -> None:
        if pod.uid in self.killed_by:
            code = 128 + signal.SIGKILL
        reason = self.killed_by.pop(pod.uid, "Completed" if code == 0 else "Error")
        message = pod.log_text()[-LOG_BYTES:] if code else ""
        state = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
        self.set_status(pod, "Failed" if code else "Succeeded", state)
        pod.reported = True

    def forget(self, shown: Object) -> None:
        metadata = shown["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        try:
            self.cluster.call("DELETE", path, {"gracePeriodSeconds": 0})
        except Refused as refused:
            if refused.status != 404:
                raise

    def end(self, pod: Pod) -> None:
        assert pod.process
        pod.process.kill()  # and with it all processes of the pod
        pod.process.wait()
        ip("netns", "delete", pod.namespace, check=False)
        shutil.rmtree(pod.directory, ignore_errors=True)
        self.running.pop(pod.uid, None)
