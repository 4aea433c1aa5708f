"""Trains with SageMaker's data parallel library. The script is unmodified: it does not depend on
Trainyard."""

import argparse
import hashlib
import os

import smdistributed.dataparallel.torch.distributed as dist
import torch
import torch.nn as nn
import torch.nn.functional as F
from smdistributed.dataparallel.torch.parallel.distributed import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 64)
        self.second = nn.Linear(64, 64)
        self.last = nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.second(torch.tanh(self.first(x))))).squeeze(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Two spirals with smdistributed.dataparallel")
    parser.add_argument("--batch-size", type=int, default=100, help="total of all ranks")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model-dir", default=os.environ.get("SM_MODEL_DIR"))
    args = parser.parse_args()
    args.batch_size = max(args.batch_size // dist.get_world_size(), 1)
    torch.manual_seed(args.seed)
    device = torch.device("cpu")
    if torch.cuda.is_available():
        torch.cuda.set_device(dist.get_local_rank())
        device = torch.device("cuda")

    turn = torch.linspace(0.5, 3 * torch.pi, 400)
    spiral = torch.stack([turn * turn.cos(), turn * turn.sin()], 1) / 10
    dataset = TensorDataset(
        torch.cat([spiral, -spiral]), torch.cat([torch.zeros(400), torch.ones(400)])
    )
    sampler = DistributedSampler(dataset, num_replicas=dist.get_world_size(), rank=dist.get_rank())
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)

    model = DDP(Net().to(device), broadcast_buffers=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(1, args.epochs + 1):
        model.train()
        sampler.set_epoch(epoch)
        right = torch.zeros(1, device=device)
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            output = model(data)
            F.binary_cross_entropy_with_logits(output, target).backward()
            optimizer.step()
            right += ((output > 0) == target).sum()
        dist.all_reduce(right)
        if dist.get_rank() == 0:
            print(
                f"Train Epoch: {epoch} of {args.epochs}, {dist.get_world_size()} ranks:"
                f" accuracy={right.item() / len(dataset):.3f}",
                flush=True,
            )

    weights = hashlib.sha256(
        b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
    ).hexdigest()
    print(f"rank {dist.get_rank()} local {dist.get_local_rank()} weights {weights}", flush=True)
    if dist.get_rank() == 0 and args.model_dir:
        torch.save(model.module.state_dict(), os.path.join(args.model_dir, "model.pt"))
    dist.barrier()


if __name__ == "__main__":
    main()
