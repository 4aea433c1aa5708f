"""Has the programs of the ranks of test_horovod.py, written like users' scripts of Horovod. Run as:
horovod_programs.py NAME [ARGUMENT ..]."""

import faulthandler
import itertools
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import horovod.torch as hvd
import torch

TYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
]


def refused(
    kinds: type[BaseException] | tuple[type[BaseException], ...],
    function: Callable[[], object],
    *words: str,
) -> str:
    try:
        function()
    except kinds as failure:
        for word in words:
            assert word in str(failure), f"no '{word}' in: {failure}"
        return str(failure)
    raise AssertionError("this must be refused")


def operations() -> str:
    """Compares the results of every operation, for each type and 1 to 3 dimensions."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    assert hvd.is_initialized() and hvd.is_homogeneous()
    assert (hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()) == (
        rank,
        size,
        0,
        1,
    )
    assert (
        hvd.gloo_built() and not hvd.mpi_enabled() and not hvd.nccl_built() and not hvd.cuda_built()
    )
    for dtype, dims in itertools.product(TYPES, (1, 2, 3)):
        shape = [4] * dims
        tensor = torch.full(shape, rank + 1).to(dtype)
        total, product = sum(range(1, size + 1)), 1
        for each in range(1, size + 1):
            product *= each
        for op, expected in (
            (hvd.Sum, total),
            (hvd.Min, 1),
            (hvd.Max, size),
            (hvd.Product, product),
        ):
            result = hvd.allreduce(tensor, op=op)
            assert result.dtype == dtype and torch.equal(
                result, torch.full(shape, expected).to(dtype)
            ), (dtype, op, result)
            assert torch.equal(tensor, torch.full(shape, rank + 1).to(dtype)), "not in place"
            result = hvd.allreduce_(tensor.clone(), op=op)
            assert torch.equal(result, torch.full(shape, expected).to(dtype))
        if dtype.is_floating_point:
            assert torch.allclose(
                hvd.allreduce(tensor).double(), torch.full(shape, total / size).double(), rtol=1e-2
            )
            assert torch.equal(
                hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5),
                torch.full(shape, total).to(dtype),
            )
        rows = hvd.allgather(torch.full([rank + 1] + shape[1:], rank).to(dtype))
        assert torch.equal(
            rows,
            torch.cat([torch.full([each + 1] + shape[1:], each).to(dtype) for each in range(size)]),
        ), rows
        for root in range(size):
            assert torch.equal(hvd.broadcast(tensor, root), torch.full(shape, root + 1).to(dtype))
        came, splits = hvd.alltoall(
            torch.cat([torch.full([rank + 1] + shape[1:], each) for each in range(size)]).to(dtype),
            torch.tensor([rank + 1] * size),
        )
        assert (
            splits.tolist() == [each + 1 for each in range(size)]
            and len(came) == total
            and (came.double() == rank).all()
        )
        part = hvd.reducescatter(
            torch.arange(2 * size + 1)
            .reshape([-1] + [1] * (dims - 1))
            .expand([-1] + shape[1:])
            .to(dtype),
            op=hvd.Sum,
        )
        first = sum(3 if each == 0 else 2 for each in range(rank))
        assert (
            part.shape[0] == (3 if rank == 0 else 2)
            and (
                part.double()[:, ...].reshape(len(part), -1)[:, 0]
                == torch.arange(first, first + len(part)).double() * size
            ).all()
        )
    # a boolean, a scalar, nothing at all, columns
    assert hvd.allgather(torch.tensor([rank == 0])).tolist() == [each == 0 for each in range(size)]
    assert hvd.broadcast(torch.tensor([rank == 0, True]), 0).tolist() == [True, True]
    assert hvd.allreduce(torch.tensor(float(rank)), op=hvd.Sum).item() == total - size
    assert hvd.allreduce(torch.zeros(0)).shape == (0,) and hvd.allgather(
        torch.zeros(0, 3)
    ).shape == (0, 3)
    columns = torch.arange(6.0).reshape(2, 3).t()
    assert (
        torch.equal(hvd.allreduce_(columns, op=hvd.Sum), torch.arange(6.0).reshape(2, 3).t() * size)
        and columns[1, 0] == size
    )
    assert hvd.alltoall(torch.arange(2 * size)).tolist() == [2 * rank, 2 * rank + 1] * size
    # many at once, in an order of our own; names; handles
    tensors = [torch.full((100,), float(number)) for number in range(40)]
    order = list(range(40)) if rank % 2 == 0 else list(reversed(range(40)))
    handles = {
        number: hvd.allreduce_async_(tensors[number], name=f"many.{number}", op=hvd.Sum)
        for number in order
    }
    assert [hvd.synchronize(handles[number])[0].item() for number in range(40)] == [
        float(number * size) for number in range(40)
    ]
    handle = hvd.allreduce_async(torch.ones(3))
    while not hvd.poll(handle):
        pass
    assert hvd.synchronize(handle).tolist() == [1.0] * 3 and hvd.synchronize(handle) is None
    # grouped
    group = [torch.ones(3) * rank, torch.ones(2, 2) * rank]
    assert [each.sum().item() for each in hvd.grouped_allreduce(group, op=hvd.Sum)] == [
        3.0 * (total - size),
        4.0 * (total - size),
    ]
    assert [tuple(each.shape) for each in hvd.grouped_allgather(group)] == [
        (3 * size,),
        (2 * size, 2),
    ]
    assert len(hvd.grouped_reducescatter([torch.ones(size, 2), torch.ones(size)], op=hvd.Sum)) == 2
    hvd.grouped_allreduce_(group, op=hvd.Max)
    assert group[0].tolist() == [size - 1.0] * 3
    # sparse: rows add up
    sparse = torch.sparse_coo_tensor(torch.tensor([[0, rank + 1]]), torch.ones(2, 2), (size + 1, 2))
    dense = hvd.synchronize(hvd.sparse_allreduce_async(sparse, "rows", hvd.Sum)).to_dense()
    assert dense[:, 0].tolist() == [float(size)] + [1.0] * size
    assert hvd.sparse_allreduce_async(sparse, "rows", hvd.Average)().to_dense()[0, 0] == 1.0
    # objects
    assert (
        hvd.broadcast_object({"from": rank, "text": "x" * 1000 * (rank + 1)}, root_rank=size - 1)[
            "from"
        ]
        == size - 1
    )
    assert hvd.allgather_object([rank] * rank) == [[each] * each for each in range(size)]
    # compression
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16, hvd.Compression.none):
        result = hvd.allreduce(torch.full((5,), 1.5), compression=compression)
        assert result.dtype == torch.float32 and result.tolist() == [1.5] * 5
    hvd.barrier()
    return "good"


def gradients() -> str:
    """Checks that operations are differentiable, with Horovod's gradients."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()

    def gradient(
        function: Callable[[torch.Tensor], torch.Tensor],
        tensor: torch.Tensor,
        seed: torch.Tensor = None,
    ) -> torch.Tensor:
        tensor = tensor.clone().requires_grad_()
        output = function(tensor)
        output.backward(torch.ones_like(output) if seed is None else seed)
        return tensor.grad

    ones = torch.ones(3, 2)
    assert torch.equal(gradient(lambda t: hvd.allreduce(t, op=hvd.Sum), ones), ones * size)
    assert torch.equal(gradient(lambda t: hvd.allreduce(t), ones), ones)
    assert torch.equal(
        gradient(lambda t: hvd.grouped_allreduce([t, t * 2], op=hvd.Sum)[1], ones), ones * size * 2
    )
    seed = torch.cat([torch.full((each + 1, 2), float(each)) for each in range(size)])
    assert torch.equal(
        gradient(lambda t: hvd.allgather(t), torch.ones(rank + 1, 2), seed),
        torch.full((rank + 1, 2), float(rank)),
    )
    assert torch.equal(
        gradient(lambda t: hvd.grouped_allgather([t])[0], torch.ones(rank + 1, 2), seed),
        torch.full((rank + 1, 2), float(rank)),
    )
    assert torch.equal(
        gradient(lambda t: hvd.broadcast(t, size - 1), ones), ones * float(rank == size - 1)
    )
    splits = torch.tensor([rank + 1] * size)
    assert torch.equal(
        gradient(lambda t: hvd.alltoall(t, splits)[0], torch.ones(size * (rank + 1), 2)),
        torch.ones(size * (rank + 1), 2),
    )
    assert torch.equal(
        gradient(lambda t: hvd.reducescatter(t, op=hvd.Sum), torch.ones(2 * size + 1, 2)),
        torch.full((2 * size + 1, 2), float(size)),
    )
    assert torch.equal(
        gradient(lambda t: hvd.reducescatter(t), torch.ones(2 * size, 2)), torch.ones(2 * size, 2)
    )
    return "good"


