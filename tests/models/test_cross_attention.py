"""A causal decoder over what any encoder read, against BERT, RoBERTa and BigBird as decoders."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from theirs import large_weights
from torch import Tensor
from transformers import EncoderDecoderCache, EncoderDecoderModel

import longbird as lb

SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "pad_token_id": 1,
}
DECODER = {"is_decoder": True, "add_cross_attention": True}
CLOSE = {"atol": 2e-5, "rtol": 0}


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(4, 60, shape, generator=torch.Generator().manual_seed(seed))


TEXT, READ = draw(3, 9), torch.randn(3, 14, 24, generator=torch.Generator().manual_seed(1))
READ_MASK = (torch.arange(14) < torch.tensor([[14], [9], [2]])).long()
MASK = (torch.arange(9) < torch.tensor([[9], [6], [1]])).long()


def mended(model: Any) -> Any:
    """BigBird of transformers without two mistakes that it makes as a decoder (5.22).

    It hands what the encoder read to self-attention too, so that the decoder does not see what it
    wrote, and hands cross attention no mask.
    """
    for layer in model.bert.encoder.layer:
        own, cross = layer.attention.forward, layer.crossattention.forward

        def alone(*args: Any, own: Any = own, **kwargs: Any) -> Any:
            return own(*args, **{**kwargs, "encoder_hidden_states": None})

        def masked(*args: Any, cross: Any = cross, **kwargs: Any) -> Any:
            return cross(*args, **kwargs, encoder_attention_mask=kwargs.get("attention_mask"))

        layer.attention.forward, layer.crossattention.forward = alone, masked
    return model


def decoders(family: str, folder: Any) -> tuple[Any, Any]:
    """Theirs, and ours from the same file."""
    config, model = {
        "bert": (transformers.BertConfig, transformers.BertLMHeadModel),
        "roberta": (transformers.RobertaConfig, transformers.RobertaForCausalLM),
        "big_bird": (transformers.BigBirdConfig, transformers.BigBirdForCausalLM),
    }[family]
    theirs = model(config(**SIZES, **DECODER, attn_implementation="eager")).eval()
    large_weights(theirs)
    theirs.save_pretrained(folder)
    ours = lb.LongbirdForCausalLM.from_pretrained(folder)
    return (mended(theirs) if family == "big_bird" else theirs), ours


FAMILIES = ["bert", "roberta", "big_bird"]


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("padded", [False, True])
def test_equal_to_theirs(family, padded, tmp_path):
    theirs, ours = decoders(family, tmp_path)
    inputs: dict[str, Any] = {
        "input_ids": TEXT,
        "encoder_hidden_states": READ,
        "use_cache": False,
        "output_attentions": True,
        "output_hidden_states": True,
    }
    kept = torch.ones_like(TEXT)
    if padded:
        kept = MASK
        inputs |= {"attention_mask": MASK, "encoder_attention_mask": READ_MASK}
        inputs["input_ids"] = TEXT.masked_fill(MASK == 0, 1)
    expected, found = theirs(**inputs), ours(**inputs)
    torch.testing.assert_close(found.logits[kept != 0], expected.logits[kept != 0], **CLOSE)
    assert len(found.cross_attentions) == 2
    assert len(found.attentions) == 2
    for a, b in zip(found.cross_attentions, expected.cross_attentions, strict=True):
        assert a.shape == b.shape == (3, 3, 9, 14)
        torch.testing.assert_close(a, b * kept[:, None, :, None], **CLOSE)
    for a, b in zip(found.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(a[kept != 0], b[kept != 0], **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_saved_as_theirs_again(family, tmp_path):
    theirs, ours = decoders(family, tmp_path / "one")
    lb.save_checkpoint(ours, tmp_path / "two", family)
    again = type(theirs).from_pretrained(tmp_path / "two").eval()
    assert again.config.add_cross_attention
    assert again.config.is_decoder
    wanted = theirs.state_dict()
    for name, tensor in again.state_dict().items():
        # Nobody uses the pooler of a causal BigBird, and ours has none.
        assert torch.equal(tensor, wanted[name]) or "pooler" in name, name


@torch.no_grad()
@pytest.mark.parametrize("padded", [False, True])
def test_in_steps_with_a_cache(padded, tmp_path):
    theirs, ours = decoders("bert", tmp_path)
    more = {"encoder_hidden_states": READ}
    if padded:
        more["encoder_attention_mask"] = READ_MASK
    whole = ours(TEXT, **more, use_cache=False).logits
    torch.testing.assert_close(whole, theirs(TEXT, **more).logits, **CLOSE)
    cache: Any = None
    for start, end in ((0, 4), (4, 5), (5, 9)):
        out = ours(TEXT[:, start:end], **more, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        assert isinstance(cache, EncoderDecoderCache)
        assert isinstance(cache.self_attention_cache, lb.RollingCache)
        torch.testing.assert_close(out.logits, whole[:, start:end], **CLOSE)
    # What was read is not read again: other states change nothing.
    more["encoder_hidden_states"] = torch.zeros_like(READ)
    cached = ours(TEXT[:, :1], **more, past_key_values=cache).logits
    longer = {**more, "encoder_hidden_states": READ}
    expected = ours(torch.cat([TEXT, TEXT[:, :1]], 1), **longer, use_cache=False).logits[:, -1:]
    torch.testing.assert_close(cached, expected, **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"num_beams": 3}], ids=["greedy", "beams"])
def test_generation_by_the_decoder_alone(options, tmp_path):
    theirs, ours = decoders("bert", tmp_path)
    options |= {"max_new_tokens": 12, "do_sample": False, "encoder_hidden_states": READ}
    options |= {"encoder_attention_mask": READ_MASK, "eos_token_id": None, "pad_token_id": 1}
    written = ours.generate(TEXT[:, :2], **options)
    assert torch.equal(written, ours.generate(TEXT[:, :2], **options, use_cache=False))
    # Theirs makes itself a cache that has no place for what was read.
    assert torch.equal(written, theirs.generate(TEXT[:, :2], **options, use_cache=False))


# ---- inside EncoderDecoderModel ----


def pair(encoder: Any, decoder: Any) -> Any:
    model = EncoderDecoderModel(encoder=encoder, decoder=decoder).eval()
    model.config.decoder_start_token_id, model.config.pad_token_id = 2, 1
    model.config.eos_token_id = None
    generation = model.generation_config
    generation.decoder_start_token_id, generation.pad_token_id = 2, 1
    generation.bos_token_id = generation.eos_token_id = None
    return model


def encoders(folder: Any) -> tuple[Any, Any]:
    theirs = transformers.BertModel(transformers.BertConfig(**SIZES)).eval()
    large_weights(theirs, seed=1)
    theirs.save_pretrained(folder)
    return theirs, lb.LongbirdModel.from_pretrained(folder)


@torch.no_grad()
@pytest.mark.parametrize("encoder", ["theirs", "ours"])
@pytest.mark.parametrize("options", [{}, {"num_beams": 2}], ids=["greedy", "beams"])
def test_encoder_decoder_models(encoder, options, tmp_path):
    their_encoder, our_encoder = encoders(tmp_path / "encoder")
    their_decoder, our_decoder = decoders("bert", tmp_path / "decoder")
    theirs = pair(their_encoder, their_decoder)
    ours = pair(our_encoder if encoder == "ours" else their_encoder, our_decoder)
    text, mask = draw(3, 14, seed=3), READ_MASK
    inputs = {"input_ids": text, "attention_mask": mask, "decoder_input_ids": TEXT}
    torch.testing.assert_close(ours(**inputs).logits, theirs(**inputs).logits, **CLOSE)
    options |= {"max_new_tokens": 10, "do_sample": False, "attention_mask": mask}
    expected = theirs.generate(text, **options)
    assert torch.equal(ours.generate(text, **options), expected)
    assert torch.equal(ours.generate(text, **options, use_cache=False), expected)


@pytest.mark.filterwarnings("ignore:Version v4.12.0 introduces a better:FutureWarning")
def test_a_sparse_pair_trains_and_is_saved(tmp_path):
    """BigBird reads, a window with a global token writes; of other widths than each other."""
    wide = lb.LongbirdConfig(**{**SIZES, "hidden_size": 30}, graph=lb.bigbird(block=4, random=1))
    graph = lb.Window(4) | lb.GlobalTokens([0])
    narrow = lb.LongbirdConfig(**SIZES, **DECODER, graph=graph)
    model = pair(lb.LongbirdModel(wide), lb.LongbirdForCausalLM(narrow)).train()
    text = draw(2, 50, seed=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        loss = model(text, labels=TEXT[:2]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    for layer in model.decoder.longbird.layers:
        assert layer.cross_attention.key.weight.abs().sum() > 0
    model.save_pretrained(tmp_path)
    again = EncoderDecoderModel.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        inputs = {"input_ids": text, "decoder_input_ids": TEXT[:2]}
        torch.testing.assert_close(again(**inputs).logits, model.eval()(**inputs).logits)
        written = again.generate(text, max_new_tokens=8, do_sample=False)
        fresh = again.generate(text, max_new_tokens=8, do_sample=False, use_cache=False)
    assert torch.equal(written, fresh)


@pytest.mark.parametrize("family", ["ours", "bert"])
def test_a_decoder_from_an_encoder(family, tmp_path, caplog):
    """Its cross attention is new, and one line says so; an encoder-decoder's must be there."""
    if family == "ours":
        encoder = lb.LongbirdForMaskedLM(lb.LongbirdConfig(**SIZES, graph=lb.Window(4)))
    else:
        encoder = transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))
    encoder.save_pretrained(tmp_path)
    model = lb.LongbirdForCausalLM.from_pretrained(tmp_path, **DECODER)
    assert "cross_attention" in caplog.text
    weight = model.longbird.layers[1].cross_attention.query.weight
    assert weight.std().item() == pytest.approx(0.02, rel=0.3)
    assert torch.isfinite(model(TEXT, encoder_hidden_states=READ).logits).all()
    if family == "ours":
        both = EncoderDecoderModel.from_encoder_decoder_pretrained(tmp_path, tmp_path)
        assert isinstance(both.encoder, lb.LongbirdModel)
        assert not both.encoder.config.is_decoder
        assert isinstance(both.decoder, lb.LongbirdForCausalLM)
        assert both.decoder.config.add_cross_attention
        assert both(TEXT, decoder_input_ids=TEXT).logits.shape == (3, 9, 60)


