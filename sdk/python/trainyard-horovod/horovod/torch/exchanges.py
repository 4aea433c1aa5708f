"""Operations that move rows between ranks: allgather, broadcast, alltoall, reducescatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import torch

from horovod.common import engine as engines
from horovod.common import operations
from horovod.common.basics import rank
from horovod.common.compression import AnyCompressor, ErrorFeedbackCompressor
from horovod.common.operations import Average, Pending, Reduction, Sum, name_for, request
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.torch.compression import Compression
from horovod.torch.reductions import allreduce
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

# -- allgather


def _start_allgather(
    tensors: Sequence[torch.Tensor], names: Sequence[str], process_set: ProcessSet
) -> Pending:
    given = [ready(tensor) for tensor in tensors]
    if any(tensor.dim() == 0 for tensor in given):
        raise ValueError(
            "allgather of a scalar, which has no first dimension: use tensor.unsqueeze(0)"
        )
    requests = [
        request(engines.ALL_GATHER, name, process_set, buffer(tensor))
        for tensor, name in zip(given, names)
    ]

    def finish(handles: Sequence[int]) -> list[torch.Tensor]:
        return [
            kept(handle, tensor, sum(operations.rows(handle))).to(like.device)
            for handle, tensor, like in zip(handles, given, tensors)
        ]

    return Pending(requests, finish, given)


def allgather_async(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    return first_of(
        _start_allgather([tensor], [name_for(name, "allgather", process_set)], process_set)
    )


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    return under_way.add(
        _start_allgather(
            tensors, group_names(tensors, name, "grouped_allgather", process_set), process_set
        )
    )


def _own_rows(gradient: torch.Tensor, rows: int, process_set: ProcessSet) -> torch.Tensor:
    """Returns the part of an allgather's gradient for this rank's rows: the average over all
    ranks."""
    average = allreduce(gradient, op=Average, process_set=process_set)
    rows_by_rank = synchronize(
        allgather_async(torch.tensor([rows], dtype=torch.int64), process_set=process_set)
    ).tolist()
    return average.narrow(0, sum(rows_by_rank[: process_set.rank()]), rows)


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context, tensor: torch.Tensor, name: str | None, process_set: ProcessSet
    ) -> torch.Tensor:
        ctx.rows, ctx.process_set = tensor.shape[0] if tensor.dim() else 1, process_set
        return synchronize(allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx: Context, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return _own_rows(gradient, ctx.rows, ctx.process_set), None, None


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    return _Allgather.apply(tensor, name, process_set)


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context, name: str | None, process_set: ProcessSet, *tensors: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        ctx.rows = [tensor.shape[0] if tensor.dim() else 1 for tensor in tensors]
        ctx.process_set = process_set
        return tuple(synchronize(grouped_allgather_async(list(tensors), name, process_set)))

    @staticmethod
    def backward(ctx: Context, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (
            None,
            None,
            *[
                _own_rows(gradient, rows, ctx.process_set)
                for gradient, rows in zip(gradients, ctx.rows)
            ],
        )


def grouped_allgather(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    return list(_GroupedAllgather.apply(name, process_set, *tensors))


# -- broadcast


def _start_broadcast(
    tensor: torch.Tensor,
    output: torch.Tensor | None,
    root_rank: int,
    name: str | None,
    process_set: ProcessSet,
) -> int:
    if process_set.process_set_id and root_rank not in process_set.ranks:
        raise ValueError(f"invalid root_rank {root_rank} of broadcast: it is not in {process_set}")
    given = ready(tensor)
    into = given if output is not None else given.clone()
    wanted = (
        output
        if output is not None
        else into
        if into.device == tensor.device
        else tensor.detach().clone()
    )
    requests = [
        request(
            engines.BROADCAST,
            name_for(name, "broadcast", process_set),
            process_set,
            buffer(into),
            buffer(into),
            root=root_rank,
        )
    ]
    return under_way.add(Pending(requests, lambda _: settle(into, wanted), (given, into)))


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    return _start_broadcast(tensor, None, root_rank, name, process_set)


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    return _start_broadcast(tensor, tensor, root_rank, name, process_set)


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context,
        tensor: torch.Tensor,
        root_rank: int,
        name: str | None,
        process_set: ProcessSet,
    ) -> torch.Tensor:
        ctx.root, ctx.process_set = root_rank, process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx: Context, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        average = allreduce(gradient, op=Average, process_set=ctx.process_set)
        return average if rank() == ctx.root else torch.zeros_like(average), None, None, None


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    return _Broadcast.apply(tensor, root_rank, name, process_set)


# -- alltoall


def _start_alltoall(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None,
    name: str | None,
    process_set: ProcessSet,
) -> int:
    """Returns a handle whose result is (received rows, number of rows from each rank)."""
    given = ready(tensor)
    if given.dim() == 0:
        raise ValueError(
            "alltoall of a scalar, which has no first dimension: use tensor.unsqueeze(0)"
        )
    if splits is None:
        if given.shape[0] % process_set.size() != 0:
            raise ValueError(
                f"alltoall without splits: the tensor's first dimension, {given.shape[0]}, is not"
                f" divisible by the {process_set.size()} ranks: give splits"
            )
        rows_for = [given.shape[0] // process_set.size()] * process_set.size()
    else:
        rows_for = operations.rows_of(
            splits.tolist() if isinstance(splits, torch.Tensor) else splits
        )
        if (
            len(rows_for) != process_set.size()
            or sum(rows_for) != given.shape[0]
            or min(rows_for) < 0
        ):
            raise ValueError(
                f"splits must have {process_set.size()} numbers of rows, one per rank, with the"
                f" sum {given.shape[0]}, not {rows_for}"
            )
    requests = [
        request(
            engines.ALL_TO_ALL,
            name_for(name, "alltoall", process_set),
            process_set,
            buffer(given),
            splits=rows_for,
        )
    ]
    device = splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu")

    def finish(handles: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        rows = operations.rows(handles[0])
        received = kept(handles[0], given, sum(rows)).to(tensor.device)
        return (received, torch.tensor(rows, dtype=torch.int32, device=device))

    return under_way.add(Pending(requests, finish, (given,)))


def alltoall_async(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    number = _start_alltoall(tensor, splits, name, process_set)
    if splits is None:
        pending = under_way._pending[number]
        finish = pending._finish
        pending._finish = lambda handles: finish(handles)[0]
    return number


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context,
        tensor: torch.Tensor,
        splits: torch.Tensor | Sequence[int] | None,
        name: str | None,
        process_set: ProcessSet,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        received, rows = synchronize(_start_alltoall(tensor, splits, name, process_set))
        ctx.rows, ctx.process_set = rows, process_set
        ctx.mark_non_differentiable(rows)
        return received, rows

    @staticmethod
    def backward(
        ctx: Context, gradient: torch.Tensor, _: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        gradient, _ = synchronize(_start_alltoall(gradient, ctx.rows, None, ctx.process_set))
        return gradient, None, None, None


@overload
def alltoall(
    tensor: torch.Tensor,
    splits: None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor: ...


@overload
def alltoall(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> tuple[torch.Tensor, torch.Tensor]: ...


def alltoall(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Returns the rows from all ranks, concatenated; with `splits` also their number per rank."""
    received, rows = _Alltoall.apply(tensor, splits, name, process_set)
    return received if splits is None else (received, rows)


