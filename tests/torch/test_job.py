"""The backend in jobs: the wheel comes with the script, as any package does, and the ranks are on two hosts."""

import glob
import os

import pytest

import scripts
import trainyard_server


@pytest.fixture(scope="module")
def yard(server):
    server.boto("s3").create_bucket(Bucket="yard")
    return server


def sources(example):
    """The example's script with the wheel, and what its log must say."""
    folder = os.path.join(trainyard_server.ROOT, "examples", example)
    wheel, = glob.glob(os.path.join(trainyard_server.ROOT, "build", "torch", "wheels", "trainyard-*.whl"))
    files = {"requirements.txt": "--no-index\n--find-links wheels\ntrainyard\n"}
    with open(os.path.join(folder, "train.py"), encoding="utf-8") as file:
        files["train.py"] = file.read()
    with open(wheel, "rb") as file:
        files[f"wheels/{os.path.basename(wheel)}"] = file.read()
    with open(os.path.join(folder, "expected_output.txt"), encoding="utf-8") as file:
        return files, file.read().splitlines()


def check(lines, expected):
    said = sorted(line.split("weights ")[1] for line in lines if "weights" in line)
    assert len(said) == 4 and len(set(said)) == 1, lines[-20:]
    for line in expected:
        assert any(line in one for one in lines), f"not said: {line}"


def test_ddp_on_two_hosts_with_nothing_changed_but_the_backends_name(yard):
    files, expected = sources("02_ddp")
    _, lines = scripts.run(yard, "ddp", "train.py", files, hosts=2, hyperparameters={
        "sagemaker_torch_distributed_enabled": True, "sagemaker_instance_type": "ml.t3.medium", "sagemaker_mpi_num_of_processes_per_host": 2, "epochs": 3})
    check(lines, expected)


def test_a_horovod_script_on_two_hosts_as_it_is(yard):
    files, expected = sources("03_horovod")
    _, lines = scripts.run(yard, "horovod", "train.py", files, hosts=2, hyperparameters={"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2, "epochs": 3})
    check(lines, expected)


def test_a_script_of_smdistributed_dataparallel_on_two_hosts_as_it_is(yard):
    files, expected = sources("07_smddp")
    _, lines = scripts.run(yard, "smddp", "train.py", files, hosts=2, hyperparameters={
        "sagemaker_distributed_dataparallel_enabled": True, "sagemaker_distributed_dataparallel_custom_mpi_options": "",
        "sagemaker_instance_type": "ml.t3.medium", "sagemaker_mpi_num_of_processes_per_host": 2, "epochs": 3})
    check(lines, expected)
