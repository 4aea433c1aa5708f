"""The compiled backend (sdk/python/c10d/process_group.cpp)."""

import datetime

import torch.distributed

def create(
    store: torch.distributed.Store,
    rank: int,
    size: int,
    timeout: datetime.timedelta,
    global_ranks: list[int],
) -> torch.distributed.ProcessGroup: ...
def settle() -> None: ...
