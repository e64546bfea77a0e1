"""Broken and hostile folders, of theirs and of ours: refused soon, by name."""

from __future__ import annotations

import json
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import INDEX, WEIGHTS, Evil, is_refused, rewrite, say, states_differ
from safetensors.torch import load_file, save_file
from theirs import configuration, theirs_of

import longbird


def header(value: Any, data: bytes = b"") -> bytes:
    """A safetensors file with this header."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(shape: list[int], kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [0, 8]}


BAD_WEIGHTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",
    "four bytes": lambda good: good[:4],
    "only the length": lambda good: good[:8],
    "half of the header": lambda good: good[:100],
    "a byte short": lambda good: good[:-1],
    "a byte long": lambda good: good + b"\0",
    "garbage": lambda good: bytes(range(256)) * 9,
    "a header of 4 EB": lambda good: struct.pack("<Q", 1 << 62) + b"{}",
    "a header of 90 MB": lambda good: struct.pack("<Q", 90_000_000) + b"{}",
    "a header that is no JSON": lambda good: header(b"not JSON"),
    "a header that is a list": lambda good: header([1, 2]),
    "more tensor than file": lambda good: header({"a": entry([1 << 40, 1 << 10])}, bytes(8)),
    "overlap": lambda good: header({"a": entry([2]), "b": entry([2])}, bytes(8)),
    "a negative shape": lambda good: header({"a": entry([-2])}, bytes(8)),
    "an unknown type": lambda good: header({"a": entry([2], "F99")}, bytes(8)),
    "no tensors": lambda good: header({}),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_broken_weights(case: str, folder: Path) -> None:
    file = folder / WEIGHTS
    file.write_bytes(BAD_WEIGHTS[case](file.read_bytes()))
    is_refused(folder)


@pytest.mark.parametrize("kind", [torch.int64, torch.bool])
def test_weights_that_are_not_real_numbers(kind: torch.dtype, folder: Path) -> None:
    rewrite(folder, lambda x: {k: v.to(kind) if "value.w" in k else v for k, v in x.items()})
    is_refused(folder, "value.weight")


def test_weights_of_another_shape(folder: Path) -> None:
    rewrite(folder, lambda x: {k: v[:3] if "value.b" in k else v for k, v in x.items()})
    is_refused(folder, "value.bias", "[3] in the file")
    for option in ({"strict": False}, {"ignore_mismatched_sizes": True}):
        model = longbird.LongbirdModel.from_pretrained(folder, **option)
        assert model.layers[0].attention.value.bias.shape == (16,)


def test_the_option_of_transformers_is_for_other_shapes_alone(folder: Path) -> None:
    rewrite(folder, lambda x: {k: v for k, v in x.items() if "1.attention" not in k})
    is_refused(folder, "missing: layers.1.attention", ignore_mismatched_sizes=True)


def test_missing_and_other_weights(folder: Path) -> None:
    rewrite(folder, lambda x: {k.replace("1.attention", "9.attention"): x[k] for k in x})
    is_refused(folder, "layers.1.attention", "9.attention")


def in_shards(folder: Path, second: Any = "b.safetensors", weight_map: Any = None) -> None:
    """The weights as two files, and an index that names `second` for the second of them."""
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    half = len(tensors) // 2
    first = dict(list(tensors.items())[:half])
    save_file(first, folder / "a.safetensors", {"format": "pt"})
    rest = {name: x for name, x in tensors.items() if name not in first}
    save_file(rest, folder / "b.safetensors", {"format": "pt"})
    files = {name: "a.safetensors" if name in first else second for name in tensors}
    index = {"metadata": {}, "weight_map": files if weight_map is None else weight_map}
    (folder / INDEX).write_text(json.dumps(index))


def test_weights_in_shards(folder: Path) -> None:
    whole = longbird.LongbirdModel.from_pretrained(folder)
    in_shards(folder)
    assert not states_differ(whole, longbird.LongbirdModel.from_pretrained(folder))


@pytest.mark.parametrize(
    "second",
    [
        "../b.safetensors",
        "/b.safetensors",
        "sub/b.safetensors",
        "sub/../b.safetensors",
        "c.safetensors",
        "b.bin",
        "config.json",
        "",
        3,
        None,
        ["b.safetensors"],
    ],
)
def test_shards_that_lead_elsewhere(second: Any, folder: Path) -> None:
    in_shards(folder, second)
    # What is there can be read: the name alone must be refused.
    for place in (folder.parent, folder / "sub"):
        place.mkdir(exist_ok=True)
        shutil.copy(folder / "b.safetensors", place / "b.safetensors")
    torch.save({}, folder / "b.bin")
    is_refused(folder)


@pytest.mark.parametrize("weight_map", [[], {}, 3, "a.safetensors", ["a.safetensors"]])
def test_an_index_without_a_map(weight_map: Any, folder: Path) -> None:
    in_shards(folder, weight_map=weight_map)
    is_refused(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", "\0", '{"weight_map": '])
def test_an_index_that_is_no_json(text: str, folder: Path) -> None:
    in_shards(folder)
    (folder / INDEX).write_text(text)
    is_refused(folder)


def test_a_tensor_in_two_shards_is_that_of_the_index(folder: Path) -> None:
    whole = longbird.LongbirdModel.from_pretrained(folder)
    in_shards(folder)
    first, second = load_file(folder / "a.safetensors"), load_file(folder / "b.safetensors")
    name = next(iter(first))
    save_file({**second, name: first[name] + 1}, folder / "b.safetensors", {"format": "pt"})
    try:
        again = longbird.LongbirdModel.from_pretrained(folder)
    except ValueError:
        return
    assert not states_differ(whole, again)


@pytest.mark.parametrize("where", ["itself", "/dev/zero", "nothing", "a folder"])
def test_weights_that_are_no_file(where: str, folder: Path) -> None:
    file = folder / WEIGHTS
    file.unlink()
    if where == "a folder":
        file.mkdir()
    else:
        file.symlink_to(file if where == "itself" else where)
    is_refused(folder)


def test_a_symbolic_link_to_weights_is_followed(folder: Path) -> None:
    # The cache of the hub is made of them.
    (folder / WEIGHTS).rename(folder.parent / "blob")
    (folder / WEIGHTS).symlink_to(folder.parent / "blob")
    longbird.LongbirdModel.from_pretrained(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model.ckpt"])
def test_pickles_are_refused(name: str, folder: Path, tmp_path: Path) -> None:
    (folder / WEIGHTS).unlink()
    torch.save({"a": Evil(tmp_path / "trace")}, folder / name)
    is_refused(folder, name, "pickle")
    assert not (tmp_path / "trace").exists()


def test_a_pickle_under_another_name(folder: Path, tmp_path: Path) -> None:
    torch.save({"a": Evil(tmp_path / "trace")}, folder / WEIGHTS)
    is_refused(folder)
    assert not (tmp_path / "trace").exists()


def test_code_beside_the_weights_is_not_run(folder: Path, tmp_path: Path) -> None:
    code = f"import os\nos.mkdir({str(tmp_path / 'trace')!r})\nclass Evil: pass\n"
    (folder / "modeling_evil.py").write_text(code)
    say(folder, auto_map={"AutoModel": "modeling_evil.Evil", "AutoConfig": "modeling_evil.Evil"})
    longbird.LongbirdModel.from_pretrained(folder)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_file_that_is_not_there(name: str, folder: Path) -> None:
    (folder / name).unlink()
    is_refused(folder, name)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    is_refused(tmp_path / "nothing")


def test_a_file_instead_of_a_folder(folder: Path) -> None:
    is_refused(folder / WEIGHTS)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "3", "null", '"bert"', "[" * 100_000, '{"a":' * 100_000, "\xff\0"],
    ids=["empty", "open", "list", "number", "null", "text", "deep", "deeper", "binary"],
)
def test_a_configuration_that_is_no_json_object(text: str, folder: Path) -> None:
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    is_refused(folder, "config.json")


def test_numbers_with_many_digits(folder: Path) -> None:
    (folder / "config.json").write_text(f'{{"hidden_size": {"9" * 5000}}}')
    is_refused(folder, "config.json")


@pytest.mark.parametrize("value", ["evil", None, ["bert"], {"a": 1}, 3])
def test_unknown_model_types(value: Any, folder: Path) -> None:
    say(folder, model_type=value)
    is_refused(folder, "model")


HUGE = 10**13  # beyond the memory of any machine
BAD_VALUES: dict[str, list[Any]] = {
    "hidden_size": [-16, 0, 17, "16", 1.5, None, HUGE, [16], True],
    "num_hidden_layers": [-1, 0, 1, 3, 10**9, "2", None],
    "num_attention_heads": [0, -2, 3, 10**9, "2", None],
    "vocab_size": [-1, 0, 119, HUGE, "120", None],
    "max_position_embeddings": [-1, 0, HUGE],
    "type_vocab_size": [-1, HUGE],
    "intermediate_size": [-1, 0, HUGE],
    "hidden_act": ["evil", "__import__('os')", None, 5],
    "layer_norm_eps": ["x", None],
    "pad_token_id": [HUGE, "a", 130],
    "hidden_dropout_prob": [-1, 2, "x"],
    "id2label": [5, {"a": "b"}, ["x"]],
    "tie_word_embeddings": ["x"],
}


@pytest.mark.parametrize(
    ("field", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values]
)
def test_hostile_configurations(field: str, value: Any, folder: Path) -> None:
    say(folder, **{field: value})
    is_refused(folder)


@pytest.mark.parametrize("value", ["evil", {"type": "os"}, [1], 5, [{"type": "Full"}] * 3])
def test_graphs_that_are_none(value: Any, own: Path) -> None:
    say(own, graph=value)
    is_refused(own, "graph")


def test_a_generation_configuration_that_is_broken(tmp_path: Path) -> None:
    head = "LongbirdForConditionalGeneration"
    theirs_of("led", head, configuration("led", head)).save_pretrained(tmp_path / "led")
    (tmp_path / "led" / "generation_config.json").write_text("{")
    with pytest.raises(ValueError, match=r"led.generation_config\.json"):
        longbird.LongbirdForConditionalGeneration.from_pretrained(tmp_path / "led")


@pytest.mark.parametrize("size", ["16", 1.5, -16, 0])
def test_configurations_check_sizes(size: Any) -> None:
    with pytest.raises(Exception, match=r"hidden_size"):
        longbird.LongbirdConfig(hidden_size=size)


def test_many_unknown_keys_take_linear_time(tmp_path: Path):
    config = longbird.LongbirdConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    longbird.LongbirdModel(config).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    unknown = {
        f"{start}{number}": 1 for number in range(50_000) for start in ("new_", "_private_")
    }
    (tmp_path / "config.json").write_text(json.dumps({**saved, **unknown}))
    start = time.process_time()
    longbird.LongbirdModel.from_pretrained(tmp_path)
    assert time.process_time() - start < 20  # with a comparison of each with each, minutes


@pytest.mark.parametrize("name", ["quantization_config", "attn_implementation"])
def test_a_number_where_transformers_expects_something_else(name: str, tmp_path: Path):
    config = longbird.LongbirdConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    longbird.LongbirdModel(config).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**saved, name: 1}))
    with pytest.raises(ValueError, match=f"{name} must be .*received 1"):
        longbird.LongbirdModel.from_pretrained(tmp_path)
