from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest

from tests import trainyard_server
from tests.trainyard_server import Answer, Server

# These files take longest. When several files run at a time, these start first, so that none of
# them delays the end.
LONG_FILES = (
    "conformance/test_batch_service.py",
    "conformance/test_sdk_v3.py",
    "conformance/test_training.py",
    "conformance/test_sdk_v2.py",
    "conformance/test_sdk_v2_frameworks.py",
    "journeys/test_sdk_features_3.py",
    "journeys/test_sdk_features_2.py",
    "sagemaker_user/test_day.py",
    "journeys/test_readme.py",
    "journeys/test_operating_pages.py",
    "system/test_interruptions.py",
    "system/test_sharing.py",
    "system/test_ledger_standby.py",
    "system/test_campaign.py",
    "system/test_ordinary_user.py",
    "system/test_multinode.py",
    "system/test_images_and_stores.py",
    "system/test_distributions.py",
    "system/test_clock_jumps.py",
    "system/test_sandbox.py",
    "system/test_checkpoints.py",
    "system/test_script_mode.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--retry",
        action="store_true",
        help="run what failed last; of files marked in_order, with a failure, all tests",
    )


def failed_last(items: list[pytest.Item], failed: Collection[str]) -> list[pytest.Item]:
    """Returns the tests that a retry runs; all tests if the failed ones are unknown. `failed`: ids
    of tests, and of files that could not be read."""
    files = {name.partition("::")[0] for name in failed}

    def runs(item: pytest.Item) -> bool:
        file = item.nodeid.partition("::")[0]
        whole = file in failed or (file in files and item.get_closest_marker("in_order"))
        return bool(whole) or item.nodeid in failed

    return [item for item in items if runs(item)] or items


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--retry"):
        chosen = failed_last(items, config.cache.get("cache/lastfailed", {}))
        left_out = set(items) - set(chosen)
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = chosen

    def position(item: pytest.Item) -> int:
        name = "/".join(item.path.parts[-2:])
        return LONG_FILES.index(name) if name in LONG_FILES else len(LONG_FILES)

    items.sort(key=position)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Starts a server for the tests of one file."""
    one = trainyard_server.Server(
        tmp_path_factory.mktemp("yard") / "data",
        "[jobs]\nstop_grace_seconds = 3\n[regions.'eu-west-1']\n[regions.'ap-south-1']\n",
    )
    one.start()
    yield one
    one.clean()


@pytest.fixture
def own_operations(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets boto3 find the model of Trainyard's own operations."""
    monkeypatch.setenv("AWS_DATA_PATH", server.env["AWS_DATA_PATH"])


@pytest.fixture(
    params=[trainyard_server.TODAYS_AWS, trainyard_server.DEBIANS_AWS], ids=["todays", "debians"]
)
def aws(request: pytest.FixtureRequest, server: Server) -> Callable[..., Answer]:
    """Runs commands with the current AWS CLI, then with Debian's: aws("s3", "ls")."""
    return lambda *arguments, **more: server.aws(*arguments, program=request.param, **more)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Returns start(config=".."), which starts a server for this test; bucket="..": and makes a
    bucket."""
    servers = []

    def make(config: str = "", bucket: str = "", **more: Any) -> Server:
        one = trainyard_server.Server(tmp_path_factory.mktemp("yard") / "data", config, **more)
        servers.append(one)
        one.start()
        if bucket:
            one.boto("s3").create_bucket(Bucket=bucket)
        return one

    yield make
    for one in servers:
        one.clean()
