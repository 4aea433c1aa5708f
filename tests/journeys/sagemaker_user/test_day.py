"""Tests a day of a SageMaker user, who has scripts for AWS and has never used this server.

The tests are in order: each is an hour of the day, and later ones use the results of earlier
ones."""

from collections.abc import Callable

import pytest

from tests.journeys.sagemaker_user.person import Person
from tests.trainyard_server import Server

pytestmark = pytest.mark.in_order
TRAIN = """
    import argparse, glob, json, os
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    epochs = parser.parse_args().epochs
    rows = []
    for path in glob.glob(os.environ["SM_CHANNEL_TRAIN"] + "/*.csv"):
        rows += open(path).readlines()
    for epoch in range(epochs):
        print(f"epoch={epoch + 1} loss={1 / (epoch + 1):.2f} rows={len(rows)}", flush=True)
    if epochs > 100:
        raise ValueError("epochs must be at most 100")
    with open(os.environ["SM_MODEL_DIR"] + "/model.json", "w") as file:
        json.dump({"epochs": epochs}, file)
"""


@pytest.fixture(scope="module")
def ana(start: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> Person:
    server = start("[jobs]\nstop_grace_seconds = 3\n\n[prices]\nlist = true\n")
    person = Person(server, tmp_path_factory.mktemp("ana"))
    person.write_file("src/train.py", TRAIN)
    person.write_file("data/a.csv", "1\n2\n")
    person.write_file("data/b.csv", "3\n")
    return person


def test_at_nine_her_script_for_aws_runs_unchanged(ana: Person) -> None:
    """The role's ARN is from AWS's documentation, and the framework's image is AWS's."""
    printed = ana.run_python(
        2,
        """
        import sagemaker
        from sagemaker.pytorch import PyTorch
        session = sagemaker.Session()
        data = session.upload_data("data", key_prefix="rows")
        job = PyTorch(
            entry_point="train.py", source_dir="src", framework_version="2.0.0", py_version="py310",
            role="arn:aws:iam::123456789012:role/trainer",
            instance_type="ml.m5.large", instance_count=1, hyperparameters={"epochs": 3},
            output_path="s3://" + session.default_bucket(),
            metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
            tags=[{"Key": "project", "Value": "rows"}],
        )
        job.fit({"train": data}, job_name="rows-1")
        print("MODEL", job.model_data)
        """,
    )
    assert "epoch=3 loss=0.33 rows=3" in printed
    assert "/rows-1/output/model.tar.gz" in printed
    shown = ana.run_shell(
        "aws s3 cp $(aws sagemaker describe-training-job --training-job-name rows-1"
        " --query ModelArtifacts.S3ModelArtifacts --output text) - | tar -xzO"
    )
    assert shown == '{"epochs": 3}'


def test_at_ten_the_newer_sdk_does_the_same(ana: Person) -> None:
    printed = ana.run_python(
        3,
        """
        import logging
        logging.basicConfig(level=logging.INFO)  # the SDK's way of showing logs
        from sagemaker.train import ModelTrainer
        from sagemaker.train.configs import Compute, InputData, SourceCode
        trainer = ModelTrainer(
            training_image="trainyard/host", role="arn:aws:iam::123456789012:role/trainer",
            source_code=SourceCode(source_dir="src", entry_script="train.py"),
            compute=Compute(instance_type="ml.m5.large", instance_count=1),
            hyperparameters={"epochs": 2}, base_job_name="newer",
        )
        trainer.train(input_data_config=[InputData(channel_name="train", data_source="data")])
        print("ENDED", trainer._latest_training_job.training_job_status)
        """,
    )
    assert "epoch=2 loss=0.50 rows=3" in printed and "ENDED Completed" in printed


def test_at_eleven_she_looks_at_her_jobs(ana: Person) -> None:
    assert "rows-1" in ana.run_shell("trainyard jobs")
    page = ana.run_shell("trainyard describe rows-1")
    assert "project=rows" in page and "epochs=3" in page and "loss" in page
    # The SDK turns the profiler on by itself, so the page says that nothing is profiled here.
    assert "ProfilerConfig has no effect here" in page
    assert "rows" in ana.run_shell("trainyard cost --by tag:project")


def test_at_noon_a_bug_is_reported_with_its_exception(ana: Person) -> None:
    printed = ana.run_python(
        2,
        """
        import sagemaker
        from sagemaker.pytorch import PyTorch
        data = "s3://" + sagemaker.Session().default_bucket() + "/rows"
        PyTorch(
            entry_point="train.py", source_dir="src", framework_version="2.0.0", py_version="py310",
            role="arn:aws:iam::123456789012:role/trainer",
            instance_type="ml.m5.large", instance_count=1, hyperparameters={"epochs": 101},
        ).fit({"train": data}, job_name="bug")
        """,
        code=1,
    )
    assert "UnexpectedStatusException" in printed
    assert "ValueError: epochs must be at most 100" in printed


def test_in_the_afternoon_she_mistypes(ana: Person) -> None:
    """Each error says what to write instead."""
    printed = ana.run_python(
        2,
        """
        import botocore.exceptions
        from sagemaker.estimator import Estimator
        from sagemaker.processing import Processor
        ROLE = "arn:aws:iam::123456789012:role/trainer"
        def attempt(call):
            try:
                call()
            except botocore.exceptions.ClientError as refusal:
                print("REFUSED", refusal.response["Error"]["Message"])
        def estimator(**more):
            return Estimator("trainyard/host", ROLE, 1, **{"instance_type": "ml.m5.large"} | more)
        attempt(lambda: estimator(instance_type="ml.m5.larg").fit())
        attempt(lambda: estimator(output_kms_key="alias/mine").fit())
        attempt(lambda: Processor(ROLE, "trainyard/host", 1, "ml.m5.large").run())
        """,
    )
    refusals = [line for line in printed.splitlines() if line.startswith("REFUSED")]
    assert len(refusals) == 3, printed
    assert refusals[0].endswith("Did you mean ml.m5.large?") and len(refusals[0]) < 400
    assert "leave out output_kms_key" in refusals[1]
    assert (
        refusals[2] == "REFUSED CreateProcessingJob is not offered by this version;"
        " see docs/compatibility.md"
    )


def test_an_invalid_job_file_uploads_nothing(ana: Person) -> None:
    ana.write_file(
        "job.toml",
        """
        name = "from-a-file"
        image = "trainyard/host"
        instance_type = "ml.m5.larg"
        output = "s3://in-vain/models"
        code = {directory = "./src", entry = "train.py"}
        """,
    )
    assert "did you mean ml.m5.large?" in ana.run_shell("trainyard submit job.toml", code=1)
    assert "in-vain" not in ana.run_shell("aws s3 ls")


def test_in_the_evening_a_job_is_left_to_run_and_stopped(ana: Person) -> None:
    ana.write_file(
        "night.toml",
        """
        name = "over-night"
        image = "trainyard/host"
        command = "echo begun; sleep 600 & wait"
        output = "s3://models"
        """,
    )
    assert "over-night" in ana.run_shell("trainyard submit night.toml")
    ana.run_shell("aws sagemaker stop-training-job --training-job-name over-night")
    assert "over-night Stopped" in ana.run_shell("trainyard logs -f over-night", code=4)
