"""An alias of torch.distributed, for scripts of the library's first versions."""

from __future__ import annotations

import os
from typing import Any

import torch.distributed as _distributed

# The names of torch.distributed, except for init_process_group below.
from torch.distributed import *  # noqa: F403

# Registers the backend.
import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401


def init_process_group(backend: str = "smddp", **more: Any) -> None:
    _distributed.init_process_group(backend, **more)


def get_local_rank() -> int:
    """Returns the index of this process on its host."""
    return int(os.environ.get("SMDATAPARALLEL_LOCAL_RANK", 0))
