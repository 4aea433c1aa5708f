"""Importing it makes "smddp" a backend: torch.distributed.init_process_group("smddp"). new_group works too."""

import trainyard.torch

trainyard.torch.register("smddp")
