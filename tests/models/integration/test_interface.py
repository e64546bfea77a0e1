"""attn_implementation="longbird" equals the models of transformers under the mask of the graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from torch import Tensor, nn

import longbird as lb

VOCABULARY, HEADS, N = 50, 4, 45
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": HEADS,
    "intermediate_size": 48,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
GPT2 = {
    "n_embd": 32, "n_layer": 3, "n_head": HEADS, "vocab_size": VOCABULARY, "n_positions": 64,
    "scale_attn_by_inverse_layer_idx": True,
}  # fmt: skip
DISTILBERT = {
    "dim": 32, "n_layers": 3, "n_heads": HEADS, "hidden_dim": 48, "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
}  # fmt: skip

# Without a window, with one on both sides (ModernBERT), causal, and causal with one (Mistral).
BUILDERS: dict[str, Callable[[], hf.PreTrainedConfig]] = {
    "bert": lambda: hf.BertConfig(**SHAPE),
    "roberta": lambda: hf.RobertaConfig(**SHAPE),
    "xlm-roberta": lambda: hf.XLMRobertaConfig(**SHAPE),
    "electra": lambda: hf.ElectraConfig(**SHAPE, embedding_size=16),
    "distilbert": lambda: hf.DistilBertConfig(**DISTILBERT),
    "albert": lambda: hf.AlbertConfig(**SHAPE, embedding_size=16),
    "modernbert": lambda: hf.ModernBertConfig(
        **SHAPE,
        local_attention=14,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
    ),
    "llama": lambda: hf.LlamaConfig(**SHAPE, num_key_value_heads=2),
    "mistral": lambda: hf.MistralConfig(**SHAPE, num_key_value_heads=2, sliding_window=9),
    "gpt2": lambda: hf.GPT2Config(**GPT2),
}
GRAPHS = {
    "full": lb.Full(),
    "bigbird": lb.bigbird(block=4),
    "window": lb.Window(3) | lb.GlobalTokens([0, -1]),
}


def build(name: str) -> Any:
    torch.manual_seed(0)
    return hf.AutoModel.from_config(BUILDERS[name]()).eval()


def batch(padding: str) -> tuple[Tensor, Tensor | None]:
    """Tokens, and a mask with documents of 45, 30 and 11 tokens; or without padding."""
    tokens = torch.randint(3, VOCABULARY, (3, N), generator=torch.Generator().manual_seed(1))
    if padding == "none":
        return tokens, None
    lengths = torch.tensor([N, 30, 11])
    kept = torch.arange(N) < lengths[:, None]
    if padding == "left":
        kept = kept.flip(1)
    if padding == "holes":
        kept = torch.rand(3, N, generator=torch.Generator().manual_seed(2)) < 0.7
    return torch.where(kept, tokens, 0), kept.long()


def hidden(model: Any, tokens: Tensor, mask: Tensor | None) -> Tensor:
    cached = (
        {} if model.config.model_type in ("distilbert", "modernbert") else {"use_cache": False}
    )
    return model(tokens, attention_mask=mask, **cached).last_hidden_state


def on_graph(model: Any, graph: lb.Graph) -> Any:
    model.config.longbird_graph = graph
    model.set_attn_implementation("longbird")
    return model


def attentions(model: nn.Module) -> list[nn.Module]:
    return [module for module in model.modules() if hasattr(module, "is_causal")]


@contextmanager
def dense(model: Any, graph: lb.Graph, mask: Tensor | None) -> Iterator[None]:
    """The eager model, each layer's own mask restricted to the edges of its graph."""
    kept = torch.ones(3, N, dtype=torch.bool) if mask is None else mask.bool()
    lowest = torch.finfo(torch.float32).min

    def restrict(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        own = args[1] if len(args) > 1 else kwargs["attention_mask"]
        layer = getattr(module, "layer_idx", None) or 0
        allowed = torch.ones(3, HEADS, N, N, dtype=torch.bool)
        for row in range(3):
            places = kept[row].nonzero()[:, 0]
            edges = torch.from_numpy(graph.reseed(layer).mask(len(places), HEADS))
            allowed[row][:, places[:, None], places] = edges
        both = torch.where(allowed, 0.0 if own is None else own, lowest)
        return args[:1], {**kwargs, "attention_mask": both}

    model.set_attn_implementation("eager")
    hooks = [
        module.register_forward_pre_hook(restrict, with_kwargs=True)
        for module in attentions(model)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def assert_same(found: Tensor, expected: Tensor, mask: Tensor | None, tolerance: float = 2e-5):
    where = slice(None) if mask is None else mask.bool()
    torch.testing.assert_close(found[where], expected[where], atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", BUILDERS)
def test_equals_eager_under_the_mask_of_the_graph(name: str, graph: str, padding: str):
    model, (tokens, mask) = build(name), batch(padding)
    with torch.no_grad(), dense(model, GRAPHS[graph], mask):
        expected = hidden(model, tokens, mask)
    with torch.no_grad():
        found = hidden(on_graph(model, GRAPHS[graph]), tokens, mask)
    assert_same(found, expected, mask)


@pytest.mark.parametrize("padding", ["none", "right", "left"])
@pytest.mark.parametrize("name", BUILDERS)
def test_full_graph_is_the_usual_model(name: str, padding: str):
    model, (tokens, mask) = build(name), batch(padding)
    with torch.no_grad():
        model.set_attn_implementation("sdpa")
        expected = hidden(model, tokens, mask)
        found = hidden(on_graph(model, lb.Full()), tokens, mask)
    assert_same(found, expected, mask)


def test_layers_have_different_random_blocks():
    graph = lb.RandomBlocks(1, block=4, seed=0)
    assert not np.array_equal(graph.reseed(0).mask(N, HEADS), graph.reseed(1).mask(N, HEADS))
    model, (tokens, _) = build("bert"), batch("none")
    with torch.no_grad(), dense(model, graph | lb.Window(1), None):
        expected = hidden(model, tokens, None)
    with torch.no_grad():
        found = hidden(on_graph(model, graph | lb.Window(1)), tokens, None)
    assert_same(found, expected, None)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_document_is_the_tokens_that_a_mask_with_holes_keeps(name: str):
    model, (tokens, mask) = build(name), batch("holes")
    assert mask is not None
    with torch.no_grad(), dense(model, GRAPHS["bigbird"], mask):
        expected = hidden(model, tokens, mask)
    with torch.no_grad():
        found = hidden(on_graph(model, GRAPHS["bigbird"]), tokens, mask)
    assert_same(found, expected, mask)


def test_a_document_gives_the_same_alone_and_in_a_batch():
    model, (tokens, mask) = on_graph(build("bert"), lb.bigbird(block=4)), batch("right")
    with torch.no_grad():
        together, alone = hidden(model, tokens, mask), hidden(model, tokens[1:2, :30], None)
    torch.testing.assert_close(together[1:2, :30], alone, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ["bert", "modernbert", "mistral"])
def test_gradients(name: str):
    model, (tokens, mask) = build(name), batch("left")
    assert mask is not None
    direction = torch.randn(3, N, 32, generator=torch.Generator().manual_seed(3)) * mask[..., None]

    def gradients() -> dict[str, Tensor]:
        model.zero_grad()
        (hidden(model, tokens, mask) * direction).sum().backward()
        return {k: p.grad.clone() for k, p in model.named_parameters() if p.grad is not None}

    with dense(model, GRAPHS["bigbird"], mask):
        expected = gradients()
    on_graph(model, GRAPHS["bigbird"])
    found = gradients()
    assert found.keys() == expected.keys()
    assert len(found) > 10
    for key in found:
        torch.testing.assert_close(found[key], expected[key], atol=2e-4, rtol=2e-4, msg=key)


def test_gradient_checkpointing_changes_nothing():
    model, (tokens, mask) = on_graph(build("bert"), lb.bigbird(block=4)).train(), batch("right")

    def gradient() -> Tensor:
        model.zero_grad()
        torch.manual_seed(4)
        hidden(model, tokens, mask).sum().backward()
        return model.embeddings.word_embeddings.weight.grad.clone()

    usual = gradient()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    assert torch.equal(gradient(), usual)


def test_dropout_is_of_attention_probabilities():
    """As many probabilities are dropped as asked for, and only in training."""
    config = BUILDERS["bert"]()
    config.hidden_dropout_prob, config.attention_probs_dropout_prob = 0.0, 0.25
    config.num_hidden_layers = 1
    torch.manual_seed(0)
    model = on_graph(hf.AutoModel.from_config(config), lb.Window(2))
    seen: list[Tensor] = []
    layer = attentions(model)[0]
    # With equal scores and values of 1, an output is the share of probabilities that are left.
    for linear in (layer.query, layer.key, layer.value):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    nn.init.ones_(layer.value.bias)
    layer.register_forward_hook(lambda module, args, output: seen.append(output[0]))
    tokens, _ = batch("none")
    for training in (True, True, False):
        torch.manual_seed(5)
        model.train(training)(tokens)
    assert torch.equal(seen[0], seen[1])
    torch.testing.assert_close(seen[2], torch.ones_like(seen[2]))
    left = seen[0][:, 2:-2] * 5 * 0.75  # of five equal probabilities, kept ones scaled up
    torch.testing.assert_close(left, left.round(), atol=1e-5, rtol=0)
    assert abs(left.mean() / 5 - 0.75) < 0.03


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_autocast(name: str):
    """Rotary positions leave q and k in another dtype than v."""
    model, (tokens, mask) = build(name), batch("right")
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        model.set_attn_implementation("sdpa")
        expected = hidden(model, tokens, mask)
        found = hidden(on_graph(model, lb.Full()), tokens, mask)
    assert found.dtype == expected.dtype
    assert_same(found, expected, mask, 0.1)


def test_generates_without_a_cache():
    torch.manual_seed(0)
    model = hf.AutoModelForCausalLM.from_config(BUILDERS["llama"]()).eval()
    tokens, _ = batch("none")
    options: dict[str, Any] = {"max_new_tokens": 4, "do_sample": False, "use_cache": False}
    usual = model.generate(tokens[:, :20], **options)
    assert torch.equal(on_graph(model, lb.Full()).generate(tokens[:, :20], **options), usual)


# The graph in the config.

FORMS = {
    "graph": lambda graph: graph,
    "text": lambda graph: graph.to_json(),
    "dict": lambda graph: json.loads(graph.to_json()),
}


@pytest.mark.parametrize("form", FORMS)
def test_from_pretrained_takes_a_graph(form: str, tmp_path: Path):
    graph, (tokens, mask) = lb.bigbird(block=4, seed=3), batch("right")
    build("bert").save_pretrained(tmp_path)
    model = hf.AutoModel.from_pretrained(
        tmp_path, attn_implementation="longbird", longbird_graph=FORMS[form](graph)
    )
    assert model.config.longbird_graph == graph
    with torch.no_grad():
        expected = hidden(on_graph(build("bert"), graph), tokens, mask)
        assert_same(hidden(model, tokens, mask), expected, mask, 0.0)


@pytest.mark.parametrize("form", FORMS)
def test_saved_models_keep_their_graph(form: str, tmp_path: Path):
    graph, (tokens, mask) = lb.bigbird(block=4, seed=3), batch("right")
    model = on_graph(build("bert"), FORMS[form](graph))
    model.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert lb.Graph.from_json(json.dumps(saved["longbird_graph"])) == graph
    loaded = hf.AutoModel.from_pretrained(tmp_path, attn_implementation="longbird")
    assert loaded.config.longbird_graph == graph
    with torch.no_grad():
        assert torch.equal(hidden(loaded, tokens, mask), hidden(model, tokens, mask))


def test_a_config_without_a_graph_is_as_before():
    config = hf.BertConfig()
    assert config.longbird_graph is None
    assert "longbird_graph" not in config.to_dict()


def test_a_wrong_graph_is_refused_when_it_is_given():
    with pytest.raises(TypeError, match=r"such as longbird\.bigbird\(\).*received 3"):
        hf.BertConfig().longbird_graph = 3
    with pytest.raises(ValueError, match="unknown graph type 'Circle'"):
        hf.BertConfig(longbird_graph='{"type": "Circle"}')


# What it cannot do.


def test_no_graph():
    tokens, mask = batch("right")
    model = build("bert")
    model.set_attn_implementation("longbird")
    with pytest.raises(ValueError, match="needs a graph: set longbird_graph of the BertConfig"):
        model(tokens, attention_mask=mask)


@pytest.mark.parametrize("name", ["Mamba", "FNet", "ResNet", "MPNet"])
def test_models_on_which_a_graph_has_no_effect(name: str) -> None:
    config = getattr(hf, f"{name}Config")()
    with pytest.raises(ValueError, match=f"longbird_graph has no effect on {name}Model"):
        config.longbird_graph = lb.Full()
    config.longbird_graph = None
    assert config.longbird_graph is None


def test_our_own_models_have_another_field() -> None:
    config = lb.LongbirdConfig(num_hidden_layers=1)
    with pytest.raises(ValueError, match="no effect on LongbirdConfig: set its graph"):
        config.longbird_graph = lb.Full()


@pytest.mark.parametrize("name", ["MPNet", "BigBird", "Longformer"])
def test_models_with_an_attention_of_their_own(name: str):
    config = getattr(hf, f"{name}Config")(**SHAPE, attn_implementation="longbird")
    with pytest.raises(ValueError, match=f"{name}Model cannot run.* computes attention by itself"):
        hf.AutoModel.from_config(config)
    model = hf.AutoModel.from_config(getattr(hf, f"{name}Config")(**SHAPE))
    with pytest.raises(ValueError, match=f"{name}Model cannot run.* computes attention by itself"):
        model.set_attn_implementation("longbird")


def test_a_cache():
    torch.manual_seed(0)
    model = hf.AutoModelForCausalLM.from_config(BUILDERS["llama"]()).eval()
    with pytest.raises(ValueError, match=r"1 queries and 21 keys.*use_cache=False"):
        on_graph(model, lb.Full()).generate(batch("none")[0][:, :20], max_new_tokens=4)


def test_encoder_decoders_and_cross_attention():
    tokens, _ = batch("none")
    bart = hf.BartConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=32, decoder_ffn_dim=32,
        vocab_size=VOCABULARY, max_position_embeddings=64,
    )  # fmt: skip
    decoder = hf.BertConfig(**SHAPE, is_decoder=True, add_cross_attention=True)
    for config, inputs in (
        (bart, {"decoder_input_ids": tokens}),
        (decoder, {"encoder_hidden_states": torch.randn(3, N, 32)}),
    ):
        model = on_graph(hf.AutoModel.from_config(config), lb.Full())
        with pytest.raises(ValueError, match="cross attention use Longbird's own models"):
            model(tokens, **inputs)


def test_masks_that_say_who_sees_whom():
    model, (tokens, _) = on_graph(build("bert"), lb.Full()), batch("none")
    with pytest.raises(ValueError, match=r"\(3, 1, 45, 45\).*decided by config.longbird_graph"):
        model(tokens, attention_mask=torch.zeros(3, 1, N, N))


def test_documents_packed_by_position_ids():
    model, (tokens, _) = on_graph(build("llama"), lb.Full()), batch("none")
    positions = torch.cat([torch.arange(20), torch.arange(N - 20)])[None].expand(3, -1)
    with pytest.raises(ValueError, match="LlamaConfig asks for more: documents packed"):
        model(tokens, position_ids=positions, use_cache=False)


def test_chunks():
    config = hf.Llama4TextConfig(
        **{**SHAPE, "num_hidden_layers": 1},
        num_key_value_heads=2, head_dim=8, attention_chunk_size=8, intermediate_size_mlp=32,
        num_local_experts=2,
    )  # fmt: skip
    model = on_graph(hf.Llama4TextModel(config), lb.Full())
    with pytest.raises(ValueError, match=r"Llama4TextConfig asks for more.* chunks"):
        model(batch("none")[0], use_cache=False)


def test_weights_are_not_returned():
    model, (tokens, _) = on_graph(build("bert"), lb.Full()), batch("none")
    with pytest.raises(ValueError, match="cannot take output_attentions, which BertSelfAttention"):
        model(tokens, output_attentions=True)


GROUPED = {**SHAPE, "num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("softcap", hf.Gemma2Config(**GROUPED)),
        ("s_aux", hf.GptOssConfig(**GROUPED, **EXPERTS)),
    ],
)
def test_scores_that_the_operator_does_not_know(name: str, config: hf.PreTrainedConfig):
    model = on_graph(hf.AutoModel.from_config(config), lb.Full())
    with pytest.raises(ValueError, match=f"cannot take {name}, which"):
        model(batch("none")[0], use_cache=False)
