"""Tests the backend in jobs: the wheels are sent with the script, as other packages are, and the
ranks are on two hosts."""

import pytest

from tests import scripts
from tests.trainyard_server import Server


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    server.boto("s3").create_bucket(Bucket="yard")
    return server


def test_ddp_on_two_hosts_with_nothing_changed_but_the_backends_name(cluster: Server) -> None:
    files, expected = scripts.example("02_ddp")
    _, lines = scripts.run(
        cluster,
        "ddp",
        "train.py",
        files | scripts.wheels("torch", "trainyard"),
        hosts=2,
        hyperparameters={
            "sagemaker_torch_distributed_enabled": True,
            "sagemaker_instance_type": "ml.t3.medium",
            "sagemaker_mpi_num_of_processes_per_host": 2,
            "epochs": 3,
        },
    )
    scripts.check_example(lines, expected)


def test_a_horovod_script_on_two_hosts_as_it_is(cluster: Server) -> None:
    files, expected = scripts.example("03_horovod")
    _, lines = scripts.run(
        cluster,
        "horovod",
        "train.py",
        files | scripts.wheels("torch", "trainyard-horovod"),
        hosts=2,
        hyperparameters={
            "sagemaker_mpi_enabled": True,
            "sagemaker_mpi_num_of_processes_per_host": 2,
            "epochs": 3,
        },
    )
    scripts.check_example(lines, expected)


def test_a_script_of_smdistributed_dataparallel_on_two_hosts_as_it_is(cluster: Server) -> None:
    files, expected = scripts.example("07_smddp")
    _, lines = scripts.run(
        cluster,
        "smddp",
        "train.py",
        files | scripts.wheels("torch", "trainyard-smddp"),
        hosts=2,
        hyperparameters={
            "sagemaker_distributed_dataparallel_enabled": True,
            "sagemaker_distributed_dataparallel_custom_mpi_options": "",
            "sagemaker_instance_type": "ml.t3.medium",
            "sagemaker_mpi_num_of_processes_per_host": 2,
            "epochs": 3,
        },
    )
    scripts.check_example(lines, expected)
