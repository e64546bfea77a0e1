"""`output_attentions` and `output_hidden_states` against the models of transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

import longbird as lb

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 40,
    "initializer_range": 0.2,
}
CLOSE = {"atol": 2e-6, "rtol": 0}


def both(theirs: Any, folder: Path, ours: Any = lb.LongbirdModel, **options: Any) -> Any:
    """Their model with random weights, and ours with the same."""
    theirs.eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    theirs.save_pretrained(folder)
    return theirs, ours.from_pretrained(folder, **options)


def documents(n: int, *empty: slice) -> tuple[Tensor, Tensor]:
    ids = torch.randint(3, 60, (len(empty), n), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    for row, places in enumerate(empty):
        mask[row, places] = 0
    return ids.masked_fill(mask == 0, 1), mask


def assert_rows_are_distributions(rows: Any, lengths: list[int]) -> None:
    """Of every real query, over keys of its own document, which are in order."""
    dense = rows.dense(max(lengths))
    for row, n in enumerate(lengths):
        sums = torch.ones(dense.shape[1], n)
        torch.testing.assert_close(dense[row, :, :n, :n].sum(-1), sums)
        assert not dense[row, :, n:].any()
        assert not dense[row, :, :, n:].any()
    starts, ends = rows.row_ptr[:-1], rows.row_ptr[1:]
    inside = torch.ones(len(rows.keys), dtype=torch.bool)
    inside[starts[ends > starts]] = False
    assert (rows.keys.diff()[inside[1:]] > 0).all()
    assert (rows.weights >= 0).all()


def assert_same_states(found: Any, expected: Any, mask: Tensor) -> None:
    assert len(found.hidden_states) == len(expected.hidden_states) == 3
    for ours, theirs in zip(found.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours[mask != 0], theirs[mask != 0], atol=2e-5, rtol=0)
        assert not ours[mask == 0].any()
    assert torch.equal(found.hidden_states[-1], found.last_hidden_state)


# ---- dense models ----


@torch.no_grad()
@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_dense_models(family, tmp_path):
    config, model = {
        "bert": (transformers.BertConfig, transformers.BertModel),
        "roberta": (transformers.RobertaConfig, transformers.RobertaModel),
        "mpnet": (transformers.MPNetConfig, transformers.MPNetModel),
    }[family]
    chosen = config(**SIZES, pad_token_id=1, attn_implementation="eager")
    theirs, ours = both(model(chosen), tmp_path)
    ids, mask = documents(20, slice(0, 0), slice(13, 20), slice(19, 20))
    asked = {"attention_mask": mask, "output_attentions": True, "output_hidden_states": True}
    expected, found = theirs(ids, **asked), ours(ids, **asked)
    assert len(found.attentions) == 2
    for rows, weights in zip(found.attentions, expected.attentions, strict=True):
        assert rows.shape == (3, 4, 20)
        assert_rows_are_distributions(rows, [20, 13, 19])
        torch.testing.assert_close(
            rows.dense(20), weights * mask[:, None, :, None], **CLOSE
        )  # fmt: skip
    assert_same_states(found, expected, mask)


@torch.no_grad()
def test_rows_count_the_tokens_of_their_document(tmp_path):
    """Wherever the padding is, as if the document were alone."""
    _, ours = both(transformers.BertModel(transformers.BertConfig(**SIZES)), tmp_path)
    ids, mask = documents(20, slice(0, 7), slice(4, 8))
    found = ours(ids, attention_mask=mask, output_attentions=True).attentions
    for row in range(2):
        alone = ours(ids[row : row + 1, mask[row] != 0], output_attentions=True).attentions
        for rows, one in zip(found, alone, strict=True):
            n = one.shape[-1]
            torch.testing.assert_close(rows.dense(20)[row, :, :n, :n], one.dense(n)[0], **CLOSE)
            keys, weights = rows.row(row, 2, 5)
            assert keys.tolist() == list(range(n))
            torch.testing.assert_close(weights, one.dense(n)[0, 2, 5], **CLOSE)


# ---- BigBird ----


@torch.no_grad()
@pytest.mark.parametrize("n", [160, 203])
def test_bigbird(n, tmp_path):
    """As trained: transformers has the random blocks of training in training mode alone."""
    theirs, ours = both(
        transformers.BigBirdModel(
            transformers.BigBirdConfig(
                **SIZES,
                block_size=8,
                num_random_blocks=2,
                max_position_embeddings=256,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
            )
        ),
        tmp_path,
    )
    ids, _ = documents(n, slice(0, 0))
    expected = theirs.train()(ids, output_attentions=True).attentions
    found = ours(ids, output_attentions=True).attentions
    for rows, weights in zip(found, expected, strict=True):
        assert_rows_are_distributions(rows, [n])
        weights = weights[:, :, :n, :n]
        # A block that is there twice is written once: such rows of theirs do not sum to 1.
        whole = (weights.sum(-1) - 1).abs() < 1e-5
        assert whole.float().mean() > 0.5
        torch.testing.assert_close(rows.dense(n)[whole], weights[whole], **CLOSE)


@torch.no_grad()
def test_nothing_quadratic():
    """The entries of a long document are those of the graph."""
    config = lb.LongbirdConfig(
        **SIZES, max_position_embeddings=3000, sep_token_id=None, graph=lb.Window(3)
    )
    model = lb.LongbirdModel(config).eval()
    ids = torch.zeros(1, 3000, dtype=torch.int64) + 5
    rows = model(ids, output_attentions=True).attentions[1]
    assert len(rows.keys) == 4 * (7 * 3000 - 12)
    keys, weights = rows.row(0, 3, 1500)
    assert keys.tolist() == list(range(1497, 1504))
    assert weights.sum() == pytest.approx(1.0)


# ---- Longformer ----


def longformer_dense(local: Tensor, to_all: Tensor | None, marked: Tensor, lengths: list[int]):
    """The n x n matrix from what transformers returns.

    A row of `local` has the weights of all global tokens, then those of the window of i, w / 2
    before it to w / 2 after it. Global tokens have their rows in `to_all`, [..., key, number].
    """
    batch, heads, n, width = local.shape
    most = int(marked.sum(1).max())
    half = (width - most - 1) // 2
    dense = torch.zeros(batch, heads, n, n)
    for row, length in enumerate(lengths):
        hubs = marked[row].nonzero()[:, 0].tolist()
        for i in range(length):
            if i in hubs:
                dense[row, :, i] = to_all[row, :, :n, hubs.index(i)]
                continue
            for number, hub in enumerate(hubs):
                dense[row, :, i, hub] += local[row, :, i, number]
            for j in range(max(0, i - half), min(n, i + half + 1)):
                dense[row, :, i, j] += local[row, :, i, most + j - i + half]
    return dense


@torch.no_grad()
@pytest.mark.parametrize("hubs", [(), (0,), (0, 3, 17)], ids=["none", "one", "three"])
def test_longformer(hubs, tmp_path):
    config = transformers.LongformerConfig(
        **SIZES, attention_window=[6, 8], max_position_embeddings=80, pad_token_id=1
    )
    theirs, ours = both(transformers.LongformerModel(config), tmp_path)
    ids, mask = documents(24, slice(0, 0), slice(19, 24))
    marked = torch.zeros_like(mask)
    marked[:, list(hubs)] = 1
    if len(hubs) > 1:
        marked[1, 3] = 0  # documents differ in the number of global tokens
    asked = {
        "attention_mask": mask,
        "global_attention_mask": marked,
        "output_attentions": True,
        "output_hidden_states": True,
    }
    expected, found = theirs(ids, **asked), ours(ids, **asked)
    for layer, rows in enumerate(found.attentions):
        assert_rows_are_distributions(rows, [24, 19])
        to_all = expected.global_attentions[layer] if hubs else None
        dense = longformer_dense(expected.attentions[layer], to_all, marked, [24, 19])
        torch.testing.assert_close(rows.dense(24), dense, **CLOSE)
    assert_same_states(found, expected, mask)


# ---- decoders ----


@torch.no_grad()
def test_led(tmp_path):
    config = transformers.LEDConfig(
        vocab_size=60,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=40,
        decoder_ffn_dim=40,
        attention_window=6,
        max_encoder_position_embeddings=80,
        max_decoder_position_embeddings=40,
    )
    theirs, ours = both(
        transformers.LEDForConditionalGeneration(config),
        tmp_path,
        lb.LongbirdForConditionalGeneration,
    )
    ids, mask = documents(24, slice(0, 0), slice(19, 24))
    marked = (torch.arange(24) == 0).long().expand(2, 24)
    asked = {
        "attention_mask": mask,
        "global_attention_mask": marked,
        "decoder_input_ids": ids[:, :5],
        "output_attentions": True,
        "output_hidden_states": True,
    }
    expected, found = theirs(ids, **asked), ours(ids, **asked)
    for layer in range(2):
        dense = longformer_dense(
            expected.encoder_attentions[layer],
            expected.encoder_global_attentions[layer],
            marked,
            [24, 19],
        )
        torch.testing.assert_close(found.encoder_attentions[layer].dense(24), dense, **CLOSE)
    for name in ("decoder_attentions", "cross_attentions", "decoder_hidden_states"):
        pairs = zip(getattr(found, name), getattr(expected, name), strict=True)
        for ours_of_layer, theirs_of_layer in pairs:
            torch.testing.assert_close(ours_of_layer, theirs_of_layer, atol=2e-5, rtol=0)


def test_attentions_of_a_causal_model():
    graph = lb.Window(3) | lb.GlobalTokens([0])
    config = lb.LongbirdConfig(**SIZES, sep_token_id=None, graph=graph)
    model = lb.LongbirdForCausalLM(config).eval()
    ids, _ = documents(12, slice(0, 0))
    with torch.no_grad():
        rows = model(ids, output_attentions=True).attentions[0]
    assert_rows_are_distributions(rows, [12])
    assert torch.equal(
        rows.dense(12)[0, 0] > 0, torch.from_numpy((graph & lb.Causal()).mask(12)[0])
    )


@torch.no_grad()
@pytest.mark.parametrize("relative", [{}, {"positions": "none", "relative_buckets": 8}])
def test_attentions_after_a_cache_are_those_of_the_whole(relative):
    """In token numbers of each document, also of those that the cache has left padded."""
    graph = lb.Window(3) | lb.GlobalTokens([0])
    config = lb.LongbirdConfig(**SIZES, sep_token_id=None, graph=graph, **relative)
    model = lb.LongbirdForCausalLM(config).eval()
    ids = torch.randint(5, 50, (2, 14), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, :5] = 0
    cache = model(ids[:, :9], attention_mask=mask[:, :9], use_cache=True).past_key_values
    for start, end in ((9, 10), (10, 14)):
        found = model(
            ids[:, start:end],
            attention_mask=mask[:, :end],
            past_key_values=cache,
            output_attentions=True,
        ).attentions
        for row, padded in ((0, 0), (1, 5)):
            alone = model(ids[row : row + 1, padded:], use_cache=False, output_attentions=True)
            for layer, whole in enumerate(alone.attentions):
                expected = whole.dense(14)[0, :, start - padded : end - padded]
                assert found[layer].shape == (2, SIZES["num_attention_heads"], end - start)
                torch.testing.assert_close(found[layer].dense(14)[row], expected, **CLOSE)


# ---- what is asked for ----


@torch.no_grad()
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_hidden_states_of_every_layer(norm):
    config = lb.LongbirdConfig(**SIZES, sep_token_id=None, norm=norm)
    model = lb.LongbirdModel(config).eval()
    ids, mask = documents(20, slice(0, 0), slice(13, 20))
    seen = []
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    out = model(ids, attention_mask=mask, output_hidden_states=True)
    for before, states in zip(seen, out.hidden_states, strict=False):
        assert torch.equal(states[mask != 0], before)
    assert torch.equal(out.hidden_states[-1], out.last_hidden_state)
    plain = model(ids, attention_mask=mask)
    assert plain.hidden_states is None
    assert plain.attentions is None
    assert torch.equal(plain.last_hidden_state, out.last_hidden_state)


@torch.no_grad()
def test_the_configuration_may_ask_and_tuples_are_given():
    config = lb.LongbirdConfig(
        **SIZES, sep_token_id=None, output_hidden_states=True, output_attentions=True
    )
    model = lb.LongbirdForMaskedLM(config).eval()
    ids, _ = documents(20, slice(0, 0))
    out = model(ids)
    assert len(out.hidden_states) == 3
    assert len(out.attentions) == 2
    logits, states, attentions = model(ids, return_dict=False)
    assert torch.equal(logits, out.logits)
    assert len(states) == 3
    assert len(attentions) == 2
    bare = model(ids, output_hidden_states=False, output_attentions=False)
    assert list(bare) == ["logits"]


def test_attentions_have_gradients():
    config = lb.LongbirdConfig(**SIZES, sep_token_id=None, graph=lb.Window(3))
    model = lb.LongbirdModel(config).eval()
    ids, _ = documents(20, slice(0, 0))
    rows = model(ids, output_attentions=True).attentions[1]
    rows.weights.square().sum().backward()
    assert model.layers[1].attention.query.weight.grad.any()
    assert model.layers[0].attention.value.weight.grad.any()
