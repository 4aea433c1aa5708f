"""Tests jobs from OCI images, and an external object store in place of the embedded one."""

import io
import os
import pathlib
import subprocess
import tarfile
from collections.abc import Callable

import botocore.exceptions
import pytest

from tests import jobs
from tests.oci import umoci
from tests.trainyard_server import Server

TRAIN = (
    "#!/bin/sh\necho trained by $(hostname) in $FLAVOUR at $(pwd); echo weights >"
    " /opt/ml/model/weights\n"
)


def make_layout(directory: str | os.PathLike[str]) -> str:
    """Makes an OCI layout with busybox and a `train` on PATH, only with umoci."""
    layout, bundle = os.path.join(directory, "layout"), os.path.join(directory, "bundle")

    umoci("init", "--layout", layout)
    umoci("new", "--image", f"{layout}:v1")
    umoci("unpack", "--image", f"{layout}:v1", bundle)
    programs = os.path.join(bundle, "rootfs", "bin")
    os.makedirs(programs)
    subprocess.run(["cp", "/bin/busybox", programs], check=True)
    for applet in ("sh", "hostname", "echo", "cat", "pwd"):
        os.symlink("busybox", os.path.join(programs, applet))
    with open(os.path.join(programs, "train"), "w", encoding="utf-8") as file:
        file.write(TRAIN)
    os.chmod(os.path.join(programs, "train"), 0o755)
    umoci("repack", "--image", f"{layout}:v1", bundle)
    umoci(
        "config",
        "--image",
        f"{layout}:v1",
        "--config.env",
        "PATH=/bin",
        "--config.env",
        "FLAVOUR=vanilla",
        "--config.workingdir",
        "/bin",
    )
    return f"oci:{layout}:v1"


def run_train(server: Server, name: str, image: str) -> list[str]:
    """Runs the image's own `train` on two hosts, as SageMaker does:
    no entrypoint in the request."""
    request = jobs.request(name, hosts=2, image=image)
    request["AlgorithmSpecification"] = {"TrainingImage": image, "TrainingInputMode": "File"}
    server.boto("sagemaker").create_training_job(**request)
    done = jobs.wait_until(server.boto("sagemaker"), name)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    return sorted(jobs.log_lines(server.boto("logs"), name))


