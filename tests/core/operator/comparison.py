"""Comparing an implementation with the dense reference in float64: outputs and all gradients."""

from __future__ import annotations

from dataclasses import replace

import torch
from strategies import Case
from torch import Tensor


def results(case: Case, impl: str) -> dict[str, Tensor]:
    """The output, the log-sum-exp, and gradients of a loss that uses both."""
    leaves = {name: getattr(case, name).detach().clone().requires_grad_() for name in "qkv"}
    options = dict(case.options)
    if "relative_bias" in options:
        leaves["relative_bias"] = options["relative_bias"].detach().clone().requires_grad_()
        options["relative_bias"] = leaves["relative_bias"]
    case = replace(case, q=leaves["q"], k=leaves["k"], v=leaves["v"], options=options)
    out, lse = case(impl)
    assert out.dtype == case.q.dtype
    assert out.shape == case.q.shape
    assert lse.shape == case.q.shape[:-1]
    assert lse.dtype == (torch.float64 if out.dtype == torch.float64 else torch.float32)

    generator = torch.Generator().manual_seed(1)
    d_out = torch.randn(out.shape, generator=generator).to(out.dtype)
    d_lse = torch.randn(lse.shape, generator=generator).to(lse.dtype)
    torch.autograd.backward([out, lse], [d_out, d_lse])
    found = {"out": out.detach(), "lse": lse.detach()}
    return found | {f"d{name}": leaf.grad for name, leaf in leaves.items()}


def assert_parity(case: Case, impl: str) -> None:
    """Output within 2e-5 of dense float64 attention, gradients within 1e-4 of the largest.

    For bfloat16 and float16 the reference has the same rounded inputs, and the tolerance is a few
    units in the last place of the largest value.
    """
    found = results(case, impl)
    exact = results(case.to(torch.float64), "reference")
    output, relative = 2e-5, 1e-4
    if case.q.dtype == torch.float64:
        output, relative = 1e-11, 1e-11
    elif case.q.dtype != torch.float32:
        unit = torch.finfo(case.q.dtype).eps
        output, relative = 4 * unit * max(1.0, _largest(case.v)), 8 * unit
    kept = 1.0 - case.options.get("dropout_p", 0.0)
    output /= kept  # what is kept is scaled up

    assert_close("out", found["out"], exact["out"], output)
    assert torch.equal(found["lse"] == -torch.inf, exact["lse"] == -torch.inf)
    finite = exact["lse"] > -torch.inf
    lse = exact["lse"][finite]
    # Scores have the rounding errors of their largest terms, so wide ones have larger errors.
    allowed = 2e-5 if case.q.dtype != torch.float64 else 1e-11
    assert_close("lse", found["lse"][finite], lse, allowed * max(1.0, _largest(lse) / 4))
    gradients = [name for name in exact if name.startswith("d")]
    floor = 0.01 * max(_largest(exact[name]) for name in gradients)
    # The gradient of a score is a difference of two numbers of about head_dim. Where they cancel
    # (a query with one key), their rounding errors stay; the bias sums them over all queries.
    head_dim = case.q.shape[-1]
    rounding = 4 * torch.finfo(found["lse"].dtype).eps * head_dim / kept
    rest = {
        "dq": rounding * head_dim**-0.5 * _largest(case.k),
        "dk": rounding * head_dim**-0.5 * _largest(case.q),
        "dv": 0.0,
        "drelative_bias": rounding * exact["lse"].numel() ** 0.5,
    }
    for name in gradients:
        allowed = relative * max(_largest(exact[name]), floor) + rest[name]
        assert_close(name, found[name], exact[name], allowed)


def assert_close(name: str, found: Tensor, exact: Tensor, allowed: float) -> None:
    """No element (and no NaN) further away than `allowed`."""
    error = _largest(found.double() - exact.double())
    assert error <= allowed, f"{name}: error {error:.2e}, allowed {allowed:.2e}"


def _largest(x: Tensor) -> float:
    return float(x.abs().max()) if x.numel() else 0.0
