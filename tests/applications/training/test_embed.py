"""Embeddings: texts that belong together are read, learned, resumed and found."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from launched import finetune_in_two, without_dropout
from sklearn.metrics import ndcg_score

import longbird as lb
from longbird.applications.training.data.arrow_columns import lists_of
from longbird.applications.training.data.batches import TokenBatches, drawn_anew
from longbird.applications.training.data.files import rows
from longbird.applications.training.data.token_store import Collator, DocumentDataset, stored
from longbird.applications.training.engine.evaluation import evaluate
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trainer import LongbirdTrainer
from longbird.applications.training.metrics import ranking
from longbird.applications.training.settings.tasks import EmbedSettings
from longbird.applications.training.tasks.embed.loss import (
    NEGATIVE,
    NOTHING,
    POSITIVE,
    QUERY,
    contrastive_loss,
)
from longbird.applications.training.tasks.embed.task import Embed
from longbird.files.sources import minilm

OPTIONS: dict[str, Any] = {
    "length": 32, "tokens_per_batch": 600, "tokens_at_once": 150, "epochs": 3,
    "evaluate_every": 2, "learning_rate": 1e-2, "save_every": 300,
}  # fmt: skip
THINGS = ["sun", "rain", "snow", "wind", "ship", "sail", "port", "deck", "iron", "gold", "coal"]


def write(file: Path, lines: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def pairs(count: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    """Two words, and a document with these among others."""
    drawn, lines = random.Random(seed), []
    for _ in range(count):
        words = drawn.sample(THINGS, 2)
        document = drawn.choices([*words, "the", "of"], k=drawn.randint(8, 50))
        lines.append({"query": " ".join(words), "positive": " ".join(document)})
    return lines


def labelled(count: int = 60) -> list[dict[str, Any]]:
    return [{"text": pair["positive"], "label": pair["query"].split()[0]} for pair in pairs(count)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("embed")
    return {
        "pairs": write(folder / "pairs.jsonl", pairs()),
        "labels": write(folder / "labels.jsonl", labelled()),
    }


@pytest.fixture(scope="module")
def run(tiny: Path, files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("embed") / "run"
    assert finetune("embed", files["pairs"], out, model=str(tiny), **OPTIONS).finished
    return out


def read(file: Path, say: Any = lambda _: None, **options: Any) -> list[dict[str, Any]]:
    settings = EmbedSettings("embed", (str(file),), **options)
    return list(Embed().examples(rows([file]), settings, say))


# ---- reading


@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ({"query": "q", "positive": "p"}, [["q", "p"]]),
        ({"anchor": "q", "positive": "p", "negative": "n"}, [["q", "p", "n"]]),
        ({"sentence1": "q", "sentence2": "p"}, [["q", "p"]]),
        ({"question": "q", "answer": "p", "id": 7}, [["q", "p"]]),
        ({"query": "q", "pos": ["p", "r"], "neg": ["n"]}, [["q", "p", "n"], ["q", "r", "n"]]),
        ({"query": "q", "positive": "p", "negative_1": "n", "negative_2": ""}, [["q", "p", "n"]]),
        ({"query": "q", "positive": "p", "negatives": '["n", "m"]'}, [["q", "p", "n", "m"]]),
        ({"query": "q", "positive": "p", "negative": None}, [["q", "p"]]),
        ({"query": "q", "positive": "[1] a note"}, [["q", "[1] a note"]]),
        ({"text": "t", "label": 3}, [["t"]]),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_is_read(row: dict[str, Any], texts: list[list[str]], tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.jsonl", [row]))
    assert [each["texts"] for each in found] == texts
    for each in found:
        kinds = [QUERY, POSITIVE, *[NEGATIVE] * 9] if len(each["texts"]) > 1 else [NEGATIVE]
        assert each["kinds"] == kinds[: len(each["texts"])]


def test_a_guess_is_said(tmp_path: Path) -> None:
    lines: list[str] = []
    row = {"anchor": "q", "passage": "p", "hard_negatives": ["n"]}
    read(write(tmp_path / "a.jsonl", [row]), lines.append)
    assert "anchor is taken as the query" in lines[0]
    assert "passage" in lines[1]
    assert "hard_negatives" in lines[2]
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("row", "options", "said"),
    [
        ({"a": "q", "b": "p"}, {}, "which columns belong together.*`query` and `positive`"),
        ({"a": "q", "b": "p"}, {"query": "a"}, "which column is the positive.*`positive`"),
        ({"query": "q", "text": "p", "label": 1}, {}, "could be pairs.*name those"),
        ({"query": "q", "passage": "p", "answer": "r"}, {}, "could be; name it with `positive`"),
        ({"sentence1": "q", "sentence2": "p", "label": 0}, {}, "column label may say"),
        ({"query": " ", "positive": "p"}, {}, "line 1: the column query is empty"),
        ({"query": "q", "positive": ""}, {}, "line 1: the column positive is empty"),
        ({"query": "q", "positive": []}, {}, "line 1: the column positive is empty"),
        ({"query": "q", "positive": 5}, {}, "line 1: the column positive holds 5, expected text"),
        ({"query": 5, "positive": "p"}, {}, "the column query holds 5"),
        ({"query": "q", "positive": "p", "negative": [1]}, {}, "column negative holds 1"),
        ({"text": "", "label": "a"}, {}, "the column text is empty"),
        ({"text": "t", "label": ""}, {}, "is empty or holds no label"),
        ({"text": "t", "label": ["a", "b"]}, {}, "is empty or holds no label"),
        ({"query": "q", "positive": "p"}, {"negative": "bad"}, "`negative=bad` names a column"),
    ],
)
def test_what_is_wrong(
    row: dict[str, Any], options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said):
        read(write(tmp_path / "a.jsonl", [row]), **options)


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        ([], {}, "has no rows"),
        (pairs(1), {"hold_out": 0.0}, "there is 1 document to learn from.*`negative`"),
        (pairs(1), {}, "of one group"),
        (pairs(), {"tokens_per_batch": 30}, "`tokens_per_batch`.*`tokens_at_once`"),
        ([{**x, "label": "a"} for x in labelled()], {}, "have the same label"),
        ([{**x, "label": n} for n, x in enumerate(labelled())], {}, "no two texts have the same"),
        (labelled(8), {"hold_out": 0.2}, "for validation have the same label.*`group`"),
        ([*pairs(3), *labelled(3)], {}, "line 4 is where texts with a label and pairs"),
        (pairs(), {"temperature": 0.0}, "`temperature` must be between"),
        (pairs(), {"class_weights": "balanced"}, "embed has no option"),
    ],
    ids=[
        "empty", "one-pair", "one-group", "small-batches", "one-label", "labels-of-one",
        "validation-labels", "mixed", "temperature", "class-weights",
    ],
)  # fmt: skip
def test_said_before_the_first_step(
    lines: list[Any], options: dict[str, Any], said: str, tiny: Path, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.jsonl", lines)
    with pytest.raises((TypeError, ValueError), match=said):
        finetune("embed", file, tmp_path / "run", model=str(tiny), **{**OPTIONS, **options})
    assert not RunFolder(tmp_path / "run").steps()


# ---- batches


@pytest.mark.parametrize("seed", range(5))
def test_batches_are_others_in_every_epoch_and_as_many(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    lengths = drawn.integers(1, 400 if seed % 2 else 20, 97).tolist()
    batches = [drawn_anew(lengths, 300, seed, epoch) for epoch in range(4)]
    assert len({len(each) for each in batches}) == 1
    for each in batches:
        assert sorted(number for batch in each for number in batch) == list(range(97))
        assert all(each)
        tokens = [sum(lengths[number] for number in batch) for batch in each]
        assert max(tokens) <= 300 + max(lengths)
    assert batches[0] != batches[1]
    assert batches[2] == drawn_anew(lengths, 300, seed, 2)


def test_processes_share_the_batches_of_one() -> None:
    lengths, epoch = [7, 30, 5, 12, 40, 3, 9, 11], 3
    one = list(TokenBatches(lengths, 30, 0, lambda: epoch, anew=True))
    two = [list(TokenBatches(lengths, 30, 0, lambda: epoch, p, 2, anew=True)) for p in (0, 1)]
    for whole, *shares in zip(one, *two, strict=True):
        there = sorted(number for share in shares for number in share if number >= 0)
        assert there == sorted(whole)


def test_a_positive_is_drawn_anew_by_seed_and_epoch_alone(
    tiny: Path, files: dict[str, Path], tmp_path: Path
) -> None:
    task, tokenizer = Embed(), transformers.AutoTokenizer.from_pretrained(tiny)
    task.prepare(EmbedSettings("embed", (), seed=3), tokenizer)
    examples = read(files["labels"])
    made = stored(task, examples, tokenizer, 64, tmp_path / "rows.arrow", training=True)
    documents = DocumentDataset(task, made)

    def partners(epoch: int) -> list[Any]:
        return [task.reader(documents.rows)(number, epoch)["keys"] for number in range(len(made))]

    labels = {made[number]["keys"][0]: examples[number]["class"] for number in range(len(made))}
    first, second = partners(0), partners(1)
    assert first == partners(0)
    assert first != second
    paired = [keys for keys in first if len(keys) == 2]
    assert len(paired) > 50
    assert all(labels[one] == labels[other] and one != other for one, other in paired)
    assert task.reader(documents.rows)(0, None)["kinds"] == [NEGATIVE]  # where it is measured


# ---- the loss


def brute_force(
    vectors: torch.Tensor, examples: list[dict[str, Any]], temperature: float
) -> torch.Tensor:
    """Query by query, document by document."""
    flat, at = [], 0
    for example in examples:
        for text, kind in zip(example["texts"], example["kinds"], strict=True):
            flat.append((text, kind, example, vectors[at]))
            at += 1
    losses = []
    for text, kind, example, vector in flat:
        if kind != QUERY:
            continue
        terms, right = [], None
        for other, role, theirs, against in flat:
            cosine = vector @ against / temperature
            if role == QUERY:
                continue
            if theirs is example and role == POSITIVE:
                right = cosine
            elif other == text or other in {
                each["texts"][1] for each in examples if each["class"] == example["class"]
            }:
                continue
            terms.append(cosine)
        assert right is not None
        losses.append(torch.stack(terms).logsumexp(0) - right)
    return torch.stack(losses).mean()


def texts_of(examples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """What is known of the texts, with small numbers."""
    every = sorted({text for example in examples for text in example["texts"]})
    classes = sorted({example["class"] for example in examples})
    found: dict[str, list[int]] = {"kinds": [], "keys": [], "classes": [], "examples": []}
    for number, example in enumerate(examples):
        for text, kind in zip(example["texts"], example["kinds"], strict=True):
            found["kinds"].append(kind)
            found["keys"].append(every.index(text))
            found["classes"].append(0 if kind == NEGATIVE else 1 + classes.index(example["class"]))
            found["examples"].append(number)
    return {name: torch.tensor(values) for name, values in found.items()}


def some_examples() -> list[dict[str, Any]]:
    def example(query: str, positive: str, *negatives: str) -> dict[str, Any]:
        kinds = [QUERY, POSITIVE, *[NEGATIVE] * len(negatives)]
        return {"texts": [query, positive, *negatives], "kinds": kinds, "class": query}

    return [
        example("a", "A"),
        example("b", "B", "x", "A"),  # a negative of one, the positive of another
        example("a", "A2", "y"),  # the same query: A is no negative of it
        example("c", "B"),  # the same document
        example("d", "D", "D"),  # a negative that is the positive
        example("A", "E"),  # a query that is a document elsewhere
        example("e", "F", "A2"),  # a document of the query a, which is no negative of that
    ]


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_loss_against_brute_force(temperature: float) -> None:
    examples = some_examples()
    torch.manual_seed(0)
    count = sum(len(example["texts"]) for example in examples)
    vectors = torch.randn(count, 5, dtype=torch.float64, requires_grad=True)
    found = contrastive_loss(vectors, texts_of(examples), temperature, symmetric=False)
    expected = brute_force(vectors, examples, temperature)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        *(torch.autograd.grad(loss, vectors)[0] for loss in (found, expected))
    )


def test_symmetric_loss() -> None:
    """Distinct pairs: the mean of the cross-entropies along rows and columns."""
    torch.manual_seed(0)
    queries, documents = torch.randn(2, 6, 5).double()
    vectors = torch.stack([queries, documents], dim=1).flatten(0, 1)
    texts = {
        "kinds": torch.tensor([QUERY, POSITIVE] * 6),
        "keys": torch.arange(12),
        "classes": 1 + torch.arange(6).repeat_interleave(2),
        "examples": torch.arange(6).repeat_interleave(2),
    }
    logits, right = queries @ documents.T / 0.1, torch.arange(6)
    cross = torch.nn.functional.cross_entropy
    torch.testing.assert_close(
        contrastive_loss(vectors, texts, 0.1, symmetric=True),
        (cross(logits, right) + cross(logits.T, right)) / 2,
    )


def test_what_does_not_count_is_no_negative(tiny: Path, files: dict[str, Path]) -> None:
    task, tokenizer = Embed(), transformers.AutoTokenizer.from_pretrained(tiny)
    task.prepare(EmbedSettings("embed", ()), tokenizer)
    features = list(task.features(read(files["pairs"])[:3], tokenizer, 32))
    collate = Collator(task, tokenizer)
    inputs = [task.inputs_of(row, 0, 0, None) for row in features]
    counted = collate([{**each, "number": 0} for each in inputs])
    assert counted["items"] == 3
    nothing = collate([{**inputs[0], "number": ~0}])
    assert nothing["items"] == 0
    assert (nothing["kinds"] == NOTHING).all()
    vectors = torch.randn(2, 4, requires_grad=True)
    loss = contrastive_loss(vectors, {name: nothing[name] for name in texts_of([])}, 0.05, True)
    loss.backward()
    assert loss == 0
    assert vectors.grad is not None
    assert not vectors.grad.any()


# ---- metrics


def test_ranking_against_sklearn_and_by_hand() -> None:
    drawn = np.random.default_rng(0)
    queries, documents = drawn.normal(size=(30, 8)), drawn.normal(size=(150, 8))
    relevant = drawn.random((30, 150)) < drawn.choice([0.01, 0.1, 0.5], (30, 1))
    relevant[np.arange(30), drawn.integers(0, 150, 30)] = True
    itself = drawn.integers(0, 150, 30)
    relevant[np.arange(30), itself] = False
    relevant[np.arange(30), (itself + 1) % 150] = True
    found = list(ranking.ranked(queries, documents, lambda block: relevant[block].copy(), itself))
    scores = queries @ documents.T
    for number, (metrics, first) in enumerate(found):
        others = np.delete(np.arange(150), itself[number])
        truth, score = relevant[number, others], scores[number, others]
        by_name: dict[str, float] = dict(zip(ranking.METRICS, metrics.tolist(), strict=True))
        assert by_name["ndcg_at_10"] == pytest.approx(ndcg_score([truth], [score], k=10))
        order = sorted(range(149), key=lambda each: -score[each])
        assert others[order[:10]].tolist() == first.tolist()
        for k in (1, 10, 100):
            hits = sum(bool(truth[each]) for each in order[:k])
            assert by_name[f"recall_at_{k}"] == pytest.approx(hits / truth.sum())
        rank = 1 + next(place for place, each in enumerate(order) if truth[each])
        assert by_name["mean_reciprocal_rank"] == pytest.approx(1 / rank)
        assert by_name["mrr_at_10"] == pytest.approx(1 / rank if rank <= 10 else 0)


def test_a_model_for_which_all_are_alike_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "AT_ONCE", 70)  # several blocks
    alike, relevant = np.ones((20, 2)), np.eye(20, dtype=bool)
    found = list(ranking.ranked(alike, alike, lambda block: relevant[block].copy()))
    assert len(found) == 20
    assert all(metrics[-1] == 1 / 20 and metrics[0] == 0 for metrics, _ in found)


# ---- runs


def vectors_of(run: Path, texts: list[str]) -> np.ndarray:
    """One text at a time."""
    model = lb.LongbirdForEmbedding.from_pretrained(RunFolder(run).model).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(RunFolder(run).model)
    with torch.no_grad():
        return np.concatenate(
            [
                model(**tokenizer(text, truncation=True, max_length=32, return_tensors="pt"))
                .embeddings.numpy()
                for text in texts
            ]
        )  # fmt: skip


def test_it_learns_and_is_measured_as_one_by_one(run: Path, tiny: Path, tmp_path: Path) -> None:
    losses = [line["loss"] for line in RunFolder(run).logged() if "loss" in line]
    assert sum(losses[-4:]) < 0.8 * sum(losses[:4])
    test = pairs(30, seed=9)
    file = write(tmp_path / "test.jsonl", [{**each, "negative": "iron sail"} for each in test])
    found = evaluate(run, file, say=lambda _: None).metrics
    queries = sorted({each["query"] for each in test})
    documents = sorted({each["positive"] for each in test} | {"iron sail"})
    scores = vectors_of(run, queries) @ vectors_of(run, documents).T
    truth = np.array(
        [[{"query": q, "positive": d} in test for d in documents] for q in queries], dtype=float
    )
    assert found["ndcg_at_10"] == pytest.approx(ndcg_score(truth, scores, k=10), abs=1e-5)
    best = scores.argmax(1)
    right = truth[np.arange(len(queries)), best] / truth.sum(1)
    assert found["recall_at_1"] == pytest.approx(right.mean())
    assert (found["queries"], found["documents"]) == (len(queries), len(documents))
    low, high = found["intervals"]["ndcg_at_10"]
    assert low < found["ndcg_at_10"] < high


def test_worst_and_against(run: Path, files: dict[str, Path], tmp_path: Path) -> None:
    found = evaluate(run, files["pairs"], against=run, say=lambda _: None)
    compared = found.metrics["against"]["metrics"]["ndcg_at_10"]
    assert compared["difference"] == 0
    assert compared["p_value"] == 1
    ranks = [each["given"]["rank"] for each in found.worst]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > 1
    found.write_worst(tmp_path / "worst.jsonl")
    worst = json.loads((tmp_path / "worst.jsonl").read_text().splitlines()[0])
    assert {"query": worst["text"], "positive": worst["expected"][0]} in [
        {**each, "positive": each["positive"][:200]} for each in pairs()
    ]


@pytest.mark.slow  # trains
def test_labels(tiny: Path, files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "run"
    options: dict[str, Any] = {**OPTIONS, "epochs": None, "steps": 2}
    options |= {"hold_out": 0.3, "symmetric": True}
    assert finetune("embed", files["labels"], out, model=str(tiny), **options).finished
    found = evaluate(out, files["labels"], say=lambda _: None).metrics
    texts = list({each["text"]: each["label"] for each in reversed(labelled())}.items())
    vectors, labels = vectors_of(out, [text for text, _ in texts]), [label for _, label in texts]
    scores, each = vectors @ vectors.T, []
    for number, label in enumerate(labels):
        others = [x for x in range(len(texts)) if x != number]
        truth = [labels[x] == label for x in others]
        if any(truth):
            each.append(ndcg_score([truth], [scores[number, others]], k=10))
    assert found["queries"] == len(each)
    assert found["ndcg_at_10"] == pytest.approx(np.mean(each), abs=1e-4)


@pytest.mark.slow  # trains, more than once
def test_a_stopped_run_ends_with_the_same_weights(
    run: Path, tiny: Path, files: dict[str, Path], tmp_path: Path, monkeypatch: Any
) -> None:
    class Killed(BaseException):
        pass

    original = LongbirdTrainer.training_step

    def dies(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 5:  # saved after 4, in the middle of an epoch
            raise Killed
        return original(self, *args, **kwargs)

    out = tmp_path / "run"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LongbirdTrainer, "training_step", dies)
        finetune("embed", files["pairs"], out, model=str(tiny), **OPTIONS)
    assert RunFolder(out).steps()[-1] == 4
    assert finetune("embed", files["pairs"], out, model=str(tiny), **OPTIONS).finished
    one, two = (
        safetensors.torch.load_file(RunFolder(each).model / "model.safetensors")
        for each in (run, out)
    )
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


@pytest.mark.slow  # imports sentence-transformers
def test_a_model_by_its_name_is_measured_before_it_has_learned(
    tiny: Path, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minilm, "path", lambda: tiny)  # comes without modules.json, too
    assert not (tiny / "modules.json").exists()
    found = evaluate("minilm", files["pairs"], against="minilm", say=lambda _: None).metrics
    assert 0 < found["mrr_at_10"] <= 1
    assert found["against"]["metrics"]["mrr_at_10"]["difference"] == 0


def test_sentence_transformers_gives_the_same_vectors(run: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = [each["positive"] for each in pairs(8)] + ["the sun", "of " * 60]
    theirs = SentenceTransformer(str(RunFolder(run).model), device="cpu").encode(texts)
    np.testing.assert_allclose(theirs, vectors_of(run, texts), atol=1e-6)


@pytest.mark.slow  # starts several processes
def test_two_processes_learn_as_one(tiny: Path, files: dict[str, Path], tmp_path: Path) -> None:
    """Without dropout; every document still meets all others of its step."""
    calm = without_dropout(tiny, tmp_path / "calm")
    tokens = {"pairs": 60, "labels": 120}
    # Adam makes as much of a small gradient, rounding and all, as of a large one: small steps.
    options: dict[str, dict[str, Any]] = {
        kind: {**OPTIONS, "model": str(calm), "tokens_per_batch": tokens[kind], "hold_out": 0.3,
               "tokens_at_once": 40, "epochs": 1, "symmetric": kind == "pairs",
               "learning_rate": 1e-4}
        for kind in tokens
    }  # fmt: skip
    runs = {kind: (tmp_path / f"one {kind}", tmp_path / f"two {kind}") for kind in tokens}
    finetune_in_two(
        tmp_path, [("embed", files[kind], runs[kind][1], options[kind]) for kind in tokens]
    )
    for kind in tokens:
        finetune("embed", files[kind], runs[kind][0], **options[kind])
        (cache,) = RunFolder(runs[kind][1]).cache.glob("train-*.arrow")
        lengths = lists_of(datasets.Dataset.from_file(str(cache)), "lengths")[0].tolist()
        # A batch of one example leaves a process without any.
        assert 1 in [len(each) for each in drawn_anew(lengths, tokens[kind], 0, 0)]
        one, two = (RunFolder(each).logged() for each in runs[kind])
        assert len(one) == len(two) > 4
        for mine, theirs in zip(one, two, strict=True):
            assert mine["step"] == theirs["step"]
            for name in ("loss", "grad_norm", "eval_ndcg_at_10"):
                assert mine.get(name, 0) == pytest.approx(theirs.get(name, 0), rel=1e-5, abs=1e-5)
        first, second = (
            safetensors.torch.load_file(RunFolder(each).model / "model.safetensors")
            for each in runs[kind]
        )
        for name, tensor in first.items():
            torch.testing.assert_close(second[name], tensor, atol=1e-5, rtol=0)
