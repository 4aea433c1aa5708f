"""Uses each feature of the SageMaker Python SDK 3 that features.txt lists."""

import os
import re
import sys
from typing import Any

from sagemaker.core import image_uris
from sagemaker.core.helper.session_helper import Session, get_execution_role
from sagemaker.core.remote_function import remote
from sagemaker.core.resources import TrainingJob
from sagemaker.core.shapes import (
    FileSystemDataSource,
    MetricDefinition,
    RemoteDebugConfig,
    ResourceConfigForUpdate,
    RetryStrategy,
    S3DataSource,
    TrainingImageConfig,
)
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import (
    Channel,
    CheckpointConfig,
    Compute,
    DataSource,
    InputData,
    InstanceGroup,
    Networking,
    OutputDataConfig,
    ShuffleConfig,
    SourceCode,
    StoppingCondition,
    Tag,
)
from sagemaker.train.distributed import MPI, Torchrun

from tests.journeys.sdk import common, not_offered_3
from tests.journeys.sdk.common import (
    IMAGE,
    IMAGE_WITH_SDK,
    ROLE,
    Outcome,
    base_name,
    client,
    failed,
    feature,
    finish,
    log_lines,
    notes,
    refused,
)

DIRECTORY = sys.argv[1]
SOURCE = os.path.join(DIRECTORY, "source_3")
os.makedirs(SOURCE)
with open(os.path.join(SOURCE, "train.py"), "w", encoding="utf-8") as file:
    file.write("import os, sys\nprint('FOUND', os.environ['SM_HPS'], sys.argv[1:], flush=True)\n")


with open(os.path.join(SOURCE, "rank.py"), "w", encoding="utf-8") as file:
    file.write(
        "import os\n"
        "for rank, world in (('RANK', 'WORLD_SIZE'),\n"
        "                    ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE')):\n"
        "    if rank in os.environ:\n"
        "        line = ' '.join(('FOUND', rank, os.environ[rank], os.environ[world]))\n"
        "        os.write(1, line.encode() + b'\\n')  # whole, also next to other ranks\n"
    )


def session() -> Session:
    return common.of_thread("session", lambda: Session(common.boto_session()))


BUCKET = session().default_bucket()
DATA = common.upload_data(BUCKET)


def trainer(command: str = "true", hosts: int = 1, **more: Any) -> ModelTrainer:
    compute: dict[str, Any] = {"instance_type": "ml.m5.large", "instance_count": hosts}
    compute |= more.pop("compute", {})
    arguments: dict[str, Any] = {
        "training_image": IMAGE,
        "role": ROLE,
        "base_job_name": base_name(),
        "source_code": SourceCode(command=command),
        "compute": Compute(**compute),
        "stopping_condition": StoppingCondition(max_runtime_in_seconds=300),
        "sagemaker_session": session(),
    }
    return ModelTrainer(**arguments | more)


def start(job: ModelTrainer, inputs: Any = None) -> str:
    job.train(input_data_config=inputs, wait=False, logs=False)
    return str(job._latest_training_job.training_job_name)


def run(command: str = "true", inputs: Any = None, **more: Any) -> list[str]:
    """Runs a job with `command`, which must complete; returns its log."""
    name = start(trainer(command, **more), inputs)
    finish(name)
    return log_lines(name)


def ranks(name: str) -> list[tuple[str, ...]]:
    """Returns (variable, rank, number of ranks) of each process of rank.py."""
    found = (re.search(r"FOUND (\w+) (\d+) (\d+)", line) for line in log_lines(name))
    return sorted(one.groups() for one in found if one)


def channel(uri: str = DATA, **more: Any) -> list[Channel]:
    source = {"s3_data_type": "S3Prefix", "s3_uri": uri} | more.pop("source", {})
    return [
        Channel(
            channel_name="train",
            data_source=DataSource(s3_data_source=S3DataSource(**source)),
            **more,
        )
    ]


# -- sessions, data and images


@feature("default bucket, execution role")
def _() -> None:
    assert get_execution_role(session()).endswith(":role/TrainyardOwner")
    assert session().default_bucket() == BUCKET
    client("s3").head_bucket(Bucket=BUCKET)


