"""Tests that the status names a job that neither prints nor uses CPU."""

from collections.abc import Callable

from tests import jobs, trainyard_server
from tests.trainyard_server import Server


def test_the_status_of_a_hanging_job_says_so(start: Callable[..., Server]) -> None:
    server = start("[jobs]\nstalled_after_seconds = 2\nstop_grace_seconds = 1\n")
    server.boto("s3").create_bucket(Bucket="yard")
    sagemaker = server.boto("sagemaker")
    sagemaker.create_training_job(**jobs.request("hangs", "echo working; sleep 1000"))

    def status() -> str:
        return (
            sagemaker.describe_training_job(TrainingJobName="hangs")
            .get("SecondaryStatusTransitions", [{}])[-1]
            .get("StatusMessage", "")
        )

    trainyard_server.wait_for(
        lambda: "algo-1 seems to hang: no output and no CPU use for 2 seconds" in status(),
        "the status to name the hang",
    )
    assert any(
        "this host seems to hang" in line for line in jobs.log_lines(server.boto("logs"), "hangs")
    )
    sagemaker.stop_training_job(TrainingJobName="hangs")
    assert jobs.wait_until(sagemaker, "hangs")["TrainingJobStatus"] == "Stopped"
