"""Simulates the nodes of a control plane. Each pod's program runs on this machine, in separate
network, mount, process and UTS namespaces behind a bridge, and its status is written as a kubelet
does. Needs root.

Replaces kubelet, container runtime, CNI plugin, kube-proxy and cluster DNS. The program and its
files are this machine's, except in pods of an image in Nodes.images. Volumes are mounted, and
/etc/hosts has the names of pods in headless services and those of other services. NetworkPolicies
are not enforced. The GPUs of the last node are device files like /dev/null, which the pods with
GPUs see, as privileged pods do; a device plugin and a driver say which ones are theirs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import threading
import urllib.request
from typing import Any

from tests.kubernetes.cluster import Cluster, Object, Refused
from tests.kubernetes.network import ADDRESSES, BRIDGE, GATEWAY, SUBNET
from tests.kubernetes.volumes import NotYet, give, make_volume
from tests.network_commands import ip
from tests.trainyard_server import wait_for

LOOK_SECONDS = 0.1
PROBE_SECONDS_MAX = 5
LOG_BYTES = 2000
# Makes a directory the root, as container runtimes do: after a chroot, no user namespace could be
# made.
ENTER_ROOT = """cd {root}
mkdir host
pivot_root . host"""
LEAVE_HOST = "umount -l /host; rmdir /host; cd /; "
READ_ONLY = "mount -o remount,ro /; "
GPU_RESOURCE = "nvidia.com/gpu"
# The minor numbers of a node's GPUs, in the order of their buses.
GPU_MINORS = (1, 0)
# Gives the pod a /dev of its own, in which files can be made.
OWN_DEVICES = """mkdir /run/dev
mount --rbind /dev /run/dev
mount -t overlay overlay -o lowerdir=/dev,upperdir={upper},workdir={work} /dev
mount --bind /run/dev/pts /dev/pts
mount --bind /run/dev/shm /dev/shm
umount -l /run/dev
mount -t tmpfs tmpfs /proc/driver"""


def user_of(spec: Object) -> list[str]:
    """Returns a command that runs another as the pod's user, without capabilities."""
    security = spec["securityContext"]
    if not security.get("runAsNonRoot"):
        return []
    user, group = (str(security[name]) for name in ("runAsUser", "runAsGroup"))
    ids = ["--reuid", user, "--regid", group, "--clear-groups"]
    return ["setpriv", *ids, "--bounding-set", "-all", "--no-new-privs", "--"]


