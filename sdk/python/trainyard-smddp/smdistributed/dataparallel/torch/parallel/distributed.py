"""The wrapper that scripts of the library's first versions import: torch's own."""

from torch.nn.parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
