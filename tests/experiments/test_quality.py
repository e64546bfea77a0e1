"""Experiments on quality: intervals, resuming, summaries in words, and ListOps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from experiments.framework.experiment import (
    Attempt,
    Claim,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    macro_f1_of,
    mean_of,
    ratio_of,
)
from experiments.framework.intervals import Bootstrap, figure_of
from experiments.framework.ledger import Finding, Ledger, key_of
from experiments.framework.registry import SCALES, files, load
from experiments.framework.report import Report
from experiments.framework.run import run
from experiments.quality import blocks, listops
from experiments.quality.small import near
from experiments.sources import wikitext
from longbird.models.layers.layer import relative_table

ACCURACY = Metric("accuracy", "right ones", mean_of("right"), scale=100)
LOSS = Metric("loss", "what is wrong", ratio_of("wrong", "all"), more_is_better=False)


def finding(name: str, seed: int, **columns: np.ndarray) -> Finding:
    documents = {key: [float(x) for x in column] for key, column in columns.items()}
    return Finding(
        f"{name}-{seed}", name, seed, documents, {"core seconds": 1.0}, {}, None, "today"
    )


def contestant(name: str, share: float, calls: list[str], seeded: bool = True) -> Contestant:
    """Right in that share of 400 documents."""

    def attempt(attempt: Attempt) -> Outcome:
        calls.append(f"{name} {attempt.seed}")
        right = np.random.default_rng((attempt.seed, len(name))).random(400) < share
        return Outcome({"right": right, "wrong": ~right, "all": np.ones(400)}, {"steps": 7})

    return Contestant(name, f"{share} right", attempt, {"share": share}, seeded)


def experiment(*contestants: Contestant, **more: object) -> Experiment:
    fields = {
        "name": "test", "title": "A test", "asks": "Who is right?", "scale": "default",
        "reference": contestants[0].name, "metrics": [ACCURACY, LOSS], "budget": "Nothing.",
        "data": ["made up"],
    }  # fmt: skip
    return Experiment(contestants=contestants, **{**fields, **more})


# ---- intervals


def test_an_interval_is_that_of_the_normal_distribution_where_documents_are_many() -> None:
    right = np.random.default_rng(0).random(2000) < 0.3
    one = [finding("a", 0, right=right)]
    found = figure_of(Bootstrap(one).samples(one, ACCURACY))
    error = 100 * 1.96 * right.std() / np.sqrt(len(right))
    assert found.value == pytest.approx(100 * right.mean())
    assert found.high - found.value == pytest.approx(error, rel=0.1)
    assert found.value - found.low == pytest.approx(error, rel=0.1)


def test_differences_are_paired_and_seeds_widen_intervals() -> None:
    draw = np.random.default_rng(0)
    right = draw.random(500) < 0.5
    better = right | (draw.random(500) < 0.05)
    mine = [finding("a", seed, right=right) for seed in range(3)]
    yours = [finding("b", 0, right=better)]  # a baseline without seeds
    boot = Bootstrap([*mine, *yours])
    alone = figure_of(boot.samples(yours, ACCURACY))
    apart = figure_of(boot.samples(yours, ACCURACY) - boot.samples(mine, ACCURACY))
    assert apart.low > 0
    assert apart.high - apart.low < 0.6 * (alone.high - alone.low)
    wild = [finding("a", seed, right=draw.random(500) < 0.3 + 0.2 * seed) for seed in range(3)]
    spread = figure_of(Bootstrap(wild).samples(wild, ACCURACY))
    assert spread.high - spread.low > 2 * (alone.high - alone.low)


def test_documents_of_a_group_are_drawn_together() -> None:
    right = np.repeat(np.random.default_rng(0).random(20) < 0.5, 50)
    each, group = finding("a", 0, right=right), np.repeat(np.arange(20), 50)
    together = finding("a", 0, right=right, group=group)
    widths = []
    for one in (each, together):
        found = figure_of(Bootstrap([one]).samples([one], ACCURACY))
        widths.append(found.high - found.low)
    assert widths[1] > 4 * widths[0]


def test_with_groups_contestants_may_have_documents_of_their_own() -> None:
    """As calls of a scan: what counts is that the same groups are drawn for both."""
    right, group = np.array([1, 0, 1, 1, 0, 0.0]), np.array([7, 7, 8, 8, 9, 9])
    one = finding("a", 0, right=right, group=group)
    other = finding("b", 0, right=right[::2], group=group[::2])
    boot = Bootstrap([one, other])
    assert boot.groups == 3
    assert np.array_equal(boot.counts(other), boot.counts(one)[:, ::2])
    drawn = boot.samples([other], ACCURACY)
    assert drawn[0] == pytest.approx(100 * 2 / 3)
    assert np.unique(drawn).size > 2
    with pytest.raises(ValueError, match="measured on other documents than"):
        Bootstrap([finding("a", 0, right=right), finding("b", 0, right=right[::2])])


def test_macro_f1_is_that_of_scikit_learn() -> None:
    draw = np.random.default_rng(0)
    true, given = draw.integers(0, 4, 50), draw.integers(0, 5, 50)
    counts = draw.multinomial(50, np.full(50, 1 / 50), 5)
    found = macro_f1_of("true", "given")({"true": true, "given": given}, counts)
    for row, value in zip(counts, found, strict=True):
        drawn = np.repeat(np.arange(50), row)
        expected = f1_score(true[drawn], given[drawn], average="macro", zero_division=0.0)
        assert value == pytest.approx(expected)


def test_a_sample_without_such_documents_says_nothing() -> None:
    columns = {"right": np.array([1.0, 0.0]), "long": np.array([1.0, 0.0])}
    found = mean_of("right", where="long")(columns, np.array([[2, 0], [0, 2]]))
    assert found[0] == 1
    assert np.isnan(found[1])


# ---- what survives


def test_a_stopped_run_goes_on_and_runs_nothing_twice(tmp_path: Path) -> None:
    calls: list[str] = []
    broken = contestant("broken", 0.5, calls)

    def stop(_: Attempt) -> Outcome:
        raise KeyboardInterrupt

    both = experiment(contestant("a", 0.5, calls), replace(broken, attempt=stop))
    with pytest.raises(KeyboardInterrupt):
        run(both, (0, 1), tmp_path, say=calls.append)
    whole = experiment(contestant("a", 0.5, calls), broken)
    calls.clear()
    found = run(whole, (0, 1), tmp_path, say=lambda line: None)
    assert calls == ["broken 0", "a 1", "broken 1"]
    assert found.missing == []
    assert [each.seed for each in found.findings["a"]] == [0, 1]
    calls.clear()
    again = run(whole, (0, 1), tmp_path, say=lambda line: None)
    assert calls == []
    assert Report(again).figures == Report(found).figures


def test_half_a_line_is_no_finding(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.add(finding("a", 0, right=np.ones(2)))
    whole = ledger.file.read_bytes()
    ledger.file.write_bytes(whole + whole[: len(whole) // 2])
    assert list(ledger.findings()) == ["a-0"]
    ledger.add(finding("a", 1, right=np.ones(2)))
    assert list(ledger.findings()) == ["a-0", "a-1"]


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with (
        Ledger(tmp_path).in_use(),
        pytest.raises(FileExistsError, match="--work"),
        Ledger(tmp_path).in_use(),
    ):
        pass


def test_other_settings_seeds_threads_or_data_are_another_attempt() -> None:
    one = contestant("a", 0.5, [])
    asked = experiment(one)
    keys = {
        key_of(asked, one, 0, 2),
        key_of(asked, one, 1, 2),
        key_of(asked, one, 0, 1),
        key_of(asked, replace(one, settings={"share": 0.6}), 0, 2),
        key_of(replace(asked, data=["others"]), one, 0, 2),
        key_of(replace(asked, scale="quick"), one, 0, 2),
    }
    assert len(keys) == 6
    assert key_of(asked, contestant("a", 0.5, []), 0, 2) in keys


def test_only_some_are_run_and_the_page_says_who_is_missing(tmp_path: Path) -> None:
    calls: list[str] = []
    both = experiment(contestant("a", 0.5, calls), contestant("b", 0.5, calls, seeded=False))
    found = run(both, (0, 1), tmp_path, only=["b"], say=lambda line: None)
    assert calls == ["b 0"]
    page = Report(found).markdown("picture.png")
    assert "Not run: a (seed 0), a (seed 1)." in page


# ---- pages


def test_what_has_no_value_is_none_in_tables_and_null_in_json(tmp_path: Path) -> None:
    never = Metric("never", "is not there", lambda columns, counts: np.full(len(counts), np.nan))
    asked = experiment(
        contestant("a", 0.5, []), contestant("b", 0.5, []), metrics=[never, ACCURACY]
    )
    report = Report(run(asked, (0, 1), tmp_path, say=lambda line: None))
    assert "| a | 2 | none | " in report.markdown("picture.png")
    _, data, _ = report.write(tmp_path / "out")

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found = json.loads(data.read_text("utf-8"), parse_constant=refuse)
    assert found["figures"]["never"]["b"] == [None, None, None]
    assert found["differences"]["never"]["b"] == [None, None, None]


def test_seeds_may_differ_in_documents_as_the_calls_of_a_scan_do(tmp_path: Path) -> None:
    def attempt(attempt: Attempt) -> Outcome:
        right = np.arange(10 + attempt.seed) < 5
        columns = {"right": right, "wrong": ~right, "all": np.ones(len(right))}
        return Outcome({**columns, "group": np.arange(len(right)) % 5})

    asked = experiment(Contestant("a", "five are right", attempt, {}))
    page = Report(run(asked, (0, 1, 2), tmp_path, say=lambda line: None)).markdown("picture.png")
    [line] = [x for x in page.splitlines() if x.startswith("| a | accuracy | 0:")]
    assert line.split(" | ")[2:] == ["0: 50", "1: 45.45", "2: 41.67 |"]


def test_words_follow_from_the_figures(tmp_path: Path) -> None:
    calls: list[str] = []
    good, fair, bad = (
        contestant(x, share, calls) for x, share in zip("gfb", (0.9, 0.9, 0.2), strict=True)
    )
    asked = experiment(
        replace(fair, published={"accuracy": 99.0}),
        replace(good, published={"accuracy": 90.0}),
        bad,
        claims=[
            Claim("good beats bad", "g", "b", "accuracy"),
            Claim("bad beats good", "b", "g", "accuracy"),
            Claim("good has less loss than bad", "g", "b", "loss"),
            Claim("good beats bad by 90 points", "g", "b", "accuracy", 90.0),
            Claim("good beats fair", "g", "f", "accuracy"),
        ],
    )
    report = Report(run(asked, (0, 1, 2), tmp_path, say=lambda line: None))
    words = report.words()
    assert [line.split(":")[0] for line in words[:5]] == [
        "Holds here", "Does not hold here", "Holds here", "Does not hold here", "Undecided here",
    ]  # fmt: skip
    assert words[5] == (
        "Beside f, by accuracy: better are none; worse are b; not distinguishable are g."
    )
    assert "99 was not reproduced" in words[6]
    assert "90 is inside the interval" in words[7]
    page, data, picture = report.write(tmp_path / "out")
    assert page.name.startswith("quality-test_")
    text = page.read_text()
    assert "Does not hold here: bad beats good" in text
    assert "| b | 3 |" in text
    stored = json.loads(data.read_text())
    assert stored["figures"]["accuracy"]["b"][0] == pytest.approx(
        100 * np.mean([x.documents["right"] for x in report.found.findings["b"]])
    )  # fmt: skip
    assert picture.stat().st_size > 1000


def test_names_that_stand_for_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="names of their own"):
        experiment(contestant("a", 0.5, []), contestant("a", 0.5, []))
    with pytest.raises(ValueError, match="metrics"):
        experiment(contestant("a", 0.5, []), claims=[Claim("that", "a", "a", "beauty")])


# ---- experiments


QUALITY = [name for name, file in files().items() if file.parent.name == "quality"]


@pytest.mark.parametrize("name", QUALITY)
def test_every_experiment_has_both_scales(name: str) -> None:
    for scale in SCALES:
        asked: Any = load(name, scale)
        assert asked.name == name


def test_expressions_have_the_value_that_python_gives_them() -> None:
    """Each is evaluated again as a nested call."""
    functions = {
        "MIN": min,
        "MAX": max,
        "MED": lambda xs: int(np.median(xs)),
        "SM": lambda xs: sum(xs) % 10,
    }
    trees = listops.Trees(depth=5, least=10, most=80)
    made = listops.expressions(trees, seed=3)
    every = [next(made) for _ in range(100)]
    for tokens in every:
        text = " ".join(tokens)
        for name in functions:
            text = text.replace(f"[{name} ", f"functions['{name}']([")
        code = text.replace(" ]", "]),").replace(" ", ",").replace("(,", "(").replace(",,", ",")
        found = eval(code.rstrip(","), {"functions": functions})
        assert listops.value(tokens) == (found[0] if isinstance(found, tuple) else found)
    assert {len(tokens) for tokens in every} <= set(range(10, 81))
    assert len({tuple(tokens) for tokens in every}) == 100
    again = listops.expressions(trees, seed=3)
    assert [next(again) for _ in range(100)] == every


def test_new_models_look_at_their_neighbours_first() -> None:
    table = relative_table(near(4), 128)  # [heads, distances from -128 on]
    assert (table.argmax(1) - 128).tolist() == [-1, 1, 0, 0]
    assert torch.isfinite(table).all()


@pytest.mark.parametrize("block", blocks.BLOCKS, ids=lambda block: block.name)
def test_blocks_have_as_many_keys_as_is_said(block: blocks.Block) -> None:
    """In the middle of a piece, where no edge cuts a window; windows have their own token, too."""
    sizes = blocks.SIZES["default"]
    mask = np.asarray(block.graph(sizes).mask(sizes.length, heads=sizes.heads))
    keys = mask[:, 512].sum(-1) + block.added(sizes)
    if block.name == "full":
        assert (keys == sizes.length).all()
    else:
        assert (abs(keys - 8 * sizes.block) <= 2).all(), keys


@pytest.fixture
def few_articles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / wikitext.NAME
    folder.mkdir()
    text = "The bird flew over the long river. " * 20
    for part in wikitext.PARTS:
        rows = [{"title": "Birds", "text": f"{part} {n}: {text}"} for n in range(4)]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv("LONGBIRD_CACHE", str(tmp_path))


def test_frequencies_cost_the_entropy_of_bytes(few_articles: None, tmp_path: Path) -> None:
    sizes = blocks.SIZES["quick"]
    found = blocks.most_frequent(sizes, Attempt(0, tmp_path, print)).documents
    assert len(found["nats"]) == 2 * sizes.held_out
    assert found["predicted"] == [sizes.length - 2] * 6
    spaces = [text.count(" ") for text in blocks.held_out(sizes)]
    assert found["right"] == spaces  # the most frequent byte


@pytest.mark.slow  # trains three small models
def test_an_attempt_gives_the_same_again(few_articles: None, tmp_path: Path) -> None:
    sizes = blocks.SIZES["quick"]
    etc = next(block for block in blocks.BLOCKS if block.added(sizes))
    made = [
        blocks.attempt(sizes, etc, Attempt(seed, tmp_path / str(n), lambda line: None))
        for n, seed in enumerate((0, 0, 1))
        for _ in [(tmp_path / str(n)).mkdir()]
    ]
    assert made[0].documents == made[1].documents
    assert made[0].documents["nats"] != made[2].documents["nats"]
    assert made[0].cost["steps"] == sizes.steps


@pytest.mark.slow  # trains four small models
def test_the_command_runs_and_goes_on(cli, tmp_path: Path) -> None:
    words = ["listops", "--quick", "--seeds", "1"]
    words += ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    said = cli(*words)
    assert said.exit_code == 0, said.output
    (data,) = (tmp_path / "out").glob("*.json")
    first = json.loads(data.read_text())
    assert set(first["figures"]["accuracy"]) == {*listops.GRAPHS, *(
        "regression on the top list", "regression on counts", "majority",
    )}  # fmt: skip
    assert cli(*words).exit_code == 0
    second = json.loads(data.read_text())
    assert second["attempts"] == first["attempts"]
    assert "`only` is nobody, expected some of" in str(cli(*words, "--only", "nobody").exception)
