"""Uses each feature of the SageMaker Python SDK 2 that features.txt lists."""

import os
import sys
from typing import Any

import sagemaker
from sagemaker.analytics import TrainingJobAnalytics
from sagemaker.automl.automl import AutoML
from sagemaker.debugger import (
    CollectionConfig,
    DebuggerHookConfig,
    ProfilerConfig,
    ProfilerRule,
    Rule,
    TensorBoardOutputConfig,
    rule_configs,
)
from sagemaker.estimator import Estimator
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.inputs import FileSystemInput, ShuffleConfig, TrainingInput
from sagemaker.instance_group import InstanceGroup
from sagemaker.model import Model
from sagemaker.processing import Processor
from sagemaker.pytorch import PyTorch
from sagemaker.remote_function import remote
from sagemaker.s3 import S3Downloader, S3Uploader
from sagemaker.tensorflow import TensorFlow
from sagemaker.tuner import ContinuousParameter, HyperparameterTuner
from sagemaker.workflow.pipeline import Pipeline

from tests.journeys.sdk import common
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
from tests.journeys.sdk.not_offered_2 import session  # registers features, too

DIRECTORY = sys.argv[1]
SOURCE = os.path.join(DIRECTORY, "source_2")
os.makedirs(SOURCE)
with open(os.path.join(SOURCE, "train.py"), "w", encoding="utf-8") as file:
    file.write(
        "import json, os, sys\n"
        "names = 'SM_CURRENT_HOST SM_HOSTS RANK WORLD_SIZE OMPI_COMM_WORLD_RANK TF_CONFIG COLOUR'\n"
        "found = {name: os.environ.get(name) for name in names.split()}\n"
        "print('FOUND', json.dumps(found | {'arguments': sys.argv[1:]}), flush=True)\n"
        "open(os.environ['SM_MODEL_DIR'] + '/model', 'w').write('weights')\n"
    )


BUCKET = session().default_bucket()
DATA = common.upload_data(BUCKET)


def estimator(script: str = "true", **more: Any) -> Estimator:
    arguments: dict[str, Any] = {
        "image_uri": IMAGE,
        "role": ROLE,
        "instance_count": 1,
        "instance_type": "ml.m5.large",
        "base_job_name": base_name(),
        "sagemaker_session": session(),
        "container_entry_point": ["/bin/sh", "-c"],
        "container_arguments": [script],
        "max_run": 300,
    }
    return Estimator(**arguments | more)


def start(job: Any, inputs: Any = None, **more: Any) -> str:
    job.fit(inputs, wait=False, **more)
    return str(job.latest_training_job.name)


def run(script: str = "true", inputs: Any = None, **more: Any) -> list[str]:
    """Runs a job with `script`, which must complete; returns its log."""
    name = start(estimator(script, **more), inputs)
    finish(name)
    return log_lines(name)


def script_mode(kind: Any = Estimator, **more: Any) -> str:
    """Runs a job in script mode, which must complete; returns its name."""
    arguments: dict[str, Any] = {
        "entry_point": "train.py",
        "source_dir": SOURCE,
        "role": ROLE,
        "instance_count": 1,
        "instance_type": "ml.m5.large",
        "base_job_name": base_name(),
        "sagemaker_session": session(),
        "max_run": 300,
    }
    name = start(kind(**arguments | more))
    finish(name)
    return name


def ranks(name: str, variable: str) -> int:
    lines = [line for line in log_lines(name) if "FOUND" in line]
    assert all(f'"{variable}": null' not in line for line in lines), lines
    return len(lines)


# -- sessions, data and images


@feature("default bucket, execution role")
def _() -> None:
    assert sagemaker.get_execution_role(session()).endswith(":role/TrainyardOwner")
    assert session().default_bucket() == BUCKET
    client("s3").head_bucket(Bucket=BUCKET)


@feature("upload and download of data")
def _() -> None:
    uri = S3Uploader.upload_string_as_file_body(
        "text", f"s3://{BUCKET}/up/a.txt", sagemaker_session=session()
    )
    assert S3Downloader.read_file(uri, sagemaker_session=session()) == "text"
    assert len(S3Downloader.list(f"s3://{BUCKET}/data/", sagemaker_session=session())) == 4


@feature("framework images by name and version")
def _() -> None:
    uri = sagemaker.image_uris.retrieve(
        "pytorch", "us-east-1", version="2.0.0", py_version="py310", image_scope="training",
        instance_type="ml.m5.large",
    )  # fmt: skip
    name = start(estimator("echo in the image", image_uri=uri))
    assert finish(name)["AlgorithmSpecification"]["TrainingImage"] == uri
    assert "in the image" in log_lines(name)


