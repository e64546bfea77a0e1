"""Encoder-decoders made of an encoder, and what they compute of ragged batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import longbird as lb
from longbird.models.warm_start import seq2seq_config, warm_started

SIZES: dict[str, Any] = {
    "vocab_size": 60, "hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2,
    "intermediate_size": 48, "max_position_embeddings": 80,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"positions": "padding-aware", "pad_token_id": 1, "type_vocab_size": 1},
    "pegasus": {"norm": "pre", "embedding_norm": "none", "type_vocab_size": 0},
    "rescaled": {"rescale_embeddings": True},
    "longformer": {"global_projections": True},
    "etc": {"num_global_tokens": 4},
}


def encoder(**fields: Any) -> Any:
    torch.manual_seed(0)
    return lb.LongbirdModel(lb.LongbirdConfig(**SIZES, **fields)).eval()


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_are_the_encoder(kind: str) -> None:
    source = encoder(**KINDS[kind])
    model, new = warm_started(source, seq2seq_config(source.config, max_decoder_positions=100))
    model.eval()
    ids = torch.randint(3, 60, (2, 40))
    with torch.no_grad():
        expected = source(ids).last_hidden_state
        assert torch.allclose(model.model.encoder(ids).last_hidden_state, expected, atol=1e-5)
        if kind != "etc":  # the added tokens are seen by the first one, too
            # One token sees itself alone, in a decoder as in an encoder.
            first = model.model.decoder(ids[:, :1]).last_hidden_state
            assert torch.allclose(first, source(ids[:, :1]).last_hidden_state, atol=1e-5)
    assert new == []
    for layer in model.model.decoder.layers:
        ours, copy = layer.attention.state_dict(), layer.cross_attention.state_dict()
        assert all(torch.equal(copy[name], ours[name]) for name in copy)


def test_a_bias_by_distance_stays_in_the_encoder() -> None:
    source = encoder(relative_buckets=16, positions="none")
    model, new = warm_started(source, seq2seq_config(source.config))
    ids = torch.randint(3, 60, (1, 40))
    model.eval()
    out = model.model.encoder(ids).last_hidden_state
    assert torch.allclose(out, source(ids).last_hidden_state, atol=1e-5)
    assert new == ["model.decoder.positions.weight"]


def test_labels_of_a_head_are_left_behind() -> None:
    config = lb.LongbirdConfig(**SIZES, id2label={0: "sea", 1: "mine", 2: "sky"})
    assert "sea" not in (seq2seq_config(config).id2label or {}).values()


def test_a_causal_model_is_not_an_encoder() -> None:
    config = lb.LongbirdConfig(**SIZES, is_decoder=True)
    with pytest.raises(ValueError, match="start from an encoder"):
        seq2seq_config(config)


def test_a_folder_that_transformers_loads(tmp_path: Path) -> None:
    source = encoder()
    config = seq2seq_config(source.config, decoder_start_token_id=1, eos_token_id=2)
    model: Any = warm_started(source, config)[0].eval()
    model.save_pretrained(tmp_path)
    again: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert type(again).__name__ == "LongbirdForConditionalGeneration"
    ids = torch.randint(3, 60, (1, 40))
    options: Any = {"num_beams": 2, "max_new_tokens": 6}
    assert torch.equal(again.generate(ids, **options), model.generate(ids, **options))


@pytest.fixture(scope="module")
def ragged() -> tuple[Any, dict[str, torch.Tensor]]:
    source = encoder()
    model = warm_started(source, seq2seq_config(source.config))[0].eval()
    mask = torch.arange(70) < torch.tensor([[70], [9], [1], [20]])
    labels = torch.randint(3, 60, (4, 6))
    labels[1, 2:] = labels[3, 5:] = -100
    batch = {"input_ids": torch.randint(3, 60, (4, 70)), "attention_mask": mask.long()}
    return model, {**batch, "labels": labels}


def test_ragged_batches_give_what_padded_ones_give(ragged: Any) -> None:
    model, batch = ragged
    found = model(**batch)
    found.loss.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    padded = model(**batch, output_attentions=True)  # which wants every weight
    padded.loss.backward()
    assert torch.allclose(found.logits, padded.logits, atol=1e-5)
    for name, p in model.named_parameters():
        assert torch.allclose(gradients[name], p.grad, atol=1e-5), name
    model.zero_grad()


def test_padding_is_not_projected(ragged: Any) -> None:
    model, batch = ragged
    seen: list[int] = []
    key = model.model.decoder.layers[0].cross_attention.key
    hook = key.register_forward_hook(lambda _, given, out: seen.append(out.numel() // 32))
    model(**batch)
    hook.remove()
    assert seen == [70 + 9 + 1 + 20]


def test_logits_of_labelled_tokens_alone(ragged: Any) -> None:
    model, batch = ragged
    expected = model(**batch)
    model.config.sparse_prediction = True
    found = model(**batch)
    model.config.sparse_prediction = False
    assert torch.allclose(found.logits, expected.logits[batch["labels"] != -100], atol=1e-6)
    assert torch.allclose(found.loss, expected.loss, atol=1e-6)
