"""Starts a server on each launcher: this machine, a Slurm cluster of four nodes and a Kubernetes
cluster of two."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

import tests.kubernetes.conftest
import tests.slurm.conftest
from tests.kubernetes.cluster import Cluster as KubernetesCluster
from tests.kubernetes.network import GATEWAY
from tests.kubernetes.nodes import Nodes
from tests.slurm.cluster import CONTROLLER
from tests.slurm.cluster import Cluster as SlurmCluster
from tests.trainyard_server import ROOT, Server

BUCKETS = ("digits", "ddp", "horovod")  # of the examples


def multinode_tables(data: str) -> str:
    """Returns the tables of a config for examples/05_multinode, and makes the files of its jobs."""
    prepare = os.path.join(ROOT, "examples", "05_multinode", "prepare")
    return subprocess.run(
        [prepare, f"{data}-shared"], check=True, capture_output=True, text=True
    ).stdout


@contextlib.contextmanager
def local(data: str) -> Iterator[Server]:
    yield Server(data, multinode_tables(data))


@contextlib.contextmanager
def slurm(data: str) -> Iterator[Server]:
    directory = tempfile.mkdtemp(prefix="ty-slurm-")  # short: munge's socket lies there
    cluster = SlurmCluster(directory, nodes=4)
    try:
        cluster.start()
        config = tests.slurm.conftest.config_of(cluster, data, multinode_tables(data))
        yield Server(data, config, listen=f"{CONTROLLER}:0")
        cluster.cancel_all()
    finally:
        cluster.stop()


@contextlib.contextmanager
def kubernetes(data: str) -> Iterator[Server]:
    directory = tempfile.mkdtemp(prefix="ty-kubernetes-")
    cluster = KubernetesCluster(directory)
    nodes = Nodes(cluster)
    try:
        cluster.start()
        nodes.start()
        token = cluster.write("token", cluster.account_token())
        file = cluster.write("server.json", json.dumps(cluster.kubeconfig(tokenFile=token)))
        config = tests.kubernetes.conftest.config_of(data, file) + multinode_tables(data)
        config += f'[kubernetes.mounts."{data}-shared"]\n'
        yield Server(data, config, listen=f"{GATEWAY}:0")
    finally:
        nodes.stop()
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(f"{data}-node", ignore_errors=True)


LAUNCHERS = {"local": local, "slurm": slurm, "kubernetes": kubernetes}


@pytest.fixture(scope="module", params=LAUNCHERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    assert os.geteuid() == 0, "network namespaces need root"
    data = str(tmp_path_factory.mktemp(request.param) / "data")
    with LAUNCHERS[request.param](data) as one:
        one.start()
        for bucket in BUCKETS:
            one.boto("s3").create_bucket(Bucket=bucket)
        yield one
        one.clean()
    for directory in (data, f"{data}-shared"):
        shutil.rmtree(directory, ignore_errors=True)
