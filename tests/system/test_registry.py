"""Tests images from a registry (Debian's docker-registry): they are fetched once, by content, and
only changed layers are transferred."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import jobs, oci, trainyard_server
from tests.trainyard_server import Server

NOISE = os.urandom(3 << 20)  # not compressible, so that the layer has a visible size
TRAIN = b"""#!/bin/sh
echo trained by $(hostname) at $(pwd): $(cat /opt/version) $(ls /opt | tr '\\n' ' ')
echo tmp $(stat -c %a /tmp) file $(stat -c %a /opt/kept)
echo weights > /opt/ml/model/weights
"""
LOWEST = oci.base() + [
    oci.file("opt/removed", b"x"),
    oci.file("opt/kept", b"x", 0o640),
    oci.directory("opt/emptied"),
    oci.file("opt/emptied/old", b"x"),
    oci.link("bin/tr", "busybox"),
    oci.file("opt/noise", NOISE),
]
# A whiteout, an opaque directory, a directory in place of a file,
# and a file below a directory that the layer does not name.
MIDDLE = [
    oci.file("opt/.wh.removed"),
    oci.directory("opt/emptied"),
    oci.file("opt/emptied/.wh..wh..opq"),
    oci.file("opt/emptied/new", b"x"),
    oci.file("tmp/seed", b"x"),
    oci.file("bin/train", TRAIN, 0o755),
]


def highest(version: str) -> list[oci.Member]:
    return [oci.file("opt/version", version.encode())]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> oci.Layout:
    return oci.Layout(tmp_path_factory.mktemp("oci") / "layout")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[oci.Registry]:
    one = oci.Registry(tmp_path_factory.mktemp("registry"))
    yield one
    one.stop()


@pytest.fixture(scope="module")
def cluster(start: Callable[..., Server]) -> Server:
    server = start()
    server.boto("s3").create_bucket(Bucket="yard")
    return server


def run(server: Server, name: str, image: str, hosts: int = 1, **algorithm: Any) -> dict[str, Any]:
    request = jobs.request(name, hosts=hosts, image=image)
    request["AlgorithmSpecification"] = {
        "TrainingImage": image,
        "TrainingInputMode": "File",
    } | algorithm
    server.boto("sagemaker").create_training_job(**request)
    return jobs.wait_until(server.boto("sagemaker"), name)


def unpacked(server: Server) -> list[str]:
    directory = os.path.join(server.data, "images")
    return sorted(
        name for name in os.listdir(directory) if re.fullmatch("sha256-[0-9a-f]{64}", name)
    )


def test_a_name_with_a_tag(cluster: Server, registry: oci.Registry, layout: oci.Layout) -> None:
    """`train` is found on the image's PATH, and the layers are merged with their whiteouts."""
    layout.image("v1", [LOWEST, MIDDLE, highest("one")])
    image = registry.push(layout, "v1", "team/train")
    done = run(cluster, "tagged", image, hosts=2)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    output = jobs.log_lines(cluster.boto("logs"), "tagged")
    for host in (1, 2):
        assert (
            f"trained by algo-{host} at /: one emptied kept ml noise trainyard version ".strip()
            in output
        ), output
    assert output.count("tmp 1777 file 640") == 2, output
    downloading = next(
        one for one in done["SecondaryStatusTransitions"] if one["Status"] == "Downloading"
    )
    assert re.search(
        r"(Downloading|Unpacking) the training image: \d+ of \d+ MiB|Waiting for another host",
        downloading["StatusMessage"],
    ), downloading
    assert len(registry.given("team/train")) == len(set(registry.given("team/train"))), (
        "two hosts, and everything moved once"
    )


def test_only_changed_layers_are_transferred(
    cluster: Server, registry: oci.Registry, layout: oci.Layout
) -> None:
    layout.image("v2", [LOWEST, MIDDLE, highest("two")])
    image = registry.push(layout, "v2", "team/train")
    before = len(registry.given("team/train"))
    done = run(cluster, "changed", "docker://" + image)
    assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
    assert any(": two " in line for line in jobs.log_lines(cluster.boto("logs"), "changed"))
    moved = registry.given("team/train")[before:]
    assert len(moved) == 2, "one layer and the config"
    roots = [
        os.path.join(cluster.data, "images", name, "root", "opt", "noise")
        for name in unpacked(cluster)
    ]
    assert len(roots) == 2 and os.path.samefile(*roots), "what is equal lies on the disk once"


