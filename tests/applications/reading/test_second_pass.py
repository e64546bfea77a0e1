"""Long documents are read twice: all of it, and then the best passages alone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import longbird as lb
from longbird.applications.documents.windows import windows
from longbird.applications.reading.second_pass import LEAST, MOST, PASSAGES, passages
from longbird.applications.training.engine.trained_model import load_trained
from longbird.applications.training.tasks.ask.task import Ask


def test_passages_are_around_what_matters() -> None:
    for seed in range(200):
        check_passages(random.Random(seed))


def check_passages(drawn: random.Random) -> None:
    """Draws a document and what was said of it."""
    first, size = drawn.randint(0, 30), drawn.choice([100, 384, 2000])
    longest = drawn.choice([3, 40, 200, 900])
    paragraphs = [first]
    for _ in range(drawn.randint(1, 60)):
        paragraphs.append(paragraphs[-1] + drawn.randint(1, longest))
    *paragraphs, last = paragraphs
    sentences = sorted({drawn.randrange(first, last) for _ in range(40)} | {*paragraphs})
    logits = [drawn.gauss(0, 3) for _ in sentences]
    span = drawn.choice([None, {"token": drawn.randrange(first, last)}])
    row = {
        "windows": windows(first, last, size),
        "paragraphs": paragraphs,
        "sentence_tokens": sentences,
    }
    chosen = passages(row, {"span": span, "sentences": logits})
    most = min(MOST, size)
    if last - first <= most and len(paragraphs) == 1:
        assert chosen == []
        return

    assert 1 <= len(chosen) <= PASSAGES
    ends = dict(zip(paragraphs, [*paragraphs[1:], last], strict=True))
    for start, stop in chosen:
        assert first <= start < stop <= last
        assert stop - start <= most
        if stop - start < most:  # else it may be part of a paragraph
            assert start in ends
            assert stop in ends.values()
        if stop - start < min(LEAST, most):  # then neighbours would be too many tokens with it
            before = max((p for p in paragraphs if p < start), default=None)
            assert stop == last or ends[stop] - start > most
            assert before is None or stop - before > most
    # The best comes first, and nothing better than the last passage is left out.
    ranked = [token for _, token in sorted(zip(logits, sentences, strict=True), reverse=True)]
    ranked = [*([span["token"]] if span else []), *ranked]
    assert chosen[0][0] <= ranked[0] < chosen[0][1]
    covered = [any(start <= token < stop for start, stop in chosen) for token in ranked]
    assert all(covered) or len(chosen) == PASSAGES
    firsts = [next(n for n, t in enumerate(ranked) if a <= t < b) for a, b in chosen]
    assert all(covered[: max(firsts) + 1])


class Blurred(torch.nn.Module):
    """Over a long text it sees the sentence, and in a passage alone the word itself."""

    def __init__(self, zero: int, length: int) -> None:
        super().__init__()
        self.zero, self.seen = zero, list[int]()
        self.config = SimpleNamespace(
            num_answer_types=4, supporting_sentences=True, longest_document=length,
            first_position=0, task_specific_params={"question-answering": {"twice": True}},
        )  # fmt: skip

    def forward(self, **batch: torch.Tensor) -> Any:
        """Logits as `LongbirdForQuestionAnswering` gives them."""
        ids, places = batch["input_ids"], batch["sentence_positions"]
        rows, n = ids.shape
        self.seen.append(n)
        logits, sentences = torch.zeros(rows, n), torch.full(places.shape, -5.0)
        for row, column in zip(*torch.where(ids == self.zero), strict=True):
            before = [each for each in places[row].tolist() if 0 <= each <= int(column)]
            sentences[row, places[row].tolist().index(max(before))] = 5.0
            logits[row, column if n <= MOST + 10 else max(before)] = 10.0
        return SimpleNamespace(
            start_logits=logits,
            end_logits=logits,
            answer_type_logits=torch.tensor([[5.0, 0.0, 0.0, 0.0]]).expand(rows, -1),
            sentence_logits=sentences.masked_fill(places < 0, -1e6),
        )


@pytest.mark.parametrize("length", [4096, 600])  # in one passage, and in several
def test_the_second_look_says_what_the_answer_is(length: int, tokenizer: Any) -> None:
    paragraph = "The one mine. " * 20
    text = "\n\n".join([paragraph] * 7 + ["The mine. Then the zero ship. The mine."] + [paragraph])
    model = Blurred(tokenizer.convert_tokens_to_ids("zero"), length)
    reader = lb.Reader(model, tokenizer)
    done: list[tuple[int, int]] = []
    (twice,) = reader.ask_all([(text, "the ship ?")], advance=lambda *x: done.append(x))
    assert twice.text == "zero"
    assert text[twice.start : twice.end] == "zero"
    assert [each.text for each in twice.evidence] == ["Then the zero ship."]
    assert done[-1][0] == done[-1][1]
    assert all(a <= b for a, b in done)
    reader.twice = False
    once = reader.ask(text, "the ship ?")
    assert once.text == "Then"
    assert once.evidence == twice.evidence


def test_a_short_text_is_read_once(tokenizer: Any) -> None:
    model = Blurred(tokenizer.convert_tokens_to_ids("zero"), 4096)
    reader = lb.Reader(model, tokenizer)
    assert reader.ask("The mine. Then the zero ship.", "the ship ?").text == "zero"
    assert len(model.seen) == 1


def test_evaluation_looks_twice_as_the_reader_does(
    small_reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, reader = load_trained(small_reader), lb.Reader.from_pretrained(small_reader)
    assert isinstance(trained.task, Ask)
    trained.task.twice = reader.twice = True
    monkeypatch.setattr(reader, "_decided", lambda reading, found: found)
    drawn, counts, texts = random.Random(5), (1, 40, 12, 3), list[str]()
    for count in counts:
        words = ["zero", "one", "yes", "no", "the", "mine", "ship"]
        parts = (" ".join(drawn.choices(words, k=20)).capitalize() + "." for _ in range(count))
        texts.append("\n\n".join(parts))
    rows = [{"question": "the ship ?", "context": text, "answer": "zero"} for text in texts]
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    examples = trained.task.examples(
        trained.task.rows([file], trained.settings), trained.settings, lambda _: None
    )
    said = [prediction for _, prediction in trained.said_of(examples, 4096)]
    assert ["first" in each for each in said] == [count > 1 for count in counts]
    for text, each in zip(texts, said, strict=True):
        found: Any = reader.ask(text, "the ship ?")
        for name in ("start", "end", "token"):
            assert found["span"][name] == each["span"][name]
        assert found["types"] == pytest.approx(each["types"], abs=1e-4)
        assert ("first" in found) == ("first" in each)
        if "first" in each:
            for name in ("there", "ahead", "sentences"):
                assert found[name] == pytest.approx(each[name], abs=1e-4)
            assert found["first"]["span"]["token"] == each["first"]["span"]["token"]
