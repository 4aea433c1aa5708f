"""Compresses tensors before they are sent, and decompresses them afterwards."""

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
    # The following are not in Horovod. bf16 has the range of float32, so gradients need no loss
    # scaling. The rounding errors of int8 and low_rank are added in the next step.
    bf16 = BF16Compressor
    int8 = INT8
    low_rank = staticmethod(low_rank)
