"""`import horovod.tensorflow.keras as hvd`, or `horovod.keras`: the interface of Horovod for Keras
3 over TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import keras as _keras
import numpy as _numpy

from horovod.common.compression import AnyCompressor as _AnyCompressor
from horovod.common.operations import Average as _Average
from horovod.common.operations import Reduction as _Reduction
from horovod.tensorflow import (
    Adasum,
    Average,
    Compression,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    Max,
    Min,
    ProcessSet,
    Product,
    Sum,
    add_process_set,
    allgather_object,
    barrier,
    broadcast_object,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    join,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    remove_process_set,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from horovod.tensorflow import functions as _functions
from horovod.tensorflow import mpi_ops as _operations
from horovod.tensorflow.keras import callbacks, elastic
from horovod.tensorflow.optimizer import DistributedOptimizer


def allreduce(
    value: _operations.Value,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: _Reduction | None = None,
    compression: _AnyCompressor = Compression.none,
    process_set: ProcessSet = global_process_set,
) -> _numpy.ndarray[Any, Any]:
    """Reduces a number or an array over all ranks, and returns an array."""
    op = op if op is not None or average is not None else _Average
    return _operations.allreduce(
        value,
        average,
        compression=compression,
        op=op,
        name=name,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        process_set=process_set,
    ).numpy()


def allgather(
    value: _operations.Value, name: str | None = None, process_set: ProcessSet = global_process_set
) -> _numpy.ndarray[Any, Any]:
    return _operations.allgather(value, name, process_set=process_set).numpy()


def broadcast(
    value: _operations.Value,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> _numpy.ndarray[Any, Any]:
    return _operations.broadcast(value, root_rank, name, process_set=process_set).numpy()


def reducescatter(
    value: _operations.Value,
    name: str | None = None,
    op: _Reduction | None = _Average,
    process_set: ProcessSet = global_process_set,
) -> _numpy.ndarray[Any, Any]:
    return _operations.reducescatter(value, op=op, name=name, process_set=process_set).numpy()


def broadcast_global_variables(root_rank: int) -> None:
    _functions.broadcast_global_variables(root_rank)


def load_model(
    filepath: str,
    custom_optimizers: Iterable[type] | None = None,
    custom_objects: Mapping[str, Any] | None = None,
    compression: _AnyCompressor = Compression.none,
) -> _keras.Model:
    """Loads a saved model, and replaces its optimizer by a distributed one."""
    names = {each.__name__: each for each in custom_optimizers or []}
    model = _keras.models.load_model(filepath, custom_objects={**names, **(custom_objects or {})})
    if model.optimizer is not None:
        model.optimizer = DistributedOptimizer(model.optimizer, compression=compression)
    return model


__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DistributedOptimizer",
    "HorovodInternalError",
    "HostsUpdatedInterrupt",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "add_process_set",
    "allgather",
    "allgather_object",
    "allreduce",
    "barrier",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_object",
    "callbacks",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "elastic",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "load_model",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "reducescatter",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]
