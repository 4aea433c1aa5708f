"""allreduce of one tensor, of several together, and of sparse tensors.

`priority`, which Horovod does not have: of the tensors that all ranks have submitted, those with
the largest priority are reduced first, together with the tensors that are fused with them. If ranks
give different priorities, the largest counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch

from horovod.common import engine as engines
from horovod.common import operations
from horovod.common.compression import AnyCompressor
from horovod.common.operations import Adasum, Average, Pending, Reduction, Sum, name_for, request
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch.compression import Compression
from horovod.torch.tensors import (
    Context,
    buffer,
    first_of,
    group_names,
    kept,
    ready,
    settle,
    synchronize,
    under_way,
)


def _check_reduction(tensor: torch.Tensor, op: Reduction) -> None:
    if op == Average and tensor.dtype == torch.bool:
        raise ValueError("Average does not support booleans: use another op")
    if op == Adasum and not tensor.dtype.is_floating_point:
        raise ValueError(f"Adasum requires floating point numbers, not {tensor.dtype}")


def _start_allreduce(
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor | None],
    names: Sequence[str],
    op: Reduction,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
    compression: AnyCompressor | None,
    priority: int,
) -> Pending:
    """Starts an allreduce; returns a handle whose output is a list. `outputs`: the tensors, for an
    operation in place, or None."""
    requests, owners, written, wanted = [], [], [], []
    for tensor, output, name in zip(tensors, outputs, names):
        given = ready(tensor)
        _check_reduction(given, op)
        into = given if output is not None else torch.empty_like(given)
        requests.append(
            request(
                engines.ALLREDUCE,
                name,
                process_set,
                buffer(given),
                buffer(into),
                op,
                prescale,
                postscale,
                compression=compression,
                priority=priority,
            )
        )
        owners.append(given)
        written.append(into)
        wanted.append(
            output
            if output is not None
            else into
            if into.device == tensor.device
            else tensor.detach().clone()
        )
    return Pending(requests, lambda _: [settle(a, b) for a, b in zip(written, wanted)], owners)


def _warn_of_average(average: bool | None) -> None:
    if average is not None:
        warnings.warn(
            "Parameter `average` has been replaced with `op` and will be removed.",
            DeprecationWarning,
            stacklevel=3,
        )


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    compression: AnyCompressor | None = None,
    priority: int = 0,
) -> int:
    _warn_of_average(average)
    op = operations.op_of(op, average)
    return first_of(
        _start_allreduce(
            [tensor],
            [None],
            [name_for(name, "allreduce", process_set, compression)],
            op,
            prescale_factor,
            postscale_factor,
            process_set,
            compression,
            priority,
        )
    )


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    compression: AnyCompressor | None = None,
    priority: int = 0,
) -> int:
    _warn_of_average(average)
    op = operations.op_of(op, average)
    return first_of(
        _start_allreduce(
            [tensor],
            [tensor],
            [name_for(name, "allreduce", process_set, compression)],
            op,
            prescale_factor,
            postscale_factor,
            process_set,
            compression,
            priority,
        )
    )


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    return synchronize(
        allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set)
    )


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context,
        tensor: torch.Tensor,
        name: str | None,
        op: Reduction,
        prescale: float,
        postscale: float,
        process_set: ProcessSet,
        compression: AnyCompressor,
    ) -> torch.Tensor:
        ctx.how = {
            "op": op,
            "prescale_factor": prescale,
            "postscale_factor": postscale,
            "process_set": process_set,
        }
        return synchronize(allreduce_async(tensor, name=name, compression=compression, **ctx.how))

    @staticmethod
    def backward(ctx: Context, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (allreduce(gradient, **ctx.how), None, None, None, None, None, None)


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: AnyCompressor = Compression.none,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    _warn_of_average(average)
    op = operations.op_of(op, average)
    compressed, context = compression.compress(tensor)
    return compression.decompress(
        _Allreduce.apply(
            compressed, name, op, prescale_factor, postscale_factor, process_set, compression
        ),
        context,
    )


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    compression: AnyCompressor | None = None,
    priority: int = 0,
) -> int:
    _warn_of_average(average)
    op = operations.op_of(op, average)
    names = group_names(tensors, name, "grouped_allreduce", process_set, compression)
    return under_way.add(
        _start_allreduce(
            tensors,
            [None] * len(tensors),
            names,
            op,
            prescale_factor,
            postscale_factor,
            process_set,
            compression,
            priority,
        )
    )


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    compression: AnyCompressor | None = None,
    priority: int = 0,
) -> int:
    _warn_of_average(average)
    op = operations.op_of(op, average)
    names = group_names(tensors, name, "grouped_allreduce", process_set, compression)
    return under_way.add(
        _start_allreduce(
            tensors,
            tensors,
            names,
            op,
            prescale_factor,
            postscale_factor,
            process_set,
            compression,
            priority,
        )
    )


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    return synchronize(
        grouped_allreduce_async_(
            tensors, average, name, op, prescale_factor, postscale_factor, process_set
        )
    )


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context,
        name: str | None,
        op: Reduction,
        prescale: float,
        postscale: float,
        process_set: ProcessSet,
        compression: AnyCompressor,
        *tensors: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        ctx.how = {
            "op": op,
            "prescale_factor": prescale,
            "postscale_factor": postscale,
            "process_set": process_set,
        }
        return tuple(
            synchronize(
                grouped_allreduce_async(
                    list(tensors), name=name, compression=compression, **ctx.how
                )
            )
        )

    @staticmethod
    def backward(ctx: Context, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (None, None, None, None, None, None, *grouped_allreduce(list(gradients), **ctx.how))


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: AnyCompressor = Compression.none,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    _warn_of_average(average)
    op = operations.op_of(op, average)
    pairs = [compression.compress(tensor) for tensor in tensors]
    outputs = _GroupedAllreduce.apply(
        name,
        op,
        prescale_factor,
        postscale_factor,
        process_set,
        compression,
        *[tensor for tensor, _ in pairs],
    )
    return [compression.decompress(output, context) for output, (_, context) in zip(outputs, pairs)]


class _SparseHandle(int):
    """A handle that may also be called, as in Horovod."""

    def __call__(self) -> torch.Tensor:
        return synchronize(self)


def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: str,
    op: Reduction,
    process_set: ProcessSet = global_process_set,
    priority: int = 0,
) -> _SparseHandle:
    """Reduces a sparse COO tensor: gathers the rows of all ranks, which coalesce() then adds.
    `op` must be Sum or Average."""
    if op not in (Sum, Average):
        raise ValueError("invalid op for sparse tensors: use Sum or Average")
    tensor = tensor.coalesce() if not tensor.is_coalesced() else tensor
    places, values = ready(tensor._indices().t()), ready(tensor._values())
    base = name_for(name, "sparse_allreduce", process_set)
    requests = [
        request(engines.ALL_GATHER, f"{base}.{part}", process_set, buffer(each), priority=priority)
        for part, each in (("indices", places), ("values", values))
    ]

    def finish(handles: Sequence[int]) -> torch.Tensor:
        rows = sum(operations.rows(handles[0]))
        every_place, every_value = kept(handles[0], places, rows), kept(handles[1], values, rows)
        if op == Average:
            every_value = every_value / process_set.size()
        return torch.sparse_coo_tensor(every_place.t(), every_value, tensor.size()).to(
            tensor.device
        )

    return _SparseHandle(under_way.add(Pending(requests, finish, (places, values))))
