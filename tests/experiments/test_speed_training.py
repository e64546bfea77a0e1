"""The experiment about training: contestants in separate processes, and the report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import tokenizers
import torch
import transformers

from experiments.framework.environment import cpu_slug, environment, processor_name
from experiments.sources import licences
from experiments.speed.contest import Contest, UnavailableError
from experiments.speed.encoders.case import SHAPES, Shape
from experiments.speed.memory import Peak
from experiments.speed.run import Result
from experiments.speed.training import case as cases
from experiments.speed.training import peers, session, steps
from experiments.speed.training.case import Case, documents, histogram
from experiments.speed.training.peers import BERT, ONE_BY_ONE, PEERS, longbird, named
from experiments.speed.training.report import report
from experiments.speed.training.session import Session, Turn
from experiments.speed.training.steps import TrainingSettings, contestants
from experiments.speed.training.targets import training_goals
from longbird.files.sources import minilm
from longbird.files.sources.packages import MODEL_FILES

TINY = Shape("tiny", layers=2, width=32, heads=2, inner=64)
NATIVE = "longbird native"
EVERYBODY = (longbird("gather"), *PEERS, *ONE_BY_ONE.values())
LENGTHS = (3, 120, 130, 180, 260, 300, 700, 900, 1500)


@pytest.fixture(autouse=True)
def corpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A cache with a small tokenizer and a few documents, of `LENGTHS` tokens."""
    monkeypatch.setenv("LONGBIRD_CACHE", str(tmp_path))
    cases._every.cache_clear()
    folder = tmp_path / minilm.NAME
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sun", "rain"]
    model = tokenizers.models.WordLevel({x: i for i, x in enumerate(words)}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    for name in MODEL_FILES:
        (folder / name).touch()
    (folder / "special_tokens_map.json").write_text("{}")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    file = tmp_path / licences.NAME / licences.FILE
    file.parent.mkdir()
    rows = [{"text": " ".join(["sun"] * n), "label": f"{n % 2}"} for n in reversed(LENGTHS)]
    file.write_text("\n".join(map(json.dumps, rows)))
    yield
    cases._every.cache_clear()


# Documents


def test_ragged_documents_are_spread_over_all_lengths_and_cut():
    every = documents(Case(TINY, 800, 8, 4, 1, ragged=True))
    assert [each.tokens for each in every] == [120, 130, 180, 260, 300, 700, 800, 800]
    assert [each.tokens for each in documents(Case(TINY, 800, 2, 4, 1, ragged=True))] == [180, 800]


def test_pieces_have_exactly_the_length():
    pieces = documents(Case(TINY, 60, 4, 4, 1))
    assert [each.tokens for each in pieces] == [60] * 4
    assert cases.lengths_of([each.text for each in pieces]) >= [60] * 4
    with pytest.raises(ValueError, match="not enough text for 1 x 100,000 tokens"):
        documents(Case(TINY, 100_000, 1, 1, 1))


def test_histogram_counts_every_document():
    assert (
        histogram([1, 64, 255, 4096]) == "1 of 1 to 3 tokens, 2 of 64 to 255, 1 of 4,096 to 16,383"
    )


# Contestants


@pytest.mark.parametrize("peer", EVERYBODY, ids=lambda each: each.short)
def test_everybody_sees_every_token_once_in_an_epoch(peer, tmp_path):
    case = Case(TINY, 1024, 8, 4, 1, ragged=True)
    texts = documents(case)
    trainer = peer.trainer(peer.encoder, case, texts, tmp_path)
    assert type(trainer.optimizer or trainer.create_optimizer()).__name__ in (
        "AdamW",
        "AcceleratedOptimizer",
    )
    assert trainer.optimizer.defaults["fused"]
    config = trainer.model.config
    assert (config.num_hidden_layers, config.hidden_size, config.vocab_size) == (1, 32, 7)
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.1
    batches = list(trainer.get_train_dataloader())
    # Documents are all suns, whose number is 5, and the padding is not.
    assert sum(int((batch["input_ids"] == 5).sum()) for batch in batches) == sum(
        each.tokens for each in texts
    )
    ids = [batch["input_ids"] for batch in batches]
    if peer in ONE_BY_ONE.values():
        assert all(len(x) == 1 for x in ids)
        assert trainer.args.gradient_accumulation_steps == 4
    elif peer is BERT:
        assert max(x.shape[1] for x in ids) == 512
    elif peer in PEERS:
        assert [len(x) for x in ids] == [4, 4]
    else:
        assert len(ids) >= case.steps
    if peer.encoder is peers.HUGGING_FACE_BIGBIRD.encoder:
        assert all(x.shape[1] >= 768 and x.shape[1] % 64 == 0 for x in ids)


class Wire:
    """A channel that asks for some epochs, and keeps what comes back."""

    def __init__(self, epochs: int) -> None:
        self.left, self.sent = epochs, []

    def receive(self) -> str:
        if not self.left:
            raise EOFError
        self.left -= 1
        return "go"

    def send(self, value: object) -> None:
        self.sent.append(value)


@pytest.mark.slow  # trains
@pytest.mark.parametrize(
    "peer", [longbird("gather"), ONE_BY_ONE["Hugging Face BigBird"]], ids=["longbird", "bigbird"]
)
def test_an_epoch_is_measured_when_it_is_asked_for(peer, tmp_path):
    case = Case(TINY, 1024, 4, 2, 1, ragged=True)
    trainer = peer.trainer(peer.encoder, case, documents(case), tmp_path)
    before = [x.detach().clone() for x in trainer.model.parameters()]
    wire = Wire(2)
    trainer.add_callback(session._Turns(trainer, wire))
    with pytest.raises(EOFError):
        trainer.train()
    assert len(wire.sent) == 2
    for turn in wire.sent:
        assert 0 < turn.waited < turn.seconds
        assert turn.steps >= 2
        assert turn.peak_bytes >= turn.before_bytes > 0
    after = list(trainer.model.parameters())
    assert sum(not torch.equal(a, b) for a, b in zip(before, after, strict=True)) > 10


def test_bigbird_that_went_dense_is_an_error():
    model = transformers.BigBirdModel(
        transformers.BigBirdConfig(
            vocab_size=7, hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
            intermediate_size=8,
        )
    )  # fmt: skip
    watch = peers.StaysSparse()
    holder = torch.nn.Module()
    holder.bert = model
    watch.on_epoch_end(None, None, None, model=holder)
    model(torch.ones(1, 64, dtype=torch.long))
    with pytest.raises(RuntimeError, match="switched to full attention"):
        watch.on_epoch_end(None, None, None, model=holder)


def test_contestants_are_found_by_their_names():
    for peer in (*PEERS, *ONE_BY_ONE.values()):
        assert named(peer.name) is peer
    assert named("longbird gather").name == "longbird gather"


def test_what_does_not_fit_is_refused_before_a_process_starts():
    with pytest.raises(UnavailableError, match="GB of memory"):
        peers.HUGGING_FACE_BIGBIRD.calls(Case(SHAPES["base"], 10**6, 1, 1, 1))


def nonsense(folder: Path):
    raise UnavailableError("cannot do this")


@pytest.mark.slow
def test_processes_take_turns_and_say_why_they_fail():
    case = Case(TINY, 64, 2, 2, 1)
    [run] = longbird("gather").calls(case)
    with run:
        run()
        run()
    assert [turn.steps for turn in run.turns] == [1, 1]
    with Session(transformers.Trainer, "no model") as failing, pytest.raises(RuntimeError):
        failing()
    with Session(int) as failing:
        failing._process.kill()
        with pytest.raises(RuntimeError, match="ended by signal 9"):
            failing()


# The run


def test_cases_say_how_many_layers_run():
    listed = [str(each) for each in TrainingSettings().cases]
    assert listed == [
        "MiniLM, 6 of 6 layers, 4 x 1,024 tokens",
        "MiniLM, 6 of 6 layers, 1 x 4,096 tokens",
        "MiniLM, 1 of 6 layers, 1 x 16,384 tokens",
        "MiniLM, 1 of 6 layers, 12 real documents of up to 4,096 tokens",
        "BigBird-base, 2 of 12 layers, 4 x 1,024 tokens",
        "BigBird-base, 2 of 12 layers, 1 x 4,096 tokens",
        "BigBird-base, 1 of 12 layers, 1 x 16,384 tokens",
        "BigBird-base, 1 of 12 layers, 12 real documents of up to 4,096 tokens",
    ]
    quick = TrainingSettings.quickly(ragged=0).cases
    assert [str(each) for each in quick] == ["MiniLM, 1 of 6 layers, 1 x 4,096 tokens"]


class Taken:
    """A session that took no time."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.closed = self.ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True

    def __call__(self):
        self.turns.append(Turn(2.0, 0.02, 1, 100, 1_000_100))


def test_a_comparison_keeps_shares_and_peaks(monkeypatch):
    made: list[Taken] = []

    def calls(peer, *given):
        if peer is BERT:
            raise UnavailableError("no chunks today")
        made.append(Taken())
        return [made[-1]]

    monkeypatch.setattr(peers.Learner, "calls", calls)
    case = Case(TINY, 64, 2, 2, 1)
    settings = TrainingSettings(mine=longbird("gather"), shapes=(TINY,), repeats=2)
    result = Result("train", "", "2030-01-02", environment(), settings)
    steps._compare(case, result)
    [held] = result.contests
    assert held.skipped == {BERT.name: "no chunks today"}
    assert set(held.samples) == {x.name for x in settings.everybody} - {BERT.name}
    assert held.facts["loading, longbird gather"] == [0.01, 0.01]
    assert {each.extra_bytes for each in result.peaks} == {1_000_000}
    assert len(result.peaks) == 3
    assert all(each.closed for each in made)


def test_a_process_that_dies_in_a_round_is_left_out(monkeypatch):
    class Dies(Taken):
        def __call__(self):
            super().__call__()
            if len(self.turns) > 3:  # it is warm
                self.ended = True
                raise RuntimeError("its process was ended by signal 9")

    monkeypatch.setattr(
        peers.Learner, "calls", lambda peer, *given: [Dies() if peer is BERT else Taken()]
    )
    settings = TrainingSettings(mine=longbird("gather"), shapes=(TINY,), repeats=2)
    result = Result("train", "", "2030-01-02", environment(), settings)
    steps._compare(Case(TINY, 64, 2, 2, 1), result)
    [held] = result.contests
    assert "process ended" in held.skipped[BERT.name]
    assert len(held.samples) == 3


def test_padded_batches_that_take_too_long_are_left_out():
    settings = TrainingSettings()
    result = Result("train", "", "2030-01-02", {}, settings)
    minilm_shape = SHAPES["minilm"]
    bigbird = peers.HUGGING_FACE_BIGBIRD
    reference = Case(minilm_shape, 4096, 1, 1, 6)
    ragged = Case(minilm_shape, 4096, 16, 8, 1, ragged=True)
    result.contests.append(Contest(reference, {bigbird.name: [24.0]}, {}, {}))
    with pytest.raises(UnavailableError, match="take 64 s, the limit is 60 s"):
        steps._refuse_if_padding_is_too_slow(bigbird, ragged, result)
    careful = ONE_BY_ONE[bigbird.name]
    steps._refuse_if_padding_is_too_slow(careful, ragged, result)


# What is said


def invented() -> Result:
    """A run that measured something for everybody."""
    where = {**environment(), "load": 0.0, "load_after": 1.0}
    settings = TrainingSettings(shapes=(SHAPES["minilm"],), lengths=(4096,))
    result = Result("train", "python -m experiments train", "2030-01-02", where, settings)
    seconds = {NATIVE: 2.0, PEERS[0].name: 8.0, PEERS[1].name: 4.0, BERT.name: 2.5}
    for case in settings.cases:
        everybody = [x.name for x in contestants(settings, case)]
        samples = {name: [seconds.get(name, 9.0)] * 3 for name in everybody}
        facts = {f"loading, {name}": [0.01, 0.02, 0.05] for name in everybody}
        held = Contest(case, samples, {}, {}, {"lengths": [100, 4096], **facts})
        result.contests.append(held)
        result.peaks.extend(Peak(name, case, 10**6) for name in everybody)
    return result


def test_goals_are_judged():
    verdicts = {
        (x.what.split(", ")[-1][:6], x.peer): x.reached for x in training_goals(invented())
    }
    assert len(verdicts) == 4 + 6
    assert verdicts.pop(("1 x 4,", PEERS[0].name)) is True
    assert verdicts.pop(("1 x 4,", PEERS[1].name)) is False
    assert verdicts.pop(("12 rea", PEERS[0].name)) is False
    assert verdicts.pop(("12 rea", PEERS[1].name)) is False
    assert verdicts.pop(("12 rea", ONE_BY_ONE[PEERS[0].name].name)) is False
    assert verdicts.pop(("12 rea", ONE_BY_ONE[PEERS[1].name].name)) is False
    assert set(verdicts.values()) == {True}


def test_report_has_speeds_shares_and_lengths():
    result = invented()
    page = report(result).markdown(result, training_goals(result), "plot.png")
    assert "2,098 (2,098 to 2,098) | 524.5 (4 x) | 1,049 (2 x)" in page
    assert "2.00%" in page
    assert "1 of 64 to 255 tokens, 1 of 4,096 to 16,383" in page
    assert "| MiniLM | 1 x 4,096 tokens | 6 of 6 |" in page
    assert "DO NOT QUOTE" not in page


def test_command_writes_its_results(cli, monkeypatch, tmp_path):
    asked: list[TrainingSettings] = []

    def fake(name, settings, steps, tell):
        asked.append(settings)
        return invented()

    monkeypatch.setattr("experiments.speed.run.run", fake)
    answer = cli("training", "--out", str(tmp_path / "out"))
    assert answer.exit_code == 0, answer.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    slug = cpu_slug(processor_name())
    assert names == {f"train_{slug}_2030-01-02.{end}" for end in ("json", "md", "png")}
    [settings] = asked
    assert not settings.quick
