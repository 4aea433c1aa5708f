"""torch.distributed as scripts of the library's first versions import it."""

import os

import torch.distributed as _distributed
from torch.distributed import *  # noqa: F401,F403

import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401


def init_process_group(backend="smddp", **more):
    _distributed.init_process_group(backend, **more)


def get_local_rank():
    """This process's place among those of its host."""
    for name in ("SMDATAPARALLEL_LOCAL_RANK", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    return 0


