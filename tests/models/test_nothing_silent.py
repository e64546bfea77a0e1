"""What went wrong once, or nearly: silence where an error or another result was due."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from theirs import configuration, large_weights, theirs_of

import longbird as lb

SIZES: dict[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 20,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 256,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
IDS = torch.arange(6, 26)[None]


def config(**changes: Any) -> Any:
    return lb.LongbirdConfig(**{**SIZES, **changes})


def writer(**changes: Any) -> Any:
    return lb.LongbirdSeq2SeqConfig(**{**SIZES, "max_decoder_positions": 64, **changes})


def edit(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def close(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, atol=2e-5, rtol=0)


# ---- checkpoints


@pytest.mark.parametrize(
    ("family", "head", "name"),
    [
        ("bert", "LongbirdForMaskedLM", "cls.predictions.decoder.weight"),
        ("roberta", "LongbirdForMaskedLM", "lm_head.decoder.weight"),
        ("bigbird_pegasus", "LongbirdForConditionalGeneration", "lm_head.weight"),
    ],
)
def test_a_tied_configuration_with_a_head_of_its_own(family, head, name, tmp_path):
    theirs = theirs_of(family, head, configuration(family, head))
    theirs.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors[name] = torch.randn(120, 32, generator=torch.Generator().manual_seed(0))
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    again = type(theirs).from_pretrained(tmp_path)
    ours = getattr(lb, head).from_pretrained(tmp_path, random_blocks="hf_eval")
    more = {"decoder_input_ids": IDS[:, :5]} if "pegasus" in family else {}
    close(ours(IDS, **more).logits, again.eval()(IDS, **more).logits)
    ours.save_pretrained(tmp_path / "ours")
    close(
        type(ours).from_pretrained(tmp_path / "ours")(IDS, **more).logits, ours(IDS, **more).logits
    )


@pytest.mark.parametrize(
    ("family", "head"),
    [
        ("bert", "LongbirdModel"),
        ("roberta", "LongbirdForTokenClassification"),
        ("big_bird", "LongbirdModel"),
    ],
)
def test_a_decoder_without_a_language_model_head_is_causal(family, head, tmp_path):
    full = {"attention_type": "original_full"} if family == "big_bird" else {}
    theirs = theirs_of(family, head, configuration(family, head, is_decoder=True, **full))
    theirs.save_pretrained(tmp_path / "theirs")
    ours = getattr(lb, head).from_pretrained(tmp_path / "theirs")
    close(ours(IDS)[0], theirs(IDS)[0])
    lb.save_checkpoint(ours, tmp_path / "again", family)
    close(type(theirs).from_pretrained(tmp_path / "again").eval()(IDS)[0], theirs(IDS)[0])


def test_our_own_decoder_without_a_head_is_causal():
    model = lb.LongbirdModel(config(is_decoder=True, graph=lb.Window(4))).eval()
    changed = IDS.clone()
    changed[0, -1] = 5
    a, b = (model(ids).last_hidden_state[:, :-1] for ids in (IDS, changed))
    assert torch.equal(a, b)


def test_two_tensors_for_one_place_are_refused(tmp_path):
    transformers.BertForMaskedLM(transformers.BertConfig(**SIZES)).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    for name in ("embeddings.word_embeddings.weight", "bert.embeddings.LayerNorm.gamma"):
        more = {**tensors, name: torch.zeros(99, 20)}
        save_file(more, tmp_path / "model.safetensors", {"format": "pt"})
        with pytest.raises(ValueError, match=r"two names|would both become"):
            lb.LongbirdForMaskedLM.from_pretrained(tmp_path)


@pytest.mark.parametrize("foreign", [True, False])
def test_other_labels(foreign, tmp_path):
    if foreign:
        sizes = transformers.RobertaConfig(**SIZES, num_labels=3)
        transformers.RobertaForSequenceClassification(sizes).save_pretrained(tmp_path)
    else:
        lb.LongbirdForSequenceClassification(config(num_labels=3)).save_pretrained(tmp_path)
    load = lb.LongbirdForSequenceClassification.from_pretrained
    assert load(tmp_path).num_labels == 3
    model = load(tmp_path, num_labels=7)
    assert model(IDS).logits.shape == (1, 7)
    before = load(tmp_path).classifier.dense.weight
    assert torch.equal(model.classifier.dense.weight, before)


def test_poolers_come_and_go_between_our_own_classes(tmp_path, caplog):
    lb.LongbirdModel(config()).save_pretrained(tmp_path / "with")
    with_one = lb.LongbirdForEmbedding.from_pretrained(tmp_path / "with")
    with_one.save_pretrained(tmp_path / "without")
    without = transformers.AutoModel.from_pretrained(tmp_path / "without")
    assert type(without) is lb.LongbirdModel
    assert without(IDS).pooler_output is None
    masked = lb.LongbirdForMaskedLM(config())
    masked.save_pretrained(tmp_path / "masked")
    caplog.clear()
    lb.LongbirdModel.from_pretrained(tmp_path / "masked")
    (record,) = caplog.records
    assert "in the file, but not used: lm_head.bias" in record.message


def test_options_that_transformers_has_too(tmp_path):
    theirs = transformers.BertModel(transformers.BertConfig(**SIZES))
    theirs.save_pretrained(tmp_path / "inner")
    load = lb.LongbirdModel.from_pretrained
    model = load(tmp_path, subfolder="inner", dtype="bfloat16", device_map="cpu")
    assert model.dtype == torch.bfloat16
    with pytest.raises(ValueError, match="dtype must be"):
        load(tmp_path / "inner", dtype="float17")
    with pytest.raises(TypeError, match="name=value"):
        load(tmp_path / "inner", False)
    load(tmp_path / "inner").save_pretrained(tmp_path / "own" / "inner")
    load(tmp_path / "own", subfolder="inner")
    with pytest.raises(ValueError, match="pickle"):
        load(tmp_path / "own" / "inner", use_safetensors=False)


@pytest.mark.parametrize(
    "fields",
    [{"decoder_layers": 10**8}, {"num_hidden_layers": 10**8}, {"attn_implementation": "a/b"}],
)
def test_configurations_that_would_take_for_ever_or_bring_code(fields, tmp_path):
    lb.LongbirdForConditionalGeneration(writer()).save_pretrained(tmp_path)
    edit(tmp_path, **fields)
    with pytest.raises(ValueError, match=r"layers|hub"):
        lb.LongbirdForConditionalGeneration.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("family", "fields", "said"),
    [
        ("big_bird", {"attention_type": "nope"}, "attention_type"),
        ("longformer", {"attention_window": [8]}, "one window for each"),
    ],
)
def test_patterns_that_transformers_refuses(family, fields, said, tmp_path):
    theirs_of(family, "LongbirdModel", configuration(family)).save_pretrained(tmp_path)
    edit(tmp_path, **fields)
    with pytest.raises(ValueError, match=said):
        lb.LongbirdModel.from_pretrained(tmp_path)


# ---- convert


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"num_hidden_layers": 10**7}, "layers"), ({"vocab_size": 10**11}, "vocab_size")],
)
def test_converting_looks_at_the_file_first(fields, said, tmp_path):
    transformers.BertModel(transformers.BertConfig(**SIZES)).save_pretrained(tmp_path / "short")
    edit(tmp_path / "short", **fields)
    with pytest.raises(ValueError, match=said):
        lb.convert_checkpoint(tmp_path / "short", tmp_path / "long", 300)


@pytest.mark.parametrize("pad", [0, 3])
def test_converting_an_mpnet_with_another_pad_token(pad, tmp_path):
    sizes = transformers.MPNetConfig(**SIZES, pad_token_id=pad)
    model = transformers.MPNetModel(sizes)
    large_weights(model)
    model.save_pretrained(tmp_path / "short")
    certificate = lb.convert_checkpoint(tmp_path / "short", tmp_path / "long", 300)
    assert certificate.tokens == (254, 300)
    assert certificate.exact


def test_where_a_converted_model_cannot_be_written(tmp_path):
    transformers.BertModel(transformers.BertConfig(**SIZES)).save_pretrained(tmp_path / "short")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for out in (tmp_path / "link", "."):
        with pytest.raises(FileExistsError):
            lb.convert_checkpoint(tmp_path / "short", out, 300)


# ---- configurations


@pytest.mark.parametrize(
    "fields",
    [
        {"relative_buckets": 3},
        {"relative_buckets": 32, "relative_max_distance": 8},
        {"global_max_distance": -7},
        {"classifier_dropout": 3.0},
        {"positions": "padding-aware", "pad_token_id": None},
        {"positions": "padding-aware", "position_padding_id": 10**9},
    ],
)
def test_values_that_no_model_can_have(fields):
    with pytest.raises(ValueError, match="received"):
        config(**fields)


def test_a_graph_as_the_command_line_has_it():
    assert config(graph="bigbird(block=16)").graph == lb.bigbird(block=16)
    each = config(graph=["Window(3)", lb.Full()]).layer_graphs
    assert each == [lb.Window(3), lb.Full()]
    with pytest.raises(TypeError, match=r"such as longbird\.bigbird\(\)"):
        config(graph=3)


def test_a_graph_that_is_changed_later(tmp_path):
    model = lb.LongbirdModel(config(graph=lb.Window(8)))
    model.save_pretrained(tmp_path)
    model.config.graph = lb.Full()
    with pytest.raises(ValueError, match=r"from_pretrained\(folder, graph=\.\.\.\)"):
        model(IDS)
    assert lb.LongbirdModel.from_pretrained(tmp_path, graph=lb.Full()).config.graph == lb.Full()


def test_the_decoder_follows_the_encoder():
    small = writer(decoder_layers=1)
    assert (small.decoder_attention_heads, small.decoder_intermediate_size) == (2, 32)
    assert small.decoder_layers == 1


# ---- inputs


@pytest.mark.parametrize("odd", [2, -1, 0.5, -1e4, float("nan")])
@pytest.mark.parametrize("name", ["attention_mask", "global_attention_mask"])
def test_masks_are_zeros_and_ones(name, odd):
    mask = torch.ones(IDS.shape)
    mask[0, 3] = odd
    with pytest.raises(ValueError, match=f"{name} must be 0 or 1"):
        lb.LongbirdModel(config())(IDS, **{name: mask})


@pytest.mark.parametrize(
    "given", [{"input_ids": IDS[0]}, {"inputs_embeds": torch.zeros(3, 20)}, {}]
)
def test_inputs_of_other_shapes(given):
    with pytest.raises(ValueError, match=r"input_ids \[batch, n\] or inputs_embeds"):
        lb.LongbirdModel(config())(**given)


def test_positions_for_a_model_without():
    with pytest.raises(ValueError, match="received position_ids"):
        lb.LongbirdModel(config(positions="none"))(IDS, position_ids=IDS)


def test_added_global_tokens_need_no_separators():
    fields = {"num_global_tokens": 3, "global_projections": True}
    assert lb.LongbirdForQuestionAnswering(config(**fields))(IDS).start_logits.shape == (1, 20)
    assert lb.LongbirdForMultipleChoice(config(**fields))(IDS[None]).logits.shape == (1, 1)


@pytest.mark.parametrize(
    "labels",
    [
        {"answer_types": torch.tensor([0])},
        {"start_positions": torch.tensor([1])},
        {"sentence_positions": torch.tensor([[1]])},
        {"sentence_support": torch.tensor([[1]])},
    ],
)
def test_labels_that_nothing_is_learned_from(labels):
    with pytest.raises(ValueError, match=r"needs .* in the (same call|configuration)"):
        lb.LongbirdForQuestionAnswering(config())(IDS, **labels)


def test_a_batch_without_sentences_has_no_loss_of_them():
    model = lb.LongbirdForQuestionAnswering(config(supporting_sentences=True))
    none = {"sentence_positions": torch.full((1, 1), -1), "sentence_support": torch.zeros(1, 1)}
    assert model(IDS, **none).loss == 0


def test_labels_of_another_length():
    model = lb.LongbirdForConditionalGeneration(writer())
    with pytest.raises(ValueError, match=r"labels must be of shape \[1, 2\], received \[1, 3\]"):
        model(IDS, decoder_input_ids=IDS[:, :2], labels=IDS[:, :3])
    embeddings = model.get_input_embeddings()(IDS[:, :3])
    assert model(IDS, decoder_inputs_embeds=embeddings, labels=IDS[:, :3]).loss > 0


@pytest.mark.parametrize("task", ["QuestionAnswering", "SequenceClassification"])
def test_heads_of_encoder_decoders_take_padding_at_the_end(task):
    model = getattr(lb, f"LongbirdSeq2SeqFor{task}")(writer(eos_token_id=25)).eval()
    empty = torch.zeros(1, 10, dtype=torch.long)
    mask = torch.cat([torch.ones_like(IDS), empty], 1)
    padded = model(torch.cat([IDS, empty], 1), attention_mask=mask)[0]
    alone = model(IDS)[0]
    close(padded[:, : alone.shape[1]], alone)
    if task == "QuestionAnswering":
        assert (padded[:, 20:] == -1e6).all()
    with pytest.raises(ValueError, match="padding at the end"):
        model(torch.cat([empty, IDS], 1), attention_mask=mask.flip(1))


# ---- caches


def test_a_pad_token_in_the_text_has_no_position_after_a_cache_either():
    fields = {"graph": lb.Window(8), "positions": "padding-aware", "pad_token_id": 1}
    model = lb.LongbirdForCausalLM(config(**fields, eos_token_id=1)).eval()
    large_weights(model)
    ids = torch.tensor([[5, 6, 1, 7, 8, 1, 9], [5, 1, 1, 7, 8, 4, 9]])
    full = model(ids, use_cache=False).logits
    cache = None
    for start, end in ((0, 4), (4, 5), (5, 7)):
        out = model(ids[:, start:end], past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        close(out.logits, full[:, start:end])
    cache.reorder_cache(torch.tensor([1, 0]))
    more = torch.tensor([[3], [4]])
    again = model(torch.cat([ids.flip(0), more], 1), use_cache=False).logits[:, -1:]
    close(model(more, past_key_values=cache).logits, again)


def test_the_cache_of_another_graph():
    model = lb.LongbirdForCausalLM(config(graph=lb.Window(8)))
    for graphs in ([lb.Window(1) & lb.Causal()] * 2, [lb.Window(8) & lb.Causal()]):
        with pytest.raises(ValueError, match="other graphs"):
            model(IDS, past_key_values=lb.RollingCache(graphs))


def test_the_trainer_gives_the_number_of_labels_to_writers():
    assert lb.LongbirdForConditionalGeneration.accepts_loss_kwargs
    model = lb.LongbirdForConditionalGeneration(writer()).eval()
    whole, part = (
        model(IDS, labels=IDS[:, :4], num_items_in_batch=count).loss for count in (4, 8)
    )
    close(whole, 2 * part)
