"""Has the program of the ranks of test_horovod_keras.py that checks priorities of TensorFlow's
tensors."""

import faulthandler
import json
import os
import sys
import unittest.mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import horovod.tensorflow as hvd
import numpy
import tensorflow as tf
from horovod.common import operations


def priorities() -> str:
    """Checks that every request of an operation and of its gradient has its priority, eagerly and
    in a tf.function."""
    hvd.init()
    size = hvd.size()

    def reduced(tensor: tf.Tensor) -> tf.Tensor:
        return hvd.allreduce(tensor, op=hvd.Sum, priority=7)

    def grouped(tensor: tf.Tensor) -> list[tf.Tensor]:
        return hvd.grouped_allreduce([tensor, tensor * 2], op=hvd.Sum, priority=-3)

    def gathered(tensor: tf.Tensor) -> tf.Tensor:
        return hvd.allgather(tensor, priority=5)

    def sparse(tensor: tf.Tensor) -> tf.Tensor:
        slices = tf.IndexedSlices(tf.expand_dims(tensor, 0), tf.constant([0]), tf.constant([1, 4]))
        return tf.convert_to_tensor(hvd.allreduce(slices, op=hvd.Sum, priority=9))

    def gradient(tensor: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(tensor)
            output = reduced(tensor)
        return tape.gradient(output, tensor)

    def plain(tensor: tf.Tensor) -> tf.Tensor:
        return hvd.allreduce(tensor, op=hvd.Sum)

    ones = tf.ones([4])
    with unittest.mock.patch(
        "horovod.tensorflow.mpi_ops.request", wraps=operations.request
    ) as requested:
        for wrap in (lambda function: function, tf.function):
            for function, expected, result in (
                (plain, [0], numpy.full(4, size)),
                (reduced, [7], numpy.full(4, size)),
                (grouped, [-3, -3], [numpy.full(4, size), numpy.full(4, 2 * size)]),
                (gathered, [5], numpy.ones(4 * size)),
                (sparse, [9, 9], numpy.full((1, 4), size)),
                (gradient, [7, 7], numpy.full(4, size)),
            ):
                requested.reset_mock()
                came = wrap(function)(ones)
                assert numpy.allclose(came, result), (function, came)
                given = [call.kwargs.get("priority", 0) for call in requested.call_args_list]
                assert given == expected, (function, given)
    return "good"


if __name__ == "__main__":
    faulthandler.dump_traceback_later(110, exit=True)
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
