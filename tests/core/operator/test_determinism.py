"""Same input, same output: for any number of threads, any instruction set, any history."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from comparison import results
from strategies import Case

import longbird as lb
from longbird.core.operator.native import instruction_sets

GRAPH = lb.bigbird(block=16) | lb.GlobalTokens([1])


def case(batch: int, heads: int, n=500, **options) -> Case:
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, batch, heads, n, 32, generator=generator).unbind()
    return Case(q, k, v, GRAPH, options)


@pytest.mark.parametrize(("batch", "heads"), [(1, 1), (1, 3), (3, 4)])
def test_bitwise_equal_for_any_number_of_threads(native, batch, heads):
    bias = torch.randn(heads, 9, generator=torch.Generator().manual_seed(2))
    marked = torch.rand(batch, 500, generator=torch.Generator().manual_seed(3)) < 0.01
    one = case(
        batch, heads, relative_bias=bias, global_tokens=marked, dropout_p=0.2, dropout_seed=3
    )
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 3, 5):
            torch.set_num_threads(threads)
            found.append(results(one, native))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for name, expected in found[0].items():
            assert torch.equal(other[name], expected), name


def test_the_same_twice(impl):
    one = case(2, 2)
    first, again = results(one, impl), results(one, impl)
    for name, expected in first.items():
        assert torch.equal(again[name], expected), name


def test_number_of_threads_is_left_alone(native):
    before = torch.get_num_threads()
    results(case(1, 2), native)
    assert torch.get_num_threads() == before


def test_random_state_is_untouched(impl):
    state = torch.random.get_rng_state(), np.random.get_state(), random.getstate()
    graph = lb.bigbird(block=16, seed=123) | lb.ErdosRenyi(0.01) | lb.WattsStrogatz(4, 0.3)
    graph = graph | lb.LegacyBigBird("google", block=16, full_up_to=64)
    q, k, v = case(1, 2, n=300).q, case(1, 2, n=300).k, case(1, 2, n=300).v
    lb.attention(q.requires_grad_(), k, v, graph, impl=impl).sum().backward()
    lb.attention(q, k, v, graph, impl=impl, dropout_p=0.5, dropout_seed=1)
    lb.attention_weights(q.detach(), k, graph, rows=[0])
    lb.check(graph, 300, impls=[impl])
    assert torch.equal(torch.random.get_rng_state(), state[0])
    assert all(np.array_equal(a, b) for a, b in zip(np.random.get_state(), state[1], strict=True))
    assert random.getstate() == state[2]


@pytest.mark.slow  # a process for each instruction set
def test_every_instruction_set(native):
    """All that this machine has agree with dense float64 attention."""
    script = """
import torch, longbird as lb
from longbird.core.operator.native import instruction_sets
graphs = [lb.bigbird(block=16), lb.bigbird(), lb.Window(9, dilation=3), lb.Causal()]
for graph in graphs:
    for head_dim, dtype in ((64, torch.float32), (37, torch.float32), (64, torch.bfloat16),
                            (40, torch.float16)):
        lb.check(graph, 333, head_dim=head_dim, dtype=dtype, impls=["native"]).raise_if_failed()
print(instruction_sets()[0])
"""
    sets = instruction_sets()
    assert sets
    for name in sets:
        environment = {**os.environ, "LONGBIRD_ISA": name}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"
        assert done.stdout.split()[-1] == name
