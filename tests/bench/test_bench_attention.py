from __future__ import annotations

import gc
import io
import json
import os
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

import longbird as lb
from longbird.bench import attention as bench
from longbird.bench import environment, plot, report
from longbird.bench.attention import CREATE_BLOCK_MASK, PeakMemory, Result, Series, Settings
from longbird.bench.goals import goals
from longbird.bench.memory import extra_bytes
from longbird.bench.peers import (
    DENSE,
    FLEX,
    HUGGING_FACE_BIGBIRD,
    HUGGING_FACE_LONGFORMER,
    Peer,
    UnavailableError,
    difference,
    flex_block_mask,
    longbird,
)
from longbird.bench.timing import Spread, interleave, ratio, rounds_within, warm_up
from longbird.bench.work import Work
from longbird.cost import Calibration, Curve, plan

TINY = Work(heads=2, head_dim=16, block=16)
LINE = Curve(((10**6, 1e-3), (10**7, 1e-2)))
KNOWN = Calibration(LINE, LINE, implementation="native", threads=2, seconds=0.5)
ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:\w[\w.-]*/)+")


# Timing


def test_interleave_takes_turns_and_rotates_who_begins():
    calls: list[str] = []
    contestants = {name: (lambda name=name: calls.append(name)) for name in "abc"}
    samples = interleave(contestants, dict.fromkeys("abc", 1.0), rounds=3)
    assert calls == list("abcbcacab")
    assert {name: len(seconds) for name, seconds in samples.items()} == {"a": 3, "b": 3, "c": 3}


def test_interleave_warms_and_repeats_short_calls():
    calls: list[int] = []
    interleave({"short": lambda: calls.append(1)}, {"short": 0.005}, rounds=1)
    assert len(calls) == 1 + 4


def test_interleave_switches_garbage_collection_back_on():
    states: list[bool] = []
    interleave({"a": lambda: states.append(gc.isenabled())}, {"a": 1.0}, rounds=1)
    assert states == [False] and gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        interleave({"a": lambda: 1 / 0}, {"a": 1.0}, rounds=1)
    assert gc.isenabled()


def test_ratios_are_taken_within_rounds():
    slow_machine = ratio([2.0, 20.0, 2.0], [1.0, 10.0, 1.0])
    assert slow_machine == Spread(2.0, 2.0, 2.0, 2.0, 2.0)
    with pytest.raises(ValueError):
        ratio([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="no samples"):
        Spread.of([])


def test_rounds_fit_the_time():
    assert rounds_within({"a": 10.0}, seconds=60, most=9) == 6
    assert rounds_within({"a": 100.0}, seconds=60, most=9) == 3
    assert rounds_within({"a": 1e-5}, seconds=60, most=9) == 9
    assert rounds_within({"a": 100.0}, seconds=60, most=1) == 1


def test_warm_up_times_first_and_later_calls():
    calls: list[int] = []
    warm = warm_up(lambda: calls.append(1))
    assert len(calls) == 3 and warm.first >= 0 and warm.later >= 0


# Environment


def test_environment_is_json_without_paths():
    text = json.dumps(environment.environment())
    assert not ABSOLUTE_PATH.search(text)
    assert os.uname().nodename not in text or len(os.uname().nodename) < 4


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/opt/venv/bin/longbird", "bench", "attention"], "longbird bench attention"),
        (["/somewhere/longbird/cli/__main__.py", "plan"], "longbird plan"),
        (["longbird", "--out=/home/me/results", "--quick"], "longbird --out=results --quick"),
        (["longbird", "--out", "benchmarks/results"], "longbird --out benchmarks/results"),
    ],
)
def test_command_line_has_no_folders_of_the_machine(words, expected):
    assert environment.command_line(words) == expected


def test_cpu_slug_is_a_file_name():
    assert environment.cpu_slug("AMD EPYC 7763 64-Core Processor") == (
        "amd-epyc-7763-64-core-processor"
    )
    assert environment.cpu_slug("???") == "unknown"


# Peers


def test_longbird_and_dense_compute_what_they_claim():
    assert difference(longbird("gather"), TINY, 200) < 1e-5
    assert difference(DENSE, TINY, 200) < 1e-5


@pytest.mark.filterwarnings("ignore")  # of transformers, while it is imported
@pytest.mark.parametrize("n", [208, 1024])
def test_hugging_face_bigbird_computes_what_it_claims(n):
    before = np.random.get_state()[1].copy()
    assert difference(HUGGING_FACE_BIGBIRD, TINY, n) < 1e-5
    assert (before == np.random.get_state()[1]).all()


@pytest.mark.filterwarnings("ignore")  # of transformers, while it is imported
def test_hugging_face_longformer_computes_what_it_claims():
    assert difference(HUGGING_FACE_LONGFORMER, replace(TINY, heads=1), 1024) < 1e-5


