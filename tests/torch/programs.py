"""Has the programs of the ranks in the tests of torch. Run as: programs.py NAME [ARGUMENT ..]; the
last line printed is the result."""

import faulthandler
import hashlib
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import trainyard.torch  # noqa: F401  (registers the backend)
from torch.nn.parallel import DistributedDataParallel

BACKEND = os.environ["BACKEND"]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
CURRENT = int(torch.__version__.split(".")[0]) >= 2


def init(**more: Any) -> None:
    dist.init_process_group(
        BACKEND, init_method=os.environ["MEET_AT"], rank=RANK, world_size=WORLD, **more
    )


def digest(*tensors: torch.Tensor) -> str:
    sha = hashlib.sha256()
    for tensor in tensors:
        sha.update(tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def values(dtype: torch.dtype, *shape: int, of: int = RANK) -> torch.Tensor:
    """Returns small whole numbers, whose sums are equal in any order, so that gloo's results can be
    compared exactly."""
    generator = torch.Generator().manual_seed(100 + of)
    return torch.randint(0, 2 if dtype == torch.bool else 5, shape, generator=generator).to(dtype)


TYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
]


def collectives() -> dict[str, Any]:
    """Runs every collective that gloo supports; returns the results by name."""
    init()
    output: dict[str, Any] = {}

    def note(name: str, *tensors: torch.Tensor) -> None:
        output[name] = [tensor.to(torch.float64).flatten().tolist() for tensor in tensors]

    for dtype in TYPES:
        for op in ("SUM", "MIN", "MAX", "PRODUCT"):
            tensor = values(dtype, 3, 5)
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
            note(f"all_reduce {dtype} {op}", tensor)
    for op in ("BAND", "BOR", "BXOR"):
        tensor = values(torch.int32, 7)
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, op))
        note(f"all_reduce bits {op}", tensor)
    columns = values(torch.float32, 4, 6).t()  # not contiguous
    dist.all_reduce(columns)
    note("all_reduce columns", columns)
    for size in (0, 1, 100_003):
        tensor = values(torch.float32, size)
        dist.all_reduce(tensor)
        note(f"all_reduce {size}", tensor)
    two = [values(torch.float32, 3), values(torch.float32, 2, 2)]
    dist.all_reduce_coalesced(two)
    note("all_reduce_coalesced", *two)
    for root in range(WORLD):
        tensor = values(torch.float32, 9)
        dist.broadcast(tensor, root)
        note(f"broadcast {root}", tensor)
        tensor = values(torch.int64, 9)
        dist.reduce(tensor, root)
        if root == RANK:
            note(f"reduce {root}", tensor)
        into = [torch.zeros(2, 3) for _ in range(WORLD)] if root == RANK else None
        dist.gather(values(torch.float32, 2, 3), into, root)
        note(f"gather {root}", *(into or []))
        tensor = torch.zeros(4)
        dist.scatter(
            tensor,
            [values(torch.float32, 4, of=10 + k) for k in range(WORLD)] if root == RANK else None,
            root,
        )
        note(f"scatter {root}", tensor)
    for dtype in TYPES:
        into = [torch.zeros(3, 2, dtype=dtype) for _ in range(WORLD)]
        dist.all_gather(into, values(dtype, 3, 2))
        note(f"all_gather {dtype}", *into)
    objects = [None] * WORLD
    dist.all_gather_object(objects, {"rank": RANK, "text": "x" * RANK})
    output["all_gather_object"] = objects
    # a part of all ranks, and another at the same time
    parts = [dist.new_group([k for k in range(WORLD) if k % 2 == parity]) for parity in (0, 1)]
    tensor = values(torch.float32, 11)
    work = dist.all_reduce(tensor, group=parts[RANK % 2], async_op=True)
    whole = values(torch.float32, 11)
    dist.all_reduce(whole)
    work.wait()
    note("new_group", tensor, whole)
    # all ranks send before any receives, more than fits into any buffer
    large, came = values(torch.float32, 3_000_000), torch.zeros(3_000_000)
    works = [dist.isend(large, (RANK + 1) % WORLD), dist.irecv(came, (RANK - 1) % WORLD)]
    for work in works:
        work.wait()
    output["ring of isend and irecv"] = bool(
        torch.equal(came, values(torch.float32, 3_000_000, of=(RANK - 1) % WORLD))
    )
    if RANK == 0:
        works = [dist.isend(torch.full((3,), float(tag)), 1, tag=tag) for tag in (1, 2)]
        for work in works:
            work.wait()
    elif RANK == 1:
        first, second = torch.zeros(3), torch.zeros(3)
        dist.recv(second, 0, tag=2)
        dist.recv(first, 0, tag=1)
        note("tags", first, second)
    dist.barrier()
    dist.destroy_process_group()
    return output


