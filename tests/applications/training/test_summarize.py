"""Summaries: read, learned, resumed, written, and measured."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from datasets import Dataset
from launched import assert_the_same_losses, finetune_in_two, without_dropout
from typer.testing import CliRunner

import longbird as lb
import longbird.applications.training.tasks.summarize.task
from longbird.applications.training.data.files import rows
from longbird.applications.training.data.token_store import Collator, without_bookkeeping
from longbird.applications.training.engine.application import apply
from longbird.applications.training.engine.evaluation import evaluate
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trained_model import load_trained
from longbird.applications.training.engine.trainer import LongbirdTrainer
from longbird.applications.training.settings.tasks import SummarizeSettings
from longbird.applications.training.tasks.summarize.generation import groups, written
from longbird.applications.training.tasks.summarize.task import Summarize
from longbird.cli.app import app

OPTIONS: dict[str, Any] = {
    "length": 96, "tokens_per_batch": 800, "epochs": 4, "learning_rate": 2e-2, "beams": 2,
    "summary_tokens": 8, "save_every": 300,
}  # fmt: skip


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The summary of a document about the sea is "the ship", else "iron of gold"."""
    drawn, lines = random.Random(0), []
    for number in range(60):
        words, summary = (
            (["ship", "sail"], "the ship") if number % 2 else (["coal", "salt"], "iron of gold")
        )
        text = " ".join(drawn.choices([*words, "rain"], k=drawn.randint(2, 90)))
        lines.append({"article": f"{text}.", "highlights": summary})
    file = tmp_path_factory.mktemp("summarize") / "train.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.fixture(scope="module")
def said() -> list[str]:
    return []


