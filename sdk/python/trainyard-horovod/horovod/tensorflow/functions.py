"""Broadcasts variables and objects to all ranks, and reduces gradients."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Union

import numpy
import tensorflow as tf

from horovod.common import basics, objects
from horovod.common.compression import AnyCompressor, ErrorFeedbackCompressor
from horovod.common.operations import Average, Reduction
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.mpi_ops import allgather, broadcast, broadcast_, grouped_allreduce

Object = Any  # any object that can be pickled
Nested = Any  # any structure that tf.nest supports
Gradient = Union[tf.Tensor, tf.IndexedSlices]


def broadcast_variables(
    variables: Iterable[tf.Variable],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> list[tf.Variable] | None:
    """Overwrites the variables with the root's."""
    variables = list(variables)
    return broadcast_(variables, root_rank, process_set=process_set) if variables else None


def broadcast_global_variables(root_rank: int) -> NoReturn:
    raise RuntimeError(
        "hvd.broadcast_global_variables() does not support eager execution. Please use"
        " `hvd.broadcast_variables(<model/optimizer variables>)` instead."
    )


def broadcast_object(
    obj: Object,
    root_rank: int = 0,
    session: object = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Object:
    name = name or "broadcast_object"
    mine = basics.rank() == root_rank
    data = (
        numpy.frombuffer(objects.dumps(obj), numpy.uint8) if mine else numpy.zeros(0, numpy.uint8)
    )
    length = int(
        broadcast(
            numpy.array([len(data)], numpy.int64),
            root_rank,
            f"{name}.length",
            process_set=process_set,
        )[0]
    )
    data = broadcast(
        data if mine else numpy.zeros(length, numpy.uint8),
        root_rank,
        f"{name}.data",
        process_set=process_set,
    )
    return obj if mine else objects.loads(data.numpy().tobytes())


def broadcast_object_fn(
    root_rank: int = 0,
    session: object = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Object], Object]:
    return lambda obj: broadcast_object(obj, root_rank, session, name, process_set)


def allgather_object(
    obj: Object,
    session: object = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Object]:
    name = name or "allgather_object"
    data = numpy.frombuffer(objects.dumps(obj), numpy.uint8)
    lengths = (
        allgather(numpy.array([len(data)], numpy.int64), f"{name}.lengths", process_set=process_set)
        .numpy()
        .tolist()
    )
    everything = allgather(data, f"{name}.data", process_set=process_set).numpy().tobytes()
    ends = numpy.cumsum(lengths)
    return [objects.loads(everything[end - length : end]) for end, length in zip(ends, lengths)]


def _divided(gradient: Gradient, ranks: int) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / ranks, gradient.indices, gradient.dense_shape)
    return gradient / ranks


def reduce_gradients(
    gradients: Iterable[Gradient | None],
    compression: AnyCompressor = Compression.none,
    op: Reduction = Average,
    gradient_predivide_factor: float = 1.0,
    sparse_as_dense: bool = False,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
    local: Collection[int] = (),
) -> list[Gradient | None]:
    """Reduces the gradients of all ranks in one exchange; None stays None. `local` has the indices
    of gradients that are not reduced."""
    before, after = (
        (1.0 / gradient_predivide_factor, gradient_predivide_factor)
        if op == Average and gradient_predivide_factor != 1.0
        else (1.0, 1.0)
    )
    results = list(gradients)
    dense, places = [], []
    for place, gradient in enumerate(results):
        if gradient is None or place in local:
            if gradient is not None and scale_local_gradients and op == Average:
                results[place] = _divided(gradient, process_set.size())
            continue
        if isinstance(gradient, tf.IndexedSlices):
            if not sparse_as_dense:
                results[place] = grouped_allreduce(
                    [gradient],
                    compression=compression,
                    op=op,
                    name=f"{name}.sparse.{place}" if name else None,
                    process_set=process_set,
                )[0]
                continue
            gradient = tf.convert_to_tensor(gradient)
        dense.append(gradient)
        places.append(place)
    reduced = grouped_allreduce(
        dense,
        compression=compression,
        op=op,
        prescale_factor=before,
        postscale_factor=after,
        name=name,
        process_set=process_set,
    )
    for place, gradient in zip(places, reduced):
        results[place] = gradient
    return results


if TYPE_CHECKING:
    from tensorflow import GradientTape as _GradientTape
else:
    _GradientTape = object  # the class of the user's tape is added as a base


class _TapeNames:
    """Names the exchanges of tapes by their variables: each step makes a new tape, and compression
    stores its error by name. Ranks number them in the order of their first steps."""

    def __init__(self) -> None:
        self._generation: int | None = None
        # keeps the objects alive, so their ids stay unique
        self._known: dict[tuple[int, ...], tuple[str, list[Any]]] = {}

    def of(self, sources: list[Any]) -> str:
        if self._generation != basics.generation():
            self._generation, self._known = basics.generation(), {}
        name = f"DistributedGradientTape.{len(self._known)}"
        return self._known.setdefault(tuple(map(id, sources)), (name, sources))[0]


_tape_names = _TapeNames()


class _Tape(_GradientTape):
    """A tf.GradientTape whose gradients are reduced over all ranks."""

    def register_local_source(self, source: tf.Variable) -> None:
        """Excludes a source: its gradient is not reduced."""
        self._local_sources.append(source)

    def gradient(
        self, target: Nested, sources: Nested, output_gradients: Nested = None, **more: Any
    ) -> Nested:
        gradients = super().gradient(target, sources, output_gradients, **more)
        if self._process_set.size() == 1:
            return gradients
        flat, variables = tf.nest.flatten(gradients), tf.nest.flatten(sources)
        local = {
            place
            for place, source in enumerate(variables)
            if any(source is each for each in self._local_sources)
        }
        name = None
        if isinstance(self._how["compression"], ErrorFeedbackCompressor):
            name = _tape_names.of(variables)
        return tf.nest.pack_sequence_as(
            gradients,
            reduce_gradients(
                flat, name=name, process_set=self._process_set, local=local, **self._how
            ),
        )


def DistributedGradientTape(
    gradtape: tf.GradientTape,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    op: Reduction = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: object = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> tf.GradientTape:
    """Wraps a tape: gradient() returns the gradients of all ranks."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    made: type[_Tape] = type(gradtape.__class__.__name__, (_Tape, gradtape.__class__), {})
    tape = made.__new__(made)
    tape.__dict__.update(gradtape.__dict__)
    tape._process_set, tape._local_sources = process_set, []
    tape._how = {
        "compression": compression,
        "op": op,
        "gradient_predivide_factor": gradient_predivide_factor,
        "sparse_as_dense": sparse_as_dense,
        "scale_local_gradients": scale_local_gradients,
    }
    return tape
