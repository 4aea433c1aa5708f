"""Compression of tensors before they are sent: the parts that are independent of the framework."""

from __future__ import annotations

from typing import Any, Union

from horovod.common import engine

Tensor = Any  # of any framework
Type = Any  # of its elements
Context = Any  # the data that compress() passes to decompress()


class Compressor:
    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Context]:
        """Returns the tensor to send and the context for decompress()."""
        raise NotImplementedError("a Compressor has compress and decompress")

    @staticmethod
    def decompress(tensor: Tensor, ctx: Context) -> Tensor:
        raise NotImplementedError("a Compressor has compress and decompress")


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Context]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, ctx: Context) -> Tensor:
        return tensor


class Remembering(NoneCompressor):
    """Compresses in the engine, float32 only. The error is stored by the tensor's name
    and added in the next step (gradients/compress/compressor.hpp)."""

    def __init__(self, kind: int, rank: int = 0) -> None:
        self.kind, self.rank = kind, rank


# A class with static functions, or an object with state.
AnyCompressor = Union[type[Compressor], Compressor]

INT8 = Remembering(engine.INT8)


def low_rank(rank: int = 4) -> Remembering:
    """Sends a matrix as the product of two matrices with `rank` columns. Other tensors, and
    matrices that would not become smaller, are sent unchanged."""
    if not 1 <= rank <= 128:
        raise ValueError(f"the thin matrices of low_rank have 1 to 128 columns, not {rank}")
    return Remembering(engine.LOW_RANK, rank)


class Cast(Compressor):
    """Sends floating point numbers in 16 bits. Sums are computed in 32 bits and rounded once
    (collectives/types.hpp)."""

    sent_as: Type = None

    @staticmethod
    def is_floating(tensor: Tensor) -> bool:
        raise NotImplementedError

    @staticmethod
    def cast(tensor: Tensor, kind: Type) -> Tensor:
        raise NotImplementedError

    @classmethod
    def compress(cls, tensor: Tensor) -> tuple[Tensor, Context]:
        return (
            (cls.cast(tensor, cls.sent_as), tensor.dtype)
            if cls.is_floating(tensor)
            else (tensor, None)
        )

    @classmethod
    def decompress(cls, tensor: Tensor, ctx: Context) -> Tensor:
        return tensor if ctx is None else cls.cast(tensor, ctx)
