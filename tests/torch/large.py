"""Sends messages of more than 2 and 4 GiB, in buffers that take little memory
(tests/large_buffers.py). Run as: large.py NAME; the last line printed is the result."""

import faulthandler
import json
import sys

import torch
import torch.distributed as dist

from tests.large_buffers import ABOVE_2_GIB, ABOVE_4_GIB, PIECE, mapped
from tests.torch.programs import RANK, init


def buffer_of(*sizes: int) -> torch.Tensor:
    return torch.frombuffer(mapped(*sizes), dtype=torch.uint8)


def piece_of(rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(0, 256, (PIECE,), dtype=torch.uint8, generator=generator)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Sends the same bytes as elements of 8 bytes."""
    return tensor.view(torch.int64)


def everything() -> str:
    init()
    ours, theirs = piece_of(RANK), piece_of(1 - RANK)
    first = piece_of(0)
    buffer = buffer_of(ABOVE_4_GIB)

    def begin() -> torch.Tensor:
        buffer[:PIECE].copy_(ours)
        dist.barrier()
        return buffer[:ABOVE_2_GIB]

    dist.all_reduce(begin(), op=dist.ReduceOp.MAX)
    assert torch.equal(buffer[:PIECE], torch.maximum(ours, theirs)), "all_reduce"
    dist.broadcast(begin(), 0)
    assert torch.equal(buffer[:PIECE], first), "broadcast"
    begin()
    (dist.send if RANK == 0 else dist.recv)(buffer, 1 - RANK)
    assert torch.equal(buffer[:PIECE], first), "send and recv"
    # The blocks of both ranks lie in the same memory: each is as long as the other and equal.
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    source = buffer_of(ABOVE_2_GIB)
    source[:PIECE].copy_(first)
    buffer[:PIECE].zero_()
    gather(buffer, source)
    assert torch.equal(buffer[:PIECE], first), "all_gather"
    dist.barrier()
    return "good"


def wide_blocks() -> str:
    """Runs operations with a block for each rank, of elements of 8 bytes. The blocks of a buffer
    differ: each has its own memory."""
    init()
    blocks = [[piece_of(2 * rank + block) for block in range(2)] for rank in range(2)]
    whole = buffer_of(ABOVE_2_GIB, ABOVE_2_GIB)
    for place, block in zip((0, ABOVE_2_GIB), blocks[RANK]):
        whole[place : place + PIECE].copy_(block)
    scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    part = buffer_of(ABOVE_2_GIB)
    scatter(wide(part), wide(whole), op=dist.ReduceOp.MAX)
    expected = torch.maximum(*[wide(each[RANK]) for each in blocks])
    assert torch.equal(wide(part[:PIECE]), expected), "reduce_scatter"
    received = buffer_of(ABOVE_2_GIB, ABOVE_2_GIB)
    dist.all_to_all_single(wide(received), wide(whole))
    for place, each in zip((0, ABOVE_2_GIB), blocks):
        assert torch.equal(received[place : place + PIECE], each[RANK]), "all_to_all"
    dist.barrier()
    return "good"


def by_name() -> str:
    """Reduces named tensors of horovod.torch in place."""
    import horovod.torch as hvd

    hvd.init()
    ours, theirs = piece_of(RANK), piece_of(1 - RANK)
    buffer = buffer_of(ABOVE_4_GIB)
    buffer[:PIECE].copy_(ours)
    hvd.allreduce_(wide(buffer[:ABOVE_2_GIB]), op=hvd.Max, name="large")
    assert torch.equal(wide(buffer[:PIECE]), torch.maximum(wide(ours), wide(theirs))), "allreduce"
    hvd.barrier()
    buffer[:PIECE].copy_(ours)
    hvd.broadcast_(buffer, 0, name="large")
    assert torch.equal(buffer[:PIECE], piece_of(0)), "broadcast"
    hvd.barrier()
    return "good"


if __name__ == "__main__":
    faulthandler.dump_traceback_later(240, exit=True)  # a rank that hangs says where
    print(json.dumps(globals()[sys.argv[1]]()))
