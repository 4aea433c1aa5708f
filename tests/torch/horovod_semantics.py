"""Checks the semantics that Horovod's own tests show. Run as: horovod_semantics.py NAME."""

from __future__ import annotations

import contextlib
import copy
import faulthandler
import json
import os
import sys
import tempfile
import time
import unittest.mock
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import horovod.torch as hvd
import torch

from tests.torch.horovod_programs import refused

INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
HALVES = [torch.float16, torch.bfloat16]
FACTOR = 0.1915194503788923  # neither exact in float32 nor in half


def scaled(tensor: torch.Tensor) -> torch.Tensor:
    """Checks scaling: integers in float64 and then truncated, halves in float32, others in their
    own type; the factor has the type of the multiplication."""
    within = (
        torch.float64
        if tensor.dtype in INTEGERS
        else torch.float32
        if tensor.dtype in HALVES
        else tensor.dtype
    )
    return (tensor.to(within) * torch.tensor(FACTOR, dtype=within)).to(tensor.dtype)


def equal(
    results: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], *output: object
) -> None:
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected):
        assert result.dtype == wanted.dtype and torch.equal(result, wanted), (
            *output,
            result,
            wanted,
        )


def scales() -> None:
    """Checks prescale_factor and postscale_factor for every type and dimension, single and
    fused."""
    rank, size = hvd.rank(), hvd.size()
    for dtype in [torch.float64, torch.float32, *HALVES, *INTEGERS]:
        for dims in (1, 2, 3):
            generator = torch.Generator().manual_seed(dims)
            low = 0 if dtype == torch.uint8 else -100
            wholes = [
                torch.randint(low, 100, [4 * size] * dims, generator=generator).to(dtype)
                for _ in range(3)
            ]
            # An element is one rank's alone, so that sums are exact in every type.
            owner = torch.arange(wholes[0].numel()).reshape(wholes[0].shape) % size
            mine = [torch.where(owner == rank, whole, torch.zeros_like(whole)) for whole in wholes]
            expected = [scaled(whole) for whole in wholes]
            parts = [each[4 * rank : 4 * rank + 4] for each in expected]
            for when in ("prescale_factor", "postscale_factor"):
                how: dict[str, Any] = {"op": hvd.Sum, when: FACTOR}
                output = (dtype, dims, when)
                equal([hvd.allreduce(mine[0], **how)], expected[:1], *output)
                equal([hvd.allreduce_(mine[0].clone(), **how)], expected[:1], *output)
                equal(hvd.grouped_allreduce(mine, **how), expected, *output)
                equal([hvd.reducescatter(mine[0], **how)], parts[:1], *output)
                equal(hvd.grouped_reducescatter(mine, **how), parts, *output)
    for dtype in (torch.int64, torch.int32):
        tensor = torch.arange(-100, 100).to(dtype)
        before = hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=FACTOR)
        after = hvd.allreduce(tensor, op=hvd.Sum, postscale_factor=FACTOR)
        equal([before, after], [scaled(tensor) * size, scaled(tensor * size)], dtype)


def asynchronous() -> None:
    """Has requests of all types and dimensions outstanding at the same time: poll() is false until
    the other ranks have submitted theirs, and synchronize() returns the result once."""
    rank, size = hvd.rank(), hvd.size()
    total = size * (size + 1) // 2

    def submit() -> list[tuple[int, torch.Tensor]]:
        """Returns handles with their expected results."""
        started = []
        for dtype in [torch.float64, torch.float32, *HALVES, *INTEGERS]:
            for dims in (1, 2, 3):
                tensor = torch.full([size] * dims, rank + 1).to(dtype)
                name = f"{dtype}.{dims}"
                summed = torch.full_like(tensor, total)
                blocks = [torch.full_like(tensor, each + 1) for each in range(size)]
                rows = torch.cat([block[:1] for block in blocks])
                in_place = tensor.clone()
                started += [
                    (hvd.allreduce_async(tensor, name=name, op=hvd.Sum), summed),
                    (hvd.allreduce_async_(in_place, name=f"{name}.too", op=hvd.Sum), summed),
                    (hvd.allgather_async(tensor, name=name), torch.cat(blocks)),
                    (hvd.broadcast_async(tensor, size - 1, name=name), blocks[-1]),
                    (hvd.alltoall_async(tensor, name=name), rows),
                    (hvd.reducescatter_async(tensor, name=name, op=hvd.Sum), summed[:1]),
                ]
        return started

    started = submit() if rank == 0 else []
    if size > 1:
        assert not any(hvd.poll(handle) for handle, _ in started)
    hvd.barrier()  # until here the others have not submitted theirs
    if rank != 0:
        started = submit()
    for handle, expected in started:
        while not hvd.poll(handle):
            time.sleep(0.001)
        equal([hvd.synchronize(handle)], [expected])
        assert hvd.poll(handle) and hvd.synchronize(handle) is None