def test_an_encoder_decoder_without_its_cross_attention(tmp_path):
    model = lb.LongbirdForConditionalGeneration(lb.LongbirdSeq2SeqConfig(**SIZES))
    state = {k: v for k, v in model.state_dict().items() if "cross_attention" not in k}
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"missing: .*cross_attention"):
        type(model).from_pretrained(None, config=model.config, state_dict=state)


def test_gradients_reach_the_encoder_under_checkpointing():
    model = lb.LongbirdForCausalLM(lb.LongbirdConfig(**SIZES, **DECODER, graph=lb.Window(4)))
    gradients = []
    for options in (None, {"use_reentrant": False}, {"use_reentrant": True}):
        model.train()
        if options is not None:
            model.gradient_checkpointing_enable(options)
        read = READ.clone().requires_grad_()
        model(TEXT, labels=TEXT, encoder_hidden_states=read).loss.backward()
        gradients.append(read.grad)
    assert gradients[0].abs().sum() > 0
    torch.testing.assert_close(gradients[1], gradients[0])
    torch.testing.assert_close(gradients[2], gradients[0])


# ---- what cannot be ----


@pytest.mark.parametrize(
    ("fields", "inputs", "said"),
    [
        ({}, {"encoder_hidden_states": READ}, "add_cross_attention=True"),
        (DECODER, {"encoder_hidden_states": READ[:2]}, r"encoder_hidden_states .*batch 3"),
        (DECODER, {"encoder_hidden_states": READ[..., :7]}, r"width 24, received \[3, 14, 7\]"),
        (DECODER, {"encoder_attention_mask": READ_MASK}, "needs encoder_hidden_states"),
        (
            DECODER,
            {"encoder_hidden_states": READ, "encoder_attention_mask": READ_MASK[:, :5]},
            r"\[3, 14\], received \[3, 5\]",
        ),
        (
            DECODER,
            {"encoder_hidden_states": READ, "encoder_attention_mask": -1e4 * READ_MASK},
            "must be 0 or 1",
        ),
    ],
)
def test_what_cross_attention_cannot_take(fields, inputs, said):
    model = lb.LongbirdForCausalLM(lb.LongbirdConfig(**SIZES, graph=lb.Window(4), **fields))
    with pytest.raises(ValueError, match=said):
        model(TEXT, **inputs)


