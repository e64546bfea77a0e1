"""The experiment about attention: contestants, measurements, the report and its targets."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import longbird as lb
from experiments.framework import environment
from experiments.speed.attention import peers, steps
from experiments.speed.attention.case import Case
from experiments.speed.attention.peers import (
    DENSE,
    FLEX,
    HUGGING_FACE_BIGBIRD,
    HUGGING_FACE_LONGFORMER,
    AttentionPeer,
    flex_block_mask,
    longbird,
    named,
)
from experiments.speed.attention.report import crossover, rates, report
from experiments.speed.attention.steps import CREATE_BLOCK_MASK, SGEMM, AttentionSettings
from experiments.speed.contest import Contest, UnavailableError
from experiments.speed.memory import Peak
from experiments.speed.run import Result, run
from experiments.speed.targets import attention_goals

TINY = Case(200, heads=2, head_dim=16, block=16)
NATIVE = "longbird native"
ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:\w[\w.-]*/)+")


# Peers


@pytest.mark.parametrize("pattern", ["bigbird", "full", "causal"])
def test_longbird_and_dense_compute_what_they_claim(pattern):
    case = replace(TINY, pattern=pattern)
    assert longbird("gather").difference(case) < 1e-5
    assert DENSE.difference(case) < 1e-5


@pytest.mark.filterwarnings("ignore")  # of transformers, while it is imported
@pytest.mark.parametrize("n", [208, 1024])
def test_hugging_face_bigbird_computes_what_it_claims(n):
    before = np.random.get_state()[1].copy()
    assert HUGGING_FACE_BIGBIRD.difference(replace(TINY, n=n)) < 1e-5
    assert (before == np.random.get_state()[1]).all()


@pytest.mark.filterwarnings("ignore")  # of transformers, while it is imported
def test_hugging_face_longformer_computes_what_it_claims():
    assert HUGGING_FACE_LONGFORMER.difference(replace(TINY, n=1024, heads=1)) < 1e-5


@pytest.mark.slow  # compiles
@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_flex_computes_what_it_claims():
    try:
        assert FLEX.difference(replace(TINY, n=256)) < 1e-5
    except Exception as error:
        if "compiler" not in str(error).lower():
            raise
        pytest.skip(f"FlexAttention needs a compiler at run time: {error}")


def test_flex_block_mask_is_the_layout():
    layout = TINY.graph.layout(256, heads=2)
    blocks = flex_block_mask(layout).to_dense()[0].numpy().astype(bool)
    expected = TINY.graph.mask(256, heads=2)[:, ::16, ::16]
    assert (blocks == expected).all()
    with pytest.raises(UnavailableError, match="not every block"):
        flex_block_mask(lb.Window(3).layout(256, heads=2))


@pytest.mark.filterwarnings("ignore")  # of transformers, while it is imported
@pytest.mark.parametrize(
    ("peer", "case", "reason"),
    [
        (HUGGING_FACE_BIGBIRD, replace(TINY, n=176), "full attention up to 176"),
        (HUGGING_FACE_BIGBIRD, TINY, "multiples of 16"),
        (HUGGING_FACE_BIGBIRD, replace(TINY, n=256, window=5), "always 3"),
        (HUGGING_FACE_BIGBIRD, Case(10**6), "GB of memory"),
        (HUGGING_FACE_LONGFORMER, replace(TINY, n=500), "multiples of its window"),
        (FLEX, replace(TINY, n=250), "not every block"),
        (FLEX, replace(TINY, n=64, backward=True), "no backward"),
    ],
)
def test_peers_say_why_they_cannot(peer, case, reason):
    def no_inputs(self):
        return (torch.empty(0),) * 3

    with pytest.MonkeyPatch.context() as patch, pytest.raises(UnavailableError, match=reason):
        patch.setattr(Case, "inputs", no_inputs)
        peer.calls(case)


def test_a_missing_package_is_a_reason(monkeypatch):
    def absent(name: str):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("experiments.speed.hugging_face.importlib.import_module", absent)
    with pytest.raises(UnavailableError, match="pip install transformers"):
        HUGGING_FACE_BIGBIRD.build(replace(TINY, n=1024))


def test_calls_return_the_output_and_gradients():
    [forward] = longbird("gather").calls(TINY)
    out = forward()
    assert out.shape == (1, 2, 200, 16)
    assert not out.requires_grad
    [both] = longbird("gather").calls(replace(TINY, backward=True))
    assert [x.shape for x in both()] == [out.shape] * 4


def test_peers_are_found_by_their_names():
    for peer in peers.PEERS:
        assert named(peer.name) is peer
    assert named("longbird gather").name == "longbird gather"


# The run


def broken(case: Case):
    def fail(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("cannot open /somewhere/on/this/machine.so")

    return fail


def peer(name: str, build, **more) -> AttentionPeer:
    return AttentionPeer(name=name, short=name, build=build, graph=lambda case: lb.Full(), **more)


BROKEN = peer("broken", broken)
WRONG = peer("wrong", lambda case: lambda q, k, v: v)
HEAVY = peer("heavy", DENSE.build, growth=40)


def fake_plan(graph, n, *, heads, head_dim, batch, backward):
    """A prediction without a calibration, which takes seconds."""
    edges = graph.layout(n, heads=heads).edges()
    times = {"seconds": 1e-9 * edges, "dense_seconds": 1e-9 * heads * n * n}
    return SimpleNamespace(edges=edges, **times, crossover=100, bytes_extra=4_000_000)


@pytest.fixture(scope="module")
def small_run() -> Result:
    """A whole run with tiny work, its subprocesses replaced."""
    settings = AttentionSettings(
        case=TINY,
        lengths=(128, 512),
        mine=longbird("gather"),
        peers=(DENSE, BROKEN, WRONG, HEAVY),
        repeats=3,
        budget=0.05,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "peak", lambda find, name, case, small: Peak(name, case, 1000, 10))
        patch.setattr(steps, "plan", fake_plan)
        patch.setattr(steps, "SGEMM_SIZE", 64)
        patch.setattr(steps, "CHECKED", (128,))
        patch.setattr(steps, "DENSE_LENGTHS", (64, 128))
        return run("attention", settings, steps.steps(settings))


def test_run_measures_and_names_what_it_leaves_out(small_run):
    held = small_run.contest(replace(TINY, n=512, backward=True))
    assert len(held.samples["longbird gather"]) == len(held.samples[DENSE.name]) == 3
    assert held.skipped["broken"] == "RuntimeError: cannot open (a path)"
    assert "off by" in held.skipped["wrong"]
    assert "predicted to take" in held.skipped["heavy"]
    assert set(small_run.contest(replace(TINY, n=64)).samples) == {
        "longbird gather", DENSE.name, SGEMM,
    }  # fmt: skip
    assert small_run.verified[DENSE.name] < 1e-5
    layouts = small_run.contest(replace(TINY, n=512, task="layout"))
    assert set(layouts.samples) == {"longbird gather", CREATE_BLOCK_MASK}
    tokens = small_run.contest(replace(TINY, n=512, task="time per token"))
    assert set(tokens.samples) == {"512"}  # the reference length is capped too
    for pattern in ("full", "causal"):
        held = small_run.contest(replace(TINY, n=128, pattern=pattern, backward=True))
        assert set(held.samples) == {"longbird gather", DENSE.name}
    assert {(each.case.n, each.case.backward) for each in small_run.peaks} == {
        (n, backward) for n in (128, 512) for backward in (False, True)
    }


@pytest.mark.slow  # measures
def test_results_are_written(small_run, tmp_path):
    goals = attention_goals(small_run)
    page, data, picture = report(small_run).write(small_run, goals, tmp_path / "new")
    read, text = json.loads(data.read_text()), page.read_text()
    held = small_run.contest(replace(TINY, n=512))
    [again] = [x for x in read["contests"] if x["case"] == held.case.__dict__]
    assert again["samples"][DENSE.name] == held.samples[DENSE.name]
    assert again["facts"]["edges"] == TINY.graph.layout(512, heads=2).edges()
    assert read["settings"]["case"]["block"] == 16
    for part in ("not judged", "broken, at ", "Planned against measured", "share of sgemm"):
        assert part in text
    assert "| Full() | forward | 128 |" in text
    assert "| Causal() | forward and backward |" in text
    assert "| 512 | forward | 4 | 0.00099 |" in text  # MB: 1,000 bytes without the result's 10
    assert not ABSOLUTE_PATH.search(data.read_text() + text)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_only_the_work_of_the_targets_is_judged(small_run):
    assert {goal.reached for goal in attention_goals(small_run)} == {None}


def test_every_step_of_the_full_form_is_listed():
    titles = [step.title for step in steps.steps(AttentionSettings())]
    for part in (
        "65,536 tokens, forward and backward",
        "Full(), 64 tokens, forward",
        "Causal(), 8,192 tokens, forward and backward",
        "time per token at 65,536 tokens",
        "layouts for 16,384 tokens",
        "peak memory at 16,384 tokens, forward and backward",
    ):
        assert part in titles, part


def test_the_quick_form_has_the_readmes_rows_and_all_that_is_judged():
    quick = AttentionSettings.quickly(repeats=5)
    assert quick.repeats == 5
    assert quick.quick
    assert {case.n for case in quick.bigbird_cases if not case.backward} == {
        64, 128, 256, 512, 4096, 16384, 65536,
    }  # fmt: skip
    assert [case for case in quick.bigbird_cases if case.backward] == [Case(4096, backward=True)]
    assert {case.n for case in quick.dense_cases} == set(steps.DENSE_LENGTHS)
    assert quick.memory_cases == [Case(16384)]
    assert AttentionSettings.quickly(lengths=(512,)).at(4096).n == 512
    assert len(steps.steps(quick)) < len(steps.steps(AttentionSettings())) / 2


# Goals, on invented numbers


def invented(**milliseconds: float) -> Result:
    """A run of the work of the targets whose samples are given in milliseconds at 4,096 tokens."""
    known = {NATIVE: 50.0, DENSE.name: 400.0, FLEX.name: 110.0, SGEMM: 130.0}
    known |= {HUGGING_FACE_BIGBIRD.name: 720.0, **milliseconds}
    result = Result(
        "attention",
        "python -m experiments attention",
        "2030-01-02",
        {**environment.environment(), "load": 0.0, "load_after": 1.0},
        AttentionSettings(),
        {DENSE.name: 1e-6, FLEX.name: "not checked: it was Sunday"},
    )
    for n in (64, 128, 256, 512, 4096):
        for backward in (False, True):
            case = Case(n, backward)
            samples = {
                name: [1e-3 * ms * (4 if backward else 1) * n / 4096] * 3
                for name, ms in known.items()
                if not (name == FLEX.name and backward)
            }
            skipped = {FLEX.name: "no backward"} if backward else {}
            facts = {
                "edges": case.graph.layout(n, heads=12).edges(),
                "planned": {NATIVE: 1.0, DENSE.name: 2.0},
                "planned_crossover": 100,
                "planned_bytes": 4_000_000,
            }
            result.contests.append(Contest(case, samples, {}, skipped, facts))
    for pattern in ("full", "causal"):
        for n in steps.DENSE_LENGTHS:
            faster = 1.02 if n == 512 else 1.2
            samples = {NATIVE: [1e-3 * n], DENSE.name: [1e-3 * n * faster]}
            result.contests.append(Contest(Case(n, pattern=pattern), samples, {}, {}))
    more = {"65536": [1.03 * 16 * 0.05], "4096": [0.05]}
    result.contests.append(Contest(Case(65536, task="time per token"), more, {}, {}))
    more = {NATIVE: [0.01], CREATE_BLOCK_MASK: [3.3]}
    result.contests.append(Contest(Case(16384, task="layout"), more, {}, {}))
    result.peaks.append(Peak(NATIVE, Case(16384), 55_331_648, 50_331_648))
    result.peaks.append(Peak(HUGGING_FACE_BIGBIRD.name, Case(16384), 15_050_331_648, 50_331_648))
    return result


def test_goals_are_judged():
    rows = attention_goals(invented())
    assert [(row.target, row.reached) for row in rows] == [
        ("at least 85%", True),
        ("14 x faster", True),
        ("7 x faster", True),
        ("2 x faster", True),
        ("at least 80%", True),
        ("7 x faster", True),
        ("7 x faster", True),
        ("128 tokens or fewer", True),
        ("not slower", True),
        ("at most 1.05", True),
        ("never slower", True),
        ("never slower", True),
        ("100 x less", True),
        ("100 x faster", True),
    ]
    measured = [row.measured for row in rows]
    assert measured[1] == "14.4 x: 50 against 720 ms"
    assert measured[9].startswith("1.03: ")
    assert measured[10] == "1.02 x at 512 to 1.2 x at 64"
    assert measured[12] == "3,000 x: 5 against 15,000 MB"
    assert measured[13] == "330 x: 10 against 3,300 ms"


def test_goals_that_are_missed_say_so():
    slow = attention_goals(invented(**{NATIVE: 70.0}))
    assert [row.reached for row in slow[1:4]] == [False, False, False]
    assert slow[2].measured == "5.71 x: 70 against 400 ms"


def test_one_length_that_is_slower_misses_never_slower():
    run = invented()
    run.contest(Case(256, pattern="full")).samples[DENSE.name][:] = [1e-9]
    full, causal = attention_goals(run)[10:12]
    assert full.reached is False
    assert "at 256" in full.measured
    assert causal.reached


def test_what_was_not_measured_is_not_judged():
    run = invented()
    assert {row.reached for row in attention_goals(replace(run, contests=[], peaks=[]))} == {None}
    gather = replace(run.settings, mine=longbird("gather"))
    rows = attention_goals(replace(run, settings=gather))
    assert rows[9].reached is None  # its samples have no name but a length


def test_share_of_sgemm_counts_useful_flops():
    held = invented().contest(Case(4096))
    own, matmul = rates(held, NATIVE)
    assert own == pytest.approx(1e-9 * held.facts["edges"] * 4 * 64 / 50e-3)
    assert matmul == pytest.approx(1e-9 * 2 * 2048**3 / 130e-3)


def test_crossover_is_the_length_from_which_it_wins_for_good():
    run = invented()
    assert crossover(run, backward=False) == 64
    run.contest(Case(512)).samples[DENSE.name][:] = [1e-9] * 3
    assert crossover(run, backward=False) == 4096
    assert crossover(run, backward=True) == 64


@pytest.mark.slow  # measures
def test_command_writes_its_results(cli, monkeypatch, tmp_path):
    asked: list[AttentionSettings] = []

    def fake(name, settings, steps, tell):
        asked.append(settings)
        return invented()

    monkeypatch.setattr("experiments.speed.run.run", fake)
    answer = cli("attention", "--out", str(tmp_path))
    assert answer.exit_code == 0, answer.output
    assert asked[0].budget == 60
    slug = environment.cpu_slug(environment.processor_name())
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"attention_{slug}_2030-01-02.{end}" for end in ("json", "md", "png")}
    assert "Targets" in answer.output
    cli("attention", "--quick", "--out", str(tmp_path))
    assert asked[1].quick
    assert asked[1].budget == 20
    assert asked[1].lengths == steps.QUICK
