"""`import smdistributed.dataparallel.tensorflow as sdp`: the library's interface for TensorFlow 2,
which is Horovod's with a few other names. It has the ranks of horovod.tensorflow."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("horovod") is None:
    raise ImportError(
        "smdistributed.dataparallel.tensorflow needs horovod.tensorflow, which is not installed:"
        " pip install ./sdk/python/trainyard-horovod (in a checkout of Trainyard), or the extra"
        " trainyard-smddp[tensorflow] where the wheels of both are found"
    )

import tensorflow as tf
from horovod.common.basics import init, local_rank, local_size, rank, shutdown, size
from horovod.common.compression import AnyCompressor
from horovod.common.operations import Average, Max, Min, Reduction, Sum
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.functions import (
    DistributedGradientTape,
    broadcast_global_variables,
    broadcast_variables,
)
from horovod.tensorflow.mpi_ops import allreduce as _allreduce
from horovod.tensorflow.mpi_ops import broadcast
from horovod.tensorflow.optimizer import DistributedOptimizer

__all__ = [
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "ReduceOp",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_variables",
    "init",
    "local_rank",
    "local_size",
    "oob_allreduce",
    "rank",
    "shutdown",
    "size",
]


class ReduceOp:
    AVERAGE, SUM, MIN, MAX = Average, Sum, Min, Max


def allreduce(
    tensor: tf.Tensor,
    param_index: int,
    num_params: int,
    compression: AnyCompressor = Compression.none,
    op: Reduction = ReduceOp.AVERAGE,
) -> tf.Tensor:
    """Reduces a gradient. Ranks match it by `param_index` and `num_params`."""
    if not 0 <= param_index < num_params:
        raise ValueError(
            f"allreduce: invalid param_index {param_index}: num_params is {num_params}"
        )
    return _allreduce(
        tensor, compression=compression, op=op, name=f"parameter.{param_index}.of.{num_params}"
    )


def oob_allreduce(
    tensor: tf.Tensor,
    compression: AnyCompressor = Compression.none,
    op: Reduction = ReduceOp.AVERAGE,
) -> tf.Tensor:
    """Reduces a value that is not a gradient, such as a loss or a metric."""
    return _allreduce(tensor, compression=compression, op=op)