def beyond_gloo() -> str:
    """Compares operations and types that gloo of torch 1.13 lacks with the expected results."""
    init()
    everyone = [values(torch.float32, 4 * WORLD, of=k) for k in range(WORLD)]
    total = torch.stack(everyone).sum(0)
    tensor = everyone[RANK].to(torch.bfloat16)
    dist.all_reduce(tensor)
    assert torch.equal(tensor.float(), total), tensor
    tensor = everyone[RANK].clone()
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    assert torch.equal(tensor, total / WORLD), tensor
    tensor = everyone[RANK].to(torch.complex64) * 1j
    dist.all_reduce(tensor)
    assert torch.equal(tensor, total * 1j), tensor
    flags = torch.tensor([True, RANK == 0, False])
    dist.all_reduce(flags, op=dist.ReduceOp.BOR)
    assert flags.tolist() == [True, True, False]
    flags = torch.tensor([True, RANK == 0, False])
    dist.all_reduce(flags, op=dist.ReduceOp.MIN)
    assert flags.tolist() == [True, WORLD == 1, False]
    into = [torch.zeros(2, dtype=torch.bool) for _ in range(WORLD)]
    dist.all_gather(into, torch.tensor([True, RANK == 0]))
    assert [each.tolist() for each in into] == [[True, k == 0] for k in range(WORLD)]
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    into = torch.zeros(4 * WORLD * WORLD)
    gather(into, everyone[RANK])
    assert torch.equal(into, torch.cat(everyone))
    mine = torch.zeros(4)
    scatter(mine, everyone[RANK].clone())
    assert torch.equal(mine, total[4 * RANK : 4 * RANK + 4])
    scatter(mine, everyone[RANK].clone(), op=dist.ReduceOp.AVG)
    assert torch.equal(mine, (total / WORLD)[4 * RANK : 4 * RANK + 4])
    # blocks of unlike sizes
    sizes = [k + 1 for k in range(WORLD)]
    mine = torch.zeros(sizes[RANK])
    dist.reduce_scatter(mine, [torch.full((size,), float(RANK + size)) for size in sizes])
    assert torch.equal(
        mine, torch.full((sizes[RANK],), float(sum(range(WORLD)) + WORLD * sizes[RANK]))
    )
    into = [torch.zeros(size) for size in sizes]
    dist.all_gather(into, torch.full((sizes[RANK],), float(RANK)))
    assert [each.tolist() for each in into] == [[float(k)] * size for k, size in enumerate(sizes)]
    # all_to_all: even, uneven, as lists
    out, came = torch.arange(WORLD) + 10 * RANK, torch.zeros(WORLD, dtype=torch.int64)
    dist.all_to_all_single(came, out)
    assert came.tolist() == [10 * k + RANK for k in range(WORLD)]
    out = torch.full((sum(sizes), 2), float(RANK))
    came = torch.zeros(WORLD * sizes[RANK], 2)
    dist.all_to_all_single(
        came, out, output_split_sizes=[sizes[RANK]] * WORLD, input_split_sizes=sizes
    )
    assert came[:, 1].tolist() == [float(k) for k in range(WORLD) for _ in range(sizes[RANK])]
    lists = [torch.zeros(2) for _ in range(WORLD)]
    dist.all_to_all(lists, [torch.full((2,), float(10 * RANK + k)) for k in range(WORLD)])
    assert [each.tolist() for each in lists] == [[float(10 * k + RANK)] * 2 for k in range(WORLD)]
    # futures: what DDP's hooks do
    tensor = torch.ones(5)
    future = (
        dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: done.value()[0] * 2)
    )
    assert future.wait().tolist() == [2.0 * WORLD] * 5
    # wrong arguments are refused before anything is sent, and the group lives on
    for wrong in (
        lambda: gather(torch.zeros(3), torch.zeros(2)),
        lambda: dist.all_reduce(torch.ones(2, dtype=torch.bool), op=dist.ReduceOp.AVG),
    ):
        try:
            wrong()
        except (RuntimeError, ValueError):
            continue
        raise AssertionError("this must be refused")
    dist.barrier()
    return "good"