@pytest.fixture(scope="module")
def run(
    tiny: Path, documents: Path, said: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Of 64 positions, 96 were made."""
    out = tmp_path_factory.mktemp("summarize") / "run"
    done = finetune("summarize", documents, out, say=said.append, model=str(tiny), **OPTIONS)
    assert done.finished
    return out


def read(file: Path, **options: Any) -> list[dict[str, Any]]:
    settings = SummarizeSettings("summarize", (str(file),), **options)
    return list(Summarize().examples(rows([file]), settings, quiet))


# ---- files


def test_columns_are_guessed_where_that_is_certain(tmp_path: Path) -> None:
    file = tmp_path / "papers.csv"
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([["id", "article", "abstract"], ["7", "long", "short"]])
    lines: list[str] = []
    settings = SummarizeSettings("summarize", (str(file),))
    (example,) = Summarize().examples(rows([file]), settings, lines.append)
    assert (example["text"], example["summary"]) == ("long", "short")
    assert len(lines) == 2
    assert "`summary` names another" in lines[0]
    assert "`text` names another" in lines[1]


def test_lists_of_sentences(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"text": ["A ship.", "It sails."], "summary": ["A", "ship"]}))
    (example,) = read(file)
    assert (example["text"], example["summary"]) == ("A ship.\nIt sails.", "A\nship")


@pytest.mark.parametrize(
    ("row", "options", "wrong"),
    [
        ({"text": "a", "summary": "  "}, {}, "line 1: the column summary is empty"),
        ({"text": "a", "summary": None}, {}, "line 1: the column summary holds null"),
        ({"text": 5, "summary": "a"}, {}, "line 1: the column text holds 5, expected text"),
        ({"text": ["a", 5], "summary": "a"}, {}, "expected text"),
        ({"text": "a"}, {}, "which column is the summary.*`summary`"),
        ({"summary": "a", "page": "b"}, {}, "which column is the text.*page"),
        ({"body": "a", "title": "b", "headline": "c"}, {}, "any of title, headline could be"),
        ({"text": "a", "summary": "b"}, {"summary": "gist"}, "`summary=gist` names a column"),
        ({"text": "a", "gist": "b"}, {"summary": "gist", "text": "gist"}, "both name"),
    ],
)
def test_what_is_wrong(
    row: dict[str, Any], options: dict[str, Any], wrong: str, tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(ValueError, match=wrong):
        read(file, **options)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"summary_tokens": 1}, "`summary_tokens` must be between 2"),
        ({"beams": 0}, "`beams` must be between 1"),
        ({"class_weights": "balanced"}, "no option `class_weights`, which belongs to"),
        ({"model": "scratch:tiny"}, "needs `tokenizer`"),
        ({"model": "scratch:huge"}, "scratch:SIZE must be one of"),
    ],
)
def test_said_before_the_first_step(
    options: dict[str, Any], wrong: str, documents: Path, tiny: Path, tmp_path: Path
) -> None:
    with pytest.raises((TypeError, ValueError), match=wrong):
        given = {"model": str(tiny), **OPTIONS, **options}
        finetune("summarize", documents, tmp_path / "run", say=quiet, **given)
    assert not RunFolder(tmp_path / "run").steps()


def test_an_empty_file(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("")
    with pytest.raises(ValueError, match="has no rows"):
        finetune("summarize", file, tmp_path / "run", model=str(tiny), **OPTIONS)


# ---- features


def test_documents_and_summaries_of_all_lengths(tiny: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    task = Summarize()
    task.prepare(SummarizeSettings("summarize", (), summary_tokens=4), tokenizer)
    examples = [
        {"place": "1", "text": "", "summary": "ship"},
        {"place": "2", "text": "rain " * 200_000, "summary": "ship " * 10},
    ]
    empty, long = task.features(examples, tokenizer, 16)
    cls, sep, ship = (tokenizer.convert_tokens_to_ids(x) for x in ("[CLS]", "[SEP]", "ship"))
    assert empty["input_ids"] == [cls, sep]
    assert empty["labels"] == [cls, ship, sep]
    assert len(long["input_ids"]) == 16
    assert long["tokens"] > 16
    assert long["labels"] == [cls, ship, ship, sep]
    assert task.lengths(long) == [20]
    lines = list(task.about(Dataset.from_list([empty, long]), 16))
    assert "1 are longer than the 16 tokens" in lines[0]
    assert "1 summaries" in lines[1]


# ---- learning


def test_it_starts_from_an_encoder_with_its_certificate(run: Path, said: list[str]) -> None:
    assert (RunFolder(run).start / "certificate.json").is_file()
    assert any("article is taken as the text" in line for line in said)


@pytest.mark.slow  # trains
def test_it_learns_and_loads_as_a_model_of_transformers(run: Path, documents: Path) -> None:
    found = evaluate(run, documents, say=quiet).metrics
    assert found["rougeL"] > 0.8
    assert found["rougeL"] > found["lead_rougeL"] + 0.5
    folder = RunFolder(run).model
    model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    assert type(model).__name__ == "LongbirdForConditionalGeneration"
    how = model.generation_config
    assert (how.num_beams, how.max_length) == (2, 9)
    # Each alone, by the folder alone.
    answers = apply("summarize", run, [documents], say=quiet)[0]
    for line, given in list(zip(documents.read_text().splitlines(), answers, strict=True))[:6]:
        ids = tokenizer(
            json.loads(line)["article"], truncation=True, max_length=96, return_tensors="pt"
        )
        alone = model.generate(**ids)[0]
        assert tokenizer.decode(alone, skip_special_tokens=True) == given["summary"]


@pytest.mark.slow  # trains
def test_evaluation_is_what_brute_force_gives(run: Path, documents: Path) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    found = evaluate(run, documents, say=quiet)
    answers = apply("summarize", run, [documents], say=quiet)[0]
    references = [json.loads(line)["highlights"] for line in documents.read_text().splitlines()]
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    scores = [
        scorer.score(reference, given["summary"])
        for reference, given in zip(references, answers, strict=True)
    ]
    for name in ("rouge1", "rouge2", "rougeL"):
        expected = np.mean([score[name].fmeasure for score in scores])
        assert found.metrics[name] == pytest.approx(expected)
    # The loss, one document after the other.
    model = lb.LongbirdForConditionalGeneration.from_pretrained(RunFolder(run).model).eval()
    assert not model.config.sparse_prediction
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(RunFolder(run).model)
    nats, tokens = 0.0, 0
    for line in documents.read_text().splitlines():
        row = json.loads(line)
        ids = tokenizer(row["article"], truncation=True, max_length=96, return_tensors="pt")
        labels = tokenizer(row["highlights"], return_tensors="pt")["input_ids"]
        with torch.no_grad():
            nats += labels.numel() * float(model(ids["input_ids"], labels=labels).loss)
        tokens += labels.numel()
    assert found.metrics["loss"] == pytest.approx(nats / tokens, rel=1e-4)
    low, high = found.metrics["intervals"]["rouge1"]
    assert low <= found.metrics["rouge1"] <= high
    assert found.worst[0]["given"].keys() == {"summary"}
    assert found.worst[0]["expected"]


def test_intervals_are_those_of_samples_measured_one_by_one() -> None:
    drawn = np.random.default_rng(0)
    said = [
        {"nats": x, "predicted": n, "rouge1": r}
        for x, n, r in zip(drawn.random(9), drawn.integers(1, 9, 9), drawn.random(9), strict=True)
    ]
    counts = drawn.multinomial(9, np.full(9, 1 / 9), 20)
    found = Summarize().resampled([{}] * 9, said, counts)
    for sample, row in enumerate(counts):
        chosen = [said[each] for each in np.repeat(np.arange(9), row)]
        measured = Summarize().measure([{}] * 9, chosen)
        for name in ("loss", "rouge1"):
            assert found[name][sample] == pytest.approx(measured[name])


def test_the_loss_is_a_mean_over_tokens_however_documents_are_shared(
    run: Path, documents: Path
) -> None:
    """Two processes, each with its share, have the loss of one."""
    trained = load_trained(run)
    task: Any = trained.task
    examples = read(documents)[:5]
    examples[0]["summary"] = "the"  # other lengths
    features = list(task.features(examples, trained.tokenizer, 96))
    collate = Collator(task, trained.tokenizer)

    def summed(several: list[dict[str, Any]]) -> tuple[float, int]:
        batch = collate([{**task.inputs_of(x, 0, 0, None), "number": 0} for x in several])
        items = int(batch["items"])
        with torch.no_grad():
            inputs = without_bookkeeping(batch)
            return items * float(task.loss(task.run(trained.model, inputs), inputs, None)), items

    whole, parts = summed(features), [summed(features[:2]), summed(features[2:])]
    assert whole[1] == sum(items for _, items in parts)
    assert whole[0] == pytest.approx(sum(loss for loss, _ in parts), rel=1e-5)


@pytest.mark.slow  # trains, more than once
def test_a_stopped_run_ends_with_the_same_weights(
    run: Path, tiny: Path, documents: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    class Killed(BaseException):
        pass

    original = LongbirdTrainer.training_step

    def dies(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 7:
            raise Killed
        return original(self, *args, **kwargs)

    out = tmp_path / "run"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LongbirdTrainer, "training_step", dies)
        finetune("summarize", documents, out, say=quiet, model=str(tiny), **OPTIONS)
    assert RunFolder(out).steps()
    torch.manual_seed(123)
    assert finetune("summarize", documents, out, say=quiet, model=str(tiny), **OPTIONS).finished
    one, two = (
        safetensors.torch.load_file(RunFolder(each).model / "model.safetensors")
        for each in (run, out)
    )
    assert one.keys() == two.keys()
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


@pytest.mark.slow  # starts several processes
def test_two_processes_learn_as_one(tiny: Path, documents: Path, tmp_path: Path) -> None:
    """Without dropout, which each process draws for itself."""
    calm = without_dropout(tiny, tmp_path / "calm")
    options = {**OPTIONS, "model": str(calm), "epochs": 2, "learning_rate": 1e-3}
    finetune("summarize", documents, tmp_path / "one", say=quiet, **options)
    finetune_in_two(tmp_path, [("summarize", documents, tmp_path / "two", options)])
    assert_the_same_losses(tmp_path / "one", tmp_path / "two")


# ---- other models to start from


def led(folder: Path, tiny: Path) -> Path:
    config = transformers.LEDConfig(
        vocab_size=22, d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=16,
        encoder_attention_heads=2, decoder_attention_heads=2, decoder_ffn_dim=16,
        max_encoder_position_embeddings=96, max_decoder_position_embeddings=16,
        attention_window=[8], pad_token_id=0, bos_token_id=2, eos_token_id=3,
        decoder_start_token_id=3,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LEDForConditionalGeneration(config)
    model.generation_config.min_length = 12  # as published ones for papers have
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(tiny).save_pretrained(folder)
    return folder


@pytest.mark.slow  # trains
def test_from_led(documents: Path, tiny: Path, tmp_path: Path, monkeypatch: Any) -> None:
    source = led(tmp_path / "led", tiny)
    options = {**OPTIONS, "epochs": 1}
    out, lines = tmp_path / "run", []
    monkeypatch.setattr(longbird.applications.training.tasks.summarize.task, "MOST", 2)
    run = finetune("summarize", documents, out, say=lines.append, model=str(source), **options)
    assert "measuring 2 of the validation documents" in lines
    assert run.metrics["validation"]["documents"] == 2
    model = lb.LongbirdForConditionalGeneration.from_pretrained(run.model)
    assert model.config.global_projections
    assert model.generation_config.min_length == 0
    # The first token was global: its projections have learned.
    before = lb.LongbirdForConditionalGeneration.from_pretrained(source).state_dict()
    name = "model.encoder.layers.0.attention.query_global.weight"
    assert not torch.equal(before[name], model.state_dict()[name])
    assert apply("summarize", run.path, [documents], say=quiet)[0][0]["summary"] is not None
    # As it came, too.
    assert len(apply("summarize", source, [documents], say=quiet)[0]) == 60
    for wrong, given in (
        ("decoder of .* has", {"summary_tokens": 17}),
        ("not made longer", {"length": 97}),
    ):
        with pytest.raises(ValueError, match=wrong):
            options = {**OPTIONS, **given}
            finetune(
                "summarize", documents, tmp_path / "b", say=quiet, model=str(source), **options
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"lora": 4},
        {"frozen_layers": 1, "gradient_checkpointing": True},
        {"bf16": True},
        {"beams": 1},
    ],
    ids=["lora", "frozen", "bf16", "one beam"],
)
def test_ways_to_train(
    options: dict[str, Any], documents: Path, tiny: Path, tmp_path: Path
) -> None:
    given = {**OPTIONS, "epochs": 1, **options}
    run = finetune("summarize", documents, tmp_path / "r", say=quiet, model=str(tiny), **given)
    losses = [line["loss"] for line in RunFolder(run.path).logged() if "loss" in line]
    assert losses[-1] < losses[0]
    model = lb.LongbirdForConditionalGeneration.from_pretrained(run.model)
    assert model.generate(torch.tensor([[2, 9, 3]])).shape[0] == 1


@pytest.mark.slow  # 128 wide
def test_from_scratch(documents: Path, tiny: Path, tmp_path: Path) -> None:
    given = {**OPTIONS, "epochs": None, "steps": 2, "learning_rate": 1e-3, "tokenizer": str(tiny)}
    run = finetune(
        "summarize", documents, tmp_path / "r", say=quiet, model="scratch:tiny", **given
    )
    assert run.finished
    assert run.metrics["validation"]["documents"] > 0


# ---- writing


def test_writing_in_groups_is_writing_alone(run: Path, documents: Path) -> None:
    trained = load_trained(run)
    task: Any = trained.task
    features = list(task.features(read(documents)[:6], trained.tokenizer, 96))
    batch = task.batch(features, Collator(task, trained.tokenizer).pad)
    found = written(trained.model, batch, lambda *_: {}, 8)
    for ids, row in zip(found, features, strict=True):
        alone = trained.model.generate(torch.tensor([row["input_ids"]]))[0].tolist()
        assert [x for x in ids if x] == [x for x in alone if x]


def test_groups_have_every_row_once() -> None:
    lengths = np.random.default_rng(0).integers(1, 500, 200).tolist()
    found = list(groups(lengths, 2**20))
    assert sorted(row for group in found for row in group) == list(range(200))
    for group in found:
        some = [lengths[row] for row in group]
        assert len(group) == 1 or len(group) * max(some) <= 2**8
        assert 2 * min(some) >= max(some)


def test_files_to_summarize(run: Path, tmp_path: Path) -> None:
    file, lines = tmp_path / "a.txt", []
    file.write_text("ship sail " * 100)
    (empty := tmp_path / "b.txt").write_text("")
    answers = apply("summarize", run, [file, empty], say=lines.append)[0]
    assert [each.keys() for each in answers] == [{"file", "summary"}] * 2
    assert any("a.txt has 202 tokens; the first 96 were read" in line for line in lines)


def test_the_command(run: Path, documents: Path) -> None:
    as_json = CliRunner().invoke(app, ["summarize", str(run), str(documents), "--json"])
    assert as_json.exit_code == 0, as_json.output
    found = json.loads(as_json.stdout)
    assert len(found) == 60
    assert found[1] == {
        "file": str(documents),
        "line": 2,
        "summary": found[1]["summary"],
    }
    plain = CliRunner().invoke(app, ["summarize", str(run), str(documents)])
    assert found[1]["summary"] in plain.stdout


def test_a_model_for_something_else(tiny: Path, table: Path, tmp_path: Path) -> None:
    lb.LongbirdForSequenceClassification.from_pretrained(tiny, num_labels=2).save_pretrained(
        tmp_path
    )
    transformers.AutoTokenizer.from_pretrained(tiny).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="does not summarize"):
        apply("summarize", tmp_path, [table])


def test_two_runs_are_compared(run: Path, documents: Path, tiny: Path, tmp_path: Path) -> None:
    lines = documents.read_text().splitlines(keepends=True)[:8]
    (file := tmp_path / "few.jsonl").write_text("".join(lines))
    found = evaluate(run, file, against=RunFolder(run).model, say=quiet, length=96).metrics
    assert found["against"]["metrics"]["rougeL"]["difference"] == 0
