"""Trains with Horovod. The script is unmodified: it does not depend on Trainyard."""

import argparse
import hashlib
import os

import horovod.torch as hvd
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data
import torch.utils.data.distributed

parser = argparse.ArgumentParser(description="Two spirals with Horovod")
parser.add_argument("--batch-size", type=int, default=25)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--base-lr", type=float, default=0.0025)
parser.add_argument("--fp16-allreduce", action="store_true", default=False)
parser.add_argument("--use-adasum", action="store_true", default=False)
parser.add_argument("--batches-per-allreduce", type=int, default=1)
args = parser.parse_args()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 64)
        self.norm = hvd.SyncBatchNorm(64)
        self.second = nn.Linear(64, 64)
        self.last = nn.Linear(64, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.second(torch.tanh(self.norm(self.first(x)))))).squeeze(1)


def metric_average(value: float, name: str) -> float:
    return hvd.allreduce(torch.tensor(value), name=name).item()


hvd.init()
torch.manual_seed(hvd.rank())
torch.set_num_threads(1)

turn = torch.linspace(0.5, 3 * torch.pi, 400)
spiral = torch.stack([turn * turn.cos(), turn * turn.sin()], 1) / 10
dataset = torch.utils.data.TensorDataset(
    torch.cat([spiral, -spiral]), torch.cat([torch.zeros(400), torch.ones(400)])
)
sampler = torch.utils.data.distributed.DistributedSampler(
    dataset, num_replicas=hvd.size(), rank=hvd.rank()
)
loader = torch.utils.data.DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)

model = Net()
# With Adasum the learning rate is not scaled with the number of ranks.
scale = args.batches_per_allreduce * hvd.size() if not args.use_adasum else 1
optimizer = torch.optim.Adam(model.parameters(), lr=args.base_lr * scale)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
optimizer = hvd.DistributedOptimizer(
    optimizer,
    named_parameters=model.named_parameters(),
    compression=compression,
    op=hvd.Adasum if args.use_adasum else hvd.Average,
)

for epoch in range(1, args.epochs + 1):
    model.train()
    sampler.set_epoch(epoch)
    right = 0
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        F.binary_cross_entropy_with_logits(output, target).backward()
        optimizer.step()
        right += ((output > 0) == target).sum().item()
    accuracy = metric_average(right / len(sampler), "avg_accuracy")
    if hvd.rank() == 0:
        print(
            f"Train Epoch: {epoch} of {args.epochs}, {hvd.size()} ranks: accuracy={accuracy:.3f}",
            flush=True,
        )

weights = hashlib.sha256(
    b"".join(p.detach().numpy().tobytes() for p in model.parameters())
).hexdigest()
print(
    f"rank {hvd.rank()} local {hvd.local_rank()} of {hvd.local_size()} weights {weights}",
    flush=True,
)
if hvd.rank() == 0 and "SM_MODEL_DIR" in os.environ:
    torch.save(model.state_dict(), os.path.join(os.environ["SM_MODEL_DIR"], "model.pt"))
