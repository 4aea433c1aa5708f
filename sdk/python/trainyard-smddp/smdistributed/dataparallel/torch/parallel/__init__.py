"""Provides DistributedDataParallel, as smdistributed.dataparallel.torch.parallel.distributed
does."""

from smdistributed.dataparallel.torch.parallel.distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
