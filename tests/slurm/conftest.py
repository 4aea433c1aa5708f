"""One Slurm cluster for all tests of this folder, and servers that use it."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest

from tests.slurm.cluster import CONTROLLER, Cluster
from tests.trainyard_server import Server


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    assert os.geteuid() == 0, "Slurm's daemons and network namespaces need root"
    directory = tempfile.mkdtemp(prefix="ty-slurm-")  # short: munge's socket lies there
    one = Cluster(directory)
    try:
        yield one.start()
    finally:
        one.stop()


def config_of(cluster: Cluster, data: str, more: str = "", partition: str = "train") -> str:
    return f"""
[server]
allow_plain_http_from_other_machines = true
[jobs]
stop_grace_seconds = 3
[slurm]
partition = "{partition}"
config_file = "{cluster.config}"
server_address = "{CONTROLLER}"
node_directory = "{data}/nodes"
{more}
"""


@pytest.fixture(scope="module")
def start(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """start(more="keys of [slurm]") -> a server of the test's own."""
    servers = []

    def make(more: str = "", partition: str = "train", run: bool = True) -> Server:
        data = str(tmp_path_factory.mktemp("yard") / "data")
        one = Server(data, config_of(cluster, data, more, partition), listen=f"{CONTROLLER}:0")
        servers.append(one)
        return one.start() if run else one

    yield make
    cluster.cancel_all()
    for one in servers:
        if hasattr(one, "log"):
            one.clean()
        shutil.rmtree(one.data, ignore_errors=True)


def rest_keys(cluster: Cluster, seconds: int = 3600) -> str:
    """Keys of [slurm] for slurmrestd, with a new token."""
    file = cluster.at("token")
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(cluster.token(seconds))
    return f'rest_url = "http://127.0.0.1:{cluster.rest_port}"\nrest_token_file = "{file}"\n'


@pytest.fixture(scope="module", params=["programs", "rest"])
def server(
    request: pytest.FixtureRequest, cluster: Cluster, start: Callable[..., Server]
) -> Server:
    """By each of the ways in which servers reach Slurm."""
    one = start(rest_keys(cluster) if request.param == "rest" else "")
    one.boto("s3").create_bucket(Bucket="yard")
    return one
