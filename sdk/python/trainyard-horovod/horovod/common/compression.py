"""Compression of tensors before they are sent: the parts that are independent of the framework."""

from __future__ import annotations

from typing import Any, Union

from horovod.common import engine

Tensor = Any  # of whatever framework
Type = Any  # of its elements
Context = Any  # what compress() tells decompress()


class Compressor:
    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Context]:
        """-> what is sent, and what decompress must know."""
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
    """Made smaller by the engine itself, in float32 alone: what is lost is remembered by the
    tensor's name and brought in the next step (gradients/compress/compressor.hpp)."""

    def __init__(self, kind: int, rank: int = 0) -> None:
        self.kind, self.rank = kind, rank


# A class whose functions are static, or an object that remembers.
AnyCompressor = Union[type[Compressor], Compressor]

INT8 = Remembering(engine.INT8)


def low_rank(rank: int = 4) -> Remembering:
    """Matrices as the product of two with `rank` columns; whatever else,
    and what would not be smaller, as it is."""
    if not 1 <= rank <= 128:
        raise ValueError(f"the thin matrices of low_rank have 1 to 128 columns, not {rank}")
    return Remembering(engine.LOW_RANK, rank)


class Cast(Compressor):
    """Floating point numbers as 16 bits. Sums of them are rounded once,
    from 32 bits (collectives/types.hpp)."""

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
