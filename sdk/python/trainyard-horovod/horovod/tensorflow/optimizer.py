"""Keras optimizers that reduce gradients over ranks before they are applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from horovod.common import basics
from horovod.common.compression import AnyCompressor
from horovod.common.operations import Adasum, Average, Reduction
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.tensorflow.compression import Compression
from horovod.tensorflow.functions import Gradient, reduce_gradients

if TYPE_CHECKING:
    import keras
    from keras.optimizers import Optimizer as _Optimizer
else:
    _Optimizer = object  # the class of the user's optimizer is added as a base


class _Distributed(_Optimizer):
    """Methods that are added to an optimizer of Keras 3."""

    def register_local_var(self, variable: tf.Variable) -> None:
        """Excludes a variable: its gradient is not reduced."""
        self._hvd_local.append(variable)

    def _hvd_reduce(
        self, gradients: Sequence[Gradient | None], variables: Iterable[tf.Variable] = ()
    ) -> Sequence[Gradient | None]:
        if self._hvd_process_set.size() == 1 or not self._hvd_process_set.included():
            return gradients
        local = {
            place
            for place, variable in enumerate(variables)
            if any(variable is each for each in self._hvd_local)
        }
        return reduce_gradients(
            list(gradients), process_set=self._hvd_process_set, local=local, **self._hvd_how
        )

    def apply(
        self,
        grads: Sequence[Gradient | None],
        trainable_variables: Iterable[tf.Variable] | None = None,
    ) -> tf.Variable:
        if self.gradient_accumulation_steps:
            return super().apply(grads, trainable_variables)
        return super().apply(
            self._hvd_reduce(grads, trainable_variables or ()), trainable_variables
        )

    def _clip_gradients(self, grads: Sequence[Gradient | None]) -> list[Gradient | None]:
        # With several passes per step: Keras adds up the gradients, averages them, and calls this
        # when they are to be applied.
        if self.gradient_accumulation_steps:
            factor = 1 if self._hvd_average_passes else self.gradient_accumulation_steps
            grads = [
                gradient if gradient is None else gradient * factor
                for gradient in self._hvd_reduce(grads)
            ]
        return super()._clip_gradients(grads)


def DistributedOptimizer(
    optimizer: keras.optimizers.Optimizer,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: AnyCompressor = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: Reduction = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: object = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> keras.optimizers.Optimizer:
    """Returns an optimizer of the same class, with the same options and state, that reduces
    gradients over ranks. All gradients of a step are reduced in one exchange, so groups have no
    effect."""
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor not supported with op != Average")
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")
    config = optimizer.get_config()
    if backward_passes_per_step > 1:
        config["gradient_accumulation_steps"] = backward_passes_per_step
    if name:
        config["name"] = name
    made: type[_Distributed] = type(
        optimizer.__class__.__name__,
        (_Distributed, optimizer.__class__),
        {"__module__": optimizer.__class__.__module__},
    )
    distributed = made.from_config(config)
    # Keras would track lists and sets that are its attributes, and copy them.
    object.__setattr__(distributed, "_hvd_local", [])
    object.__setattr__(distributed, "_hvd_process_set", process_set)
    object.__setattr__(distributed, "_hvd_average_passes", average_aggregated_gradients)
    object.__setattr__(
        distributed,
        "_hvd_how",
        {
            "compression": compression,
            "op": op,
            "gradient_predivide_factor": gradient_predivide_factor,
            "sparse_as_dense": sparse_as_dense,
            "scale_local_gradients": scale_local_gradients,
            "name": f"DistributedOptimizer.{optimizer.name}.{next(_numbers)}",
        },
    )
    if optimizer.built and backward_passes_per_step == 1:
        distributed.build(optimizer._trainable_variables)
        for ours, theirs in zip(distributed.variables, optimizer.variables):
            ours.assign(theirs)
    return distributed


class _Numbers:
    """Numbers the optimizers since init(): an optimizer has the same number on all ranks."""

    def __init__(self) -> None:
        self._generation: int | None = None
        self._count = 0

    def __next__(self) -> int:
        if self._generation != basics.generation():
            self._generation, self._count = basics.generation(), 0
        self._count += 1
        return self._count


_numbers = _Numbers()