def duplicates() -> None:
    """Checks that a second request with an outstanding name raises at once, without side
    effects."""
    rank, size = hvd.rank(), hvd.size()
    if size == 1:
        return  # the first may be done before
    tensor = torch.ones(size, 3)
    sparse = tensor.to_sparse()
    operations: list[Callable[[], int]] = [
        lambda: hvd.allreduce_async(tensor, name="twice"),
        lambda: hvd.allreduce_async_(tensor.clone(), name="twice"),
        lambda: hvd.grouped_allreduce_async([tensor, tensor], name="twice"),
        lambda: hvd.grouped_allreduce_async_([tensor.clone(), tensor.clone()], name="twice"),
        lambda: hvd.sparse_allreduce_async(sparse, "twice", hvd.Sum),
        lambda: hvd.allgather_async(tensor, name="twice"),
        lambda: hvd.grouped_allgather_async([tensor, tensor], name="twice"),
        lambda: hvd.broadcast_async(tensor, 0, name="twice"),
        lambda: hvd.broadcast_async_(tensor.clone(), 0, name="twice"),
        lambda: hvd.alltoall_async(tensor, name="twice"),
        lambda: hvd.reducescatter_async(tensor, name="twice"),
        lambda: hvd.grouped_reducescatter_async([tensor, tensor], name="twice"),
    ]
    for operation in operations:
        for turn in range(2):
            handles = []
            if (rank == 0) == (turn == 0):
                handles.append(operation())
                if turn == 0:
                    refused(ValueError, operation, "twice", "submitted already")
                    refused(ValueError, operation, "twice")
            hvd.barrier()  # until here the others have not submitted it
            for handle in handles:
                hvd.synchronize(handle)


