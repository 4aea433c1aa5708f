import os
from collections.abc import Iterator

import pytest

from tests import trainyard_server
from tests.trainyard_server import Server


def environment(name: str) -> str:
    place = os.path.join(trainyard_server.ROOT, "build", name)
    return f'runtime = "machine"\npython = "{place}"\n'


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = trainyard_server.Server(
        tmp_path_factory.mktemp("yard") / "data",
        f"""
[jobs]
stop_grace_seconds = 5
[images."huggingface-pytorch-training:*"]
{environment("transformers")}
[images."pytorch-training:*"]
{environment("torch-current")}
[images."tensorflow-training:*"]
{environment("tensorflow")}
[[machine]]
name = "box"
cpus = 16.0
memory_gib = 64.0
""",
    ).start()
    server.boto("s3").create_bucket(Bucket="yard")
    os.environ["AWS_DATA_PATH"] = server.env["AWS_DATA_PATH"]
    yield server
    server.clean()
