from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from longbird.bench import environment, model_report
from longbird.bench import model as bench
from longbird.bench.contest import UnavailableError
from longbird.bench.encoders import (
    BERT,
    HUGGING_FACE_BIGBIRD,
    HUGGING_FACE_LONGFORMER,
    PEERS,
    SHAPES,
    Encoder,
    Shape,
    adamw,
    chunked,
    difference,
    documents,
    longbird,
    padded,
    ready,
)
from longbird.bench.goals import model_goals
from longbird.bench.model import Pass, Result, Series, Settings
from longbird.cli.app import app

TINY = Shape("tiny", layers=2, width=32, heads=2, inner=64)
ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:\w[\w.-]*/)+")


# Batches


def test_padded_has_a_mask_only_where_there_is_padding():
    assert set(padded(documents([5, 5]))) == {"input_ids"}
    batch = padded(documents([5, 3]))
    assert batch["input_ids"].shape == (2, 5)
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]


def test_chunks_are_the_same_tokens():
    long, short = documents([1024, 600])
    batch = chunked([long, short])
    assert batch["input_ids"].shape == (4, 512)
    assert (batch["input_ids"][:2].flatten() == long).all()
    assert (batch["input_ids"][2:].flatten()[:600] == short).all()
    assert batch["attention_mask"].sum(1).tolist() == [512, 512, 512, 88]


# Encoders


@pytest.mark.parametrize("encoder", [longbird("gather"), *PEERS], ids=lambda each: each.short)
def test_everybody_computes_what_it_claims(encoder):
    assert difference(encoder, TINY, 1024) < 1e-5


@pytest.mark.parametrize("encoder", [longbird("gather"), *PEERS], ids=lambda each: each.short)
def test_forward_and_step_run_on_a_padded_batch(encoder):
    model = encoder.model(TINY, 1024)
    inputs = encoder.inputs(documents([1024, 700]))
    out = ready(model, inputs, None)()
    assert out.shape == (*inputs["input_ids"].shape, 32) and not out.requires_grad
    assert not model.training
    before = [p.detach().clone() for p in model.parameters()]
    state = np.random.get_state()[1].copy()
    ready(model, inputs, adamw(model))()
    assert model.training
    changed = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
    assert sum(changed) >= 2 * 16  # every tensor of both layers
    assert (state == np.random.get_state()[1]).all()


@pytest.mark.parametrize("encoder", [longbird("gather"), *PEERS], ids=lambda each: each.short)
def test_models_without_layers_run(encoder):
    model = encoder.model(replace(TINY, layers=0), 1024)
    inputs = encoder.inputs(documents([1024]))
    assert ready(model, inputs, None)().shape[-1] == 32
    ready(model, inputs, adamw(model))()


def test_everybody_has_the_same_layers_and_no_dropout():
    counts: dict[str, int] = {}
    for encoder in (longbird("gather"), *PEERS):
        one, two = (encoder.model(replace(TINY, layers=layers), 1024) for layers in (1, 2))
        counts[encoder.short] = two.num_parameters() - one.num_parameters()
        drops = [each.p for each in two.modules() if isinstance(each, torch.nn.Dropout)]
        assert set(drops) <= {0.0}
    width, inner = TINY.width, TINY.inner
    ours = 4 * (width * width + width) + 2 * width * inner + width + inner + 4 * width
    projections_of_globals = 3 * (width * width + width)
    assert counts.pop(HUGGING_FACE_LONGFORMER.short) == ours + projections_of_globals
    assert set(counts.values()) == {ours}


def test_weights_do_not_depend_on_what_ran_before():
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = longbird("gather").model(TINY, 64).layers[0].attention.query.weight
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(2)
    assert torch.equal(first, longbird("gather").model(TINY, 64).layers[0].attention.query.weight)


def test_encoders_say_why_they_cannot():
    with pytest.raises(UnavailableError, match="full attention up to 704"):
        HUGGING_FACE_BIGBIRD.model(TINY, 704)
    base = SHAPES["base"]
    with pytest.raises(UnavailableError, match="GB of memory"):
        HUGGING_FACE_BIGBIRD.refuse_if_impossible(base, [10**6], training=False)
    with pytest.raises(UnavailableError, match="GB of memory"):
        longbird().refuse_if_impossible(base, [10**7], training=True)
    longbird().refuse_if_impossible(TINY, [10**4], training=True)


def test_a_missing_package_is_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UnavailableError, match="pip install transformers"):
        BERT.model(TINY, 512)


# The run


def broken(shape: Shape, n: int):
    raise RuntimeError("cannot open /somewhere/on/this/machine.so")


def wrong(shape: Shape, n: int):
    model = BERT.build(shape, n)
    model.embeddings.LayerNorm.register_forward_hook(lambda module, given, out: out.flip(1))
    return model


BROKEN = Encoder("broken", "broken", broken)
WRONG = Encoder("wrong", "wrong", wrong, inputs=chunked)
HEAVY = Encoder("heavy", "heavy", BERT.build, inputs=chunked, growth=40)