@feature("upload and download of data")
def _() -> None:
    path = os.path.join(DIRECTORY, "up.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("text")
    uri = session().upload_data(path, key_prefix="up")
    assert session().read_s3_file(BUCKET, uri.removeprefix(f"s3://{BUCKET}/")) == "text"


@feature("framework images by name and version")
def _() -> None:
    uri = image_uris.retrieve(
        "pytorch", "us-east-1", version="2.0.0", py_version="py310", image_scope="training",
        instance_type="ml.m5.large",
    )  # fmt: skip
    name = start(trainer("echo in the image", training_image=uri))
    assert finish(name)["AlgorithmSpecification"]["TrainingImage"] == uri
    assert "in the image" in log_lines(name)


@feature("roles of the account of AWS's examples")
def _() -> None:
    assert finish(start(trainer(role=ROLE)))["RoleArn"] == ROLE


# -- what runs


@feature("container entry point and arguments")
def _() -> None:
    assert "hello" in run("echo hello")


@feature("script mode: source directory, entry point, hyperparameters")
def _() -> None:
    code = SourceCode(source_dir=SOURCE, entry_script="train.py")
    lines = run(source_code=code, hyperparameters={"epochs": 3})
    assert any("FOUND" in line and "epochs" in line for line in lines), lines


@feature("environment variables")
def _() -> None:
    assert "green" in run("echo $COLOUR", environment={"COLOUR": "green"})


@feature("torchrun")
def _() -> None:
    name = start(
        trainer(
            hosts=2,
            source_code=SourceCode(source_dir=SOURCE, entry_script="rank.py"),
            distributed=Torchrun(process_count_per_node=2),
            hyperparameters={"epochs": 3},
        )
    )
    finish(name)
    assert ranks(name) == [("RANK", str(rank), "4") for rank in range(4)], log_lines(name)


@feature("MPI")
def _() -> None:
    name = start(
        trainer(
            training_image=IMAGE_WITH_SDK,
            source_code=SourceCode(source_dir=SOURCE, entry_script="rank.py"),
            distributed=MPI(process_count_per_node=2),
        )
    )
    finish(name)
    assert ranks(name) == [("OMPI_COMM_WORLD_RANK", str(rank), "2") for rank in range(2)]


@feature("MPI on several hosts without ssh")
def _() -> Outcome:
    job = trainer(
        hosts=2,
        source_code=SourceCode(source_dir=SOURCE, entry_script="rank.py"),
        distributed=MPI(process_count_per_node=1),
    )
    return failed(lambda: job.train(wait=True, logs=False))


def power_in(image: str, prefix: str = "f") -> int:
    """Calls a function that runs in a job, and returns its result."""

    @remote(
        image_uri=image, role=ROLE, instance_type="ml.m5.large", job_name_prefix=prefix,
        sagemaker_session=session(),
    )  # fmt: skip
    def power(base: int, exponent: int) -> int:
        return int(base**exponent)

    return power(3, exponent=4)


@feature("functions with @remote")
def _() -> None:
    assert power_in(IMAGE_WITH_SDK) == 81


@feature("functions with @remote, with neither the SDK in the image nor a package index")
def _() -> Outcome:
    kind, printed = failed(lambda: power_in(IMAGE, "without-sdk"))
    assert "Check corresponding job for details" in printed, printed
    (job,) = TrainingJob.get_all(name_contains="without-sdk")
    return kind, finish(job.training_job_name, "Failed")["FailureReason"]


# -- data


@feature("S3 channels in File mode")
def _() -> None:
    data = [InputData(channel_name="train", data_source=DATA)]
    assert "row 3" in run("cat /opt/ml/input/data/train/*", data)


@feature("sharded channels on several hosts")
def _() -> None:
    sharded = channel(source={"s3_data_distribution_type": "ShardedByS3Key"})
    lines = run("ls /opt/ml/input/data/train | wc -l", sharded, hosts=2)
    assert lines.count("2") == 2, lines


@feature("manifests")
def _() -> None:
    manifest = channel(f"s3://{BUCKET}/data.manifest", source={"s3_data_type": "ManifestFile"})
    lines = run("cat /opt/ml/input/data/train/part-*", manifest)
    assert "row 2" in lines and "row 1" not in lines


@feature("Pipe mode, shuffled")
def _() -> None:
    piped = channel(input_mode="Pipe", shuffle_config=ShuffleConfig(seed=1))
    lines = run("cat /opt/ml/input/data/train_0", piped)
    assert {"row 0", "row 1", "row 2", "row 3"} <= set(lines)


@feature("FastFile mode")
def _() -> None:
    assert "row 0" in run("cat /opt/ml/input/data/train/*", channel(input_mode="FastFile"))


@feature("shared file systems as channels")
def _() -> None:
    lustre = FileSystemDataSource(
        file_system_id="fs-0123456789abcdef0",
        file_system_type="FSxLustre",
        directory_path="/fsx/set",
        file_system_access_mode="ro",
    )
    data = [InputData(channel_name="train", data_source=lustre)]
    assert "shared" in run("cat /opt/ml/input/data/train/file", data)


# -- results


@feature("models as archives")
def _() -> None:
    output = OutputDataConfig(s3_output_path=f"s3://{BUCKET}/out")
    name = start(trainer("echo w > /opt/ml/model/w", output_data_config=output))
    uri = finish(name)["ModelArtifacts"]["S3ModelArtifacts"]
    assert common.model_files(uri) == {"w": "w\n"}


@feature("models as files")
def _() -> None:
    output = OutputDataConfig(s3_output_path=f"s3://{BUCKET}/out", compression_type="NONE")
    name = start(trainer("echo w > /opt/ml/model/w", output_data_config=output))
    uri = finish(name)["ModelArtifacts"]["S3ModelArtifacts"].removeprefix(f"s3://{BUCKET}/")
    body = client("s3").get_object(Bucket=BUCKET, Key=uri.rstrip("/") + "/w")["Body"]
    assert body.read() == b"w\n"


@feature("checkpoints")
def _() -> None:
    place = CheckpointConfig(s3_uri=f"s3://{BUCKET}/checkpoints-3")
    run("echo 7 > /opt/ml/checkpoints/epoch", checkpoint_config=place)
    assert "7" in run("cat /opt/ml/checkpoints/epoch", checkpoint_config=place)


@feature("TensorBoard output")
def _() -> None:
    job = trainer("echo 7 > /opt/ml/output/tensorboard/events.out.tfevents.1")
    described = finish(start(job.with_tensorboard_output_config()))
    place = described["TensorBoardOutputConfig"]["S3OutputPath"].removeprefix(f"s3://{BUCKET}/")
    key = f"{place}/{described['TrainingJobName']}/tensorboard-output/events.out.tfevents.1"
    assert client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"7\n"


@feature("metric definitions")
def _() -> None:
    job = trainer("echo loss=0.25").with_metric_definitions(
        [MetricDefinition(name="loss", regex="loss=([0-9.]+)")]
    )
    name = start(job)
    finish(name)
    assert common.final_metric(name) == 0.25


@feature("tags")
def _() -> None:
    arn = finish(start(trainer(tags=[Tag(key="team", value="vision")])))["TrainingJobArn"]
    found = client("sagemaker").list_tags(ResourceArn=arn)["Tags"]
    assert {"Key": "team", "Value": "vision"} in found


# -- the life of a job


@feature("waiting with logs")
def _() -> None:
    job = trainer("echo seen")
    shown = common.printed_by(lambda: job.train(wait=True, logs=True))
    assert "seen" in shown, shown
    assert finish(job._latest_training_job.training_job_name)


@feature("failures raise with the reason")
def _() -> None:
    try:
        trainer("exit 3").train(wait=True, logs=False)
    except Exception as failure:
        assert "AlgorithmError" in str(failure), failure
        return
    raise AssertionError("it did not raise")


@feature("attaching to a job")
def _() -> None:
    name = start(trainer(hyperparameters={"epochs": 3}))
    finish(name)
    assert TrainingJob.get(name).hyper_parameters["epochs"] == "3"


@feature("listing jobs")
def _() -> None:
    name = start(trainer())
    finish(name)
    assert name in {job.training_job_name for job in TrainingJob.get_all(name_contains=name)}


@feature("stopping a job")
def _() -> None:
    name = start(trainer("sleep 300"))
    TrainingJob.get(name).stop()
    finish(name, "Stopped")


@feature("time limits")
def _() -> None:
    limit = StoppingCondition(max_runtime_in_seconds=1)
    name = start(trainer("sleep 300", stopping_condition=limit))
    assert finish(name, "Stopped")["SecondaryStatus"] == "MaxRuntimeExceeded"


@feature("managed spot")
def _() -> None:
    limits = StoppingCondition(max_runtime_in_seconds=300, max_wait_time_in_seconds=300)
    spot = {"enable_managed_spot_training": True}
    name = start(trainer(compute=spot, stopping_condition=limits))
    common.check_spot(name)


@feature("retries")
def _() -> None:
    job = trainer().with_retry_strategy(RetryStrategy(maximum_retry_attempts=2))
    assert finish(start(job))["RetryStrategy"] == {"MaximumRetryAttempts": 2}


@feature("warm pools")
def _() -> None:
    # No other job has this type: it could take the pool.
    pool = {"keep_alive_period_in_seconds": 600, "instance_type": "ml.m4.xlarge"}
    name = start(trainer(compute=pool))
    finish(name)
    common.wait_for_pool(name, "Available")
    TrainingJob.get(name).update(
        resource_config=ResourceConfigForUpdate(keep_alive_period_in_seconds=1)
    )
    common.wait_for_pool(name, "Terminated")


@feature("instance groups")
def _() -> None:
    groups = [
        InstanceGroup(instance_group_name="a", instance_type="ml.m5.large", instance_count=1),
        InstanceGroup(instance_group_name="b", instance_type="ml.c5.xlarge", instance_count=1),
    ]
    lines = run(
        "echo ran",
        compute={"instance_type": None, "instance_count": None, "instance_groups": groups},
    )
    assert lines.count("ran") == 2


@feature("encryption between hosts")
def _() -> None:
    network = Networking(enable_inter_container_traffic_encryption=True)
    lines = run(common.SHOW_WIRES, hosts=2, networking=network)
    assert lines.count("encrypted") == 2, lines
    assert run(common.SHOW_WIRES, hosts=2).count("plain") == 2


@feature("network isolation")
def _() -> None:
    network = Networking(enable_network_isolation=True)
    assert "isolated" in run(common.SHOW_ISOLATION, networking=network)
    assert "connected" in run(common.SHOW_ISOLATION)


@feature("job queues of AWS Batch")
def _() -> None:
    from sagemaker.train.aws_batch.training_queue import TrainingQueue

    common.make_training_queue("f3")
    job = TrainingQueue("f3").submit(trainer(), inputs=None, job_name="f3", priority=1)
    assert job.wait(300)["status"] == "SUCCEEDED"


# -- settings without effect


@feature("subnets and security groups")
def _() -> Outcome:
    network = Networking(subnets=["subnet-1"], security_group_ids=["sg-1"])
    return notes(start(trainer(networking=network)), "VpcConfig")


@feature("infrastructure checks")
def _() -> Outcome:
    return notes(start(trainer().with_infra_check_config()), "InfraCheckConfig.EnableInfraCheck")


@feature("private registries of a VPC")
def _() -> Outcome:
    job = trainer(
        training_image_config=TrainingImageConfig(training_repository_access_mode="Vpc"),
        networking=Networking(subnets=["subnet-1"], security_group_ids=["sg-1"]),
    )
    return notes(start(job), "AlgorithmSpecification.TrainingImageConfig", "VpcConfig")


# -- what is rejected


@feature("instance types that do not exist")
def _() -> Outcome:
    return refused(lambda: start(trainer(compute={"instance_type": "ml.m5.larg"})))


@feature("KMS keys of outputs")
def _() -> Outcome:
    output = OutputDataConfig(s3_output_path=f"s3://{BUCKET}/out", kms_key_id="alias/mine")
    # Without sources, nothing is uploaded with the key before the job is created.
    job = trainer(output_data_config=output, source_code=None)
    return refused(lambda: start(job))


@feature("KMS keys of sources")
def _() -> Outcome:
    output = OutputDataConfig(s3_output_path=f"s3://{BUCKET}/out", kms_key_id="alias/mine")
    return refused(lambda: start(trainer(output_data_config=output)))


@feature("KMS keys of volumes")
def _() -> Outcome:
    return refused(lambda: start(trainer(compute={"volume_kms_key_id": "alias/mine"})))


@feature("remote debugging")
def _() -> Outcome:
    return refused(
        lambda: start(
            trainer().with_remote_debug_config(RemoteDebugConfig(enable_remote_debug=True))
        )
    )


@feature("session tag chaining")
def _() -> Outcome:
    return refused(lambda: start(trainer().with_session_chaining_config()))


@feature("training plans")
def _() -> Outcome:
    plan = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/p"
    return refused(lambda: start(trainer(compute={"training_plan_arn": plan})))


assert not_offered_3, "it registers features, too"
common.main()
