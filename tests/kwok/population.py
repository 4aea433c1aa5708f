"""Fills a Kubernetes control plane with nodes and running pods, which kwok simulates: none runs a
program. tests/kubernetes/prepare builds kwok."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import os
import threading
from collections.abc import Callable, Iterable

from tests.kubernetes.cluster import ADMIN_TOKEN, PROGRAMS, Cluster, Object
from tests.kubernetes.network import GATEWAY
from tests.trainyard_server import wait_for

THREADS = 8
REQUEST_SECONDS_MAX = 60
# kwok renews a node's lease four times in this time.
LEASE_SECONDS = 200
NODE_AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110"}
PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
# Pods run until they are deleted. By kwok's own stages, those of Jobs succeed at once.
STAGES = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: run}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
      - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
      - {key: .status.phase, operator: In, values: [Pending]}
  next:
    statusTemplate: |
      phase: Running
      podIP: 10.0.0.1
      startTime: {{ Now | Quote }}
      conditions:
        - {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
        - name: {{ .name | Quote }}
          image: {{ .image | Quote }}
          ready: true
          restartCount: 0
          state: {running: {startedAt: {{ Now | Quote }}}}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: delete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
      - {key: .metadata.deletionTimestamp, operator: Exists}
  next:
    finalizers: {empty: true}
    delete: true
"""


def node(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": NODE_AMOUNTS, "allocatable": NODE_AMOUNTS},
    }


def pod(name: str, on_node: str, cpu: str) -> Object:
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": on_node,
            "containers": [container],
            "automountServiceAccountToken": False,
        },
    }


class Population:
    """Threads: all methods may be called from any."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.connections = threading.local()

    def start(self) -> None:
        kubeconfig = self.cluster.write(
            "kwok.json", json.dumps(self.cluster.kubeconfig(ADMIN_TOKEN))
        )
        self.cluster.launch(
            "kwok",
            [os.path.join(PROGRAMS, "kwok")],
            f"--kubeconfig={kubeconfig}",
            f"--config={self.cluster.write('stages.yaml', STAGES)}",
            "--manage-all-nodes=true",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
        )

        wait_for(self.pods_are_accepted, "the namespace to have a service account")

    def pods_are_accepted(self) -> bool:
        return bool(self.cluster.call("GET", ACCOUNTS)["items"])

    def request(self, method: str, path: str, body: Object | None = None) -> None:
        """Sends a request on a connection of this thread, which remains open."""
        if not hasattr(self.connections, "kept"):
            self.connections.kept = http.client.HTTPSConnection(
                GATEWAY, self.cluster.port, timeout=REQUEST_SECONDS_MAX, context=self.cluster.trust
            )
        kept: http.client.HTTPSConnection = self.connections.kept
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}
        kept.request(method, path, json.dumps(body) if body else None, headers)
        answer = kept.getresponse()
        text = answer.read()
        assert answer.status < 300, f"{method} {path}: {answer.status} {text!r}"

    def each(self, action: Callable[[int], None], numbers: Iterable[int]) -> None:
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(action, numbers):
                pass

    def add_nodes(self, count: int) -> None:
        self.each(
            lambda number: self.request("POST", "/api/v1/nodes", node(f"node-{number}")),
            range(count),
        )

    def add_pods(self, numbers: Iterable[int], nodes: int, cpu: Callable[[int], str]) -> None:
        """Adds the pods pod-N, each on the node whose number is N modulo `nodes`. `cpu`: what a pod
        on the node requests."""

        def add(number: int) -> None:
            at = number % nodes
            self.request("POST", PODS, pod(f"pod-{number}", f"node-{at}", cpu(at)))

        self.each(add, numbers)

    def remove_pods(self, numbers: Iterable[int]) -> None:
        now = "?gracePeriodSeconds=0"
        self.each(lambda number: self.request("DELETE", f"{PODS}/pod-{number}{now}"), numbers)

    def all_pods_run(self) -> bool:
        return not self.cluster.call("GET", f"{PODS}?fieldSelector=status.phase!=Running")["items"]

    def all_nodes_admit(self) -> bool:
        """Returns whether no node has the taints of new ones."""
        nodes: list[Object] = self.cluster.call("GET", "/api/v1/nodes")["items"]
        return not any(each["spec"].get("taints") for each in nodes)
