"""The operations of horovod.torch: on tensors, blocking or with handles, in place or not,
and differentiable.

Tensors of a GPU are copied to the CPU's memory and back: right, and no faster than that.
"""

import warnings

import torch

from horovod.common import basics, operations
from horovod.common import engine as engines
from horovod.common.basics import (
    ccl_built,
    check_extension,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from horovod.common.compression import Remembering
from horovod.common.operations import (
    Adasum,
    Average,
    Buffer,
    Max,
    Min,
    Pending,
    Product,
    Sum,
    name_for,
    request,
)
from horovod.common.process_sets import global_process_set
from horovod.torch.compression import Compression

__all__ = [
    "Adasum",
    "Average",
    "Max",
    "Min",
    "Product",
    "Sum",
    "ccl_built",
    "check_extension",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]

_TYPES = {
    torch.float64: engines.F64,
    torch.float32: engines.F32,
    torch.float16: engines.F16,
    torch.bfloat16: engines.BF16,
    torch.int64: engines.I64,
    torch.int32: engines.I32,
    torch.int16: engines.I16,
    torch.int8: engines.I8,
    torch.uint8: engines.U8,
    torch.bool: engines.BOOL,
}
for _name, _type in (("float8_e4m3fn", engines.F8E4M3), ("float8_e5m2", engines.F8E5M2)):
    if hasattr(torch, _name):
        _TYPES[getattr(torch, _name)] = _type

_handles = operations.Handles()


def _buffer(tensor):
    """Of a tensor that is dense, contiguous and in the CPU's memory."""
    kind = _TYPES.get(tensor.dtype)
    if kind is None:
        raise ValueError(f"Tensor type {tensor.dtype} is not supported.")
    return Buffer(tensor.data_ptr(), tuple(tensor.shape), kind, tensor)


def _ready(tensor):
    """The tensor as the engine reads it: itself, or a copy."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"this takes tensors, not {type(tensor).__name__}")
    if tensor.is_sparse:
        raise ValueError("this takes dense tensors: sparse_allreduce_async takes sparse ones")
    return tensor.detach().cpu().contiguous()


def _settle(written, wanted):
    """What was written, where it belongs: `wanted` itself,
    or a copy of its own of the same device."""
    if written.data_ptr() != wanted.data_ptr() or written.device != wanted.device:
        with torch.no_grad():
            wanted.copy_(written)
    return wanted


def _kept(handle, like, rows):
    """What the engine kept, as a tensor with that many rows."""
    tensor = torch.empty((rows, *like.shape[1:]), dtype=like.dtype)
    operations.take(handle, _buffer(tensor))
    return tensor


def synchronize(handle):
    """Waits for it -> its output; None for a handle that was waited for before."""
    return _handles.synchronize(handle)


def poll(handle):
    """Whether synchronize() would return at once."""
    return _handles.poll(handle)


# -- allreduce


def _check_reduction(tensor, op):
    if op == Average and tensor.dtype == torch.bool:
        raise ValueError("there is no average of booleans")
    if op == Adasum and not tensor.dtype.is_floating_point:
        raise ValueError("Adasum takes floating point numbers")


def _start_allreduce(tensors, outputs, names, op, prescale, postscale, process_set, compression):
    """`outputs`: the tensors in place, or None -> a handle whose output is a list."""
    requests, owners, written, wanted = [], [], [], []
    for tensor, output, name in zip(tensors, outputs, names):
        given = _ready(tensor)
        _check_reduction(given, op)
        into = given if output is not None else torch.empty_like(given)
        requests.append(
            request(
                engines.ALLREDUCE,
                name,
                process_set,
                _buffer(given),
                _buffer(into),
                op,
                prescale,
                postscale,
                compression=compression,
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
    return Pending(requests, lambda _: [_settle(a, b) for a, b in zip(written, wanted)], owners)


def _one(pending):
    finish = pending._finish
    pending._finish = lambda handles: finish(handles)[0]
    return _handles.add(pending)


def _warn_of_average(average):
    if average is not None:
        warnings.warn(
            "Parameter `average` has been replaced with `op` and will be removed.",
            DeprecationWarning,
            stacklevel=3,
        )


def allreduce_async(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    compression=None,
):
    _warn_of_average(average)
    op = operations.op_of(op, average)
    return _one(
        _start_allreduce(
            [tensor],
            [None],
            [name_for(name, "allreduce", process_set, compression)],
            op,
            prescale_factor,
            postscale_factor,
            process_set,
            compression,
        )
    )


def allreduce_async_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    compression=None,
):
    _warn_of_average(average)
    op = operations.op_of(op, average)
    return _one(
        _start_allreduce(
            [tensor],
            [tensor],
            [name_for(name, "allreduce", process_set, compression)],
            op,
            prescale_factor,
            postscale_factor,
            process_set,
            compression,
        )
    )


def allreduce_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    return synchronize(
        allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set)
    )


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, prescale, postscale, process_set, compression):
        ctx.how = dict(
            op=op, prescale_factor=prescale, postscale_factor=postscale, process_set=process_set
        )
        return synchronize(allreduce_async(tensor, name=name, compression=compression, **ctx.how))

    @staticmethod
    def backward(ctx, gradient):
        return (allreduce(gradient, **ctx.how), None, None, None, None, None, None)


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    _warn_of_average(average)
    op = operations.op_of(op, average)
    compressed, context = compression.compress(tensor)
    return compression.decompress(
        _Allreduce.apply(
            compressed, name, op, prescale_factor, postscale_factor, process_set, compression
        ),
        context,
    )


def _group_names(tensors, name, what, process_set, compression=None):
    base = name_for(name, what, process_set, compression)
    if not tensors:
        raise ValueError("a grouped operation takes one tensor or more")
    return [f"{base}.{number}" for number in range(len(tensors))]


def grouped_allreduce_async(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    compression=None,
):
    _warn_of_average(average)
    op = operations.op_of(op, average)
    names = _group_names(tensors, name, "grouped_allreduce", process_set, compression)
    return _handles.add(
        _start_allreduce(
            tensors,
            [None] * len(tensors),
            names,
            op,
            prescale_factor,
            postscale_factor,
            process_set,
            compression,
        )
    )


def grouped_allreduce_async_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
    compression=None,
):
    _warn_of_average(average)
    op = operations.op_of(op, average)
    names = _group_names(tensors, name, "grouped_allreduce", process_set, compression)
    return _handles.add(
        _start_allreduce(
            tensors, tensors, names, op, prescale_factor, postscale_factor, process_set, compression
        )
    )


def grouped_allreduce_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    return synchronize(
        grouped_allreduce_async_(
            tensors, average, name, op, prescale_factor, postscale_factor, process_set
        )
    )


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, prescale, postscale, process_set, compression, *tensors):
        ctx.how = dict(
            op=op, prescale_factor=prescale, postscale_factor=postscale, process_set=process_set
        )
        return tuple(
            synchronize(
                grouped_allreduce_async(
                    list(tensors), name=name, compression=compression, **ctx.how
                )
            )
        )

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, None, None, None, None, *grouped_allreduce(list(gradients), **ctx.how))


def grouped_allreduce(
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
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
    """May also be called, as Horovod's is."""

    def __call__(self):
        return synchronize(self)


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Of a sparse COO tensor: everyone's rows, which coalesce() adds up. Of `op`,
    Sum and Average."""
    if op not in (Sum, Average):
        raise ValueError("sparse tensors are summed or averaged")
    tensor = tensor.coalesce() if not tensor.is_coalesced() else tensor
    places, values = _ready(tensor._indices().t()), _ready(tensor._values())
    base = name_for(name, "sparse_allreduce", process_set)
    requests = [
        request(engines.ALL_GATHER, base + ".indices", process_set, _buffer(places)),
        request(engines.ALL_GATHER, base + ".values", process_set, _buffer(values)),
    ]

    def finish(handles):
        rows = sum(operations.rows(handles[0]))
        every_place, every_value = _kept(handles[0], places, rows), _kept(handles[1], values, rows)
        if op == Average:
            every_value = every_value / process_set.size()
        return torch.sparse_coo_tensor(every_place.t(), every_value, tensor.size()).to(
            tensor.device
        )

    return _SparseHandle(_handles.add(Pending(requests, finish, (places, values))))


# -- allgather


def _start_allgather(tensors, names, process_set):
    given = [_ready(tensor) for tensor in tensors]
    if any(tensor.dim() == 0 for tensor in given):
        raise ValueError("a scalar has no first dimension to gather along: tensor.unsqueeze(0) has")
    requests = [
        request(engines.ALL_GATHER, name, process_set, _buffer(tensor))
        for tensor, name in zip(given, names)
    ]

    def finish(handles):
        return [
            _kept(handle, tensor, sum(operations.rows(handle))).to(like.device)
            for handle, tensor, like in zip(handles, given, tensors)
        ]

    return Pending(requests, finish, given)


def allgather_async(tensor, name=None, process_set=global_process_set):
    return _one(_start_allgather([tensor], [name_for(name, "allgather", process_set)], process_set))


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    return _handles.add(
        _start_allgather(
            tensors, _group_names(tensors, name, "grouped_allgather", process_set), process_set
        )
    )


def _own_rows(gradient, rows, process_set):
    """The part of an allgather's gradient that is for our rows: the average of everyone's."""
    average = allreduce(gradient, op=Average, process_set=process_set)
    everyones = synchronize(
        allgather_async(torch.tensor([rows], dtype=torch.int64), process_set=process_set)
    ).tolist()
    return average.narrow(0, sum(everyones[: process_set.rank()]), rows)


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows, ctx.process_set = tensor.shape[0] if tensor.dim() else 1, process_set
        return synchronize(allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        return _own_rows(gradient, ctx.rows, ctx.process_set), None, None


def allgather(tensor, name=None, process_set=global_process_set):
    return _Allgather.apply(tensor, name, process_set)


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.rows = [tensor.shape[0] if tensor.dim() else 1 for tensor in tensors]
        ctx.process_set = process_set
        return tuple(synchronize(grouped_allgather_async(list(tensors), name, process_set)))

    @staticmethod
    def backward(ctx, *gradients):
        return (
            None,
            None,
            *[
                _own_rows(gradient, rows, ctx.process_set)
                for gradient, rows in zip(gradients, ctx.rows)
            ],
        )


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    return list(_GroupedAllgather.apply(name, process_set, *tensors))


# -- broadcast


def _start_broadcast(tensor, output, root_rank, name, process_set):
    if process_set.process_set_id and root_rank not in process_set.ranks:
        raise ValueError(f"broadcast from rank {root_rank}, which is not in {process_set}")
    given = _ready(tensor)
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
            _buffer(into),
            _buffer(into),
            root=root_rank,
        )
    ]
    return _handles.add(Pending(requests, lambda _: _settle(into, wanted), (given, into)))


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    return _start_broadcast(tensor, None, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    return _start_broadcast(tensor, tensor, root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root, ctx.process_set = root_rank, process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, gradient):
        average = allreduce(gradient, op=Average, process_set=ctx.process_set)
        return average if rank() == ctx.root else torch.zeros_like(average), None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    return _Broadcast.apply(tensor, root_rank, name, process_set)


# -- alltoall


def _start_alltoall(tensor, splits, name, process_set):
    """-> a handle of (what came, how many rows from whom)."""
    given = _ready(tensor)
    if given.dim() == 0:
        raise ValueError("a scalar has no first dimension to split")
    if splits is None:
        if given.shape[0] % process_set.size() != 0:
            raise ValueError(
                "splits is not given, and the tensor's first dimension is not evenly divisible by"
                " the number of ranks"
            )
        rows_for = [given.shape[0] // process_set.size()] * process_set.size()
    else:
        rows_for = [
            int(each) for each in (splits.tolist() if isinstance(splits, torch.Tensor) else splits)
        ]
        if (
            len(rows_for) != process_set.size()
            or sum(rows_for) != given.shape[0]
            or min(rows_for) < 0
        ):
            raise ValueError(
                f"splits are the rows for each of {process_set.size()} ranks, {given.shape[0]}"
                f" together, not {rows_for}"
            )
    requests = [
        request(
            engines.ALL_TO_ALL,
            name_for(name, "alltoall", process_set),
            process_set,
            _buffer(given),
            splits=rows_for,
        )
    ]
    device = splits.device if isinstance(splits, torch.Tensor) else torch.device("cpu")

    def finish(handles):
        rows = operations.rows(handles[0])
        came = _kept(handles[0], given, sum(rows)).to(tensor.device)
        return (came, torch.tensor(rows, dtype=torch.int32, device=device))

    return _handles.add(Pending(requests, finish, (given,)))


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    number = _start_alltoall(tensor, splits, name, process_set)
    if splits is None:
        pending = _handles._pending[number]
        finish = pending._finish
        pending._finish = lambda handles: finish(handles)[0]
    return number


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        came, rows = synchronize(_start_alltoall(tensor, splits, name, process_set))
        ctx.rows, ctx.process_set = rows, process_set
        ctx.mark_non_differentiable(rows)
        return came, rows

    @staticmethod
    def backward(ctx, gradient, _):
        back, _ = synchronize(_start_alltoall(gradient, ctx.rows, None, ctx.process_set))
        return back, None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """What every rank had for us, end to end; with `splits` also how many rows came from each."""
    came, rows = _Alltoall.apply(tensor, splits, name, process_set)
    return came if splits is None else (came, rows)


# -- reducescatter


def _own_part(rows, process_set):
    """The first ranks get one row more where it is not even."""
    ranks, mine = process_set.size(), process_set.rank()
    return rows // ranks + (1 if mine < rows % ranks else 0)


def _start_reducescatter(tensors, names, op, prescale, postscale, process_set):
    if op not in (Sum, Average):
        raise ValueError("reducescatter sums or averages")
    given = [_ready(tensor) for tensor in tensors]
    if any(tensor.dim() == 0 for tensor in given):
        raise ValueError("a scalar has no first dimension to scatter along")
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
            _buffer(tensor),
            _buffer(part),
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
    tensor,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    op = operations.op_of(op, None)
    return _one(
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
    tensors,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    op = operations.op_of(op, None)
    names = _group_names(tensors, name, "grouped_reducescatter", process_set)
    return _handles.add(
        _start_reducescatter(tensors, names, op, prescale_factor, postscale_factor, process_set)
    )


def _scattered_back(gradient, op, scale, process_set):
    """The gradient of a sum is everyone's parts; averaging divided it by the number of ranks once
    before."""
    factor = scale * (process_set.size() if op == Sum else 1)
    return synchronize(
        allgather_async(gradient * factor if factor != 1 else gradient, process_set=process_set)
    )


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, process_set, prescale, postscale, *tensors):
        ctx.op, ctx.process_set, ctx.scale = op, process_set, prescale * postscale
        return tuple(
            synchronize(
                grouped_reducescatter_async(
                    list(tensors), name, op, process_set, prescale, postscale
                )
            )
        )

    @staticmethod
    def backward(ctx, *gradients):
        return (
            None,
            None,
            None,
            None,
            None,
            *[
                _scattered_back(gradient, ctx.op, ctx.scale, ctx.process_set)
                for gradient in gradients
            ],
        )


def grouped_reducescatter(
    tensors,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    if isinstance(compression, Remembering):
        raise ValueError("reducescatter's compressions are none, fp16 and bf16")
    pairs = [compression.compress(tensor) for tensor in tensors]
    outputs = _Reducescatter.apply(
        name, op, process_set, prescale_factor, postscale_factor, *[tensor for tensor, _ in pairs]
    )
    return [compression.decompress(output, context) for output, (_, context) in zip(outputs, pairs)]


def reducescatter(
    tensor,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    return grouped_reducescatter(
        [tensor],
        name or name_for(None, "reducescatter", process_set),
        compression,
        op,
        process_set,
        prescale_factor,
        postscale_factor,
    )[0]


# -- waiting for each other


def join(device=-1):
    """This rank has no more batches: it takes part with zeros until all have joined -> the rank
    that joined last."""
    return operations.join()


def barrier(process_set=global_process_set):
    operations.barrier(process_set)
