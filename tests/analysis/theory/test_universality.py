from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import longbird as lb
from longbird.analysis.theory import universality
from longbird.analysis.theory.pictures import draw_codes
from longbird.analysis.theory.universality import (
    Construction,
    Shift,
    check,
    hardmax_shift,
    neighbours,
    run,
)

STAR = "GlobalTokens([0]) | Window(0)"


def bare_star(n: int) -> lb.Graph:
    """N(i) = {0, i}, N(0) = {1 ... n}, and no other edge."""
    return lb.Edges([e for i in range(1, n + 1) for e in ((i, 0), (i, i), (0, i))])


# ---- right ones ----


@pytest.mark.parametrize(
    ("digits", "tokens", "centre", "codes"),
    [
        ((0, 0, 0), (48, 1148, 28600), 237952, (63057328, 63058428, 63085880)),
        ((0, 1, 0), (48, 1135, 28276), 235252, (62341828, 62342915, 62370056)),
        ((1, 0, 1), (47, 1124, 27987), 232852, (61705827, 61706904, 61733767)),
    ],
)
def test_worked_example(digits, tokens, centre, codes) -> None:
    result = run(Construction(3, 2), digits, neighbours(bare_star(3), 4))
    assert result == universality.Result(tokens, centre, codes)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize(
    ("n", "values", "dimension"),
    [(2, 2, 1), (3, 2, 1), (3, 3, 1), (4, 3, 1), (3, 2, 2), (5, 2, 1)],
)
def test_every_token_of_every_sequence_has_a_code_of_its_own(n, values, dimension) -> None:
    report = check(bare_star(n), n, values, dimension).raise_if_failed()
    sequences = (values**dimension) ** n
    assert len(report.results) == sequences
    assert report.distinct == n * sequences
    assert report.error == 0
    assert len(report.construction.shifts) == 2 * n


@pytest.mark.parametrize(
    "graph", [STAR, "Full()", "bigbird(block=1)", "longformer(window=2) | GlobalTokens([0])"]
)
def test_graphs_that_contain_the_star(graph: str) -> None:
    assert check(graph, 3).raise_if_failed().centre == 0


@pytest.mark.parametrize("seed", range(5))
def test_more_edges_change_nothing(seed: int) -> None:
    """Any graph that has the star, around any token, gives the numbers of the star alone."""
    draw = np.random.default_rng(seed)
    centre = int(draw.integers(5))
    mask = draw.random((5, 5)) < draw.random()
    mask[centre], mask[:, centre] = True, True
    mask[np.arange(5), np.arange(5)] = True
    mask[centre, centre] = draw.random() < 0.5
    graph = lb.Edges(np.argwhere(mask))
    report = check(graph, 4).raise_if_failed()
    assert report.centre is not None
    assert report.results == check(bare_star(4), 4).results


def test_a_star_has_to_be_in_every_head() -> None:
    both = lb.PerHead([lb.Full(), lb.GlobalTokens([1]) | lb.Window(0)])
    assert check(both, 3).raise_if_failed().centre == 1
    assert not check(lb.PerHead([lb.Full(), lb.Window(1)]), 3).ok


def test_one_shift() -> None:
    """z = (16; 1/2, 2, 4): token 1 alone is in the window, and moves by 2 (16 - 1/2)."""
    z = [Fraction(16), Fraction(1, 2), Fraction(2), Fraction(4)]
    shift = Shift(1, Fraction(-1, 4), Fraction(3, 4), 2)
    added = hardmax_shift(z, neighbours(bare_star(3), 4), shift)
    assert [a + b for a, b in zip(z, added, strict=True)] == [16, Fraction(63, 2), 2, 4]


def test_the_centre_falls_in_lexicographic_order() -> None:
    report = check(STAR, 4, 3)
    centres = [result.centre for result in report.results.values()]
    assert list(report.results) == sorted(report.results)
    assert centres == sorted(set(centres), reverse=True)


# ---- wrong ones ----


def test_the_factor_that_the_paper_prints_lets_two_sequences_collide() -> None:
    report = check(STAR, 3, rho=2)
    assert not report.ok
    assert not report.falls
    assert report.results[1, 0, 1].centre == report.results[0, 1, 0].centre == 71656


@pytest.mark.parametrize("n", [3, 4])
def test_every_edge_of_the_star_is_needed(n: int) -> None:
    star = bare_star(n).pairs.tolist()
    for missing in star:
        report = check(lb.Edges([edge for edge in star if edge != missing]), n)
        assert report.centre is None
        assert not report.ok
        assert report.wrong is not None, missing


