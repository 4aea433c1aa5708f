"""Elastic training with PyTorch: the API of horovod.torch.elastic. See horovod.common.elastic."""

from __future__ import annotations

from typing import Any, Callable

import torch

from horovod.common import elastic as _common
from horovod.common.elastic import State
from horovod.torch import functions as _functions
from horovod.torch import mpi_ops as _operations
from horovod.torch.elastic.sampler import ElasticSampler
from horovod.torch.elastic.state import TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]


class ObjectState(_common.ObjectState):
    """A state of plain values only, for training loops that keep their model elsewhere."""

    def __init__(
        self,
        bcast_object: _common.BroadcastObject = _functions.broadcast_object,
        get_rank: Callable[[], int] = _operations.rank,
        **attributes: Any,
    ) -> None:
        super().__init__(bcast_object, get_rank, **attributes)


def _any_rank(flag: bool) -> bool:
    return bool(
        _operations.allreduce_(
            torch.tensor([int(flag)], dtype=torch.int32), name="elastic.anyone", op=_operations.Max
        ).item()
    )


def run(func: Callable[..., _common.Result]) -> Callable[..., _common.Result]:
    """Decorates the training function, whose first argument is a State."""
    return _common.run_with(_any_rank, func)
