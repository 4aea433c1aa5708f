"""Measures the start of a job on a Kubernetes cluster, next to a bare Job of the same image."""

from __future__ import annotations

import os
import pathlib
import tempfile
import time

from bench import progress
from bench.rows import ROOT, Row, row
from tests import jobs
from tests.kubelets.cluster import archive_images, control_plane, two_nodes
from tests.kubernetes.cluster import Cluster, Object
from tests.kubernetes.conftest import IMAGE, OF_IMAGE, server_on
from tests.trainyard_server import Server, wait_for

ROUNDS = int(os.environ.get("TRAINYARD_BENCH_KUBERNETES_START_ROUNDS", "11"))
SHARE_MAX = 1.1
# Prints the seconds since the machine was started, in hundredths.
PRINT_CLOCK = "cat /proc/uptime"
SECONDS_MAX = 60
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def uptime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def bare_job(name: str) -> Object:
    """Returns a Job whose container has the programs and the resources of one of ours."""
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", f"{PRINT_CLOCK} >/dev/termination-log"],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


def message_of(pod: Object) -> str:
    """Returns what the pod's container wrote to its termination log."""
    message: str = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    return message


def bare_seconds(cluster: Cluster, name: str) -> float:
    """Returns the time from the acceptance of a bare Job to its process; the Job is deleted."""
    cluster.create(bare_job(name))
    accepted = uptime()
    pods = f"{PODS}?labelSelector=job-name%3D{name}"
    wait_for(
        lambda: cluster.call("GET", f"{JOBS}/{name}")["status"].get("succeeded"),
        f"the Job {name} to succeed",
        SECONDS_MAX,
    )
    began = float(message_of(cluster.call("GET", pods)["items"][0]).split()[0])
    cluster.call("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Foreground"})
    wait_for(lambda: not cluster.call("GET", pods)["items"], "its pod to be deleted", SECONDS_MAX)
    return began - accepted


def our_seconds(cluster: Cluster, server: Server, name: str) -> float:
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request(name, PRINT_CLOCK))
    accepted = uptime()
    ended = jobs.wait_until(sagemaker, name)
    assert ended["TrainingJobStatus"] == "Completed", ended
    lines = [
        line
        for line in jobs.log_lines(server.boto("logs"), name)
        if not line.startswith("trainyard: ")
    ]
    wait_for(cluster.is_empty, "the gang's objects to be deleted", SECONDS_MAX)
    return float(lines[0].split()[0]) - accepted


def kubernetes_start() -> list[Row]:
    """Measures from acceptance to the user's process on Kubernetes, next to a bare Job of the same
    image on the same two nodes, with kubelet and containerd."""
    ours: list[float] = []
    peers: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="trainyard-bench-", dir=f"{ROOT}/build") as directory,
        control_plane() as cluster,
        two_nodes(cluster, archive_images(pathlib.Path(directory))),
        server_on(cluster, f"{directory}/data", **OF_IMAGE) as server,
    ):
        for number in progress.rounds(range(ROUNDS)):
            ours.append(our_seconds(cluster, server, f"start-{number}"))
            peers.append(bare_seconds(cluster, f"bare-{number}"))
    return [
        row(
            "kubernetes_start",
            "accepted -> user process on Kubernetes, 1 host",
            "s",
            ours,
            peers,
            "a bare Job of the same image on the same kubelets",
            f"ratio <= {SHARE_MAX}",
            lambda ours, peer: ours <= SHARE_MAX * peer,
        )
    ]
