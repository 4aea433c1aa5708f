"""What may be done to a tensor before it is sent, and undone after."""

import tensorflow as tf


class Compressor:
    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


class NoneCompressor(Compressor):
    pass


class _Cast(Compressor):
    sent_as = tf.float16

    @classmethod
    def compress(cls, tensor):
        return (tf.cast(tensor, cls.sent_as), tensor.dtype) if tensor.dtype.is_floating else (tensor, None)

    @classmethod
    def decompress(cls, tensor, ctx):
        return tensor if ctx is None else tf.cast(tensor, ctx)


class FP16Compressor(_Cast):
    sent_as = tf.float16


class BF16Compressor(_Cast):
    sent_as = tf.bfloat16


class Compression:
    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
