"""Prepares tensors for the engine, and keeps the handles of outstanding operations.

Tensors of a GPU are copied to the CPU's memory and back, which is correct but slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from horovod.common import engine as engines
from horovod.common import operations
from horovod.common.compression import AnyCompressor
from horovod.common.operations import Buffer, Pending, name_for
from horovod.common.process_sets import ProcessSet

_TYPES = {
    torch.float64: engines.F64,
    torch.float32: engines.F32,
    torch.float16: engines.F16,
    torch.bfloat16: engines.BF16,
    torch.int64: engines.I64,
    torch.int32: engines.I32,
    torch.int16: engines.I16,
    torch.int8: engines.I8,
    torch.uint8: engines.U8,
    torch.bool: engines.BOOL,
}
for _name, _type in (("float8_e4m3fn", engines.F8E4M3), ("float8_e5m2", engines.F8E5M2)):
    if hasattr(torch, _name):
        _TYPES[getattr(torch, _name)] = _type

Context = Any  # autograd's, between forward and backward
under_way = operations.Handles()


def buffer(tensor: torch.Tensor) -> Buffer:
    """Describes the memory of a tensor, which must be dense, contiguous and on the CPU."""
    kind = _TYPES.get(tensor.dtype)
    if kind is None:
        raise ValueError(f"Tensor type {tensor.dtype} is not supported.")
    return Buffer(tensor.data_ptr(), tuple(tensor.shape), kind, tensor)


def ready(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor, or a copy that the engine can read."""
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"expected a tensor, not {type(tensor).__name__}")
    if tensor.is_sparse:
        raise ValueError("sparse tensor: use sparse_allreduce_async")
    return tensor.detach().cpu().contiguous()


def settle(written: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Returns `wanted` with the content of `written`, which is copied unless both are the same
    memory of the same device."""
    if written.data_ptr() != wanted.data_ptr() or written.device != wanted.device:
        with torch.no_grad():
            wanted.copy_(written)
    return wanted


def kept(handle: int, like: torch.Tensor, rows: int) -> torch.Tensor:
    """Returns the result that the engine kept, as a tensor with this number of rows."""
    tensor = torch.empty((rows, *like.shape[1:]), dtype=like.dtype)
    operations.take(handle, buffer(tensor))
    return tensor


def synchronize(handle: int) -> operations.Output:
    """Waits for an operation and returns its output, or None if it was waited for before."""
    return under_way.synchronize(handle)


def poll(handle: int) -> bool:
    """Returns whether synchronize() would return at once."""
    return under_way.poll(handle)


def first_of(pending: Pending) -> int:
    finish = pending._finish
    pending._finish = lambda handles: finish(handles)[0]
    return under_way.add(pending)


def group_names(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    what: str,
    process_set: ProcessSet,
    compression: AnyCompressor | None = None,
) -> list[str]:
    base = name_for(name, what, process_set, compression)
    if not tensors:
        raise ValueError("a grouped operation requires at least one tensor")
    return [f"{base}.{number}" for number in range(len(tensors))]
