"""Trains a fully sharded model with either of PyTorch's interfaces, as users do; only the backend's
name is Trainyard's. At the end it compares the weights with those of one process on whole
batches."""

import argparse
import functools
import hashlib

import torch
import torch.distributed as dist
import trainyard.torch  # noqa: F401  (registers the backend)
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy

STEPS, BATCH = 8, 16


def net() -> torch.nn.Sequential:
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(32, 300),
        torch.nn.ReLU(),
        torch.nn.Linear(300, 300),
        torch.nn.ReLU(),
        torch.nn.Linear(300, 10),
    )


def train(model: torch.nn.Module, part: slice) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(7)
    for _ in range(STEPS):
        inputs = torch.randn(BATCH, 32, generator=generator)
        labels = torch.randint(0, 10, (BATCH,), generator=generator)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[part]), labels[part]).backward()
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--api", choices=["wrapper", "in-place"], required=True)
    api = parser.parse_args().api
    dist.init_process_group("trainyard")  # was: "nccl"
    rank, world = dist.get_rank(), dist.get_world_size()
    share = BATCH // world
    part = slice(rank * share, (rank + 1) * share)
    if api == "wrapper":
        policy = functools.partial(size_based_auto_wrap_policy, min_num_params=5000)
        model = FullyShardedDataParallel(
            net(), auto_wrap_policy=policy, device_id=torch.device("cpu")
        )
        train(model, part)
        with FullyShardedDataParallel.summon_full_params(model):
            weights = [one.detach().clone() for one in model.parameters()]
    else:
        model = net()
        mesh = dist.device_mesh.init_device_mesh("cpu", (world,))
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        train(model, part)
        weights = [one.full_tensor().detach().clone() for one in model.parameters()]
    alone = net()
    train(alone, slice(None))
    apart = max(
        float((one.flatten() - other.detach().flatten()).abs().max())
        for one, other in zip(weights, alone.parameters())
    )
    digest = hashlib.sha256(b"".join(one.numpy().tobytes() for one in weights)).hexdigest()
    print(
        f"rank {rank} of {world}, {api}: equals one process: {apart < 1e-5}, weights {digest}",
        flush=True,
    )
    dist.barrier()


if __name__ == "__main__":
    main()
