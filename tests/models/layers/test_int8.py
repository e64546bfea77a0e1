"""Int8 products: exactly those of a reference in NumPy integers, on any processor."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from longbird.models.layers.int8 import (
    ROW_STEPS,
    WEIGHT_STEPS,
    Rounded,
    int8_linear,
    rounded,
)

SIZES = [
    (1, 1, 1),
    (1, 7, 5),
    (3, 50, 37),
    (17, 384, 384),
    (64, 100, 1),
    (33, 65, 129),
    (9, 1536, 8),
]


def reference(x, weight, bias):
    """The same scheme in NumPy: products in 64-bit integers, everything else in float32."""

    def rows(matrix, steps):
        largest = np.maximum(np.abs(matrix).max(1), np.float32(1e-30))
        numbers = np.rint(matrix * (np.float32(1) / largest * np.float32(steps))[:, None])
        return numbers.astype(np.int64), largest / np.float32(steps)

    (q, s), (w, ws) = rows(x, 127), rows(weight, 64)
    assert np.abs(q).max(initial=0) <= 127
    assert np.abs(w).max(initial=0) <= 64
    return (q @ w.T).astype(np.float32) * ws * s[:, None] + bias


def numbers(*shape, seed=0, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator)
    return x * torch.exp(spread * torch.randn(shape[0], 1, generator=generator))


def computed(x, weight, bias):
    return int8_linear(rounded(x, ROW_STEPS), rounded(weight, WEIGHT_STEPS), bias)


@pytest.mark.parametrize(("t", "i", "o"), SIZES)
def test_it_is_the_reference(t, i, o):
    x, weight, bias = numbers(t, i), numbers(o, i, seed=1), numbers(1, o, seed=2)[0]
    want = reference(x.numpy(), weight.numpy(), bias.numpy())
    np.testing.assert_array_equal(computed(x, weight, bias).numpy(), want)


def extremes():
    """Rows and weights at the ends of their ranges, where 16 bits are too few for some."""
    generator = torch.Generator().manual_seed(0)
    for t, i, o in SIZES:
        x = torch.randint(0, 2, (t, i), generator=generator) * (2 * ROW_STEPS) - ROW_STEPS
        w = torch.randint(0, 2, (o, i), generator=generator) * (2 * WEIGHT_STEPS) - WEIGHT_STEPS
        x[0], w[0] = ROW_STEPS, WEIGHT_STEPS
        one = torch.ones
        got = int8_linear(
            Rounded(x.to(torch.int8), one(t)), Rounded(w.to(torch.int8), one(o)), None
        )
        yield got, (x @ w.T).float()


def test_the_ends_of_the_ranges():
    for got, want in extremes():
        assert torch.equal(got, want)


@pytest.mark.slow  # a process of its own, which imports torch
@pytest.mark.parametrize("isa", ["SSE41", "AVX2", "AVX512_CORE"])
def test_the_ends_of_the_ranges_without_vnni(isa):
    code = "import test_int8; assert all(a.equal(b) for a, b in test_int8.extremes())"
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa}
    subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=os.path.dirname(__file__), check=True
    )


def test_no_rows_and_one():
    weight = numbers(5, 8)
    assert computed(torch.empty(0, 8), weight, torch.ones(5)).shape == (0, 5)
    many = computed(numbers(9, 8, seed=1), weight, None)
    assert torch.equal(computed(numbers(9, 8, seed=1)[4:5], weight, None)[0], many[4])


def test_rows_and_weights_of_zeros():
    x, weight, bias = numbers(3, 8), numbers(5, 8, seed=1), torch.arange(5.0)
    x[1], weight[2] = 0, 0
    out = computed(x, weight, bias)
    assert torch.equal(out[1], bias)
    assert bool((out[:, 2] == bias[2]).all())


@pytest.mark.parametrize("size", [1e-38, 1e-32, 1e-29, 1e-20, 1e20, 1e36])
def test_tiny_and_huge_rows(size):
    x, weight = numbers(4, 16, spread=0), numbers(5, 16, seed=1)
    out, exact = computed(x * size, weight, None), (x.double() * size) @ weight.double().T
    assert bool(out.isfinite().all())
    if size >= 1e-29:  # smaller ones count as zeros
        assert (out - exact).abs().max() < 0.02 * exact.abs().max()
    else:
        assert out.abs().max() <= 1e-28


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_a_number_stays_visible(odd):
    x, weight = numbers(4, 16), numbers(5, 16, seed=1)
    want = computed(x, weight, None)
    x[2, 3] = odd
    out = computed(x, weight, None)
    assert not bool(out[2].isfinite().any())
    assert torch.equal(out[[0, 1, 3]], want[[0, 1, 3]])


def test_one_thread_and_two():
    x, weight, bias = numbers(300, 96), numbers(80, 96, seed=1), torch.arange(80.0)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(computed(x, weight, bias))
    torch.set_num_threads(before)
    assert torch.equal(*found)