def in_this_process(module: str, request: dict) -> dict:
    assert module == "longbird.bench.model"
    for peer in (longbird("gather"), HEAVY):
        if peer.name == request["peer"]:
            shape = Shape(**request["shape"])
            return bench.measure_here(peer, shape, request["n"], request["modes"])
    raise UnavailableError("its process failed: no luck")


@pytest.fixture(scope="module")
def small_run() -> Result:
    """A whole run with a tiny shape, its subprocesses replaced."""
    settings = Settings(
        shapes=(TINY, replace(TINY, name="tinier")),
        lengths=(256, 512, 1024),
        implementation="gather",
        peers=(BROKEN, WRONG, HEAVY),
        repeats=3,
        budget=0.1,
        limit=20.0,
        reference_length=512,
        ragged=(512, 100),
        long_length=2000,
    )
    told: list[str] = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(bench, "ask_fresh_process", in_this_process)
        result = bench.run(settings, told.append)
    assert len(told) == bench.stages(settings)
    return result


@pytest.mark.slow  # a whole run
def test_run_measures_and_names_what_it_leaves_out(small_run):
    series = small_run.at("tiny", 512, training=False)
    assert series is not None and series.layers == 2 and not series.empty
    assert len(series.samples["longbird gather"]) == len(series.samples["heavy"]) == 3
    assert series.skipped["broken"] == "RuntimeError: cannot open (a path)"
    assert "off by" in series.skipped["wrong"]
    long = small_run.at("tinier", 1024, training=True)
    assert long is not None and long.layers == 1
    assert set(long.samples) == set(long.empty) == {"longbird gather"}
    assert "predicted to take" in long.skipped["heavy"]
    assert small_run.ragged.lengths == (512, 100)
    assert {each.n for each in small_run.memory} == {256, 1024}
    assert len(small_run.memory) == 2 * 2 * 4 * 2  # shapes, lengths, encoders, modes
    assert small_run.long is not None and small_run.long.seconds > 0
    assert small_run.long.shape == replace(TINY, name="tinier")


def test_whole_encoders_are_computed_from_a_layer_and_none():
    series = Series(
        TINY, 1, (64,), False, samples={"a": [3.0, 5.0]}, empty={"a": [1.0, 1.0]}, skipped={}
    )
    assert series.whole == {"a": [1.0 + 2 * 2.0, 1.0 + 2 * 4.0]}
    assert replace(series, layers=2, empty={}).whole == series.samples


def test_who_fails_without_layers_is_left_out():
    def build(shape: Shape, n: int):
        if not shape.layers:
            raise ValueError("I need layers")
        return BERT.build(shape, n)

    peer = Encoder("proud", "proud", build, inputs=chunked)
    settings = Settings(shapes=(TINY,), implementation="gather", peers=(peer,), repeats=1)
    mine = longbird("gather")
    blank = Series(TINY, 1, (64,), False, {}, {}, {})
    verified = {mine.name: 0.0, peer.name: "not checked"}
    series = bench._measured(blank, settings, mine, verified, [])
    assert series.skipped == {"proud": "ValueError: I need layers"}
    assert set(series.samples) == set(series.empty) == set(series.whole) == {mine.name}


@pytest.mark.slow  # a whole run
def test_report_has_everything(small_run, tmp_path):
    paths = model_report.write(small_run, tmp_path / "new")
    assert [path.suffix for path in paths] == [".json", ".md", ".png"]
    assert all(path.name.startswith("model_") for path in paths)
    data, text = json.loads(paths[0].read_text()), paths[1].read_text()
    assert data["series"][-1]["samples"] == small_run.series[-1].samples
    assert data["ragged"]["lengths"] == [512, 100]
    for part in (
        "## tiny, forward, milliseconds of all 2 layers",
        "## tinier, training step",
        "612 of 1,024 places are tokens",
        "broken, all of tiny forward of 256, tiny training step of 256, ",
        ": its process failed: no luck",
        "no dropout",
        "| 2,000 |",
        paths[2].name,
    ):
        assert part in text, part
    assert not ABSOLUTE_PATH.search(paths[0].read_text() + text)
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_settings_quick_are_short():
    quick = Settings().quick()
    assert max(quick.lengths) <= 1024 and quick.repeats == 3 and quick.memory_lengths == [1024]
    assert Settings().memory_lengths == [4096, 16384]


# Goals, on invented numbers


