"""A reader gives the answer, its place and its evidence, however long the document is."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import normalizers

import longbird as lb
from longbird.applications.documents.sentences import sentences
from longbird.applications.reading.model_inputs import encode, positions
from longbird.applications.reading.model_outputs import with_accents


def document(paragraphs: int, zero_at: int | None) -> str:
    """Paragraphs of three sentences; one of them has the word that is looked for."""
    drawn, parts = random.Random(paragraphs), []
    for number in range(paragraphs):
        lines = [f"the {' '.join(drawn.choices(['one', 'mine', 'ship'], k=6))}." for _ in range(3)]
        if number == zero_at:
            lines[1] = "Then the zero ship."
        parts.append(" ".join(line.capitalize() for line in lines))
    return "\n\n".join(parts)


@pytest.mark.parametrize(("paragraphs", "at"), [(1, 0), (3, 2), (40, 0), (40, 17), (40, 39)])
def test_the_answer_is_found_with_its_place(paragraphs: int, at: int, finder: lb.Reader) -> None:
    text = document(paragraphs, at)
    answer = finder.ask(text, "the ship ?")
    assert answer.text == "zero"
    assert answer.start is not None
    assert text[answer.start : answer.end] == "zero"
    assert [each.text for each in answer.evidence] == ["Then the zero ship."]
    for each in answer.evidence:
        assert text[each.start : each.end] == each.text
    assert (answer.passages > 1) == (paragraphs == 40)


def test_silence_shows_the_closest_sentences(finder: lb.Reader) -> None:
    text = document(10, None)
    answer = finder.ask(text, "the ship ?")
    assert answer.text is None
    assert answer.start is None
    assert answer.end is None
    assert len(answer.evidence) == 3
    assert all(text[each.start : each.end] == each.text for each in answer.evidence)


def test_a_heading_is_close_only_to_a_question_about_it(finder: lb.Reader) -> None:
    text = f"III.\n\nMine III.\n\n{document(10, None)}"

    def shown(text: str, question: str) -> list[str]:
        answer = finder.ask(text, question)
        assert answer.text is None
        return [each.text for each in answer.evidence]

    assert all(len(each) > 20 for each in shown(text, "the two ?"))
    assert shown(text, "the mine ?")[0] == "Mine III."
    assert shown("III.\n\nIV.", "the two ?") == ["III.", "IV."]  # there is nothing else
    for short in ("555-0199.", "业主是李明。"):
        assert shown(f"{short}\n\n{document(3, None)}", "the two ?")[0] == short


def test_a_heading_does_not_support_an_answer(
    finder: lb.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "support", 0.0)  # so that the three best do
    answer = finder.ask(f"III.\n\nIV.\n\n{document(3, 1)}", "the ship ?")
    assert answer.text == "zero"
    assert len(answer.evidence) > 1
    assert all("the" in each.text.lower() for each in answer.evidence)


def test_every_token_is_read_and_the_question_is_global(finder: lb.Reader) -> None:
    text, model = document(40, 3), finder.model
    assert not isinstance(model, lb.LongbirdForQuestionAnswering)
    finder.ask(text, "the mine ?")
    read = 0
    for batch in model.seen:
        assert batch["input_ids"].shape[1] <= finder.length
        first = batch["global_attention_mask"][0].tolist().index(0)
        assert first == 5  # [CLS] the mine ? [SEP]
        assert bool((batch["global_attention_mask"][:, -1] == 1).all())
        read += int((batch["global_attention_mask"] == 0).sum())
    assert read >= len(finder.tokenizer(text, add_special_tokens=False)["input_ids"])


def test_it_says_what_the_model_says_window_by_window(small_reader: Path) -> None:
    """Against a loop over windows, spans and sentences with the model alone."""
    reader = lb.Reader.from_pretrained(small_reader)
    text, question = document(20, 11), "the ship ?"
    (tokens,) = encode([(question, text)], ["here"], reader.tokenizer, reader.length)
    windows = tokens.windows(reader.length)
    assert len(windows) > 1
    begins = [tokens.tokens_of(*each)[0] for each in sentences(text)]  # type: ignore[index]
    best, types, support = (-1e9, 0, 0), [], []
    for window in windows:
        ids = [
            *tokens.ids[: tokens.first],
            *tokens.ids[window.start : window.stop],
            tokens.ids[-1],
        ]
        n, first = len(ids), tokens.first
        at, restarted = 0, []
        for token in window:  # positions count from the beginning of the paragraph
            if any(tokens.starts[token] == start for start in paragraph_starts(text)):
                at = token
            elif token == window.start:
                before = [s for s in paragraph_starts(text) if s <= tokens.starts[token]]
                at = tokens.starts.index(before[-1], first)
            restarted.append(first + token - at)
        with torch.no_grad():
            out = reader.model(
                torch.tensor([ids]),
                token_type_ids=torch.tensor([[0] * first + [1] * (n - first)]),
                global_attention_mask=torch.tensor([[1] * first + [0] * (n - first - 1) + [1]]),
                position_ids=torch.tensor([[*range(first), *restarted, restarted[-1] + 1]]),
                sentence_positions=torch.tensor(
                    [[first + b - window.start if b in window else -1 for b in begins]]
                ),
            )
        start, end = out.start_logits[0], out.end_logits[0]
        span = out.answer_type_logits[0].log_softmax(0)[0]
        for low, more in itertools.product(range(first, n - 1), range(30)):
            if low + more < n - 1:
                score = float(start[low] + end[low + more] + span)
                if score > best[0]:
                    shift = window.start - first
                    best = (score, low + shift, low + more + shift)
        types.append(out.answer_type_logits[0])
        support.append(out.sentence_logits[0])
    answer = reader.ask(text, question)
    every = torch.stack(types)
    kind = ["span", "yes", "no"][int(every[:, :3].amax(0).argmax())]
    if kind == "span":
        assert (answer.start, answer.end) == (tokens.starts[best[1]], tokens.ends[best[2]])
    else:
        assert answer.text == kind
    scores = torch.stack(support).amax(0).sigmoid()
    for each in answer.evidence:
        number = sentences(text).index((each.start, each.end))
        assert each.score == pytest.approx(float(scores[number]), abs=1e-4)


def paragraph_starts(text: str) -> list[int]:
    return [0, *(i + 2 for i in range(len(text)) if text[i : i + 2] == "\n\n")]


@pytest.mark.parametrize("rows", [16, 512])
@pytest.mark.parametrize(
    ("window", "begins"),
    [
        ((4, 140), [4, 34, 60, 110]),  # not at 36, nor at 135, before the end
        ((50, 90), [36, 60]),
        ((36, 90), [36, 60]),  # begins at a paragraph
        ((36, 82), [36]),  # 60 is too near to the end
        ((4, 5), [4]),
        ((12, 12), []),
    ],
)
def test_positions_count_anew_in_every_paragraph(
    window: tuple[int, int], begins: list[int], rows: int
) -> None:
    first, last, count, paragraphs = 4, 140, 141, [4, 34, 36, 60, 110, 135]
    start, stop = window
    found = positions(count, first, last, start, stop, paragraphs, rows)
    assert found[:first] == list(range(first))
    for token, place in zip(range(start, stop), found[first:], strict=False):
        before = max(each for each in begins if each <= token)
        assert place == first + (token - before) % (rows - first)
    assert len(found) == first + stop - start + count - last
    assert max(found) < rows


@pytest.mark.parametrize(
    ("text", "question", "error", "said"),
    [
        ("a mine", "", ValueError, "question is empty"),
        ("a mine", " \n", ValueError, "question is empty"),
        ("a mine", "the " * 100, ValueError, "half of the 128 that are read at once"),
        (b"a mine", "the ?", TypeError, "text must be a str"),
        ("a mine", None, TypeError, "question must be a str"),
    ],
    ids=["empty", "space", "long", "bytes", "none"],
)
def test_odd_input(text: Any, question: Any, error: Any, said: str, finder: lb.Reader) -> None:
    with pytest.raises(error, match=said):
        finder.ask(text, question)


@pytest.mark.parametrize("text", ["", " \n\n ", "\u200b"], ids=["nothing", "space", "invisible"])
def test_nothing_to_read_is_no_answer(text: str, finder: lb.Reader) -> None:
    answer = finder.ask(text, "the ship ?")
    assert answer.text is None


def test_an_accent_belongs_to_its_letter(
    finder: lb.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripped = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    monkeypatch.setattr(finder.tokenizer.backend_tokenizer, "normalizer", stripped)
    text = "The ship had zero\u0301\u0323, the mine one."
    answer = finder.ask(text, "the ship ?")
    assert answer.text == "zero\u0301\u0323" == text[answer.start : answer.end]


def test_half_of_a_surrogate_pair_is_read_as_a_character(finder: lb.Reader) -> None:
    text = "The ship \udce9 sank. Then \ud83d it had zero men."
    answer = finder.ask(text, "the \udcff ship ?")
    assert answer.text == "zero"
    assert text[answer.start : answer.end] == "zero"
    assert all(text[each.start : each.end] == each.text for each in answer.evidence)


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    config = lb.LongbirdConfig(hidden_size=16, num_attention_heads=2, num_hidden_layers=1)
    lb.LongbirdModel(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="is LongbirdModel, expected"):
        lb.Reader.from_pretrained(tmp_path)
    nothing: Any = None
    with pytest.raises(TypeError, match="expected the path of a folder"):
        lb.Reader.from_pretrained(nothing)


def test_texts_that_are_read_together_are_answered_as_alone(small_reader: Path) -> None:
    reader = lb.Reader.from_pretrained(small_reader)
    drawn = random.Random(8)
    texts = [document(drawn.randint(1, 9), drawn.choice([None, 0])) for _ in range(40)]
    texts[3:3] = ["", "  ", "one"]
    questions = ["the ship ?", "zero one mine ?", "the mine the ship the mine ?"]
    pairs = [(text, drawn.choice(questions)) for text in texts]
    calls: list[int] = []
    reader.model.register_forward_pre_hook(
        lambda module, args, kwargs: calls.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    together = list(reader.ask_all(iter(pairs)))
    assert max(calls) > 20
    assert len(together) == len(pairs)
    for pair, answer in zip(pairs, together, strict=True):
        alone = reader.ask(*pair)
        assert (answer.text, answer.start, answer.end) == (alone.text, alone.start, alone.end)
        assert answer.confidence == pytest.approx(alone.confidence, abs=1e-4)
        assert answer.passages == alone.passages
        for mine, theirs in zip(answer.evidence, alone.evidence, strict=True):
            assert (mine.text, mine.start) == (theirs.text, theirs.start)
            assert mine.score == pytest.approx(theirs.score, abs=1e-4)


def test_what_the_run_said_of_lengths_holds(finder: lb.Reader, tokenizer: Any) -> None:
    kept = finder.model.config.task_specific_params["question-answering"]
    kept |= {"length": 64, "answer_tokens": 7}
    reader = lb.Reader(finder.model, tokenizer)
    assert (reader.length, reader.longest_answer) == (64, 7)
    kept["length"] = 4096  # more than the model has room for
    assert lb.Reader(finder.model, tokenizer).length == finder.length


def test_yes_without_support_shows_the_likeliest_sentence(
    finder: lb.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = finder.model.forward

    def forward(**batch: torch.Tensor) -> Any:
        said = before(**batch)
        said.answer_type_logits = torch.tensor([[0.0, 9.0, 0.0, -9.0]]).repeat(len(batch), 1)
        said.sentence_logits = torch.tensor([[-5.0, -2.0, -1.0, -3.0]])
        return said

    monkeypatch.setattr(finder.model, "forward", forward)
    lines = [f"The {word} and the other {word}." for word in ("mine", "ship", "one", "end")]
    answer = finder.ask(" ".join(lines), "the ship ?")
    assert answer.text == "yes"
    assert [each.text for each in answer.evidence] == ["The one and the other one."]


def test_a_pair_is_not_a_text_of_two_letters(finder: lb.Reader) -> None:
    with pytest.raises(TypeError, match="expected a text with its question, received 'ab'"):
        list(finder.ask_all(["ab"]))  # type: ignore[list-item]


@pytest.mark.parametrize("letters", ["\u0917\u0941\u0930\u0941", "x\ufe0f", "e\u0301"])
def test_marks_belong_to_their_letter(letters: str) -> None:
    assert with_accents(f"{letters}.", len(letters) - 1) == len(letters)
