"""Measures the time until an image that is not cached is ready."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time

from bench import progress
from bench.podman import (
    podman,
    podman_environment,
)
from bench.rows import BIN, ROOT, Row, row
from tests import oci

# Size of the image. A framework image with CUDA has 12288,
# and needs a disk of 45 GB and ten minutes.
COLD_IMAGE_MIB = int(os.environ.get("TRAINYARD_BENCH_IMAGE_MIB", "1024"))
COLD_IMAGE_LAYERS = 40
COLD_ROUNDS = 3


def layer_of(number: int | str, mebibytes: int) -> list[oci.Member]:
    """Returns files of many sizes, which compress to about half, like programs and libraries."""
    values = random.Random(number)
    members, left = [oci.directory(f"layer{number}")], mebibytes << 20
    while left > 0:
        size = min(left, values.choice((4 << 10, 32 << 10, 256 << 10, 2 << 20)))
        half = size // 2
        members.append(
            oci.file(
                f"layer{number}/{len(members)}",
                values.randbytes(half) + b"the same again " * (half // 15 + 1),
            )
        )
        left -= size
    return members


def image() -> list[Row]:
    """Measures pulling and unpacking an uncached image with many layers from a registry on this
    machine, next to `podman pull`."""
    directory = tempfile.mkdtemp(prefix="trainyard-bench-", dir=os.path.join(ROOT, "build"))
    registry = None
    try:
        layout = oci.Layout(os.path.join(directory, "layout"))
        layout.image(
            "cold",
            (
                layer_of(number, COLD_IMAGE_MIB // COLD_IMAGE_LAYERS)
                for number in range(COLD_IMAGE_LAYERS)
            ),
        )
        os.mkdir(os.path.join(directory, "registry"))
        registry = oci.Registry(os.path.join(directory, "registry"))
        name = registry.push(layout, "cold", "bench/cold")
        environment = podman_environment(directory)
        ours, peers = [], []
        for _ in progress.rounds(range(COLD_ROUNDS)):
            data, store = os.path.join(directory, "data"), os.path.join(directory, "store")
            state = tempfile.mkdtemp(prefix="pod-")  # podman accepts only a short name
            began = time.monotonic()
            subprocess.run(
                [os.path.join(BIN, "trainyard"), "pull", name, "--data", data],
                check=True,
                capture_output=True,
            )
            ours.append(time.monotonic() - began)
            began = time.monotonic()
            podman(
                environment,
                "--root",
                store,
                "--runroot",
                state,
                "pull",
                "-q",
                "--tls-verify=false",
                name,
            )
            peers.append(time.monotonic() - began)
            for old in (data, store, state):
                subprocess.run(["umount", "-q", os.path.join(old, "overlay")], check=False)
                shutil.rmtree(old)
    finally:
        if registry:
            registry.stop()
        shutil.rmtree(directory)
    return [
        row(
            "image",
            f"cold image of {COLD_IMAGE_MIB} MiB in {COLD_IMAGE_LAYERS} layers, registry on this"
            " machine",
            "s",
            ours,
            peers,
            "podman pull",
            "no slower",
            lambda ours, peer: ours <= peer,
        )
    ]