@pytest.mark.slow  # compiled by g++
@pytest.mark.filterwarnings("ignore")  # of torch's compiler
def test_flex_computes_what_it_claims():
    try:
        assert difference(FLEX, TINY, 256) < 1e-5
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
    ("peer", "work", "n", "reason"),
    [
        (HUGGING_FACE_BIGBIRD, TINY, 176, "full attention up to 176"),
        (HUGGING_FACE_BIGBIRD, TINY, 200, "multiples of 16"),
        (HUGGING_FACE_BIGBIRD, replace(TINY, window=5), 256, "always 3"),
        (HUGGING_FACE_LONGFORMER, TINY, 500, "multiples of its window"),
        (FLEX, TINY, 250, "not every block"),
    ],
)
def test_peers_say_why_they_cannot(peer, work, n, reason):
    with pytest.raises(UnavailableError, match=reason):
        peer.build(work, n)


def test_a_missing_package_is_a_reason(monkeypatch):
    def absent(name: str):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr("longbird.bench.peers.importlib.import_module", absent)
    with pytest.raises(UnavailableError, match="pip install transformers"):
        HUGGING_FACE_BIGBIRD.build(TINY, 1024)


def test_too_little_memory_is_a_reason():
    with pytest.raises(UnavailableError, match=r"GB of memory"):
        HUGGING_FACE_BIGBIRD.refuse_if_impossible(Work(), 10**6, backward=False)
    with pytest.raises(UnavailableError, match="no backward"):
        FLEX.refuse_if_impossible(TINY, 64, backward=True)


# The run


