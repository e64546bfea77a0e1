"""Language modelling on files: nothing is lost, masks follow from their key, results are right."""

from __future__ import annotations

import csv
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.nn.functional as F
import transformers
from launched import assert_the_same_losses, finetune_in_two, without_dropout
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import longbird as lb
from longbird.applications.training.data.token_store import DocumentDataset, stored
from longbird.applications.training.engine.evaluation import evaluate, evaluate_rows
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trainer import LongbirdTrainer
from longbird.applications.training.initialisation.tokenizer import train_tokenizer
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.settings.tasks import SETTINGS
from longbird.applications.training.tasks.language_modelling.task import (
    CausalModelling,
    LanguageModelling,
    Masked,
)

WORDS = "river bridge harbour lantern winter summer garden window letter silver über".split()
OPTIONS: dict[str, Any] = {
    "length": 32, "tokens_per_batch": 300, "epochs": 2, "learning_rate": 5e-3, "save_every": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty text files of 1 to 200 words, in which a word tells the next."""
    drawn, folder = random.Random(0), tmp_path_factory.mktemp("corpus")
    for number in range(20):
        at, words = drawn.randrange(11), []
        for _ in range(drawn.randint(1, 200)):
            words.append(WORDS[at])
            at = (at + drawn.choice([1, 1, 1, 3])) % 11
        (folder / f"{number:02}.txt").write_text(" ".join(words))
    return folder


@pytest.fixture(scope="module")
def tokenizer(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its words are two to four tokens each."""
    folder = tmp_path_factory.mktemp("tokenizer") / "tokenizer"
    train_tokenizer([corpus], folder, vocabulary=60)
    return folder


@pytest.fixture(scope="module")
def small(tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Longbird encoder of 64 positions with that tokenizer, and dropout."""
    folder = tmp_path_factory.mktemp("small")
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    loaded.save_pretrained(folder)
    torch.manual_seed(0)
    config = lb.LongbirdConfig(
        vocab_size=len(loaded), hidden_size=16, num_attention_heads=2, num_hidden_layers=2,
        intermediate_size=32, max_position_embeddings=64, graph=lb.Window(8),
        sep_token_id=3, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    lb.LongbirdModel(config).save_pretrained(folder)
    return folder


def prepared(cls: Any, tokenizer: Path, **options: Any) -> tuple[LanguageModelling, Any, Settings]:
    task, loaded = cls(), AutoTokenizer.from_pretrained(tokenizer)
    settings: Any = SETTINGS[cls.name](task=cls.name, train=(), **{"length": 32, **options})
    task.prepare(settings, loaded)
    return task, loaded, settings


def read(cls: Any, tokenizer: Path, files: list[Path], file: Path, **options: Any) -> Any:
    task, loaded, settings = prepared(cls, tokenizer, **options)
    examples = task.examples(task.rows(files, settings), settings, lambda _: None)
    return stored(task, examples, loaded, settings.length, file)


@pytest.mark.parametrize("whole_words", [False, True])
def test_pieces_are_the_documents(
    whole_words: bool, corpus: Path, tokenizer: Path, tmp_path: Path
) -> None:
    rows = read(Masked, tokenizer, [corpus], tmp_path / "x.arrow", whole_words=whole_words)
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    for number, file in enumerate(sorted(corpus.iterdir())):
        pieces = [row for row in rows if row["document"] == number]
        text = file.read_text()
        whole = loaded(text, add_special_tokens=False)["input_ids"]
        assert [x for piece in pieces for x in piece["input_ids"][1:-1]] == whole
        assert all((x["input_ids"][0], x["input_ids"][-1]) == (2, 3) for x in pieces)
        assert all(len(piece["input_ids"]) == 32 for piece in pieces[:-1])
        assert sum(piece["bytes"] for piece in pieces) == len(text.encode())
        assert sum(piece["ordinary"] for piece in pieces) == len(whole)
        for piece in pieces:
            tokens = loaded.convert_ids_to_tokens(piece["input_ids"])
            begins = [not (whole_words and token.startswith("##")) for token in tokens]
            begins[1] = True  # what is cut off from its word
            assert piece["begins"] == begins


def test_kinds_of_documents(tokenizer: Path, tmp_path: Path) -> None:
    file, table = tmp_path / "a.txt", tmp_path / "b.csv"
    file.write_text("river\nbridge\n\n\nwinter\n  \nsummer\n")
    with table.open("w", newline="") as opened:
        csv.writer(opened).writerows([["id", "content"], ["1", "garden"], ["2", ""]])
    found = {}
    for kind in ("file", "paragraph", "line"):
        rows = read(CausalModelling, tokenizer, [file, table], tmp_path / kind, documents=kind)
        found[kind] = [(Path(row["place"]).name, row["text"]) for row in rows]
    in_table = ("b.csv, line 2", "garden")
    assert found["file"] == [("a.txt", file.read_text()), in_table]
    assert found["paragraph"] == [
        ("a.txt, line 1", "river\nbridge"), ("a.txt, line 5", "winter"),
        ("a.txt, line 7", "summer"), in_table,
    ]  # fmt: skip
    assert found["line"] == [
        ("a.txt, line 1", "river"), ("a.txt, line 2", "bridge"), ("a.txt, line 5", "winter"),
        ("a.txt, line 7", "summer"), in_table,
    ]  # fmt: skip


@pytest.mark.slow  # trains
def test_a_text_in_parts_is_one_document(tokenizer: Path, tmp_path: Path) -> None:
    """A file, a line and a cell of more than the 2^18 characters that are read together."""
    text = "river bridge\n" * 90_000
    one, other = tmp_path / "a.txt", tmp_path / "b.jsonl"
    one.write_text(text)
    other.write_text(json.dumps({"text": text}) + "\n")
    rows = read(CausalModelling, tokenizer, [one, other], tmp_path / "x.arrow", length=4096)
    assert set(rows["document"]) == {0, 1}
    loaded = AutoTokenizer.from_pretrained(tokenizer)
    each = len(loaded("river bridge", add_special_tokens=False)["input_ids"])
    for document in (0, 1):
        pieces = [row for row in rows if row["document"] == document]
        assert sum(row["ordinary"] for row in pieces) == 90_000 * each
        assert sum(row["bytes"] for row in pieces) == len(text)


def test_masks_are_of_seed_epoch_and_row(corpus: Path, tokenizer: Path, tmp_path: Path) -> None:
    rows = read(Masked, tokenizer, [corpus], tmp_path / "x.arrow")
    masks: dict[Any, Any] = {}
    for seed in (0, 1):
        documents = DocumentDataset(prepared(Masked, tokenizer, seed=seed)[0], rows)
        for epoch in (None, 0, 1):
            drawn = documents._inputs
            masks[seed, epoch] = [drawn(row, epoch)["labels"] for row in range(len(rows))]
            backwards = [drawn(row, epoch)["labels"] for row in reversed(range(len(rows)))]
            assert masks[seed, epoch] == backwards[::-1]
            assert drawn(~3, epoch)["labels"] == masks[seed, epoch][3]
    assert masks[0, None] == masks[1, None]  # models are measured with the same
    different = [masks[0, None], masks[0, 0], masks[0, 1], masks[1, 0], masks[1, 1]]
    assert len({str(each) for each in different}) == 5


def weights(run: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(RunFolder(run).model / "model.safetensors")


@pytest.fixture(scope="module", params=["mlm", "causal"])
def whole(
    request: pytest.FixtureRequest,
    corpus: Path,
    small: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    """A run that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "run"
    options = OPTIONS | ({"whole_words": True} if request.param == "mlm" else {})
    assert finetune(request.param, corpus, out, model=str(small), **options).finished
    return request.param, out


def test_it_learns(whole: tuple[str, Path]) -> None:
    objective, out = whole
    losses = [line["eval_loss"] for line in RunFolder(out).logged() if "eval_loss" in line]
    assert losses[-1] < losses[0]
    assert len(losses) == 2
    result = json.loads(RunFolder(out).result.read_text())
    assert result["metrics"]["validation"]["loss"] == pytest.approx(min(losses), abs=1e-6)
    auto = AutoModelForMaskedLM if objective == "mlm" else AutoModelForCausalLM
    assert auto.from_pretrained(RunFolder(out).model).config.vocab_size == 60
    assert AutoTokenizer.from_pretrained(RunFolder(out).model).mask_token_id == 4


@pytest.mark.slow  # trains, more than once
def test_a_stopped_run_sees_the_same_masks(
    whole: tuple[str, Path], corpus: Path, small: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """Stopped in the middle of the second epoch, which has masks of its own."""
    objective, uncut = whole
    options = OPTIONS | ({"whole_words": True} if objective == "mlm" else {})

    class Killed(BaseException):
        pass

    original, batches = LongbirdTrainer.training_step, {}
    steps = json.loads(RunFolder(uncut).result.read_text())["steps"]

    def watched(self: Any, model: Any, inputs: Any, *args: Any) -> Any:
        batches.setdefault(self.state.global_step, []).append(inputs["input_ids"].clone())
        if self.state.global_step == steps // 2 + 2 and len(batches[steps // 2 + 2]) == 1:
            raise Killed
        return original(self, model, inputs, *args)

    out = tmp_path / "run"
    monkeypatch.setattr(LongbirdTrainer, "training_step", watched)
    with pytest.raises(Killed):
        finetune(objective, corpus, out, model=str(small), **options)
    torch.manual_seed(123)
    np.random.seed(123)
    assert finetune(objective, corpus, out, model=str(small), **options).finished
    before, after = batches[steps // 2 + 2]
    assert torch.equal(before, after)
    first, second = weights(uncut), weights(out)
    assert first.keys() == second.keys()
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@pytest.mark.slow  # trains
def test_evaluation_is_what_brute_force_gives(
    whole: tuple[str, Path], corpus: Path, tmp_path: Path
) -> None:
    """One document at a time, unpadded, with the dense logits of the model."""
    objective, out = whole
    found = evaluate(out, corpus)
    cls = Masked if objective == "mlm" else CausalModelling
    folder = RunFolder(out).model
    options = {"length": 32} | ({"whole_words": True} if objective == "mlm" else {})
    rows = read(cls, folder, [corpus], tmp_path / "x.arrow", **options)
    documents = DocumentDataset(prepared(cls, folder, **options)[0], rows)
    model = getattr(lb, f"LongbirdFor{'MaskedLM' if objective == 'mlm' else 'CausalLM'}")
    model = model.from_pretrained(folder).eval()
    nats, predicted = np.zeros(20), np.zeros(20)
    for number, row in enumerate(rows):
        ids, labels = (torch.tensor([documents[number][x]]) for x in ("input_ids", "labels"))
        with torch.no_grad():
            logits = model(ids).logits
        if objective == "causal":
            logits, labels = logits[:, :-1], labels[:, 1:]
        losses = F.cross_entropy(logits[0], labels[0], reduction="none", ignore_index=-100)
        nats[row["document"]] += float(losses.sum())
        predicted[row["document"]] += int((labels != -100).sum())
    size = sum(file.stat().st_size for file in corpus.iterdir())
    loss = nats.sum() / predicted.sum()
    metrics = found.metrics
    assert metrics["documents"] == 20
    assert metrics["bytes"] == size
    assert metrics["predicted_tokens"] == predicted.sum()
    assert metrics["loss"] == pytest.approx(loss, abs=1e-5)
    if objective == "causal":
        assert metrics["perplexity"] == pytest.approx(math.exp(loss), abs=1e-4)
        bits = nats.sum() / math.log(2) / size
        assert metrics["bits_per_byte"] == pytest.approx(bits, abs=1e-5)
    else:
        assert metrics["pseudo_perplexity"] == pytest.approx(math.exp(loss), abs=1e-4)
        tokens = sum(rows["ordinary"])
        bits = loss * tokens / math.log(2) / size
        assert metrics["pseudo_bits_per_byte"] == pytest.approx(bits, abs=1e-5)
    # DocumentDataset, and not pieces, are drawn again.
    drawn = np.random.default_rng(0).multinomial(20, [1 / 20] * 20, 1000)
    low, high = np.quantile((drawn @ nats) / (drawn @ predicted), [0.025, 0.975])
    assert metrics["intervals"]["loss"] == pytest.approx((low, high), abs=1e-5)
    worst = [each["place"] for each in found.worst]
    assert len(worst) == 20
    assert worst[0].endswith(f"{(nats / predicted).argmax():02}.txt")


@pytest.mark.slow  # trains
def test_evaluate_does_not_depend_on_batches(
    whole: tuple[str, Path], corpus: Path, tmp_path: Path
) -> None:
    from longbird.applications.training.engine.evaluation import read_for
    from longbird.applications.training.engine.trained_model import load_trained

    trained = load_trained(whole[1])
    rows = read_for(trained, corpus, print)
    one, other = (
        evaluate_rows(trained.model, trained.task, rows, trained.tokenizer, size).metrics["loss"]
        for size in (32, 5000)
    )
    assert one == pytest.approx(other, abs=1e-6)


@pytest.mark.slow  # trains
@pytest.mark.parametrize("objective", ["mlm", "causal"])
def test_from_scratch_and_from_a_short_bert(
    objective: str, corpus: Path, tokenizer: Path, tiny: Path, tmp_path: Path
) -> None:
    short = {**OPTIONS, "epochs": 1, "length": 96}
    for model, options in (
        (
            "scratch:tiny",
            {"tokenizer": str(tokenizer), "graph": "Window(8)", "epochs": None, "steps": 2},
        ),
        (str(tiny), {}),  # of 64 positions
    ):
        out = tmp_path / Path(model).name
        text = tmp_path / "text.txt"
        text.write_text("the sun of the ship\n" * 50 + "snow wind rain\n" * 50)
        files = corpus if options else text
        options = {**short, **options, "documents": "file" if options else "line"}
        assert finetune(objective, files, out, model=model, **options).finished
        assert evaluate(out, files).metrics["loss"] > 0
    config = transformers.AutoConfig.from_pretrained(RunFolder(tmp_path / "scratch:tiny").model)
    sizes = (config.num_hidden_layers, config.hidden_size, config.intermediate_size)
    assert sizes == (2, 128, 512)
    assert config.longest_document == 96


@pytest.mark.slow  # trains
def test_the_head_of_a_masked_model_is_kept(tiny: Path, tmp_path: Path) -> None:
    theirs = transformers.BertForMaskedLM(transformers.BertConfig.from_pretrained(tiny))
    theirs.save_pretrained(tmp_path / "bert")
    AutoTokenizer.from_pretrained(tiny).save_pretrained(tmp_path / "bert")
    text = tmp_path / "text.txt"
    text.write_text("the sun of the ship\nrain and snow\nwind\n")
    for length in (64, 128):  # 64 are its positions
        out = tmp_path / str(length)
        finetune(
            "mlm", text, out, model=str(tmp_path / "bert"), documents="line", steps=1,
            length=length, learning_rate=0.0, weight_decay=0.0, hold_out=0,
        )  # fmt: skip
        ours = lb.LongbirdForMaskedLM.from_pretrained(RunFolder(out).model)
        dense = theirs.cls.predictions.transform.dense.weight
        assert torch.equal(ours.lm_transform.dense.weight, dense)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "scratch:tiny"}, "needs `tokenizer`"),
        ({"model": "scratch:huge", "tokenizer": "x"}, "one of tiny, mini"),
        ({"documents": "page"}, "`documents` must be one of file, paragraph, line"),
        ({"mask": 1.5}, "`mask` must be between"),
        ({"class_weights": "balanced"}, "mlm has no option"),
        ({"text": "body"}, "names a column that is not among"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be(
    options: dict[str, Any], message: str, corpus: Path, small: Path, tmp_path: Path
) -> None:
    options = {**OPTIONS, "model": str(small), **options}
    if options.get("tokenizer"):
        options["tokenizer"] = str(small)
    with pytest.raises((TypeError, ValueError), match=message):
        finetune("mlm", corpus, tmp_path / "run", **options)


def test_another_vocabulary(corpus: Path, small: Path, tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has another vocabulary than"):
        finetune("mlm", corpus, tmp_path / "run", model=str(small), tokenizer=str(tiny))


def test_odd_files(small: Path, tmp_path: Path) -> None:
    def fails(name: str, content: str, message: str, **options: Any) -> None:
        file = tmp_path / name
        file.write_text(content)
        options = {**OPTIONS, "model": str(small), **options}
        with pytest.raises(ValueError, match=message):
            finetune("mlm", file, tmp_path / f"run-{name}", **options)

    fails("empty.txt", "", "has no rows")
    fails("blank.txt", "  \n \n", "no documents for train", hold_out=0)
    fails("unknown.txt", "дождь снег", "no documents for train", hold_out=0)
    fails("one.txt", "river bridge", "`documents=paragraph`")
    fails("null.jsonl", '{"text": null}\n', "line 1: the column text holds null")
    fails("columns.csv", "a,b\nriver,x\n", "which column is the text")


@pytest.mark.slow(reason="starts processes, which read megabytes")
def test_memory_does_not_grow_with_the_corpus(tokenizer: Path, tmp_path: Path) -> None:
    """The peak of a process that reads a file, and what it adds for five times as much."""
    script = tmp_path / "read.py"
    script.write_text(
        "import resource, sys\nfrom pathlib import Path\n"
        "from transformers import AutoTokenizer\n"
        "from longbird.applications.training.data.token_store import DocumentDataset, stored\n"
        "from longbird.applications.training.data.arrow_columns import numbers_of\n"
        "from longbird.applications.training.tasks.language_modelling.task import Masked\n"
        "from longbird.applications.training.settings.tasks import MaskedSettings\n"
        "task, tokenizer = Masked(), AutoTokenizer.from_pretrained(sys.argv[1])\n"
        "settings = MaskedSettings(task='mlm', train=(), length=512)\n"
        "task.prepare(settings, tokenizer)\n"
        "file = Path(sys.argv[2])\n"
        "texts = task.examples(task.rows([file], settings), settings, print)\n"
        "rows = stored(task, texts, tokenizer, 512, file.with_suffix('.arrow'))\n"
        "assert sum(DocumentDataset(task, rows).lengths) == numbers_of(rows, 'tokens').sum()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )
    peaks = []
    for times in (1, 5):
        file = tmp_path / f"{times}.txt"
        file.write_text("river bridge harbour lantern winter\n" * (40_000 * times))
        done = subprocess.run(
            [sys.executable, script, tokenizer, file], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout))
        arrow = file.with_suffix(".arrow").stat().st_size
    assert arrow > 5e6  # and nothing of it is in memory
    assert peaks[1] - peaks[0] < 20, peaks


@pytest.mark.slow(reason="starts several processes")
def test_two_processes_learn_as_one(corpus: Path, small: Path, tmp_path: Path) -> None:
    """Without dropout, which each process draws for itself; masks are those of one."""
    options = {**OPTIONS, "model": str(without_dropout(small, tmp_path / "calm"))}
    objectives = ("mlm", "causal")
    finetune_in_two(tmp_path, [(each, corpus, tmp_path / each, options) for each in objectives])
    for each in objectives:
        finetune(each, corpus, tmp_path / f"one {each}", **options)
        assert_the_same_losses(tmp_path / f"one {each}", tmp_path / each)