def test_entrypoints_and_arguments(
    cluster: Server, registry: oci.Registry, layout: oci.Layout
) -> None:
    """ENTRYPOINT gets `train`; the request's entrypoint replaces it; CMD is never used."""
    layout.image(
        "entry",
        [LOWEST, MIDDLE],
        {"Entrypoint": ["/bin/echo", "entry"], "Cmd": ["never"], "WorkingDir": "/opt"},
    )
    image = registry.push(layout, "entry", "team/entry")
    cases: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("plain", {}, "entry train"),
        ("arguments", {"ContainerArguments": ["a", "b"]}, "entry a b"),
        ("replaced", {"ContainerEntrypoint": ["pwd"]}, "/opt"),
    )
    for name, algorithm, words in cases:
        done = run(cluster, f"entry-{name}", image, **algorithm)
        assert done["TrainingJobStatus"] == "Completed", done.get("FailureReason")
        assert jobs.log_lines(cluster.boto("logs"), f"entry-{name}") == [words]


def test_an_image_can_be_named_by_its_digest(
    cluster: Server, registry: oci.Registry, layout: oci.Layout
) -> None:
    digest = layout.image("pinned", [LOWEST, MIDDLE, highest("pinned")])
    image = registry.push(layout, "pinned", "team/pinned").rsplit(":", 1)[0]
    assert run(cluster, "pinned", f"{image}:ignored@{digest}")["TrainingJobStatus"] == "Completed"
    assert "sha256-" + digest.removeprefix("sha256:") in unpacked(cluster)
    done = run(cluster, "pinned-wrong", f"{image}@sha256:{'0' * 64}")
    assert (
        done["TrainingJobStatus"] == "Failed"
        and done["FailureReason"].startswith("ClientError:")
        and "0" * 64 in done["FailureReason"]
    ), done["FailureReason"]


def test_a_pulled_image_needs_no_registry(
    cluster: Server, registry: oci.Registry, layout: oci.Layout
) -> None:
    layout.image("pulled", [LOWEST, MIDDLE, highest("pulled")])
    image = registry.push(layout, "pulled", "team/pulled")
    notice = "trainyard: `trainyard warm` is deprecated: use `trainyard pull`\n"
    for command, stderr in (("pull", ""), ("warm", notice)):
        done = subprocess.run(
            [trainyard_server.PROGRAM, command, image, "--data", cluster.data],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0 and f"{image} is ready: sha256:" in done.stdout, done.stderr
        assert done.stderr == stderr
    registry.stop()
    try:
        assert run(cluster, "pulled", image)["TrainingJobStatus"] == "Completed"
        cold = run(cluster, "cold", image.replace("pulled", "never"))
        assert (
            cold["TrainingJobStatus"] == "Failed"
            and "cannot be reached from this machine" in cold["FailureReason"]
        ), cold["FailureReason"]
    finally:
        registry.start()


def test_a_missing_image_is_the_users_fault(cluster: Server, registry: oci.Registry) -> None:
    done = run(cluster, "missing", f"{registry.host}/team/nothing:v1")
    assert (
        done["TrainingJobStatus"] == "Failed"
        and done["FailureReason"].startswith("ClientError:")
        and "team/nothing" in done["FailureReason"]
    ), done["FailureReason"]


def test_unused_images_are_removed(
    start: Callable[..., Server], registry: oci.Registry, layout: oci.Layout
) -> None:
    server = start("[jobs]\nimages_gib_max = 0\nstop_grace_seconds = 1\n")
    server.boto("s3").create_bucket(Bucket="yard")
    layout.image("old", [LOWEST, MIDDLE, highest("old")])
    image = registry.push(layout, "old", "team/old")
    sagemaker = server.boto("sagemaker")
    request = jobs.request("user", image=image)
    request["AlgorithmSpecification"] |= {
        "ContainerArguments": ["while [ ! -e /opt/ml/model/end ]; do sleep 0.1; done"]
    }
    sagemaker.create_training_job(**request)
    jobs.wait_until(sagemaker, "user", ("Training",))
    server.stop()
    server.start()  # a start removes unused images
    assert len(unpacked(server)) == 1, "a job uses it"
    sagemaker = server.boto("sagemaker")
    sagemaker.stop_training_job(TrainingJobName="user")
    jobs.wait_until(sagemaker, "user")
    trainyard_server.wait_for(lambda: not server.agents(), "the agent to leave")
    server.stop()
    server.start()
    kept = [
        os.path.join(server.data, "images", *where) for where in (("layers",), ("blobs", "sha256"))
    ]
    trainyard_server.wait_for(
        lambda: not unpacked(server) and not any(os.listdir(directory) for directory in kept),
        "the image and its layers to go",
    )
