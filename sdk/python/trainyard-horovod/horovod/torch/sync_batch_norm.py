"""Batch normalisation over the batches of all ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from horovod.common import basics
from horovod.torch.mpi_ops import Sum, allreduce_async_, synchronize


class SyncBatchNorm(_BatchNorm):
    """torch.nn.BatchNorm*d of any number of dimensions, with the mean and variance of the batches
    of all ranks. In evaluation mode, and with one rank, it is the same as that."""

    def _check_input_dim(self, tensor: torch.Tensor) -> None:
        if tensor.dim() < 2:
            raise ValueError(f"expected a batch of at least 2 dimensions, not {tensor.dim()}")

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(tensor)
        of_the_batch = self.training or not self.track_running_stats
        if not of_the_batch or basics.size() == 1:
            return super().forward(tensor)
        momentum = self.momentum
        if self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        axes = [0, *range(2, tensor.dim())]
        output, mean, variance, count = _Normalise.apply(
            tensor, self.weight, self.bias, self.eps, axes
        )
        if self.track_running_stats:
            with torch.no_grad():
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
                unbiased = variance * (count / (count - 1).clamp(min=1))
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)
        return output


Context = Any  # autograd's, between forward and backward


def _total(values: torch.Tensor, what: str) -> torch.Tensor:
    return synchronize(
        allreduce_async_(values, name=f"sync_batch_norm.{what}.{values.numel()}", op=Sum)
    )


class _Normalise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Context,
        tensor: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        eps: float,
        axes: list[int],
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        wide = tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
        channels = tensor.shape[1]
        # Computes the mean first, then the squares of the deviations: a difference of sums would
        # lose digits if the mean is large.
        sums = torch.cat([wide.sum(axes), wide.new_tensor([wide.numel() / channels])])
        sums = _total(sums, "sums")
        count = sums[-1]
        mean = sums[:-1] / count
        shape = [1, channels] + [1] * (tensor.dim() - 2)
        centred = wide - mean.view(shape)
        variance = _total((centred * centred).sum(axes), "squares") / count
        scale = torch.rsqrt(variance + eps)
        normal = centred * scale.view(shape)
        output = normal if weight is None else normal * weight.view(shape)
        if bias is not None:
            output = output + bias.view(shape)
        ctx.save_for_backward(normal, weight, scale, count)
        ctx.axes, ctx.shape, ctx.has_bias = axes, shape, bias is not None
        ctx.mark_non_differentiable(mean, variance, count)
        return output.to(tensor.dtype), mean, variance, count

    @staticmethod
    def backward(
        ctx: Context, gradient: torch.Tensor, *_: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        normal, weight, scale, count = ctx.saved_tensors
        wide = gradient.to(normal.dtype)
        # The gradient of this rank's batch: the optimizer sums gradients over ranks, as for every
        # layer.
        of_bias, of_weight = wide.sum(ctx.axes), (wide * normal).sum(ctx.axes)
        of_input = None
        if ctx.needs_input_grad[0]:
            totals = _total(torch.cat([of_bias, of_weight]), "gradients") / count
            mean_gradient, mean_product = totals.chunk(2)
            factor = scale if weight is None else scale * weight
            of_input = (
                wide - mean_gradient.view(ctx.shape) - normal * mean_product.view(ctx.shape)
            ) * factor.view(ctx.shape)
            of_input = of_input.to(gradient.dtype)
        return (
            of_input,
            of_weight if weight is not None else None,
            of_bias if ctx.has_bias else None,
            None,
            None,
        )
