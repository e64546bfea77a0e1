"""What went wrong once, or could: threads, interrupts, extreme scores, graphs that die early."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

import longbird as lb
from longbird.core.layout import layout as layouts


def in_subprocess(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "OMP_NUM_THREADS": "2", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


@pytest.mark.slow  # a process for each
@pytest.mark.parametrize("limit", [{"OMP_THREAD_LIMIT": "1"}, {"OMP_DYNAMIC": "true"}])
def test_openmp_may_start_fewer_threads_than_asked_for(limit):
    code = """
        import torch, longbird as lb
        torch.set_num_threads(8)
        q = torch.randn(1, 12, 600, 32, requires_grad=True)
        lb.attention(q, q, q, lb.bigbird(block=16)).sum().backward()
        print("done")
    """
    assert in_subprocess(code, **limit).strip() == "done"


@pytest.mark.slow  # a process, in which calls run until they are interrupted
def test_interrupt_ends_a_call_within_a_second():
    code = """
        import os, signal, threading, time, torch, longbird as lb
        # A shell that starts the tests in the background has them ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        q = torch.randn(1, 8, 2048, 64, requires_grad=True)
        out = lb.attention(q, q, q, lb.Full())
        def interrupt():
            global sent
            time.sleep(0.3)
            sent = time.time()
            os.kill(os.getpid(), signal.SIGINT)
        forward = lambda: lb.attention(q, q, q, lb.Full())
        backward = lambda: out.sum().backward(retain_graph=True)
        for call in (forward, backward):
            threading.Thread(target=interrupt).start()
            try:
                while True:
                    call()
            except KeyboardInterrupt:
                print(time.time() - sent)
    """
    forward, backward = map(float, in_subprocess(code).split())
    assert forward < 1.0
    assert backward < 1.0


@pytest.mark.parametrize("score", [-1e29, -1e31, torch.finfo(torch.float32).min])
def test_very_low_scores_are_scores(score):
    x = torch.randn(1, 1, 70, 8, generator=torch.Generator().manual_seed(0))
    bias = torch.full((1, 3), score)
    out, lse = lb.attention(x, x, x, lb.Full(), relative_bias=bias, impl="native", return_lse=True)
    torch.testing.assert_close(out, x.mean(2, keepdim=True).expand_as(x), atol=1e-6, rtol=1e-5)
    assert lse.isfinite().all()


def test_minus_infinity_is_no_edge():
    x = torch.randn(1, 1, 40, 8, generator=torch.Generator().manual_seed(0))
    bias = torch.tensor([[0.0, 0.0, -torch.inf]])  # no key to the right
    out = lb.attention(x, x, x, lb.Full(), relative_bias=bias, impl="native")
    torch.testing.assert_close(out, lb.attention(x, x, x, lb.Causal()), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("n", [4096, 65536])
def test_rounding_errors_do_not_grow_with_the_keys(n):
    """Equal weights over all keys: the worst case for a running sum."""
    zeros = torch.zeros(1, 1, n, 8)
    values = torch.full_like(zeros, 3.3)
    out = lb.attention(zeros, zeros, values, lb.Window(1) | lb.GlobalTokens([0]), impl="native")
    assert (out - 3.3).abs().max() < 2e-5 * max(1, n / 4096)


def test_a_large_graph_may_die_before_backward(monkeypatch):
    monkeypatch.setattr(layouts, "_cache", layouts._Cache())
    pairs = np.random.default_rng(0).integers(0, 300, (30000, 2))
    q = torch.randn(1, 1, 300, 8, requires_grad=True)
    out = lb.attention(q, q, q, lb.Edges(pairs), impl="native")
    monkeypatch.setattr(layouts, "_cache", layouts._Cache())
    gc.collect()
    out.sum().backward()
    assert q.grad is not None
    assert q.grad.isfinite().all()


def test_forward_mode_is_right_or_refused():
    q = torch.randn(1, 1, 9, 4, generator=torch.Generator().manual_seed(0))
    graph = lb.Window(1)

    def loss(x, impl):
        return lb.attention(x, x, x, graph, impl=impl).square().sum()

    automatic = torch.func.jvp(lambda x: loss(x, "auto"), (q,), (torch.ones_like(q),))[1]
    leaf = q.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf, "native"), leaf)
    torch.testing.assert_close(automatic, gradient.sum(), atol=1e-4, rtol=1e-4)
    for transform in (torch.func.grad, torch.func.jacfwd):
        with pytest.raises(ValueError, match="has a backward pass only"):
            transform(lambda x: loss(x, "native"))(q)


def test_the_cache_of_layouts_is_bounded_by_bytes(monkeypatch):
    cache = layouts._Cache()
    monkeypatch.setattr(layouts, "_cache", cache)
    monkeypatch.setattr(layouts, "CACHED_BYTES", 100_000)
    first = lb.Window(3).layout(1000)
    assert lb.Window(3).layout(1000) is first
    for n in range(1001, 1400):
        lb.Window(3).layout(n)
    assert sum(layout.nbytes for layout in cache._layouts.values()) <= 100_000
    assert lb.Window(3).layout(1000) is not first
