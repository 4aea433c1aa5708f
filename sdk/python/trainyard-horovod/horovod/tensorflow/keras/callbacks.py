"""Callbacks for model.fit() on several ranks."""

from __future__ import annotations

from typing import Any, Callable

import keras
import numpy

from horovod.common import basics
from horovod.common.operations import Average
from horovod.common.process_sets import ProcessSet, global_process_set
from horovod.tensorflow.functions import broadcast_variables
from horovod.tensorflow.keras.elastic import (
    CommitStateCallback,
    UpdateBatchStateCallback,
    UpdateEpochStateCallback,
)
from horovod.tensorflow.mpi_ops import grouped_allreduce

__all__ = [
    "BroadcastGlobalVariablesCallback",
    "CommitStateCallback",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
]


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """Starts all ranks with the root's weights and optimizer state."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__()
        self.root_rank, self._done = root_rank, False

    def _broadcast(self) -> None:
        if not self._done:
            optimizer = getattr(self.model, "optimizer", None)
            broadcast_variables(
                list(self.model.variables)
                + (list(optimizer.variables) if optimizer is not None else []),
                self.root_rank,
            )
            self._done = True

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        optimizer = getattr(self.model, "optimizer", None)
        if self.model.built:
            if optimizer is not None and not optimizer.built:
                optimizer.build(self.model.trainable_variables)
            self._broadcast()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._broadcast()  # also broadcasts the variables that the first batch has created


class MetricAverageCallback(keras.callbacks.Callback):
    """Averages the metrics of an epoch over all ranks. It must precede callbacks that read them,
    such as ReduceLROnPlateau and TensorBoard."""

    def __init__(self, device: str = "", process_set: ProcessSet = global_process_set) -> None:
        super().__init__()
        self._process_set = process_set

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs and self._process_set.size() > 1:
            names = sorted(
                name
                for name, value in logs.items()
                if numpy.isscalar(value) or getattr(value, "shape", None) == ()
            )
            values = [numpy.float64(logs[name]) for name in names]
            for name, value in zip(
                names,
                grouped_allreduce(
                    values, op=Average, name="metrics", process_set=self._process_set
                ),
            ):
                logs[name] = float(value.numpy())


class LearningRateScheduleCallback(keras.callbacks.Callback):
    """Sets the learning rate to initial_lr times multiplier(epoch), or times a constant, from
    start_epoch to the epoch before end_epoch.

    staircase: changes the rate once per epoch instead of with each batch. momentum_correction:
    scales a momentum with the rate for the batch in which the rate changes, so that the accumulated
    momentum keeps its weight.
    """

    def __init__(
        self,
        initial_lr: float,
        multiplier: float | Callable[[float], float],
        start_epoch: int = 0,
        end_epoch: int | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        super().__init__()
        if initial_lr is None:
            raise ValueError("Parameter `initial_lr` is required")
        self.initial_lr, self.start_epoch, self.end_epoch = initial_lr, start_epoch, end_epoch
        self.steps_per_epoch, self.momentum_correction = steps_per_epoch, momentum_correction
        self.staircase = staircase or not callable(multiplier)
        self.multiplier = multiplier if callable(multiplier) else lambda epoch: multiplier
        self._epoch = 0
        self._momentum: float | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = (self.params or {}).get("steps")
            if not self.steps_per_epoch:
                raise ValueError(
                    "Could not autodetect the number of steps per epoch. Please specify the"
                    f" steps_per_epoch parameter to the {self.__class__.__name__}() or upgrade to"
                    " the latest version of Keras."
                )

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self._epoch < self.start_epoch or (
            self.end_epoch is not None and self._epoch >= self.end_epoch
        ):
            return
        if self.staircase and batch == 0:
            self._adjust(self._epoch)
        elif not self.staircase:
            assert self.steps_per_epoch, "on_train_begin found it"
            self._adjust(self._epoch + float(batch) / self.steps_per_epoch)

    def _adjust(self, epoch: float) -> None:
        optimizer = self.model.optimizer
        before = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
        after = self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate = after
        # A number that is read when the step is traced can be scaled for a batch only where steps
        # are not traced.
        if (
            self.momentum_correction
            and self.model.run_eagerly
            and isinstance(getattr(optimizer, "momentum", None), float)
            and optimizer.momentum
            and before > 0
        ):
            self._momentum = optimizer.momentum
            optimizer.momentum = optimizer.momentum * after / before

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if self._momentum is not None:
            self.model.optimizer.momentum, self._momentum = self._momentum, None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["lr"] = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))


class LearningRateWarmupCallback(LearningRateScheduleCallback):
    """Increases the learning rate batch by batch, in the first epochs, from initial_lr divided by
    the number of ranks to initial_lr: training with large batches diverges if it starts with the
    scaled rate (Goyal and others, 2017)."""

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        def multiplier(epoch: float) -> float:
            # The ended batch counts as part of the epoch: after the last batch the rate is
            # complete.
            assert self.steps_per_epoch, "on_train_begin found it"
            epoch += 1.0 / self.steps_per_epoch
            return 1.0 / basics.size() * (epoch * (basics.size() - 1) / warmup_epochs + 1)

        super().__init__(
            initial_lr,
            multiplier,
            0,
            warmup_epochs,
            staircase=False,
            momentum_correction=momentum_correction,
            steps_per_epoch=steps_per_epoch,
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        super().on_epoch_end(epoch, logs)
        if epoch + 1 == self.end_epoch and self.verbose > 0 and basics.rank() == 0:
            print(
                f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to"
                f" {float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)):g}."
            )
