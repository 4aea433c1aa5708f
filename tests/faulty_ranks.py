"""Runs jobs whose ranks reduce gradients continuously. One rank gets a fault: it sleeps, stops, or
computes or loads more slowly than the others."""

from __future__ import annotations

import pathlib

from tests import scripts
from tests.trainyard_server import ROOT, Server

LIBRARY = pathlib.Path(ROOT, "build", "release", "lib", "libtrainyard_collectives.so.1")
SDK = pathlib.Path(ROOT, "sdk", "python", "trainyard")
BEGINS = "the fault begins at "  # and the time, in a line of the log

PROGRAM = """
import argparse, ctypes, os, signal, time
import _declarations as capi
import loading

parser = argparse.ArgumentParser()
parser.add_argument("--fault", required=True)
parser.add_argument("--rank", type=int, required=True)
parser.add_argument("--step", type=int, required=True)
parser.add_argument("--values", type=int, required=True)
given = parser.parse_known_args()[0]
library = ctypes.CDLL(os.path.abspath("libtrainyard_collectives.so.1"))
capi.declare(library)
message = ctypes.create_string_buffer(capi.TRAINYARD_ERROR_BYTES)
join = capi.Join(size=ctypes.sizeof(capi.Join), rank=-1, ranks=0, join_deadline_ms=60000,
                 silence_max_ms=600000, deterministic=1, from_launcher=1)
group = ctypes.c_void_p()
assert library.trainyard_group_join(ctypes.byref(join), ctypes.byref(group), message) == 0, (
    message.value)
values = (ctypes.c_float * given.values)()
call = capi.Call(ctypes.sizeof(capi.Call), capi.TRAINYARD_ALLREDUCE, capi.TRAINYARD_F32,
                 ctypes.addressof(values), ctypes.addressof(values), given.values, given.values,
                 capi.TRAINYARD_SUM, 0.0, 0, None, None, b"gradients")
has_begun = False

def batches():
    for step in range(1000000):
        time.sleep(0.2 if has_begun and given.fault == "load" else 0)
        yield step

for step in loading.timed(batches()):
    time.sleep(0.2 if has_begun and given.fault == "slow" else 0.05)
    if step == given.step and int(os.environ["RANK"]) == given.rank:
        has_begun = True
        print(f"the fault begins at {time.time()}", flush=True)
        if given.fault == "sleep":
            time.sleep(10000)
        if given.fault == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
    assert library.trainyard_group_run(group, ctypes.byref(call), message) == 0, message.value
"""


def start_job(
    server: Server,
    name: str,
    fault: str,
    hosts: int = 2,
    rank: int = 1,
    step: int = 100,
    values: int = 4,
) -> None:
    """Starts a job with one rank on each host. `fault`: "sleep", "stop", "slow", "load", or another
    word for a job without a fault. The fault begins at a step, which a line of the log reports."""
    files: dict[str, str | bytes] = {
        "train.py": PROGRAM,
        "_declarations.py": (SDK / "_declarations.py").read_text(),
        "loading.py": (SDK / "loading.py").read_text(),
        LIBRARY.name: LIBRARY.read_bytes(),
    }
    server.boto("sagemaker").create_training_job(
        **scripts.request(
            server,
            name,
            "train.py",
            files,
            hosts=hosts,
            hyperparameters={
                "fault": fault,
                "rank": rank,
                "step": step,
                "values": values,
                "sagemaker_torch_distributed_enabled": True,
                "sagemaker_instance_type": "ml.t3.medium",
                "sagemaker_mpi_num_of_processes_per_host": 1,
            },
        )
    )
