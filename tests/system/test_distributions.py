"""Distributions across real hosts: the platform starts the ranks, keeps the first error, and ends when they end."""

import json

import pytest

import scripts


@pytest.fixture(scope="module")
def yard(server):
    server.boto("s3").create_bucket(Bucket="yard")
    return server


DDP = """
import os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
step = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.arange(32, dtype=torch.float32).reshape(8, 4)[rank::world] / 32
for _ in range(3):
    step.zero_grad()
    model(data).square().mean().backward()
    step.step()
weights = [round(w, 6) for w in model.module.weight.flatten().tolist()]
print("RANK", rank, "of", world, "local", os.environ["LOCAL_RANK"], "on", os.environ["SM_CURRENT_HOST"], weights, flush=True)
if rank == 0:
    torch.save(model.module.state_dict(), os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
if "--fail-rank" in sys.argv and rank == int(sys.argv[sys.argv.index("--fail-rank") + 1]):
    raise ValueError("no such column")
dist.barrier()
"""
TORCH = {"sagemaker_torch_distributed_enabled": True, "sagemaker_instance_type": "ml.t3.medium"}


def test_torch_distributed_on_two_hosts(yard):
    _, lines = scripts.run(yard, "ddp", "train.py", {"train.py": DDP}, hosts=2, hyperparameters=TORCH | {"sagemaker_mpi_num_of_processes_per_host": 2})
    ranks = sorted(line.split(" ", 8) for line in lines if line.startswith("RANK"))
    assert [rank[1:8] for rank in ranks] == [[str(k), "of", "4", "local", str(k % 2), "on", f"algo-{k // 2 + 1}"] for k in range(4)]
    assert len({rank[8] for rank in ranks}) == 1, "all ranks have the same weights"
