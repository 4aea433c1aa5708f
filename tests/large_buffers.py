"""Makes buffers of GiB that take little memory: each maps one piece of memory of about 8 MiB
repeatedly.

The length of the piece is not a power of two, so an offset that is truncated to 32 bits leads to
other bytes.
"""

import ctypes
import mmap
import os

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


def mapped(*sizes: int) -> ctypes.Array[ctypes.c_uint8]:
    """Returns a buffer of parts with these sizes, in bytes, each with its own piece of memory. The
    memory stays mapped until the process ends."""
    nowhere = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    begin = libc.mmap(None, sum(sizes), PROT_NONE, nowhere, -1, 0)
    place = begin
    for size in sizes:
        descriptor = os.memfd_create("piece")
        os.ftruncate(descriptor, PIECE)
        end = place + size
        while place < end:
            access = mmap.PROT_READ | mmap.PROT_WRITE
            found = libc.mmap(place, PIECE, access, mmap.MAP_SHARED | MAP_FIXED, descriptor, 0)
            assert found == place, os.strerror(ctypes.get_errno())
            place += PIECE
        os.close(descriptor)
    return (ctypes.c_uint8 * sum(sizes)).from_address(begin)
