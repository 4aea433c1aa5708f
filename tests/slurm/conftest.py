"""Starts one Slurm cluster for all tests of this folder, and servers that use it."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest

from tests.ordinary_users import User
from tests.ports import free_port
from tests.slurm.cluster import CONTROLLER, Cluster, rest_versions
from tests.trainyard_server import PROGRAM, Server


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
    """Returns start(more="keys of [slurm]"), which starts a server for this test."""
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


# How a server reaches Slurm: by its programs, or by a version of slurmrestd's API.
INTERFACES = ["programs", *rest_versions()]


def interface_keys(cluster: Cluster, interface: str) -> str:
    """Returns the keys of [slurm] for one of the INTERFACES."""
    return "" if interface == "programs" else rest_keys(cluster, version=interface)


def rest_keys(
    cluster: Cluster, seconds: int = 3600, user: str = "root", version: str = INTERFACES[-1]
) -> str:
    """Returns the keys of [slurm] for slurmrestd, with a new token."""
    file = cluster.at("token")
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(cluster.token(seconds, user))
    return (
        f'rest_url = "http://127.0.0.1:{cluster.rest_port}"\nrest_token_file = "{file}"\n'
        f'rest_user = "{user}"\nrest_version = "{version}"\n'
    )


@pytest.fixture(scope="module", params=INTERFACES)
def server(
    request: pytest.FixtureRequest, cluster: Cluster, start: Callable[..., Server]
) -> Server:
    """Starts a server for each interface of Slurm."""
    one = start(interface_keys(cluster, request.param))
    one.boto("s3").create_bucket(Bucket="yard")
    return one


# The server's users, with their keys; the first is the owner.
KEYS = {user: (f"AKIA{user.upper():0>16}", f"secret-of-{user}") for user in ("owner", "ana", "bob")}


@pytest.fixture(scope="session")
def accounts(cluster: Cluster) -> Iterator[dict[str, User]]:
    """Makes ordinary users of the cluster. The name of ana's account differs from ana."""
    made = {"ana": User(f"tyalice{os.getpid()}", True), "bob": User(f"tybob{os.getpid()}", True)}
    directory = cluster.at("users")
    os.makedirs(directory)
    os.chmod(directory, 0o1777)  # as /var/tmp
    # Where nodes' users can read the programs.
    os.makedirs(cluster.at("bin"))
    for name in ("trainyard-slurm-host", "trainyard-agent", "trainyard-entry"):
        shutil.copy(os.path.join(os.path.dirname(PROGRAM), name), cluster.at("bin"))
    yield made
    cluster.cancel_all()
    for user in made.values():
        user.remove()


def user_keys(cluster: Cluster, accounts: dict[str, User], more: str = "") -> str:
    """Returns the keys of [slurm], and tables, for a server whose users have Unix accounts."""
    text = f"""
agents_listen = "{CONTROLLER}:{free_port()}"
program_directory = "{cluster.at("bin")}"
user_directory = "{cluster.at("users")}/node"
idle_seconds = 30
{more}
[slurm.users]
ana = {{ unix_user = "{accounts["ana"].name}", account = "physics", qos = "normal" }}
bob = {{ unix_user = "{accounts["bob"].name}", account = "chemistry" }}
"""
    for user, (key, secret) in KEYS.items():
        text += f'[[access_key]]\nid = "{key}"\nsecret = "{secret}"\nuser = "{user}"\n'
        if user != "owner":
            text += f'[[user]]\nname = "{user}"\npolicies = ["AdministratorAccess"]\n'
    return text


def keys_of(user: str) -> dict[str, str]:
    """Returns the arguments of Server.boto() for a client of that user."""
    return {"aws_access_key_id": KEYS[user][0], "aws_secret_access_key": KEYS[user][1]}
