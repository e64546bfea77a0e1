"""The operator: attention over a graph, for padded and for packed batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, overload

from torch import Tensor

from longbird.core.operator import dispatch
from longbird.core.operator.call import Call
from longbird.core.operator.graphs import GraphArgument
from longbird.errors import InvalidTypeError

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Options(TypedDict, total=False):
    """What type checkers know of the options; `attention` documents them."""

    global_tokens: Tensor | None
    relative_bias: Tensor | None
    dropout_p: float
    dropout_seed: int | Tensor | None
    scale: float | None
    impl: str


class _PaddedOptions(_Options, total=False):
    lengths: Tensor | Sequence[int] | None


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    graph: GraphArgument,
    *,
    return_lse: Literal[False] = ...,
    **options: Unpack[_PaddedOptions],
) -> Tensor: ...


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    graph: GraphArgument,
    *,
    return_lse: Literal[True],
    **options: Unpack[_PaddedOptions],
) -> tuple[Tensor, Tensor]: ...


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    graph: GraphArgument,
    *,
    lengths: Tensor | Sequence[int] | None = None,
    global_tokens: Tensor | None = None,
    relative_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    dropout_seed: int | Tensor | None = None,
    scale: float | None = None,
    impl: str = "auto",
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention in which query i of a head sees key j if the graph has the edge (i, j).

    Equal to dense attention under the mask `graph.mask(n, heads)`, in time and memory that grow
    with the number of edges. A query that sees no key gives zeros. NaN or infinity in q or k of a
    token never reaches a query that does not see it; in v it reaches every query that sees it, and
    can reach others of the same sequence and head, since 0 x NaN is NaN.

    Args:
        q: [batch, heads, n, head_dim]; float32, bfloat16, float16 or float64, any strides.
        k: Keys, of the shape of q.
        v: Values, of the shape of q.
        graph: Which query sees which key: a graph, or its expression as text, such as
            "bigbird(block=16)". A list has one graph for each row of the batch; a function is
            called with the number of tokens of a row and returns its graph.
        lengths: [batch], the real lengths of right-padded rows. Each row then has the graph of its
            own length, as if it were alone; padding is never computed, and its outputs and
            gradients are zeros.
        global_tokens: bool [batch, n], tokens that see and are seen by all, on top of the graph.
        relative_bias: [heads, 2m + 1], differentiable; entry m + clip(j - i, -m, m) is added to
            the scaled scores (T5, MPNet, ALiBi).
        dropout_p: The share of attention probabilities that are dropped; at least 0, less than 1.
        dropout_seed: Seed of the dropout. The same seed drops the same edges in every
            implementation. By default it is drawn from torch's generator, as torch's dropout does.
        scale: What q . k is multiplied by; 1 / sqrt(head_dim) by default.
        impl: "auto", or an implementation by name ("native", "flex", "gather", "reference"), which
            then runs or raises. See `implementations`.
        return_lse: Also return the log-sum-exp of the scores of every query, by which outputs over
            disjoint sets of edges can be merged.

    Returns:
        The output, [batch, heads, n, head_dim]; with `return_lse` also the log-sum-exp [batch,
        heads, n], float32 (float64 for float64 inputs), -inf for queries without keys.

    Raises:
        TypeError: An argument has a wrong type or dtype.
        ValueError: Shapes, devices or values do not fit, the graph does not exist at this length,
            or no implementation can run the call; the message says why.

    Examples:
        >>> import torch, longbird as lb
        >>> q, k, v = torch.randn(3, 2, 4, 300, 32).unbind()
        >>> graph = lb.bigbird(block=16)
        >>> lb.attention(q, k, v, graph, lengths=[300, 170], impl="gather").shape
        torch.Size([2, 4, 300, 32])

        A graph for each row of the batch, and a graph that depends on the number of tokens:

        >>> both = lb.attention(q, k, v, [graph, "Window(8)"])
        >>> torch.equal(both[1], lb.attention(q[1:], k[1:], v[1:], lb.Window(8))[0])
        True
        >>> wide = lb.attention(q, k, v, lambda n: lb.Window(n // 10), lengths=[300, 170])
    """
    call = Call.checked(
        q,
        k,
        v,
        graph,
        lengths=lengths,
        global_tokens=global_tokens,
        relative_bias=relative_bias,
        dropout_p=dropout_p,
        dropout_seed=dropout_seed,
        scale=scale,
        return_lse=return_lse,
    )
    out, lse = dispatch.choose(call, impl).run(call)
    return (out, lse) if return_lse else out


@overload
def attention_packed(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    graph: GraphArgument,
    cu_seqlens: Tensor | Sequence[int],
    *,
    return_lse: Literal[False] = ...,
    **options: Unpack[_Options],
) -> Tensor: ...


@overload
def attention_packed(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    graph: GraphArgument,
    cu_seqlens: Tensor | Sequence[int],
    *,
    return_lse: Literal[True],
    **options: Unpack[_Options],
) -> tuple[Tensor, Tensor]: ...


def attention_packed(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    graph: GraphArgument,
    cu_seqlens: Tensor | Sequence[int],
    *,
    global_tokens: Tensor | None = None,
    relative_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    dropout_seed: int | Tensor | None = None,
    scale: float | None = None,
    impl: str = "auto",
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """`attention` over sequences that follow each other without padding.

    Args:
        q: [tokens, heads, head_dim], the tokens of all sequences.
        k: Keys, of the shape of q.
        v: Values, of the shape of q.
        graph: As for `attention`; a list has one graph for each sequence. Each sequence has the
            graph of its own length.
        cu_seqlens: [sequences + 1], where each sequence starts, and the number of tokens at the
            end: sequence s is q[cu_seqlens[s]:cu_seqlens[s + 1]].
        global_tokens: bool [tokens].
        relative_bias: As for `attention`.
        dropout_p: As for `attention`.
        dropout_seed: As for `attention`.
        scale: As for `attention`.
        impl: As for `attention`.
        return_lse: As for `attention`.

    Returns:
        The output, [tokens, heads, head_dim]; with `return_lse` also the log-sum-exp [tokens,
        heads].

    Raises:
        TypeError: An argument has a wrong type or dtype.
        ValueError: Shapes, devices or values do not fit; the message says why.

    Examples:
        >>> import torch, longbird as lb
        >>> q, k, v = torch.randn(3, 300 + 170, 4, 32).unbind()
        >>> lb.attention_packed(q, k, v, lb.Window(8), [0, 300, 470], impl="gather").shape
        torch.Size([470, 4, 32])
    """
    if cu_seqlens is None:
        raise InvalidTypeError(
            "cu_seqlens must be an integer tensor [sequences + 1] that says where each sequence "
            "starts, received None"
        )
    call = Call.checked(
        q,
        k,
        v,
        graph,
        cu_seqlens=cu_seqlens,
        global_tokens=global_tokens,
        relative_bias=relative_bias,
        dropout_p=dropout_p,
        dropout_seed=dropout_seed,
        scale=scale,
        return_lse=return_lse,
    )
    out, lse = dispatch.choose(call, impl).run(call)
    return (out, lse) if return_lse else out
