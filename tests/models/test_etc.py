"""BigBird-ETC against a loop over queries in float64, written from the formulas."""

import functools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import longbird as lb
from longbird.models.layers import etc_attention as etc

WIDTH, HEADS, LAYERS, MOST = 12, 2, 2, 5
D = WIDTH // HEADS
ROUNDING = 1e-10
GRAPHS = {
    "bigbird": lb.bigbird(block=4, random=1),
    "window": lb.Window(3),
    "full": lb.Full(),
    "layers": [lb.Window(2, dilation=3), lb.Window(1) | lb.GlobalTokens([0, -1])],
    "nothing": lb.Edges([(0, 1), (3, 2)]),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "shared": {},
    "projections": {"global_projections": True},
    "relative": {"positions": "none", "relative_buckets": 8, "relative_max_distance": 6},
    "pre-norm": {"norm": "pre", "embedding_norm": "none"},
}


def tiny(model_class: Any = lb.LongbirdModel, dtype: Any = torch.float64, **changes: Any) -> Any:
    torch.manual_seed(0)
    fields = {
        "vocab_size": 30,
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "intermediate_size": 20,
        "max_position_embeddings": 64,
        "sep_token_id": None,
        "num_global_tokens": MOST,
        "global_max_distance": 2,
        "graph": GRAPHS["bigbird"],
    }
    model = model_class(lb.LongbirdConfig(**{**fields, **changes})).eval()
    for parameter in model.parameters():  # labels and norms too
        torch.nn.init.normal_(parameter, std=0.6)
    return model.to(dtype)


