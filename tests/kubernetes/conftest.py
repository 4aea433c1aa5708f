"""Starts one Kubernetes control plane with two nodes for all tests of this folder, and the servers
of each test module that use it."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.images import build_image, unpack_image
from tests.kubernetes.network import GATEWAY
from tests.kubernetes.nodes import Nodes
from tests.ports import free_port
from tests.trainyard_server import ROOT, Server, wait_for

IMAGE = "registry.lan/trainyard:1"
# The settings of a server whose pods have the image, with its programs.
OF_IMAGE = {"image": IMAGE, "programs": "/opt/trainyard/bin"}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    directory = tempfile.mkdtemp(prefix="ty-kubernetes-")
    one = Cluster(directory)
    try:
        yield one.start()
    finally:
        one.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def nodes(cluster: Cluster) -> Iterator[Nodes]:
    assert os.geteuid() == 0, "network namespaces need root"
    both = Nodes(cluster)
    try:
        yield both.start()
    finally:
        both.stop()


@pytest.fixture(scope="session")
def image(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Lets the nodes run pods of IMAGE; returns the digest of its manifest."""
    digest = build_image()
    root = tmp_path_factory.mktemp("image")
    unpack_image(digest, root)
    nodes.images[IMAGE] = str(root)
    return digest


def config_of(
    data: str,
    kubeconfig: str,
    more: str = "",
    image: str = "trainyard",
    programs: str = f"{ROOT}/build/release/bin",
) -> str:
    """Returns a server's config. `more`: further keys of [kubernetes]."""
    return f"""
[jobs]
stop_grace_seconds = 3
[kubernetes]
kubeconfig = "{kubeconfig}"
image = "{image}"
program_directory = "{programs}"
node_directory = "{data}-node"
server_address = "{GATEWAY}"
agents_listen = "{GATEWAY}:{free_port()}"
{more}
"""


@contextlib.contextmanager
def server_on(cluster: Cluster, data: str, **settings: str) -> Iterator[Server]:
    """Yields a server whose jobs run there. `settings`: those of config_of()."""
    token = cluster.write("token", cluster.account_token())
    kubeconfig = cluster.write("server.json", json.dumps(cluster.kubeconfig(tokenFile=token)))
    one = Server(data, config_of(data, kubeconfig, **settings), listen=f"{GATEWAY}:0")
    try:
        one.start()
        one.boto("s3").create_bucket(Bucket="yard")
        yield one
    finally:
        if hasattr(one, "log"):
            one.clean()
        shutil.rmtree(data, ignore_errors=True)


@pytest.fixture(scope="module")
def start(
    cluster: Cluster, nodes: Nodes, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """Returns start(more="keys of [kubernetes]"), which starts a server for the tests of this
    module, as the service account in packaging/kubernetes/rbac.yaml or with another `token`."""
    servers = []

    def make(more: str = "", token: str = "", **settings: str) -> Server:
        data = str(tmp_path_factory.mktemp("yard") / "data")
        file = cluster.write(f"token-{len(servers)}", token or cluster.account_token())
        kubeconfig = cluster.write(
            f"server-{len(servers)}.json", json.dumps(cluster.kubeconfig(tokenFile=file))
        )
        one = Server(data, config_of(data, kubeconfig, more, **settings), listen=f"{GATEWAY}:0")
        servers.append(one)
        return one.start()

    yield make
    for one in servers:
        if hasattr(one, "log"):
            one.clean()
        shutil.rmtree(one.data, ignore_errors=True)
        shutil.rmtree(one.data + "-node", ignore_errors=True)
    for job in cluster.gang_objects()["jobs"]:
        cluster.delete_job(job["metadata"]["name"])
    wait_for(cluster.is_empty, "all gangs to be gone")


@pytest.fixture(scope="module")
def server(start: Callable[..., Server]) -> Server:
    one = start()
    one.boto("s3").create_bucket(Bucket="yard")
    return one
