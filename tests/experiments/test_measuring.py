"""What comparisons of times share: timing, contests, memory, the environment, tables."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
from dataclasses import dataclass, replace

import pytest
import torch

from experiments.framework import environment
from experiments.framework.page import digits, quotient
from experiments.speed.contest import (
    Peer,
    UnavailableError,
    contest,
    refuse_if_too_slow,
    refuse_without_memory,
)
from experiments.speed.memory import Peak, measure_here, peak
from experiments.speed.report import Report, Row, comparison
from experiments.speed.run import Result, Settings, Step, run
from experiments.speed.timing import Spread, interleave, rounds_within, warm_up

ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:\w[\w.-]*/)+")


@dataclass(frozen=True)
class Case:
    n: int
    layers: int = 1
    kind = "only"


@dataclass(frozen=True, kw_only=True)
class Sleeper(Peer):
    """Counts its calls, and returns as many bytes as it is told to."""

    off_by: float = 0.0
    fails: str = ""
    bytes: int = 0

    def calls(self, *cases):
        if self.fails:
            raise RuntimeError(self.fails)
        return [lambda: torch.empty(self.bytes, dtype=torch.uint8) for _ in cases]

    def difference(self, case):
        return self.off_by


MINE = Sleeper(name="longbird gather", short="mine")


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


@pytest.mark.slow  # collects garbage many times
def test_interleave_switches_garbage_collection_back_on():
    states: list[bool] = []
    interleave({"a": lambda: states.append(gc.isenabled())}, {"a": 1.0}, rounds=1)
    assert states == [False]
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        interleave({"a": lambda: 1 / 0}, {"a": 1.0}, rounds=1)
    assert gc.isenabled()


def test_spread_is_median_and_extremes():
    assert Spread.of([5.0, 1.0, 2.0, 9.0]) == Spread(3.5, 1.0, 9.0)
    with pytest.raises(ValueError, match="no samples"):
        Spread.of([])


def test_rounds_fit_the_time():
    assert rounds_within({"a": 10.0}, seconds=60, most=9) == 6
    assert rounds_within({"a": 100.0}, seconds=60, most=9) == 3
    assert rounds_within({"a": 1e-5}, seconds=60, most=9) == 9
    assert rounds_within({"a": 100.0}, seconds=60, most=1) == 1


def test_warm_up_times_first_and_later_calls():
    calls: list[int] = []
    first, later = warm_up(lambda: calls.append(1))
    assert len(calls) == 3
    assert first >= 0
    assert later >= 0


# Contests


def test_a_peer_that_fails_is_named_without_paths_of_the_machine():
    def broken():
        raise RuntimeError("cannot open /somewhere/on/this/machine.so\nand more")

    held = contest(Case(1), {"mine": lambda: lambda: None, "b": broken}, "mine", 0.1, 2)
    assert held.skipped == {"b": "RuntimeError: cannot open (a path)"}
    assert len(held.samples["mine"]) == 2
    with pytest.raises(RuntimeError):
        contest(Case(1), {"mine": broken}, "mine", 0.1, 2)


def test_too_little_memory_is_a_reason():
    with pytest.raises(UnavailableError, match=r"needs about 1000000.0 GB of memory"):
        refuse_without_memory(10**15)
    refuse_without_memory(1)


def test_a_call_that_would_take_too_long_is_a_reason():
    held = contest(Case(1), {}, "mine", 0.1, 1)
    known = replace(held, case=Case(100, layers=12), samples={"peer": [12.0, 13.0]})
    peer = Sleeper(name="peer", short="peer", growth=2)
    refuse_if_too_slow(peer, Case(200), [known], limit=5)  # 12 s / 12 layers * 2**2
    with pytest.raises(UnavailableError, match="predicted to take 4 s, the limit is 3 s"):
        refuse_if_too_slow(peer, Case(200), [known], limit=3)
    refuse_if_too_slow(replace(peer, name="another"), Case(200), [known], limit=3)


# Memory


def find(name: str) -> Sleeper:
    fails = "no luck" if name == "unlucky" else ""
    return Sleeper(name=name, short=name, bytes=1000, fails=fails)


def test_peak_counts_what_was_returned_or_says_why_not():
    threads = torch.get_num_threads()
    taken = measure_here(find, "lucky", Case(2), Case(1), threads)
    assert taken.result_bytes == 1000
    assert taken.extra_bytes >= 0
    assert taken.peak_bytes > 10**6
    failed = measure_here(find, "unlucky", Case(2), Case(1), threads)
    assert failed == Peak("unlucky", Case(2), skipped="its process failed: RuntimeError: no luck")


@pytest.mark.slow  # starts a process that imports torch
def test_peak_is_measured_in_a_process_of_its_own():
    from experiments.speed.attention.case import Case
    from experiments.speed.attention.peers import named

    case, small = Case(2048, heads=1, pattern="full"), Case(64, heads=1)
    taken = peak(named, "longbird reference", case, small)
    assert taken.result_bytes == 2048 * 64 * 4
    assert 2048**2 * 4 < taken.extra_bytes < 40 * 2048**2  # the dense matrix of scores, some times


@pytest.mark.parametrize(
    ("code", "stderr", "words"),
    [
        (-9, b"", "was ended by signal 9"),
        (1, b"Traceback\nMemoryError: 7 GB", "failed: MemoryError: 7 GB"),
        (1, b"", "failed: no message"),
    ],
)
def test_a_process_that_does_not_answer_says_why(monkeypatch, code, stderr, words):
    done = subprocess.CompletedProcess([], code, b"", stderr)
    monkeypatch.setattr(subprocess, "run", lambda *given, **more: done)
    assert words in peak(find, "lucky", Case(2), Case(1)).skipped


# Environment


def test_environment_is_json_without_paths():
    text = json.dumps(environment.environment())
    assert not ABSOLUTE_PATH.search(text)
    assert os.uname().nodename not in text or len(os.uname().nodename) < 4


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/opt/longbird", "attention"], "longbird attention"),
        (["/somewhere/experiments/__main__.py", "dna"], "python -m experiments dna"),
        (["longbird", "--out=/home/me/results", "--quick"], "longbird --out=results --quick"),
        (["longbird", "--out", "experiments/results"], "longbird --out experiments/results"),
    ],
)
def test_command_line_has_no_folders_of_the_machine(words, expected):
    assert environment.command_line(words) == expected


def test_cpu_slug_is_a_file_name():
    slug = environment.cpu_slug("AMD EPYC 7763 64-Core Processor")
    assert slug == "amd-epyc-7763-64-core-processor"
    assert environment.cpu_slug("???") == "unknown"


@pytest.mark.parametrize(
    ("before", "after", "idle"),
    [(0.1, 2.1, True), (1.3, 2.0, False), (0.1, 3.2, False), (None, None, True)],
)
def test_busy_looks_at_the_load_before_and_after(before, after, idle):
    where = {"load": before, "load_after": after, "cores": 2, "threads": 2}
    assert (environment.busy(where) is None) == idle


# Runs and reports


def settings(*peers: Peer) -> Settings:
    return Settings(mine=MINE, peers=peers, lengths=(64,), repeats=3, budget=0.1, limit=1.0)


def test_steps_are_told_and_taken_in_order():
    told: list[str] = []
    steps = [
        Step("first", lambda result: result.verify(Case(1))),
        Step("second", lambda result: result.compare(Case(64), result.settings.everybody, x=1)),
    ]
    wrong = Sleeper(name="wrong", short="wrong", off_by=0.5)
    result = run("any", settings(wrong), steps, told.append)
    assert told == ["first", "second"]
    assert result.verified == {MINE.name: 0.0, "wrong": 0.5}
    held = result.contest(Case(64))
    assert set(held.samples) == {MINE.name}
    assert held.facts == {"x": 1}
    assert held.skipped == {"wrong": "its output is off by 0.5"}
    assert result.environment["load_after"] is not None or not hasattr(os, "getloadavg")


def test_who_cannot_be_checked_says_why_and_takes_part():
    class Shy(Sleeper):
        def difference(self, case):
            raise UnavailableError(f"{case.n} tokens are too few")

    result = run("any", settings(Shy(name="shy", short="shy")), [])
    result.verify(Case(1), Case(2))
    assert result.verified["shy"] == "not checked: 2 tokens are too few"
    result.compare(Case(64), result.settings.everybody)
    assert "shy" in result.contests[0].samples


@pytest.mark.parametrize(
    ("mine", "theirs"), [(55.7912, 419.249), (0.444499, 0.28649), (6356.4, 18633.2), (2.31, 15060)]
)
def test_ratios_are_what_a_reader_gets_by_dividing(mine, theirs):
    row = Row(["64"], {"a": mine, "b": theirs}, {})
    first, second = row.cells("a", ["b"])[1:]
    printed, ratio = re.fullmatch(r"([\d.,]+) \(([\d.,]+) x\)", second).groups()
    number = [float(text.replace(",", "")) for text in (first, printed, ratio)]
    assert f"{number[1] / number[0]:.3g}" == f"{number[2]:.3g}"


def test_digits():
    assert [digits(x) for x in (0.012345, 12.3456, 999.96, 123456.7)] == [
        "0.01235", "12.35", "1000", "123,457",
    ]  # fmt: skip
    assert quotient(1.0, 0.0) == float("inf")


def test_a_table_says_who_is_missing_where():
    peer = Sleeper(name="a peer", short="peer")
    rows = [
        Row(["64"], {MINE.name: 1.0}, {"a peer": "no"}, Spread(1.0, 0.5, 2.0)),
        Row(["128"], {MINE.name: 2.0}, {"a peer": "no"}),
    ]
    text = comparison("Title", ["tokens"], rows, (MINE, peer)).markdown()
    assert "| tokens | mine | peer |" in text
    assert "| 64 | 1 (0.5 to 2) | - |" in text
    assert "- a peer, at 64; 128: no" in text


@pytest.mark.parametrize(("load", "idle"), [(0.1, True), (3.8, False)])
def test_a_busy_machine_is_named_at_the_top(load, idle):
    where = {**environment.environment(), "load": load, "load_after": 0.5, "cores": 2}
    result = Result("any", "python -m experiments any", "2030-01-02", where, settings())
    text = Report("Title", ["a fact"], [], []).markdown(result, [], "p.png")
    third = text.splitlines()[2]
    assert ("DO NOT QUOTE" in third) == (not idle)
    assert ("DO NOT QUOTE" in text) == (not idle)


def test_peers_and_cases_become_plain_json(tmp_path):
    result = run("any", settings(Sleeper(name="p", short="p")), [])
    result.compare(Case(64), result.settings.everybody)
    report = Report("Title", [], [], [[]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.speed.report.draw", lambda *given: None)
        page, data, _ = report.write(result, [], tmp_path / "new")
    read = json.loads(data.read_text())
    assert list(read)[:3] == ["bench", "command", "date"]
    assert read["settings"]["peers"] == ["p"]
    assert read["settings"]["mine"] == MINE.name
    assert read["contests"][0]["case"] == {"n": 64, "layers": 1}
    assert len(read["contests"][0]["samples"]["p"]) == 3
    assert not ABSOLUTE_PATH.search(data.read_text() + page.read_text())
