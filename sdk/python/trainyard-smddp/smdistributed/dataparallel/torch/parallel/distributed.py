"""Provides torch's DistributedDataParallel to scripts of the library's first versions."""

from torch.nn.parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