@feature("roles of the account of AWS's examples")
def _() -> None:
    assert finish(start(estimator(role=ROLE)))["RoleArn"] == ROLE


# -- what runs


@feature("container entry point and arguments")
def _() -> None:
    assert "hello" in run("echo hello")


@feature("script mode: source directory, entry point, hyperparameters")
def _() -> None:
    name = script_mode(image_uri=IMAGE, hyperparameters={"epochs": 3, "name": "abc"})
    assert any('"--epochs", "3", "--name", "abc"' in line for line in log_lines(name))


@feature("environment variables")
def _() -> None:
    assert "green" in run("echo $COLOUR", environment={"COLOUR": "green"})


@feature("PyTorch")
def _() -> None:
    assert ranks(script_mode(PyTorch, framework_version="2.0.0", py_version="py310"), "SM_HOSTS")


@feature("PyTorch with torchrun on GPU types")
def _() -> None:
    name = script_mode(
        PyTorch, framework_version="2.0.0", py_version="py310", instance_count=2,
        instance_type="ml.g4dn.xlarge", distribution={"torch_distributed": {"enabled": True}},
    )  # fmt: skip
    assert ranks(name, "RANK") == 2


@feature("TensorFlow with parameter servers")
def _() -> None:
    name = script_mode(
        TensorFlow, framework_version="2.13", py_version="py310",
        distribution={"parameter_server": {"enabled": True}},
        instance_count=2,
    )  # fmt: skip
    assert ranks(name, "TF_CONFIG") == 2


@feature("MPI")
def _() -> None:
    name = script_mode(
        TensorFlow, framework_version="2.13", py_version="py310",
        distribution={"mpi": {"enabled": True, "processes_per_host": 2}},
    )  # fmt: skip
    assert ranks(name, "OMPI_COMM_WORLD_RANK") == 2


@feature("MPI on several hosts without ssh")
def _() -> None:
    name = script_mode(
        TensorFlow, framework_version="2.13", py_version="py310", instance_count=2,
        distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
    )  # fmt: skip
    assert ranks(name, "OMPI_COMM_WORLD_RANK") == 2


def power_in(image: str, **variables: str) -> int:
    """Calls a function that runs in a job, and returns its result."""

    @remote(
        image_uri=image, role=ROLE, instance_type="ml.m5.large", job_name_prefix="f",
        sagemaker_session=session(), environment_variables=variables,
    )  # fmt: skip
    def power(base: int, exponent: int) -> int:
        return int(base**exponent)

    return int(power(3, exponent=4))


@feature("functions with @remote")
def _() -> None:
    assert power_in(IMAGE_WITH_SDK) == 81


@feature("functions with @remote, with neither the SDK in the image nor a package index")
def _() -> Outcome:
    return failed(lambda: power_in(IMAGE, PIP_NO_INDEX="1"))


# -- data


@feature("S3 channels in File mode")
def _() -> None:
    assert "row 3" in run("cat /opt/ml/input/data/train/*", {"train": DATA})


@feature("sharded channels on several hosts")
def _() -> None:
    sharded = TrainingInput(DATA, distribution="ShardedByS3Key")
    lines = run("ls /opt/ml/input/data/train | wc -l", {"train": sharded}, instance_count=2)
    assert lines.count("2") == 2, lines


@feature("manifests")
def _() -> None:
    manifest = TrainingInput(f"s3://{BUCKET}/data.manifest", s3_data_type="ManifestFile")
    lines = run("cat /opt/ml/input/data/train/part-*", {"train": manifest})
    assert "row 2" in lines and "row 1" not in lines


@feature("Pipe mode, shuffled")
def _() -> None:
    piped = TrainingInput(DATA, input_mode="Pipe", shuffle_config=ShuffleConfig(1))
    lines = run("cat /opt/ml/input/data/train_0", {"train": piped})
    assert {"row 0", "row 1", "row 2", "row 3"} <= set(lines)


@feature("FastFile mode")
def _() -> None:
    fast = TrainingInput(DATA, input_mode="FastFile")
    assert "row 0" in run("cat /opt/ml/input/data/train/*", {"train": fast})


@feature("shared file systems as channels")
def _() -> None:
    lustre = FileSystemInput("fs-0123456789abcdef0", "FSxLustre", "/fsx/set", "ro")
    lines = run(
        "cat /opt/ml/input/data/train/file", {"train": lustre},
        subnets=["subnet-1"], security_group_ids=["sg-1"],
    )  # fmt: skip
    assert "shared" in lines


# -- results


@feature("models as archives")
def _() -> None:
    name = start(estimator("echo w > /opt/ml/model/w", output_path=f"s3://{BUCKET}/out"))
    uri = finish(name)["ModelArtifacts"]["S3ModelArtifacts"]
    assert common.model_files(uri) == {"w": "w\n"}


