"""Tests a server on a cluster of 5,000 nodes with 20,000 pods of others, which kwok simulates."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator

import pytest

from tests.cluster_jobs import create, finish
from tests.kubernetes.cluster import Cluster, Object
from tests.kubernetes.conftest import server_on
from tests.kwok.population import Population
from tests.trainyard_server import Server, wait_for

NODES = 5_000
PODS = 20_000
REPLACED_PODS = 5_000
# The first nodes have no CPU left, the others have it for one host each.
FULL_NODES = NODES // 2
INSTANCE_TYPE = "ml.c5.xlarge"
HOSTS = 100
SECONDS_MAX = 900
MEMORY_MIB_MAX = 120


def cpu_of_a_pod(node: int) -> str:
    return "2" if node < FULL_NODES else "500m"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    directory = tempfile.mkdtemp(prefix="ty-kwok-")
    one = Cluster(directory)
    try:
        yield one.start()
    finally:
        one.stop()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def population(cluster: Cluster) -> Population:
    one = Population(cluster)
    one.start()
    one.add_nodes(NODES)
    one.add_pods(range(PODS), NODES, cpu_of_a_pod)
    wait_for(one.all_pods_run, "all pods to run", SECONDS_MAX, 5)
    wait_for(one.all_nodes_admit, "the nodes to lose the taint of new ones", SECONDS_MAX, 5)
    return one


@pytest.fixture(scope="module")
def server(
    cluster: Cluster, population: Population, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    with server_on(cluster, str(tmp_path_factory.mktemp("server") / "data")) as one:
        yield one


def memory_mib_max(server: Server) -> float:
    """Returns the most memory that the server has had since its start."""
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
        found = re.search(r"VmHWM:\s+(\d+) kB", file.read())
    assert found
    return int(found[1]) / 1024


def hosts_on_nodes(cluster: Cluster) -> list[Object]:
    pods = cluster.gang_objects()["pods"]
    return [pod for pod in pods if pod["spec"].get("nodeName")]


def place_a_gang(cluster: Cluster, server: Server) -> set[str]:
    """Returns the nodes of its hosts. No agent runs there, so the Job is deleted to end it."""
    name = create(server, "true", hosts=HOSTS, instance_type=INSTANCE_TYPE)
    wait_for(lambda: len(hosts_on_nodes(cluster)) == HOSTS, "all hosts to be on nodes", SECONDS_MAX)
    nodes = {pod["spec"]["nodeName"] for pod in hosts_on_nodes(cluster)}
    server.boto("sagemaker").stop_training_job(TrainingJobName=name)
    cluster.delete_job(cluster.gang_objects()["jobs"][0]["metadata"]["name"])
    assert finish(server, name)["TrainingJobStatus"] == "Stopped"
    wait_for(cluster.is_empty, "the gang's objects to be deleted", SECONDS_MAX)
    return nodes


def test_a_gang_finds_the_nodes_with_free_cpu(cluster: Cluster, server: Server) -> None:
    nodes = place_a_gang(cluster, server)
    assert len(nodes) == HOSTS
    assert all(int(node.removeprefix("node-")) >= FULL_NODES for node in nodes), nodes


def test_memory_does_not_grow_with_the_number_of_changes(
    cluster: Cluster, population: Population, server: Server
) -> None:
    before = memory_mib_max(server)
    assert before < MEMORY_MIB_MAX
    replaced = range(REPLACED_PODS)
    population.remove_pods(replaced)
    population.add_pods(replaced, NODES, cpu_of_a_pod)
    wait_for(population.all_pods_run, "all pods to run", SECONDS_MAX, 5)
    place_a_gang(cluster, server)
    print(f"at most {before:.0f} MiB, and then {memory_mib_max(server):.0f} MiB")
    assert memory_mib_max(server) < MEMORY_MIB_MAX
