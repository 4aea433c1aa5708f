"""torch.distributed as scripts of the library's first versions import it."""

import os

import torch.distributed as _distributed
from torch.distributed import *  # noqa: F401,F403

import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401


def init_process_group(backend="smddp", **more):
    _distributed.init_process_group(backend, **more)


def get_local_rank():
    """This process's place among those of its host."""
    return int(os.environ.get("SMDATAPARALLEL_LOCAL_RANK", 0))
