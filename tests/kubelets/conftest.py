"""Starts a Kubernetes cluster with two nodes for all tests of this folder, and a server that uses
it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubelets.cluster import archive_images, control_plane, two_nodes
from tests.kubelets.node import Node
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.conftest import OF_IMAGE, server_on
from tests.trainyard_server import Server


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with control_plane() as one:
        yield one


@pytest.fixture(scope="session")
def nodes(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    with two_nodes(cluster, archive_images(tmp_path_factory.mktemp("images"))) as both:
        yield both


@pytest.fixture(scope="session")
def server(
    cluster: Cluster, nodes: list[Node], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    data = str(tmp_path_factory.mktemp("server") / "data")
    with server_on(cluster, data, **OF_IMAGE) as one:
        yield one
