"""Rows that are easily misread: quotation marks, missing labels, hidden files, equal texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longbird.applications.training.data.files import left_out, rows
from longbird.applications.training.data.truncation import cut_to
from longbird.applications.training.settings.definition import read_settings
from longbird.applications.training.settings.tasks import ClassifySettings, TagSettings
from longbird.applications.training.tasks.classify import Classify
from longbird.applications.training.tasks.tag.rows import tagged


def silent(_: str) -> None:
    """Says nothing."""


def classified(file: Path, task: Classify | None = None, **options: Any) -> list[dict[str, Any]]:
    """The examples of a file for classification."""
    settings = ClassifySettings("classify", (str(file),), **options)
    return list((task or Classify()).examples(rows([file]), settings, silent))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_stray_quotation_marks(ending: str, tmp_path: Path) -> None:
    """None swallows rows: a tsv file may have them anywhere, in csv they are an error."""
    between = {"csv": ",", "tsv": "\t"}[ending]
    lines = [["text", "label"], *([f"words {n}", "a"] for n in range(9))]
    lines[3][0] = lines[6][0] = '"never closed'
    file = tmp_path / f"stray.{ending}"
    file.write_text("\n".join(between.join(line) for line in lines))
    if ending == "csv":
        with pytest.raises(ValueError, match=r"after line 3, has a quotation mark that is not"):
            list(rows([file]))
        return
    assert [row.values["text"] for row in rows([file])] == [line[0] for line in lines[1:]]


def test_quoted_fields_of_tsv(tmp_path: Path) -> None:
    """As pandas writes them, with tabs, line ends and doubled marks inside."""
    file = tmp_path / "quoted.tsv"
    file.write_text('text\tlabel\n"a ""b""\tc\nd"\tx\n')
    assert [row.values for row in rows([file])] == [{"text": 'a "b"\tc\nd', "label": "x"}]


def test_a_header_with_another_mark_in_it(tmp_path: Path) -> None:
    file = tmp_path / "semicolons.csv"
    file.write_text("text, whole;label;author\nhello;a;b\n")
    assert next(rows([file])).values == {"text, whole": "hello", "label": "a", "author": "b"}


@pytest.mark.parametrize("label", [float("nan"), None, [None], ["a", {"x": 1}], "  ", {}])
def test_what_is_no_label(label: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"text": "words", "label": label}))
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1: the column label is empty or holds"):
        classified(file)


def test_one_label_by_two_names(tmp_path: Path) -> None:
    """A column of whole numbers is one of 1.0 and 2.0 as soon as a row lacks its own."""
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "a", "label": 1.0}\n{"text": "b", "label": "1"}')
    assert [each["label"] for each in classified(file)] == [["1"], ["1"]]


def test_several_labels_where_the_model_has_one(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "a", "label": ["x"]}\n{"text": "b", "label": ["x", "y"]}')
    with pytest.raises(ValueError, match="line 2 has 2 labels in label, and the model was"):
        classified(file, Classify(["x", "y"]))


def test_half_a_character(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "\\ud800", "label": "x"}')
    with pytest.raises(ValueError, match=r"line 1: the column text holds '\\ud800', half"):
        classified(file)


def test_hidden_and_other_files(tmp_path: Path) -> None:
    for name in ("a/1.txt", "b/2.txt", "b/3.odt", ".ipynb_checkpoints/4.txt", "a/.5.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("words")
    assert [row.values["label"] for row in rows([tmp_path])] == ["a", "b"]
    assert left_out([tmp_path]) == [tmp_path / "b/3.odt"]


def test_groups_keep_equal_texts_too(tmp_path: Path) -> None:
    """Rows of one author, and equal texts of two authors, share a group."""
    file = tmp_path / "a.csv"
    file.write_text("text,label,author\nSame  words,a,x\nsame words,b,y\nother,a,y\nmore,a,z\n")
    first, second, third, fourth = (
        set(each["group"]) for each in classified(file, group="author")
    )
    assert first & second
    assert second & third
    assert not first & third
    assert not fourth & (first | second)


def test_words_that_are_counted(tmp_path: Path) -> None:
    """CoNLL-U counts words in its first column, and begins with comments."""
    file = tmp_path / "a.conll"
    file.write_text("# newdoc\n1\thouse\t_\tB-LOC\n2\t#\t_\tO\n\n1\troad\t_\tO\n")
    examples = list(tagged(rows([file]), TagSettings("tag", (str(file),)), silent))
    assert [each["text"] for each in examples] == ["house #", "road"]
    assert [each["tags"] for each in examples] == [["B-LOC", "O"], ["O"]]


def test_numbers_that_are_words(tmp_path: Path) -> None:
    file = tmp_path / "a.conll"
    file.write_text("7 NUM O\n8 NUM O\n")
    [example] = tagged(rows([file]), TagSettings("tag", (str(file),)), silent)
    assert example["text"] == "7 8"


def test_tokens_of_long_texts_are_estimated(tiny: Any) -> None:
    """And a text that begins with spaces is read all the same."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    text = "the old house " * 20_000
    whole = len(tokenizer(text, verbose=False)["input_ids"])
    for each in (text, " " * 10**6 + text):
        [(ids, tokens)] = cut_to(16, [each], tokenizer)
        assert ids == tokenizer(text, truncation=True, max_length=16)["input_ids"]
        np.testing.assert_allclose(tokens, whole, rtol=0.05)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("seed = 'x'", "`seed` must be a whole number, received 'x'"),
        ("steps = 2.5", "`steps` must be a whole number"),
        ("bf16 = 'yes'", "`bf16` must be true or false"),
        ("validation = [1]", "`validation` must be a list of texts"),
        ("encoding = 3", "`encoding` must be text"),
        ("encoding = 'klingon'", "`encoding` must be an encoding"),
        ("separator = ''", "`separator` must be at least one character"),
        ("hold_out = 0\npatience = 2", "`patience` needs documents"),
    ],
)
def test_settings_of_other_types(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(f"[longbird]\ntask = 'classify'\ntrain = 'a.csv'\n{line}\n")
    with pytest.raises((TypeError, ValueError), match=said):
        ClassifySettings(**read_settings(file, ClassifySettings))
    file.write_text("[longbird]\ntask = 'classify'\ntrain = 'a.csv'\n")
    assert ClassifySettings(**read_settings(file, ClassifySettings)).train == ("a.csv",)
