"""The experiments about whole encoders and int8 weights."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments.framework import environment
from experiments.speed.contest import Contest, UnavailableError
from experiments.speed.encoders import steps
from experiments.speed.encoders.case import SHAPES, Case, Shape, chunked, padded, whole
from experiments.speed.encoders.peers import (
    BERT,
    HUGGING_FACE_BIGBIRD,
    HUGGING_FACE_LONGFORMER,
    PEERS,
    Encoder,
    adamw,
    longbird,
    named,
    ready,
)
from experiments.speed.encoders.report import report
from experiments.speed.encoders.steps import EncoderSettings
from experiments.speed.memory import Peak, measure_here
from experiments.speed.run import Result, run
from experiments.speed.targets import encoder_goals, int8_goals

TINY = Shape("tiny", layers=2, width=32, heads=2, inner=64)
BASE = SHAPES["base"]
NATIVE = "longbird native"
ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:\w[\w.-]*/)+")


def tiny(*lengths: int, layers: int = 2, **more) -> Case:
    return Case(TINY, lengths, layers, **more)


# Batches


def test_padded_has_a_mask_only_where_there_is_padding():
    assert set(padded(tiny(5, 5).documents())) == {"input_ids"}
    batch = padded(tiny(5, 3).documents())
    assert batch["input_ids"].shape == (2, 5)
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]


def test_chunks_are_the_same_tokens():
    long, short = tiny(1024, 600).documents()
    batch = chunked([long, short])
    assert batch["input_ids"].shape == (4, 512)
    assert (batch["input_ids"][:2].flatten() == long).all()
    assert (batch["input_ids"][2:].flatten()[:600] == short).all()
    assert batch["attention_mask"].sum(1).tolist() == [512, 512, 512, 88]


# Encoders


@pytest.mark.parametrize("encoder", [longbird("gather"), *PEERS], ids=lambda each: each.short)
def test_everybody_computes_what_it_claims(encoder):
    assert encoder.difference(tiny(1024)) < 1e-5


@pytest.mark.parametrize("encoder", [longbird("gather"), *PEERS], ids=lambda each: each.short)
def test_forward_and_step_run_on_a_padded_batch(encoder):
    case = tiny(1024, 700)
    model = encoder.model(case)
    inputs = encoder.inputs(case.documents())
    out = ready(model, inputs, None)()
    assert out.shape == (*inputs["input_ids"].shape, 32)
    assert not out.requires_grad
    assert not model.training
    before = [p.detach().clone() for p in model.parameters()]
    state = np.random.get_state()[1].copy()
    ready(model, inputs, adamw(model))()
    assert model.training
    changed = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert sum(changed) >= 2 * 16  # every tensor of both layers
    assert all(p.grad is None for p in model.parameters())  # they count in the next step's peak
    assert (state == np.random.get_state()[1]).all()


@pytest.mark.parametrize("encoder", [longbird("gather"), *PEERS], ids=lambda each: each.short)
def test_models_without_layers_run(encoder):
    [forward] = encoder.calls(tiny(1024, layers=0))
    assert forward().shape[-1] == 32
    [step] = encoder.calls(tiny(1024, layers=0, training=True))
    step()


def test_calls_of_several_cases_share_a_model():
    short, long = longbird("gather").calls(tiny(100), tiny(300))
    assert short().shape == (1, 100, 32)
    assert long().shape == (1, 300, 32)


def test_everybody_has_the_same_layers_and_no_dropout():
    counts: dict[str, int] = {}
    for encoder in (longbird("gather"), *PEERS):
        one, two = (encoder.model(tiny(1024, layers=layers)) for layers in (1, 2))
        counts[encoder.short] = two.num_parameters() - one.num_parameters()
        drops = [each.p for each in two.modules() if isinstance(each, torch.nn.Dropout)]
        assert set(drops) <= {0.0}
    width, inner = TINY.width, TINY.inner
    ours = 4 * (width * width + width) + 2 * width * inner + width + inner + 4 * width
    projections_of_globals = 3 * (width * width + width)
    assert counts.pop(HUGGING_FACE_LONGFORMER.short) == ours + projections_of_globals
    assert set(counts.values()) == {ours}


def test_weights_do_not_depend_on_what_ran_before():
    def weights() -> torch.Tensor:
        return torch.cat([x.flatten() for x in longbird("gather").model(tiny(64)).parameters()])

    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = weights()
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(2)
    assert torch.equal(first, weights())


def test_encoders_say_why_they_cannot():
    with pytest.raises(UnavailableError, match="full attention up to 704"):
        HUGGING_FACE_BIGBIRD.calls(tiny(704))
    with pytest.raises(UnavailableError, match="GB of memory"):
        HUGGING_FACE_BIGBIRD.calls(Case(BASE, (10**6,), 1))
    with pytest.raises(UnavailableError, match="GB of memory"):
        longbird().calls(Case(BASE, (10**7,), 12, training=True))


def test_a_missing_package_is_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UnavailableError, match="pip install transformers"):
        BERT.model(tiny(512))


def test_encoders_are_found_by_their_names():
    for encoder in PEERS:
        assert named(encoder.name) is encoder
    assert named("longbird gather").name == "longbird gather"


# The run


def broken(case: Case):
    raise RuntimeError("cannot open /somewhere/on/this/machine.so")


def wrong(case: Case):
    model = BERT.build(case)
    model.embeddings.LayerNorm.register_forward_hook(lambda module, given, out: out.flip(1))
    return model


def proud(case: Case):
    if not case.layers:
        raise ValueError("I need layers")
    return BERT.build(case)


def encoder(name: str, build, **more) -> Encoder:
    return Encoder(name=name, short=name, build=build, inputs=chunked, **more)


BROKEN, WRONG, PROUD = encoder("broken", broken), encoder("wrong", wrong), encoder("proud", proud)
HEAVY = encoder("heavy", BERT.build, growth=40)


def here(find, name: str, case: Case, small: Case) -> Peak:
    """Instead of a process of its own."""
    peers = {peer.name: peer for peer in (longbird("gather"), HEAVY, BROKEN)}
    if name not in peers:
        return Peak(name, case, skipped="no luck")
    return measure_here(peers.__getitem__, name, case, small, torch.get_num_threads())


@pytest.fixture(scope="module")
def small_run() -> Result:
    """A whole run with a tiny shape, its subprocesses replaced."""
    settings = EncoderSettings(
        shapes=(TINY, replace(TINY, name="tinier")),
        lengths=(256, 512, 1024),
        mine=longbird("gather"),
        peers=(BROKEN, WRONG, HEAVY, PROUD),
        repeats=3,
        budget=0.05,
        ragged=(512, 100),
        long_length=2000,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "peak", here)
        patch.setattr(steps, "REFERENCE", 512)
        patch.setattr(steps, "CHECKED", 512)
        return run("model", settings, steps.steps(settings))


@pytest.mark.slow  # a whole run
def test_run_measures_and_names_what_it_leaves_out(small_run):
    held = small_run.contest(tiny(512))
    assert set(held.samples) == {"longbird gather", "heavy", "proud"}  # all layers: none without
    assert len(held.samples["longbird gather"]) == len(held.samples["heavy"]) == 3
    assert held.skipped["broken"] == "RuntimeError: cannot open (a path)"
    assert "off by" in held.skipped["wrong"]
    long = small_run.contest(Case(replace(TINY, name="tinier"), (1024,), 1, training=True))
    assert set(whole(long)) == {"longbird gather"}
    assert "predicted to take" in long.skipped["heavy"]
    assert long.skipped["proud"] == "ValueError: I need layers"
    assert small_run.contest(tiny(512, 100, layers=1)) is not None
    assert {each.case.n for each in small_run.peaks} == {256, 1024, 2000}
    assert len(small_run.peaks) == 2 * 2 * 5 * 2 + 1  # shapes, lengths, peers, modes; the long
    assert small_run.peaks[-1].seconds > 0
    assert small_run.peaks[-1].case == Case(replace(TINY, name="tinier"), (2000,), 2)


def test_whole_encoders_are_computed_from_a_layer_and_none():
    samples = {"a": [3.0, 5.0], "a, no layers": [1.0, 1.0]}
    held = Contest(tiny(64, layers=1), samples, {}, {})
    assert whole(held) == {"a": [1.0 + 2 * 2.0, 1.0 + 2 * 4.0]}
    assert whole(replace(held, case=tiny(64), samples={"a": [3.0]})) == {"a": [3.0]}


@pytest.mark.slow  # a whole run
def test_report_has_everything(small_run, tmp_path):
    goals = encoder_goals(small_run)
    page, data, picture = report(small_run).write(small_run, goals, tmp_path / "new")
    assert page.name.startswith("model_")
    read, text = json.loads(data.read_text()), page.read_text()
    assert read["contests"][-1]["samples"] == small_run.contests[-1].samples
    assert read["contests"][-1]["case"]["lengths"] == [512, 100]
    for part in (
        "## tiny, forward, milliseconds of all 2 layers",
        "## tinier, training step",
        "| 512 | 2 of 2 |",
        "| 1,024 | 1 of 2 |",
        "612 of 1,024 places are tokens",
        "its process failed: RuntimeError: cannot open (a path)",
        "wrong, at 1,024, tiny, 1, forward",
        "no dropout",
        "One long sequence: forward through all 2 layers",
        f"| 2,000 | {small_run.peaks[-1].seconds:.1f} s |",
        picture.name,
    ):
        assert part in text, part
    assert not ABSOLUTE_PATH.search(data.read_text() + text)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_scales():
    full, quick = EncoderSettings(), EncoderSettings.quickly(repeats=5)
    assert {case.n for case in full.memory_cases} == {4096, 16384}
    assert quick.repeats == 5
    assert quick.long_length == 0
    assert quick.memory_cases == [Case(BASE, (16384,), 1)]
    assert [case for case in quick.cases if case.training] == [Case(BASE, (4096,), 1, True)]
    for settings in (full, quick):
        assert Case(BASE, (4096,), 12) in settings.cases
        assert Case(SHAPES["minilm"], (8192,), 1) in settings.cases
        assert Case(BASE, (4096, 1024, 512, 300), 1) in settings.cases
    assert "MiniLM, 6 of 6 layers, 1,000,000 tokens, forward, once" in [
        step.title for step in steps.steps(full)
    ]


# Goals, on invented numbers


def invented(**seconds: float) -> Result:
    """A run whose samples are given in seconds a layer of 4,096 tokens, forward."""
    known = {NATIVE: 0.4, HUGGING_FACE_BIGBIRD.name: 1.8, HUGGING_FACE_LONGFORMER.name: 0.87}
    known |= {BERT.name: 0.39, **seconds}
    settings = EncoderSettings()
    result = Result(
        "model",
        "python -m experiments model",
        "2030-01-02",
        {**environment.environment(), "load": 0.0, "load_after": 1.0},
        settings,
        {BERT.name: 1e-6, HUGGING_FACE_BIGBIRD.name: "not checked: it was Sunday"},
    )
    for case in settings.cases:
        layer = case.n / 4096 * (3 if case.training else 1)
        samples = {name: [0.1 + case.layers * each * layer] * 3 for name, each in known.items()}
        samples |= {f"{name}, no layers": [0.1] * 3 for name in known}
        result.contests.append(Contest(case, samples, {}, {}))
    result.contests[-1].skipped[BERT.name] = "no time"
    del result.contests[-1].samples[BERT.name]
    case = Case(BASE, (16384,), 1)
    result.peaks.extend([
        Peak(NATIVE, case, 10**8),
        Peak(HUGGING_FACE_BIGBIRD.name, case, 15 * 10**9),
        Peak(BERT.name, case, skipped="too little memory"),
        Peak(NATIVE, Case(SHAPES["minilm"], (10**6,), 6), 10**9, 0, 11 * 10**9, 250.0),
    ])  # fmt: skip
    return result


def test_goals_are_judged():
    rows = encoder_goals(invented())
    assert [(row.target, row.reached) for row in rows] == [
        ("4 x faster", True),
        ("2.2 x faster", False),
        ("not slower", False),
        ("3.5 x faster", True),
        ("2.6 x faster", False),
        ("not slower", False),
    ]
    assert rows[0].measured == "4.43 x: 4,900 against 21,700 ms"
    what = "whole BigBird-base encoder, 4,096 tokens, "
    assert rows[0].what == what + "forward (12 of 12 layers run)"
    assert rows[3].what == what + "training step (1 of 12 layers run)"


def test_what_was_not_measured_is_not_judged():
    run = invented()
    for contests in (
        [held for held in run.contests if held.case.n != 4096],
        [held for held in run.contests if held.case.shape != BASE],
    ):
        rows = encoder_goals(replace(run, contests=contests))
        assert {(row.measured, row.reached) for row in rows} == {("not measured", None)}
    del run.contest(Case(BASE, (4096,), 12)).samples[BERT.name]
    assert [row.reached for row in encoder_goals(run)[:3]] == [True, False, None]


def test_report_of_a_full_run(tmp_path):
    run = invented()
    text = report(run).write(run, encoder_goals(run), tmp_path)[0].read_text()
    for part in (
        "| 2,048 | 1 of 12 | 2,500 (2,500 to 2,500) | 10,900 (4.36 x) |",
        "| 4,096 | 12 of 12 | 4,900 (4,900 to 4,900) | 21,700 (4.43 x) |",
        "| 16,384 | BigBird-base | 1 | forward | 100 | 15,000 (150 x) | - |",
        "too little memory",
        "no time",
        "| 1,000,000 | 250.0 s | 4,000 | 11.0 GB |",
        "it was Sunday",
        "5,932 of 16,384 places",
    ):
        assert part in text, part


# Fresh processes and the command


@pytest.mark.slow  # starts processes, each of which imports transformers
def test_peaks_are_taken_in_processes_of_their_own():
    from experiments.speed.memory import peak

    case, small = tiny(2048), tiny(1024)
    forward = peak(named, "longbird gather", case, small)
    assert 0 < forward.extra_bytes < forward.peak_bytes
    assert forward.seconds > 0
    training = (replace(x, training=True) for x in (case, small))
    assert forward.extra_bytes < peak(named, "longbird gather", *training).extra_bytes < 10**9
    failed = peak(named, "longbird nonsense", case, small)
    assert "its process failed" in failed.skipped
    assert failed.extra_bytes is None


@pytest.mark.slow  # measures
def test_command_writes_its_results(cli, monkeypatch, tmp_path):
    asked: list[EncoderSettings] = []

    def fake(name, settings, steps, tell):
        asked.append(settings)
        return invented()

    monkeypatch.setattr("experiments.speed.run.run", fake)
    answer = cli("encoders", "--quick", "--out", str(tmp_path))
    assert answer.exit_code == 0, answer.output
    slug = environment.cpu_slug(environment.processor_name())
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"model_{slug}_2030-01-02.{end}" for end in ("json", "md", "png")}
    [settings] = asked
    assert (settings.layers, settings.long_length, settings.budget) == (1, 0, 15)
    assert settings.quick


# Int8 weights


def test_int8_beside_its_own_float32(tmp_path):
    settings = EncoderSettings.rounded("native", shapes=(TINY,), lengths=(64,), repeats=3)
    result = run("int8", settings, steps.forward_steps(settings))
    assert [held.case.lengths for held in result.contests] == [(64,)]
    assert {"longbird native int8", NATIVE} <= set(result.contests[0].samples)
    assert named("longbird native int8").model(tiny(64)).quantized
    assert not named(NATIVE).model(tiny(64)).quantized
    goals = int8_goals(result)
    assert [goal.measured for goal in goals] == [
        int8_goals(replace(result, contests=[]))[0].measured
    ]
    written = report(result).write(result, goals, tmp_path)
    assert "longbird native int8" in written[0].read_text()


def test_int8_weights_are_not_trained():
    with pytest.raises(UnavailableError, match="inference alone"):
        named("longbird native int8").calls(tiny(64, training=True))
