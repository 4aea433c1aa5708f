"""Ranks and their GPUs, on a machine that has device files named as NVIDIA's are, and no more of GPUs than that."""

import os
import stat

import pytest

import scripts

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or os.path.exists("/dev/nvidia0"), reason="makes device files, where there are none")

RANKS = """
import os
def told(*names):
    return next((os.environ[name] for name in names if name in os.environ), "nothing")
cards = [name for name in os.listdir("/dev") if name.startswith("nvidia")]
print("RANK", told("RANK", "OMPI_COMM_WORLD_RANK"), "local", told("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"), "sees", told("CUDA_VISIBLE_DEVICES"),
      "of", len(cards), "in the order", told("CUDA_DEVICE_ORDER"), "and", told("SM_NUM_GPUS"), flush=True)
"""
TORCH = {"sagemaker_torch_distributed_enabled": True, "sagemaker_instance_type": "ml.g4dn.12xlarge"}
MPI = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 4, "sagemaker_mpi_custom_mpi_options": ""}


@pytest.fixture(scope="module")
def yard(start):
    names = [f"/dev/nvidia{number}" for number in range(60, 64)]
    for name, minor in zip(names, (200, 229, 235, 237)):
        os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(10, minor))
    try:
        server = start(f"[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 512.0\ngpu_devices = {names}\n")
        server.boto("s3").create_bucket(Bucket="yard")
        yield server
    finally:
        for name in names:
            os.unlink(name)


@pytest.mark.parametrize("name, hyperparameters, environment", [
    ("torch", TORCH, {}), ("mpi", MPI, {}), ("torch-alone", TORCH, {"TRAINYARD_ONE_GPU_PER_RANK": "1"}), ("mpi-alone", MPI, {"TRAINYARD_ONE_GPU_PER_RANK": "1"})])
def test_each_rank_is_pinned_to_the_gpu_of_its_local_rank(yard, name, hyperparameters, environment):
    """The number is one card for all ranks, and each sees it under the number that it is told; or that one alone."""
    _, lines = scripts.run(yard, name, "train.py", {"train.py": RANKS}, hyperparameters=hyperparameters, instance_type="ml.g4dn.12xlarge", Environment=environment)
    said = sorted(line[line.index("RANK"):] for line in lines if "RANK " in line)
    assert said == [f"RANK {rank} local {rank} sees {rank if environment else 'nothing'} of 4 in the order PCI_BUS_ID and 4" for rank in range(4)], lines[-20:]