def joins() -> None:
    """Checks that operations that move rows raise on all other ranks after a rank has joined; the
    group continues."""
    rank, size = hvd.rank(), hvd.size()
    if size == 1:
        assert hvd.join() == 0
        return
    tensor = torch.ones(size, 3)
    for first in range(size):
        root = (first + 1) % size
        operations: list[Callable[[], object]] = [
            lambda: hvd.allgather(tensor, name="joining"),
            lambda: hvd.grouped_allgather([tensor, tensor], name="joining"),
            lambda: hvd.broadcast(tensor, root, name="joining"),
            lambda: hvd.broadcast(tensor, first, name="joining.root"),
            lambda: hvd.alltoall(tensor, name="joining"),
            lambda: hvd.reducescatter(tensor, name="joining"),
            lambda: hvd.grouped_reducescatter([tensor, tensor], name="joining"),
            lambda: hvd.allgather_object({}, name="joining"),
        ]
        for operation in operations if first > 0 else []:
            operation()  # known to all ranks before
        if rank != first:
            for operation in operations:
                refused(RuntimeError, operation, f"rank {first} has joined")
            ones = torch.ones(4)
            assert hvd.allreduce(ones, name="sum", op=hvd.Sum).tolist() == [size - 1.0] * 4
            tens = torch.full((4,), 10 * size, dtype=torch.int32)
            assert hvd.allreduce(tens, name="average").tolist() == [10 * (size - 1)] * 4
            # Averages of integers are cut, also those below zero.
            odd = torch.full((4,), -7, dtype=torch.int32)
            cut = -(7 * (size - 1) // size)
            assert hvd.allreduce(odd, name="odd").tolist() == [cut] * 4
            sums = hvd.grouped_allreduce([ones, tens], name="sums", op=hvd.Sum)
            assert sums[0].tolist() == [size - 1.0] * 4
            assert sums[1].tolist() == [10 * size * (size - 1)] * 4
        last = hvd.join(hvd.local_rank())
        assert last != first and hvd.allgather_object(last) == [last] * size


def states() -> None:
    """Checks broadcasts of an optimizer's state. One without state leaves gradients of zero for
    parameters that learn, and none for others; every kind of optimizer gets the root's state."""

    class Selected(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.places = torch.nn.Parameter(torch.tensor([1, 3]), requires_grad=False)
            self.values = torch.nn.Parameter(torch.rand(4, 2))

    for make in (
        lambda p: torch.optim.SGD(p, lr=0.001 * (1 + hvd.rank()), momentum=0.9, nesterov=True),
        lambda p: torch.optim.SGD(p, lr=0.001 * (1 + hvd.rank())),
        lambda p: torch.optim.Adam(p, lr=0.001 * (1 + hvd.rank())),
        lambda p: torch.optim.SparseAdam(p[1:], lr=0.001 * (1 + hvd.rank())),
    ):
        model = Selected()
        before = model.values.detach().clone()
        optimizer = hvd.DistributedOptimizer(
            make(list(model.parameters())), named_parameters=model.named_parameters()
        )
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        assert optimizer.param_groups[0]["lr"] == 0.001
        assert torch.equal(model.values, before) and model.places.grad is None
        gradient = model.values.grad.to_dense()
        equal([gradient, hvd.broadcast(gradient, 0)], [torch.zeros(4, 2)] * 2)


def names() -> None:
    """Checks that without named_parameters every parameter has its own name, equal on all ranks."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    groups = [{"params": list(each.parameters())} for each in net]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(groups, lr=0.1))
    ours = {name: tuple(each.shape) for each, name in optimizer._parameter_names.items()}
    assert len(ours) == 4 and hvd.allgather_object(ours) == [ours] * hvd.size()
    named = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters()
    )
    assert {name: id(each) for each, name in named._parameter_names.items()} == {
        name: id(each) for name, each in net.named_parameters()
    }


def embeddings() -> None:
    """Checks SparseAdam, which accepts only sparse gradients, also when they are reduced as dense
    ones. The result equals one process's with the average of all."""
    rank, size = hvd.rank(), hvd.size()
    rows = [torch.tensor([[each, 4, 5], [4, 3, 9]]) for each in range(size)]
    for sparse_as_dense in (False, True):
        torch.manual_seed(1)
        ours, alone = (torch.nn.Embedding(10, 3, sparse=True) for _ in range(2))
        hvd.broadcast_parameters(ours.state_dict(), root_rank=0)
        alone.load_state_dict(ours.state_dict())
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SparseAdam(list(ours.parameters()), lr=0.1), sparse_as_dense=sparse_as_dense
        )
        reference = torch.optim.SparseAdam(list(alone.parameters()), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            reference.zero_grad()
            (ours(rows[rank]) ** 2).sum().backward()
            (sum((alone(each) ** 2).sum() for each in rows) / size).backward()
            optimizer.step()
            reference.step()
            assert ours.weight.grad.is_sparse
        assert torch.allclose(ours.weight, alone.weight, atol=1e-6), sparse_as_dense


def absent() -> None:
    """Checks a sparse parameter that one rank does not use in the first or a later step: ranks with
    a gradient do not wait for it, and all end with the average."""
    rank, size = hvd.rank(), hvd.size()
    rows = torch.tensor([1, 4, 4])
    for op, share in ((hvd.Average, 1 / size), (hvd.Sum, 1.0)):
        for user in (0, size - 1):  # the rank that has a gradient
            torch.manual_seed(2)
            used, unused = torch.nn.Embedding(6, 3, sparse=True), torch.nn.Linear(2, 2)
            named = [("table", used.weight), ("bias", unused.bias)]
            hvd.broadcast_parameters(named, root_rank=0)
            alone = used.weight.detach().clone().requires_grad_()
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD([each for _, each in named], lr=0.5), named, op=op
            )
            for step in range(3):
                for each in optimizer.param_groups[0]["params"]:
                    each.grad = None
                alone.grad = None
                if rank == user or step == 2:  # in the last step all have one
                    (used(rows) ** 2).sum().backward()
                optimizer.step()
                (torch.nn.functional.embedding(rows, alone) ** 2).sum().backward()
                with torch.no_grad():
                    users = size if step == 2 else 1
                    alone -= 0.5 * share * users * alone.grad
                assert torch.allclose(used.weight, alone, atol=1e-5), (op, user, step)


def groups() -> None:
    """Checks a group with an embedding: its sparse gradient is reduced separately, or as a dense
    one with the others, also on a rank without it. The result equals one process's with the average
    of all."""
    rank, size = hvd.rank(), hvd.size()
    rows = torch.tensor([1, 4, 4])
    for sparse_as_dense in (False, True):
        for one_group in (True, False):
            torch.manual_seed(3)
            table, layer = torch.nn.Embedding(6, 3, sparse=True), torch.nn.Linear(3, 1)
            named = [
                ("weight", layer.weight),
                ("table", table.weight),
                ("bias", layer.bias),
            ]
            hvd.broadcast_parameters(named, root_rank=0)
            alone = [each.detach().clone().requires_grad_() for _, each in named]
            parameters = [each for _, each in named]
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD(parameters, lr=0.1),
                named,
                sparse_as_dense=sparse_as_dense,
                groups=1 if one_group else [parameters[:2], parameters[2:]],
            )
            reference = torch.optim.SGD(alone, lr=0.1)
            for step in range(3):
                for each in parameters + alone:
                    each.grad = None
                uses = [step == 2 or user == size - 1 for user in range(size)]
                inputs = table(rows) if uses[rank] else torch.ones(3, 3)
                (layer(inputs) ** 2).sum().backward()
                optimizer.step()
                weight, rows_of, bias = alone
                for used in uses:
                    inputs = rows_of[rows] if used else torch.ones(3, 3)
                    loss = (torch.nn.functional.linear(inputs, weight, bias) ** 2).sum()
                    (loss / size).backward()
                reference.step()
                for ours, expected in zip(parameters, alone):
                    assert torch.allclose(ours, expected, atol=1e-5), (sparse_as_dense, step)


