"""Layouts against the dense definition, their growth, and their cache."""

import threading
import time

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

from longbird.core.graph import (
    BlockWindow,
    ByLength,
    Causal,
    Edges,
    ErdosRenyi,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Graph,
    LegacyBigBird,
    PerHead,
    RandomBlocks,
    WattsStrogatz,
    Window,
    bigbird,
    longformer,
)
from longbird.core.layout import Layout, Tiling, compile_layout
from longbird.core.layout.layout import estimate

LENGTHS = st.one_of(
    st.sampled_from([0, 1, 15, 16, 17, 63, 64, 65, 100, 128, 129, 257]), st.integers(0, 300)
)
BLOCKS = st.sampled_from([1, 3, 16, 20, 32, 64, 84, 130])
COUNTS = st.integers(0, 4)
SEEDS = st.integers(0, 100)


def pieces(depth: int) -> st.SearchStrategy[Graph]:
    simple = st.one_of(
        st.just(Full()),
        st.just(Causal()),
        st.builds(Window, st.sampled_from([0, 1, 5, 40, 200]), st.sampled_from([1, 1, 2, 3, 70])),
        st.builds(BlockWindow, st.sampled_from([1, 3, 5]), BLOCKS),
        st.builds(GlobalBlocks, COUNTS, COUNTS, BLOCKS),
        st.builds(ErdosRenyi, st.sampled_from([0.0, 0.001, 0.05, 0.5, 1.0]), SEEDS),
        st.builds(WattsStrogatz, st.sampled_from([0, 2, 6]), st.sampled_from([0.0, 0.2]), SEEDS),
        st.builds(RandomBlocks, COUNTS, BLOCKS, SEEDS),
        st.builds(bigbird, block=BLOCKS, random=COUNTS, seed=SEEDS),
        st.builds(
            LegacyBigBird,
            st.sampled_from(["huggingface", "huggingface_eval"]),
            block=st.sampled_from([4, 16]),
            random=st.sampled_from([0, 1, 2]),
        ),
        # Positions that exist at every length but zero.
        st.builds(GlobalTokens, st.sampled_from([(), (0,), (-1,), (0, -1)])),
    )
    if not depth:
        return simple
    deeper = pieces(depth - 1)
    return st.one_of(
        simple,
        st.builds(lambda a, b: a | b, deeper, deeper),
        st.builds(lambda a, b: a & b, deeper, deeper),
        st.builds(RandomBlocks, COUNTS, BLOCKS, SEEDS, avoid=deeper),
    )


