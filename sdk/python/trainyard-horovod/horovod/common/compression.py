"""Compresses tensors before they are sent: the part that is independent of the framework."""

from __future__ import annotations

from typing import Any, Union

from horovod.common import engine

Tensor = Any  # of any framework
Type = Any  # of a tensor's elements
Context = Any  # the data that compress() passes to decompress()


class Compressor:
    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Context]:
        """Returns the tensor to send and the context for decompress()."""
        raise NotImplementedError("a subclass of Compressor must implement compress()")

    @staticmethod
    def decompress(tensor: Tensor, ctx: Context) -> Tensor:
        """Returns the tensor before compress()."""
        raise NotImplementedError("a subclass of Compressor must implement decompress()")


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor: Tensor) -> tuple[Tensor, Context]:
        return tensor, None

    @staticmethod
    def decompress(tensor: Tensor, ctx: Context) -> Tensor:
        return tensor


class ErrorFeedbackCompressor(NoneCompressor):
    """Compresses float32 tensors in the engine. The rounding error of a tensor is stored by its
    name and added in the next step (gradients/compress/compressor.hpp)."""

    def __init__(self, kind: int, rank: int = 0) -> None:
        self.kind, self.rank = kind, rank


# A class with static methods, or an object with options.
AnyCompressor = Union[type[Compressor], Compressor]

INT8 = ErrorFeedbackCompressor(engine.INT8)


def low_rank(rank: int = 4) -> ErrorFeedbackCompressor:
    """Sends a matrix as the product of two matrices with `rank` columns. Other tensors, and
    matrices that would not become smaller, are sent unchanged."""
    if not 1 <= rank <= 128:
        raise ValueError(f"invalid rank {rank} of low_rank(): it must be 1 to 128")
    return ErrorFeedbackCompressor(engine.LOW_RANK, rank)


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
