"""The operations of horovod.tensorflow, eagerly and inside tf.function, differentiable.

TensorFlow calls them as Python functions on NumPy arrays (tf.numpy_function) rather than as
operations of a compiled library: such a library fits one version of TensorFlow only. Inside a
tf.function they are stateful, so TensorFlow runs them one after the other in the order of the
script, which is the same on all ranks. Tensors that belong together, such as all gradients of a
step, go in one call and are fused. XLA cannot compile the operations: use jit_compile=False, which
Keras chooses by itself on machines without a GPU.

`priority`, which Horovod does not have: of the tensors that all ranks have submitted, those with
the largest priority are sent first. If ranks give different priorities, the largest counts. An
operation waits for its result, so priorities order the operations of several threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable

import numpy
import tensorflow as tf
from numpy import ndarray as Array

from horovod.common import basics, operations
from horovod.common import engine as engines
from horovod.common.compression import AnyCompressor, ErrorFeedbackCompressor
from horovod.common.operations import (
    Adasum,
    Average,
    Buffer,
    Pending,
    Reduction,
    Sum,
    name_for,
    request,
)
from horovod.common.process_sets import ProcessSet, global_process_set

_TYPES = {
    "float64": engines.F64,
    "float32": engines.F32,
    "float16": engines.F16,
    "bfloat16": engines.BF16,
    "int64": engines.I64,
    "int32": engines.I32,
    "int16": engines.I16,
    "int8": engines.I8,
    "uint8": engines.U8,
    "bool": engines.BOOL,
}


Value = Any  # any value that tf.convert_to_tensor accepts


def _buffer(array: Array) -> Buffer:
    kind = _TYPES.get(array.dtype.name)
    if kind is None:
        raise ValueError(
            f"tensors of {array.dtype.name} are not supported: cast to one of {', '.join(_TYPES)}"
        )
    return Buffer(array.ctypes.data, array.shape, kind, array)


def _ready(array: Array) -> Array:
    array = numpy.asarray(array)
    return (
        array if array.flags.c_contiguous and array.flags.aligned else numpy.array(array, order="C")
    )


def _kept(handle: int, like: Array, rows: int) -> Array:
    array = numpy.empty((rows, *like.shape[1:]), like.dtype)
    operations.take(handle, _buffer(array))
    return array


def _reduce(
    arrays: Sequence[Array],
    names: Sequence[str],
    op: Reduction,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
    compression: AnyCompressor | None,
    priority: int,
) -> list[Array]:
    given = [_ready(array) for array in arrays]
    results = [numpy.empty_like(array) for array in given]
    requests = [
        request(
            engines.ALLREDUCE,
            name,
            process_set,
            _buffer(one),
            _buffer(other),
            op,
            prescale,
            postscale,
            compression=compression,
            priority=priority,
        )
        for one, other, name in zip(given, results, names)
    ]
    return Pending(requests, lambda _: results, given).wait()


def _gather(
    arrays: Sequence[Array], names: Sequence[str], process_set: ProcessSet, priority: int
) -> list[Array]:
    given = [_ready(array) for array in arrays]
    if any(array.ndim == 0 for array in given):
        raise ValueError(
            "allgather of a scalar, which has no first dimension: use tf.expand_dims(tensor, 0)"
        )
    requests = [
        request(engines.ALL_GATHER, name, process_set, _buffer(array), priority=priority)
        for array, name in zip(given, names)
    ]
    return Pending(
        requests,
        lambda handles: [
            _kept(handle, array, sum(operations.rows(handle)))
            for handle, array in zip(handles, given)
        ],
        given,
    ).wait()


def _spread(
    arrays: Sequence[Array], names: Sequence[str], root: int, process_set: ProcessSet
) -> list[Array]:
    results = [numpy.array(array, order="C") for array in arrays]
    requests = [
        request(engines.BROADCAST, name, process_set, _buffer(array), _buffer(array), root=root)
        for array, name in zip(results, names)
    ]
    return Pending(requests, lambda _: results, ()).wait()


def _exchange(
    array: Array, splits: Sequence[int], name: str, process_set: ProcessSet
) -> list[Array]:
    given = _ready(array)
    ranks = process_set.size()
    rows_for = [int(each) for each in splits] or (
        [given.shape[0] // ranks] * ranks if given.ndim and given.shape[0] % ranks == 0 else [-1]
    )
    if len(rows_for) != ranks or sum(rows_for) != given.shape[0] or min(rows_for) < 0:
        raise ValueError(
            f"alltoall: splits must have {ranks} numbers of rows, one per rank, whose sum is the"
            f" number of rows, {given.shape[0]}, not {[int(each) for each in splits]}"
        )

    def finish(handles: Sequence[int]) -> list[Array]:
        rows = operations.rows(handles[0])
        return [_kept(handles[0], given, sum(rows)), numpy.array(rows, numpy.int32)]

    return Pending(
        [request(engines.ALL_TO_ALL, name, process_set, _buffer(given), splits=rows_for)],
        finish,
        (given,),
    ).wait()


def _scatter(
    arrays: Sequence[Array],
    names: Sequence[str],
    op: Reduction,
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> list[Array]:
    given = [_ready(array) for array in arrays]
    ranks, mine = process_set.size(), process_set.rank()
    if any(array.ndim == 0 for array in given):
        raise ValueError("reducescatter of a scalar, which has no first dimension")
    parts = [
        numpy.empty(
            (array.shape[0] // ranks + (mine < array.shape[0] % ranks), *array.shape[1:]),
            array.dtype,
        )
        for array in given
    ]
    requests = [
        request(
            engines.REDUCE_SCATTER,
            name,
            process_set,
            _buffer(array),
            _buffer(part),
            op,
            prescale,
            postscale,
        )
        for array, part, name in zip(given, parts, names)
    ]
    return Pending(requests, lambda _: parts, given).wait()


def _call(
    function: Callable[[list[Array]], list[Array]],
    tensors: Sequence[tf.Tensor],
    types: Sequence[tf.DType],
    shapes: Sequence[tf.TensorShape],
) -> list[tf.Tensor]:
    """Calls a function now, or when the graph runs; returns tensors of these types and shapes."""
    if tf.executing_eagerly():
        results = function([tensor.numpy() for tensor in tensors])
        return [tf.convert_to_tensor(result) for result in results]
    results = tf.numpy_function(
        lambda *arrays: function(list(arrays)), tensors, types, stateful=True
    )
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    for result, shape in zip(results, shapes):
        result.set_shape(shape)
    return results


def _tensors(values: Iterable[Value]) -> list[tf.Tensor]:
    return [tf.convert_to_tensor(value) for value in values]


def _any_rows(tensor: tf.Tensor) -> tf.TensorShape:
    return (
        tf.TensorShape([None]).concatenate(tensor.shape[1:])
        if tensor.shape.rank is not None
        else tf.TensorShape(None)
    )


def _names_of(
    tensors: Sequence[Value],
    name: str | None,
    what: str,
    process_set: ProcessSet,
    compression: AnyCompressor | None = None,
) -> list[str]:
    # Inside a graph the name is given once, when it is traced: on all ranks in the same order.
    base = name_for(name, what, process_set, compression)
    return [base] if len(tensors) == 1 else [f"{base}.{number}" for number in range(len(tensors))]


def grouped_allreduce(
    tensors: Sequence[Value],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    priority: int = 0,
) -> list[Value]:
    op = operations.op_of(op, average)
    tensors = list(tensors)
    if any(isinstance(tensor, tf.IndexedSlices) for tensor in tensors):
        return [
            allreduce(
                tensor,
                compression=compression,
                op=op,
                prescale_factor=prescale_factor,
                postscale_factor=postscale_factor,
                name=f"{name}.{number}" if name else None,
                process_set=process_set,
                priority=priority,
            )
            for number, tensor in enumerate(tensors)
        ]
    if not tensors:
        return []
    tensors = _tensors(tensors)
    names = _names_of(tensors, name, "allreduce", process_set, compression)
    pairs = [compression.compress(tensor) if compression else (tensor, None) for tensor in tensors]

    @tf.custom_gradient
    def reduce(*values: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
        results = _call(
            lambda arrays: _reduce(
                arrays,
                names,
                op,
                prescale_factor,
                postscale_factor,
                process_set,
                compression,
                priority,
            ),
            list(values),
            [value.dtype for value in values],
            [value.shape for value in values],
        )

        def gradient(*upstream: tf.Tensor) -> list[tf.Tensor]:
            return grouped_allreduce(
                upstream,
                op=op,
                prescale_factor=prescale_factor,
                postscale_factor=postscale_factor,
                process_set=process_set,
                priority=priority,
            )

        return results, gradient

    results = reduce(*[tensor for tensor, _ in pairs])
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    return [
        compression.decompress(result, context) if compression else result
        for result, (_, context) in zip(results, pairs)
    ]


def allreduce(
    tensor: Value,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor | None = None,
    op: Reduction | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    priority: int = 0,
) -> Value:
    op = operations.op_of(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        if op == Adasum:
            raise NotImplementedError("Adasum requires dense tensors: pass sparse_as_dense=True")
        values, indices = (
            allgather(
                part,
                name=f"{name}.{what}" if name else None,
                process_set=process_set,
                priority=priority,
            )
            for what, part in (("values", tensor.values), ("indices", tensor.indices))
        )
        if op == Average:
            values = values / tf.cast(process_set.size(), values.dtype)
        return tf.IndexedSlices(values, indices, dense_shape=tensor.dense_shape)
    return grouped_allreduce(
        [tensor],
        compression=compression,
        op=op,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        name=name,
        process_set=process_set,
        priority=priority,
    )[0]


def grouped_allgather(
    tensors: Sequence[Value],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    priority: int = 0,
) -> list[tf.Tensor]:
    tensors = _tensors(tensors)
    names = _names_of(tensors, name, "allgather", process_set)

    @tf.custom_gradient
    def gather(*values: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
        results = _call(
            lambda arrays: _gather(arrays, names, process_set, priority),
            list(values),
            [value.dtype for value in values],
            [_any_rows(value) for value in values],
        )

        def gradient(*upstream: tf.Tensor) -> list[tf.Tensor]:
            # This rank's rows of the average over all ranks.
            own = []
            for value, average in zip(
                values,
                grouped_allreduce(upstream, op=Average, process_set=process_set, priority=priority),
            ):
                rows = allgather(tf.reshape(tf.shape(value)[0], [1]), process_set=process_set)
                own.append(tf.split(average, rows, num=process_set.size())[process_set.rank()])
            return own

        return results, gradient

    results = gather(*tensors)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def allgather(
    tensor: Value,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    priority: int = 0,
) -> tf.Tensor:
    return grouped_allgather([tensor], name, process_set=process_set, priority=priority)[0]


def broadcast(
    tensor: Value,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> tf.Tensor:
    (tensor,) = _tensors([tensor])
    names = _names_of([tensor], name, "broadcast", process_set)

    @tf.custom_gradient
    def spread(value: tf.Tensor) -> tuple[tf.Tensor, Callable[..., Any]]:
        (result,) = _call(
            lambda arrays: _spread(arrays, names, root_rank, process_set),
            [value],
            [value.dtype],
            [value.shape],
        )

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            average = allreduce(upstream, op=Average, process_set=process_set)
            return average if basics.rank() == root_rank else tf.zeros_like(average)

        return result, gradient

    return spread(tensor)


def broadcast_(
    variables: Iterable[tf.Variable],
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[tf.Variable]:
    """Broadcasts all variables at once, in place."""
    variables = [
        (
            getattr(variable, "value", variable)
            if not isinstance(variable, tf.Variable) and not hasattr(variable, "assign")
            else variable
        )
        for variable in variables
    ]
    tensors = _tensors(variables)
    base = name_for(name, "broadcast_variables", process_set)
    names = [f"{base}.{number}" for number in range(len(tensors))]
    results = _call(
        lambda arrays: _spread(arrays, names, root_rank, process_set),
        tensors,
        [tensor.dtype for tensor in tensors],
        [tensor.shape for tensor in tensors],
    )
    for variable, result in zip(variables, results):
        variable.assign(result)
    return variables


def alltoall(
    tensor: Value,
    splits: Value | None = None,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
    """Returns the received rows; with `splits` also the number of rows from each rank."""
    (tensor,) = _tensors([tensor])
    names = _names_of([tensor], name, "alltoall", process_set)
    rows_for = tf.convert_to_tensor(splits) if splits is not None else tf.zeros([0], tf.int32)
    if not rows_for.dtype.is_integer:
        raise ValueError(
            f"invalid splits of type {rows_for.dtype.name}: they must be integers, the number of"
            " rows for each rank"
        )
    rows_for = tf.cast(rows_for, tf.int32)

    @tf.custom_gradient
    def exchange(
        value: tf.Tensor, rows_for: tf.Tensor
    ) -> tuple[tuple[tf.Tensor, tf.Tensor], Callable[..., Any]]:
        came, rows = _call(
            lambda arrays: _exchange(arrays[0], arrays[1], names[0], process_set),
            [value, rows_for],
            [value.dtype, tf.int32],
            [_any_rows(value), tf.TensorShape([None])],
        )

        def gradient(upstream: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, None]:
            return alltoall(upstream, rows, process_set=process_set)[0], None

        return (came, rows), gradient

    came, rows = exchange(tensor, rows_for)
    return came if splits is None else (came, rows)


def grouped_reducescatter(
    tensors: Sequence[Value],
    device_dense: str = "",
    compression: AnyCompressor | None = None,
    op: Reduction | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[tf.Tensor]:
    op = operations.op_of(op, None)
    if op not in (Sum, Average):
        raise NotImplementedError(f"unsupported op {op} of reducescatter: use Sum or Average")
    if isinstance(compression, ErrorFeedbackCompressor):
        raise ValueError("unsupported compression of reducescatter: use none, fp16 or bf16")
    tensors = _tensors(tensors)
    names = _names_of(tensors, name, "reducescatter", process_set)
    pairs = [compression.compress(tensor) if compression else (tensor, None) for tensor in tensors]

    @tf.custom_gradient
    def scatter(*values: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
        results = _call(
            lambda arrays: _scatter(
                arrays, names, op, prescale_factor, postscale_factor, process_set
            ),
            list(values),
            [value.dtype for value in values],
            [_any_rows(value) for value in values],
        )

        def gradient(*upstream: tf.Tensor) -> list[tf.Tensor]:
            scale = prescale_factor * postscale_factor * (process_set.size() if op == Sum else 1)
            return grouped_allgather(
                [each * tf.cast(scale, each.dtype) for each in upstream], process_set=process_set
            )

        return results, gradient

    results = scatter(*[tensor for tensor, _ in pairs])
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    return [
        compression.decompress(result, context) if compression else result
        for result, (_, context) in zip(results, pairs)
    ]


def reducescatter(
    tensor: Value,
    device_dense: str = "",
    compression: AnyCompressor | None = None,
    op: Reduction | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> tf.Tensor:
    return grouped_reducescatter(
        [tensor],
        compression=compression,
        op=op,
        name=name,
        process_set=process_set,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
    )[0]


def join() -> int:
    return operations.join()


def barrier(process_set: ProcessSet = global_process_set) -> None:
    operations.barrier(process_set)


def rank_op(name: str | None = None) -> tf.Tensor:
    return tf.constant(basics.rank(), tf.int32, name=name)


def local_rank_op(name: str | None = None) -> tf.Tensor:
    return tf.constant(basics.local_rank(), tf.int32, name=name)


def size_op(process_set_id: int = 0, name: str | None = None) -> tf.Tensor:
    return tf.constant(basics.size(), tf.int32, name=name)


def local_size_op(name: str | None = None) -> tf.Tensor:
    return tf.constant(basics.local_size(), tf.int32, name=name)
