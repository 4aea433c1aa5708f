"""Runs one rank of the torch bench: torch_loops.py all_reduce | step | alone.
Prints microseconds, as the other programs do.

BACKEND: trainyard, gloo, or nothing: a backend whose operations complete at once and move no data.
It shows the cost of DDP without communication.
"""

from __future__ import annotations

import collections
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BACKEND, RANK, RANKS = os.environ["BACKEND"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BATCH = 64
WARM_UP, STEPS = 10, 60
SMALL_WARM_UP, SMALL_ROUNDS = 200, 2000


Result = Any  # the value of an operation's future


class Done(dist._Work):
    def __init__(self, result: Result) -> None:
        super().__init__()
        self.future = torch.futures.Future()
        self.future.set_result(result)

    def wait(self, timeout: object = None) -> bool:
        return True

    def get_future(self) -> torch.futures.Future[Any]:
        return self.future


class Nothing(dist.ProcessGroup):
    def __init__(self, rank: int, ranks: int) -> None:
        super().__init__(rank, ranks)
        # keeps the Python objects alive, which torch's references do not
        self.works: collections.deque[Done] = collections.deque(maxlen=64)

    def done(self, result: Result) -> Done:
        self.works.append(Done(result))
        return self.works[-1]

    def getBackendName(self) -> str:
        return "nothing"

    def allreduce(self, tensors: list[torch.Tensor], options: object) -> Done:
        return self.done(tensors)

    def broadcast(self, tensors: list[torch.Tensor], options: object) -> Done:
        return self.done(tensors)

    def allgather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], options: object
    ) -> Done:
        for output in outputs[0]:
            output.copy_(inputs[0])
        return self.done(outputs)

    def barrier(self, options: object) -> Done:
        return self.done([])


def join() -> dist.ProcessGroup:
    if BACKEND == "nothing":
        # The ranks synchronize over a real backend; only the model's group does nothing.
        dist.init_process_group(
            "gloo", init_method=os.environ["MEET_AT"], rank=RANK, world_size=RANKS
        )
        return Nothing(RANK, RANKS)
    if BACKEND == "trainyard":
        import trainyard.torch  # noqa: F401  (registers the backend)
    dist.init_process_group(BACKEND, init_method=os.environ["MEET_AT"], rank=RANK, world_size=RANKS)
    return dist.group.WORLD


def median_microseconds(operate: Callable[[], object], warm_up: int, count: int) -> float:
    times = []
    for number in range(warm_up + count):
        began = time.perf_counter()
        operate()
        if number >= warm_up:
            times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2] * 1e6


def all_reduce() -> float:
    join()
    tensor = torch.ones(256)
    return median_microseconds(lambda: dist.all_reduce(tensor), SMALL_WARM_UP, SMALL_ROUNDS)


def step(group: dist.ProcessGroup | None = None) -> float:
    torch.manual_seed(7)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 2048),
        torch.nn.ReLU(),
        torch.nn.Linear(2048, 2048),
        torch.nn.ReLU(),
        torch.nn.Linear(2048, 10),
    )
    if group is not None:
        model = DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, digits = torch.rand(BATCH, 784), torch.randint(0, 10, (BATCH,))

    def once() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), digits).backward()
        optimizer.step()

    return median_microseconds(once, WARM_UP, STEPS)


def main(what: str) -> None:
    torch.set_num_threads(1)
    loops: dict[str, Callable[[], float]] = {
        "all_reduce": all_reduce,
        "step": lambda: step(join()),
        "alone": step,
    }
    took = loops[what]()
    print(json.dumps({"side": "ours", "microseconds": round(took, 3)}), flush=True)
    if dist.is_initialized():
        dist.barrier()


if __name__ == "__main__":
    main(sys.argv[1])
