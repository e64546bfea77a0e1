from __future__ import annotations

import dataclasses
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import longbird as lb
from longbird.analysis.calibration import Calibration, Curve, calibrate, computed_pairs
from longbird.analysis.plan import plan
from longbird.core.graph import as_graph
from longbird.core.operator import native
from longbird.core.operator.call import Call

needs_native = pytest.mark.skipif(native.missing() is not None, reason="needs the native kernels")

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
    assert steep(0) == 0.0
    assert steep(1) > 0
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


def config_like(**fields):
    base = {"graph": lb.bigbird(), "num_attention_heads": 4, "hidden_size": 128}
    return SimpleNamespace(**{**base, "num_hidden_layers": 3, **fields})


@pytest.mark.parametrize("graph", ["bigbird(block=32) | GlobalTokens([0])", '{"type": "Full"}'])
def test_a_graph_may_be_text(graph):
    assert plan(graph, 300, calibration=KNOWN).graph == as_graph(graph)
    in_mapping = plan({"graph": graph, "layers": 2}, 300, calibration=KNOWN)
    assert in_mapping.graph == as_graph(graph)
    assert in_mapping.layers == 2


def test_a_configuration_says_layers_heads_and_sizes():
    planned = plan(config_like(), 500, heads=99, head_dim=99, calibration=KNOWN)
    assert (planned.layers, planned.heads, planned.head_dim) == (3, 4, 32)
    alone = plan(lb.bigbird(), 500, heads=4, head_dim=32, calibration=KNOWN)
    assert planned.flops == 3 * alone.flops
    assert planned.edges == alone.edges
    assert planned.seconds == pytest.approx(3 * alone.seconds)
    assert plan(config_like(head_dim=8), 500, calibration=KNOWN).head_dim == 8


def test_layers_of_a_configuration_may_differ():
    graphs = [lb.Window(4), lb.Full(), "Window(4)"]
    planned = plan(config_like(graph=graphs), 200, calibration=KNOWN)
    each = [plan(g, 200, heads=4, head_dim=32, calibration=KNOWN) for g in graphs]
    assert planned.flops == sum(one.flops for one in each)
    assert planned.edges == sum(one.edges for one in each) // 3
    assert planned.seconds == pytest.approx(sum(one.seconds for one in each))
    assert planned.bytes_layout == each[0].bytes_layout + each[1].bytes_layout
    with pytest.raises(ValueError, match="received 2 graphs for 3 layers"):
        plan(config_like(graph=graphs[:2]), 200, calibration=KNOWN)


def test_a_longbird_configuration_is_planned_layer_by_layer():
    config = lb.LongbirdConfig(
        num_hidden_layers=2, num_attention_heads=4, hidden_size=64, graph="bigbird(block=16)"
    )
    planned = plan(config, 300, calibration=KNOWN)
    layouts = [graph.layout(300, heads=4) for graph in config.layer_graphs]
    assert planned.edges == layouts[0].edges()
    assert planned.bytes_layout == 2 * layouts[0].nbytes  # each layer keeps its own random blocks
    windows = lb.LongbirdConfig(num_hidden_layers=2, graph=lb.Window(8))
    assert plan(windows, 300, calibration=KNOWN).bytes_layout == lb.Window(8).layout(300).nbytes


@pytest.mark.parametrize("n", [10**6, 3 * 10**7, 2 * 10**9])
@pytest.mark.parametrize(
    "graph",
    ["Full()", "Causal() & Window(500000000)", "ErdosRenyi(0.01)", "GlobalBlocks(200000, 0)"],
)
def test_what_takes_long_is_refused_at_once_with_its_size(graph, n):
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"about [\d.]+ \w+ tiles .* and take [\d.]+ .B to build"):
        plan(graph, n, calibration=KNOWN)
    assert time.perf_counter() - start < 5  # at once, on a machine that does other things too


@pytest.mark.parametrize("graph", ["GlobalTokens([0])", "Window(64)", "bigbird"])
def test_billions_of_tokens_are_refused_whatever_the_graph(graph):
    with pytest.raises(ValueError, match=r"over 2,000,000,000 tokens .* GB to build"):
        plan(graph, 2 * 10**9, calibration=KNOWN)


@pytest.mark.slow  # lays out a million tokens, as promised
def test_a_million_tokens_are_planned():
    planned = plan(config_like(), 10**6, calibration=KNOWN)
    assert planned.density < 0.01
    assert planned.speedup > 100


