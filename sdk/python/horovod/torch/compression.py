"""What may be done to a tensor before it is sent, and undone after."""

import torch


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


class _Cast(Compressor):
    """Floating point numbers as 16 bits. Sums of them are rounded once, from 32 bits (collectives/types.hpp)."""

    sent_as = torch.float16

    @classmethod
    def compress(cls, tensor):
        return (tensor.to(cls.sent_as), tensor.dtype) if tensor.dtype.is_floating_point else (tensor, None)

    @classmethod
    def decompress(cls, tensor, ctx):
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_Cast):
    sent_as = torch.float16


class BF16Compressor(_Cast):
    sent_as = torch.bfloat16


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor  # Horovod has none: the range of float32, so gradients need no loss scale
