"""What one rank of the torch bench does: torch_loops.py all_reduce | step | alone.
Prints microseconds, as the other programs do.

BACKEND: trainyard, gloo, or nothing: a backend whose operations end at once and move nothing, which
is what DDP costs without communication.
"""

import collections
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BACKEND, RANK, RANKS = os.environ["BACKEND"], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BATCH = 64
WARM_UP, STEPS = 10, 60
SMALL_WARM_UP, SMALL_ROUNDS = 200, 2000


class Done(dist._Work):
    def __init__(self, result):
        super().__init__()
        self.future = torch.futures.Future()
        self.future.set_result(result)

    def wait(self, timeout=None):
        return True

    def get_future(self):
        return self.future


class Nothing(dist.ProcessGroup):
    def __init__(self, rank, ranks):
        super().__init__(rank, ranks)
        # what torch holds of them does not keep their Python half
        self.works = collections.deque(maxlen=64)

    def done(self, result):
        self.works.append(Done(result))
        return self.works[-1]

    def getBackendName(self):
        return "nothing"

    def allreduce(self, tensors, options):
        return self.done(tensors)

    def broadcast(self, tensors, options):
        return self.done(tensors)

    def allgather(self, outputs, inputs, options):
        for output in outputs[0]:
            output.copy_(inputs[0])
        return self.done(outputs)

    def barrier(self, options):
        return self.done([])


def join():
    if BACKEND == "nothing":
        # Scripts meet over a real backend; the model's group is the one that does nothing.
        dist.init_process_group(
            "gloo", init_method=os.environ["MEET_AT"], rank=RANK, world_size=RANKS
        )
        return Nothing(RANK, RANKS)
    if BACKEND == "trainyard":
        import trainyard.torch  # noqa: F401  (registers the backend)
    dist.init_process_group(BACKEND, init_method=os.environ["MEET_AT"], rank=RANK, world_size=RANKS)
    return dist.group.WORLD


def median_microseconds(operate, warm_up, count):
    times = []
    for number in range(warm_up + count):
        began = time.perf_counter()
        operate()
        if number >= warm_up:
            times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2] * 1e6


def all_reduce():
    join()
    tensor = torch.ones(256)
    return median_microseconds(lambda: dist.all_reduce(tensor), SMALL_WARM_UP, SMALL_ROUNDS)


def step(group=None):
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

    def once():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), digits).backward()
        optimizer.step()

    return median_microseconds(once, WARM_UP, STEPS)


def main(what):
    torch.set_num_threads(1)
    took = {"all_reduce": all_reduce, "step": lambda: step(join()), "alone": step}[what]()
    print(json.dumps({"side": "ours", "microseconds": round(took, 3)}), flush=True)
    if dist.is_initialized():
        dist.barrier()


if __name__ == "__main__":
    main(sys.argv[1])
