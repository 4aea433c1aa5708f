"""Tests where the agent writes when names of stored objects, directories of pipes, or the files of
stopped jobs are hostile. The table of attacks on files that it reads is tests/hostile/files.py,
which test_hostile.py runs."""

import pathlib

import pytest

from tests import jobs
from tests.hostile import files
from tests.trainyard_server import Server, wait_for


@pytest.fixture(scope="module")
def cluster(server: Server) -> Server:
    server.boto("s3").create_bucket(Bucket="yard")
    return server


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return files.make_hidden(tmp_path_factory.mktemp("machine"))


BEFORE = {
    "up": "../../secret",
    "up-below": "d/../../../secret",
    "absolute": "/secret",
    "dot": "./secret",
    "empty": "a//b",
    "directory": "secret/",
}


@pytest.mark.parametrize("name", BEFORE)
def test_names_of_stored_objects_lead_nowhere(
    cluster: Server, machine: pathlib.Path, name: str
) -> None:
    """Another program chose the names of the objects that are brought into /opt/ml before the
    process."""
    name, key = f"before-{name}", BEFORE[name]
    cluster.boto("s3").put_object(Bucket="yard", Key=f"ckpt/{name}/{key}", Body=b"overwritten")
    sagemaker = cluster.boto("sagemaker")
    sagemaker.create_training_job(
        **jobs.request(
            name, "find /opt/ml/checkpoints", CheckpointConfig={"S3Uri": f"s3://yard/ckpt/{name}"}
        )
    )
    done = jobs.wait_until(sagemaker, name)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert (machine / "secret").read_text() == files.SECRET


def test_a_replaced_pipe_directory_is_not_written_to(
    cluster: Server, machine: pathlib.Path
) -> None:
    """Only Pipe channels are written while the job runs, and it may replace their directory by
    links."""
    cluster.boto("s3").put_object(Bucket="yard", Key="pipe/a", Body=b"overwritten")
    request = jobs.request(
        "piped",
        f"cd /opt/ml/input; cat data/train_0; mv data moved; ln -s {machine} data; cat"
        " moved/train_1; until [ -p moved/train_2 ]; do sleep 0.05; done; rm moved/train_2; ln -s"
        f" {machine}/secret moved/train_2; sleep 30",
        channels={"train": ("s3://yard/pipe/", "FullyReplicated")},
        AlgorithmSpecification={"TrainingInputMode": "Pipe"},
    )
    sagemaker = cluster.boto("sagemaker")
    sagemaker.create_training_job(**request)
    done = jobs.wait_until(sagemaker, "piped")
    assert (
        done["TrainingJobStatus"] == "Failed" and "leads through a link" in done["FailureReason"]
    ), done
    assert "overwrittenoverwritten" in "".join(jobs.log_lines(cluster.boto("logs"), "piped"))
    files.expect_nothing_of_the_machine(cluster, machine, "piped")


def test_a_stopped_job_ends_although_its_files_are_links(
    cluster: Server, machine: pathlib.Path
) -> None:
    sagemaker = cluster.boto("sagemaker")
    sagemaker.create_training_job(
        **jobs.request(
            "stopped",
            f"rmdir /opt/ml/model /opt/ml/output/data; ln -s {machine} /opt/ml/model; ln -s"
            f" {machine} /opt/ml/output/data; echo ready; trap 'exit 0' TERM; while :; do sleep"
            " 0.05; done",
        )
    )
    wait_for(lambda: "ready" in jobs.log_lines(cluster.boto("logs"), "stopped"), "the job to run")
    sagemaker.stop_training_job(TrainingJobName="stopped")
    assert jobs.wait_until(sagemaker, "stopped")["TrainingJobStatus"] == "Stopped"
    files.expect_nothing_of_the_machine(cluster, machine, "stopped")
