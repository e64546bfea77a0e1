"""Associative recall: sequences, patterns with equal edges, and rank correlations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from experiments.framework.experiment import Attempt
from experiments.framework.ledger import Finding
from experiments.framework.predictors import draw_predictors, predictors, rank_correlation
from experiments.quality import patterns, recall
from experiments.quality.pairs import NOT_ASKED, Recall, draw

TASK = Recall(length=256, keys=4, values=8, queries=64)
EVERY = (*patterns.SPARSE, patterns.FULL, patterns.ALONE)


def silence(_: str) -> None:
    """Says nothing."""


# ---- sequences


def solved(task: Recall, keys: list[int], values: list[int]) -> dict[int, tuple[int, int]]:
    """By looking through the sequence: the value and the distance of each query by its place."""
    pairs = {}
    for place, (key, value) in enumerate(zip(keys, values, strict=True)):
        if value:
            assert key not in pairs, "each key has one pair"
            pairs[key] = place, value - 1
    assert sorted(pairs) == list(range(1, task.keys + 1))
    return {
        place: (pairs[key][1], abs(pairs[key][0] - place))
        for place, key in enumerate(keys)
        if key in pairs and not values[place]
    }


def test_looking_through_a_sequence_finds_the_answers() -> None:
    given = draw(TASK, 50, np.random.default_rng(5))
    assert given.keys.shape == (50, 256)
    assert (given.keys[:, 0] == TASK.keys + 1).all()
    for row in range(50):
        found = solved(TASK, given.keys[row].tolist(), given.values[row].tolist())
        asked = np.flatnonzero(given.answers[row] != NOT_ASKED)
        assert found == {
            int(i): (int(given.answers[row, i]), int(given.distances[row, i])) for i in asked
        }
        assert len(asked) > 30
    assert (given.distances[given.answers == NOT_ASKED] == 0).all()


def test_values_keys_and_distances_are_even() -> None:
    given = draw(TASK, 400, np.random.default_rng(0))
    asked = given.answers != NOT_ASKED
    for drawn, kinds in ((given.answers[asked], 8), (given.keys[asked] - 1, 4)):
        shares = np.bincount(drawn, minlength=kinds) / len(drawn)
        assert np.allclose(shares, 1 / kinds, atol=0.02)
    # Beyond three quarters of the length, often no pair is near enough to an end.
    quarters = np.bincount((given.distances[asked] - 1) // 64, minlength=4)[:3]
    assert np.ptp(quarters) < 0.2 * quarters.mean()


def test_a_seed_draws_the_same_again_and_held_out_sequences_are_others() -> None:
    first, again, held_out = (
        draw(TASK, 4, np.random.default_rng(seed)) for seed in (1, 1, recall.HELD_OUT)
    )
    assert np.array_equal(first.keys, again.keys)
    assert not np.array_equal(first.keys, held_out.keys)


# ---- patterns


@pytest.mark.parametrize("pattern", patterns.SPARSE, ids=lambda each: each.name)
def test_edges_are_equal(pattern: patterns.Pattern) -> None:
    """Counted one by one in the dense mask, in every head."""
    sizes = recall.SIZES["default"]
    setting = sizes.setting(seed=2)
    graph, tokens = pattern.whole(setting)
    edges = graph.mask(tokens, heads=sizes.heads).sum((1, 2)) / setting.n
    assert np.allclose(edges, sizes.edges, rtol=0.035), edges


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("pattern", EVERY, ids=lambda each: each.name)
def test_a_model_knows_of_what_is_within_hops_and_of_nothing_else(
    pattern: patterns.Pattern, layers: int
) -> None:
    """Each token is changed alone: whose output changes has seen it."""
    n = 40
    sizes = recall.Sizes(Recall(n, 2, 4, 8), edges=8, layers=layers, width=16, heads=2)
    model = recall.model_of(sizes, pattern, seed=1).eval()
    keys = torch.from_numpy(draw(sizes.task, 1, np.random.default_rng(0)).keys)
    values = torch.ones(n + 1, n, dtype=torch.long)
    values[torch.arange(n), torch.arange(n)] = 3  # the last row is as it was
    with torch.no_grad():
        logits = model(input_ids=keys.expand(n + 1, n), token_type_ids=values).logits
    changed = (logits[:-1] != logits[-1]).any(-1).numpy().T  # [who, whose change]
    expected = patterns.within(pattern, sizes.setting(1), sizes.heads, layers)
    assert np.array_equal(changed, expected)


def test_hops_are_those_of_the_analysis() -> None:
    sizes = recall.SIZES["default"].at(256)
    for name in ("sparse window", "small world", "random blocks"):
        pattern = next(each for each in patterns.SPARSE if each.name == name)
        reached = patterns.within(pattern, sizes.setting(3), sizes.heads, sizes.layers)
        n = len(reached)
        share = (reached.sum() - n) / (n * (n - 1))
        found = recall.measures_of(sizes, pattern, seed=3)
        assert found[recall.measures(sizes)[-1]] == pytest.approx(share)


# ---- models


def test_who_sees_the_query_alone_is_at_chance() -> None:
    sizes = recall.SIZES["quick"]
    model = recall.model_of(sizes, patterns.ALONE, seed=0)
    given = draw(sizes.task, 200, np.random.default_rng(1))
    asked, said = given.answers != NOT_ASKED, recall.said(model, given, 50)
    counts = np.zeros((sizes.task.keys, sizes.task.values))
    for key in range(sizes.task.keys):
        here = asked & (given.keys == 1 + key)
        assert len(set(said[here])) == 1  # whatever stands elsewhere
        counts[key] = np.bincount(given.answers[here], minlength=sizes.task.values)
    # So the best such model says the most frequent value of each key.
    assert counts.max(1).sum() / counts.sum() < 1.25 / sizes.task.values


def test_what_hops_allow_by_looking_at_every_query() -> None:
    task = Recall(64, 2, 4, 64)
    given = draw(task, 20, np.random.default_rng(0))
    window = np.abs(np.subtract.outer(np.arange(64), np.arange(64))) <= 10
    found = recall.at_best(task, given, window)
    asked = given.answers != NOT_ASKED
    assert np.array_equal(found[asked], np.where(given.distances[asked] <= 10, 1.0, 0.25))
    assert (found[~asked] == 0).all()


def test_stages_hand_on_their_parameters(tmp_path: Path) -> None:
    """All of them, the very same, also those of added tokens; and they are trained."""
    sizes = recall.SIZES["quick"]
    etc = next(each for each in patterns.SPARSE if each.name == "BigBird-ETC")
    before = dict(recall.model_of(sizes, etc, seed=0).named_parameters())
    after = dict(recall.trained(sizes, etc, Attempt(0, tmp_path, silence)).named_parameters())
    assert before.keys() == after.keys()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert len(moved) > 0.9 * len(before), set(before) - moved
    assert any("global" in name for name in moved)


def test_an_attempt_gives_the_same_again_and_another_seed_another_graph(tmp_path: Path) -> None:
    sizes = recall.SIZES["quick"]
    random = next(each for each in patterns.SPARSE if each.name == "random")
    one, again, other = (
        recall.attempt(sizes, random, Attempt(seed, tmp_path, silence)) for seed in (0, 0, 1)
    )
    assert one.documents == again.documents
    assert one.facts == again.facts != other.facts
    assert one.documents["asked"] == other.documents["asked"]  # held out: the same for all
    assert one.cost == {"steps": sizes.steps, "tokens": sizes.steps * 128}


@pytest.mark.slow  # trains two small models for a hundred steps
def test_full_attention_learns_it_and_a_window_what_is_near(tmp_path: Path) -> None:
    sizes = recall.Sizes(Recall(64, 4, 8, 64), edges=8, stages=((64, 100),), batch=32, held_out=64)
    shares = {}
    for pattern in (patterns.FULL, patterns.SPARSE[0]):
        found = recall.attempt(sizes, pattern, Attempt(0, tmp_path, silence)).documents
        shares[pattern.name] = {
            band: sum(found[f"right {band}"]) / sum(found[f"asked {band}"]) for band in sizes.bands
        }
    assert shares["full"]["far"] > 0.85
    assert shares["sparse window"]["near"] > 0.7
    assert shares["sparse window"]["far"] < 0.5


# ---- which measure?


def found_of(values: dict[str, list[float | None]]) -> dict[str, list[Finding]]:
    """Findings of contestants with measures, a value for each."""
    every = [dict(zip(values, each, strict=True)) for each in zip(*values.values(), strict=True)]
    return {
        f"contestant {i}": [Finding("", "", 0, {}, {}, {"measures": each}, None, "")]
        for i, each in enumerate(every)
    }


def samples_of(reached: list[float], noise: float = 0.0) -> dict[str, np.ndarray]:
    draws = np.random.default_rng(1).normal(0, noise, (2001, len(reached)))
    draws[0] = 0
    return {f"contestant {i}": x + draws[:, i] for i, x in enumerate(reached)}


def test_rank_correlations_are_those_of_scipy() -> None:
    draws = np.random.default_rng(0)
    for _ in range(20):
        x, y = draws.integers(0, 6, (2, 10)).astype(float)
        assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    x[3] = np.inf
    large = np.where(np.isinf(x), 100, x)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(large, y).statistic)
    assert np.isnan(rank_correlation([1, 1, 1], [1, 2, 3]))


def test_the_measure_that_predicts_is_found_and_noise_is_not() -> None:
    draws = np.random.default_rng(3)
    reached = draws.random(10).tolist()
    hops = [-x for x in reached]
    hops[int(np.argmin(reached))] = None  # the worst is not connected: larger than all
    measures = {"hops": hops, "noise": draws.random(10).tolist(), "same": [1.0] * 10}
    found = predictors("accuracy", list(measures), found_of(measures), samples_of(reached, 0.01))
    assert found is not None
    assert found.correlations["hops"].value == pytest.approx(-1)
    assert found.strongest == "hops"
    assert found.best["hops"] > 0.9
    assert np.isnan(found.correlations["same"].value)
    assert found.p_value < 0.001
    assert "accuracy goes best with hops" in found.words()[0]
    assert "more than chance explains" in found.words()[1]
    noise = {"noise": measures["noise"]}
    found = predictors("accuracy", ["noise"], found_of(noise), samples_of(reached))
    assert found is not None
    assert "what chance explains, too" in found.words()[1]


def test_chance_is_that_of_the_tables() -> None:
    """Of one measure and ten contestants, 0.648; of six that have nothing in common, more."""
    draws = np.random.default_rng(0)
    measures = {f"m{i}": draws.random(10).tolist() for i in range(6)}
    reached = draws.random(10).tolist()
    one = predictors("a", ["m0"], found_of({"m0": measures["m0"]}), samples_of(reached))
    six = predictors("a", list(measures), found_of(measures), samples_of(reached))
    assert one is not None
    assert six is not None
    assert one.chance == pytest.approx(0.648, abs=0.02)
    assert 0.75 < six.chance < 0.85


def test_few_contestants_say_nothing() -> None:
    measures = {"m": [1.0, 2.0, 3.0]}
    assert predictors("a", ["m"], found_of(measures), samples_of([1.0, 2.0, 3.0])) is None


def test_the_picture_has_a_panel_for_each_measure(tmp_path: Path) -> None:
    measures = {"hops": [1.0, 2.0, None, 3.0], "density": [0.1, 0.1, 0.1, 0.1]}
    found = predictors("a", list(measures), found_of(measures), samples_of([1.0, 2.0, 3.0, 4.0]))
    assert found is not None
    canvas = Figure()
    draw_predictors(found, canvas)
    canvas.savefig(tmp_path / "m.svg")
    text = (tmp_path / "m.svg").read_text()
    assert "hops" in text
    assert "density" in text


@pytest.mark.slow  # trains twelve tiny models
def test_the_experiment_runs_and_asks_which_measure(cli, tmp_path: Path) -> None:
    said = cli(
        "recall", "--quick", "--seeds", "1",
        "--work", str(tmp_path / "work"), "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert said.exit_code == 0, said.output
    (data,) = (tmp_path / "out").glob("*.json")
    stored = json.loads(data.read_text())
    assert set(stored["figures"]["accuracy"]) == {each.name for each in EVERY}
    assert stored["prediction"]["contestants"] == [each.name for each in patterns.SPARSE]
    diameter = dict(
        zip(
            stored["prediction"]["contestants"],
            stored["prediction"]["measures"]["diameter"],
            strict=True,
        )
    )
    assert diameter["dilated window"] is None
    assert diameter["Longformer"] == 2
    (page,) = (tmp_path / "out").glob("*.md")
    assert "Which measure goes with accuracy?" in page.read_text()
    assert len(list((tmp_path / "out").glob("*.png"))) == 1