def invented(**seconds: float) -> Result:
    """A run whose samples are given in seconds a layer of 4,096 tokens, forward."""
    known = {
        "longbird native": 0.4,
        HUGGING_FACE_BIGBIRD.name: 1.8,
        HUGGING_FACE_LONGFORMER.name: 0.87,
        BERT.name: 0.39,
    } | seconds
    settings = Settings()
    series = [
        Series(
            shape=shape,
            layers=(layers := settings.layers_of(shape, n, training=training)),
            lengths=(n,),
            training=training,
            samples={
                name: [0.1 + layers * each * n / 4096 * (3 if training else 1)] * 3
                for name, each in known.items()
            },
            empty={name: [0.1] * 3 for name in known},
            skipped={},
        )
        for shape in settings.shapes
        for training in (False, True)
        for n in settings.lengths
    ]
    return Result(
        settings=settings,
        environment={**environment.environment(), "load_after": 0.1},
        command="longbird bench model",
        date="2030-01-02",
        longbird="longbird native",
        verified={BERT.name: 1e-6, HUGGING_FACE_BIGBIRD.name: "not checked: it was Sunday"},
        series=series,
        ragged=replace(series[0], lengths=settings.ragged, skipped={BERT.name: "no time"}),
        memory=[
            Pass("longbird native", SHAPES["base"], 16384, False, 10**8, 10**9, 1.0),
            Pass(HUGGING_FACE_BIGBIRD.name, SHAPES["base"], 16384, False, 15 * 10**9, 10**9, 1.0),
            Pass(BERT.name, SHAPES["base"], 16384, False, skipped="too little memory"),
        ],
        long=Pass("longbird native", SHAPES["minilm"], 10**6, False, 10**9, 11 * 10**9, 250.0),
    )


def test_goals_are_the_designs_rows():
    rows = model_goals(invented())
    assert [row.target for row in rows] == ["4 x faster", "2 x faster", "not slower"]
    assert [row.reached for row in rows] == [True, True, False]
    assert rows[0].measured == "4.43 x (4.43 to 4.43)"
    assert rows[0].what == "whole BigBird-base encoder (12 layers), 4,096 tokens, forward"


def test_goals_are_judged_for_the_designs_shape_and_length_alone():
    run = invented()
    for changes in (
        {"shapes": (SHAPES["minilm"],)},
        {"reference_length": 1024},
        {"implementation": "gather"},
    ):
        rows = model_goals(replace(run, settings=replace(run.settings, **changes)))
        assert {row.reached for row in rows} == {None}
    missing = replace(run, series=[each for each in run.series if each.n != 4096])
    assert {row.measured for row in model_goals(missing)} == {"this length was not measured"}


def test_goals_name_why_a_peer_is_not_there():
    run = invented()
    series = run.at("BigBird-base", 4096, training=False)
    series.skipped[BERT.name] = "not installed"
    assert model_goals(run)[2].measured == "not installed"
    assert model_goals(run)[2].reached is None


def test_report_of_a_full_run(tmp_path):
    text = model_report.write(invented(), tmp_path)[1].read_text()
    for part in (
        "| 2,048 | 1 | 2,500 (2,500 to 2,500) | 10,900 (4.4 x) |",
        "| 4,096 | 12 | 4,900 (4,900 to 4,900) | 21,700 (4.4 x) |",
        "| 16,384 | BigBird-base | 12 | forward | 100 | 15,000 (150 x) | - | - |",
        "too little memory",
        "| 1,000,000 | 250.0 s | 4,000 | 11.0 GB |",
        "it was Sunday",
        "5,932 of 16,384 places",
    ):
        assert part in text, part


# Fresh processes and the command


@pytest.mark.slow  # two processes
def test_passes_run_in_processes_of_their_own():
    forward, step = bench._passes(longbird("gather"), TINY, 2048, (False, True))
    assert 0 < forward.extra_bytes < forward.peak_bytes
    assert forward.extra_bytes < step.extra_bytes < 10**9
    [failed] = bench._passes(longbird("nonsense"), TINY, 64, (False,))
    assert "its process failed" in failed.skipped and failed.seconds is None


def test_command_writes_its_results(monkeypatch, tmp_path):
    asked: list[Settings] = []

    def run(settings: Settings, tell: object) -> Result:
        asked.append(settings)
        return invented()

    monkeypatch.setattr(bench, "run", run)
    options = "--impl gather --shape minilm --lengths 1024,2048 --layers 3 --long-length 0"
    line = ["bench", "model", *options.split(), "--out", str(tmp_path)]
    answer = CliRunner().invoke(app, line)
    assert answer.exit_code == 0, answer.output
    slug = environment.cpu_slug(environment.cpu_model())
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"model_{slug}_2030-01-02.{end}" for end in ("json", "md", "png")}
    assert asked == [
        Settings(
            shapes=(SHAPES["minilm"],),
            lengths=(1024, 2048),
            layers=3,
            implementation="gather",
            long_length=0,
        )
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["--lengths", "512,abc"], "abc"),
        (["--shape", "base,huge"], "some of base, minilm"),
        (["--impl", "magic"], "no such implementation"),
    ],
)
def test_command_refuses_what_makes_no_sense(line, words):
    answer = CliRunner().invoke(app, ["bench", "model", *line])
    assert answer.exit_code != 0
    assert words in str(answer.exception)