def broken(work: Work, n: int):
    def fail(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("cannot open /somewhere/on/this/machine.so")

    return fail


def wrong(work: Work, n: int):
    return lambda q, k, v: v


def heavy(work: Work, n: int):
    return DENSE.build(work, n)


BROKEN = Peer("broken", "broken", broken, lambda work, n: lb.Full())
WRONG = Peer("wrong", "wrong", wrong, lambda work, n: lb.Full())
HEAVY = Peer("heavy", "heavy", heavy, lambda work, n: lb.Full(), growth=40)


@pytest.fixture(scope="module")
def small_run() -> Result:
    """A whole run with tiny work, its subprocesses replaced."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return _small_run(monkeypatch)


def _small_run(monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.setattr(bench, "extra_bytes", lambda peer, work, n, backward: 1000 * n)
    monkeypatch.setattr(
        bench, "plan", lambda graph, n, **options: plan(graph, n, **options, calibration=KNOWN)
    )
    monkeypatch.setattr(bench, "SGEMM_SIZE", 64)
    settings = Settings(
        work=TINY,
        lengths=(128, 256, 512),
        implementation="gather",
        peers=(DENSE, BROKEN, WRONG, HEAVY),
        repeats=3,
        budget=1.0,
        reference_length=256,
        long_length=512,
        big_length=512,
    )
    told: list[str] = []
    result = bench.run(settings, told.append)
    assert len(told) == bench.stages(settings)
    return result


@pytest.mark.slow  # a whole run
def test_run_measures_and_names_what_it_leaves_out(small_run, tmp_path):
    series = small_run.at(512, backward=True)
    assert series is not None
    assert len(series.samples["longbird gather"]) == len(series.samples[DENSE.name]) == 3
    assert series.skipped["broken"] == "RuntimeError: cannot open (a path)"
    assert "off by" in series.skipped["wrong"]
    assert "predicted to take" in series.skipped["heavy"]
    assert small_run.at(64, backward=False) is not None  # for the crossover
    assert set(small_run.layout) == {"longbird", CREATE_BLOCK_MASK}
    assert small_run.verified[DENSE.name] < 1e-5

    paths = [*report.write(small_run, tmp_path / "new"), plot.write(small_run, tmp_path / "p.png")]
    data = json.loads(paths[0].read_text())
    assert data["series"][-1]["samples"][DENSE.name] == series.samples[DENSE.name]
    assert lb.Graph.from_json(json.dumps(data["work"]["graph"])) == TINY.graph
    text = paths[1].read_text()
    for part in ("not judged", "broken, ", "Planned against measured", "of sgemm"):
        assert part in text
    assert not ABSOLUTE_PATH.search(paths[0].read_text() + text)
    assert paths[2].read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow  # a whole run
def test_nothing_but_the_designs_work_is_judged(small_run):
    assert {goal.reached for goal in goals(small_run)} == {None}


def test_settings_quick_are_short():
    quick = Settings().quick()
    assert max(quick.lengths) <= 1024 and quick.repeats == 3


# Goals, on invented numbers


def invented(**seconds: float) -> Result:
    """A run of the design's work whose samples are given in milliseconds at 4,096 tokens."""
    name = "longbird native"
    known = {
        name: 50.0,
        DENSE.name: 400.0,
        FLEX.name: 110.0,
        HUGGING_FACE_BIGBIRD.name: 720.0,
        "sgemm": 130.0,
    }
    known.update(seconds)
    plans = [
        plan(Work().graph, n, backward=backward, calibration=KNOWN)
        for n in (256, 512, 4096)
        for backward in (False, True)
    ]
    series = [
        Series(
            n=planned.n,
            backward=planned.backward,
            edges=planned.edges,
            samples={
                peer: [1e-3 * ms * (4 if planned.backward else 1) * planned.n / 4096] * 3
                for peer, ms in known.items()
                if not (peer == FLEX.name and planned.backward)
            },
            first_call={},
            skipped={FLEX.name: "no backward"} if planned.backward else {},
            planned={name: planned.seconds, DENSE.name: planned.dense_seconds},
        )
        for planned in plans
    ]
    return Result(
        settings=Settings(),
        environment={**environment.environment(), "load_after": 0.1},
        command="longbird bench attention",
        date="2030-01-02",
        longbird=name,
        verified={DENSE.name: 1e-6, FLEX.name: "not checked: it was Sunday"},
        series=series,
        linearity={4096: [1.0, 1.0], 65536: [1.02, 1.04]},
        layout={"longbird": [0.01], CREATE_BLOCK_MASK: [3.3]},
        layout_skipped={},
        memory=[
            PeakMemory(name, 16384, False, 5_000_000, planned=4_000_000),
            PeakMemory(HUGGING_FACE_BIGBIRD.name, 16384, False, 15_000_000_000),
            PeakMemory(HUGGING_FACE_BIGBIRD.name, 16384, True, None, "too little memory"),
        ],
        plans=plans,
    )


def test_goals_are_the_designs_rows():
    rows = goals(invented())
    assert [row.target for row in rows] == [
        "at least 85%",
        "14 x faster",
        "7 x faster",
        "2 x faster",
        "at least 75%",
        "7 x faster",
        "6 x faster",
        "512 tokens or fewer",
        "at most 1.05",
        "1/100",
        "100 x faster",
    ]
    assert all(row.reached is not None for row in rows)
    verdicts = {(row.what.split(",")[0], row.peer): row.reached for row in rows}
    assert verdicts["forward", HUGGING_FACE_BIGBIRD.name]
    assert verdicts["forward", DENSE.name]
    assert all(row.reached for row in rows[7:])


def test_goals_that_are_missed_say_so():
    slow = goals(invented(**{"longbird native": 70.0}))
    assert [row.reached for row in slow[1:4]] == [False, False, False]
    assert slow[2].measured == "5.7 x (5.7 to 5.7)"


def test_share_of_sgemm_counts_useful_flops():
    series = invented().at(4096, backward=False)
    assert series is not None
    rate = series.edges * 4 * 64 / 50e-3
    assert series.share_of_sgemm("longbird native", 64)[0] == pytest.approx(
        rate / (2 * 2048**3 / 130e-3)
    )


def test_goals_without_their_length_or_peer_are_not_judged():
    run = invented()
    rows = goals(replace(run, series=[each for each in run.series if each.n != 4096], memory=[]))
    assert rows[0].measured == "this length was not measured" and rows[0].reached is None
    assert rows[9].reached is None


def test_crossover_is_the_length_from_which_it_wins_for_good():
    run = invented()
    assert run.crossover(backward=False) == 256
    lost = run.at(512, backward=False)
    assert lost is not None
    lost.samples[DENSE.name][:] = [1e-9] * 3
    assert run.crossover(backward=False) == 4096
    assert run.crossover(backward=True) == 256


def test_a_busy_machine_is_pointed_out():
    run = invented()
    for load, said in ((0.1, False), (3.8, True), (None, False)):
        busy = replace(run, environment={**run.environment, "load": load, "cores": 2})
        assert ("NOT IDLE" in report.as_markdown(busy)) == said


def test_tables_show_in_a_terminal():
    console = Console(width=200, record=True, file=io.StringIO())
    for sheet in report.sheets(invented()):
        sheet.show(console)
    text = console.export_text()
    assert "reached" in text and "no backward" in text and "too little memory" in text


# Memory and the command


@pytest.mark.slow  # two processes
def test_peak_memory_of_a_process_of_its_own():
    extra = extra_bytes(longbird("gather"), TINY, 512)
    assert 0 <= extra < 500_000_000
    with pytest.raises(UnavailableError, match="its process failed"):
        extra_bytes(Peer("longbird nonsense", "nonsense", DENSE.build, DENSE.graph), TINY, 64)


def test_command_writes_its_results(monkeypatch, tmp_path):
    from longbird.cli.app import app

    monkeypatch.setattr("longbird.cli.bench.run", lambda settings, tell: invented())
    line = ["bench", "attention", "--impl", "gather", "--lengths", "512", "--out", str(tmp_path)]
    answer = CliRunner().invoke(app, line)
    assert answer.exit_code == 0, answer.output
    slug = environment.cpu_slug(environment.cpu_model())
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"attention_{slug}_2030-01-02.{end}" for end in ("json", "md", "png")}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["--lengths", "512,abc"], "abc"),
        (["--lengths", "0"], "whole numbers"),
        (["--impl", "magic"], "no such implementation"),
    ],
)
def test_command_refuses_what_makes_no_sense(line, words):
    from longbird.cli.app import app

    answer = CliRunner().invoke(app, ["bench", "attention", *line])
    assert answer.exit_code != 0
    assert words in str(answer.exception)
