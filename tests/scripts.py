"""Has helpers for jobs in script mode, as the SDK sends them: sources in an archive, everything
else in hyperparameters."""

import glob
import io
import json
import os
import pathlib
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

from tests import jobs, trainyard_server

Files = Mapping[str, str | bytes]  # path -> content


def archive(files: Files) -> bytes:
    """Returns a sourcedir.tar.gz of name -> text (or bytes)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755 if name.endswith(".sh") else 0o644
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def request(
    server: trainyard_server.Server,
    name: str,
    program: str,
    files: Files,
    hosts: int = 1,
    hyperparameters: Mapping[str, Any] | None = None,
    image: str = "trainyard/host",
    **more: Any,
) -> dict[str, Any]:
    """Returns a CreateTrainingJob request; each hyperparameter is encoded as JSON, as the SDK
    does."""
    key = f"{name}/source/sourcedir.tar.gz"
    server.boto("s3").put_object(Bucket="yard", Key=key, Body=archive(files))
    values = {
        "sagemaker_program": program,
        "sagemaker_submit_directory": f"s3://yard/{key}",
        "sagemaker_container_log_level": 20,
        "sagemaker_job_name": name,
        "sagemaker_region": server.env["AWS_DEFAULT_REGION"],
    } | dict(hyperparameters or {})
    body = jobs.request(
        name,
        hosts=hosts,
        image=image,
        HyperParameters={key: json.dumps(value) for key, value in values.items()},
        **more,
    )
    body["AlgorithmSpecification"] = {"TrainingImage": image, "TrainingInputMode": "File"}
    return body


def run(
    server: trainyard_server.Server,
    name: str,
    program: str,
    files: Files,
    status: str = "Completed",
    seconds_max: float = trainyard_server.WAIT_SECONDS_MAX,
    **more: Any,
) -> tuple[dict[str, Any], list[str]]:
    """Runs a job to its end; returns Describe's response and all lines of its log."""
    server.boto("sagemaker").create_training_job(**request(server, name, program, files, **more))
    done = jobs.wait_until(server.boto("sagemaker"), name, seconds_max=seconds_max)
    lines = jobs.log_lines(server.boto("logs"), name)
    assert done["TrainingJobStatus"] == status, f"{done.get('FailureReason')}\n" + "\n".join(
        lines[-40:]
    )
    return done, lines


def example(name: str) -> tuple[dict[str, str], list[str]]:
    """Returns (files of the example's scripts, lines that its log must have)."""
    folder = pathlib.Path(trainyard_server.ROOT, "examples", name)
    return {path.name: path.read_text() for path in folder.glob("*.py")}, (
        folder / "expected_output.txt"
    ).read_text().splitlines()


def wheels(environment: str, distribution: str) -> dict[str, str | bytes]:
    """Returns the files with which a script installs one of Trainyard's distributions: the wheels
    that were built in build/`environment`."""
    paths = glob.glob(os.path.join(trainyard_server.ROOT, "build", environment, "wheels", "*.whl"))
    return {"requirements.txt": f"--no-index\n--find-links wheels\n{distribution}\n"} | {
        f"wheels/{os.path.basename(path)}": pathlib.Path(path).read_bytes() for path in paths
    }


def check_example(lines: Sequence[str], expected: Sequence[str]) -> None:
    """Checks that four ranks print the same weights, and that the log has lines with the expected
    beginnings."""
    output = sorted(line.split("weights ")[1] for line in lines if "weights" in line)
    assert len(output) == 4 and len(set(output)) == 1, lines[-20:]
    for line in expected:
        assert any(line in one for one in lines), f"not said: {line}"
