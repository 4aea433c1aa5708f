"""Tests Hugging Face's Trainer with torch_distributed on two hosts: after an interruption, the
result equals that of an uninterrupted job."""

import io
import os
import tarfile
from collections.abc import Iterable
from typing import Any

from tests import jobs, scripts
from tests.frameworks import images
from tests.trainyard_server import Server, wait_for

STEPS = 60


def start(cluster: Server, name: str, **hyperparameters: Any) -> None:
    with open(
        os.path.join(os.path.dirname(__file__), "hugging_face_trainer.py"), encoding="utf-8"
    ) as file:
        files = {"train.py": file.read()}
    cluster.boto("sagemaker").create_training_job(
        **scripts.request(
            cluster,
            name,
            "train.py",
            files,
            hosts=2,
            image=images.HUGGING_FACE,
            instance_type="ml.m5.large",
            hyperparameters={
                "sagemaker_torch_distributed_enabled": True,
                "sagemaker_instance_type": "ml.m5.large",
                "max-steps": STEPS,
            }
            | hyperparameters,
            CheckpointConfig={"S3Uri": f"s3://yard/checkpoints/{name}"},
            EnableManagedSpotTraining=True,
            StoppingCondition={"MaxRuntimeInSeconds": 1800, "MaxWaitTimeInSeconds": 3600},
        )
    )


def finish(cluster: Server, name: str) -> tuple[dict[str, Any], list[str]]:
    done = jobs.wait_until(cluster.boto("sagemaker"), name, seconds_max=images.SECONDS_MAX)
    lines = jobs.log_lines(cluster.boto("logs"), name)
    assert done["TrainingJobStatus"] == "Completed", f"{done.get('FailureReason')}\n" + "\n".join(
        lines[-40:]
    )
    return done, lines


def ends(lines: Iterable[str]) -> set[str]:
    return {line.split("weights ")[1] for line in lines if " ends at step " in line}


def keys(cluster: Server, prefix: str) -> set[str]:
    return {
        one["Key"]
        for one in cluster.boto("s3")
        .list_objects_v2(Bucket="yard", Prefix=prefix)
        .get("Contents", [])
    }


def test_a_trainer_continues_from_its_checkpoint(cluster: Server) -> None:
    start(cluster, "undisturbed")
    _, lines = finish(cluster, "undisturbed")
    assert {f"rank {rank} of 2 begins at step 0" for rank in (0, 1)} <= set(lines), lines
    weights = ends(lines)
    assert len(weights) == 1, "both ranks have the same weights"

    start(cluster, "taken-away", **{"step-seconds": 0.2})
    wait_for(
        lambda: (
            "checkpoints/taken-away/checkpoint-20/trainer_state.json"
            in keys(cluster, "checkpoints/taken-away/")
        ),
        "a checkpoint",
        images.SECONDS_MAX,
    )
    cluster.boto("trainyard").interrupt_training_job(
        TrainingJobName="taken-away", HostName="algo-2", NoticeInSeconds=10
    )
    done, lines = finish(cluster, "taken-away")
    assert "Interrupted" in [one["Status"] for one in done["SecondaryStatusTransitions"]]
    begun = {line for line in lines if " begins at step " in line}
    assert {f"rank {rank} of 2 begins at step 0" for rank in (0, 1)} < begun, begun
    resumed = {int(line.rsplit(" ", 1)[1]) for line in begun} - {0}
    assert len(resumed) == 1 and min(resumed) >= 20 and min(resumed) % 10 == 0, (
        "both continued from the same checkpoint"
    )
    assert ends(lines) == weights, "exactly the weights of the uninterrupted run"
    model = tarfile.open(
        fileobj=io.BytesIO(
            cluster.boto("s3")
            .get_object(Bucket="yard", Key="models/taken-away/output/model.tar.gz")["Body"]
            .read()
        )
    )
    assert {"config.json", "model.safetensors"} <= {
        name.removeprefix("./") for name in model.getnames()
    }
    assert done["BillableTimeInSeconds"] <= done["TrainingTimeInSeconds"]
