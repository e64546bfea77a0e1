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
    """Types of the options for type checkers; `attention` documents them."""

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

    The result equals dense attention under the mask `graph.mask(n, heads)`; time and memory grow
    with the number of edges. The output of a query that sees no key is zero. NaN or infinity in q
    or k of a token never affects a query that does not see it; in v it affects every query that
    sees it, and possibly others of the same sequence and head, since 0 x NaN is NaN.

    Args:
        q: Queries [batch, heads, n, head_dim]; float32, bfloat16, float16 or float64, any strides.
        k: Keys, of the shape of q.
        v: Values, of the shape of q.
        graph: Graph of the edges from queries to keys, or its expression, such as
            "bigbird(block=16)". A list has one graph for each row of the batch; a function is
            called with the number of tokens of a row and returns its graph.
        lengths: Lengths [batch] of right-padded rows without their padding. Each row then has the
            graph of its own length, as if it were alone; padding is never computed, and its
            outputs and gradients are zeros.
        global_tokens: Tokens that see and are seen by all, in addition to the graph: bool
            [batch, n].
        relative_bias: Differentiable table [heads, 2m + 1]; entry m + clip(j - i, -m, m) is added
            to the scaled scores (T5, MPNet, ALiBi).
        dropout_p: Probability of dropping an attention weight; at least 0, less than 1.
        dropout_seed: Seed of the dropout. The same seed drops the same edges in every
            implementation. By default it is drawn from torch's generator, as torch's dropout does.
        scale: Factor of q . k; by default 1 / sqrt(head_dim).
        impl: "auto", or the name of an implementation ("native", "flex", "gather", "reference"),
            which then runs or raises. See `implementations`.
        return_lse: Whether to also return the log-sum-exp of the scores of every query, by which
            outputs over disjoint sets of edges can be merged.

    Returns:
        Output [batch, heads, n, head_dim]; with `return_lse` also the log-sum-exp [batch, heads,
        n], float32 (float64 for float64 inputs), -inf for queries without keys.

    Raises:
        TypeError: An argument has a wrong type or dtype.
        ValueError: Shapes, devices or values do not match, the graph does not exist at this
            length, or no implementation can run the call; the message states the reason.

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
    """Attention as by `attention`, over sequences that follow each other without padding.

    Args:
        q: Queries of the tokens of all sequences, [tokens, heads, head_dim].
        k: Keys, of the shape of q.
        v: Values, of the shape of q.
        graph: As for `attention`; a list has one graph for each sequence. Each sequence has the
            graph of its own length.
        cu_seqlens: Start of each sequence, and the number of tokens at the end, [sequences + 1]:
            sequence s is q[cu_seqlens[s]:cu_seqlens[s + 1]].
        global_tokens: As for `attention`: bool [tokens].
        relative_bias: As for `attention`.
        dropout_p: As for `attention`.
        dropout_seed: As for `attention`.
        scale: As for `attention`.
        impl: As for `attention`.
        return_lse: As for `attention`.

    Returns:
        Output [tokens, heads, head_dim]; with `return_lse` also the log-sum-exp [tokens, heads].

    Raises:
        TypeError: An argument has a wrong type or dtype.
        ValueError: Shapes, devices or values do not match; the message states the reason.

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
