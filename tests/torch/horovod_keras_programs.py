"""Has the programs of the ranks of test_horovod_keras.py, written like users' scripts of Horovod
for TensorFlow and Keras."""

import concurrent.futures
import faulthandler
import hashlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import horovod.tensorflow as hvd
import keras
import numpy
import smdistributed.dataparallel.tensorflow as sdp
import tensorflow as tf


def equal(tensor: tf.Tensor, expected: object) -> None:
    assert numpy.allclose(tensor.numpy() if hasattr(tensor, "numpy") else tensor, expected), (
        tensor,
        expected,
    )


def operations() -> str:
    """Checks the operations eagerly and in a tf.function, with gradients."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    total, last = sum(range(1, size + 1)), size - 1
    for traced in (False, True):
        wrap = tf.function if traced else lambda function: function
        for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int32, tf.int64):
            tensor = tf.cast(tf.fill([2, 3], rank + 1), dtype)
            for op, expected in ((hvd.Sum, total), (hvd.Max, size), (hvd.Min, 1)):
                result = wrap(lambda t: hvd.allreduce(t, op=op))(tensor)
                assert result.dtype == dtype and result.shape == (2, 3)
                equal(tf.cast(result, tf.float32), numpy.full((2, 3), expected))
        equal(
            wrap(lambda t: hvd.allreduce(t))(tf.fill([4], float(rank))),
            numpy.full(4, (size - 1) / 2),
        )
        equal(
            wrap(lambda t: hvd.allgather(t))(tf.fill([rank + 1, 2], rank)),
            numpy.concatenate([numpy.full((each + 1, 2), each) for each in range(size)]),
        )
        equal(wrap(lambda t: hvd.broadcast(t, last))(tf.fill([3], rank)), numpy.full(3, last))
        came, rows = wrap(lambda t, s: hvd.alltoall(t, s))(
            tf.range(size * (rank + 1)), tf.fill([size], rank + 1)
        )
        equal(rows, numpy.arange(1, size + 1))
        assert came.shape[0] == total
        equal(
            wrap(lambda t: hvd.reducescatter(t, op=hvd.Sum))(tf.ones([2 * size, 2])),
            numpy.full((2, 2), size),
        )
        equal(wrap(lambda t: hvd.allreduce(t, op=hvd.Adasum))(tf.ones([5])), numpy.ones(5))
        equal(
            wrap(lambda t: hvd.allreduce(t, compression=hvd.Compression.fp16))(tf.fill([2], 1.5)),
            numpy.full(2, 1.5),
        )
        one, two = wrap(lambda a, b: hvd.grouped_allreduce([a, b], op=hvd.Sum))(
            tf.ones([2]), tf.ones([3]) * 2
        )
        equal(one, numpy.full(2, size))
        equal(two, numpy.full(3, 2 * size))

        def gradient(function: Callable[[tf.Tensor], tf.Tensor], tensor: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                tape.watch(tensor)
                output = function(tensor)
            return tape.gradient(output, tensor)

        equal(
            wrap(lambda t: gradient(lambda x: hvd.allreduce(x, op=hvd.Sum), t))(tf.ones([3])),
            numpy.full(3, size),
        )
        equal(
            wrap(lambda t: gradient(lambda x: hvd.broadcast(x, 0), t))(tf.ones([3])),
            numpy.full(3, float(rank == 0)),
        )
        equal(
            wrap(lambda t: gradient(lambda x: hvd.allgather(x), t))(tf.ones([rank + 1, 2])),
            numpy.ones((rank + 1, 2)),
        )
        equal(
            wrap(lambda t: gradient(lambda x: hvd.reducescatter(x, op=hvd.Sum), t))(
                tf.ones([2 * size])
            ),
            numpy.full(2 * size, size),
        )
        equal(
            wrap(lambda t: gradient(lambda x: hvd.alltoall(x), t))(tf.ones([2 * size])),
            numpy.ones(2 * size),
        )
    slices = hvd.allreduce(
        tf.IndexedSlices(tf.ones([1, 2]), tf.constant([rank]), tf.constant([size, 2])), op=hvd.Sum
    )
    equal(tf.convert_to_tensor(slices), numpy.ones((size, 2)))
    variables = [tf.Variable(tf.fill([2], float(rank))), tf.Variable(rank)]
    hvd.broadcast_variables(variables, root_rank=last)
    equal(variables[0], [last, last])
    equal(variables[1], last)
    assert hvd.broadcast_object({"rank": rank}, last) == {"rank": last}
    assert hvd.allgather_object("x" * rank) == ["x" * each for each in range(size)]
    if size > 1:
        odd = tf.ones([2 + rank])
        failed = hvd.HorovodInternalError
        refused(failed, lambda: hvd.allreduce(odd, name="odd"), "odd", "shape")
    hvd.join()
    return "good"


FACTOR = 0.1915194503788923  # neither exact in float32 nor in half


def scaled(tensor: tf.Tensor) -> tf.Tensor:
    """Checks scaling: integers in float64 and then truncated, halves in float32; the factor has
    that type."""
    within = (
        tf.float64
        if tensor.dtype.is_integer
        else tf.float32
        if tensor.dtype.size == 2
        else tensor.dtype
    )
    return tf.cast(tf.cast(tensor, within) * tf.constant(FACTOR, within), tensor.dtype)


def refused(kinds: type[BaseException], function: Callable[[], object], *words: str) -> None:
    try:
        function()
    except kinds as failure:
        assert all(each in str(failure) for each in words), failure
        return
    raise AssertionError("this must be refused")


def semantics() -> str:
    """Checks the semantics that Horovod's own tests show."""
    import horovod.keras as hk

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    for traced in (False, True):
        wrap = tf.function if traced else lambda function: function
        for dtype in (
            *(tf.float64, tf.float32, tf.float16, tf.bfloat16),
            *(tf.int64, tf.int32, tf.int16, tf.int8, tf.uint8),
        ):
            numbers = numpy.arange(8 * size * size).reshape(4 * size, 2 * size) % 100
            # An element is one rank's alone, so that sums are exact in every type.
            owned = numpy.arange(numbers.size).reshape(numbers.shape) % size == rank
            expected = scaled(tf.cast(numbers, dtype))
            mine = tf.cast(numbers * owned, dtype)
            for when in ("prescale_factor", "postscale_factor"):
                how: dict[str, Any] = {"op": hvd.Sum, when: FACTOR}
                results = wrap(lambda t: hvd.grouped_allreduce([t, t[:1]], **how))(mine)
                part = wrap(lambda t: hvd.reducescatter(t, **how))(mine)
                for result, wanted in (
                    (wrap(lambda t: hvd.allreduce(t, **how))(mine), expected),
                    (results[0], expected),
                    (results[1], expected[:1]),
                    (part, expected[4 * rank : 4 * rank + 4]),
                    (tf.constant(hk.allreduce(mine, **how)), expected),
                ):
                    assert result.dtype == dtype and tf.reduce_all(result == wanted), (dtype, when)
    for op in (hvd.Adasum, hvd.Min):
        refused(RuntimeError, lambda: hvd.reducescatter(tf.ones([size]), op=op), op.name)
        refused(RuntimeError, lambda: hk.reducescatter(tf.ones([size]), op=op), op.name)
    for splits in (tf.ones([size]), [1.0] * size, numpy.ones(size)):
        refused(ValueError, lambda: hvd.alltoall(tf.ones([size]), splits), "integers")
    # What moves rows fails while a rank has joined, on all others, and nothing ends by that.
    for first in range(size) if size > 1 else []:
        root = (first + 1) % size
        operations: list[Callable[[], object]] = [
            lambda: hvd.allgather(tf.ones([2]), name="joining"),
            lambda: hvd.grouped_allgather([tf.ones([2])] * 2, name="joining"),
            lambda: hvd.broadcast(tf.ones([2]), root, name="joining"),
            lambda: hvd.broadcast(tf.ones([2]), first, name="joining.root"),
            lambda: hvd.alltoall(tf.ones([size]), name="joining"),
            lambda: hvd.reducescatter(tf.ones([size]), name="joining"),
            lambda: hvd.grouped_reducescatter([tf.ones([size])] * 2, name="joining"),
            lambda: hk.allgather(numpy.ones(2), name="joining.too"),
            lambda: hk.broadcast(numpy.ones(2), root, name="joining.too"),
        ]
        for operation in operations if first > 0 else []:
            operation()  # known to all ranks before
        if rank != first:
            for operation in operations:
                refused(hvd.HorovodInternalError, operation, f"rank {first} has joined")
            equal(hvd.allreduce(tf.ones([4]), op=hvd.Sum, name="sum"), numpy.full(4, size - 1))
            # Averages of integers are cut, also those below zero.
            cut = -(7 * (size - 1) // size)
            equal(hvd.allreduce(tf.fill([4], -7), name="odd"), numpy.full(4, cut))
        last = hvd.join()
        assert last != first and hvd.allgather_object(last) == [last] * size
    assert size > 1 or hvd.join() == 0
    return "good"


def duplicates() -> str:
    """Checks that a second request with an outstanding name raises at once, without side effects:
    a call waits for its result, so that the two come from two threads."""
    import horovod.keras as hk

    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    tensor = tf.ones([size, 3])
    operations: list[Callable[[], object]] = [
        lambda: hvd.allreduce(tensor, name="twice"),
        lambda: hvd.grouped_allreduce([tensor, tensor], name="twice"),
        lambda: hvd.allgather(tensor, name="twice"),
        lambda: hvd.grouped_allgather([tensor, tensor], name="twice"),
        lambda: hvd.broadcast(tensor, 0, name="twice"),
        lambda: hvd.alltoall(tensor, name="twice"),
        lambda: hvd.reducescatter(tensor, name="twice"),
        lambda: hvd.grouped_reducescatter([tensor, tensor], name="twice"),
        lambda: hk.allreduce(tensor, name="twice"),
        lambda: hk.allgather(tensor, name="twice"),
        lambda: hk.broadcast(tensor, 0, name="twice"),
        lambda: hk.reducescatter(tensor, name="twice"),
    ]
    # With one rank, the first may be done before the second begins.
    for operation in operations if size > 1 else []:
        for holder in (0, size - 1):
            if rank != holder:
                hvd.barrier()  # until here the holder's request waits for this rank's
                operation()
                continue
            with concurrent.futures.ThreadPoolExecutor(2) as threads:
                calls = [threads.submit(operation) for _ in range(2)]
                ended, outstanding = concurrent.futures.wait(
                    calls, timeout=60, return_when=concurrent.futures.FIRST_COMPLETED
                )
                hvd.barrier()
                assert len(ended) == len(outstanding) == 1, (ended, outstanding)
                refused(ValueError, ended.pop().result, "submitted already")
                outstanding.pop().result()
    return "good"


def sparse_gradients() -> str:
    """Checks tf.IndexedSlices of different lengths, by a tape and by an optimizer, also where they
    are reduced as dense tensors: as one process with the average, or the sum, of all."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    rate = 0.05
    rows = [numpy.array([[each, 4, 5], [4, 3, 9]][: 1 + each % 2]) for each in range(size)]
    mine = tf.constant(rows[rank], tf.int32)
    initial = numpy.random.default_rng(1).normal(size=(10, 3)).astype("float32")

    def gradient_of(table: numpy.ndarray, used: numpy.ndarray) -> numpy.ndarray:
        """Returns the gradient of the sum of the squares of some rows."""
        gradient = numpy.zeros_like(table)
        numpy.add.at(gradient, used.ravel(), 2 * table[used.ravel()])
        return gradient

    def embedding() -> keras.Model:
        model = keras.Sequential([keras.Input((3,), dtype="int32"), keras.layers.Embedding(10, 3)])
        model.set_weights([initial])
        return model

    def trained(by_tape: bool, traced: bool, **how: Any) -> numpy.ndarray:
        """Returns the table after three steps."""
        model = embedding()
        optimizer = keras.optimizers.SGD(rate)
        if not by_tape:
            optimizer = hvd.DistributedOptimizer(optimizer, **how)
        optimizer.build(model.trainable_variables)
        dense = by_tape and how["sparse_as_dense"] and size > 1

        def step() -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(mine) ** 2)
            if by_tape:
                tape = hvd.DistributedGradientTape(tape, **how)
            (gradient,) = tape.gradient(loss, model.trainable_variables)
            assert isinstance(gradient, tf.IndexedSlices) != dense, gradient
            optimizer.apply_gradients([(gradient, model.trainable_variables[0])])

        called = tf.function(step, autograph=False) if traced else step
        for _ in range(3):
            called()
        return model.get_weights()[0]

    for op, share in ((hvd.Average, 1 / size), (hvd.Sum, 1.0)):
        alone = initial.copy()
        for _ in range(3):
            alone -= rate * share * sum(gradient_of(alone, used) for used in rows)
        for sparse_as_dense in (False, True):
            for by_tape in (False, True):
                for traced in (False, True):
                    table = trained(by_tape, traced, op=op, sparse_as_dense=sparse_as_dense)
                    assert numpy.allclose(table, alone, atol=1e-5), (
                        *(op, sparse_as_dense, by_tape, traced),
                        abs(table - alone).max(),
                    )

    # The gradient of a source of this rank alone, and of one that the loss does not use.
    model, unused = embedding(), tf.Variable([1.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(mine) ** 2)
    tape = hvd.DistributedGradientTape(tape)
    tape.register_local_source(model.trainable_variables[0])
    own, none = tape.gradient(loss, [model.trainable_variables[0], unused])
    equal(tf.convert_to_tensor(own), gradient_of(initial, rows[rank]) / size)
    assert none is None
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([rank]), tf.constant([size, 2]))
    refused(
        NotImplementedError, lambda: hvd.allreduce(slices, op=hvd.Adasum), "sparse_as_dense=True"
    )
    return "good"


def absent_states() -> str:
    """Checks broadcasts of state that some or all ranks do not have before the first step."""
    import horovod.keras as hk

    hvd.init()
    rank = hvd.rank()

    def same(arrays: list[numpy.ndarray]) -> bool:
        """Checks that all ranks have equal arrays."""
        everyone = hvd.allgather_object([numpy.asarray(each).tolist() for each in arrays])
        return all(each == everyone[0] for each in everyone)

    assert hvd.broadcast_object(None if rank == 0 else {"rank": rank}, 0) is None
    assert hvd.broadcast_object({"rank": 0} if rank == 0 else None, 0) == {"rank": 0}
    assert hvd.broadcast_variables([], root_rank=0) is None
    x = numpy.random.default_rng(rank).normal(size=(8, 4)).astype("float32")
    for make in (
        lambda rate: keras.optimizers.SGD(rate, momentum=0.9, nesterov=True),
        lambda rate: keras.optimizers.SGD(rate),
        lambda rate: keras.optimizers.Adam(rate),
    ):
        # No rank has a state: the options become the root's, and the first step makes the state.
        model = net(rank)
        optimizer = hvd.DistributedOptimizer(make(0.01 * (1 + rank)))
        hvd.broadcast_variables(model.variables, root_rank=0)
        hvd.broadcast_variables(optimizer.variables, root_rank=0)
        assert abs(float(optimizer.learning_rate.numpy()) - 0.01) < 1e-6
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        assert same(model.get_weights())
        assert same([each.numpy() for each in optimizer.variables])

        # The root alone has a state: the callback gives it to all.
        model = net(rank)
        model.compile(optimizer=hvd.DistributedOptimizer(make(0.01)), loss="mse")
        if rank == 0:
            model.optimizer.build(model.trainable_variables)
            for each in model.optimizer.variables:
                each.assign(each.numpy() + 1)
        root = [each.numpy() for each in model.optimizer.variables] if rank == 0 else None
        callback = hk.callbacks.BroadcastGlobalVariablesCallback(0)
        callback.set_model(model)
        callback.on_train_begin()
        root = hvd.broadcast_object(root, 0)
        ours = [each.numpy() for each in model.optimizer.variables]
        assert len(ours) == len(root)
        assert all(numpy.array_equal(one, two) for one, two in zip(ours, root))
        assert same(model.get_weights())

    # A model without an optimizer, and a value that the root does not have.
    state = hvd.elastic.TensorFlowKerasState(net(rank), best=None if rank == 0 else 1.0, epoch=rank)
    state.sync()
    assert state.best is None and state.epoch == 0 and same(state.model.get_weights())
    return "good"


def compressed() -> list[float]:
    """Checks int8 and low_rank: the error of a step is added later, and a regression is learned
    with a tape and with an optimizer. Returns the remaining fractions of their losses."""
    hvd.init()
    rank, left = hvd.rank(), []
    tensor = numpy.random.default_rng(rank).normal(size=(12, 8)).astype("float32")
    exact = hvd.allreduce(tensor).numpy()
    for how, compression in (
        ("int8", hvd.Compression.int8),
        ("low_rank", hvd.Compression.low_rank(2)),
    ):
        came = [hvd.allreduce(tensor, name=how, compression=compression).numpy() for _ in range(60)]
        once, lately = (abs(sum(part) / len(part) - exact).max() for part in (came[:1], came))
        assert 0 < lately < once / 4, (how, once, lately)
        refused(ValueError, lambda: hvd.allreduce(tensor, compression=compression), "name")
        refused(
            ValueError, lambda: hvd.reducescatter(tensor, compression=compression), "reducescatter"
        )
        for by_tape in (True, False):
            model = keras.Sequential([keras.Input((24,)), keras.layers.Dense(16)])
            hvd.broadcast_variables(model.variables, root_rank=0)
            optimizer = keras.optimizers.SGD(0.02)
            if not by_tape:
                optimizer = hvd.DistributedOptimizer(optimizer, compression=compression)
            wanted = numpy.random.default_rng(99).normal(size=(24, 16)).astype("float32")
            losses = []
            for step in range(150):
                x = numpy.random.default_rng([step, rank]).normal(size=(32, 24)).astype("float32")
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.reduce_sum((model(x) - x @ wanted) ** 2, 1))
                if by_tape:
                    tape = hvd.DistributedGradientTape(tape, compression=compression)
                variables = model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                losses.append(float(loss))
            left.append(losses[-1] / losses[0])
            weights = hvd.allgather(tf.expand_dims(model.variables[0], 0)).numpy()
            assert (weights == weights[0]).all(), (how, by_tape)
    return left


def data(step: int, ranks: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    generator = numpy.random.default_rng(step)
    return generator.normal(size=(ranks, 8, 4)).astype("float32"), generator.normal(
        size=(ranks, 8, 1)
    ).astype("float32")


def net(seed: int) -> keras.Model:
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)]
    )


def tape(named: str = "hvd") -> float:
    """Runs a custom training loop with DistributedGradientTape; returns the largest difference
    from one process with the whole batch."""
    library: Any = {"hvd": hvd, "sdp": sdp}[named]
    library.init()
    rank, size = library.rank(), library.size()
    model, alone = net(rank), net(0)
    optimizer, reference = keras.optimizers.SGD(0.1), keras.optimizers.SGD(0.1)
    library.broadcast_variables(model.variables, root_rank=0)

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> None:
        with tf.GradientTape() as ours:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        ours = library.DistributedGradientTape(ours)
        optimizer.apply_gradients(
            zip(ours.gradient(loss, model.trainable_variables), model.trainable_variables)
        )

    for number in range(5):
        xs, ys = data(number, size)
        step(xs[rank], ys[rank])
        with tf.GradientTape() as whole:
            loss = tf.reduce_mean((alone(xs.reshape(-1, 4)) - ys.reshape(-1, 1)) ** 2)
        reference.apply_gradients(
            zip(whole.gradient(loss, alone.trainable_variables), alone.trainable_variables)
        )
    return max(
        float(abs(one - two).max()) for one, two in zip(model.get_weights(), alone.get_weights())
    )


def data_parallel() -> str:
    """Checks the names of SageMaker's library in addition to Horovod's."""
    sdp.init()
    rank, size = sdp.rank(), sdp.size()
    for index in range(4):
        gradient = tf.fill([index + 1], float(rank + index))
        equal(
            sdp.allreduce(gradient, index, 4, compression=sdp.Compression.fp16),
            numpy.full(index + 1, index + (size - 1) / 2),
        )
    equal(sdp.oob_allreduce(tf.constant(float(rank))), (size - 1) / 2)
    for op, expected in (
        (sdp.ReduceOp.SUM, size * (size - 1) / 2),
        (sdp.ReduceOp.MIN, 0),
        (sdp.ReduceOp.MAX, size - 1),
    ):
        equal(sdp.oob_allreduce(tf.constant(float(rank)), op=op), expected)
    equal(sdp.broadcast(tf.constant([float(rank)]), size - 1), [size - 1])
    try:
        sdp.allreduce(tf.ones(1), 4, 4)
    except ValueError as error:
        assert "invalid param_index 4" in str(error)
        return "good"
    return "took a parameter that is none"


def fit(passes_text: str = "1") -> dict[str, Any]:
    """Runs model.fit() with all callbacks; returns the values that all ranks must have, and the
    difference from one process."""
    import horovod.keras as hk

    hk.init()
    rank, size, passes = hk.rank(), hk.size(), int(passes_text)
    model, alone = net(rank), net(0)
    # The rate while a warm-up continues is known: (1/size) .. 1 of it.
    optimizer = hk.DistributedOptimizer(
        keras.optimizers.SGD(0.1),
        backward_passes_per_step=passes,
        average_aggregated_gradients=True,
    )
    assert isinstance(optimizer, keras.optimizers.SGD)
    model.compile(optimizer=optimizer, loss="mse")
    alone.compile(
        optimizer=keras.optimizers.SGD(
            0.1, gradient_accumulation_steps=passes if passes > 1 else None
        ),
        loss="mse",
    )
    batches = [data(number, size) for number in range(6)]
    mine = tf.data.Dataset.from_tensor_slices(
        (numpy.stack([x[rank] for x, _ in batches]), numpy.stack([y[rank] for _, y in batches]))
    )
    whole = tf.data.Dataset.from_tensor_slices(
        (
            numpy.stack([x.reshape(-1, 4) for x, _ in batches]),
            numpy.stack([y.reshape(-1, 1) for _, y in batches]),
        )
    )
    warmup = hk.callbacks.LearningRateWarmupCallback(
        initial_lr=0.1, warmup_epochs=2, steps_per_epoch=6
    )
    after = hk.callbacks.LearningRateScheduleCallback(initial_lr=0.1, multiplier=0.5, start_epoch=2)
    history = model.fit(
        mine,
        epochs=3,
        verbose=0,
        callbacks=[
            hk.callbacks.BroadcastGlobalVariablesCallback(0),
            hk.callbacks.MetricAverageCallback(),
            warmup,
            after,
        ],
    )

    class Rates(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
            epoch = self.epoch + (batch + 1) / 6
            self.model.optimizer.learning_rate = (
                0.05 if self.epoch >= 2 else 0.1 / size * (epoch * (size - 1) / 2 + 1)
            )

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            self.epoch = epoch

    alone.fit(whole, epochs=3, verbose=0, callbacks=[Rates()])
    digest = hashlib.sha256(b"".join(each.tobytes() for each in model.get_weights())).hexdigest()
    return {
        "digest": digest,
        "loss": history.history["loss"],
        "rate": float(model.optimizer.learning_rate.numpy()),
        "apart": max(
            float(abs(one - two).max())
            for one, two in zip(model.get_weights(), alone.get_weights())
        ),
    }


def states() -> str:
    """Checks that elastic states are saved, restored and synced."""
    hvd.init()
    rank = hvd.rank()
    model = net(rank)
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam(0.1)), loss="mse")
    state = hvd.elastic.TensorFlowKerasState(model, epoch=rank, batch=0)
    saved = [each.copy() for each in model.get_weights()]
    model.set_weights([each + 1 for each in saved])
    state.epoch = 7
    state.restore()
    assert state.epoch == rank and all(
        numpy.array_equal(one, two) for one, two in zip(saved, model.get_weights())
    )
    state.sync()
    assert state.epoch == 0
    everyone = hvd.allgather_object([each.tolist() for each in model.get_weights()])
    assert all(each == everyone[0] for each in everyone)

    @hvd.elastic.run
    def train(state: hvd.elastic.TensorFlowKerasState) -> int:
        state.epoch += 1
        state.commit()
        return state.epoch

    assert train(state) == 1
    return "good"


if __name__ == "__main__":
    faulthandler.dump_traceback_later(110, exit=True)
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