def unfrozen() -> None:
    """Freezes and unfreezes layers between steps, including one that was frozen when the optimizer
    was made. The result equals one process's with the average of all."""
    rank, size = hvd.rank(), hvd.size()
    for groups in (None, 1):
        for frozen_first in (False, True):
            torch.manual_seed(4)
            net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
            hvd.broadcast_parameters(net.state_dict(), root_rank=0)
            alone = copy.deepcopy(net)
            net[1].requires_grad_(not frozen_first)
            optimizer = hvd.DistributedOptimizer(
                torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), groups=groups
            )
            reference = torch.optim.SGD(alone.parameters(), lr=0.1)
            for step in range(6):
                generator = torch.Generator().manual_seed(step)
                inputs = torch.randn(size, 4, 3, generator=generator)
                for model, by in ((net, optimizer), (alone, reference)):
                    for place, layer in enumerate(model):
                        layer.requires_grad_(step % 3 in (place, 2))  # one, the other, then both
                    by.zero_grad()
                (net(inputs[rank]) ** 2).mean().backward()
                (alone(inputs.flatten(0, 1)) ** 2).mean().backward()
                optimizer.step()
                reference.step()
                for ours, expected in zip(net.parameters(), alone.parameters()):
                    assert torch.allclose(ours, expected, atol=1e-5), (groups, frozen_first, step)


def warned() -> None:
    """Checks that step() after synchronize() warns, unless it skips the synchronization."""
    net = torch.nn.Linear(3, 1)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), lr=0.1), net.named_parameters()
    )

    def warnings_of_step(synchronizes: bool, skips: bool) -> int:
        optimizer.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        if synchronizes:
            optimizer.synchronize()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with optimizer.skip_synchronize() if skips else contextlib.nullcontext():
                optimizer.step()
        return sum("without optimizer.skip_synchronize()" in str(each.message) for each in caught)

    assert warnings_of_step(synchronizes=False, skips=False) == 0
    assert warnings_of_step(synchronizes=True, skips=False) == 1
    assert warnings_of_step(synchronizes=True, skips=True) == 0
    assert warnings_of_step(synchronizes=False, skips=False) == 0


