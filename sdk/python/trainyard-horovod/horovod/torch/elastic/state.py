"""States of models, optimizers, samplers and plain values, which survive a change of ranks."""

from __future__ import annotations

import copy
from typing import Any

import torch

from horovod.common import elastic
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from horovod.torch.mpi_ops import rank

Value = Any  # with a state_dict, or a plain one


class _Kept:
    """An object with a state_dict, and its last saved state."""

    def __init__(self, value: Value) -> None:
        self.value = value
        self.save()

    def save(self) -> None:
        self._saved = copy.deepcopy(self.value.state_dict())

    def restore(self) -> None:
        self.value.load_state_dict(copy.deepcopy(self._saved))

    def sync(self) -> None:
        raise NotImplementedError("each kind has its own way")

    def reset(self) -> None:
        pass


class _Model(_Kept):
    def sync(self) -> None:
        broadcast_parameters(self.value.state_dict(), root_rank=0)
        self.save()


class _Optimizer(_Kept):
    def _forget(self) -> None:
        # Drops tensors that were being reduced when an operation failed.
        if hasattr(self.value, "_forget_handles"):
            self.value._forget_handles()

    def restore(self) -> None:
        self._forget()
        super().restore()

    def sync(self) -> None:
        broadcast_optimizer_state(self.value, root_rank=0)
        self.save()

    def reset(self) -> None:
        self._forget()


class _Scheduler(_Kept):
    """The state of a learning rate scheduler. The object itself is kept, since it refers to its
    optimizer; the optimizer's own state has the current rate."""

    def sync(self) -> None:
        self.value.load_state_dict(
            broadcast_object(self.value.state_dict(), 0, "elastic.scheduler")
        )
        self.save()


class _Sampler(_Kept):
    def sync(self) -> None:
        # Each rank has recorded its own part; the rest is divided among the current ranks.
        everyones = allgather_object(self.value.state_dict(), "elastic.sampler")
        done = set().union(
            *(
                each["processed_indices"]
                for each in everyones
                if each["epoch"] == everyones[0]["epoch"]
            )
        )
        self.value.load_state_dict({"epoch": everyones[0]["epoch"], "processed_indices": done})
        self.save()

    def reset(self) -> None:
        self.value.reset()


# Versions of torch differ in the name of the schedulers' base class, and in whether all have it.
_SCHEDULERS = tuple(
    getattr(torch.optim.lr_scheduler, name)
    for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau")
    if hasattr(torch.optim.lr_scheduler, name)
)
_KINDS = [
    (torch.nn.Module, _Model),
    (torch.optim.Optimizer, _Optimizer),
    (_SCHEDULERS, _Scheduler),
    (ElasticSampler, _Sampler),
]


class TorchState(elastic.ObjectState):
    """A state of modules, optimizers, schedulers and ElasticSamplers, by any names, and of plain
    values: TorchState(model, optimizer, sampler=.., epoch=0, batch=0)."""

    def __init__(
        self,
        model: torch.nn.Module | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        **more: Any,
    ) -> None:
        everything = {"model": model, "optimizer": optimizer, **more}
        self._kept, plain = {}, {}
        for name, value in everything.items():
            kind = next((kept for kind, kept in _KINDS if isinstance(value, kind)), None)
            if kind:
                self._kept[name] = kind(value)
                setattr(self, name, value)
            elif name in more:
                plain[name] = value
            else:
                setattr(self, name, value)
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **plain)

    def __setattr__(self, name: str, value: Value) -> None:
        kept = self.__dict__.get("_kept", {}).get(name)
        if kept is not None:
            kept.value = value  # state.optimizer = another one
        super().__setattr__(name, value)

    def save(self) -> None:
        for kept in self._kept.values():
            kept.save()
        super().save()

    def restore(self) -> None:
        for kept in self._kept.values():
            kept.restore()
        super().restore()

    def sync(self) -> None:
        for kept in self._kept.values():
            kept.sync()
        super().sync()

    def reset(self) -> None:
        for kept in self._kept.values():
            kept.reset()
