"""The native gelu against torch in float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from longbird.core.operator import native
from longbird.models.layers.gelu import tanh_gelu
from longbird.models.layers.layer import activation

SPECIAL = [0.0, -0.0, 1e-30, 200.0, -200.0, 1e38, -1e38, 3e38, -3e38, float("inf"), float("nan")]


def exact(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x.double(), approximate="tanh")


@pytest.fixture(params=native.instruction_sets() or ["torch"])
def isa(request):
    if request.param == "torch":
        yield
        return
    extension = native.extension()
    before = extension.isa()
    extension.use_isa(request.param)
    yield
    extension.use_isa(before)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("n", [1, 3, 7, 8, 9, 16384, 16385, 100_003])
def test_outputs_and_gradients_are_those_of_float64(n):
    x = torch.randn(n, generator=torch.Generator().manual_seed(n)) * 5
    x.requires_grad_()
    weight = torch.randn(n, generator=torch.Generator().manual_seed(1))
    double = x.detach().double().requires_grad_()
    got, expected = tanh_gelu(x), exact(double)
    torch.testing.assert_close(got.double(), expected, rtol=3e-7, atol=3e-7)
    (got * weight).sum().backward()
    (expected * weight).sum().backward()
    torch.testing.assert_close(x.grad.double(), double.grad, rtol=2e-6, atol=2e-6)


@pytest.mark.usefixtures("isa")
def test_values_that_are_not_ordinary():
    x = torch.tensor(SPECIAL)
    torch.testing.assert_close(tanh_gelu(x).double(), exact(x), equal_nan=True)
    x = x[:-2].requires_grad_()
    double = x.detach().double().requires_grad_()
    tanh_gelu(x).sum().backward()
    exact(double).sum().backward()
    torch.testing.assert_close(x.grad.double(), double.grad)


@pytest.mark.usefixtures("isa")
def test_an_element_does_not_depend_on_its_place_or_on_threads():
    x = torch.randn(40_001) * 3
    whole, threads = tanh_gelu(x), torch.get_num_threads()
    assert torch.equal(whole[5:], tanh_gelu(x[5:].clone()))
    try:
        torch.set_num_threads(1)
        assert torch.equal(whole, tanh_gelu(x))
    finally:
        torch.set_num_threads(threads)


def test_strides_shapes_and_nothing():
    x = torch.randn(6, 10, 4)
    torch.testing.assert_close(tanh_gelu(x.mT), exact(x.mT).float())
    assert tanh_gelu(x[:0]).shape == (0, 10, 4)
    assert tanh_gelu(torch.tensor(1.0)).shape == ()


@pytest.mark.slow  # torch traces
@pytest.mark.skipif(native.missing() is not None, reason="the kernels are not built")
def test_the_operator_is_well_formed():
    torch.library.opcheck(torch.ops.longbird.native_gelu, (torch.randn(5, 7, requires_grad=True),))
    torch.library.opcheck(
        torch.ops.longbird.native_gelu_backward, (torch.randn(5, 7), torch.randn(5, 7))
    )


def test_second_derivatives_and_functional_transforms():
    x = torch.randn(9, dtype=torch.float32)

    def expected(y):
        return F.gelu(y, approximate="tanh")

    twice = torch.autograd.functional.hessian(lambda y: tanh_gelu(y).sum(), x)
    torch.testing.assert_close(
        twice, torch.autograd.functional.hessian(lambda y: expected(y).sum(), x)
    )
    torch.testing.assert_close(torch.vmap(tanh_gelu)(x), expected(x))
    ours = torch.func.jvp(tanh_gelu, (x,), (x,))
    torch.testing.assert_close(ours, torch.func.jvp(expected, (x,), (x,)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_precisions_are_those_of_torch(dtype):
    x = torch.randn(100).to(dtype)
    assert torch.equal(tanh_gelu(x), F.gelu(x, approximate="tanh"))


@pytest.mark.parametrize("name", ["gelu_new", "gelu_fast", "gelu_pytorch_tanh"])
def test_the_names_of_transformers(name):
    from transformers.activations import ACT2FN

    x = torch.randn(1000) * 3
    torch.testing.assert_close(activation(name)(x), ACT2FN[name](x), rtol=1e-6, atol=1e-6)
