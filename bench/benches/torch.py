"""Measures the backend of torch.distributed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile

from bench import progress
from bench.rows import ROOT, Row, row

TORCH_ROUNDS = 7


def torch_loop(what: str, ranks: int, backend: str) -> float:
    """Returns the measurement of rank 0, in microseconds."""
    with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as folder:
        processes = []
        for rank in range(ranks):
            environment = dict(
                os.environ,
                RANK=str(rank),
                WORLD_SIZE=str(ranks),
                BACKEND=backend,
                MEET_AT="file://" + os.path.join(folder, "store"),
                OMP_NUM_THREADS="1",
                OPENBLAS_NUM_THREADS="1",
                GLOO_SOCKET_IFNAME="lo",
            )
            processes.append(
                subprocess.Popen(
                    [
                        os.path.join(ROOT, "build", "torch", "bin", "python"),
                        os.path.join(ROOT, "bench", "programs", "torch_loops.py"),
                        what,
                    ],
                    env=environment,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        try:
            output = [process.communicate(timeout=120)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        assert all(process.returncode == 0 for process in processes), (what, backend)
        return float(json.loads(output[0].strip().splitlines()[-1])["microseconds"])


def torch() -> list[Row]:
    """Measures torch.distributed over our backend next to its own gloo: an allreduce, and a step of
    DDP, on two ranks of this machine."""
    subprocess.run([os.path.join(ROOT, "tests", "torch", "prepare")], check=True)
    names = [
        ("all_reduce", "trainyard"),
        ("all_reduce", "gloo"),
        ("step", "trainyard"),
        ("step", "gloo"),
        ("step", "nothing"),
        ("alone", "none"),
    ]
    took: dict[tuple[str, str], list[float]] = {name: [] for name in names}
    for _ in progress.rounds(range(TORCH_ROUNDS)):
        for what, backend in names:
            took[what, backend].append(torch_loop(what, 1 if what == "alone" else 2, backend))

    def milliseconds(what: str, backend: str) -> list[float]:
        return [each / 1e3 for each in took[what, backend]]

    step = milliseconds("step", "trainyard")
    return [
        row(
            "torch",
            "2 ranks, all_reduce of 1 KiB",
            "us",
            took["all_reduce", "trainyard"],
            took["all_reduce", "gloo"],
            "gloo",
            "ratio <= 0.05",
            lambda a, b: a <= 0.05 * b,
        ),
        row(
            "torch",
            "2 ranks, DDP step, MLP of 5.8 M",
            "ms",
            step,
            milliseconds("step", "nothing"),
            "a backend that does nothing",
            "ratio <= 1.11",
            lambda a, b: b >= 0.9 * a,
        ),
        row(
            "torch",
            "2 ranks, DDP step, MLP of 5.8 M",
            "ms",
            step,
            milliseconds("alone", "none"),
            "one rank alone (weak scaling)",
            "ratio <= 1.43",
            lambda a, b: b >= 0.7 * a,
        ),
        row(
            "torch",
            "2 ranks, DDP step, MLP of 5.8 M",
            "ms",
            step,
            milliseconds("step", "gloo"),
            "gloo",
            "shown",
            lambda a, b: True,
        ),
    ]
