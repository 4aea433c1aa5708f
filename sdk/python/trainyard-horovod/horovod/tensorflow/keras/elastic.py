"""Elastic training with model.fit()."""

from __future__ import annotations

from typing import Any

import keras

from horovod.tensorflow.elastic import TensorFlowKerasState, run

__all__ = [
    "CommitStateCallback",
    "KerasState",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
    "run",
]


class KerasState(TensorFlowKerasState):
    """The same as TensorFlowKerasState."""


class CommitStateCallback(keras.callbacks.Callback):
    """Commits the state after each `batches_per_commit` batches and at the end of an epoch."""

    def __init__(self, state: TensorFlowKerasState, batches_per_commit: int = 1) -> None:
        super().__init__()
        self.state, self.batches_per_commit = state, batches_per_commit
        self._left = batches_per_commit

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._left = self.batches_per_commit

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._left -= 1
        if self._left == 0:
            self._left = self.batches_per_commit
            self.state.commit()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.state.commit()


class UpdateBatchStateCallback(keras.callbacks.Callback):
    """Updates state.batch; an interrupted epoch continues after that batch."""

    def __init__(self, state: TensorFlowKerasState) -> None:
        super().__init__()
        self.state = state

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self.state.batch = batch

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.state.batch = 0


class UpdateEpochStateCallback(keras.callbacks.Callback):
    """Updates state.epoch, over several calls of fit()."""

    def __init__(self, state: TensorFlowKerasState) -> None:
        super().__init__()
        self.state, self._first = state, 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._first = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.state.epoch = self._first + epoch + 1
