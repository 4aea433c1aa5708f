from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import trainyard_server
from tests.trainyard_server import Answer, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for the tests of one file."""
    one = trainyard_server.Server(
        tmp_path_factory.mktemp("yard") / "data",
        "[jobs]\nstop_grace_seconds = 3\n[regions.'eu-west-1']\n[regions.'ap-south-1']\n",
    )
    one.start()
    yield one
    one.clean()


@pytest.fixture(
    params=[trainyard_server.TODAYS_AWS, trainyard_server.DEBIANS_AWS], ids=["todays", "debians"]
)
def aws(request: pytest.FixtureRequest, server: Server) -> Callable[..., Answer]:
    """Today's AWS CLI, then Debian's: aws("s3", "ls")."""
    return lambda *arguments, **more: server.aws(*arguments, program=request.param, **more)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """start(config="..") -> a server of the test's own."""
    servers = []

    def make(config: str = "", **more: Any) -> Server:
        one = trainyard_server.Server(tmp_path_factory.mktemp("yard") / "data", config, **more)
        servers.append(one)
        return one.start()

    yield make
    for one in servers:
        one.clean()
