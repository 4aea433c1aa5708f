"""Tests ranks and their GPUs, and what jobs leave in the memory of GPUs, with device files that are
named as NVIDIA's and no GPUs. The CUDA driver is a library of the tests (tests/gpu_driver.c), in
which a file is a GPU's memory: the tests show which functions are called and when, not what a real
driver does."""

import os
import pathlib
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import jobs, scripts, trainyard_server
from tests.trainyard_server import Server, wait_for

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or os.path.exists("/dev/nvidia0"),
    reason="makes device files, where there are none",
)

RANKS = """
import os
def told(*names):
    return next((os.environ[name] for name in names if name in os.environ), "nothing")
cards = [name for name in os.listdir("/dev") if name.startswith("nvidia")]
print("RANK", told("RANK", "OMPI_COMM_WORLD_RANK"), "local", told("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"), "sees", told("CUDA_VISIBLE_DEVICES"),
      "of", len(cards), "in the order", told("CUDA_DEVICE_ORDER"), "and", told("SM_NUM_GPUS"), flush=True)
"""
TORCH = {"sagemaker_torch_distributed_enabled": True, "sagemaker_instance_type": "ml.g4dn.12xlarge"}
MPI = {
    "sagemaker_mpi_enabled": True,
    "sagemaker_mpi_num_of_processes_per_host": 4,
    "sagemaker_mpi_custom_mpi_options": "",
}


CANARY = b"weights of a former job "
GPU_BYTES = 24 << 10 << 10
NUMBERS = range(60, 64)


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Makes a directory with a file for each GPU's memory, and a fake driver that clears it."""
    directory = tmp_path_factory.mktemp("gpus")
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Werror",
            "-o",
            directory / "libcuda.so.1",
            os.path.join(trainyard_server.ROOT, "tests", "gpu_driver.c"),
        ],
        check=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(directory))
        patch.setenv("TRAINYARD_TEST_GPUS", str(directory))
        for number in NUMBERS:
            (directory / str(number)).write_bytes(bytes(GPU_BYTES))
        yield directory


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server], gpus: pathlib.Path) -> Iterator[Server]:
    names = [f"/dev/nvidia{number}" for number in NUMBERS]
    for name, minor in zip(names, (200, 229, 235, 237)):
        os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(10, minor))
    try:
        server = start(
            "[[machine]]\nname = 'box'\ncpus = 64.0\nmemory_gib = 512.0\ngpu_devices ="
            f" {names}\n[jobs]\nstop_grace_seconds = 1\n"
        )
        server.boto("s3").create_bucket(Bucket="yard")
        yield server
    finally:
        for name in names:
            os.unlink(name)


@pytest.mark.parametrize(
    "name, hyperparameters, environment",
    [
        ("torch", TORCH, {}),
        ("mpi", MPI, {}),
        ("torch-alone", TORCH, {"TRAINYARD_ONE_GPU_PER_RANK": "1"}),
        ("mpi-alone", MPI, {"TRAINYARD_ONE_GPU_PER_RANK": "1"}),
    ],
)
def test_each_rank_is_pinned_to_the_gpu_of_its_local_rank(
    cluster: Server, name: str, hyperparameters: dict[str, Any], environment: dict[str, str]
) -> None:
    """A number is the same GPU for all ranks. Each rank sees it under that number, or sees only
    that GPU."""
    _, lines = scripts.run(
        cluster,
        name,
        "train.py",
        {"train.py": RANKS},
        hyperparameters=hyperparameters,
        instance_type="ml.g4dn.12xlarge",
        Environment=environment,
    )
    output = sorted(line[line.index("RANK") :] for line in lines if "RANK " in line)
    assert output == [
        f"RANK {rank} local {rank} sees {rank if environment else 'nothing'} of 4 in the order"
        " PCI_BUS_ID and 4"
        for rank in range(4)
    ], lines[-20:]


