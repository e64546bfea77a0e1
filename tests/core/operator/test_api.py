"""Bad input gives a TypeError or ValueError that shows what was received, never a crash."""

import math
import warnings

import pytest
import torch

import longbird as lb
from longbird.core.operator.call import Call
from longbird.core.operator.sequences import sequences

IMPLEMENTATIONS = ["native", "gather", "reference"]


def good() -> dict:
    x = torch.zeros(2, 3, 50, 8)
    return {"q": x, "k": x, "v": x, "graph": lb.Window(3)}


def good_packed() -> dict:
    x = torch.zeros(50, 3, 8)
    return {"q": x, "k": x, "v": x, "graph": lb.Window(3), "cu_seqlens": torch.tensor([0, 20, 50])}


def tensor(*shape, **options):
    return torch.zeros(*shape, **options)


def nested(*shape):
    with warnings.catch_warnings():  # torch calls this layout a prototype
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor(list(torch.zeros(*shape)), layout=torch.strided)


BAD = {
    # q, k, v
    "q of 3 dimensions": ({"q": tensor(3, 50, 8)}, ValueError, r"\(3, 50, 8\)"),
    "q a list": ({"q": [1.0]}, TypeError, "q must be a torch.Tensor, received list"),
    "k None": ({"k": None}, TypeError, "k must be a torch.Tensor, received NoneType"),
    "k shorter": ({"k": tensor(2, 3, 49, 8)}, ValueError, r"k \(2, 3, 49, 8\)"),
    "k with fewer heads": ({"k": tensor(2, 1, 50, 8)}, ValueError, r"expand"),
    "v wider": ({"v": tensor(2, 3, 50, 9)}, ValueError, r"v \(2, 3, 50, 9\)"),
    "integer q": ({"q": tensor(2, 3, 50, 8, dtype=torch.int64)}, TypeError, "int64"),
    "complex v": ({"v": tensor(2, 3, 50, 8, dtype=torch.complex64)}, TypeError, "complex64"),
    "mixed dtypes": ({"k": tensor(2, 3, 50, 8, dtype=torch.bfloat16)}, TypeError, "bfloat16"),
    "mixed devices": ({"v": tensor(2, 3, 50, 8, device="meta")}, ValueError, "meta"),
    "sparse q": ({"q": tensor(2, 3, 50, 8).to_sparse()}, TypeError, "sparse_coo"),
    "nested q": ({"q": nested(2, 3, 50, 8)}, TypeError, "q must be .* nested .*attention_packed"),
    "no heads": ({name: tensor(2, 0, 50, 8) for name in "qkv"}, ValueError, r"\(2, 0, 50, 8\)"),
    "head_dim 0": ({name: tensor(2, 3, 50, 0) for name in "qkv"}, ValueError, "head_dim"),
    # graph
    "graph None": ({"graph": None}, TypeError, "graph.*NoneType"),
    "graph a mask": ({"graph": tensor(50, 50)}, TypeError, "graph.*Tensor"),
    "graph that does not fit": ({"graph": lb.GlobalTokens([50])}, ValueError, "50"),
    "edges that do not fit": ({"graph": lb.Edges([(0, 77)])}, ValueError, "77"),
    # lengths
    "float lengths": ({"lengths": torch.tensor([1.0, math.nan])}, TypeError, "float32"),
    "NaN in a list": ({"lengths": [1.0, math.nan]}, TypeError, "float32"),
    "words": ({"lengths": ["a", "b"]}, TypeError, "lengths"),
    "bool lengths": ({"lengths": torch.tensor([True, False])}, TypeError, "bool"),
    "lengths of a mask": ({"lengths": torch.ones(2, 50).long()}, ValueError, r"\(2, 50\)"),
    "one length": ({"lengths": 50}, TypeError, "50"),
    "too few lengths": ({"lengths": torch.tensor([50])}, ValueError, "received 1"),
    "negative length": ({"lengths": torch.tensor([50, -1])}, ValueError, "received -1"),
    "length over n": ({"lengths": torch.tensor([51, 3])}, ValueError, "received 51"),
    "huge length": ({"lengths": torch.tensor([2**62, 3])}, ValueError, str(2**62)),
    "lengths elsewhere": ({"lengths": tensor(2, dtype=int, device="meta")}, ValueError, "meta"),
    # global_tokens
    "integer globals": ({"global_tokens": tensor(2, 50, dtype=int)}, TypeError, r"\.bool\(\)"),
    "globals a list": ({"global_tokens": [[True]]}, TypeError, "list"),
    "globals of wrong shape": ({"global_tokens": tensor(2, 49).bool()}, ValueError, r"\(2, 49\)"),
    "global padding": (
        {"global_tokens": torch.ones(2, 50).bool(), "lengths": [50, 20]},
        ValueError,
        "token 20 of row 1",
    ),
    "nested globals": ({"global_tokens": nested(2, 50).bool()}, TypeError, "nested"),
    # relative_bias
    "nested bias": ({"relative_bias": nested(3, 5)}, TypeError, "nested"),
    "even bias": ({"relative_bias": tensor(3, 4)}, ValueError, r"\(3, 4\)"),
    "bias of other heads": ({"relative_bias": tensor(2, 5)}, ValueError, r"heads = 3"),
    "bias of 1 dimension": ({"relative_bias": tensor(5)}, ValueError, r"\(5,\)"),
    "integer bias": ({"relative_bias": tensor(3, 5, dtype=int)}, TypeError, "int64"),
    "bias elsewhere": ({"relative_bias": tensor(3, 5, device="meta")}, ValueError, "meta"),
    "bias a number": ({"relative_bias": 0.5}, TypeError, "float"),
    # numbers
    "dropout 1": ({"dropout_p": 1.0}, ValueError, "received 1.0"),
    "negative dropout": ({"dropout_p": -0.1}, ValueError, "received -0.1"),
    "NaN dropout": ({"dropout_p": math.nan}, ValueError, "nan"),
    "dropout a word": ({"dropout_p": "0.1"}, TypeError, "str"),
    "float seed": ({"dropout_p": 0.1, "dropout_seed": 1.5}, TypeError, "float"),
    "float tensor seed": ({"dropout_p": 0.1, "dropout_seed": tensor(())}, TypeError, "float32"),
    "many seeds": ({"dropout_p": 0.1, "dropout_seed": tensor(2, dtype=int)}, TypeError, r"\(2,\)"),
    "huge seed": ({"dropout_p": 0.1, "dropout_seed": 2**63}, ValueError, str(2**63)),
    "infinite scale": ({"scale": math.inf}, ValueError, "inf"),
    "NaN scale": ({"scale": math.nan}, ValueError, "nan"),
    "scale a tensor": ({"scale": torch.tensor(1.0)}, TypeError, "multiply q"),
}

