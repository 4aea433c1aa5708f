"""Messages of more than 2 and 4 GiB. Run as: large.py everything; the last line printed is the
result.

Each buffer maps one piece of memory of about 8 MiB repeatedly, so a message takes little memory.
The piece's length is not a power of two, so an offset that is truncated to 32 bits leads to other
bytes.
"""

import ctypes
import faulthandler
import json
import mmap
import os
import sys

import torch
import torch.distributed as dist

from tests.torch.programs import RANK, init

PIECE = mmap.PAGESIZE * 2049
ABOVE_2_GIB = 256 * PIECE  # 2.001 GiB
ABOVE_4_GIB = 512 * PIECE
MAP_FIXED, PROT_NONE = 0x10, 0
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
]


def mapped(size: int) -> torch.Tensor:
    descriptor = os.memfd_create("piece")
    os.ftruncate(descriptor, PIECE)
    nowhere = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    begin = libc.mmap(None, size, PROT_NONE, nowhere, -1, 0)
    for place in range(begin, begin + size, PIECE):
        access = mmap.PROT_READ | mmap.PROT_WRITE
        found = libc.mmap(place, PIECE, access, mmap.MAP_SHARED | MAP_FIXED, descriptor, 0)
        assert found == place, os.strerror(ctypes.get_errno())
    os.close(descriptor)
    return torch.frombuffer((ctypes.c_uint8 * size).from_address(begin), dtype=torch.uint8)


def everything() -> str:
    init()
    ours = torch.randint(0, 255, (PIECE,), dtype=torch.uint8)
    theirs = torch.empty_like(ours)
    works = [dist.isend(ours, 1 - RANK), dist.irecv(theirs, 1 - RANK)]
    for work in works:
        work.wait()
    first = ours if RANK == 0 else theirs
    buffer = mapped(ABOVE_4_GIB)

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
    dist.broadcast(begin()[:PIECE], 0)
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    source = mapped(ABOVE_2_GIB)
    source[:PIECE].copy_(first)
    buffer[:PIECE].zero_()
    gather(buffer, source)
    assert torch.equal(buffer[:PIECE], first), "all_gather"
    dist.barrier()
    return "good"


if __name__ == "__main__":
    faulthandler.dump_traceback_later(110, exit=True)  # a rank that hangs says where
    print(json.dumps(globals()[sys.argv[1]]()))