def refusals() -> str:
    """Checks that tensors of different types or sizes are rejected with an explanation before
    anything is sent."""
    init()
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    ours, whole = torch.ones(4), torch.zeros(4, dtype=torch.int32)
    wrong = [
        ("type", lambda: gather(torch.zeros(8 * WORLD, dtype=torch.bfloat16), ours)),
        ("hold one", lambda: gather(torch.zeros(4), ours)),
        ("type", lambda: dist.all_gather([whole] * WORLD, ours)),
        ("elements", lambda: dist.all_gather([torch.zeros(3)] * WORLD, ours)),
        ("type", lambda: dist.all_to_all([whole] * WORLD, [ours] * WORLD)),
    ]
    if RANK == 0:  # who alone can know
        wrong += [
            ("type", lambda: dist.gather(ours, [whole] * WORLD)),
            ("type", lambda: dist.scatter(whole, [ours] * WORLD)),
        ]
    for word, call in wrong:
        try:
            call()
        except (RuntimeError, ValueError) as failure:
            assert word in str(failure), failure
            continue
        raise AssertionError("this must be refused")
    dist.barrier()
    return "good"


def sparse() -> dict[str, Any]:
    """Sums sparse tensors, and runs DDP with a model whose embedding has sparse gradients."""
    init()
    for own in ([[0, RANK + 1, RANK + 1]], [[0, 2]] if RANK == 0 else [[]]):
        places = torch.tensor(own, dtype=torch.int64)
        tensor = torch.sparse_coo_tensor(
            places, torch.full((places.shape[1], 2), RANK + 1.0), (WORLD + 2, 2)
        )
        dense = tensor.to_dense()
        dist.all_reduce(tensor)
        dist.all_reduce(dense)
        assert tensor.is_sparse and torch.equal(tensor.to_dense(), dense), tensor
    torch.manual_seed(3)
    net = DistributedDataParallel(
        torch.nn.Sequential(
            torch.nn.Embedding(50, 8, sparse=True), torch.nn.Flatten(), torch.nn.Linear(4 * 8, 5)
        )
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    for step in range(6):
        generator = torch.Generator().manual_seed(1000 * step + RANK)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(
            net(torch.randint(0, 50, (3, 4), generator=generator)),
            torch.randint(0, 5, (3,), generator=generator),
        ).backward()
        optimizer.step()
    weights = [p.detach().clone() for p in net.parameters()]
    dist.barrier()
    return {
        "digest": digest(*weights),
        "weights": torch.cat([w.flatten() for w in weights]).tolist(),
    }


def messages() -> str:
    """Receives messages of many tags in another order than they were sent; messages of one tag stay
    in order."""
    init()
    tags = 2000
    if RANK == 0:
        works = [dist.isend(torch.full((3,), float(tag)), 1, tag=tag) for tag in range(tags)]
        works += [dist.isend(torch.full((2, 2), float(each)), 1, tag=7) for each in range(5)]
        for work in works:
            work.wait()
        # what is posted first may complete last
        dist.recv(torch.zeros(1), 1, tag=6)
        dist.send(torch.ones(1), 1, tag=5)
        dist.send(torch.ones(3), 1, tag=1)
    if RANK == 1:
        order = torch.randperm(tags, generator=torch.Generator().manual_seed(1)).tolist()
        came = {tag: torch.zeros(3) for tag in order}
        works = [dist.irecv(came[tag], 0, tag=tag) for tag in order[:100]]
        for tag in order[100:]:
            dist.recv(came[tag], 0, tag=tag)
        for work in works:
            work.wait()
        assert all(tensor.tolist() == [float(tag)] * 3 for tag, tensor in came.items())
        columns = torch.zeros(2, 2).t()  # not contiguous
        for each in range(5):
            dist.recv(columns, 0, tag=7)
            assert columns.tolist() == [[float(each)] * 2] * 2, columns
        late, unlike = torch.zeros(1), torch.zeros(2)
        first, second = dist.irecv(late, 0, tag=5), dist.irecv(unlike, 0, tag=1)
        dist.send(torch.ones(1), 0, tag=6)
        try:
            second.wait()
            raise AssertionError("this must be refused")
        except RuntimeError as failure:
            assert (
                "tag 1 " in str(failure)
                and "12 bytes" in str(failure)
                and "receives it 8" in str(failure)
            ), failure
        first.wait()
        assert late.item() == 1
    dist.barrier()
    return "good"


def in_place() -> list[int]:
    """Reduces large tensors repeatedly: their memory becomes shared, their views stay valid, and
    the memory is freed with them."""
    init()

    def mapped() -> int:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return sum("trainyard-in-place" in line for line in maps)

    output = []
    tensor, theirs = torch.empty(600_001), torch.from_numpy(torch.empty(600_001).numpy().copy())
    view = tensor.numpy()
    for each in (tensor, theirs):
        for step in range(5):
            each.copy_(torch.arange(600_001) % 1000 + RANK + step)
            dist.all_reduce(each)
            assert torch.equal(
                each, WORLD * (torch.arange(600_001) % 1000 + step) + sum(range(WORLD))
            ), step
        output.append(mapped())
    assert view[7] == tensor[7]
    child = os.fork()
    if child == 0:
        tensor.zero_()
        os._exit(0)
    os.waitpid(child, 0)
    assert view[7] == tensor[7] == WORLD * (7 + 4) + sum(range(WORLD))
    del view, tensor, each
    output.append(mapped())
    dist.barrier()
    return output


def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(32, 300),
        torch.nn.ReLU(),
        torch.nn.Linear(300, 300),
        torch.nn.ReLU(),
        torch.nn.Linear(300, 10),
    )


