"""Questions about documents: formats, windows, learning, and what is measured."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from asking import ORE, hotpot_file, squad_file

import longbird as lb
from longbird.applications.reading.model_inputs import encode
from longbird.applications.reading.model_outputs import best_spans
from longbird.applications.training.data.files import rows
from longbird.applications.training.data.split import linked, lowest
from longbird.applications.training.engine.evaluation import evaluate
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trained_model import load_trained
from longbird.applications.training.engine.trainer import LongbirdTrainer
from longbird.applications.training.metrics import squad
from longbird.applications.training.settings.tasks import AskSettings
from longbird.applications.training.tasks.ask.questions import Question, mentions, questions
from longbird.applications.training.tasks.ask.task import Ask

OPTIONS: dict[str, Any] = {
    "length": 64, "tokens_per_batch": 300, "epochs": 10, "learning_rate": 3e-3,
}  # fmt: skip
LONG: dict[str, Any] = {**OPTIONS, "epochs": 10, "hold_out": 0.3, "evaluate_every": 8}
NAMES = dict.fromkeys(("question", "context", "answer", "separator", "group"))


def silent(line: str) -> None:
    """Says nothing."""


def read(file: Path, say: Any = silent, **names: Any) -> list[Question]:
    return list(questions(rows([file]), {**NAMES, **names}, say))


def write(file: Path, value: Any) -> Path:
    file.write_text(json.dumps(value))
    return file


def squad_of(context: Any, question: Any, answers: Any, **more: Any) -> dict[str, Any]:
    asked = {"id": "q", "question": question, "answers": answers, **more}
    return {"data": [{"title": "t", "paragraphs": [{"context": context, "qas": [asked]}]}]}


# ---- reading


def test_squad_is_recognised(tmp_path: Path) -> None:
    lines: list[str] = []
    file = squad_file(tmp_path / "x.json", second=True)
    found = read(file, lines.append)
    assert lines == [f"{file} is in SQuAD's format"]
    assert len(found) == 40
    assert found[0].kind == "none"
    assert found[0].answers == []
    for each in found:
        assert all(each.text[slice(*span)] in ORE for span in each.spans)
        assert bool(each.spans) == (each.kind == "span")
        assert each.metric == "squad2"
    assert read(squad_file(file, second=False))[0].metric == "squad1"


def test_hotpot_is_recognised(tmp_path: Path) -> None:
    lines: list[str] = []
    file = hotpot_file(tmp_path / "x.json")
    found = read(file, lines.append)
    assert lines == [f"{file} is in HotpotQA's format"]
    assert [each.kind for each in found[:4]] == ["yes", "span", "no", "span"]
    for each, row in zip(found, json.loads(file.read_text()), strict=True):
        where = {(s.title, s.index): each.text[s.start : s.end] for s in each.sentences}
        for title, sentences in row["context"]:
            for index, sentence in enumerate(sentences):
                assert where[title, index] == sentence.strip()
        supported = [where[fact] for fact in each.support or []]
        assert len(each.spans) == (len(supported) if each.kind == "span" else 0)


def test_only_mentions_that_are_supported_count(tmp_path: Path) -> None:
    context = [["A", ["gold here.", " More gold, gold."]], ["B", ["Golden gold."]]]
    row = {"question": "q", "answer": "gold", "context": context}
    file = write(tmp_path / "x.json", [{**row, "supporting_facts": [["A", 1], ["A", 9]]}])
    (each,) = read(file)
    assert [each.text[: span[0]].count("gold") for span in each.spans] == [1, 2]
    (each,) = read(write(file, [{**row, "supporting_facts": []}]))
    assert len(each.spans) == 4  # where nothing supports it, everywhere
    columns = {"title": ["A", "B"], "sentences": [context[0][1], context[1][1]]}
    facts = {"title": ["A"], "sent_id": [1]}
    (same,) = read(write(file, [{**row, "context": columns, "supporting_facts": facts}]))
    assert len(same.spans) == 2


def test_hotpot_may_have_other_ways_to_say_an_answer(tmp_path: Path) -> None:
    row = {
        "question": "q", "answer": "gold", "answers": ["gold", "the gold of Ophir"],
        "context": [["A", ["It was the gold of Ophir."]]], "supporting_facts": [["A", 0]],
    }  # fmt: skip
    (each,) = read(write(tmp_path / "x.json", [row]))
    assert each.answers == ["gold", "the gold of Ophir"]
    assert [each.text[slice(*span)] for span in each.spans] == each.answers
    gold = {"answers": each.answers, "metric": "hotpot", "support": [["A", 0]]}
    span = {"text": "gold of Ophir", "start": 0, "end": 0, "chance": 1.0}
    said = {"span": span, "types": None, "support": {}}
    scores = Ask(supported=True).scores([{"gold": json.dumps(gold)}], [said])
    assert scores["f1"].tolist() == [1.0]  # articles do not count


def test_columns(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    table = [
        ("query", "document", "answer"),
        ("Where?", "It is in Paris, not paris.", "Paris"),
        ("Is it?", "It is.", "Yes"),
        ("Who?", "It is.", ""),
        ("Which?", "One or two.", "two|One"),
    ]
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows(table)
    lines: list[str] = []
    found = read(file, lines.append, separator="|")
    assert any("query is taken as the question" in line for line in lines)
    assert [each.kind for each in found] == ["span", "yes", "none", "span"]
    assert found[0].spans == [(9, 14)]
    assert found[3].spans == [(7, 10), (0, 3)]
    lines_file = tmp_path / "x.jsonl"
    values = {"question": "Is it?", "context": "a b a", "answer": True}
    lines_file.write_text(
        json.dumps(values)
        + "\n"
        + json.dumps({**values, "answer": {"text": ["a"], "answer_start": [4]}})
    )
    yes, span = read(lines_file)
    assert yes.kind == "yes"
    assert span.spans == [(4, 5)]


def test_mentions() -> None:
    assert mentions("Ann, Anna and ann", "Ann") == [(0, 3)]
    assert mentions("C++ (in C++)", "C++") == [(0, 3), (8, 11)]
    assert mentions("x", " ") == []
    assert mentions("abc", "d") == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (squad_of("x", "", [{"text": "x", "answer_start": 0}]), "the question is empty"),
        (squad_of("x", 5, [{"text": "x", "answer_start": 0}]), "the question is 5, expected text"),
        (squad_of(None, "q", []), "line 1: the context of a paragraph is null"),
        (squad_of("x", "q", []), "question q has no answers"),
        (squad_of("x", "q", [{"text": 3}]), "question q is 3, expected text"),
        (squad_of("x", "q", [{"text": "x", "answer_start": "0"}]), 'answer_start of "0"'),
        ({"data": [{"paragraphs": "text"}]}, "paragraphs holds .text., expected a list"),
        ([{"question": "q", "context": [["A", "text"]], "answer": "a", "supporting_facts": []}],
         "the paragraph A holds .text., expected a list of texts"),
        ([{"question": "q", "context": [["A", ["x"]]], "answer": "a"}], "has no supporting_facts"),
        ([{"question": "q", "context": [["A", ["x"]]], "answer": "x", "supporting_facts": ["A"]}],
         r"expected \[title, index\]"),
        ([{"question": "q", "context": "x"}], "which column is the answer"),
        ([{"question": "q", "context": 7, "answer": "x"}], "line 1: the column context is 7"),
        ([{"question": "q", "context": "x", "answer": "z"}], "no answer of the training files"),
        ([{"question": "q", "context": "x", "answer": ""}], "no question of the training files"),
        ([], "no rows"),
        ({"data": []}, "no rows"),
        (squad_of("sun " * 20, "sun " * 60, [{"text": "sun", "answer_start": 0}]),
         "question has 63 tokens, more than half"),
    ],
)  # fmt: skip
def test_odd_files(value: Any, said: str, tiny: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "x.json", value)
    with pytest.raises(ValueError, match=said):
        finetune(
            "ask", file, tmp_path / "run", model=str(tiny), say=silent, hold_out=0.0, **OPTIONS
        )


# ---- splitting


@pytest.mark.parametrize("seed", range(5))
def test_linked_groups_stay_together(seed: int) -> None:
    random = np.random.default_rng(seed)
    draws = random.integers(0, 2**64, 300, dtype=np.uint64)
    links = random.choice(draws[:200], (150, 2))
    graph = networkx.Graph(links.tolist())
    found = linked(draws.tolist(), links.flatten().tolist(), seed=0)
    assert (found[200:] == draws[200:]).all()
    of = dict(zip(draws.tolist(), found.tolist(), strict=True))
    graph.add_nodes_from(draws.tolist())
    parts = [{of[each] for each in part} for part in networkx.connected_components(graph)]
    assert all(len(part) == 1 for part in parts)
    assert len(set().union(*parts)) == len(parts)


@pytest.mark.slow  # trains
def test_no_paragraph_is_on_both_sides(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    table = json.loads(hotpot_file(file).read_text())
    for one, other in itertools.pairwise(table[:30]):  # a chain of shared paragraphs
        other["context"].append(one["context"][-1])
    write(file, table)
    out = tmp_path / "run"
    once = {**OPTIONS, "epochs": None, "steps": 1}
    finetune("ask", file, out, model=str(tiny), say=silent, **once)
    held = json.loads((out / "data.json").read_text())["documents"]
    assert held in ({"train": 36, "validation": 4}, {"train": 10, "validation": 30})
    assert lowest(linked([1, 2], [], 0), 0.5).tolist() == [True, False]


# ---- windows


@pytest.mark.parametrize("length", [16, 24, 40, 300])
def test_windows_cover_a_document_and_keep_its_characters(length: int, tiny: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    text = "  ".join(f"sun,rain {number}" for number in range(40))
    (tokens,) = encode([("to a ship", text)], ["x"], tokenizer, length)
    windows = tokens.windows(length)
    assert sorted({t for window in windows for t in window}) == list(
        range(tokens.first, tokens.last)
    )
    for window in windows:
        assert len(window) + 6 <= length  # [CLS] to a ship [SEP] ... [SEP]
    for one, other in itertools.pairwise(windows):
        assert len(set(one) & set(other)) >= (length - 6) // 4
    for word in ("sun", "rain", "17", "39"):
        at = text.index(word)
        low, high = tokens.tokens_of(at, at + len(word)) or (0, 0)
        assert text[tokens.starts[low] : tokens.ends[high]] == word
    assert tokens.tokens_of(len(text), len(text)) is None
    assert tokens.tokens_of(text.index("  "), text.index("  ") + 2) is None


def test_token_types_are_given_where_the_tokenizer_knows_them(tiny: Path, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    task = Ask()
    file = squad_file(tmp_path / "x.json", second=False, count=1)
    examples = list(task.examples(rows([file]), AskSettings("ask", ()), silent))
    for names in (["input_ids"], ["input_ids", "token_type_ids"]):
        tokenizer.model_input_names = names
        (row,) = task.features(examples, tokenizer, 64)
        inputs = task.inputs_of(row, 0, 0, None)
        types = torch.tensor([inputs["token_type_ids"]])
        marks = torch.tensor([inputs["global_attention_mask"]])
        assert types.any() == ("token_type_ids" in names)
        assert (marks[0, :5] == 1).all()
        assert marks[0, -1] == 1
        assert not marks[0, 5:-1].any()
        kept = task.batch([], lambda _, types=types: {"token_type_ids": types})
        assert ("token_type_ids" in kept) == types.any()


@pytest.mark.parametrize("at", [0, 29, 30, 31, 60, 99])
def test_the_window_to_learn_from_has_the_answer(at: int, tiny: Path, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    words = ["rain"] * 100
    words[at] = "gold"
    value = squad_of(" ".join(words), "of", [{"text": "gold", "answer_start": 5 * at}])
    task = Ask()
    settings = AskSettings("ask", ())
    examples = list(task.examples(rows([write(tmp_path / "x.json", value)]), settings, silent))
    (row,) = task.features(examples, tokenizer, 40, training=True)
    (again,) = task.features(examples, tokenizer, 40, training=True)
    assert row == again
    assert row["tokens"] == 104
    assert len(row["windows"]) == 1
    inputs = task.inputs_of(row, 0, 0, None)
    assert task.lengths(row) == [len(inputs["input_ids"])] == [40]
    (start,) = {x for x in inputs["start_positions"] if x >= 0}
    (end,) = {x for x in inputs["end_positions"] if x >= 0}
    assert start == end
    assert tokenizer.convert_ids_to_tokens(inputs["input_ids"][start]) == "gold"
    (everywhere,) = task.features(examples, tokenizer, 40)
    assert row["windows"][0] in everywhere["windows"]
    assert len(everywhere["windows"]) > 2


def test_an_answer_longer_than_the_overlap_has_a_window(tiny: Path, tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    words = ["rain"] * 100
    words[20:50] = ["gold"] * 30
    text = " ".join(words)
    gold = {"text": " ".join(["gold"] * 30), "answer_start": text.index("gold")}
    task = Ask()
    file = write(tmp_path / "x.json", squad_of(text, "of", [gold]))
    examples = list(task.examples(rows([file]), AskSettings("ask", ()), silent))
    (row,) = task.features(examples, tokenizer, 40, training=True)
    inputs = task.inputs_of(row, 0, 0, None)
    assert inputs["end_positions"][0] - inputs["start_positions"][0] == 29


# ---- losses and spans


@pytest.mark.parametrize("longest", [1, 3, 50])
def test_the_best_span_is_that_of_brute_force(longest: int) -> None:
    torch.manual_seed(0)
    start, end = torch.randn(2, 5, 12, dtype=torch.float64)
    possible = torch.zeros(5, 12, dtype=torch.bool)
    possible[:4, 3:9] = True  # the last row has none
    paragraph = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3]).repeat(5, 1)
    paragraph[0] = 0
    low, high, logit, chance = best_spans(start, end, possible, paragraph, longest)
    for row in range(4):
        spans = [
            (float(start[row, a] + end[row, b]), a, b)
            for a in range(3, 9)
            for b in range(a, min(9, a + longest))
            if row == 0 or (a < 5) == (b < 5)
        ]
        assert (float(logit[row]), int(low[row]), int(high[row])) == max(spans)
        whole = start[row, 3:9].softmax(0)[low[row] - 3] * end[row, 3:9].softmax(0)[high[row] - 3]
        assert float(chance[row]) == pytest.approx(float(whole), rel=1e-5)
    assert logit[4] == -torch.inf


def test_one_mention_has_the_loss_of_the_head_and_more_are_added(tiny: Path) -> None:
    torch.manual_seed(0)
    model = lb.LongbirdForQuestionAnswering.from_pretrained(
        tiny, num_answer_types=4, supporting_sentences=True
    ).eval()
    ids = torch.randint(5, 20, (2, 30))
    batch = {
        "input_ids": ids,
        "global_attention_mask": torch.zeros_like(ids),
        "start_positions": torch.tensor([[4, -1], [7, -1]]),
        "end_positions": torch.tensor([[5, -1], [7, -1]]),
        "answer_types": torch.tensor([0, 0]),
        "sentence_positions": torch.tensor([[3], [9]]),
        "sentence_support": torch.tensor([[1], [0]]),
    }
    task = Ask(typed=True, supported=True)
    ours = task.loss(task.run(model, batch), batch, None)
    first = {name: x[:, 0] if name[-10:] == "_positions" else x for name, x in batch.items()}
    first["sentence_positions"] = batch["sentence_positions"]
    torch.testing.assert_close(ours, model(**first).loss)
    several = {**batch, "start_positions": torch.tensor([[4, 9], [-1, -1]]),
               "end_positions": torch.tensor([[5, 9], [-1, -1]])}  # fmt: skip
    outputs = task.run(model, several)
    s, e = outputs.start_logits[0].softmax(0), outputs.end_logits[0].softmax(0)
    span = -(s[4] * e[5] + s[9] * e[9]).log() / 2 / 2  # of two rows, one of which has none
    types = F.cross_entropy(outputs.answer_type_logits, torch.tensor([0, 0]))
    marks = F.binary_cross_entropy_with_logits(
        outputs.sentence_logits[:, 0], torch.tensor([1.0, 0.0])
    )
    loss = task.loss(outputs, several, None)
    torch.testing.assert_close(loss, span + types + marks)
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


# ---- learning


@pytest.fixture(scope="module")
def long_run(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str]]:
    folder = tmp_path_factory.mktemp("long")
    lines: list[str] = []
    file = squad_file(folder / "train.json", second=True, longest=150)
    assert finetune(
        "ask", file, folder / "run", model=str(tiny), say=lines.append, **LONG
    ).finished  # fmt: skip
    return file, folder / "run", lines


def test_it_learns_and_says_what_becomes_of_long_documents(
    long_run: tuple[Path, Path, list[str]],
) -> None:
    file, run, lines = long_run
    assert any("the window with the answer is learned from" in line for line in lines)
    assert any("windows that overlap" in line for line in lines)
    found = evaluate(run, file, say=silent).metrics
    assert found["has_answer_f1"] > 0.8
    assert found["documents"] == 40
    low, high = found["intervals"]["f1"]
    assert low <= found["f1"] <= high
    config = load_trained(run).model.config
    kept = config.task_specific_params["question-answering"]
    assert found["thresholds"] == {"no_answer": kept["no_answer"]}
    result = json.loads(RunFolder(run).result.read_text())["metrics"]["validation"]
    assert result["thresholds"] == {"no_answer": 0.0}  # measured before it was chosen


@pytest.mark.slow  # trains
def test_evaluation_is_what_brute_force_gives(long_run: tuple[Path, Path, list[str]]) -> None:
    """Every window alone, without batches, each start with each end."""
    file, run, _ = long_run
    trained = load_trained(run)
    model, tokenizer, total = trained.model, trained.tokenizer, [0.0, 0.0]
    threshold = model.config.task_specific_params["question-answering"]["no_answer"]
    asked, silences = read(file), 0
    for each in asked:
        pair = tokenizer(each.question, each.text, return_offsets_mapping=True)
        ids, offsets = pair["input_ids"], pair["offset_mapping"]
        first, last = 5, len(ids) - 1  # [CLS] in the mine [SEP] ... [SEP]
        room, best, types, answer = 64 - 6, -np.inf, [], ""
        count = max(0, -(-(last - first - room) // (room - room // 4)))
        for number in range(count + 1):
            start = first + max(0, last - first - room) * number // max(1, count)
            stop = min(start + room, last)
            own = torch.tensor([ids[:first] + ids[start:stop] + ids[last:]])
            marks = torch.ones_like(own)
            marks[0, first : first + stop - start] = 0
            with torch.no_grad():
                out = model(own, global_attention_mask=marks)
            types.append(out.answer_type_logits[0])
            for a in range(stop - start):
                for b in range(a, min(a + 30, stop - start)):
                    value = out.start_logits[0, first + a] + out.end_logits[0, first + b]
                    value = float(value + out.answer_type_logits[0].log_softmax(0)[0])
                    if value > best:
                        best = value
                        answer = each.text[offsets[start + a][0] : offsets[start + b][1]]
        every = torch.stack(types)
        margin = float(every[:, 3].min() - every[:, :3].max())
        kind = int(every[:, :3].max(0).values.argmax())
        said = "" if margin > threshold else ("", "yes", "no")[kind] or answer
        silences += said == ""
        exact, f1 = squad.score(said, each.answers)
        total[0] += exact
        total[1] += f1
    found = evaluate(run, file, say=silent).metrics
    assert found["exact_match"] == pytest.approx(total[0] / len(asked))
    assert found["f1"] == pytest.approx(total[1] / len(asked))
    assert 0 < silences < len(asked)


@pytest.mark.slow  # trains, more than once
def test_a_stopped_run_ends_with_the_same_weights(
    long_run: tuple[Path, Path, list[str]], tiny: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    class Killed(BaseException):
        pass

    original = LongbirdTrainer.training_step

    def dies(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 13:
            raise Killed
        return original(self, *args, **kwargs)

    file, run, _ = long_run
    options: dict[str, Any] = {**LONG, "model": str(tiny), "say": silent}
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LongbirdTrainer, "training_step", dies)
        finetune("ask", file, tmp_path / "run", **options)
    torch.manual_seed(5)
    assert finetune("ask", file, tmp_path / "run", **options).finished
    one, other = (
        lb.LongbirdForQuestionAnswering.from_pretrained(RunFolder(path).model)
        for path in (run, tmp_path / "run")
    )
    for name, value in one.state_dict().items():
        assert torch.equal(value, other.state_dict()[name]), name
    assert one.config.task_specific_params == other.config.task_specific_params


@pytest.mark.slow  # trains
def test_hotpot_is_learned(tiny: Path, tmp_path: Path) -> None:
    file = hotpot_file(tmp_path / "train.json")
    options: dict[str, Any] = {**OPTIONS, "epochs": 4, "tokens_per_batch": 130}
    run = finetune("ask", file, tmp_path / "run", model=str(tiny), say=silent, **options)
    found = evaluate(run.path, file, say=silent)
    assert found.metrics["sp_f1"] > 0.9
    assert {"sp_em", "joint_em", "joint_f1", "f1"} <= found.metrics["intervals"].keys()
    assert found.metrics["joint_f1"] <= min(found.metrics["sp_f1"], 1.0)
    given = found.worst[0]["given"]
    assert {"answer", "type", "start", "end", "score", "supporting_facts"} == given.keys()
    assert found.metrics["thresholds"]["no_answer"] is None  # every question had an answer
    # A second set of questions of another format, with the same model.
    other = evaluate(run.path, squad_file(tmp_path / "squad.json", second=True), say=silent)
    assert "sp_f1" not in other.metrics
    assert "no_answer_f1" in other.metrics


def test_formats_can_be_mixed(tiny: Path, tmp_path: Path) -> None:
    files = hotpot_file(tmp_path / "h.json", 8), squad_file(tmp_path / "s.json", True, count=8)
    options: dict[str, Any] = {**OPTIONS, "epochs": 1, "validation": files[1]}
    run = finetune("ask", files, tmp_path / "run", model=str(tiny), say=silent, **options)
    validation = run.metrics["validation"]
    assert "joint_f1" not in validation
    assert validation["quality"] == validation["f1"]
    found = evaluate(run.path, files, say=silent).metrics
    assert found["quality"] == pytest.approx((found["joint_f1"] + _f1(run.path, files[1])) / 2)


def _f1(run: Path, file: Path) -> float:
    return evaluate(run, file, say=silent).metrics["f1"]


@pytest.mark.slow  # trains
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "options",
    [{"lora": 2}, {"bf16": True}, {"gradient_checkpointing": True}, {"accumulate": 2}],
    ids=lambda options: ",".join(options),
)
def test_options(options: dict[str, Any], tiny: Path, tmp_path: Path) -> None:
    file = hotpot_file(tmp_path / "train.json", count=12)
    short: dict[str, Any] = {**OPTIONS, "length": 128, "epochs": 1, **options}
    run = finetune("ask", file, tmp_path / "run", model=str(tiny), say=silent, **short)
    assert run.finished
    assert "joint_f1" in run.metrics["validation"]
    start = lb.LongbirdForQuestionAnswering.from_pretrained(run.model).sentence.out.weight
    assert start.abs().sum() > 0


def test_answers_come_with_their_characters(
    long_run: tuple[Path, Path, list[str]], tmp_path: Path
) -> None:
    _, run, _ = long_run
    text = "rain  rain\n" * 40 + "gold"
    value = squad_of(text, "in the mine", [{"text": "gold", "answer_start": 440}])
    empty = squad_of("", "in the mine", [], is_impossible=True)
    file = write(tmp_path / "x.json", {"data": [*value["data"], *empty["data"]]})
    found = evaluate(run, file, say=silent)
    by_text = {each["text"][-4:]: each["given"] for each in found.worst}
    of_empty = next(each for each in found.worst if each["text"] == "in the mine\n")["given"]
    assert of_empty["answer"] in ("", "yes", "no")
    assert of_empty["start"] is None
    given = next(each["given"] for each in found.worst if "rain" in each["text"])
    if given["type"] == "span":
        assert text[given["start"] : given["end"]] == given["answer"] == "gold"
    assert by_text


def test_thresholds_are_chosen_by_what_is_held_out() -> None:
    task = Ask(typed=True)
    gold: dict[str, Any] = {"metric": "squad2", "support": None}
    examples: list[Any] = [
        {"gold": json.dumps({**gold, "answers": [] if number % 2 else ["gold"]})}
        for number in range(20)
    ]
    said: list[Any] = [
        {
            "types": [0.0, -9.0, -9.0, 3.0 if number % 2 else 1.0],
            "span": {"text": "gold", "start": 0, "end": 4, "chance": 0.5, "logit": 0.0},
            "support": {},
            "sentences": [],
            "beside": None,
            "there": None,
            "ahead": 0.0,
        }
        for number in range(20)
    ]
    assert task.measure(examples, said)["f1"] == 0.5
    config = lb.LongbirdConfig()
    task.calibrate(examples, said, config)
    assert task.no_answer is not None
    assert 1.0 < task.no_answer < 3.0
    assert Ask.of_model(config).no_answer == task.no_answer
    assert task.measure(examples, said)["f1"] == 1.0
    counts = np.random.default_rng(0).multinomial(20, [0.05] * 20, 5)
    task.no_answer = 0.0
    at_once = task.resampled(examples, said, counts)
    for name, values in at_once.items():
        for sample, row in enumerate(counts):
            drawn = np.repeat(np.arange(20), row)
            alone = task.measure([examples[x] for x in drawn], [said[x] for x in drawn])
            assert values[sample] == pytest.approx(alone[name]), name


@pytest.mark.slow  # trains
def test_confidence_is_how_often_answers_are_right() -> None:
    """Answers that are right as often as their chance says, and questions without an answer."""
    drawn = np.random.default_rng(0)
    chances = drawn.uniform(0.02, 0.98, 3000)
    right = drawn.uniform(size=3000) < chances
    none = ~right & (drawn.uniform(size=3000) < 0.6)
    examples: list[Any] = []
    said: list[Any] = []
    for chance, is_right, is_none in zip(chances, right, none, strict=True):
        answers = [] if is_none else ["gold" if is_right else "coal"]
        gold = {"metric": "squad2", "support": None, "answers": answers}
        examples.append({"gold": json.dumps(gold)})
        said.append(
            {
                "types": [0.0, -9.0, -9.0, -np.log(chance / (1 - chance))],
                "span": {"text": "gold", "start": 0, "end": 4, "chance": chance, "logit": 9.0},
                "support": {}, "sentences": [], "beside": None, "there": None, "ahead": 0.0,
            }
        )  # fmt: skip
    task, config = Ask(typed=True), lb.LongbirdConfig()
    task.calibrate(examples, said, config)
    assert task.confidence is not None
    sure = np.array([task.confidence.of(each) for each in said])
    for low in np.arange(0.1, 0.9, 0.2):
        bin_ = (sure >= low) & (sure < low + 0.2)
        assert right[bin_].mean() == pytest.approx(sure[bin_].mean(), abs=0.06)
    # The threshold gives the highest score there is.
    scores = [np.where(sure < least, none, right).mean() for least in np.unique(sure)]
    reached = np.where(sure < task.confidence.least, none, right).mean()
    assert reached == pytest.approx(max(scores), abs=1e-9)
    assert Ask.of_model(config).confidence == task.confidence
    # Of a model that is never very sure, too, most answers that are given are right.
    few = np.flatnonzero(chances < 0.6)
    task.calibrate([examples[x] for x in few], [said[x] for x in few], config)
    given = np.array([task.confidence.of(said[x]) >= task.confidence.least for x in few])
    assert 0.1 < given.mean() < 0.9
    assert right[few][given].mean() >= 0.5


def test_a_row_of_another_format_is_read_as_what_it_is(tmp_path: Path) -> None:
    """In one file: HotpotQA's format, then columns."""
    file = tmp_path / "both.jsonl"
    first = {
        "question": "Who?", "answer": "Ann", "supporting_facts": [["t", 0]],
        "context": [["t", ["Ann left."]]],
    }  # fmt: skip
    second = {"question": "What?", "answer": "rain", "context": "It was rain."}
    file.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    names = ("question", "context", "answer", "separator", "group")
    columns: dict[str, str | None] = dict.fromkeys(names)
    found = list(questions(rows([file], "utf-8"), columns, lambda _: None))
    assert [each.answers for each in found] == [["Ann"], ["rain"]]
    assert found[1].spans == [(7, 11)]


def test_a_question_without_an_answer_is_expected_to_have_none() -> None:
    gold = {"answers": [], "metric": "squad2", "support": []}
    expected = Ask(typed=True, supported=True).expected({"gold": json.dumps(gold)})
    assert expected == {"answer": "", "supporting_facts": []}
