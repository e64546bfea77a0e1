from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import longbird as lb
from longbird.cost import Calibration, Curve, calibrate, computed_pairs, plan

# One nanosecond a pair for both, and a call of sparse attention costs 0.1 ms before it begins.
SPARSE = Curve(((10**6, 1.1e-3), (10**7, 1.01e-2)))
DENSE = Curve(((10**6, 1.0e-3), (10**7, 1.0e-2)))
KNOWN = Calibration(SPARSE, DENSE, implementation="native", threads=2, seconds=0.5)


def test_curve_goes_through_its_points_and_straight_beyond():
    curve = Curve(((10, 1.0), (20, 3.0), (40, 4.0)))
    assert [curve(x) for x in (10, 15, 20, 30, 40, 80)] == [1.0, 2.0, 3.0, 3.5, 4.0, 6.0]
    assert curve.seconds_per_pair == pytest.approx(0.05)


def test_curve_is_never_negative():
    steep = Curve(((10, 1.0), (20, 3.0)))
    falling = Curve(((10, 3.0), (20, 1.0)))
    assert steep(0) == 0.0 and steep(1) > 0
    assert falling(1000) > 0


@pytest.mark.parametrize("points", [(), ((1, 1.0),), ((2, 1.0), (1, 2.0)), ((1, 1.0), (1, 2.0))])
def test_curve_refuses_points_that_make_no_curve(points):
    with pytest.raises(ValueError, match="ascending"):
        Curve(points)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200, 1000])
@pytest.mark.parametrize(
    "graph",
    [
        lb.bigbird(block=16),
        lb.Window(5) | lb.GlobalTokens([0]),
        lb.Window(3, dilation=4),
        lb.Full(),
    ],
)
def test_computed_pairs_are_whole_tiles(graph, n):
    layout = graph.layout(n, heads=3)
    rows, columns = np.diff(layout.queries.starts), np.diff(layout.keys.starts)
    expected = 0
    for head in range(layout.heads):
        pointers = layout.row_ptr[head % len(layout.row_ptr)]
        for row in range(layout.queries.count):
            for column in layout.columns[pointers[row] : pointers[row + 1]]:
                expected += int(rows[row] * columns[column])
        expected += len(layout.global_tokens) * 2 * n
    assert computed_pairs(layout) == expected >= layout.edges()


def test_counts_follow_the_layout():
    graph = lb.bigbird()
    planned = plan(graph, 1024, heads=12, head_dim=64, calibration=KNOWN)
    assert planned.edges == int(graph.mask(1024, heads=12).sum())
    assert planned.computed == planned.edges  # every block of this graph is full
    assert planned.flops == planned.flops_computed == planned.edges * 4 * 64
    assert planned.seconds == pytest.approx(1e-4 + 1e-9 * planned.computed)
    assert planned.dense_seconds == pytest.approx(1e-9 * 12 * 1024**2)
    assert planned.bytes_inputs == 3 * planned.bytes_output == 3 * 12 * 1024 * 64 * 4
    assert planned.bytes_saved == 12 * 1024 * 4
    assert planned.bytes_gradients == 0


def test_backward_batch_layers_and_dtype_scale():
    one = plan(lb.bigbird(), 1024, calibration=KNOWN)
    config = {"graph": lb.bigbird().to_json(), "heads": 12, "head_dim": 64, "layers": 3}
    more = plan(config, 1024, batch=2, dtype=torch.bfloat16, backward=True, calibration=KNOWN)
    assert more.graph == one.graph
    assert more.flops == 3 * 2 * one.flops * 14 // 4
    assert more.edges == one.edges
    assert more.bytes_inputs == 2 * one.bytes_inputs // 2
    assert more.bytes_saved == 3 * 2 * one.bytes_saved
    assert more.bytes_gradients > 0
    assert more.seconds == pytest.approx(3 * SPARSE(2 * one.computed))
    assert more.bytes_extra > one.bytes_extra


def test_memory_is_linear_in_length():
    short, long = (plan(lb.bigbird(), n, backward=True, calibration=KNOWN) for n in (8192, 32768))
    assert long.bytes_extra < 4.1 * short.bytes_extra


def test_scratch_is_unknown_without_native():
    other = dataclasses.replace(KNOWN, implementation="gather")
    planned = plan(lb.bigbird(), 512, calibration=other)
    assert planned.bytes_scratch is None
    assert "scratch" not in str(planned)


def test_crossover_is_where_sparse_begins_to_win():
    graph = lb.bigbird(block=16)
    planned = plan(graph, 4096, heads=2, calibration=KNOWN)

    def wins(n: int) -> bool:
        return SPARSE(computed_pairs(graph.layout(n, heads=2))) < DENSE(2 * n * n)

    last_lost = max(n for n in range(8, 1024, 8) if not wins(n))
    assert planned.crossover is not None
    assert last_lost < planned.crossover <= last_lost + 8 + 16
    assert wins(planned.crossover)


def test_crossover_is_none_where_dense_always_wins():
    planned = plan(lb.Full(), 300, heads=1, calibration=KNOWN)
    assert planned.crossover is None
    assert "dense is faster at every length up to 8,192" in str(planned)


def test_crossover_copes_with_graphs_that_short_lengths_do_not_have():
    planned = plan(lb.Window(4) | lb.GlobalTokens([100]), 512, heads=1, calibration=KNOWN)
    assert planned.crossover is not None and planned.crossover > 100


def test_text_names_everything_that_matters():
    text = str(plan(lb.bigbird(), 16384, backward=True, calibration=KNOWN))
    for part in (
        "16,384 tokens",
        "12 heads of 64",
        "forward and backward",
        "GFLOP",
        "layout",
        "scratch",
        "dense",
        "sparse wins from",
        "2 threads",
        "native",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("bigbird", 512), TypeError, "expected a Graph"),
        ((lb.bigbird(), 0), ValueError, "n is 0"),
        ((lb.bigbird(), 5.5), ValueError, "n is 5.5"),
        (({"heads": 2}, 512), ValueError, "'graph'"),
        (({"graph": lb.bigbird(), "colour": 1}, 512), ValueError, "colour"),
        (({"graph": lb.bigbird(), "heads": 0}, 512), ValueError, "heads is 0"),
        (({"graph": lb.bigbird(), "layers": -1}, 512), ValueError, "layers is -1"),
        ((lb.GlobalTokens([600]), 512), ValueError, "600"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        plan(*arguments, calibration=KNOWN)


@pytest.mark.filterwarnings("ignore:longbird runs without its native kernels")
def test_calibration_is_short_cached_and_leaves_random_state_alone():
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    first = calibrate(heads=1, head_dim=16, block=16)
    assert calibrate(heads=1, head_dim=16, block=16) is first
    assert first.seconds < 20  # under two on an idle machine; tests do not run on one
    assert first.threads == torch.get_num_threads()
    assert first.sparse(10**6) > 0 and first.dense(10**6) > 0
    assert torch.equal(before, torch.get_rng_state())
    assert (numpy_before == np.random.get_state()[1]).all()


@pytest.mark.filterwarnings("ignore:longbird runs without its native kernels")
def test_command_prints_the_plan():
    from typer.testing import CliRunner

    from longbird.cli.app import app

    line = ["plan", "Window(8)", "-n", "300", "--heads", "1", "--head-dim", "16", "--layers", "2"]
    answer = CliRunner().invoke(app, line)
    assert answer.exit_code == 0, answer.output
    assert "300 tokens" in answer.output and "2 layers" in answer.output