def batch(step: int, rank: int = RANK) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(16, 32, generator=generator), torch.randint(
        0, 10, (16,), generator=generator
    )


def train(net: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int = 6) -> None:
    for step in range(steps):
        inputs, labels = batch(step)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()


def ddp(hook: str = "") -> dict[str, Any]:
    init()
    # Several buckets, except for PowerSGD: its hook starts more when operations end, so with
    # several buckets the ranks may start them in unlike orders, whatever the backend.
    net = DistributedDataParallel(model(), bucket_cap_mb=25 if hook == "powersgd" else 0.2)
    if hook == "fp16":
        from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

        net.register_comm_hook(None, fp16_compress_hook)
    if hook == "powersgd":
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

        net.register_comm_hook(
            powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2),
            powerSGD_hook.powerSGD_hook,
        )
    if hook == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    train(net, optimizer)
    weights = [p.detach().clone() for p in net.parameters()]
    dist.barrier()
    return {
        "digest": digest(*weights),
        "weights": torch.cat([w.flatten()[:40] for w in weights]).tolist(),
    }


def fsdp() -> dict[str, Any]:
    """Trains the same steps with FSDP. Needs a current torch: 1.13 rejects it without CUDA."""
    init()
    from torch.distributed.fsdp import FullyShardedDataParallel

    net = FullyShardedDataParallel(model(), device_id=torch.device("cpu"))
    train(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    with FullyShardedDataParallel.summon_full_params(net):
        weights = [p.detach().clone() for p in net.parameters()]
    dist.barrier()
    return {
        "digest": digest(*weights),
        "weights": torch.cat([w.flatten()[:40] for w in weights]).tolist(),
    }


def fsdp2() -> dict[str, Any]:
    init()
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net = model()
    mesh = init_device_mesh("cpu", (WORLD,))
    for layer in net:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    train(net, torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
    weights = [p.full_tensor().detach().clone() for p in net.parameters()]
    dist.barrier()
    return {
        "digest": digest(*weights),
        "weights": torch.cat([w.flatten()[:40] for w in weights]).tolist(),
    }


def smddp() -> list[float]:
    import smdistributed.dataparallel.torch.distributed
    import smdistributed.dataparallel.torch.torch_smddp
    from smdistributed.dataparallel.torch.parallel.distributed import (
        DistributedDataParallel as Wrapper,
    )

    # with all of torch's names, which are of no known type where mypy runs
    sdp: Any = smdistributed.dataparallel.torch.distributed
    assert os.environ["SMDATAPARALLEL_LOCAL_RANK"] == os.environ["LOCAL_RANK"], (
        "trainers look there"
    )
    dist.init_process_group("smddp", init_method=os.environ["MEET_AT"], rank=RANK, world_size=WORLD)
    assert dist.get_backend() == "smddp" and sdp.get_world_size() == WORLD
    assert isinstance(Wrapper(torch.nn.Linear(2, 2)), DistributedDataParallel)
    tensor = torch.tensor(float(RANK + 1))
    sdp.all_reduce(tensor)
    return [sdp.get_local_rank(), tensor.item()]


def one_dies(operation: str) -> str:
    """Rank 1 is killed during training; the other ranks must report it."""
    init(timeout=timedelta(seconds=60))
    tensor = torch.ones(1000)
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    run = {
        "all_reduce": lambda: dist.all_reduce(tensor),
        "broadcast": lambda: dist.broadcast(tensor, 1),
        "all_to_all": lambda: dist.all_to_all_single(tensor[:3], tensor[3:6]),
        "all_gather": lambda: gather(torch.zeros(WORLD * 1000), tensor),
    }[operation]
    for step in range(1_000_000):
        if step == 20 and RANK == 1:
            os.kill(os.getpid(), 9)
        try:
            run()
        except RuntimeError as failure:
            return str(failure)
    return "no rank died"


def wait_for_start(*ranks: int) -> None:
    """Returns when all these ranks have called it, so that their deadlines begin together."""
    folder = Path(os.environ["TRAINYARD_RENDEZVOUS"])
    (folder / f"started-{RANK}").touch()
    while not all((folder / f"started-{rank}").exists() for rank in ranks):
        time.sleep(0.01)  # ends with the test, which kills ranks that take too long


def one_is_missing() -> str:
    wait_for_start(0, 1)
    try:
        init(timeout=timedelta(seconds=10))
        dist.all_reduce(torch.ones(1))
    except Exception as failure:
        return str(failure)
    return "no rank was missing"


def latency(size: str = "256", rounds: str = "300") -> float:
    """Returns the seconds of an all_reduce of `size` floats, the minimum of a few means; for ./yard
    bench and for use by hand."""
    init()
    tensor, best = torch.ones(int(size)), 1e9
    for _ in range(5):
        dist.barrier()
        began = time.perf_counter()
        for _ in range(int(rounds)):
            dist.all_reduce(tensor)
        best = min(best, (time.perf_counter() - began) / int(rounds))
    return best


if __name__ == "__main__":
    faulthandler.dump_traceback_later(60, exit=True)  # a rank that hangs says where
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
