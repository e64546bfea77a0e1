"""Comparison of implementations with dense attention in float64."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from longbird.core.graph import Graph
from longbird.core.graph.arguments import integer
from longbird.core.graph.facts import FalseFact, false_facts
from longbird.core.machine import available_bytes
from longbird.core.operator import dispatch, flex, reference
from longbird.core.operator.call import DTYPES, Call
from longbird.core.operator.graphs import GraphArgument, OneGraph
from longbird.core.operator.sequences import sequences
from longbird.errors import InvalidTypeError, InvalidValueError

OUTPUT_TOLERANCE = 2e-5
"""Largest permitted error of a float32 output, for values of about unit size."""
GRADIENT_TOLERANCE = 1e-4
"""Largest permitted error of a float32 gradient, relative to the largest gradient."""
LARGEST_CHECK = 16 * 2**30
"""Maximum bytes of dense attention; less if less memory is available."""


@dataclass(frozen=True)
class CheckRow:
    """The errors of one implementation relative to dense float64 attention."""

    impl: str
    output: float | None = None
    """Largest absolute error of the output; None if it did not run."""
    gradients: tuple[float, ...] | None = None
    """Largest errors of the gradients of q, k and v, relative to the largest gradient of each."""
    note: str = ""
    """Reason why it, or its backward pass, did not run."""
    required: bool = False
    """Whether it was named, so that not running is a failure."""
    output_tolerance: float = OUTPUT_TOLERANCE
    gradient_tolerance: float = GRADIENT_TOLERANCE

    @property
    def ran(self) -> bool:
        """Whether it ran."""
        return self.output is not None

    @property
    def ok(self) -> bool:
        """Whether every measured error is within its tolerance; NaN is not."""
        if self.output is None:
            return not self.required
        gradients = self.gradients or ()
        return self.output <= self.output_tolerance and all(
            error <= self.gradient_tolerance for error in gradients
        )


@dataclass(frozen=True)
class CheckReport:
    """The result of `check`; prints as a table."""

    graph: Graph | tuple[Graph, ...] | Callable[[int], OneGraph]
    """One graph, one for each row of the batch, or a function of the length."""
    shape: tuple[int, ...]
    dtype: torch.dtype
    rows: tuple[CheckRow, ...]
    false_facts: tuple[FalseFact, ...] = ()
    """Declarations of pieces (`reach`, `streams`, ...) that are false."""

    @property
    def ok(self) -> bool:
        """Whether an implementation ran, all that ran agree, and all declarations are true."""
        ran = any(row.ran for row in self.rows)
        return ran and all(row.ok for row in self.rows) and not self.false_facts

    def raise_if_failed(self) -> CheckReport:
        """Return the report, or raise an AssertionError that shows it."""
        if not self.ok:
            raise AssertionError(str(self))
        return self

    def __repr__(self) -> str:
        """Return the report as a table."""
        shape = " x ".join(map(str, self.shape))
        graphs = self.graph if isinstance(self.graph, tuple) else (self.graph,)
        lines = [f"{graph!r:.200}" for graph in graphs]
        lines.append(f"{shape}, {self.dtype}, against dense float64:")
        for row in self.rows:
            if not row.ran:
                lines.append(f"  {row.impl:<10} did not run: {row.note}")
                continue
            line = f"  {row.impl:<10} {'ok    ' if row.ok else 'FAILED'}"
            line += f"  output {row.output:.1e} (at most {row.output_tolerance:.1e})"
            if row.gradients is not None:
                errors = " ".join(
                    f"d{name} {error:.1e}"
                    for name, error in zip("qkv", row.gradients, strict=True)
                )
                line += f"  {errors} (at most {row.gradient_tolerance:.1e})"
            lines.append(f"{line}  {row.note}".rstrip())
        if not any(row.ran for row in self.rows):
            lines.append("  no implementation ran")
        lines += [f"  FAILED  {fact}" for fact in self.false_facts]
        return "\n".join(lines)


def check(
    graph: GraphArgument,
    n: int,
    *,
    heads: int = 2,
    head_dim: int = 64,
    batch: int = 1,
    dtype: torch.dtype = torch.float32,
    device: str | torch.device = "cpu",
    lengths: Tensor | Sequence[int] | None = None,
    global_tokens: Tensor | None = None,
    relative_bias: Tensor | None = None,
    scale: float | None = None,
    seed: int = 0,
    impls: Sequence[str] | None = None,
    q: Tensor | None = None,
    k: Tensor | None = None,
    v: Tensor | None = None,
) -> CheckReport:
    """Compare outputs and gradients of implementations with dense attention in float64.

    Also compares what each piece of the graph declares (`reach`, `spans`, `period`, `streams`,
    `tile_count`) with its rule, since layouts and decoders rely on it: for all pairs of positions
    up to 2,048 tokens, and beyond that for all keys of some queries.

    Dense attention takes about 64 bytes x batch x heads x n^2; checks that do not fit into memory
    are refused at once. The tolerance is 2e-5 for float32 outputs (for values of about unit size),
    and 1e-4 of the largest gradient for gradients; 1e-10 for float64; and for bfloat16 and
    float16, relative to float64 attention of the same rounded inputs, 4 units in the last place of
    the largest value, and 8 of the largest gradient.

    Args:
        graph: Graph to check, as for `attention`.
        n: Number of tokens.
        heads: Number of heads.
        head_dim: Size of a head.
        batch: Number of rows of the batch.
        dtype: Dtype of the inputs.
        device: Device to run on.
        lengths: As for `attention`.
        global_tokens: As for `attention`.
        relative_bias: As for `attention`.
        scale: As for `attention`.
        seed: Seed of the random inputs (and of the gradient of the output).
        impls: Names of implementations; by default those that `attention` selects automatically
            on this device. FlexAttention on a CPU has to be named, because it compiles for half a
            minute. If an implementation cannot run, the reason is reported, and the check fails
            only if it was named.
        q: Queries to use instead of random ones, [batch, heads, n, head_dim].
        k: Keys to use instead of random ones.
        v: Values to use instead of random ones.

    Returns:
        Report whose `ok` is true if all agree, and which prints the errors.

    Raises:
        TypeError: An argument has a wrong type.
        ValueError: An argument has a wrong value, or dense attention would take too much memory.

    Examples:
        >>> import longbird as lb
        >>> report = lb.check(lb.bigbird(block=16), 200, impls=["gather"])
        >>> report.ok
        True
    """
    named = {each.NAME: each for each in dispatch.ALL}
    wanted = [each.NAME for each in dispatch.AUTOMATIC] if impls is None else _names(impls, named)
    seed = integer(seed, "seed", least=-(2**63), most=2**63 - 1)
    shape, dtype, device = _form((q, k, v), (batch, heads, n, head_dim), dtype, device)
    _check_memory(shape, device)
    q, k, v, upstream = _inputs((q, k, v), shape, dtype, device, seed)
    call = Call.checked(
        q,
        k,
        v,
        graph,
        lengths=lengths,
        global_tokens=global_tokens,
        relative_bias=relative_bias,
        scale=scale,
    )
    facts = _false_facts(call)
    exact = _run(_in_float64(call), reference.run, upstream)
    rows: list[CheckRow] = []
    for name in wanted:
        if name == flex.NAME and impls is None and device.type == "cpu":
            note = 'it compiles for half a minute on a CPU; impls=["flex"] checks it'
            rows.append(CheckRow(name, note=note))
        else:
            row = _compare(named[name], call, upstream, exact)
            rows.append(replace(row, required=impls is not None))
    return CheckReport(call.graph.given, shape, dtype, tuple(rows), facts)


def _names(impls: Sequence[str], known: Collection[str]) -> list[str]:
    if isinstance(impls, (str, bytes)) or not isinstance(impls, Collection):
        hint = f"; write impls=[{impls!r}]" if impls in known else ""
        raise InvalidTypeError(
            f"impls must be a list of names, received {impls!r} ({type(impls).__name__}){hint}"
        )
    choice = f"some of {', '.join(known)}"
    for name in impls:
        if not isinstance(name, str) or name not in known:
            raise InvalidValueError(f"impls must be {choice}, received {name!r}")
    if not impls:
        raise InvalidValueError(
            f"impls must be {choice}, received none; leave it out to check as usual"
        )
    return list(dict.fromkeys(impls))


Given = tuple[Tensor | None, Tensor | None, Tensor | None]


def _form(
    given: Given, shape: tuple[int, ...], dtype: torch.dtype, device: str | torch.device
) -> tuple[tuple[int, ...], torch.dtype, torch.device]:
    """Return shape, dtype and device of the given tensors, or else of the arguments."""
    for name, x in zip("qkv", given, strict=True):
        if x is not None and not isinstance(x, Tensor):
            raise InvalidTypeError(f"{name} must be a torch.Tensor, received {type(x).__name__}")
    example = next((x for x in given if x is not None), None)
    if example is None:
        names = ("batch", "heads", "n", "head_dim")
        sizes = tuple(integer(x, name) for x, name in zip(shape, names, strict=True))
        if dtype not in DTYPES:
            known = ", ".join(map(str, DTYPES))
            raise InvalidTypeError(f"dtype must be one of {known}, received {dtype!r}")
        try:
            return sizes, dtype, torch.device(device)
        except (TypeError, RuntimeError):
            raise InvalidValueError(
                f'device must be a device of torch, such as "cpu" or "cuda:0", received {device!r}'
            ) from None
    if example.ndim != 4 or example.shape[2] != shape[2]:
        raise InvalidValueError(
            f"q, k and v must be [batch, heads, n, head_dim] with n = {shape[2]}, "
            f"received shape {tuple(example.shape)}"
        )
    return tuple(example.shape), example.dtype, example.device


def _check_memory(shape: tuple[int, ...], device: torch.device) -> None:
    """Raise a ValueError if the check would not fit into memory."""
    batch, heads, n, head_dim = shape
    # In float64: scores, probabilities and their gradients; inputs, results and their gradients.
    needed = batch * heads * n * (64 * n + 120 * head_dim)
    limit = min(LARGEST_CHECK, _free_memory(device))
    if needed > limit:
        raise InvalidValueError(
            f"dense attention of batch {batch}, {heads} heads of {head_dim:,} and {n:,} tokens, "
            f"with its gradients, would take {needed / 2**30:,.0f} GB, and a check may take "
            f"{limit / 2**30:,.0f} GB here; check fewer tokens, heads or rows, or smaller heads"
        )


def _free_memory(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return available_bytes()


def _inputs(
    given: Given, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, seed: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return q, k, v and the gradient of the output; missing ones are drawn."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(4, *shape, generator=generator, dtype=torch.float64).to(device, dtype)
    q, k, v = (x if x is not None else y for x, y in zip(given, drawn[:3], strict=True))
    return q.detach(), k.detach(), v.detach(), drawn[3]


def _in_float64(call: Call) -> Call:
    bias = call.relative_bias
    return replace(
        call,
        q=call.q.double(),
        k=call.k.double(),
        v=call.v.double(),
        relative_bias=None if bias is None else bias.detach().double(),
    )


def _false_facts(call: Call) -> tuple[FalseFact, ...]:
    """Return those of all graphs of a call, each at the longest of its sequences."""
    longest: dict[Graph, int] = {}
    for number, (_, length) in enumerate(sequences(call)):
        if length:
            graph = call.graph.of(number, length).at(length)
            longest[graph] = max(length, longest.get(graph, 0))
    found = (false_facts(graph, n, call.heads) for graph, n in longest.items())
    return tuple({(each.piece, each.fact): each for facts in found for each in facts}.values())


Run = Callable[[Call], tuple[Tensor, Tensor]]


def _run(call: Call, run: Run, upstream: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the output and the gradients of q, k and v."""
    leaves = [x.detach().clone().requires_grad_() for x in (call.q, call.k, call.v)]
    with torch.enable_grad():
        out, _ = run(replace(call, q=leaves[0], k=leaves[1], v=leaves[2]))
        gradients = torch.autograd.grad(out, leaves, upstream.to(out.dtype))
    return out.detach(), gradients


