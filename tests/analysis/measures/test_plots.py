"""The plots say what the papers say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longbird.analysis.measures import plots


def y(plot: plots.Plot, name: str) -> np.ndarray:
    return np.array([value for _, value in plot.curves[name]], float)


def test_paths_grow_as_stated() -> None:
    plot = plots.path_lengths((256, 512, 1024))
    window, random = y(plot, "window, radius 8"), y(plot, "random, 16 keys")
    assert window[1:] / window[:-1] == pytest.approx([2, 2], rel=0.05)
    assert np.diff(random) == pytest.approx(np.log(2) / np.log(16), rel=0.4)
    laws = [[value for _, value in points] for points in plot.laws.values()]
    assert window == pytest.approx(laws[0], rel=0.02)
    assert random == pytest.approx(laws[1], rel=0.1)
    assert (y(plot, "window and 2 random keys") < window).all()


def test_clustering_stays_with_the_window_at_any_length() -> None:
    plot = plots.clustering((256, 512, 1024))
    assert y(plot, "none rewired") == pytest.approx(0.7)
    for name, law in zip(plot.curves, plot.laws.values(), strict=True):
        assert y(plot, name) == pytest.approx([value for _, value in law], rel=0.08), name


def test_a_gap_stays_open_with_random_edges() -> None:
    plot = plots.spectral_gaps((256, 512, 1024))
    window, random = ([value for _, value in points] for points in plot.laws.values())
    assert y(plot, "window, radius 8") == pytest.approx(window, rel=0.05)
    assert y(plot, "random, 16 neighbours") == pytest.approx(random, rel=0.1)
    assert (y(plot, "window and 2 random keys") > 0.1).all()


def test_clustering_falls_after_paths_do() -> None:
    plot = plots.rewiring(n=500, k=8)
    (law,) = plot.laws.values()
    assert y(plot, "clustering") == pytest.approx([value for _, value in law], abs=0.05)
    at = [beta for beta, _ in law].index(0.03)
    assert y(plot, "clustering")[at] > 0.8
    assert y(plot, "average path length")[at] < 0.5


def test_random_edges_push_the_second_eigenvalue_away() -> None:
    plot = plots.second_eigenvalues(512, (16, 64))
    random = plot.curves["random"]
    assert [value for _, value in random] == pytest.approx(
        [2 / degree**0.5 for degree, _ in random], rel=0.25
    )
    assert (y(plot, "window") > 0.9).all()
    assert (y(plot, "half window, half random") < y(plot, "window")).all()


def test_a_global_token_gives_two_hops() -> None:
    plot = plots.global_token((256, 512))
    assert y(plot, "the same and a global token").tolist() == [2, 2]
    assert y(plot, "window, radius 8").tolist() == [32, 64]


def test_layers_of_the_published_patterns() -> None:
    plot = plots.layers_until_seen((256, 1024))
    assert [value for _, value in plot.curves["dilated window"]] == [None, None]
    assert y(plot, "sparse window").tolist() == [np.ceil(255 / 24), np.ceil(1023 / 24)]
    for name in (
        "Longformer",
        "BigBird-ITC",
        "BigBird-ETC",
        "strided Sparse Transformer (causal)",
    ):
        assert y(plot, name).tolist() == [2, 2], name


def test_all_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "PLOTS", {"layers": lambda: plots.layers_until_seen((128, 256))})
    (file,) = plots.draw_all(tmp_path / "new")
    assert file.name == "layers.png"
    assert file.stat().st_size > 10_000