def batch() -> dict[str, Tensor]:
    """Documents of 23, 9 and 1 tokens, with 4, 2 and no segments, padded anywhere."""
    ids = torch.randint(3, 30, (3, 23), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(3, 23, dtype=torch.int64)
    mask[1, :8], mask[1, 12:14], mask[1, 19:] = 0, 0, 0
    mask[2], mask[2, 4] = 0, 1
    segments = torch.arange(23).expand(3, 23) // 6
    segments = torch.where(torch.arange(23) % 7 == 3, -1, segments).clone()
    segments[1] = (torch.arange(23) > 10).long()
    segments[2, 4] = -1
    segments[mask == 0] = 77  # padding is not looked at
    return {"input_ids": ids, "attention_mask": mask, "segment_ids": segments}


# ---- the same by loops ----


def documents_alone(inputs: dict[str, Tensor]):
    """The tokens, types and segments of each document."""
    for row in range(len(inputs["input_ids"])):
        kept = inputs["attention_mask"][row] != 0
        segments = inputs.get("segment_ids")
        yield inputs["input_ids"][row, kept], None if segments is None else segments[row, kept]


def normed(x: Tensor, norm: Any) -> Tensor:
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return (x - mean) / torch.sqrt(variance + norm.eps) * norm.weight + norm.bias


def bucket_bias(table: Tensor, config: Any, distance: int) -> Tensor:
    """T5's buckets, [heads]: half for keys after the query; small distances have their own."""
    half, most = config.relative_buckets // 2, config.relative_max_distance
    exact, size = half // 2, min(abs(distance), most)
    bucket = size
    if size >= exact:
        far = math.log(size / exact) / math.log(most / exact) * (half - exact)
        bucket = min(exact + int(far), half - 1)
    return table[bucket + (half if distance > 0 else 0)]


def looped_attention(
    layer: Any, x: Tensor, g: int, segments: Tensor | None, mask, bias, weights: Any = None
) -> Tensor:
    """x [n + g, w]: g global tokens after n tokens of text; mask bool [heads, n, n].

    The weights go into `weights` [heads, n + g, n + g], if it is given.
    """
    n, attention = len(x) - g, layer.attention
    names = ("query", "key", "value")

    def project(y: Tensor, suffix: str) -> list[Tensor]:
        return [getattr(attention, name + suffix)(y).reshape(-1, HEADS, D) for name in names]

    own = "_global" if attention.global_projections else ""
    text, added = project(x[:n], ""), project(x[n:], own)
    q, k, v = (torch.cat(pair) for pair in zip(text, added, strict=True))
    embedding = attention.label_embedding.weight.reshape(-1, HEADS, D)
    label_bias = attention.label_bias.weight

    def label(i: int, j: int) -> int:
        if i >= n and j >= n:
            reach = attention.reach
            return etc.GLOBAL_TO_GLOBAL + max(-reach, min(reach, j - i)) + reach
        token, number = (i, j - n) if i < n else (j, i - n)
        same = segments is not None and int(segments[token]) == number
        if i < n:
            return etc.TEXT_TO_OWN if same else etc.TEXT_TO_OTHER
        return etc.GLOBAL_TO_OWN if same else etc.GLOBAL_TO_OTHER

    rows = []
    for i in range(n + g):
        heads = []
        for h in range(HEADS):
            scores, values, seen = [], [], []
            for j in range(n + g):
                if i < n and j < n:
                    if not mask[h, i, j]:
                        continue
                    score = q[i, h] @ k[j, h] / math.sqrt(D)
                    score = score if bias is None else score + bias(j - i)[h]
                else:
                    a = label(i, j)
                    score = (
                        q[i, h] @ k[j, h] + q[i, h] @ embedding[a, h] + label_bias[a, h]
                    ) / math.sqrt(D)
                scores.append(score)
                values.append(v[j, h])
                seen.append(j)
            p = torch.softmax(torch.stack(scores), 0)
            if weights is not None:
                weights[h, i, seen] = p
            heads.append(p @ torch.stack(values))
        rows.append(torch.cat(heads))
    return attention.output(torch.stack(rows))


def looped(model: Any, ids: Tensor, segments: Tensor | None) -> tuple[Tensor, Tensor]:
    """The hidden states of the text and of the global tokens of one document."""
    config, n = model.config, len(ids)
    g = MOST if segments is None else max(1, 1 + max(segments.tolist(), default=-1))
    embeddings = model.embeddings
    x = embeddings.tokens.weight[ids] + embeddings.types.weight[0]
    if config.positions != "none":
        x = x + embeddings.positions.weight[:n]
    x = torch.cat([x, model.global_embeddings.weight[:g]])
    if config.embedding_norm != "none":
        x = normed(x, embeddings.norm)
    bias: Any = None
    if config.relative_buckets:
        bias = functools.partial(bucket_bias, model.relative_bias.weight, config)

    for layer, graph in zip(model.layers, config.layer_graphs, strict=True):
        mask = graph.mask(n, heads=HEADS)

        def attend(y: Tensor, layer: Any = layer, mask: Any = mask) -> Tensor:
            return looped_attention(layer, y, g, segments, mask, bias)

        def feed(y: Tensor, inner: Any = layer.feed_forward) -> Tensor:
            return inner.leave(F.gelu(inner.enter(y), approximate="tanh"))

        for block, norm in ((attend, layer.attention_norm), (feed, layer.feed_forward_norm)):
            x = x + block(normed(x, norm)) if config.norm == "pre" else normed(x + block(x), norm)
    if config.norm == "pre":
        x = normed(x, model.final_norm)
    return x[:n], x[n:]


def assert_equals_loops(model: Any, inputs: dict[str, Tensor], atol: float) -> None:
    out = model(**inputs)
    expected = [looped(model, *document) for document in documents_alone(inputs)]
    mask = inputs["attention_mask"] != 0
    torch.testing.assert_close(
        out.last_hidden_state[mask], torch.cat([text for text, _ in expected]), atol=atol, rtol=0
    )
    assert not out.last_hidden_state[~mask].any()
    most = max(len(added) for _, added in expected)
    assert out.global_hidden_state.shape == (len(mask), most, WIDTH)
    for row, (_, added) in enumerate(expected):
        found = out.global_hidden_state[row]
        torch.testing.assert_close(found[: len(added)], added, atol=atol, rtol=0)
        assert not found[len(added) :].any()
    first = torch.stack([added[0] for _, added in expected])
    pooled = torch.tanh(model.pooler(first))
    torch.testing.assert_close(out.pooler_output, pooled, atol=atol, rtol=0)

    # Gradients of a sum with random weights of all outputs.
    generator = torch.Generator().manual_seed(2)
    wants = [
        torch.randn(x.shape, generator=generator).to(x.dtype) for pair in expected for x in pair
    ]
    loops = sum((x * y).sum() for x, y in zip(wants, sum(expected, ()), strict=True))
    ours = sum(
        (out.last_hidden_state[row, mask[row]] * wants[2 * row]).sum()
        + (out.global_hidden_state[row, : len(wants[2 * row + 1])] * wants[2 * row + 1]).sum()
        for row in range(len(mask))
    )
    parameters = {name: p for name, p in model.named_parameters() if not name.startswith("pooler")}
    found = torch.autograd.grad(ours, list(parameters.values()), allow_unused=True)
    expected_gradients = torch.autograd.grad(loops, list(parameters.values()), allow_unused=True)
    for name, a, b in zip(parameters, found, expected_gradients, strict=True):
        if a is None or b is None:
            assert a is None or not a.any(), name
            assert b is None or not b.any(), name
        else:
            torch.testing.assert_close(a, b, atol=atol * 20, rtol=0, msg=name)


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_graph(graph):
    inputs = batch()
    if graph == "nothing":  # its edges are not in a document of one token
        inputs = {name: x[:2] for name, x in inputs.items()}
    assert_equals_loops(tiny(graph=GRAPHS[graph]), inputs, atol=ROUNDING)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("segments", [True, False], ids=["segments", "fixed"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant(variant, segments):
    inputs = batch()
    if not segments:
        del inputs["segment_ids"]
    assert_equals_loops(tiny(**VARIANTS[variant]), inputs, atol=ROUNDING)


@pytest.mark.slow  # a model for each case
def test_float32(impl):
    model = tiny(dtype=torch.float32, attention_impl=impl, global_projections=True)
    assert_equals_loops(model, batch(), atol=2e-5)


@torch.no_grad()
def test_a_document_is_the_same_alone(impl):
    model = tiny(dtype=torch.float32, attention_impl=impl)
    inputs = batch()
    together = model(**inputs)
    for row, (ids, segments) in enumerate(documents_alone(inputs)):
        alone = model(ids[None], segment_ids=segments[None])
        kept = inputs["attention_mask"][row] != 0
        close = {"atol": 2e-6, "rtol": 0}
        torch.testing.assert_close(
            together.last_hidden_state[row, kept], alone.last_hidden_state[0], **close
        )
        count = alone.global_hidden_state.shape[1]
        torch.testing.assert_close(
            together.global_hidden_state[row, :count], alone.global_hidden_state[0], **close
        )


@torch.no_grad()
def test_segments_change_what_global_tokens_are_told():
    model = tiny()
    ids = batch()["input_ids"][:1]
    without = model(ids)
    assert without.global_hidden_state.shape == (1, MOST, WIDTH)
    none = model(ids, segment_ids=torch.full_like(ids, -1))
    assert none.global_hidden_state.shape == (1, 1, WIDTH)
    segments = torch.arange(23)[None] // 5
    some = model(ids, segment_ids=segments)
    assert some.global_hidden_state.shape == without.global_hidden_state.shape
    assert (some.global_hidden_state - without.global_hidden_state).abs().max() > 1e-4


@torch.no_grad()
def test_a_document_without_tokens():
    model, inputs = tiny(), batch()
    inputs["attention_mask"][1] = 0
    out = model(**inputs)
    assert out.last_hidden_state.isfinite().all()
    assert not out.last_hidden_state[1].any()
    assert out.global_hidden_state.isfinite().all()


@torch.no_grad()
def test_pooled_global_tokens():
    inputs = batch()
    del inputs["segment_ids"]
    for segments in (None, batch()["segment_ids"]):
        model = tiny(lb.LongbirdForEmbedding, pooling="globals")
        given = {**inputs, "segment_ids": segments} if segments is not None else inputs
        found = model(**given).embeddings
        added = [looped(model.longbird, *each)[1].mean(0) for each in documents_alone(given)]
        expected = F.normalize(torch.stack(added), dim=-1)
        torch.testing.assert_close(found, expected, atol=ROUNDING, rtol=0)

        model = tiny(lb.LongbirdForSequenceClassification, num_labels=3)
        firsts = [looped(model.longbird, *each)[1][0] for each in documents_alone(given)]
        head = model.classifier
        expected = head.out(torch.tanh(head.dense(torch.stack(firsts))))
        torch.testing.assert_close(model(**given).logits, expected, atol=ROUNDING, rtol=0)


@pytest.mark.slow  # thousands of draws
def test_dropout_drops_both_kinds_of_edges():
    """As expected values: many draws average to what there is without dropout."""
    model = tiny(attention_probs_dropout_prob=0.3, hidden_dropout_prob=0.0, num_hidden_layers=1)
    attention, ids = model.layers[0].attention, batch()["input_ids"][:1, :12]
    seen = []
    attention.output.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    with torch.no_grad():
        model(ids)
        model.train()
        torch.manual_seed(0)
        for _ in range(300):
            model(ids)
    still, draws = seen[0], torch.stack(seen[1:])
    error = draws.std(0) / math.sqrt(len(draws))
    assert (draws.std(0) > 0).all()
    assert ((draws.mean(0) - still).abs() < 5 * error + 1e-9).all()


@pytest.mark.parametrize(
    ("segments", "message"),
    [(MOST, rf"between -1 .* {MOST - 1}, received 0 to {MOST}"), (-2, "received -2 to 0")],
)
def test_segments_that_do_not_exist_are_refused(segments, message):
    ids = batch()["input_ids"][:1]
    wrong = torch.zeros_like(ids)
    wrong[0, 5] = segments
    with pytest.raises(ValueError, match=message):
        tiny()(ids, segment_ids=wrong)


def test_what_etc_cannot_do_is_said():
    ids = batch()["input_ids"][:1]
    with pytest.raises(ValueError, match="set num_global_tokens"):
        tiny(num_global_tokens=0)(ids, segment_ids=torch.zeros_like(ids))
    with pytest.raises(ValueError, match="shape of the batch"):
        tiny()(ids, segment_ids=torch.zeros_like(ids)[:, :-1])
    with pytest.raises(ValueError, match='pooling="globals" needs num_global_tokens'):
        tiny(lb.LongbirdForEmbedding, num_global_tokens=0, pooling="globals")(ids)
    with pytest.raises(ValueError, match="a causal model has its global tokens in its graph"):
        tiny(lb.LongbirdForCausalLM)


@torch.no_grad()
def test_save_and_load(tmp_path):
    model, inputs = tiny(dtype=torch.float32), batch()
    model.save_pretrained(tmp_path)
    again = lb.LongbirdModel.from_pretrained(tmp_path)
    assert again.config.num_global_tokens == MOST
    for name, x in model(**inputs).items():
        assert torch.equal(again(**inputs)[name], x)