def _compare(
    implementation: dispatch.Implementation,
    call: Call,
    upstream: Tensor,
    exact: tuple[Tensor, tuple[Tensor, ...]],
) -> CheckRow:
    name = implementation.NAME
    training = replace(call, q=call.q.detach().requires_grad_())
    with torch.enable_grad():
        no_backward = "; ".join(dispatch.reasons(implementation, training))
    with torch.no_grad():
        no_forward = "; ".join(dispatch.reasons(implementation, call))
    if no_forward:
        return CheckRow(name, note=no_forward)

    gradients = None
    try:
        if no_backward:
            with torch.no_grad():
                out, _ = implementation.run(call)
        else:
            out, found = _run(call, implementation.run, upstream)
            # Gradients that are only rounding errors (of a query with one key) are compared with
            # the largest of all gradients.
            floor = 0.01 * max(map(_largest, exact[1]))
            gradients = tuple(
                _largest(x.double() - y) / (max(_largest(y), floor) or 1.0)
                for x, y in zip(found, exact[1], strict=True)
            )
    except ValueError as error:
        return CheckRow(name, note=str(error))
    output_tolerance, gradient_tolerance = _tolerances(call)
    return CheckRow(
        impl=name,
        output=_largest(out.double() - exact[0]),
        gradients=gradients,
        note=f"forward only: {no_backward}" if no_backward else "",
        output_tolerance=output_tolerance,
        gradient_tolerance=gradient_tolerance,
    )


def _tolerances(call: Call) -> tuple[float, float]:
    """Return the tolerance of the output, and of gradients relative to the largest."""
    if call.q.dtype == torch.float32:
        return OUTPUT_TOLERANCE, GRADIENT_TOLERANCE
    if call.q.dtype == torch.float64:
        return 1e-10 * max(1.0, _largest(call.v)), 1e-10
    unit = torch.finfo(call.q.dtype).eps
    return 4 * unit * _largest(call.v), 8 * unit


def _largest(x: Tensor) -> float:
    return float(x.abs().max()) if x.numel() else 0.0
