"""Tags by word and by span: aligned to tokens, none lost between windows, measured as seqeval."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import seqeval.metrics
import seqeval.scheme
import torch
import transformers
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import longbird as lb
from longbird.applications.documents.windows import owned, windows
from longbird.applications.training.data.files import rows
from longbird.applications.training.engine.application import apply
from longbird.applications.training.engine.evaluation import evaluate
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trainer import LongbirdTrainer
from longbird.applications.training.metrics import tagging
from longbird.applications.training.settings.tasks import TagSettings
from longbird.applications.training.tasks.tag.rows import tagged
from longbird.applications.training.tasks.tag.task import Tag
from longbird.cli.app import app

OPTIONS: dict[str, Any] = {
    "length": 64, "tokens_per_batch": 600, "epochs": 6, "learning_rate": 2e-2, "save_every": 300,
}  # fmt: skip
SEA, MINE = ("ship", "sail", "port", "deck"), ("iron", "gold", "coal", "salt")
WORDS = ("the", "a", "of", "sun", "rain")


def document(drawn: random.Random, most: int) -> tuple[list[str], list[str]]:
    words: list[str] = []
    tags: list[str] = []
    for _ in range(drawn.randint(1, most)):
        kind = drawn.choice(["sea", "mine", None, None])
        if kind is None:
            words.append(drawn.choice(WORDS))
            tags.append("O")
        else:
            known = SEA if kind == "sea" else MINE
            named = [drawn.choice(known[:2]), *drawn.choices(known[2:], k=drawn.randint(0, 1))]
            words += named
            tags += [f"{'I' if number else 'B'}-{kind}" for number in range(len(named))]
    return words, tags


@pytest.fixture(scope="module")
def documents() -> list[tuple[list[str], list[str]]]:
    drawn = random.Random(0)
    return [document(drawn, 100) for _ in range(40)]


def as_spans(words: list[str], tags: list[str]) -> dict[str, Any]:
    spans: list[dict[str, Any]] = []
    at = 0
    for word, tag in zip(words, tags, strict=True):
        if tag[0] == "B":
            spans.append({"start": at, "end": at + len(word), "label": tag[2:]})
        elif tag[0] == "I":
            spans[-1]["end"] = at + len(word)
        at += len(word) + 1
    return {"text": " ".join(words), "entities": spans}


@pytest.fixture(scope="module")
def word_file(documents: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("words") / "train.jsonl"
    file.write_text(
        "".join(json.dumps({"tokens": words, "tags": tags}) + "\n" for words, tags in documents)
    )
    return file


@pytest.fixture(scope="module")
def span_file(documents: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("spans") / "train.jsonl"
    file.write_text("".join(json.dumps(as_spans(*each)) + "\n" for each in documents))
    return file


@pytest.fixture(scope="module")
def run(tiny: Path, word_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tag") / "run"
    assert finetune("tag", word_file, out, model=str(tiny), **OPTIONS).finished
    return out


# ---- windows


@given(st.integers(0, 3), st.integers(0, 500), st.integers(4, 70))
def test_every_token_belongs_to_the_window_with_most_context(
    first: int, n: int, size: int
) -> None:
    last = first + n
    places = windows(first, last, size)
    mine = owned(places)
    assert [token for begin, end in mine for token in range(begin, end)] == list(
        range(first, last)
    )

    def context(token: int, begin: int, end: int) -> int:
        before = n if begin == first else token - begin
        after = n if end == last else end - 1 - token
        return min(before, after)

    for (begin, end), place in zip(mine, places, strict=True):
        assert place[1] - place[0] <= size
        for token in range(begin, end):
            best = max(context(token, *other) for other in places if other[0] <= token < other[1])
            assert context(token, *place) >= best - 1  # the middle of an even number is two


# ---- metrics


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", "BILOU"])
def test_against_seqeval(scheme: str) -> None:
    drawn = np.random.default_rng(0)
    labels = ["O", *(f"{x}-{kind}" for x in tagging.PREFIXES[scheme] for kind in "ab")]
    assert tagging.scheme_of(labels) == scheme
    truth = [drawn.integers(0, len(labels), drawn.integers(0, 40)) for _ in range(30)]
    said = [np.where(drawn.random(len(x)) < 0.7, x, (x + 1) % len(labels)) for x in truth]
    found = tagging.Table.of(truth, said, labels)
    measured = found.measure()
    names = [[[labels[x] for x in each] for each in several] for several in (truth, said)]
    options: Any = {"mode": "strict", "scheme": getattr(seqeval.scheme, scheme)}
    assert measured["entity_f1"] == pytest.approx(seqeval.metrics.f1_score(*names, **options))
    assert measured["entity_precision"] == pytest.approx(
        seqeval.metrics.precision_score(*names, **options)
    )
    assert measured["entity_recall"] == pytest.approx(
        seqeval.metrics.recall_score(*names, **options)
    )
    report: Any = seqeval.metrics.classification_report(*names, output_dict=True, **options)
    for kind in "ab":
        assert measured["f1_by_entity"][kind] == pytest.approx(report[kind]["f1-score"])
    assert measured["accuracy"] == pytest.approx(seqeval.metrics.accuracy_score(*names))
    counts = drawn.multinomial(30, [1 / 30] * 30, 8)
    rates = found.rates(counts)
    for sample, row in enumerate(counts):
        again = np.repeat(np.arange(30), row)
        alone = tagging.Table.of([truth[x] for x in again], [said[x] for x in again], labels)
        for name, values in rates.items():
            assert values[sample] == pytest.approx(alone.measure()[name]), name


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        (["O", "B-a"], "IOB2"),
        (["O", "S-a", "B-a", "E-a"], "IOBES"),
        (["U-a", "O"], "BILOU"),
        (["O"], None),
        (["NOUN", "O"], None),
        (["B", "I", "O"], None),
        (["B-a", "X-a"], None),
    ],
)
def test_schemes(labels: list[str], scheme: str | None) -> None:
    assert tagging.scheme_of(labels) == scheme


# ---- files


def read(file: Path, labelled: bool = True, **options: Any) -> list[dict[str, Any]]:
    settings = TagSettings("tag", (str(file),), **options)
    return list(tagged(rows([file]), settings, lambda _: None, labelled))


def test_files_of_every_kind_are_read_alike(tmp_path: Path) -> None:
    words, tags = ["the", "ship", "sail", ",", "sun"], ["O", "B-sea", "I-sea", "O", "O"]
    lines = "\n".join(f"{word} NN {tag}" for word, tag in zip(words, tags, strict=True))
    files = {
        "a.jsonl": json.dumps({"tokens": words, "ner_tags": tags}),
        "b.csv": f'words,tags\n"{" ".join(words)}",{" ".join(tags)}\n',
        "c.conll": f"-DOCSTART- -X- O\n\n# sent_id = 1\n{lines}\n\n\n",
        "d.txt": lines.replace(" ", "\t") + "\n\n",
        "e.bio": lines.replace("B-sea", "I-sea").replace("\n", "\r\n"),  # IOB1
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, newline="")
    pq.write_table(pa.Table.from_pylist([{"tokens": words, "tags": tags}]), tmp_path / "f.parquet")
    for name in (*files, "f.parquet"):
        (example,) = read(tmp_path / name)
        assert example["tags"] == tags, name
        assert [example["text"][a:b] for a, b in example["words"]] == words, name
    spans = [
        [{"start": 4, "end": 13, "label": "sea"}],
        [{"start_offset": 4, "end_offset": 13, "type": "sea"}],
        [[4, 13, "sea"]],
    ]
    for each in spans:
        file = tmp_path / "g.jsonl"
        file.write_text(json.dumps({"text": "the ship sail", "spans": each}))
        assert read(file)[0]["spans"] == [(4, 13, "sea")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "line 1 has 2 words and 1 tags"),
        ({"tokens": ["a"], "tags": "O X"}, "expected a list with a tag for each word"),
        ({"tokens": ["a"], "tags": [None]}, "has the tag None"),
        ({"tokens": [["a"]], "tags": ["O"]}, "expected words"),
        ({"tokens": ["a"], "x": ["O"]}, "which column is the tags.*`label`"),
        ({"text": "abc", "x": [], "y": 1}, "which column is the spans.*`label`"),
        ({"text": 5, "spans": []}, "expected text"),
        ({"text": "abc", "spans": 7}, "holds 7, expected a list of"),
        ({"text": "abc", "spans": [{"start": "0", "end": 2, "label": "a"}]}, "expected a start"),
        (
            {"text": "abc", "spans": [{"start": 1, "end": 9, "label": "a"}]},
            "to 9 in a text of 3",
        ),
        ({"text": "abc", "spans": [[2, 2, "a"]]}, "2 to 2 in a text of 3"),
        ({"text": "a  c", "spans": [[1, 3, "a"]]}, "only spaces"),
        ({"text": "abcd", "spans": [[0, 3, "a"], [2, 4, "b"]]}, "overlap: a from 0 to 3 and b"),
    ],
)
def test_what_is_wrong_with_a_row(row: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(ValueError, match=said):
        read(file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("just a text\nwithout tags of it\n", "line 2.*expected a word and its tag"),
        ("a O\nb\n", "line 2, is 'b', expected a word and its tag in 2 columns"),
        ("word\n", "line 1, is 'word', expected a word"),
    ],
)
def test_what_is_wrong_with_lines(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(content)
    with pytest.raises(ValueError, match=said):
        read(file)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "has no rows"),
        ([{"tokens": ["a"], "tags": ["O"]}] * 3, "no tag but O"),
        ([{"text": "the sun", "spans": []}] * 3, "no tag but O"),
    ],
)
def test_nothing_to_learn(lines: list[Any], said: str, tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match=said):
        finetune("tag", file, tmp_path / "run", model=str(tiny), **OPTIONS)


def test_tags_that_the_model_does_not_know(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"tokens": ["the", "ship"], "tags": ["O", "B-air"]}))
    with pytest.raises(ValueError, match=r"line 1 has the tag 'B-air', which the model does not"):
        evaluate(run, file, say=lambda _: None)


# ---- alignment


def subwords() -> Any:
    """A tokenizer with words of several tokens, and spaces that begin a token."""
    import tokenizers

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"##{x}" for x in "abcdexyz"), *"abcdexyz"]
    model = tokenizers.models.WordPiece(
        {piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"
    )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]")


def test_words_and_their_tokens() -> None:
    task = Tag(["B-x", "I-x", "O"])
    example = {
        "place": "here", "text": "ab cde \u200b x", "words": [(0, 2), (3, 6), (7, 8), (9, 10)],
        "tags": ["B-x", "O", "O", "B-x"], "spans": None, "group": "",
    }  # fmt: skip
    (row,) = task.features([example], subwords(), 32)
    assert row["labels"][:6].tolist() == [-100, 0, 1, 2, 2, 2]
    assert row["at"][:2].tolist() == [1, 3]


@given(st.data())
def test_spans_are_found_again(data: Any) -> None:
    text = data.draw(st.text("abcde  ", min_size=1, max_size=60))
    edges = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = [
        (a, b, data.draw(st.sampled_from("xy")))
        for a, b in zip(edges[::2], edges[1::2], strict=False)
        if text[a:b].strip()
    ]
    task = Tag(["B-x", "B-y", "I-x", "I-y", "O"])
    example = {
        "place": "", "text": text, "words": None, "tags": None, "spans": spans, "group": "",
    }  # fmt: skip
    (row,) = task.features([example], subwords(), 9)
    # Every letter is a token: what is found is the span without spaces around it.
    expected = [(a, b, text[a:b].strip(), label) for a, b, label in spans]
    found = [
        (each["start"], each["end"], each["text"], each["label"])
        for each in task.expected(row)["entities"]
    ]
    assert [each[2:] for each in found] == [each[2:] for each in expected]
    for mine, span in zip(found, expected, strict=True):
        assert span[0] <= mine[0] < mine[1] <= span[1]
    # No label is lost between windows, and none counts twice.
    parts = [task.inputs_of(row, part, part, None) for part in range(len(task.lengths(row)))]
    kept = [x for part in parts for x in part["labels"] if x != -100]
    assert kept == [x for x in row["labels"].tolist() if x != -100]
    for part, length in zip(parts, task.lengths(row), strict=True):
        assert len(part["input_ids"]) == len(part["labels"]) == length <= 9
        assert (part["input_ids"][0], part["input_ids"][-1]) == (2, 3)


def test_spans_inside_a_token(tiny: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    task = Tag(["B-x", "I-x", "O"])
    example = {
        "place": "", "text": "the iron sun", "words": None, "tags": None,
        "spans": [(4, 6, "x"), (6, 8, "x")], "group": "",
    }  # fmt: skip
    (row,) = task.features([example], tokenizer, 32)
    assert row["truth"].tolist() == [2, 0, 2]
    assert (row["widened"], row["unseen"]) == (1, 1)
    lines = list(task.about(Dataset.from_list([row]), 32))
    assert "1 spans begin or end inside a token" in lines[0]
    assert "no token" in lines[1]


def test_a_text_of_many_pieces(tiny: Path, monkeypatch: Any) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    text = "the ship of gold, a sun  rain" * 20
    example = {"place": "", "text": text, "words": None, "tags": None, "spans": [], "group": ""}
    task = Tag(["B-x", "I-x", "O"])
    (whole,) = task.features([example], tokenizer, 16)
    monkeypatch.setattr("longbird.applications.training.tasks.tag.units.PIECE", 37)
    (pieces,) = task.features([example], tokenizer, 16)
    for name in ("input_ids", "starts", "ends", "windows"):
        assert np.array_equal(whole[name], pieces[name]), name


# ---- runs


def weights(run: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(RunFolder(run).model / "model.safetensors")


def test_it_learns_words(run: Path, word_file: Path) -> None:
    found = evaluate(run, word_file, say=lambda _: None).metrics
    assert found["entity_f1"] > 0.6
    assert found["accuracy"] > 0.8
    assert found["scheme"] == "IOB2, strict"
    low, high = found["intervals"]["entity_f1"]
    assert low <= found["entity_f1"] <= high
    model = lb.LongbirdForTokenClassification.from_pretrained(RunFolder(run).model)
    assert list(model.config.id2label.values()) == ["B-mine", "B-sea", "I-mine", "I-sea", "O"]


@pytest.mark.slow  # trains, more than once
def test_words_and_spans_of_the_same_text_are_the_same_run(
    run: Path, tiny: Path, word_file: Path, span_file: Path, tmp_path: Path
) -> None:
    """Every word is one token here."""
    lines: list[str] = []
    out = tmp_path / "run"
    assert finetune("tag", span_file, out, model=str(tiny), say=lines.append, **OPTIONS).finished
    for name, tensor in weights(run).items():
        assert torch.equal(tensor, weights(out)[name]), name
    assert any("windows that overlap" in line for line in lines)
    one, two = (evaluate(run, x, say=lambda _: None).metrics for x in (word_file, span_file))
    assert one == two


def test_evaluation_is_what_windows_one_by_one_give(
    run: Path, documents: Any, word_file: Path
) -> None:
    model = lb.LongbirdForTokenClassification.from_pretrained(RunFolder(run).model).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(RunFolder(run).model)
    truth, said = [], []
    for words, tags in documents:
        ids = tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
        best: dict[int, tuple[int, str]] = {}
        for begin, end in windows(0, len(ids), 62):
            batch = torch.tensor([[2, *ids[begin:end], 3]])
            with torch.no_grad():
                chosen = model(batch).logits[0].argmax(-1)[1:-1].tolist()
            for at, label in enumerate(chosen):
                before = 10**6 if begin == 0 else at
                after = 10**6 if end == len(ids) else end - begin - 1 - at
                context = min(before, after)
                # Of two equal ones the later window has the token.
                if context >= best.get(begin + at, (-1, ""))[0]:
                    best[begin + at] = context, model.config.id2label[label]
        truth.append(tags)
        said.append([best[at][1] for at in range(len(ids))])
    expected = seqeval.metrics.f1_score(truth, said, mode="strict", scheme=seqeval.scheme.IOB2)
    found = evaluate(run, word_file, say=lambda _: None).metrics
    assert found["entity_f1"] == pytest.approx(expected)


@pytest.mark.slow  # trains, more than once
def test_a_stopped_run_ends_with_the_same_weights(
    run: Path, tiny: Path, word_file: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    class Killed(BaseException):
        pass

    original = LongbirdTrainer.training_step

    def dies(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 9:
            raise Killed
        return original(self, *args, **kwargs)

    out = tmp_path / "run"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LongbirdTrainer, "training_step", dies)
        finetune("tag", word_file, out, model=str(tiny), **OPTIONS)
    assert finetune("tag", word_file, out, model=str(tiny), **OPTIONS).finished
    for name, tensor in weights(run).items():
        assert torch.equal(tensor, weights(out)[name]), name


@pytest.mark.slow  # trains
def test_tags_without_a_scheme_empty_documents_and_weights(tiny: Path, tmp_path: Path) -> None:
    drawn = random.Random(1)
    lines: list[dict[str, Any]] = [{"tokens": [], "tags": []}]
    for _ in range(30):
        words, _ = document(drawn, 20)
        tags = ["sea" if x in SEA else "mine" if x in MINE else "other" for x in words]
        lines.append({"tokens": words, "tags": tags})
    file, out = tmp_path / "a.jsonl", tmp_path / "run"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = {**OPTIONS, "tokens_per_batch": 64, "class_weights": "balanced", "epochs": 3}
    done = finetune("tag", file, out, model=str(tiny), **options)
    found = done.metrics["validation"]
    assert found["macro_f1"] > 0.6
    assert "entity_f1" not in found
    assert set(found["f1_by_label"]) <= {"mine", "other", "sea"}


def test_weights_make_tags_count_alike() -> None:
    task = Tag(["a", "b"])
    rows = [{"labels": [0, 0, 0, 1, -100]}]
    weights = task.class_weights(rows)
    assert weights.tolist() == pytest.approx([4 / 6, 2.0])
    logits = torch.randn(1, 5, 2, generator=torch.Generator().manual_seed(0))
    batch = {"labels": torch.tensor([[0, 0, 0, 1, -100]]), "input_ids": torch.zeros(1, 5)}
    outputs = type("Outputs", (), {"logits": logits})
    each = -logits[0, :4].log_softmax(-1)[range(4), [0, 0, 0, 1]]
    expected = (each * torch.tensor([4 / 6, 4 / 6, 4 / 6, 2.0])).sum() / 4
    assert torch.allclose(task.loss(outputs, batch, weights), expected)
    assert task.items(batch) == 4


# ---- the tags of files


def test_files_are_tagged(run: Path, tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("the ship port\nof gold " + "rain " * 200 + "iron")
    words = tmp_path / "b.jsonl"
    words.write_text('{"tokens": ["the", "ship"]}\n{"tokens": []}\n')
    lines = tmp_path / "c.conll"
    lines.write_text("sun\nship\n\niron O\n")
    found = apply("tag", run, [text, words, lines], say=lambda _: None)[0]
    assert [(Path(each["file"]).name, each.get("line")) for each in found] == [
        ("a.txt", None), ("b.jsonl", 1), ("b.jsonl", 2), ("c.conll", 1), ("c.conll", 4),
    ]  # fmt: skip
    whole = text.read_text()
    assert [(each["text"], each["label"]) for each in found[0]["entities"]] == [
        ("ship port", "sea"),
        ("gold", "mine"),
        ("iron", "mine"),
    ]
    for each in found[0]["entities"]:
        assert whole[each["start"] : each["end"]] == each["text"]
        assert 0 < each["score"] <= 1
    assert found[1]["text"] == "the ship"
    assert found[1]["entities"][0]["start"] == 4
    assert found[2]["entities"] == []
    said = CliRunner().invoke(app, ["tag", str(run), str(text), str(words), "--json"])
    assert said.exit_code == 0
    assert json.loads(said.stdout.splitlines()[-1]) == found[:3]
    said = CliRunner().invoke(app, ["tag", str(run), str(text)])
    assert "sea (" in said.stdout
    assert "4 to 13: ship port" in said.stdout


@pytest.mark.slow  # trains
def test_files_are_tagged_by_words_without_a_scheme(tiny: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "a.jsonl", tmp_path / "run"
    row = {"tokens": ["the", "ship", "sun"], "tags": ["x", "y", "x"]}
    file.write_text("".join(json.dumps({**row, "id": each}) + "\n" for each in range(4)))
    finetune("tag", file, out, model=str(tiny), length=32, steps=1, hold_out=0.0)
    text = tmp_path / "b.txt"
    text.write_text("the ship, sun")
    (found,) = apply("tag", out, [text], say=lambda _: None)[0]
    assert [each["text"] for each in found["words"]] == ["the", "ship", ",", "sun"]
    assert {each["label"] for each in found["words"]} <= {"x", "y"}


def test_columns_that_are_not_there(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"text": "the ship"}\n')
    with pytest.raises(ValueError, match="`text=body` names a column"):
        apply("tag", run, [file], text="body", say=lambda _: None)


@pytest.mark.slow  # trains
def test_a_model_that_does_not_tag(tiny: Path, table: Path, tmp_path: Path) -> None:
    finetune("classify", table, tmp_path / "run", model=str(tiny), length=64, steps=1)
    with pytest.raises(ValueError, match="does not tag documents"):
        apply("tag", tmp_path / "run", [table], say=lambda _: None)
