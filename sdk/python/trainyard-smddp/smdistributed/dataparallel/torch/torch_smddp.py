"""Registers the backend "smddp" when it is imported: torch.distributed.init_process_group("smddp"),
and new_group."""

import os

import trainyard.torch

trainyard.torch.register("smddp")

# The variables from which scripts and trainers read a rank's position on its host.
for _name in ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"):
    if _name in os.environ:
        os.environ.setdefault("SMDATAPARALLEL_LOCAL_RANK", os.environ[_name])