BAD_PACKED = {
    "padded q": ({name: tensor(2, 3, 50, 8) for name in "qkv"}, ValueError, r"\[tokens, heads"),
    "no cu_seqlens": ({"cu_seqlens": None}, TypeError, "None"),
    "empty cu_seqlens": ({"cu_seqlens": []}, ValueError, "start with 0"),
    "float cu_seqlens": ({"cu_seqlens": torch.tensor([0.0, 50.0])}, TypeError, "float32"),
    "late start": ({"cu_seqlens": [3, 50]}, ValueError, r"\[3, 50\]"),
    "early end": ({"cu_seqlens": [0, 20, 30, 40, 49]}, ValueError, r"\[0, 20, 30, ..., 49\]"),
    "descending": ({"cu_seqlens": [0, 30, 20, 50]}, ValueError, "from 30 to 20 at sequence 1"),
    "negative": ({"cu_seqlens": [0, -5, 50]}, ValueError, "-5"),
    "2-d cu_seqlens": ({"cu_seqlens": [[0, 50]]}, ValueError, r"\(1, 2\)"),
    "padded globals": ({"global_tokens": tensor(1, 50).bool()}, ValueError, r"\(1, 50\)"),
    "graph that does not fit": ({"graph": lb.GlobalTokens([25])}, ValueError, "25"),
}


@pytest.mark.parametrize(("bad", "error", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_bad_input(name, bad, error, message, request):
    if name == "native":
        request.getfixturevalue("native")
    with pytest.raises(error, match=message):
        lb.attention(**good() | bad, impl=name)


@pytest.mark.parametrize(("bad", "error", "message"), BAD_PACKED.values(), ids=BAD_PACKED)
@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_bad_packed_input(name, bad, error, message, request):
    if name == "native":
        request.getfixturevalue("native")
    with pytest.raises(error, match=message):
        lb.attention_packed(**good_packed() | bad, impl=name)


def test_good_input_is_good():
    lb.attention(**good(), impl="gather")
    lb.attention_packed(**good_packed(), impl="gather")


def test_sequences():
    padded = Call.checked(**good(), lengths=[50, 7])
    assert sequences(padded) == [(0, 50), (50, 7)]
    assert not padded.packed
    assert (padded.heads, padded.head_dim) == (3, 8)
    packed = Call.checked(**good_packed())
    assert sequences(packed) == [(0, 20), (20, 30)]
    assert packed.packed
    assert (packed.heads, packed.head_dim) == (3, 8)


def test_defaults():
    call = Call.checked(**good())
    assert call.scale == pytest.approx(8**-0.5)
    assert call.dropout_p == 0.0
    assert call.dropout_seed is None
    assert Call.checked(**good(), dropout_p=0.5, dropout_seed=-1).dropout_seed.item() == -1


def test_returns_lse_only_if_asked():
    assert isinstance(lb.attention(**good(), impl="gather"), torch.Tensor)
    out, lse = lb.attention(**good(), impl="gather", return_lse=True)
    assert out.shape == (2, 3, 50, 8)
    assert lse.shape == (2, 3, 50)
    _, lse = lb.attention_packed(**good_packed(), impl="gather", return_lse=True)
    assert lse.shape == (50, 3)


def test_shapes_on_the_meta_device():
    """Without values, as when planning memory."""
    x = torch.zeros(2, 3, 50, 8, device="meta")
    assert lb.attention(x, x, x, lb.Window(3)).shape == x.shape
