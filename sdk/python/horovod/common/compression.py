"""What may be done to a tensor before it is sent, and undone after: what no framework is needed for."""


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


class Cast(Compressor):
    """Floating point numbers as 16 bits. Sums of them are rounded once, from 32 bits (collectives/types.hpp)."""

    sent_as = None  # a type of the framework's

    @staticmethod
    def is_floating(tensor):
        raise NotImplementedError

    @staticmethod
    def cast(tensor, kind):
        raise NotImplementedError

    @classmethod
    def compress(cls, tensor):
        return (cls.cast(tensor, cls.sent_as), tensor.dtype) if cls.is_floating(tensor) else (tensor, None)

    @classmethod
    def decompress(cls, tensor, ctx):
        return tensor if ctx is None else cls.cast(tensor, ctx)