@pytest.mark.parametrize("graph", ["Window(1)", "GlobalTokens([0])", "RandomBlocks(1, block=1)"])
def test_without_the_star_there_is_a_counter_example(graph: str) -> None:
    report = check(graph, 3)
    assert report.centre is None
    assert not report.ok
    assert report.collision is not None
    (one, first), (other, second) = report.collision
    assert (one, first) != (other, second)
    assert report.results[one].codes[first - 1] == report.results[other].codes[second - 1]
    assert "no star" in str(report)
    assert "the same code" in str(report)
    with pytest.raises(AssertionError, match="the same code"):
        report.raise_if_failed()


def test_codes_may_differ_by_luck() -> None:
    report = check("RandomBlocks(2, block=1)", 3)
    assert report.centre is None
    assert not report.ok
    assert report.collision is None
    assert report.distinct == 24
    assert report.wrong is not None
    assert "by luck" in str(report)


@pytest.mark.parametrize("factor", [0, 1, 2, 264, -265])
def test_a_last_factor_that_is_too_small_is_caught(
    factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Construction(3, 2).last_factor == 265
    monkeypatch.setattr(Construction, "last_factor", factor)
    assert not check(STAR, 3).ok
    monkeypatch.setattr(Construction, "last_factor", 266)  # a larger one does as well
    assert check(STAR, 3).ok


def test_a_last_layer_that_gives_something_else_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(universality, "BELOW", 10**9)  # above every z: the smallest
    assert "the last layer gave token 1" in str(check(STAR, 3))


def test_a_bias_on_the_key_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the paper prints it, no token moves."""

    def on_the_key(z, seen, shift):
        def head(i: int, bias: Fraction) -> Fraction:
            return z[max(seen[i], key=lambda j: z[i] * (z[j] - bias))]

        return [shift.rho * (head(i, shift.low) - head(i, shift.high)) for i in range(len(z))]

    monkeypatch.setattr(universality, "hardmax_shift", on_the_key)
    report = check(STAR, 3)
    assert not report.ok
    assert "moved the tokens []" in str(report)


@pytest.mark.parametrize("seed", range(6))
def test_a_changed_layer_is_caught(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A factor, or a window that lets in another token or leaves out its own."""
    right = Construction(3, 2).shifts
    changed = random.Random(seed).randrange(len(right))
    shift = right[changed]
    wrong = [
        Shift(shift.token, shift.low, shift.high, shift.rho + 1),
        Shift(shift.token, shift.low, shift.low + Fraction(1, 8), shift.rho),
        Shift(shift.token, shift.low - 10**6, shift.high + 10**6, shift.rho),
    ][seed % 3]
    layers = (*right[:changed], wrong, *right[changed + 1 :])
    monkeypatch.setattr(Construction, "shifts", layers)
    assert check(STAR, 3).wrong is not None


# ---- floating point ----


def test_where_float64_ends() -> None:
    assert check(STAR, 4, numbers="float64").ok
    five, six, seven = (check(STAR, n, numbers="float64") for n in (5, 6, 7))
    assert not five.ok
    assert five.falls
    assert six.falls
    assert not seven.falls
    assert check(STAR, 5).ok


@pytest.mark.slow  # a second or two
def test_fractions_go_on() -> None:
    assert check(STAR, 7).ok


def test_float64_is_exact_while_numbers_are_small() -> None:
    assert check(STAR, 3, numbers="float64").error == 0


def test_softmax_comes_close_as_it_gets_sharper() -> None:
    errors = [check(STAR, 3, softmax=scale).error for scale in (1, 20, 100)]
    assert errors[0] > 1000 > 10 > errors[1] > 1 > errors[2]
    assert errors[1] == pytest.approx(4.1458, abs=1e-3)
    assert errors[2] == 0


# ---- arguments ----


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="sequences of 20 tokens"):
        check(STAR, 20)
    with pytest.raises(ValueError, match="n must be"):
        check(STAR, 1)
    with pytest.raises(ValueError, match=r"3\^300000000 sequences"):
        check(STAR, 300_000_000, 3)
    for scale, said in ((-1.0, "above 0, received -1"), (1e308, r"1e\+308 overflows")):
        with pytest.raises(ValueError, match=said):
            check(STAR, 3, softmax=scale)


def test_the_picture(tmp_path) -> None:
    draw_codes([check(STAR), check("Window(1)")], tmp_path / "codes.svg")
    assert "the same code" in (tmp_path / "codes.svg").read_text()
    with pytest.raises(ValueError, match=r"ends in .png"):
        draw_codes([check(STAR)], tmp_path / "codes.txt")
