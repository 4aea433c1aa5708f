"""Compression of tensors before they are sent, and decompression afterwards."""

from __future__ import annotations

import tensorflow as tf

from horovod.common.compression import INT8, Cast, Compressor, NoneCompressor, low_rank

__all__ = ["BF16Compressor", "Compression", "Compressor", "FP16Compressor", "NoneCompressor"]


class _Cast(Cast):
    @staticmethod
    def is_floating(tensor: tf.Tensor) -> bool:
        return tensor.dtype.is_floating

    @staticmethod
    def cast(tensor: tf.Tensor, kind: tf.DType) -> tf.Tensor:
        return tf.cast(tensor, kind)


class FP16Compressor(_Cast):
    sent_as = tf.float16


class BF16Compressor(_Cast):
    sent_as = tf.bfloat16


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
    int8 = INT8  # as in horovod.torch: the errors of these two are added in the next step
    low_rank = staticmethod(low_rank)