@feature("models as files")
def _() -> None:
    name = start(estimator("echo w > /opt/ml/model/w", disable_output_compression=True))
    uri = finish(name)["ModelArtifacts"]["S3ModelArtifacts"]
    assert S3Downloader.read_file(uri.rstrip("/") + "/w", sagemaker_session=session()) == "w\n"


@feature("checkpoints")
def _() -> None:
    place = f"s3://{BUCKET}/checkpoints"
    run("echo 7 > /opt/ml/checkpoints/epoch", checkpoint_s3_uri=place)
    assert "7" in run("cat /opt/ml/checkpoints/epoch", checkpoint_s3_uri=place)


@feature("TensorBoard output")
def _() -> None:
    job = estimator(
        "echo 7 > /opt/ml/output/tensorboard/events.out.tfevents.1",
        tensorboard_output_config=TensorBoardOutputConfig(s3_output_path=f"s3://{BUCKET}/board"),
        # latest_job_tensorboard_artifacts_path() answers only with one
        debugger_hook_config=DebuggerHookConfig(s3_output_path=f"s3://{BUCKET}/debug"),
    )
    finish(start(job))
    place = job.latest_job_tensorboard_artifacts_path() + "/events.out.tfevents.1"
    assert S3Downloader.read_file(place, sagemaker_session=session()) == "7\n"


@feature("metric definitions")
def _() -> None:
    definitions = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    name = start(estimator("echo loss=0.25", metric_definitions=definitions))
    finish(name)
    assert common.final_metric(name) == 0.25
    table = TrainingJobAnalytics(name, ["loss"], sagemaker_session=session()).dataframe()
    assert list(table["value"]) == [0.25]


@feature("tags")
def _() -> None:
    job = estimator(tags=[{"Key": "team", "Value": "vision"}])
    arn = finish(start(job))["TrainingJobArn"]
    assert session().list_tags(arn) == [{"Key": "team", "Value": "vision"}]


# -- the life of a job


@feature("waiting with logs")
def _() -> None:
    job = estimator("echo seen")
    shown = common.printed_by(lambda: job.fit(wait=True, logs="All"))
    assert "seen" in shown, shown
    assert finish(job.latest_training_job.name)


@feature("failures raise with the reason")
def _() -> None:
    try:
        estimator("echo out of ideas > /opt/ml/output/failure; exit 3").fit(logs=False)
    except UnexpectedStatusException as failure:
        assert "AlgorithmError: out of ideas" in str(failure), failure
        return
    raise AssertionError("it did not raise")


@feature("attaching to a job")
def _() -> None:
    name = start(estimator(hyperparameters={"epochs": 3}))
    finish(name)
    assert Estimator.attach(name, sagemaker_session=session()).hyperparameters()["epochs"] == "3"


@feature("stopping a job")
def _() -> None:
    job = estimator("trap 'exit 0' TERM; while true; do sleep 0.1; done")
    name = start(job)
    job.latest_training_job.stop()
    finish(name, "Stopped")


@feature("time limits")
def _() -> None:
    name = start(estimator("trap 'exit 0' TERM; while true; do sleep 0.1; done", max_run=1))
    assert finish(name, "Stopped")["SecondaryStatus"] == "MaxRuntimeExceeded"


@feature("managed spot")
def _() -> None:
    name = start(estimator(use_spot_instances=True, max_wait=300))
    common.check_spot(name)


@feature("retries")
def _() -> None:
    name = start(estimator(max_retry_attempts=2))
    assert finish(name)["RetryStrategy"] == {"MaximumRetryAttempts": 2}


@feature("warm pools")
def _() -> None:
    # No other job has this type: it could take the pool.
    job = estimator(keep_alive_period_in_seconds=600, instance_type="ml.m4.xlarge")
    name = start(job)
    finish(name)
    common.wait_for_pool(name, "Available")
    session().update_training_job(name, resource_config={"KeepAlivePeriodInSeconds": 0})
    common.wait_for_pool(name, "Terminated")


@feature("instance groups")
def _() -> None:
    groups = [InstanceGroup("a", "ml.m5.large", 1), InstanceGroup("b", "ml.c5.xlarge", 1)]
    job = estimator("echo ran", instance_groups=groups, instance_type=None, instance_count=None)
    name = start(job)
    finish(name)
    assert log_lines(name).count("ran") == 2


@feature("encryption between hosts")
def _() -> None:
    lines = run(common.SHOW_WIRES, instance_count=2, encrypt_inter_container_traffic=True)
    assert lines.count("encrypted") == 2, lines
    assert run(common.SHOW_WIRES, instance_count=2).count("plain") == 2


