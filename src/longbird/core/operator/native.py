"""The native kernels as a `torch.library` operator: C++ on plain pointers, forward and backward.

The operator receives the key of the graph (a string) and finds the layout when it runs, so that
`torch.compile` and `torch.export` see one opaque call for any length. The gradient is a separate
operator, which cannot be differentiated again.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import importlib
import os
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from longbird.core.layout import Layout
from longbird.core.operator.call import Call
from longbird.core.operator.graphs import Graphs
from longbird.core.operator.sequences import (
    all_global_tokens,
    check_edges_count_once,
    marked_tokens,
    sequences,
)
from longbird.core.operator.tracing import constant
from longbird.errors import UnsupportedError

NAME = "native"
INTERFACE = 1  # must equal INTERFACE of csrc/bindings.cpp
DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}  # as in csrc/attention.h
LARGEST_HEAD_DIM = 256


@functools.cache
def extension() -> Any:
    """Return the extension module, or the error that explains why it is missing."""
    try:
        module = importlib.import_module("longbird._native")
        if (built := getattr(module, "INTERFACE", None)) != INTERFACE:
            raise UnsupportedError(
                "the native kernels were built from another version of the source (interface "
                f"{built}, expected {INTERFACE}); reinstall longbird: "
                "pip install --force-reinstall --no-deps --no-cache-dir ."
            )
        module.isa()  # reads LONGBIRD_ISA, which may name an unsupported instruction set
    except (ImportError, RuntimeError) as error:
        return error
    _share_threads_with_torch(module)
    return module


def _share_threads_with_torch(module: Any) -> None:
    """Let the kernels run on the threads of torch's OpenMP runtime (see csrc/threads.cpp)."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    for path in glob.glob(os.path.join(folder, "libgomp*")):
        runtime = ctypes.CDLL(path)
        module.use_openmp(ctypes.cast(runtime.GOMP_parallel, ctypes.c_void_p).value)


def missing() -> str | None:
    """Return why the native kernels are not available, or None."""
    module = extension()
    if isinstance(module, RuntimeError):
        return str(module)
    if isinstance(module, ImportError):
        return (
            f"the native kernels are not built ({module}); "
            "install a C++17 compiler (g++ or clang) and reinstall longbird"
        )
    return None


def instruction_sets() -> list[str]:
    """Return the instruction sets that build and machine support, the one in use first."""
    module = extension()
    if isinstance(module, Exception):
        return []
    names: list[str] = module.isas()
    return sorted(names, key=lambda name: name != module.isa())


def unsupported(call: Call) -> list[str]:
    """Return why the kernels cannot run a call."""
    reasons: list[str] = []
    if call.q.device.type != "cpu":
        reasons.append(f"runs on the CPU only, received tensors on {call.q.device}")
    if _into_onnx():
        reasons.append("is an operator that ONNX does not have")
    if call.q.dtype not in DTYPES:
        reasons.append(f"takes float32, bfloat16 and float16, received {call.q.dtype}")
    if call.head_dim > LARGEST_HEAD_DIM:
        reasons.append(f"takes head_dim up to {LARGEST_HEAD_DIM}, received {call.head_dim}")
    tensors = (call.q, call.k, call.v, call.relative_bias)
    if is_transformed(*(x for x in tensors if x is not None)):
        reasons.append("has a backward pass only, without torch.func and forward mode")
    return reasons


@constant
def _into_onnx() -> bool:
    """Return whether this call is being exported to ONNX; torch denies it in traced code."""
    return torch.compiler.is_exporting() and torch.onnx.is_in_onnx_export()


def is_transformed(*tensors: Tensor) -> bool:
    """Return whether tensors belong to torch.func.grad, jvp or vmap, or to forward-mode autograd.

    Custom operators have no forward derivative, and torch silently uses zero instead.
    """
    if torch.compiler.is_compiling():
        return False
    functorch: Any = getattr(torch._C, "_functorch")  # noqa: B009
    wrapped = functorch.is_functorch_wrapped_tensor
    dual = forward_ad._current_level >= 0
    return any(
        wrapped(x) or (dual and forward_ad.unpack_dual(x).tangent is not None) for x in tensors
    )


def run(call: Call) -> tuple[Tensor, Tensor]:
    """Return the output and the log-sum-exp."""
    return torch.ops.longbird.native_attention(
        call.q, call.k, call.v, call.graph.key, call.lengths, call.cu_seqlens, call.global_tokens,
        call.relative_bias, call.dropout_p, call.dropout_seed, call.scale,
    )  # fmt: skip


