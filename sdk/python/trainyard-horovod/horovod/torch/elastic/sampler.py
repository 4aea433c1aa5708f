"""A sampler that records the processed part of an epoch, and divides the rest among the current
ranks."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sized
from typing import Any

import torch

from horovod.common import basics


class ElasticSampler(torch.utils.data.Sampler):
    """Divides the samples of an epoch among the ranks, and records which were processed. Call
    record_batch() after each step. As a member of a TorchState, the sampler continues the epoch
    with the remaining samples after the ranks have changed.

        sampler = ElasticSampler(dataset); state = TorchState(model, optimizer, sampler=sampler)
        for number, batch in enumerate(loader): ...; state.sampler.record_batch(number, batch_size)
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_indices: set[int] = set()
        self.indices: list[int] = []
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Starts a new epoch. Call it at the end of an epoch, since a restarted loop may begin in
        the middle of one."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices: Iterable[int]) -> None:
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx: int, batch_size: int) -> list[int]:
        return self.indices[batch_idx * batch_size : (batch_idx + 1) * batch_size]

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "processed_indices": set(self.processed_indices)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epoch = state_dict["epoch"]
        self.processed_indices = set(state_dict["processed_indices"])
        self.reset()

    def reset(self) -> None:
        """Divides the remaining samples among the current ranks."""
        self.num_replicas, self.rank = (
            (basics.size(), basics.rank()) if basics.is_initialized() else (1, 0)
        )
        self.remaining_indices = [
            index for index in range(len(self.dataset)) if index not in self.processed_indices
        ]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = list(self.remaining_indices)
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)
        # All ranks get the same number of samples: the first ones are repeated to fill up.
        while order and len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        self.indices = order[self.rank : self.total_size : self.num_replicas]
        return iter(self.indices)

    def __len__(self) -> int:
        return self.num_samples
