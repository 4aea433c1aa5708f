"""Tests gangs of unequal hosts on partly used nodes, which are heterogeneous jobs in Slurm: each
node is requested with what its hosts need."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests import jobs
from tests.calls import fresh
from tests.cluster_jobs import WAIT_FOR_STOP, finish, lines
from tests.ordinary_users import User
from tests.slurm.cluster import NODE_CPUS, Cluster
from tests.slurm.conftest import INTERFACES, interface_keys, keys_of, user_keys
from tests.trainyard_server import Server, wait_for

# One host that fills a node, and two that need half of one.
UNEQUAL = {
    "InstanceGroups": [
        {"InstanceGroupName": "large", "InstanceType": "ml.c5.4xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "small", "InstanceType": "ml.c5.2xlarge", "InstanceCount": 2},
    ],
    "VolumeSizeInGB": 1,
}

REACH_BOTH = """
import socket as s, time
if s.gethostname() == "algo-1":
    listener = s.create_server(("0.0.0.0", 7777))
    for _ in range(2):
        listener.accept()[0].sendall(b"hello")
else:
    for _ in range(600):
        try:
            print("received", s.create_connection(("algo-1", 7777)).recv(5))
            break
        except OSError:
            time.sleep(0.1)
"""


@pytest.fixture(autouse=True)
def half_used_nodes(cluster: Cluster) -> Iterator[None]:
    """Another user's job has half of the processors of n1 and n2."""
    cluster.run(
        "sbatch",
        "--partition=train",
        "--nodelist=n1,n2",
        "--ntasks-per-node=1",
        f"--cpus-per-task={NODE_CPUS // 2}",
        "--mem=100",
        "--output=/dev/null",
        "--chdir=/",
        "--wrap=sleep 600",
    )
    wait_for(lambda: bool(running(cluster)), "the other job to run")
    yield
    cluster.cancel_all()


def running(cluster: Cluster, prefix: str = "") -> list[list[str]]:
    """Returns the component, processors, nodes and name of running jobs."""
    listed = cluster.jobs("%i|%C|%N|%j|%T")
    return [job[:4] for job in listed if job[4] == "RUNNING" and job[3].startswith(prefix)]


def create_unequal(server: Server, script: str, **keys: str) -> str:
    name = fresh("job")
    request = jobs.request(name, script) | {"ResourceConfig": UNEQUAL}
    server.boto("sagemaker", **keys).create_training_job(**request)
    return name


def wait_for_hosts(server: Server, name: str) -> None:
    wait_for(
        lambda: all("ready" in lines(server, name, host) for host in (1, 2, 3)), "all three hosts"
    )


def test_each_node_is_requested_with_what_its_hosts_need(cluster: Cluster, server: Server) -> None:
    name = create_unequal(server, f"python3 -c '{REACH_BOTH}'")
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name, 2) == lines(server, name, 3) == ["received b'hello'"]


def test_a_stopped_job_ends_in_all_its_nodes(cluster: Cluster, server: Server) -> None:
    name = create_unequal(server, WAIT_FOR_STOP)
    wait_for_hosts(server, name)
    components = sorted(job[:3] for job in running(cluster, "trainyard-"))
    assert [component[1:] for component in components] == [["16", "n3"], ["16", "n[1-2]"]]
    assert [component[0].split("+")[1] for component in components] == ["0", "1"]
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Stopped", job.get("FailureReason")
    assert "stopping" in lines(server, name, 3)
    wait_for(lambda: not running(cluster, "trainyard-"), "its components to end")


def test_a_killed_server_finds_the_job_again(cluster: Cluster, server: Server) -> None:
    name = create_unequal(server, WAIT_FOR_STOP)
    wait_for_hosts(server, name)
    server.kill()
    server.start()
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Stopped", job.get("FailureReason")
    assert "stopping" in lines(server, name, 2)


def test_a_killed_agent_of_another_component_is_a_lost_host(
    cluster: Cluster, server: Server
) -> None:
    name = create_unequal(server, WAIT_FOR_STOP)
    wait_for_hosts(server, name)
    agent = next(agent for agent in server.agents() if agent in cluster.processes_of("n2"))
    os.kill(agent, 9)
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "lost the host's agent on machine n2" in job["FailureReason"], job["FailureReason"]
    wait_for(lambda: not running(cluster, "trainyard-"), "its components to end")


@pytest.mark.parametrize("interface", INTERFACES)
def test_the_components_of_an_accounts_job_are_its_own(
    cluster: Cluster, accounts: dict[str, User], start: Callable[..., Server], interface: str
) -> None:
    server = start(user_keys(cluster, accounts, interface_keys(cluster, interface)))
    server.boto("s3").create_bucket(Bucket="yard")
    name = create_unequal(server, f"python3 -c '{REACH_BOTH}'", **keys_of("ana"))
    job = finish(server, name)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    assert lines(server, name, 2) == lines(server, name, 3) == ["received b'hello'"]
    components = [job for job in cluster.jobs("%i|%u") if "+" in job[0]]
    newest = max(int(number.split("+")[0]) for number, _ in components)
    owners = [user for number, user in components if number.startswith(f"{newest}+")]
    assert owners == [accounts["ana"].name] * 2
