"""The dispatcher: which implementation runs, and what is said about the others."""

import dataclasses
import functools
import hashlib
import re
import sys
import types
import warnings
from pathlib import Path

import pytest
import torch

import longbird as lb
from longbird.core.operator import dispatch, flex, gather, native, reference
from longbird.core.operator.call import Call

BINDINGS = Path(__file__).parents[3] / "csrc" / "bindings.cpp"


def call(dtype=torch.float32, device="cpu", **options) -> Call:
    x = torch.zeros(1, 2, 20, 8, dtype=dtype, device=device)
    return Call.checked(x, x, x, lb.Window(3), **options)


@pytest.fixture
def without_native(monkeypatch):
    monkeypatch.setitem(dispatch.ABSENT, "native", "no compiler was there")


@pytest.mark.usefixtures("native")
def test_auto_takes_native_on_a_cpu():
    assert dispatch.choose(call(), "auto") is native


@pytest.mark.usefixtures("native")
def test_auto_passes_over_what_cannot_run():
    assert dispatch.choose(call(dtype=torch.float64), "auto") is gather
    assert dispatch.choose(call(device="meta"), "auto") is gather


def test_auto_never_takes_reference_and_lists_every_reason(monkeypatch):
    monkeypatch.setattr(native, "unsupported", lambda call: ["is asleep", "is away"])
    monkeypatch.setattr(gather, "unsupported", lambda call: ["is tired"])
    monkeypatch.setitem(dispatch.ABSENT, "native", None)
    with pytest.raises(ValueError) as error:
        dispatch.choose(call(), "auto")
    message = str(error.value)
    assert "native: is asleep; is away" in message
    assert "flex: taken automatically on CUDA only" in message
    assert "gather: is tired" in message
    assert 'impl="reference"' in message


@pytest.mark.parametrize("module", [native, flex, gather, reference])
def test_naming_one_never_falls_back(module, monkeypatch):
    monkeypatch.setitem(dispatch.ABSENT, module.NAME, None)
    assert dispatch.choose(call(), module.NAME) is module
    monkeypatch.setattr(module, "unsupported", lambda call: ["a reason", "another"])
    with pytest.raises(ValueError, match=f'impl="{module.NAME}".*: a reason; another'):
        dispatch.choose(call(), module.NAME)
    monkeypatch.setitem(dispatch.ABSENT, module.NAME, "it is not here")
    with pytest.raises(ValueError, match=f'impl="{module.NAME}".*: it is not here'):
        dispatch.choose(call(), module.NAME)


@pytest.mark.parametrize("name", ["dense", "", None, 3])
def test_unknown_names(name):
    with pytest.raises(ValueError, match="'native', 'flex', 'gather', 'reference'"):
        dispatch.choose(call(), name)


@pytest.mark.usefixtures("without_native")
def test_warns_that_native_is_missing():
    with pytest.warns(UserWarning, match="no compiler was there"):
        assert dispatch.choose(call(), "auto") is gather


@pytest.mark.usefixtures("without_native")
def test_warns_once():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            dispatch.choose(call(), "auto")
    assert len(shown) == 1


@pytest.mark.usefixtures("native")
def test_warns_once_of_heads_too_large_for_the_kernels():
    x = torch.randn(1, 1, 5, native.LARGEST_HEAD_DIM + 1)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            out = lb.attention(x, x, x, lb.Window(3))
        lb.attention(x, x, x, lb.Window(3), impl="gather")
        lb.attention(x[..., 1:], x[..., 1:], x[..., 1:], lb.Window(3))
    assert len(shown) == 1
    assert "head_dim up to 256, received 257" in str(shown[0].message)
    assert torch.equal(out, lb.attention(x, x, x, lb.Window(3), impl="gather"))


@pytest.mark.slow  # it imports the compiler
@pytest.mark.usefixtures("native")
def test_the_warning_does_not_break_compiled_programs():
    graph, x = lb.Window(3), torch.randn(1, 1, 5, native.LARGEST_HEAD_DIM + 1)
    compiled = torch.compile(
        lambda x: lb.attention(x, x, x, graph), fullgraph=True, backend="eager"
    )
    with pytest.warns(UserWarning, match="head_dim up to 256, received 257"):
        out = compiled(x)
    torch.testing.assert_close(out, lb.attention(x, x, x, graph, impl="gather"))


@pytest.mark.usefixtures("without_native")
def test_named_and_other_devices_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dispatch.choose(call(), "gather")
        dispatch.choose(call(device="meta"), "auto")


@pytest.mark.usefixtures("without_native")
def test_implementations():
    found = lb.implementations()
    assert list(found) == ["native", "flex", "gather", "reference"]
    assert found["gather"] == found["reference"] == "available"
    assert found["native"] == "no compiler was there"
    assert "native     no compiler was there" in repr(found)


@pytest.mark.usefixtures("native")
def test_native_says_what_it_cannot_do():
    assert native.unsupported(call()) == []
    x = torch.zeros(1, 1, 4, 257, dtype=torch.float64)
    reasons = "; ".join(native.unsupported(Call.checked(x, x, x, lb.Full())))
    assert "float64" in reasons
    assert "257" in reasons


def test_the_operands_of_the_operator_are_the_fields_of_a_call():
    kinds = {"Tensor": "Tensor", "Optional[Tensor]": "Tensor | None", "str": "Graphs"}
    operands = torch.ops.longbird.native_attention.default._schema.arguments
    found = [(each.name, kinds.get(str(each.type), str(each.type))) for each in operands]
    *expected, last = [(field.name, field.type) for field in dataclasses.fields(Call)]
    assert found == expected
    assert last == ("return_lse", "bool")
    backward = torch.ops.longbird.native_attention_backward.default._schema.arguments
    assert [each.name for each in backward[4:]] == [each.name for each in operands]


@pytest.mark.parametrize("number", [None, 0, native.INTERFACE + 1])
def test_kernels_of_another_version_are_refused(number, monkeypatch):
    old = types.SimpleNamespace() if number is None else types.SimpleNamespace(INTERFACE=number)
    monkeypatch.setitem(sys.modules, "longbird._native", old)
    monkeypatch.setattr(native, "extension", functools.cache(native.extension.__wrapped__))
    reason = native.missing()
    assert f"(interface {number}, expected {native.INTERFACE}); reinstall longbird: pip" in reason
    assert native.instruction_sets() == []


@pytest.mark.skipif(not BINDINGS.exists(), reason="only the source tree has the C++ files")
def test_the_number_of_the_interface_changes_with_it():
    # If this fails, raise INTERFACE in csrc/bindings.cpp and ops/native.py, then change both here.
    text = re.sub(r"//.*|\s", "", BINDINGS.read_text())
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert (native.INTERFACE, digest) == (1, "f886332620253d2c")
    assert f"INTERFACE={native.INTERFACE};" in text
