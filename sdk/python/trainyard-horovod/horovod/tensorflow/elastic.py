"""hvd.elastic for TensorFlow: see horovod.common.elastic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Callable

import tensorflow as tf

from horovod.common import elastic as _common
from horovod.common.basics import rank
from horovod.common.elastic import ObjectState, State
from horovod.common.operations import Max
from horovod.tensorflow.functions import broadcast_object, broadcast_variables
from horovod.tensorflow.mpi_ops import allreduce

if TYPE_CHECKING:
    import keras

__all__ = ["ObjectState", "State", "TensorFlowKerasState", "TensorFlowState", "run"]


def run(func: Callable[..., _common.Result]) -> Callable[..., _common.Result]:
    """Decorates the training function, whose first argument is a State."""
    return _common.run_with(
        lambda flag: bool(
            allreduce(tf.constant([int(flag)]), op=Max, name="elastic.anyone").numpy()[0]
        ),
        func,
    )


class TensorFlowState(_common.ObjectState):
    """A state of variables, and of plain values by name."""

    def __init__(
        self,
        variables: Iterable[tf.Variable] | None = None,
        session: object = None,
        **attributes: Any,
    ) -> None:
        self._given = list(variables) if variables is not None else None
        self._values: list[Any] = []
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **attributes)
        self.save()

    def _variables(self) -> list[tf.Variable]:
        return self._given or []

    def save(self) -> None:
        self._values = [variable.numpy() for variable in self._variables()]
        super().save()

    def restore(self) -> None:
        for variable, value in zip(self._variables(), self._values):
            variable.assign(value)
        super().restore()

    def sync(self) -> None:
        broadcast_variables(self._variables(), root_rank=0)
        self._values = [variable.numpy() for variable in self._variables()]
        super().sync()


class TensorFlowKerasState(TensorFlowState):
    """A state of a model and its optimizer, which must be built, and of plain values by name."""

    def __init__(
        self,
        model: keras.Model,
        optimizer: keras.optimizers.Optimizer | None = None,
        backend: object = None,
        **attributes: Any,
    ) -> None:
        self.model = model
        self.optimizer = optimizer or getattr(model, "optimizer", None)
        if not model.built:
            raise ValueError(
                "the model is not built yet: call model.build(..) or train a first batch"
            )
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(model.trainable_variables)
        super().__init__(**attributes)

    def _variables(self) -> list[tf.Variable]:
        mine = [] if self.optimizer is None else list(self.optimizer.variables)
        return list(self.model.variables) + mine