def check_arrays(layout: Layout) -> None:
    """What kernels rely on."""
    heads, rows = layout.row_ptr.shape
    assert heads in (1, layout.heads)
    assert rows == layout.queries.count + 1
    assert layout.row_ptr[0, 0] == 0
    assert layout.row_ptr[-1, -1] == layout.entries == len(layout.mask_ids)
    assert (layout.row_ptr[1:, 0] == layout.row_ptr[:-1, -1]).all()
    assert (np.diff(layout.row_ptr, axis=1) >= 0).all()
    for begin, end in zip(layout.row_ptr[:, :-1].flat, layout.row_ptr[:, 1:].flat, strict=True):
        steps = np.diff(layout.columns[begin:end])
        assert (steps >= 0).all() if layout.multiset else (steps > 0).all()
    if layout.entries:
        assert 0 <= layout.columns.min() <= layout.columns.max() < layout.keys.count
        assert -1 <= layout.mask_ids.min() <= layout.mask_ids.max() < len(layout.masks)
    assert set(layout.mask_ids.tolist()) - {-1} == set(range(len(layout.masks)))
    assert len(np.unique(layout.masks, axis=0)) == len(layout.masks)
    assert layout.masks.shape[1:] == (layout.size, -(-layout.size // 8))
    for array, dtype in [
        (layout.row_ptr, np.int64),
        (layout.columns, np.int32),
        (layout.mask_ids, np.int32),
        (layout.masks, np.uint8),
        (layout.global_tokens, np.int32),
        (layout.queries.starts, np.int32),
    ]:
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert not array.flags.writeable
    for tiling in (layout.queries, layout.keys):
        assert tiling.starts[0] == 0
        assert (tiling.lengths > 0).all()
        assert (tiling.lengths <= tiling.size).all()


@settings(deadline=None, max_examples=150)
@given(
    graph=pieces(2),
    n=LENGTHS,
    heads=st.sampled_from([1, 2, 3]),
    block=st.sampled_from([None, None, 16, 64, 84, 1, 50, 128]),
    cut=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
@example(bigbird(), 257, 2, None, (0.3, 0.9))
@example(bigbird(84), 257, 2, None, (0.3, 0.9))
@example(bigbird(84) & Causal(), 257, 2, 64, (0.3, 0.31))
@example(Window(5, dilation=7) | GlobalTokens([0, -1]), 257, 1, None, (0.3, 0.9))
@example((Window(5, dilation=7) & Causal()) | Window(1, dilation=7), 257, 1, None, (0.3, 0.9))
@example(LegacyBigBird("huggingface_eval", 16, 1) | GlobalTokens([40]), 257, 2, None, (0, 1))
def test_layouts_are_the_dense_definition(graph, n, heads, block, cut):
    try:
        expected = graph.counts(n, heads)
    except ValueError:  # a global token of an empty sequence, or no legacy plan at this length
        with pytest.raises(ValueError):
            graph.layout(n, heads, block)
        return
    layout = graph.layout(n, heads, block)
    check_arrays(layout)
    assert layout.heads == heads
    assert (layout.dense() == expected).all()
    assert layout.edges() == expected.sum()
    assert block is None or layout.size == block

    start, stop = sorted(round(part * n) for part in cut)
    rows = graph.layout(n, heads, block, rows=(start, stop))
    check_arrays(rows)
    assert rows.queries.tokens == stop - start
    assert rows.keys.tokens == n
    assert (rows.dense() == expected[:, start:stop]).all()
    assert rows.edges() == expected[:, start:stop].sum()


@settings(deadline=None, max_examples=60)
@given(data=st.data(), n=st.integers(1, 200), block=st.sampled_from([None, 7, 64]))
def test_any_digraph(data, n, block):
    position = st.integers(0, n - 1)
    graph = Edges(data.draw(st.lists(st.tuples(position, position), max_size=200)))
    for combined in (graph, graph | Window(3), graph & Window(20), graph | BlockWindow(3, 16)):
        layout = combined.layout(n, 2, block)
        check_arrays(layout)
        assert (layout.dense() == combined.counts(n, 2)).all()


@pytest.mark.parametrize("n", [17, 100, 257])
def test_no_entry_is_empty_and_full_tiles_are_known(n):
    rules = (Window(9), Causal(), Window(5) & Causal(), Window(3, 5))
    for graph in (bigbird(16), bigbird(84), *rules):
        layout = graph.layout(n, 2, 16)
        queries, keys = layout.queries, layout.keys
        mask = graph.mask(n, 2)
        token = np.arange(n)
        row_order = token if queries.order is None else queries.order
        for head in range(len(layout.row_ptr)):
            for row in range(queries.count):
                i = row_order[queries.starts[row] : queries.starts[row + 1]]
                for entry in range(*layout.row_ptr[head, row : row + 2]):
                    c = layout.columns[entry]
                    j = row_order[keys.starts[c] : keys.starts[c + 1]]
                    tile = mask[head][np.ix_(i, j)]
                    assert tile.any()
                    assert tile.all() == (layout.mask_ids[entry] == -1)


def test_masks_are_key_major_and_little_endian():
    layout = Edges([(3, 9)]).layout(16)
    assert layout.size == 16
    assert layout.masks.shape == (1, 16, 2)
    expected = np.zeros((16, 2), np.uint8)
    expected[9, 0] = 1 << 3
    assert (layout.masks[0] == expected).all()


def test_heads_share_what_does_not_differ():
    assert Window(5).layout(100, heads=12).row_ptr.shape == (1, 3)
    assert bigbird().layout(1024, heads=12).row_ptr.shape == (12, 17)
    # Nothing is left to draw in a short sequence.
    assert bigbird().layout(128, heads=12).row_ptr.shape == (1, 3)
    assert Window(5).layout(100, heads=12).edges() == 12 * Window(5).mask(100).sum()


@pytest.mark.parametrize(
    ("graph", "size"),
    [
        (Full(), 64),
        (Window(7), 64),
        (GlobalTokens([0]), 64),
        (bigbird(16), 16),
        (bigbird(64), 64),
        (bigbird(84), 84),
        (bigbird(128), 128),
        (bigbird(256), 128),
        (bigbird(262), 64),  # 2 * 131 has no divisor between 16 and 128
        (bigbird(8), 64),
        (bigbird(10), 60),
        (Edges([(0, 1)]), 16),
        (bigbird(64) | Edges([(0, 1)]), 16),
        (BlockWindow(3, 84) | BlockWindow(3, 64), 64),
        (BlockWindow(3, 96) | BlockWindow(3, 64), 32),
    ],
    ids=repr,
)
def test_tile_size_suits_the_graph(graph, size):
    assert graph.layout(200).size == size


def test_global_tokens_of_a_union_are_kept_apart():
    layout = (Window(3) | GlobalTokens([0, -1]) | GlobalTokens([5])).layout(100)
    assert layout.global_tokens.tolist() == [0, 5, 99]
    assert layout.entries == Window(3).layout(100).entries
    inside = (GlobalTokens([0]) & Causal()).layout(100)
    assert inside.global_tokens.tolist() == []
    alone = GlobalTokens([1, 2]).layout(100, heads=2)
    assert alone.entries == 0
    assert alone.edges() == 2 * (100**2 - 98**2)


@pytest.mark.parametrize("dilation", [2, 3, 8, 50])
def test_a_dilated_window_costs_what_a_plain_one_does(dilation):
    n, radius = 64 * 8 * dilation, 100
    plain = Window(radius).layout(n)
    dilated = Window(radius, dilation).layout(n)
    assert dilated.keys.order is not None
    assert dilated.entries <= plain.entries
    assert len(dilated.masks) == len(plain.masks)
    causal = (Window(radius, dilation) & Causal()).layout(n)
    assert causal.entries <= (Window(radius) & Causal()).layout(n).entries
    assert longformer(2 * radius, dilation).layout(n).entries == dilated.entries


def test_strided_tiles_do_not_span_residues():
    tiling = Tiling.strided(103, size=16, step=4)
    assert tiling.order is not None
    assert sorted(tiling.order.tolist()) == list(range(103))
    for begin, end in zip(tiling.starts[:-1], tiling.starts[1:], strict=True):
        assert (np.diff(tiling.order[begin:end]) == 4).all()


def test_bigbird_layout_is_quick_and_grows_linearly():
    bigbird(seed=100).layout(1024, heads=12)
    start = time.process_time()
    layouts = {n: bigbird(seed=101).layout(n, heads=12) for n in (4096, 16384, 65536)}
    assert time.process_time() - start < 3
    per_row = {n: layout.entries / (n / 64) for n, layout in layouts.items()}
    assert per_row[65536] < 1.05 * per_row[4096]
    assert layouts[65536].nbytes < 2e6


@pytest.mark.parametrize(
    "graph",
    [
        Window(256),
        Window(256) & Causal(),
        (Window(64) | GlobalTokens([0])) & Causal(),
        longformer(512, dilation=4),
        Window(3, dilation=1000) | Window(2),
        Window(4, dilation=100_000),
        bigbird(random=1),
        bigbird() & Causal() & Window(1000),
        BlockWindow(3, 84) & Window(100),
        Edges([(0, 999_999), (5, 5)]) & Causal(),
    ],
    ids=repr,
)
def test_a_million_tokens(graph):
    start = time.process_time()
    layout = graph.layout(1_000_000)
    assert time.process_time() - start < 10
    assert layout.entries < 700_000
    assert len(layout.masks) < 500
    assert layout.nbytes < 20e6


def test_million_edges():
    rng = np.random.default_rng(0)
    graph = Edges(rng.integers(0, 200_000, (1_000_000, 2)))
    layout = graph.layout(200_000)
    assert layout.edges() == len(graph.pairs)
    check = rng.integers(0, len(graph.pairs), 20)
    for i, j in graph.pairs[check]:
        begin, end = layout.row_ptr[0, i // 16 : i // 16 + 2]
        entry = begin + np.searchsorted(layout.columns[begin:end], j // 16)
        assert layout.columns[entry] == j // 16
        assert layout.masks[layout.mask_ids[entry], j % 16, i % 16 // 8] >> (i % 8) & 1


def test_rows_of_random_graphs_are_those_of_the_whole():
    graph = bigbird(16, seed=3)
    whole = graph.layout(1000, 2).dense()
    for start in (0, 7, 16, 500, 999):
        row = graph.layout(1000, 2, rows=(start, start + 1)).dense()
        assert (row[:, 0] == whole[:, start]).all()


def test_layouts_are_cached():
    graph = bigbird(16, seed=77)
    assert graph.layout(500, 2) is bigbird(16, seed=77).layout(500, 2)
    assert graph.layout(500, 2) is compile_layout(graph, 500, 2, None, rows=(0, 500))
    assert graph.layout(500, 2) is not graph.layout(500, 3)
    assert graph.layout(500, 2) is not graph.layout(500, 2, 64)


def test_layouts_from_several_threads():
    found: list[bytes] = []

    def work():
        for seed in range(200, 220):
            layout = bigbird(16, seed=seed).layout(600, 2)
            found.append(layout.columns.tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert len(set(found)) == 20


def test_a_graph_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="a layout needs a graph, received 3"):
        compile_layout(3, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("tokens", [0, 1, 5, 12, 13])
@pytest.mark.parametrize("step", [1, 3])
def test_slots_list_every_token_once_in_the_order_of_the_tiles(tokens: int, step: int) -> None:
    tiling = Tiling.strided(tokens, 4, step) if step > 1 else Tiling.contiguous(tokens, 4)
    token, exists = tiling.slots
    assert token.shape == exists.shape == (tiling.count, 4)
    assert sorted(token[exists].tolist()) == list(range(tokens))
    assert exists.sum(axis=1).tolist() == tiling.lengths.tolist()
    assert token[:, 0].tolist() == tiling.first.tolist()
    flags = np.arange(tokens) % 2 == 0
    assert tiling.spread(flags).sum() == flags.sum()


@pytest.mark.parametrize(
    ("graph", "n"),
    [
        (Full(), 2_000_000_000),
        (Causal(), 100_000_000),
        (Window(10**6), 2_000_000_000),
        (Window(10**6, 70), 2_000_000_000),
        (ErdosRenyi(0.5), 1_000_000_000),
        (bigbird(random=100), 2_000_000_000),
        (GlobalBlocks(1000), 2_000_000_000),
        (GlobalTokens([0]) & Causal() | Full(), 2_000_000_000),
        (Full() & ErdosRenyi(0.9), 1_000_000_000),
        (PerHead([Full(), Window(1)]), 10_000_000),
        (ByLength({5: Window(1)}, Full()), 10_000_000),
    ],
    ids=repr,
)
def test_layouts_that_do_not_fit_into_memory_are_refused_at_once(graph, n, monkeypatch):
    monkeypatch.setattr("longbird.core.layout.memory.machine_bytes", lambda: 64e9)
    start = time.perf_counter()
    with pytest.raises(
        ValueError,
        match=r"would have about [\d.]+ \w+illion tiles, .* of the 64 GB that this process may",
    ):
        graph.layout(n, heads=2)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "graph",
    [
        Full(),
        Causal(),
        Window(5),
        Window(3000),
        Window(40, 3),
        Window(4, 500),
        Window(4, 500) | Window(1),
        BlockWindow(5, 84),
        GlobalTokens([0, 7000]) & Causal(),
        GlobalBlocks(2, 1, 16),
        bigbird(),
        bigbird(16),
        RandomBlocks(3, 200),
        ErdosRenyi(0.0001),
        ErdosRenyi(0.01),
        WattsStrogatz(8, 0.0),
        WattsStrogatz(8, 0.5),
        Edges(np.random.default_rng(0).integers(0, 9000, (500, 2))),
        LegacyBigBird("huggingface_eval"),
        bigbird() & Causal(),
        PerHead([Window(5), Full()]),
    ],
    ids=repr,
)
def test_the_size_of_a_layout_is_known_before(graph):
    layout = graph.layout(9000, heads=2)
    tiles, size, _ = estimate(graph, 9000, heads=2)
    assert size == layout.size
    assert layout.entries / 3 <= tiles <= layout.entries * 3


def test_memory_is_asked_for_only_where_it_may_be_short(monkeypatch):
    monkeypatch.setattr("longbird.core.layout.memory.machine_bytes", lambda: 0.0)
    assert bigbird(seed=987).layout(16384, 12).entries


def test_the_text_of_a_layout_is_a_line():
    assert repr(Window(3).layout(5000, heads=2)).startswith(
        "<Layout of 5,000 tokens, heads=2: 235 tiles of 64 x 64, "
    )
    assert "10 of 100 tokens" in str(Window(3).layout(100, rows=(10, 20)))
