"""`import horovod.tensorflow.keras as hvd`, which is also `horovod.keras`:
for Keras 3 over TensorFlow."""

from horovod.common.operations import Average as _Average
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
from horovod.tensorflow import mpi_ops as _operations
from horovod.tensorflow import functions as _functions
from horovod.tensorflow.keras import callbacks, elastic
from horovod.tensorflow.optimizer import DistributedOptimizer

import keras as _keras


def allreduce(
    value,
    name=None,
    average=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    op=None,
    compression=Compression.none,
    process_set=global_process_set,
):
    """Of a number or an array -> an array."""
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


def allgather(value, name=None, process_set=global_process_set):
    return _operations.allgather(value, name, process_set=process_set).numpy()


def broadcast(value, root_rank, name=None, process_set=global_process_set):
    return _operations.broadcast(value, root_rank, name, process_set=process_set).numpy()


def reducescatter(value, name=None, op=_Average, process_set=global_process_set):
    return _operations.reducescatter(value, op=op, name=name, process_set=process_set).numpy()


def broadcast_global_variables(root_rank):
    _functions.broadcast_global_variables(root_rank)


def load_model(filepath, custom_optimizers=None, custom_objects=None, compression=Compression.none):
    """A saved model, with its optimizer made a distributed one."""
    names = {each.__name__: each for each in custom_optimizers or []}
    model = _keras.models.load_model(filepath, custom_objects={**names, **(custom_objects or {})})
    if model.optimizer is not None:
        model.optimizer = DistributedOptimizer(model.optimizer, compression=compression)
    return model


__all__ = [name for name in dir() if not name.startswith("_")]
