"""Compression of tensors before they are sent, and decompression afterwards."""

from __future__ import annotations

import torch

from horovod.common.compression import INT8, Cast, Compressor, NoneCompressor, low_rank

__all__ = ["BF16Compressor", "Compression", "Compressor", "FP16Compressor", "NoneCompressor"]


class _Cast(Cast):
    @staticmethod
    def is_floating(tensor: torch.Tensor) -> bool:
        return tensor.dtype.is_floating_point

    @staticmethod
    def cast(tensor: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
        return tensor.to(kind)


class FP16Compressor(_Cast):
    sent_as = torch.float16


class BF16Compressor(_Cast):
    sent_as = torch.bfloat16


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor  # not in Horovod: the range of float32, so gradients need no loss scale
    int8 = INT8  # not in Horovod either, as the next: their errors are added in the next step
    low_rank = staticmethod(low_rank)
