"""The tanh approximation of GELU, natively on a CPU, where torch is seven times slower."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.core.operator import native


def tanh_gelu(x: Tensor) -> Tensor:
    """Compute `gelu(x, approximate="tanh")`, to the last digits of float32.

    Examples:
        >>> import torch
        >>> tanh_gelu(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1588,  0.0000,  0.8412])
    """
    # Compilers fuse torch's own GELU; half precision is rounded once, at the end, as in torch.
    if (
        torch.compiler.is_compiling()
        or x.dtype != torch.float32
        or x.device.type != "cpu"
        or native.is_transformed(x)
        or native.missing()
    ):
        return F.gelu(x, approximate="tanh")
    return torch.ops.longbird.native_gelu(x)


@torch.library.custom_op("longbird::native_gelu", mutates_args=())
def native_gelu(x: Tensor) -> Tensor:
    """Compute the output."""
    x = x.contiguous()
    out = torch.empty_like(x)
    native.extension().gelu(x.data_ptr(), 0, out.data_ptr(), x.numel(), torch.get_num_threads())
    return out


@torch.library.custom_op("longbird::native_gelu_backward", mutates_args=())
def native_gelu_backward(grad_out: Tensor, x: Tensor) -> Tensor:
    """Compute the gradient of x."""
    x, grad_out = x.contiguous(), grad_out.contiguous()
    grad = torch.empty_like(x)
    addresses = (t.data_ptr() for t in (x, grad_out, grad))
    native.extension().gelu(*addresses, x.numel(), torch.get_num_threads())
    return grad


@native_gelu.register_fake
@native_gelu_backward.register_fake
def _(x: Tensor, *_: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad_out: Tensor) -> Tensor:
    if torch.is_grad_enabled():  # for second derivatives
        return torch.ops.aten.gelu_backward(grad_out, *ctx.saved_tensors, approximate="tanh")
    return torch.ops.longbird.native_gelu_backward(grad_out, *ctx.saved_tensors)


native_gelu.register_autograd(_backward, setup_context=_setup_context)
