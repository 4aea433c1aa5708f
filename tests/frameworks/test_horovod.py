"""Tests unmodified scripts for Horovod with TensorFlow and Keras on two hosts, with Trainyard's
package in the image."""

import pytest

from tests import scripts
from tests.frameworks import images
from tests.trainyard_server import Server


@pytest.mark.parametrize("program", ["train.py", "train_tape.py"])
def test_an_unmodified_horovod_script_runs_on_two_hosts(cluster: Server, program: str) -> None:
    files, expected = scripts.example("08_tensorflow")
    _, lines = scripts.run(
        cluster,
        program.partition(".")[0].replace("_", "-"),
        program,
        files,
        hosts=2,
        image=images.TENSORFLOW,
        instance_type="ml.m5.large",
        seconds_max=images.SECONDS_MAX,
        hyperparameters={
            "sagemaker_mpi_enabled": True,
            "sagemaker_mpi_num_of_processes_per_host": 2,
        },
    )
    scripts.check_example(lines, expected)
