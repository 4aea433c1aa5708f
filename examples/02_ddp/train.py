"""Trains with DDP. The script is ordinary, except for the name of Trainyard's backend."""

import argparse
import hashlib
import os

import torch
import torch.distributed as dist
import trainyard.torch  # noqa: F401  (registers the backend)
from torch.nn.parallel import DistributedDataParallel

arguments = argparse.ArgumentParser()
arguments.add_argument("--epochs", type=int, default=3)
epochs = arguments.parse_args().epochs

dist.init_process_group("trainyard")  # was: "gloo"
rank, world = dist.get_rank(), dist.get_world_size()

# Two spirals, which are not linearly separable.
torch.manual_seed(1)
turn = torch.linspace(0.5, 3 * torch.pi, 400)
spiral = torch.stack([turn * turn.cos(), turn * turn.sin()], 1) / 10
points, labels = torch.cat([spiral, -spiral]), torch.cat([torch.zeros(400), torch.ones(400)])
order = torch.randperm(800)
mine = order[rank::world]

model = DistributedDataParallel(
    torch.nn.Sequential(
        torch.nn.Linear(2, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 1),
    )
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(epochs):
    for batch in mine.split(50):
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(
            model(points[batch]).squeeze(1), labels[batch]
        ).backward()
        optimizer.step()
    with torch.no_grad():
        right = ((model.module(points[mine]).squeeze(1) > 0) == labels[mine]).float().sum()
    dist.all_reduce(right)
    if rank == 0:
        print(
            f"epoch {epoch + 1} of {epochs}, {world} ranks: accuracy={right.item() / 800:.3f}",
            flush=True,
        )

weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print(f"rank {rank} weights {hashlib.sha256(weights).hexdigest()}", flush=True)
if rank == 0 and "SM_MODEL_DIR" in os.environ:
    torch.save(model.module.state_dict(), os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
dist.barrier()
