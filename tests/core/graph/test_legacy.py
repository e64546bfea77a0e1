"""The plans of published BigBird checkpoints, against golden hashes and the code itself."""

import hashlib

import numpy as np
import pytest

from longbird.core.graph import LegacyBigBird


def digest(table: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(table, "<i4").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("plan", "n", "expected", "head"),
    [
        ("google", 4096, "c46970d98425a1ce", [[9, 14, 7], [9, 6, 7], [10, 5, 14]]),
        ("huggingface", 4096, "c46970d98425a1ce", [[9, 14, 7], [9, 6, 7], [10, 5, 14]]),
        ("google", 1024, "868d9dcb71bb7057", [[9, 14, 7], [9, 6, 7], [10, 5, 14]]),
        ("huggingface", 1024, "868d9dcb71bb7057", [[9, 14, 7], [9, 6, 7], [10, 5, 14]]),
        ("huggingface", 2048, "ab8baf030537d4a1", [[4, 6, 7], [4, 8, 5], [8, 1, 5]]),
    ],
)
def test_golden_tables(plan, n, expected, head):
    table = LegacyBigBird(plan).plan_table(n, heads=12)
    assert table.shape == (12, n // 64 - 2, 3)
    assert table.dtype == np.int32
    assert digest(table) == expected
    assert table[0, :3].tolist() == head


def test_overlaps_with_window_and_globals():
    """At 1,024 tokens random blocks repeat others, at other lengths they do not."""
    overlaps = {}
    for n in (768, 1024, 1536, 2048, 3072, 4096):
        overlaps[n] = 0
        m = n // 64
        for seed in range(12):
            table = LegacyBigBird("huggingface", seed=seed).plan_table(n, heads=12)
            row = np.arange(1, m - 1)[:, None]
            seen = (abs(table - row) <= 1) | (table == 0) | (table == m - 1)
            overlaps[n] += int(seen.sum())
    assert overlaps == {768: 0, 1024: 435, 1536: 0, 2048: 0, 3072: 0, 4096: 0}


def listed(m: int, table: np.ndarray) -> np.ndarray:
    """How often each block is listed, from the lists of the published code: [heads, m, m]."""
    counts = np.zeros((len(table), m, m), int)
    counts[:, [0, m - 1], :] = 1
    for head in range(len(table)):
        for i in range(1, m - 1):
            if i == 1:
                blocks = [0, 1, 2, m - 1]
            elif i == m - 2:
                blocks = [0, m - 3, m - 2, m - 1]
            else:
                blocks = [0, i - 1, i, i + 1, m - 1]
            for block in [*blocks, *table[head, i - 1]]:
                counts[head, i, block] += 1
    return counts


@pytest.mark.parametrize("plan", ["google", "huggingface", "huggingface_eval"])
@pytest.mark.parametrize("n", [128, 137, 256])
def test_pattern_is_the_published_lists(plan, n):
    graph = LegacyBigBird(plan, block=8, random=2, seed=3, full_up_to=72)
    table = graph.plan_table(n, heads=2)
    expected = listed(-(-n // 8), table).repeat(8, axis=1).repeat(8, axis=2)[:, :n, :n]
    assert (graph.counts(n, 2) == expected).all()
    assert (graph.layout(n, 2).dense() == expected).all()
    assert (graph.layout(n, 2, block=12).dense() == expected).all()
    assert graph.layout(n, 2).edges() == expected.sum()
    assert graph.layout(n, 2).multiset == (expected.max() > 1)


@pytest.mark.slow  # counts a million pairs
def test_multiplicity_at_1024():
    graph = LegacyBigBird("google", seed=0)
    counts = graph.counts(1024, 12)
    assert counts.max() == 2
    layout = graph.layout(1024, 12)
    assert layout.multiset
    assert (layout.dense() == counts).all()


def test_eval_counts_block_zero_again_for_every_random_block():
    graph = LegacyBigBird("huggingface_eval")
    assert not graph.per_head
    assert graph.reseed(5) == graph
    counts = graph.counts(1024)[0, ::64, ::64]
    assert (counts[1:-1, 0] == 4).all()
    assert counts[0, 0] == counts[-1, 0] == 1
    assert counts[1:-1, 1:].max() == 1
    layout = graph.layout(1024, 12)
    assert layout.row_ptr.shape == (1, 17)
    assert layout.multiset


@pytest.mark.parametrize(
    ("graph", "full"),
    [
        (LegacyBigBird("google"), 512),
        (LegacyBigBird("huggingface"), 704),
        (LegacyBigBird("huggingface_eval", block=16, random=2), 144),
        (LegacyBigBird("huggingface", full_up_to=1000), 1000),
    ],
    ids=repr,
)
def test_short_lengths_are_full(graph, full):
    for n in (0, 1, full):
        assert graph.mask(n).all()
        assert graph.counts(n).sum() == n * n
        assert graph.layout(n).edges() == n * n
    assert not graph.mask(full + 3 * graph.block + 1).all()


@pytest.mark.parametrize(
    ("graph", "n", "message"),
    [
        (LegacyBigBird("google", full_up_to=0), 150, "needs 4 blocks of 64 tokens or more"),
        (LegacyBigBird("google", full_up_to=0, random=3), 256, "only 0 blocks to draw 3 from"),
        (LegacyBigBird("google"), 513, "only 0 blocks to draw 2 from .* full_up_to"),
        (LegacyBigBird("huggingface", max_length=2048), 4096, "max_length=2048 tokens at most"),
        (LegacyBigBird("google", block=256, max_length=4096), 2048, "blocks to draw 3 from"),
    ],
    ids=repr,
)
def test_lengths_that_a_plan_cannot_serve(graph, n, message):
    for method in (graph.mask, graph.layout):
        with pytest.raises(ValueError, match=message):
            method(n)


def test_global_random_state_is_untouched():
    before = np.random.get_state()
    LegacyBigBird("google").plan_table(4096, 2)
    after = np.random.get_state()
    assert (before[1] == after[1]).all()
    assert before[2:] == after[2:]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("n", "block", "random"),
    [(1024, 64, 3), (3072, 64, 3), (4096, 64, 3), (768, 64, 3), (2048, 64, 2), (400, 16, 4)],
)
def test_tables_are_those_of_transformers(n, block, random, training):
    from transformers.models.big_bird import modeling_big_bird as big_bird

    config = big_bird.BigBirdConfig(
        hidden_size=24, num_attention_heads=3, block_size=block, num_random_blocks=random
    )
    module = big_bird.BigBirdBlockSparseAttention(config, seed=0).train(training)
    state = np.random.get_state()
    np.random.seed(5)
    if n in (1024, 3072, 4096):
        rows = n // block - 2
        args = (4096, 4096, block, block, random)
        expected = [module._bigbird_block_rand_mask(*args, last_idx=1024)[:rows] for _ in range(3)]
    else:
        plan_lengths, plan_counts = module._get_rand_attn_plan(n, block, random)
        expected = module._bigbird_block_rand_mask_with_head(
            from_seq_length=n,
            to_seq_length=n,
            from_block_size=block,
            to_block_size=block,
            num_heads=3,
            plan_from_length=plan_lengths,
            plan_num_rand_blocks=plan_counts,
        )
    np.random.set_state(state)
    plan = "huggingface" if training else "huggingface_eval"
    graph = LegacyBigBird(plan, block=block, random=random, seed=5)
    assert (graph.plan_table(n, heads=3) == np.stack(expected)).all()


@pytest.mark.parametrize(("n", "random"), [(8 * 16, 3), (21 * 16, 8), (25 * 16, 10)])
def test_plans_of_short_lengths_are_those_of_transformers(n, random):
    """Lengths that Hugging Face's models serve with full attention, and Google's do not."""
    from transformers.models.big_bird import modeling_big_bird as big_bird

    config = big_bird.BigBirdConfig(hidden_size=24, num_attention_heads=3, block_size=16)
    module = big_bird.BigBirdBlockSparseAttention(config, seed=0).train()
    plan_lengths, plan_counts = module._get_rand_attn_plan(n, 16, random)
    state = np.random.get_state()
    np.random.seed(1)
    expected = module._bigbird_block_rand_mask_with_head(
        n, n, 16, 16, 3, plan_from_length=plan_lengths, plan_num_rand_blocks=plan_counts
    )
    np.random.set_state(state)
    graph = LegacyBigBird("google", block=16, random=random, seed=1, full_up_to=0)
    assert (graph.plan_table(n, heads=3) == np.stack(expected)).all()
