"""What may be done to a tensor before it is sent, and undone after:
what no framework is needed for."""

from horovod.common import engine


class Compressor:
    @staticmethod
    def compress(tensor):
        """-> what is sent, and what decompress must know."""
        raise NotImplementedError("a Compressor has compress and decompress")

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError("a Compressor has compress and decompress")


class NoneCompressor(Compressor):
    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


class Remembering(NoneCompressor):
    """Made smaller by the engine itself, in float32 alone: what is lost is remembered by the
    tensor's name and brought in the next step (collectives/compress/compressor.hpp)."""

    def __init__(self, kind, rank=0):
        self.kind, self.rank = kind, rank


INT8 = Remembering(engine.INT8)


def low_rank(rank=4):
    """Matrices as the product of two with `rank` columns; whatever else,
    and what would not be smaller, as it is."""
    if not 1 <= rank <= 128:
        raise ValueError(f"the thin matrices of low_rank have 1 to 128 columns, not {rank}")
    return Remembering(engine.LOW_RANK, rank)


class Cast(Compressor):
    """Floating point numbers as 16 bits. Sums of them are rounded once,
    from 32 bits (collectives/types.hpp)."""

    sent_as = None  # a type of the framework's

    @staticmethod
    def is_floating(tensor):
        raise NotImplementedError

    @staticmethod
    def cast(tensor, kind):
        raise NotImplementedError

    @classmethod
    def compress(cls, tensor):
        return (
            (cls.cast(tensor, cls.sent_as), tensor.dtype)
            if cls.is_floating(tensor)
            else (tensor, None)
        )

    @classmethod
    def decompress(cls, tensor, ctx):
        return tensor if ctx is None else cls.cast(tensor, ctx)