@feature("network isolation")
def _() -> None:
    assert "isolated" in run(common.SHOW_ISOLATION, enable_network_isolation=True)
    assert "connected" in run(common.SHOW_ISOLATION)


@feature("job queues of AWS Batch")
def _() -> None:
    from sagemaker.aws_batch.training_queue import TrainingQueue

    common.make_training_queue("f2")
    job = TrainingQueue("f2").submit(estimator(), inputs=None, job_name="f2", priority=1)
    assert job.wait(300)["status"] == "SUCCEEDED"


# -- settings without effect


@feature("subnets and security groups")
def _() -> Outcome:
    job = estimator(subnets=["subnet-1"], security_group_ids=["sg-1"])
    return notes(start(job), "VpcConfig")


@feature("debugger hooks")
def _() -> Outcome:
    hook = DebuggerHookConfig(
        s3_output_path=f"s3://{BUCKET}/d", collection_configs=[CollectionConfig("losses")]
    )
    return notes(start(estimator(debugger_hook_config=hook)), "DebugHookConfig")


@feature("profiler")
def _() -> Outcome:
    return notes(start(estimator(profiler_config=ProfilerConfig())), "ProfilerConfig")


@feature("profiler rules")
def _() -> Outcome:
    rules = [ProfilerRule.sagemaker(rule_configs.ProfilerReport())]
    return notes(start(estimator(rules=rules)), "ProfilerRuleConfigurations")


@feature("profiler turned off")
def _() -> None:
    lines = run("echo ran", disable_profiler=True)
    assert "ran" in lines
    assert not any("Profiler" in line for line in lines), lines


@feature("experiments of a job")
def _() -> Outcome:
    name = start(estimator(), experiment_config={"ExperimentName": "e", "TrialName": "t"})
    return notes(name, "ExperimentConfig")


@feature("infrastructure checks")
def _() -> Outcome:
    return notes(start(estimator(enable_infra_check=True)), "InfraCheckConfig.EnableInfraCheck")


@feature("private registries of a VPC")
def _() -> Outcome:
    job = estimator(
        training_repository_access_mode="Vpc",
        subnets=["subnet-1"],
        security_group_ids=["sg-1"],
    )
    return notes(start(job), "AlgorithmSpecification.TrainingImageConfig", "VpcConfig")


# -- what is rejected


@feature("instance types that do not exist")
def _() -> Outcome:
    return refused(lambda: start(estimator(instance_type="ml.m5.larg")))


@feature("KMS keys of outputs")
def _() -> Outcome:
    return refused(lambda: start(estimator(output_kms_key="alias/mine")))


@feature("KMS keys of sources")
def _() -> Outcome:
    return refused(lambda: script_mode(image_uri=IMAGE, output_kms_key="alias/mine"))


@feature("KMS keys of volumes")
def _() -> Outcome:
    return refused(lambda: start(estimator(volume_kms_key="alias/mine")))


@feature("debugger rules")
def _() -> Outcome:
    rules = [Rule.sagemaker(rule_configs.loss_not_decreasing())]
    return refused(lambda: start(estimator(rules=rules)))


@feature("remote debugging")
def _() -> Outcome:
    return refused(lambda: start(estimator(enable_remote_debug=True)))


@feature("session tag chaining")
def _() -> Outcome:
    return refused(lambda: start(estimator(enable_session_tag_chaining=True)))


@feature("training plans")
def _() -> Outcome:
    plan = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/p"
    return refused(lambda: start(estimator(training_plan=plan)))


@feature("hyperparameter tuning")
def _() -> Outcome:
    tuner = HyperparameterTuner(
        estimator(),
        "loss",
        {"rate": ContinuousParameter(0, 1)},
        [{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
    )
    return refused(lambda: tuner.fit(wait=False))


@feature("processing jobs")
def _() -> Outcome:
    processor = Processor(ROLE, IMAGE, 1, "ml.m5.large", sagemaker_session=session())
    return refused(lambda: processor.run(wait=False, logs=False))


@feature("models and endpoints")
def _() -> Outcome:
    model = Model(IMAGE, f"s3://{BUCKET}/m.tar.gz", ROLE, sagemaker_session=session())
    return refused(lambda: model.deploy(1, "ml.m5.large", wait=False))


@feature("batch transform")
def _() -> Outcome:
    job = estimator()
    finish(start(job))
    return refused(lambda: job.transformer(1, "ml.m5.large"))


@feature("pipelines")
def _() -> Outcome:
    pipeline = Pipeline("p", steps=[], sagemaker_session=session())
    return refused(lambda: pipeline.create(ROLE))


@feature("AutoML")
def _() -> Outcome:
    auto = AutoML(ROLE, "target", sagemaker_session=session())
    return refused(lambda: auto.fit(DATA, wait=False, logs=False))


common.main()
