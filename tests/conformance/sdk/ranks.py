"""Runs as a training script for torchrun: sums one number for each rank."""

import torch
import torch.distributed

torch.distributed.init_process_group("gloo")
total = torch.tensor([float(torch.distributed.get_rank() + 1)])
torch.distributed.all_reduce(total)
print(f"rank {torch.distributed.get_rank()} has the sum {int(total.item())}", flush=True)
torch.distributed.destroy_process_group()
