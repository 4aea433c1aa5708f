"""Tests FSDP over Trainyard's collectives on two hosts. On CPUs it needs PyTorch 2.0 or later."""

import os

import pytest

from tests import scripts
from tests.frameworks import images
from tests.trainyard_server import Server


@pytest.mark.parametrize("api", ["wrapper", "in-place"])
def test_a_fully_sharded_model_on_two_hosts_equals_the_model_of_one_process(
    cluster: Server, api: str
) -> None:
    with open(
        os.path.join(os.path.dirname(__file__), "fully_sharded.py"), encoding="utf-8"
    ) as file:
        files = {"train.py": file.read()}
    _, lines = scripts.run(
        cluster,
        f"fully-sharded-{api}",
        "train.py",
        files,
        hosts=2,
        image=images.PYTORCH,
        instance_type="ml.m5.large",
        seconds_max=images.SECONDS_MAX,
        hyperparameters={
            "sagemaker_torch_distributed_enabled": True,
            "sagemaker_instance_type": "ml.m5.large",
            "sagemaker_mpi_num_of_processes_per_host": 2,
            "api": api,
        },
    )
    output = sorted(line for line in lines if line.startswith("rank "))
    assert [line.split(", weights")[0] for line in output] == [
        f"rank {rank} of 4, {api}: equals one process: True" for rank in range(4)
    ], lines[-40:]
    assert len({line.split(", weights")[1] for line in output}) == 1, (
        "all ranks have the same weights, bit for bit"
    )
