"""What may be done to a tensor before it is sent, and undone after."""

import torch

from horovod.common.compression import INT8, Cast, Compressor, NoneCompressor, low_rank  # noqa: F401


class _Cast(Cast):
    @staticmethod
    def is_floating(tensor):
        return tensor.dtype.is_floating_point

    @staticmethod
    def cast(tensor, kind):
        return tensor.to(kind)


class FP16Compressor(_Cast):
    sent_as = torch.float16


class BF16Compressor(_Cast):
    sent_as = torch.bfloat16


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor  # Horovod has none: the range of float32, so gradients need no loss scale
    int8 = INT8  # nor has it these two: what they lose comes in the next step
    low_rank = staticmethod(low_rank)