def refusals() -> str:
    """Checks that ranks with different requests get an error naming the tensor, and continue."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    failed = hvd.HorovodInternalError
    refused(
        failed,
        lambda: hvd.allreduce(torch.ones(2 + rank), name="odd"),
        "odd",
        "shape",
        f"rank {size - 1}",
    )
    refused(
        failed,
        lambda: hvd.allreduce(
            torch.ones(2, dtype=[torch.float32, torch.int32][rank % 2]), name="odd"
        ),
        "type",
    )
    refused(
        failed,
        lambda: hvd.allreduce(torch.ones(2), name="odd", op=[hvd.Sum, hvd.Max][rank % 2]),
        "odd",
    )
    refused(failed, lambda: hvd.broadcast(torch.ones(2), rank, name="odd"), "odd", "root")
    refused(failed, lambda: hvd.allgather(torch.ones(2, 2 + rank), name="odd"), "odd")
    refused(
        failed,
        lambda: (
            (
                (hvd.allreduce_async if rank == 0 else hvd.allgather_async)(
                    torch.ones(2), name="odd"
                )
                and None
            )
            or hvd.allreduce(torch.ones(2 + rank), name="odd2")
        ),
        "odd",
    )
    refused(
        ValueError, lambda: hvd.allreduce(torch.ones(2), average=True, op=hvd.Sum), "supersedes"
    )
    refused(ValueError, lambda: hvd.allreduce(torch.ones(2, dtype=torch.bool)))
    refused(ValueError, lambda: hvd.allgather(torch.tensor(1.0)))
    refused(ValueError, lambda: hvd.alltoall(torch.ones(size * 2 + 1)))
    refused(ValueError, lambda: hvd.alltoall(torch.ones(4), splits=[9] * size))
    refused(
        ValueError, lambda: hvd.allreduce(torch.ones(2, dtype=torch.complex64)), "not supported"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert hvd.allreduce(torch.ones(2), average=False).tolist() == [float(size)] * 2
        assert any("average" in str(each.message) for each in caught)
    hvd.allreduce(torch.ones(1), name="still here")
    hvd.shutdown()
    refused(ValueError, hvd.rank, "hvd.init()")
    refused(ImportError, lambda: __import__("horovod.mxnet"), "MXNet is retired")
    return "good"


def sets() -> str:
    """Reduces over a process set, over another one at the same time, and over all ranks."""
    hvd.init(process_sets=[hvd.ProcessSet([0, 1])])
    rank, size = hvd.rank(), hvd.size()
    parts = [hvd.add_process_set(list(range(parity, size, 2))) for parity in (0, 1)]
    mine = parts[rank % 2]
    assert (
        mine.included()
        and mine.size() == len(mine.ranks)
        and mine.ranks[mine.rank()] == rank
        and not parts[1 - rank % 2].included()
    )
    assert hvd.allreduce(torch.tensor(float(rank)), op=hvd.Sum, process_set=mine).item() == sum(
        mine.ranks
    )
    assert hvd.allgather(torch.tensor([rank]), process_set=mine).tolist() == mine.ranks
    assert (
        hvd.broadcast(torch.tensor(rank), mine.ranks[-1], process_set=mine).item() == mine.ranks[-1]
    )
    assert hvd.broadcast_object(rank, mine.ranks[0], process_set=mine) == mine.ranks[0]
    assert hvd.allreduce(torch.tensor(1.0), op=hvd.Sum).item() == size
    refused(
        ValueError, lambda: hvd.broadcast(torch.tensor(rank), mine.ranks[0] + 1, process_set=mine)
    )
    refused(ValueError, lambda: hvd.add_process_set(list(range(0, size, 2))), "already exists")
    model = torch.nn.Linear(2, 1)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), process_set=mine
    )
    hvd.broadcast_parameters(model.state_dict(), mine.ranks[0], process_set=mine)
    model(torch.ones(1, 2) * rank).sum().backward()
    optimizer.step()
    weights = hvd.allgather(model.weight.detach(), process_set=mine)
    assert all(torch.equal(weights[0], each) for each in weights)
    assert all(hvd.remove_process_set(part) for part in parts) and not hvd.remove_process_set(
        parts[0]
    )
    refused(ValueError, lambda: hvd.allreduce(torch.ones(1), process_set=parts[0]), "not added")
    hvd.barrier()
    return "good"


def uneven() -> list[int]:
    """Ranks have different numbers of batches: join() replaces finished ranks, twice."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    last = []
    for _ in range(2):
        seen = []
        for batch in range(2 + 2 * rank):
            seen.append(hvd.allreduce(torch.ones(3), op=hvd.Sum, name=f"batch.{batch}")[0].item())
        last.append(hvd.join())
        assert seen == [
            float(sum(batch < 2 + 2 * other for other in range(size)))
            for batch in range(2 + 2 * rank)
        ], seen
    return last