def test_what_was_read_of_other_documents():
    model = lb.LongbirdForCausalLM(
        lb.LongbirdConfig(**SIZES, graph=lb.Window(4), **DECODER)
    ).eval()
    cache = model(TEXT, encoder_hidden_states=READ, use_cache=True).past_key_values
    with pytest.raises(ValueError, match=r"14 encoder states, .* has 12"):
        model(TEXT[:, :1], encoder_hidden_states=READ[:, :12], past_key_values=cache)
    writer = lb.LongbirdForConditionalGeneration(lb.LongbirdSeq2SeqConfig(**SIZES)).eval()
    long = draw(3, 20)
    cache = writer(long, decoder_input_ids=TEXT, use_cache=True).past_key_values
    with pytest.raises(ValueError, match=r"20 encoder states, .* has 15"):
        writer(long[:, :15], decoder_input_ids=TEXT[:, :1], past_key_values=cache)


def test_an_encoder_has_no_cross_attention():
    with pytest.raises(ValueError, match="needs is_decoder=True"):
        lb.LongbirdModel(lb.LongbirdConfig(**SIZES, add_cross_attention=True))


def test_a_decoder_without_anything_to_read():
    """Is the causal model that it is beside its cross attention."""
    config = lb.LongbirdConfig(**SIZES, graph=lb.Window(4), is_decoder=True)
    plain = lb.LongbirdForCausalLM(config).eval()
    fields = {**config.to_dict(), "add_cross_attention": True}
    decoder = lb.LongbirdForCausalLM(lb.LongbirdConfig(**fields)).eval()
    decoder.load_state_dict(plain.state_dict(), strict=False)
    torch.testing.assert_close(decoder(TEXT).logits, plain(TEXT).logits)
