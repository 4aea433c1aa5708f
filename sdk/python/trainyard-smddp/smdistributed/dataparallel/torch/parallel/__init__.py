"""`from smdistributed.dataparallel.torch.parallel.distributed import DistributedDataParallel`,
or from here."""

from smdistributed.dataparallel.torch.parallel.distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