def test_an_oci_layout(start: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    server = start()
    server.boto("s3").create_bucket(Bucket="yard")
    printed = run_train(server, "layout", make_layout(str(tmp_path)))
    assert [line for line in printed if line.startswith("trained")] == [
        f"trained by algo-{host} in vanilla at /bin" for host in (1, 2)
    ], printed


def test_containers_storage(start: Callable[..., Server], tmp_path: pathlib.Path) -> None:
    layout = make_layout(str(tmp_path))
    name = f"localhost/trainyard-test-{os.getpid()}:v1"
    subprocess.run(
        ["skopeo", "--insecure-policy", "copy", layout, f"containers-storage:{name}"],
        check=True,
        capture_output=True,
    )
    try:
        server = start()
        server.boto("s3").create_bucket(Bucket="yard")
        printed = run_train(server, "storage", f"containers-storage:{name}")
        assert len([line for line in printed if "in vanilla at /bin" in line]) == 2, printed
    finally:
        subprocess.run(
            ["skopeo", "delete", f"containers-storage:{name}"], check=True, capture_output=True
        )


def test_names_of_aws_stand_for_what_the_config_says(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    """The most specific key is used: an image, or a runtime with a Python environment. Without a
    key this machine is used, which the log says."""
    venv, layout = os.path.join(tmp_path, "venv"), make_layout(str(tmp_path))
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
    server = start(f"""
[images."pytorch-training"]
image = "{layout}"
[images."pytorch-training:2.*"]
runtime = "machine"
python = "{venv}"
""")
    server.boto("s3").create_bucket(Bucket="yard")
    registry = "763104351884.dkr.ecr.eu-central-1.amazonaws.com"
    printed = run_train(server, "layout", f"{registry}/pytorch-training:1.13.1-cpu-py39")
    assert len([line for line in printed if "in vanilla at /bin" in line]) == 2, printed
    for name, image, words in (
        ("venv", "pytorch-training:2.0.0-cpu-py310", [venv]),
        ("machine", "huggingface-pytorch-training:2.0.0-cpu-py310", ["/usr"]),
    ):
        server.boto("sagemaker").create_training_job(
            **jobs.request(
                name, "python3 -c 'import sys; print(sys.prefix)'", image=f"{registry}/{image}"
            )
        )
        done = jobs.wait_until(server.boto("sagemaker"), name)
        assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
        assert jobs.log_lines(server.boto("logs"), name) == words
        last = done["SecondaryStatusTransitions"][-1]["StatusMessage"]
        assert ("this machine's own system" in last) == (name == "machine"), last


def test_an_external_object_store(start: Callable[..., Server]) -> None:
    """A second server acts as the external S3: clients and jobs of the first find everything there,
    through the first server, each with its own keys."""
    store = start("[[access_key]]\nid = 'AKIASTORE'\nsecret = 'the-secret-of-the-store'\n")
    cluster = start(
        f"[objects]\nendpoint = 'http://{store.listen}'\naccess_key_id ="
        " 'AKIASTORE'\nsecret_access_key = 'the-secret-of-the-store'\n"
    )
    assert (
        "AWS_ENDPOINT_URL_S3" not in cluster.env and cluster.env["AWS_ACCESS_KEY_ID"] != "AKIASTORE"
    )
    # this server rejects the store's key
    with pytest.raises(botocore.exceptions.ClientError, match="InvalidClientTokenId"):
        store.boto("sts", endpoint_url=cluster.env["AWS_ENDPOINT_URL"]).get_caller_identity()
    cluster.aws("s3", "mb", "s3://yard")
    store.boto("s3").put_object(Bucket="yard", Key="data/part-0", Body=b"from the store\n")
    cluster.boto("sagemaker").create_training_job(
        **jobs.request(
            "outside",
            "cat /opt/ml/input/data/train/part-0; cp /opt/ml/input/data/train/part-0"
            " /opt/ml/model/copy; curl -s"
            " http://169.254.170.2$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI | grep -c AKIASTORE ||"
            " true",
            channels={"train": ("s3://yard/data/", "FullyReplicated")},
        )
    )
    done = jobs.wait_until(cluster.boto("sagemaker"), "outside")
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert jobs.log_lines(cluster.boto("logs"), "outside") == ["from the store", "0"]
    body = (
        store.boto("s3")
        .get_object(Bucket="yard", Key="models/outside/output/model.tar.gz")["Body"]
        .read()
    )
    assert tarfile.open(fileobj=io.BytesIO(body)).extractfile("copy").read() == b"from the store\n"


AWS = "811284229777.dkr.ecr.us-east-1.amazonaws.com/linear-learner:1"
FRAMEWORK = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1.0-cpu-py310"


def fail_train(server: Server, name: str, image: str) -> tuple[str, list[str]]:
    """Returns the FailureReason and the log of a job that runs the image's own `train`."""
    request = jobs.request(name, image=image)
    request["AlgorithmSpecification"] = {"TrainingImage": image, "TrainingInputMode": "File"}
    server.boto("sagemaker").create_training_job(**request)
    done = jobs.wait_until(server.boto("sagemaker"), name)
    assert done["TrainingJobStatus"] == "Failed"
    return done["FailureReason"], jobs.log_lines(server.boto("logs"), name)


def test_an_unavailable_image_of_aws_fails_the_job(start: Callable[..., Server]) -> None:
    server = start()
    server.boto("s3").create_bucket(Bucket="yard")
    reason, printed = fail_train(server, "built-in", AWS)
    registry = AWS.split("/")[0]
    # Without the internet the registry is unreachable; with it, AWS requires a login.
    assert reason.startswith(
        f"ClientError: The image {AWS} cannot be used: the registry {registry}"
    )
    assert '[images."linear-learner"] in the server\'s configuration replaces it' in reason
    assert f"`trainyard pull {AWS}`" in reason and "skopeo: exit code" not in reason
    assert any(line.startswith(f"trainyard: pulling {AWS}: ") for line in printed), printed
    assert "skopeo" in " ".join(printed), "all that the tool said is in the log"


def test_an_image_missing_in_its_layout_fails_the_job(
    start: Callable[..., Server], tmp_path: pathlib.Path
) -> None:
    server = start()
    server.boto("s3").create_bucket(Bucket="yard")
    missing = f"oci:{tmp_path}/layout:v2"
    assert fail_train(server, "missing", missing)[0] == (
        f"ClientError: The image {missing} cannot be used: the OCI layout does not have it; `skopeo"
        f" copy docker://HOST/NAME:TAG {missing}` puts it there"
    )


def test_a_framework_image_without_a_script(start: Callable[..., Server]) -> None:
    server = start()
    server.boto("s3").create_bucket(Bucket="yard")
    reason, _ = fail_train(server, "framework", FRAMEWORK)
    assert reason.startswith("ClientError: The container cannot be started: executable file")
    assert f"{FRAMEWORK} is an image of AWS's, and this machine's own system was used" in reason
    assert '[images."pytorch-training"]' in reason
