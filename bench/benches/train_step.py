"""Measures a training step of the built-in image classification, next to PyTorch."""

from __future__ import annotations

import json
import os
import subprocess

from bench import progress
from bench.rows import BIN, ROOT, Row, row

ROUNDS = int(os.environ.get("TRAINYARD_BENCH_TRAIN_STEP_ROUNDS", "5"))
IMAGES = int(os.environ.get("TRAINYARD_BENCH_TRAIN_STEP_IMAGES", "8"))
STEPS = 5  # steps of one process, whose median counts
PEER = os.path.join(ROOT, "bench", "programs", "torch_train_step.py")
# Debian's PyTorch has the same version as its libtorch, against which our trainer is built.
PYTHON = "/usr/bin/python3"
FORMATS = ("contiguous", "channels_last")


def milliseconds(command: list[str], threads: int) -> float:
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout.strip().splitlines()[-1])["microseconds"]) / 1e3


def train_step() -> list[Row]:
    """Measures a step of ResNet-18 by our trainer, next to PyTorch's own modules and optimizer,
    with the same number of threads."""
    subprocess.run([os.path.join(ROOT, "yard"), "packages", "algorithms"], check=True)
    subprocess.run(
        ["ninja", "-C", os.path.join(ROOT, "build", "release"), "train_step"], check=True
    )
    counts = sorted({1, len(os.sched_getaffinity(0))})
    took: dict[tuple[str, int], list[float]] = {}
    for _ in progress.rounds(range(ROUNDS)):
        for threads in counts:
            arguments = [str(IMAGES), str(STEPS), str(threads)]
            sides = {"ours": [os.path.join(BIN, "train_step"), *arguments]}
            for memory_format in FORMATS:
                sides[memory_format] = [PYTHON, PEER, *arguments, memory_format]
            for side, command in sides.items():
                took.setdefault((side, threads), []).append(milliseconds(command, threads))
    return [
        row(
            "train_step",
            f"ResNet-18, {IMAGES} images of 224 x 224, {threads} thread{'s'[: threads - 1]}",
            "ms",
            took["ours", threads],
            took[memory_format, threads],
            f"PyTorch, {memory_format}",
            "ratio <= 1.0",
            lambda ours, peer: ours <= peer,
        )
        for threads in counts
        for memory_format in FORMATS
    ]