# -- reducescatter


def _own_part(rows: int, process_set: ProcessSet) -> int:
    """Returns the number of rows of this rank's part. If the rows cannot be divided evenly, the
    first ranks get one row more."""
    ranks, mine = process_set.size(), process_set.rank()
    return rows // ranks + (1 if mine < rows % ranks else 0)


def _start_reducescatter(
    tensors: Sequence[torch.Tensor],
    names: Sequence[str],
    op: Reduction,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> Pending:
    if op not in (Sum, Average):
        raise NotImplementedError(f"unsupported op {op} of reducescatter: use Sum or Average")
    given = [ready(tensor) for tensor in tensors]
    if any(tensor.dim() == 0 for tensor in given):
        raise ValueError(
            "reducescatter of a scalar, which has no first dimension: use tensor.unsqueeze(0)"
        )
    parts = [
        torch.empty(
            (_own_part(tensor.shape[0], process_set), *tensor.shape[1:]), dtype=tensor.dtype
        )
        for tensor in given
    ]
    requests = [
        request(
            engines.REDUCE_SCATTER,
            name,
            process_set,
            buffer(tensor),
            buffer(part),
            op,
            prescale,
            postscale,
        )
        for tensor, part, name in zip(given, parts, names)
    ]
    return Pending(
        requests,
        lambda _: [part.to(tensor.device) for part, tensor in zip(parts, tensors)],
        (given, parts),
    )


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: Reduction = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    op = operations.op_of(op, None)
    return first_of(
        _start_reducescatter(
            [tensor],
            [name_for(name, "reducescatter", process_set)],
            op,
            prescale_factor,
            postscale_factor,
            process_set,
        )
    )


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    op: Reduction = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    op = operations.op_of(op, None)
    names = group_names(tensors, name, "grouped_reducescatter", process_set)
    return under_way.add(
        _start_reducescatter(tensors, names, op, prescale_factor, postscale_factor, process_set)
    )


def _reducescatter_gradient(
    gradient: torch.Tensor, op: Reduction, scale: float, process_set: ProcessSet
) -> torch.Tensor:
    """Returns the gradient of a reducescatter: the parts of all ranks, divided by the number of
    ranks for an average."""
    factor = scale * (process_set.size() if op == Sum else 1)
    return synchronize(
        allgather_async(gradient * factor if factor != 1 else gradient, process_set=process_set)
    )


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context,
        name: str | None,
        op: Reduction,
        process_set: ProcessSet,
        prescale: float,
        postscale: float,
        *tensors: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        ctx.op, ctx.process_set, ctx.scale = op, process_set, prescale * postscale
        return tuple(
            synchronize(
                grouped_reducescatter_async(
                    list(tensors), name, op, process_set, prescale, postscale
                )
            )
        )

    @staticmethod
    def backward(ctx: Context, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return (
            None,
            None,
            None,
            None,
            None,
            *[
                _reducescatter_gradient(gradient, ctx.op, ctx.scale, ctx.process_set)
                for gradient in gradients
            ],
        )


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    compression: AnyCompressor = Compression.none,
    op: Reduction = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    if isinstance(compression, ErrorFeedbackCompressor):
        raise ValueError("unsupported compression of reducescatter: use none, fp16 or bf16")
    pairs = [compression.compress(tensor) for tensor in tensors]
    outputs = _Reducescatter.apply(
        name, op, process_set, prescale_factor, postscale_factor, *[tensor for tensor, _ in pairs]
    )
    return [compression.decompress(output, context) for output, (_, context) in zip(outputs, pairs)]


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: AnyCompressor = Compression.none,
    op: Reduction = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    return grouped_reducescatter(
        [tensor],
        name or name_for(None, "reducescatter", process_set),
        compression,
        op,
        process_set,
        prescale_factor,
        postscale_factor,
    )[0]