def gpu_uuid(gpu: int) -> str:
    return f"GPU-of-the-tests-{gpu}"


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
        self.ready = False
        self.reported = False
        self.gpus: list[int] = []  # the indexes in GPU_MINORS

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
        for name in self.names:
            node = {"apiVersion": "v1", "kind": "Node"}
            labels = {"kubernetes.io/hostname": name, "disk": f"of-{name}"}
            self.cluster.create(node | {"metadata": {"name": name, "labels": labels}})
            amounts = {"cpu": "16", "memory": "60Gi", "pods": "110"}
            if name == self.names[-1]:
                amounts[GPU_RESOURCE] = str(len(GPU_MINORS))
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
            elif not pod.ready:
                self.probe(pod)
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
        try:
            mounts = self.mounts_of(pod, container)
        except NotYet:
            return
        self.make_network(pod)
        with open(pod.at("hosts"), "w"):
            pass  # written below
        hostname = pod.spec.get("hostname", pod.name)
        image = self.images.get(container["image"])
        root = pod.at("root") if image else ""
        self.assign_gpus(pod, container)
        script = [
            *(self.root_script(pod, image) if image else []),
            f"mount -t tmpfs tmpfs {root}/run",
            *(self.gpu_script(pod) if pod.gpus else []),
            f"mount --bind {pod.at('hosts')} {root}/etc/hosts",
            *(
                f"mkdir -p {shlex.quote(root + to)} && mount --bind {at} {shlex.quote(root + to)}"
                for at, to in mounts
            ),
            f"hostname {hostname}",
            *(ENTER_ROOT.format(root=root).splitlines() if image else []),
            f"exec {shlex.join([*user_of(pod.spec), *container['command']])}",
        ]
        if image:  # the shell of the image does the rest
            rest = LEAVE_HOST + script[-1]
            if container.get("securityContext", {}).get("readOnlyRootFilesystem"):
                rest = LEAVE_HOST + READ_ONLY + script[-1]
            script[-1] = f"exec /usr/sbin/chroot . /bin/sh -ec {shlex.quote(rest)}"
        within = ["nsenter", f"--net=/run/netns/{pod.namespace}", "unshare", "--mount", "--uts"]
        own = ["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", "\n".join(script)]
        with open(pod.at("log"), "wb") as log:
            pod.process = subprocess.Popen(
                within + own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={
                    "PATH": os.environ["PATH"],
                    "KUBERNETES_SERVICE_HOST": GATEWAY,
                    "KUBERNETES_SERVICE_PORT": str(self.cluster.port),
                }
                | {"NVIDIA_VISIBLE_DEVICES": ",".join(map(gpu_uuid, pod.gpus))}
                | self.environment_of(shown, container),
            )
        self.running[pod.uid] = pod
        self.write_hosts()
        pod.ready = "readinessProbe" not in container
        self.set_running(pod)

    def set_running(self, pod: Pod) -> None:
        state = {"running": {"startedAt": pod.shown["metadata"]["creationTimestamp"]}}
        self.set_status(pod, "Running", state, podIP=pod.address, podIPs=[{"ip": pod.address}])

    def probe(self, pod: Pod) -> None:
        """Marks a pod as ready once it answers."""
        container = pod.spec["containers"][0]
        probe = container["readinessProbe"]["httpGet"]
        [port] = (
            each["containerPort"] for each in container["ports"] if each["name"] == probe["port"]
        )
        try:
            url = f"{probe['scheme'].lower()}://{pod.address}:{port}{probe['path']}"
            # As kubelets do, without verification.
            urllib.request.urlopen(
                url, timeout=PROBE_SECONDS_MAX, context=ssl._create_unverified_context()
            ).close()
        except OSError:
            return
        pod.ready = True
        self.set_running(pod)

    def assign_gpus(self, pod: Pod, container: Object) -> None:
        """Gives the pod the first free GPUs, as a device plugin does."""
        count = int(container["resources"].get("limits", {}).get(GPU_RESOURCE, 0))
        used = [
            gpu for other in self.running.values() if other.ended() is None for gpu in other.gpus
        ]
        pod.gpus = [gpu for gpu in range(len(GPU_MINORS)) if gpu not in used][:count]
        assert len(pod.gpus) == count, "the scheduler has placed a pod without free GPUs"

    @staticmethod
    def gpu_script(pod: Pod) -> list[str]:
        """Returns commands that show the node's GPUs, and what the driver says of them."""
        upper, work = pod.at("devices"), pod.at("devices-work")
        for directory in (upper, work):
            os.makedirs(directory)
        script = OWN_DEVICES.format(upper=upper, work=work).splitlines()
        for gpu, minor in enumerate(GPU_MINORS):
            place = f"/proc/driver/nvidia/gpus/0000:0{gpu}:00.0"
            text = f"GPU UUID: \\t {gpu_uuid(gpu)}\\nDevice Minor: \\t {minor}\\n"
            script += [
                f"mknod -m 666 /dev/nvidia{minor} c 1 3",
                f"mkdir -p {place}",
                f"printf '{text}' > {place}/information",
            ]
        return script

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

    def mounts_of(self, pod: Pod, container: Object) -> list[tuple[str, str]]:
        volumes = {volume["name"]: volume for volume in pod.spec.get("volumes", [])}
        mounts = []
        for mount in container.get("volumeMounts", []):
            directory = pod.at(f"volume-{mount['name']}")
            place = make_volume(self.cluster, pod.shown, volumes[mount["name"]], directory)
            security = pod.spec["securityContext"]
            if "fsGroup" in security:
                give(place, security["runAsUser"], security["fsGroup"])
            mounts.append((place, mount["mountPath"]))
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

    def write_hosts(self) -> None:
        """Writes into each pod's hosts file the names of the pods in its headless service, and
        those of other services, each with a pod of it."""
        names = self.service_names()
        for pod in self.running.values():
            alike = [
                f"{other.address} {other.spec['hostname']}.{other.domain}"
                for other in self.running.values()
                if pod.domain and other.domain == pod.domain
            ]
            lines = ["127.0.0.1 localhost", *alike, *names]
            # In place, since it is mounted, and never empty, since others read it.
            with open(pod.at("hosts"), "r+", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in lines))
                file.truncate()

    def service_names(self) -> list[str]:
        found = []
        for service in self.cluster.call("GET", "/api/v1/services")["items"]:
            selector = service["spec"].get("selector")
            if not selector or service["spec"].get("clusterIP") == "None":
                continue
            metadata = service["metadata"]
            found += [
                f"{pod.address} {metadata['name']}.{metadata['namespace']}.svc.cluster.local"
                for pod in self.running.values()
                if pod.shown["metadata"]["namespace"] == metadata["namespace"]
                and selector.items() <= pod.shown["metadata"]["labels"].items()
            ]
        return found

    def set_status(self, pod: Pod, phase: str, state: Object, **more: Any) -> None:
        name = pod.spec["containers"][0]["name"]
        ready = phase == "Running" and pod.ready
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