# The fields of a call that determine the result, in their order, with the key of the graph.
OPERANDS = (
    "Tensor q, Tensor k, Tensor v, str graph, Tensor? lengths, Tensor? cu_seqlens, "
    "Tensor? global_tokens, Tensor? relative_bias, float dropout_p, Tensor? dropout_seed, "
    "float scale"
)


def _call(operands: Sequence[Any]) -> Call:
    """Return the call of these operands, with contiguous channels in q, k and v."""
    q, k, v, graph, *others = operands
    return Call(_rows(q), _rows(k), _rows(v), Graphs.from_key(graph), *others)


# ---- forward ----


@torch.library.custom_op(
    "longbird::native_attention", mutates_args=(), schema=f"({OPERANDS}) -> (Tensor, Tensor)"
)
def native_attention(*operands: Any) -> tuple[Tensor, Tensor]:
    """Return the output and the log-sum-exp."""
    call = _call(operands)
    out, lse = _empty_outputs(call)
    problem, _bias = _problem(call, out, lse)
    extension().forward(problem, torch.get_num_threads())
    return out, lse


@native_attention.register_fake
def _(q: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(_rows(q)), q.new_empty(q.shape[:-1], dtype=torch.float32)


# ---- backward ----


@torch.library.custom_op(
    "longbird::native_attention_backward",
    mutates_args=(),
    schema=f"(Tensor grad_out, Tensor grad_lse, Tensor out, Tensor lse, {OPERANDS})"
    " -> (Tensor, Tensor, Tensor, Tensor)",
)
def native_attention_backward(
    grad_out: Tensor, grad_lse: Tensor, out: Tensor, lse: Tensor, *operands: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of q, k, v and relative_bias (empty if there is none)."""
    call = _call(operands)
    new = torch.zeros_like if call.lengths is not None else torch.empty_like
    grads = [new(x) for x in (call.q, call.k, call.v)]
    grad_bias = _empty_bias_gradient(call.q, call.relative_bias)
    problem, _bias = _problem(call, out, lse, grad_bias)
    grad_out, grad_lse = _rows(grad_out), grad_lse.float()
    problem.grad_out = _address(grad_out, call.packed)
    problem.grad_lse = _address(grad_lse, call.packed)
    problem.grad_q, problem.grad_k, problem.grad_v = (_address(x, call.packed) for x in grads)
    extension().backward(problem, torch.get_num_threads())
    if call.relative_bias is not None:
        grad_bias = grad_bias.to(call.relative_bias.dtype)
    return grads[0], grads[1], grads[2], grad_bias


@native_attention_backward.register_fake
def _(
    _grad_out: Tensor, _grad_lse: Tensor, _out: Tensor, _lse: Tensor, q: Tensor, k: Tensor,
    v: Tensor, _graph: str, _lengths: Tensor | None, _packed: Tensor | None,
    _global_tokens: Tensor | None, relative_bias: Tensor | None, *_: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    grad_bias = _empty_bias_gradient(q, relative_bias)
    if relative_bias is not None:
        grad_bias = grad_bias.to(relative_bias.dtype)
    grad_q, grad_k, grad_v = (torch.empty_like(_rows(x)) for x in (q, k, v))
    return grad_q, grad_k, grad_v, grad_bias


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, graph, lengths, cu_seqlens, global_tokens, bias, dropout_p, seed, scale = inputs
    ctx.save_for_backward(*output, q, k, v, lengths, cu_seqlens, global_tokens, bias, seed)
    # Also saves the graphs: the key of a large graph is only valid while the graph is alive.
    ctx.graphs = Graphs.from_key(graph)
    ctx.graph, ctx.dropout_p, ctx.scale = graph, dropout_p, scale


def _backward(ctx: Any, grad_out: Tensor, grad_lse: Tensor) -> tuple[Tensor | None, ...]:
    out, lse, q, k, v, lengths, cu_seqlens, global_tokens, bias, seed = ctx.saved_tensors
    grad_q, grad_k, grad_v, grad_bias = torch.ops.longbird.native_attention_backward(
        grad_out, grad_lse, out, lse, q, k, v, ctx.graph, lengths, cu_seqlens, global_tokens, bias,
        ctx.dropout_p, seed, ctx.scale,
    )  # fmt: skip
    grad_bias = None if bias is None else grad_bias
    return grad_q, grad_k, grad_v, None, None, None, None, grad_bias, None, None, None


native_attention.register_autograd(_backward, setup_context=_setup_context)


def _refuse_second_derivative(_ctx: Any, *_grads: Tensor) -> Any:
    raise UnsupportedError(
        "the native attention can be differentiated once, not twice; "
        'use impl="gather" where a second derivative is needed'
    )


native_attention_backward.register_autograd(_refuse_second_derivative)


# ---- arguments of the kernels ----


def _rows(x: Tensor) -> Tensor:
    """Return a tensor with contiguous channels; the kernels accept any other strides."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _empty_outputs(call: Call) -> tuple[Tensor, Tensor]:
    """Return outputs to be filled; padding keeps zeros and a log-sum-exp of -inf."""
    q = call.q
    if call.lengths is None:
        return torch.empty_like(q), q.new_empty(q.shape[:-1], dtype=torch.float32)
    return torch.zeros_like(q), q.new_full(q.shape[:-1], -torch.inf, dtype=torch.float32)


def _empty_bias_gradient(q: Tensor, relative_bias: Tensor | None) -> Tensor:
    shape = (0,) if relative_bias is None else relative_bias.shape
    return q.new_empty(shape, dtype=torch.float32)


def _problem(
    call: Call, out: Tensor, lse: Tensor, grad_bias: Tensor | None = None
) -> tuple[Any, Tensor | None]:
    """Return the kernels' view of a call, and the bias that it points into."""
    problem, packed = extension().Problem(), call.packed
    problem.heads, problem.head_dim, problem.scale = call.heads, call.head_dim, call.scale
    problem.q, problem.k, problem.v, problem.out, problem.lse = (
        _address(x, packed) for x in (call.q, call.k, call.v, out, lse)
    )
    bias = None
    if call.relative_bias is not None:
        bias = call.relative_bias.detach().float().contiguous()
        address = 0 if grad_bias is None else grad_bias.data_ptr()
        problem.set_bias(bias.data_ptr(), address, bias.shape[1] // 2)
    if call.dropout_seed is not None:
        problem.dropout_p = call.dropout_p
        problem.dropout_seed = int(call.dropout_seed) % 2**64
    for layout, number, batch, start, global_tokens in _sequences(call):
        problem.add_sequence(_native_layout(layout), number, batch, start, global_tokens)
    return problem, bias


def _address(x: Tensor, packed: bool) -> Any:
    """Return address and strides of [batch, heads, n, ...] or packed [tokens, heads, ...]."""
    strides = (0, x.stride(1), x.stride(0)) if packed else x.stride()[:3]
    return extension().Tensor(x.data_ptr(), DTYPES[x.dtype], *strides)


def _sequences(call: Call) -> Iterator[tuple[Layout, int, int, int, np.ndarray]]:
    """Yield layout, number, row, first token and global tokens of each non-empty sequence."""
    for number, (start, length) in enumerate(sequences(call)):
        if length == 0:
            continue
        layout = call.graph.of(number, length).layout(length, call.heads)
        marked = marked_tokens(call, number, start, length)
        check_edges_count_once(NAME, layout, marked)
        global_tokens = all_global_tokens(layout, marked).astype(np.int32)
        batch, start = (0, start) if call.packed else (number, 0)
        yield layout, number, batch, start, global_tokens


_layouts: weakref.WeakKeyDictionary[Layout, Any] = weakref.WeakKeyDictionary()


def _native_layout(layout: Layout) -> Any:
    found = _layouts.get(layout)
    if found is None:
        none = np.zeros(0, dtype=np.int32)
        arrays: list[Any] = []
        for tiling in (layout.queries, layout.keys):
            order = none if tiling.order is None else tiling.order
            arrays += [tiling.starts, order, tiling.step]
        found = _layouts[layout] = extension().layout(
            layout.queries.size, *arrays, layout.row_ptr, layout.columns, layout.mask_ids,
            layout.masks,
        )  # fmt: skip
    return found


# ---- work space ----


def work_space(call: Call, threads: int, backward: bool) -> int:
    """Return the peak number of bytes that the kernels allocate for a call besides its tensors.

    Only shapes, dtypes and strides of the tensors matter: they may be on the "meta" device.
    """
    module = extension()
    problem, _bias = _problem(call, *_empty_outputs(call))
    needed: int = module.work_space(problem, threads, False)
    if backward:
        grads = (_address(torch.empty_like(x), call.packed) for x in (call.k, call.v))
        problem.grad_k, problem.grad_v = grads
        needed = max(needed, module.work_space(problem, threads, True))
    return needed