def test_crossover_is_searched_as_far_as_layouts_are_quick_to_build(monkeypatch):
    monkeypatch.setattr("longbird.analysis.plan.MOST_LISTED", 100_000)
    assert (
        plan(lb.ErdosRenyi(0.9), 64, calibration=KNOWN).crossover_searched == 256
    )  # 59,000 edges
    assert plan(lb.Window(4), 64, calibration=KNOWN).crossover_searched == 8192


@needs_native
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("graph", [lb.bigbird(block=16), lb.Window(5) | lb.GlobalTokens([0])])
def test_scratch_is_what_the_kernels_say(graph, dtype):
    planned = plan(graph, 500, heads=3, head_dim=40, batch=2, dtype=dtype, calibration=KNOWN)
    q = torch.zeros(2, 3, 500, 40, dtype=dtype)
    call = Call.checked(q, q, q, graph)
    assert planned.bytes_scratch == native.work_space(call, threads=2, backward=False)
    assert native.work_space(call, 2, True) > native.work_space(call, 2, False) > 0


@needs_native
def test_scratch_counts_the_copies_of_keys():
    """Interleaved heads, as models have them, are copied tile by tile, up to 1,024 of them."""
    plain = plan(lb.Window(5), 4096, heads=4, head_dim=32, calibration=KNOWN)
    model = plan(config_like(graph=lb.Window(5)), 4096, calibration=KNOWN)
    longer = plan(config_like(graph=lb.Window(5)), 2**18, calibration=KNOWN)
    copies = 2 * 2 * 4096 * 32 * 4  # threads, k and v, tokens, channels, bytes
    assert copies <= model.bytes_scratch - plain.bytes_scratch < 1.01 * copies
    assert 16 * copies <= longer.bytes_scratch < 18 * copies
    half = plan(lb.Window(5), 4096, heads=4, head_dim=32, dtype=torch.bfloat16, calibration=KNOWN)
    assert copies <= half.bytes_scratch - plain.bytes_scratch < 1.01 * copies


@needs_native
def test_scratch_grows_with_threads_and_not_with_the_batch():
    def scratch(threads: int, **options: int) -> int:
        known = dataclasses.replace(KNOWN, threads=threads)
        found = plan(lb.bigbird(), 4096, backward=True, calibration=known, **options).bytes_scratch
        assert found is not None
        return found

    assert scratch(2) < scratch(4) < 2.1 * scratch(2)
    assert scratch(2, batch=8) < 1.3 * scratch(2)


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
    assert planned.crossover is not None
    assert planned.crossover > 100


def test_text_names_everything_that_matters():
    text = str(plan(lb.bigbird(), 16384, backward=True, calibration=KNOWN))
    assert text.startswith("graph       bigbird()\n")
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
        (("bigbirb", 512), ValueError, "'bigbirb' is not a graph"),
        ((7, 512), TypeError, "received 7"),
        ((lb.bigbird(), 0), ValueError, "n must be an integer >= 1, received 0"),
        ((lb.bigbird(), 5.5), TypeError, "n must be an integer >= 1, received 5.5"),
        ((lb.bigbird(), True), TypeError, "received True"),
        ((lb.bigbird(), 3 * 10**9), ValueError, "at most 2147483647, received 3000000000"),
        (({"heads": 2}, 512), ValueError, "'graph'"),
        (({"graph": lb.bigbird(), "colour": 1}, 512), ValueError, "colour"),
        (({"graph": lb.bigbird(), "heads": 0}, 512), ValueError, "heads must be .* received 0"),
        (
            ({"graph": lb.bigbird(), "layers": -1}, 512),
            ValueError,
            "layers must .* received -1",
        ),
        ((lb.GlobalTokens([600]), 512), ValueError, "600"),
        (
            (SimpleNamespace(num_attention_heads=2), 512),
            TypeError,
            "without graph and hidden",
        ),
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
    assert first.sparse(10**6) > 0
    assert first.dense(10**6) > 0
    assert torch.equal(before, torch.get_rng_state())
    assert (numpy_before == np.random.get_state()[1]).all()


@pytest.mark.filterwarnings("ignore:longbird runs without its native kernels")
def test_command_prints_the_plan():
    from typer.testing import CliRunner

    from longbird.cli.app import app

    line = ["plan", "Window(8)", "-n", "300", "--heads", "1", "--head-dim", "16", "--layers", "2"]
    answer = CliRunner().invoke(app, line)
    assert answer.exit_code == 0, answer.output
    assert "300 tokens" in answer.output
    assert "2 layers" in answer.output
