"""Scripts for Horovod under TensorFlow and Keras on two hosts, as they are;
our package is in the image."""

import pytest

from tests import scripts
from tests.frameworks import images
from tests.trainyard_server import Server


@pytest.mark.parametrize("program", ["train.py", "train_tape.py"])
def test_a_script_for_horovod_on_two_hosts_as_it_is(cluster: Server, program: str) -> None:
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