def priorities() -> None:
    """Checks that tensors that all ranks have submitted are sent in the order of their priority,
    largest first."""
    if hvd.size() == 1:
        return
    tensors = 16
    path = os.path.join(tempfile.mkdtemp(prefix="timeline-"), "timeline.json")

    def order(submit: Callable[[], list[int]], names: Sequence[str]) -> list[int]:
        """Returns positions in `names`, in the order of communication."""
        hvd.barrier()
        if hvd.rank() == 0:
            hvd.start_timeline(path)
        handles = submit()
        for handle in handles:
            hvd.synchronize(handle)
        hvd.barrier()
        went: list[int] = []
        if hvd.rank() == 0:
            hvd.stop_timeline()
            with open(path, encoding="utf-8") as file:
                events = json.load(file)
            rows = {
                each["tid"]: each["args"]["name"]
                for each in events
                if each["name"] == "thread_name"
            }
            sent = [each for each in events if each["name"].startswith("TRAINYARD_ALLREDUCE")]
            went = [
                list(names).index(rows[each["tid"]]) for each in sorted(sent, key=lambda e: e["ts"])
            ]
        return hvd.broadcast_object(went)

    def ascents(went: Sequence[int]) -> int:
        assert sorted(went) == list(range(len(went))), went
        return sum(a < b for a, b in zip(went, went[1:]))

    # Large enough that none is fused with another.
    values = [torch.ones(100_000) for _ in range(tensors)]
    names = [f"allreduce.urgent.{place}" for place in range(tensors)]

    def submit() -> list[int]:
        return [
            hvd.allreduce_async_(each, name=f"urgent.{place}", priority=place)
            for place, each in enumerate(values)
        ]

    names_of_groups = [f"grouped_allreduce.urgent.{place}.0" for place in range(tensors)]

    def submit_groups() -> list[int]:
        return [
            hvd.grouped_allreduce_async_([each], name=f"urgent.{place}", priority=place)
            for place, each in enumerate(values)
        ]

    # The largest is submitted last. Each cycle that ends amid the submissions begins another run;
    # in the order of submission each tensor would.
    assert min(ascents(order(submit, names)) for _ in range(3)) <= tensors // 4
    assert min(ascents(order(submit_groups, names_of_groups)) for _ in range(3)) <= tensors // 4

    for first_layers_first in (False, True):
        net = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(4)])
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(net.parameters(), lr=0.1),
            net.named_parameters(),
            first_layers_first=first_layers_first,
        )
        with unittest.mock.patch("horovod.torch.optimizer.allreduce_async_") as started:
            started.side_effect = hvd.allreduce_async_
            net(torch.ones(3)).sum().backward()
            optimizer.step()
        given = {call.kwargs["name"]: call.kwargs.get("priority") for call in started.mock_calls}
        ours = [given[name] for name, _ in net.named_parameters()]
        assert ours == [-place if first_layers_first else 0 for place in range(len(ours))], ours


def refusals() -> None:
    """Checks that reducescatter supports only sum and average, and that the splits of alltoall are
    integers."""
    for op in (hvd.Adasum, hvd.Min, hvd.Max, hvd.Product):
        for dtype in (torch.float32, torch.float16, torch.int32):
            tensor = torch.ones(4 * hvd.size(), 2).to(dtype)
            refused(RuntimeError, lambda: hvd.reducescatter(tensor, op=op), op.name)
            refused(RuntimeError, lambda: hvd.grouped_reducescatter([tensor], op=op), op.name)
    tensor = torch.ones(hvd.size())
    for dtype in (torch.float32, torch.float64, torch.float16):
        splits = torch.ones(hvd.size(), dtype=dtype)
        refused(ValueError, lambda: hvd.alltoall(tensor, splits), "integers")
        refused(ValueError, lambda: hvd.alltoall_async(tensor, splits.tolist()), "integers")
    for dtype in INTEGERS:
        received, rows = hvd.alltoall(tensor, torch.ones(hvd.size(), dtype=dtype))
        equal([received, rows], [tensor, torch.ones(hvd.size(), dtype=torch.int32)])


PROGRAMS = (
    scales,
    asynchronous,
    duplicates,
    joins,
    states,
    names,
    embeddings,
    absent,
    groups,
    unfrozen,
    warned,
    priorities,
    refusals,
)


def everything() -> str:
    hvd.init()
    for program in PROGRAMS:
        program()
        hvd.barrier()
    return "good"


if __name__ == "__main__":
    faulthandler.dump_traceback_later(90, exit=True)  # a rank that hangs says where
    print(json.dumps(globals()[sys.argv[1]]()))