def leave(gpus: pathlib.Path) -> None:
    """Fills the memory of each GPU with a canary text, as a job's kernels might leave data."""
    for number in NUMBERS:
        (gpus / str(number)).write_bytes((CANARY * (GPU_BYTES // len(CANARY) + 1))[:GPU_BYTES])


def left(gpus: pathlib.Path) -> list[int]:
    return [number for number in NUMBERS if any((gpus / str(number)).read_bytes())]


def marks(server: Server) -> list[str]:
    return sorted(os.listdir(os.path.join(server.data, "gpus")))


def run(server: Server, name: str, script: str, **more: Any) -> dict[str, Any]:
    request = jobs.request(name, script, instance_type="ml.g4dn.12xlarge", **more)
    server.boto("sagemaker").create_training_job(**request)
    return request


def test_memory_is_cleared_before_a_job_is_over(cluster: Server, gpus: pathlib.Path) -> None:
    run(cluster, "leaves", "sleep 3")
    jobs.wait_until(cluster.boto("sagemaker"), "leaves", ("Training",))
    wait_for(
        lambda: marks(cluster) == [f"!dev!nvidia{number}" for number in NUMBERS],
        "the marks of what is used",
    )
    leave(gpus)
    assert jobs.wait_until(cluster.boto("sagemaker"), "leaves")["TrainingJobStatus"] == "Completed"
    assert left(gpus) == [] and marks(cluster) == []
    calls = (gpus / "calls").read_text()
    for number in NUMBERS:
        cleared = [int(size) for size in re.findall(rf"cuMemsetD8 gpu={number} bytes=(\d+)", calls)]
        assert sum(cleared) >= GPU_BYTES, calls
    assert re.findall(r"cuCtxDestroy gpu=\d+ bytes=(\d+)", calls) == ["0"] * calls.count(
        "cuCtxDestroy"
    )


def test_memory_is_cleared_by_the_next_job_when_the_agent_was_killed(
    cluster: Server, gpus: pathlib.Path
) -> None:
    run(cluster, "cut-off", "sleep 1000")
    jobs.wait_until(cluster.boto("sagemaker"), "cut-off", ("Training",))
    wait_for(lambda: len(marks(cluster)) == len(NUMBERS), "the marks of what is used")
    leave(gpus)
    (agent,) = cluster.agents()
    os.kill(agent, 9)
    jobs.wait_until(cluster.boto("sagemaker"), "cut-off")
    assert left(gpus) == list(NUMBERS) and len(marks(cluster)) == len(NUMBERS), (
        "no agent has seen the end of the job"
    )
    run(cluster, "next", "true")
    assert jobs.wait_until(cluster.boto("sagemaker"), "next")["TrainingJobStatus"] == "Completed"
    assert left(gpus) == [] and marks(cluster) == []


def doctor(server: Server) -> str:
    return subprocess.run(
        [trainyard_server.PROGRAM, "doctor", "--data", server.data], capture_output=True, text=True
    ).stdout


def test_gpus_that_cannot_be_cleared_are_not_allocated(cluster: Server, gpus: pathlib.Path) -> None:
    (gpus / "broken-61").touch()
    run(cluster, "breaks", "sleep 2")
    jobs.wait_until(cluster.boto("sagemaker"), "breaks", ("Training",))
    leave(gpus)
    assert (
        jobs.wait_until(cluster.boto("sagemaker"), "breaks")["TrainingJobStatus"] == "Completed"
    ), "its own work is done"
    assert left(gpus) == [61] and marks(cluster) == ["!dev!nvidia61"]
    assert any(
        "the memory of /dev/nvidia61 could not be cleared" in line
        for line in jobs.log_lines(cluster.boto("logs"), "breaks")
    )
    assert "/dev/nvidia61 is not given to jobs: its memory could not be cleared" in doctor(cluster)
    # Three GPUs are left: a job of one gets another GPU, and a job of four waits.
    names = [f"one-{number}" for number in range(3)]
    for name in names:
        cluster.boto("sagemaker").create_training_job(
            **jobs.request(name, "ls /dev; sleep 2", instance_type="ml.g4dn.xlarge")
        )
    run(cluster, "waits", "true")
    for name in names:
        assert jobs.wait_until(cluster.boto("sagemaker"), name)["TrainingJobStatus"] == "Completed"
        assert "nvidia61" not in jobs.log_lines(cluster.boto("logs"), name)
    assert (
        cluster.boto("sagemaker").describe_training_job(TrainingJobName="waits")[
            "TrainingJobStatus"
        ]
        == "InProgress"
    )
    # After the GPU was reset.
    (gpus / "broken-61").unlink()
    os.unlink(os.path.join(cluster.data, "gpus", "!dev!nvidia61"))
    assert jobs.wait_until(cluster.boto("sagemaker"), "waits")["TrainingJobStatus"] == "Completed"
    assert "not given to jobs" not in doctor(cluster)