def model(seed: int = 3) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16),
        torch.nn.Tanh(),
        torch.nn.Linear(16, 16),
        torch.nn.Tanh(),
        torch.nn.Linear(16, 3),
    )


def batches(step: int, ranks: int, passes: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(ranks, passes, 6, 8, generator=generator), torch.randint(
        0, 3, (ranks, passes, 6), generator=generator
    )


def loss_of(net: torch.nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(net(inputs), labels)


def train(how: str, steps: int = 5, **settings: Any) -> float:
    """Trains over all ranks, and in one process with all batches; returns the difference and this
    rank's weights."""
    rank, size = hvd.rank(), hvd.size()
    passes = settings.get("backward_passes_per_step", 1)
    net, alone = model(seed=rank), model()
    if rank != 0:
        alone.load_state_dict(model(seed=0).state_dict())
    alone.load_state_dict(model(seed=0).state_dict())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    reference = torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
    if how == "groups of layers":
        settings["groups"] = [list(net[0].parameters()), list(net[2].parameters())]
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=None if how == "no names" else net.named_parameters(),
        **settings,
    )
    assert isinstance(optimizer, torch.optim.SGD) and type(optimizer).__name__ == "SGD"
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    other = torch.optim.lr_scheduler.StepLR(reference, 2)
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    factor = size if settings.get("op") == hvd.Sum else 1
    for step in range(steps):
        inputs, labels = batches(step, size, passes)
        optimizer.zero_grad()
        for number in range(passes):
            loss_of(net, inputs[rank, number], labels[rank, number]).backward()
        if how == "clipped":
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            with optimizer.skip_synchronize():
                optimizer.step()
        else:
            optimizer.step()
        scheduler.step()
        reference.zero_grad()
        for number in range(passes):
            for each in range(size):
                (
                    loss_of(alone, inputs[each, number], labels[each, number]) * factor / size
                ).backward()
        if how == "clipped":
            torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
        reference.step()
        other.step()
    apart = max(
        (one - two).abs().max().item() for one, two in zip(net.parameters(), alone.parameters())
    )
    weights = torch.cat([each.detach().flatten() for each in net.parameters()])
    everyone = hvd.allgather(weights.unsqueeze(0))
    assert all(torch.equal(everyone[0], each) for each in everyone), f"{how}: unlike weights"
    return apart


def optimizers() -> dict[str, Any]:
    hvd.init()
    cases: dict[str, dict[str, Any]] = {
        "plain": {},
        "no names": {},
        "sum": {"op": hvd.Sum},
        "passes": {"backward_passes_per_step": 3},
        "predivided": {"gradient_predivide_factor": 2.0},
        "two groups": {"groups": 2},
        "groups of layers": {},
        "clipped": {},
        "fp16": {"compression": hvd.Compression.fp16},
        "passes in groups": {"backward_passes_per_step": 2, "groups": 3},
    }
    return {how: train(how, **settings) for how, settings in cases.items()}


def compressed() -> dict[str, Any]:
    """Checks int8 and low_rank: the error of a step is added later, and a regression is learned
    with weights that are equal on all ranks."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    tensor = torch.randn(12, 8, generator=torch.Generator().manual_seed(rank))
    exact, printed = hvd.allreduce(tensor), {}
    for how, compression in (
        ("int8", hvd.Compression.int8),
        ("low_rank", hvd.Compression.low_rank(2)),
    ):
        came = [hvd.allreduce(tensor, name=how, compression=compression) for _ in range(60)]
        once, lately = ((sum(part) / len(part) - exact).abs().max() for part in (came[:1], came))
        assert 0 < lately < once / 4, (how, once, lately)
        assert (
            hvd.allreduce(
                torch.ones(3, dtype=torch.float64), name=f"{how}.f64", compression=compression
            ).tolist()
            == [1.0] * 3
        ), "as it is"
        group = hvd.grouped_allreduce(
            [tensor, tensor[:5]], name=f"{how}.group", compression=compression
        )
        assert not torch.equal(group[0], exact) and group[1].shape == (5, 8)
        refused(ValueError, lambda: hvd.allreduce(tensor, compression=compression), "name")
        refused(
            ValueError,
            lambda: hvd.allreduce(tensor, op=hvd.Max, name="max", compression=compression),
            "Sum and Average",
        )
        refused(
            ValueError, lambda: hvd.reducescatter(tensor, compression=compression), "reducescatter"
        )
        torch.manual_seed(rank)
        net = torch.nn.Linear(24, 16)
        wanted = torch.randn(16, 24, generator=torch.Generator().manual_seed(99))
        hvd.broadcast_parameters(net.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(net.parameters(), lr=0.1),
            net.named_parameters(),
            compression=compression,
        )
        losses = []
        for step in range(400):
            inputs = torch.randn(
                32, 24, generator=torch.Generator().manual_seed(size * step + rank)
            )
            optimizer.zero_grad()
            loss = (net(inputs) - inputs @ wanted.t()).square().sum(1).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        printed[how] = losses[-1] / losses[0]
        everyone = hvd.allgather(net.weight.detach().unsqueeze(0))
        assert all(torch.equal(everyone[0], each) for each in everyone), how
    refused(ValueError, lambda: hvd.Compression.low_rank(0), "1 to 128")
    return printed


def tuned() -> list[float]:
    """Runs until autotuning has tried other parameters."""
    hvd.init()
    path = os.environ["HOROVOD_AUTOTUNE_LOG"]
    for step in range(1_000_000):
        hvd.allreduce(torch.ones(1000), name="layer.weight")
        if (
            step % 100 == 0
            and hvd.broadcast(
                torch.tensor([os.path.exists(path) and os.path.getsize(path) > 0]), 0, name="tried"
            ).item()
        ):
            break
    hvd.barrier()
    with open(path, encoding="utf-8") as tries:
        return [float(number) for number in tries.readline().split(",")]


def adasum() -> str:
    """Compares the operation with its definition. With the optimizer, ranks with equal batches
    train as one does."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()

    def pair(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        dot, aa, bb = (a * b).sum(), (a * a).sum(), (b * b).sum()
        return (1 - dot / (2 * aa)) * a + (1 - dot / (2 * bb)) * b

    everyone = [
        torch.randn(50, generator=torch.Generator().manual_seed(each), dtype=torch.float64)
        for each in range(size)
    ]
    power = 1 << (size.bit_length() - 1)
    parts = [
        pair(everyone[each], everyone[power + each]) if power + each < size else everyone[each]
        for each in range(power)
    ]
    while len(parts) > 1:
        parts = [pair(parts[each], parts[each + 1]) for each in range(0, len(parts), 2)]
    result = hvd.allreduce(everyone[rank], op=hvd.Adasum)
    assert torch.allclose(result, parts[0], rtol=1e-12), (result - parts[0]).abs().max()
    assert torch.allclose(hvd.allreduce(torch.ones(5), op=hvd.Adasum), torch.ones(5)), (
        "what is equal is averaged"
    )
    orthogonal = torch.zeros(size)
    orthogonal[rank] = 1
    assert torch.allclose(hvd.allreduce(orthogonal, op=hvd.Adasum), torch.ones(size)), (
        "what is orthogonal is added"
    )
    net, alone = model(), model()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(net.parameters(), lr=0.01), net.named_parameters(), op=hvd.Adasum
    )
    reference = torch.optim.Adam(alone.parameters(), lr=0.01)
    for step in range(5):
        inputs, labels = batches(step, 1)
        for each, by in ((net, optimizer), (alone, reference)):
            by.zero_grad()
            loss_of(each, inputs[0, 0], labels[0, 0]).backward()
            by.step()
    assert all(
        torch.allclose(one, two, atol=1e-5)
        for one, two in zip(net.parameters(), alone.parameters())
    )
    if size > 1:
        refused(AssertionError, lambda: optimizer.skip_synchronize().__enter__())
    return "good"


def guards() -> str:
    """Checks the errors of DistributedOptimizer, and its results for unusual models."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    net = model()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    refused(
        ValueError,
        lambda: hvd.DistributedOptimizer(sgd, [("a", next(net.parameters()))] * 2),
        "unique",
    )
    refused(
        ValueError,
        lambda: hvd.DistributedOptimizer(sgd, list(net.named_parameters())[:2]),
        "not named",
    )
    refused(ValueError, lambda: hvd.DistributedOptimizer(sgd, [next(net.parameters())]), "tuples")
    refused(
        ValueError, lambda: hvd.DistributedOptimizer(sgd, gradient_predivide_factor=2.0, op=hvd.Sum)
    )
    refused(
        ValueError,
        lambda: hvd.broadcast_optimizer_state(torch.optim.LBFGS(net.parameters()), 0),
        "LBFGS",
    )
    optimizer = hvd.DistributedOptimizer(sgd, net.named_parameters())
    loss_of(net, torch.ones(2, 8), torch.zeros(2, dtype=torch.int64)).backward()
    refused(AssertionError, optimizer.zero_grad, "race condition")
    refused(
        AssertionError,
        lambda: loss_of(net, torch.ones(2, 8), torch.zeros(2, dtype=torch.int64)).backward(),
        "backward_passes_per_step",
    )
    optimizer.synchronize()
    optimizer.zero_grad()
    # a layer that only one rank uses, an embedding with sparse gradients, and one that is frozen
    for sparse_as_dense in (False, True):
        torch.manual_seed(5)
        table = torch.nn.Embedding(10, 4, sparse=True)
        side = torch.nn.Linear(4, 4)
        frozen = torch.nn.Linear(4, 1)
        for parameter in frozen.parameters():
            parameter.requires_grad_(False)
        named = [
            (f"{name}.{key}", p)
            for name, part in (("table", table), ("side", side), ("frozen", frozen))
            for key, p in part.named_parameters()
        ]
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([p for _, p in named], lr=1.0), named, sparse_as_dense=sparse_as_dense
        )
        hvd.broadcast_parameters(named, 0)
        before = table.weight.detach().clone()
        for _ in range(2):
            hidden = table(torch.tensor([rank, 9]))
            if rank == 0:
                hidden = side(hidden)
            optimizer.zero_grad()
            frozen(hidden).sum().backward()
            optimizer.step()
        assert not torch.equal(before[9], table.weight[9]) and not torch.equal(
            before[size - 1], table.weight[size - 1]
        )
        for _, parameter in named:
            everyone = hvd.allgather(parameter.detach().unsqueeze(0))
            assert all(torch.equal(everyone[0], each) for each in everyone)
    # the state of one that has trained, to ranks that have not; Adam's steps are tensors
    net = model()
    adam = torch.optim.Adam(net.parameters(), lr=0.01 * (rank + 1))
    if rank == 0:
        for _ in range(3):
            adam.zero_grad()
            loss_of(net, torch.ones(2, 8), torch.zeros(2, dtype=torch.int64)).backward()
            adam.step()
    weights = [p.detach().clone() for p in net.parameters()]
    hvd.broadcast_optimizer_state(adam, root_rank=0)
    assert all(torch.equal(one, two) for one, two in zip(weights, net.parameters())), (
        "the weights are not touched"
    )
    assert adam.param_groups[0]["lr"] == 0.01 and all(
        float(state["step"]) == 3 for state in adam.state.values()
    )
    moments = torch.cat([state["exp_avg"].flatten() for state in adam.state.values()])
    everyone = hvd.allgather(moments.unsqueeze(0))
    assert all(torch.equal(everyone[0], each) for each in everyone) and everyone.abs().sum() > 0
    return "good"


def batch_norm() -> float:
    """Returns how far SyncBatchNorm over the ranks differs from BatchNorm over the whole batch."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    apart = 0.0
    for shape, kind in (
        ((4, 3), torch.nn.BatchNorm1d),
        ((4, 3, 5), torch.nn.BatchNorm1d),
        ((4, 3, 5, 2), torch.nn.BatchNorm2d),
    ):
        torch.manual_seed(1)
        whole = torch.randn(size * shape[0], *shape[1:]) * 3 + 100
        ours, theirs = hvd.SyncBatchNorm(3), kind(3)
        for _ in range(3):
            mine = whole[rank * shape[0] : (rank + 1) * shape[0]].clone().requires_grad_()
            everyones = whole.clone().requires_grad_()
            one, two = ours(mine), theirs(everyones)
            weight = torch.arange(float(two.numel())).reshape(two.shape)
            ours.zero_grad(), theirs.zero_grad()
            (one * weight[rank * shape[0] : (rank + 1) * shape[0]]).sum().backward()
            (two * weight).sum().backward()
            scale = everyones.grad.abs().max()
            pairs = [
                (one, two[rank * shape[0] : (rank + 1) * shape[0]], 1),
                (mine.grad, everyones.grad[rank * shape[0] : (rank + 1) * shape[0]], scale),
                (
                    hvd.allreduce(ours.weight.grad, op=hvd.Sum),
                    theirs.weight.grad,
                    theirs.weight.grad.abs().max(),
                ),
                (ours.running_var, theirs.running_var, 1),
                (ours.running_mean, theirs.running_mean, 100),
            ]
            apart = max([apart] + [((a - b).abs().max() / s).item() for a, b, s in pairs])
    ours.eval()
    assert ours(whole).shape == whole.shape
    return apart


def states() -> str:
    """Checks that restore() returns a TorchState to its last commit and that sync() makes it rank
    0's, for each kind of member."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    torch.manual_seed(rank)
    net = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0, momentum=0.9)
    halving = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", 0.1, 100)
    sampler = hvd.elastic.ElasticSampler(list(range(12)), shuffle=False)

    def step() -> None:
        net(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        halving.step()
        plateau.step(-1.0)

    def weights() -> list[torch.Tensor]:
        return [parameter.detach().clone() for parameter in net.parameters()]

    state = hvd.elastic.TorchState(
        net,
        optimizer,
        halving=halving,
        plateau=plateau,
        sampler=sampler,
        epoch=10 + rank,
        best={"loss": [rank]},
    )
    for _ in range(rank):
        step()
    list(sampler)
    sampler.record_batch(0, 2)
    state.commit()
    committed, rate = weights(), optimizer.param_groups[0]["lr"]
    assert rate == 0.5**rank

    step()
    list(sampler)
    sampler.record_batch(1, 2)
    state.epoch, state.best["loss"] = 99, [99]
    state.restore()
    assert all(torch.equal(*pair) for pair in zip(weights(), committed))
    assert (
        optimizer.param_groups[0]["lr"] == rate and halving.last_epoch == plateau.last_epoch == rank
    )
    assert (state.epoch, state.best) == (10 + rank, {"loss": [rank]}) and len(
        sampler.processed_indices
    ) == 2
    assert state.halving is halving and halving.optimizer is optimizer, (
        "it continues to step this optimizer"
    )

    state.sync()
    assert (state.epoch, state.best) == (10, {"loss": [0]})
    assert optimizer.param_groups[0]["lr"] == 1.0 and halving.last_epoch == plateau.last_epoch == 0
    everyones = hvd.allgather_object(weights())
    assert all(torch.equal(*pair) for other in everyones for pair in zip(other, everyones[0]))
    assert len(sampler.processed_indices) == 2 * size, "what any rank has done is done"
    step()
    assert optimizer.param_groups[0]["lr"] == 0.5, "it steps this optimizer"
    return "good"


def timeline(path: str) -> str:
    hvd.init()
    if hvd.rank() == 0:
        hvd.start_timeline(path, mark_cycles=True)
    hvd.barrier()
    for _ in range(3):
        hvd.allreduce(torch.ones(100), name="layer.weight")
    if hvd.rank() == 0:
        hvd.stop_timeline()
    hvd.barrier()
    return "good"


def again() -> list[float]:
    """Calls shutdown() and init(), as notebooks and elastic training do."""
    totals = []
    for _ in range(3):
        hvd.init()
        totals.append(hvd.allreduce(torch.tensor(1.0), op=hvd.Sum).item())
        hvd.shutdown()
    return totals


def one_differs(variable: str, value: str) -> str:
    """Gives rank 1 a value of a variable that differs from the other ranks'."""
    if os.environ["RANK"] == "1":
        os.environ[variable] = value
    return refused(hvd.HorovodInternalError, hvd.init)


def one_dies() -> str:
    hvd.init()
    for step in range(1_000_000):
        if step == 20 and hvd.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            hvd.allreduce(torch.ones(1000), name="layer.weight")
        except hvd.HorovodInternalError as failure:
            return str(failure)
    return "no rank died"


def one_stalls() -> str:
    """Rank 1 does not take part: the other ranks report it and time out."""
    hvd.init()
    if hvd.rank() == 1:
        return refused(
            hvd.HorovodInternalError,
            lambda: [hvd.allreduce(torch.ones(1), name="other") for _ in range(1000)],
        )
    return refused(
        hvd.HorovodInternalError, lambda: hvd.allreduce(torch.ones(1), name="layer.weight")
    )


if __name__ == "__main__":
    faulthandler.dump_traceback_later(90, exit=True)  # a rank that hangs says where
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
