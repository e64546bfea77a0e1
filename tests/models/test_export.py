"""torch.compile, torch.export and ONNX of whole models."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import longbird as lb

pytestmark = [
    pytest.mark.slow,  # torch traces every model for seconds
    pytest.mark.filterwarnings("ignore"),  # of torch's exporters, on themselves
]

N = 37  # not a multiple of any block
VOCABULARY = 50
ENCODERS: dict[str, dict[str, Any]] = {
    "bigbird": {},
    "dilated": {"graph": lb.Window(3, dilation=2), "positions": "padding-aware"},
    "relative": {"positions": "none", "relative_buckets": 8, "norm": "pre"},
    "longformer": {"graph": lb.longformer(8) | lb.GlobalTokens([0, 3])},
    "etc": {"num_global_tokens": 3},
}
HEADS: dict[str, tuple[Any, dict[str, Any]]] = {
    "masked": (lb.LongbirdForMaskedLM, {}),
    "class": (lb.LongbirdForSequenceClassification, {"num_labels": 3}),
    "answer": (
        lb.LongbirdForQuestionAnswering,
        {"qa_hides_question": True, "qa_feed_forward": True, "num_answer_types": 3},
    ),
    "embedding": (lb.LongbirdForEmbedding, {}),
    "model": (lb.LongbirdModel, {}),
}
BATCH = torch.export.Dim("batch", min=1, max=64)
LENGTH = torch.export.Dim("length", min=2, max=200)


def tiny(model_class: Any, **changes: Any) -> Any:
    torch.manual_seed(0)
    fields = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "intermediate_size": 32,
        "max_position_embeddings": 201,
        "initializer_range": 0.2,
        "sep_token_id": 2,
        "graph": lb.bigbird(block=4, random=1),
    }
    return model_class(lb.LongbirdConfig(**{**fields, **changes})).eval()


def tokens(rows: int = 2, n: int = N, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, VOCABULARY, (rows, n), generator=generator)
    ids[:, 9] = 2
    return ids


def tensors(output: Any) -> list[Tensor]:
    return [value for value in output.values() if isinstance(value, Tensor)]


def assert_same(found: Any, expected: Any, atol: float = 1e-5) -> None:
    assert list(found) == list(expected)
    torch.testing.assert_close(tensors(found), tensors(expected), atol=atol, rtol=0)


# ---- compile ----


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()


@torch.no_grad()
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(("impl", "dynamic"), [("native", True), ("gather", None)])
def test_compiled_without_graph_breaks(encoder, impl, dynamic):
    """Of any length; `gather` compiles again for another."""
    model = tiny(lb.LongbirdModel, attention_impl=impl, **ENCODERS[encoder])
    compiled = torch.compile(model, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    for n in (N, 50):
        assert_same(compiled(tokens(n=n)), model(tokens(n=n)))


@torch.no_grad()
@pytest.mark.parametrize("impl", ["native", "gather"])
def test_compiled_decoder(impl):
    model = tiny(lb.LongbirdForCausalLM, attention_impl=impl, graph=lb.Window(4))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert_same(compiled(tokens(), use_cache=False), model(tokens(), use_cache=False))


def test_compiled_training():
    model = tiny(lb.LongbirdForMaskedLM)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    loss, other = model(tokens(), labels=tokens()).loss, compiled(tokens(), labels=tokens()).loss
    torch.testing.assert_close(other, loss)
    torch.testing.assert_close(
        torch.autograd.grad(other, list(model.parameters())),
        torch.autograd.grad(loss, list(model.parameters())),
    )


@torch.no_grad()
@pytest.mark.parametrize(
    ("impl", "encoder"), [("native", "bigbird"), ("gather", "relative"), ("native", "etc")]
)
def test_compiled_around_padding(impl, encoder):
    """How long documents are is read from the mask: the graph breaks there, and is right."""
    model = tiny(lb.LongbirdModel, attention_impl=impl, **ENCODERS[encoder])
    mask = torch.arange(N) < torch.tensor([[N], [20]])
    compiled = torch.compile(model, backend="aot_eager")
    expected = model(tokens(), attention_mask=mask)
    assert_same(compiled(tokens(), attention_mask=mask), expected)


@torch.no_grad()
def test_compiled_around_global_tokens():
    fields = {"graph": lb.longformer(8), "global_projections": True}
    model = tiny(lb.LongbirdForMaskedLM, **fields)
    marked = (torch.arange(N) == torch.tensor([[0], [5]])).long()
    compiled = torch.compile(model, backend="aot_eager")
    expected = model(tokens(), global_attention_mask=marked)
    assert_same(compiled(tokens(), global_attention_mask=marked), expected)


@torch.no_grad()
def test_compiled_with_inductor(native):
    model = tiny(lb.LongbirdForMaskedLM, attention_impl=native)
    assert_same(torch.compile(model, fullgraph=True)(tokens()), model(tokens()))


# ---- export ----


@torch.no_grad()
@pytest.mark.parametrize("encoder", ENCODERS)
def test_export_through_gather(encoder):
    """Plain torch operations alone, for one length and any number of documents."""
    model = tiny(lb.LongbirdModel, attention_impl="gather", **ENCODERS[encoder])
    program = torch.export.export(model, (tokens(),), dynamic_shapes={"input_ids": {0: BATCH}})
    assert "longbird" not in str(program.graph)
    for rows in (1, 2, 3):
        assert_same(program.module()(tokens(rows, seed=1)), model(tokens(rows, seed=1)))


@torch.no_grad()
@pytest.mark.parametrize("encoder", ENCODERS)
def test_export_native(encoder, native):
    """The graph is in the exported operator: documents of any length, any number of them."""
    model = tiny(lb.LongbirdModel, attention_impl=native, **ENCODERS[encoder])
    shapes = {"input_ids": {0: BATCH, 1: LENGTH}}
    program = torch.export.export(model, (tokens(),), dynamic_shapes=shapes)
    assert "longbird.native_attention" in str(program.graph)
    for rows, n in ((1, N), (3, 61), (2, 150)):
        assert_same(program.module()(tokens(rows, n)), model(tokens(rows, n)))


@torch.no_grad()
def test_export_is_saved_and_loaded(tmp_path):
    model = tiny(lb.LongbirdForEmbedding, attention_impl="gather")
    torch.export.save(torch.export.export(model, (tokens(),)), tmp_path / "model.pt2")
    again = torch.export.load(tmp_path / "model.pt2").module()
    assert_same(again(tokens(seed=1)), model(tokens(seed=1)))


def padding(n: int = N) -> Tensor:
    """A whole document, one with padding after, before, and inside; and nothing but padding."""
    mask = torch.ones(5, n, dtype=torch.int64)
    mask[1, 20:] = 0
    mask[2, :11] = 0
    mask[3, 12:19] = 0
    mask[4] = 0
    return mask


# Over a text these are what they are over its beginning, cut.
STABLE: dict[str, dict[str, Any]] = {
    "dilated": ENCODERS["dilated"],
    "relative": {**ENCODERS["relative"], "graph": lb.BlockWindow(3, 4) | lb.Window(7)},
    "longformer": ENCODERS["longformer"],
    "full": {"graph": lb.Full(), "norm": "pre"},
    "etc": {"graph": lb.Window(5), "num_global_tokens": 3, "global_projections": True},
}


@torch.no_grad()
@pytest.mark.parametrize("encoder", STABLE)
def test_export_with_padding_through_gather(encoder):
    model = tiny(lb.LongbirdModel, attention_impl="gather", **STABLE[encoder])
    shapes = {"input_ids": {0: BATCH}, "attention_mask": {0: BATCH}}
    example = (tokens(), torch.ones_like(tokens()))
    program = torch.export.export(model, example, dynamic_shapes=shapes)
    assert "longbird" not in str(program.graph)
    ids, mask = tokens(5, seed=1), padding()
    assert_same(program.module()(ids, mask), model(ids, mask))
    assert_same(program.module()(ids[:3], mask[:3].bool().long()), model(ids[:3], mask[:3]))


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("impl", ["native", "gather"])
def test_export_with_padding_of_every_head(head, impl, request):
    if impl == "native":
        request.getfixturevalue("native")
    model_class, fields = HEADS[head]
    model = tiny(model_class, attention_impl=impl, **STABLE["longformer"], **fields)
    program = torch.export.export(
        model,
        (tokens(), torch.ones_like(tokens())),
        dynamic_shapes={"input_ids": {0: BATCH}, "attention_mask": {0: BATCH}},
    )
    ids, mask = tokens(5, seed=1), padding()
    assert_same(program.module()(ids, mask), model(ids, mask))


@torch.no_grad()
@pytest.mark.parametrize("encoder", ENCODERS)
def test_export_native_with_padding_and_global_tokens(encoder, native):
    """Any graph, any length, any tokens of it global."""
    model = tiny(lb.LongbirdModel, attention_impl=native, **ENCODERS[encoder])
    shape = {0: BATCH, 1: LENGTH}
    names = ("attention_mask", "global_attention_mask")
    masks = {name: torch.ones_like(tokens()) for name in names}
    program = torch.export.export(
        model,
        (tokens(),),
        masks,
        dynamic_shapes={"input_ids": shape, **dict.fromkeys(names, shape)},
    )
    for n in (N, 61):
        ids, mask = tokens(5, n, seed=1), padding(n)
        marked = (torch.arange(n) % 13 == 4).long().expand(5, -1)
        for given in (marked, torch.zeros_like(marked)):
            options = dict(zip(names, (mask, given), strict=True))
            assert_same(program.module()(ids, **options), model(ids, **options))


@torch.no_grad()
@pytest.mark.parametrize("impl", ["native", "gather"])
@pytest.mark.parametrize("head", ["model", "class", "globals"])
def test_export_of_etc_with_segments(impl, head, request):
    """A document has as many global tokens as segments; there is room for all of them."""
    if impl == "native":
        request.getfixturevalue("native")
    model_class = {
        "model": lb.LongbirdModel,
        "class": lb.LongbirdForSequenceClassification,
        "globals": lb.LongbirdForEmbedding,
    }[head]
    model = tiny(model_class, attention_impl=impl, pooling="globals", **STABLE["etc"])
    given = {"attention_mask": torch.ones_like(tokens()), "segment_ids": tokens() % 3}
    shape = {0: BATCH, 1: LENGTH} if impl == "native" else {0: BATCH}
    program = torch.export.export(
        model, (tokens(),), given, dynamic_shapes=dict.fromkeys(["input_ids", *given], shape)
    ).module()
    ids, mask = tokens(5, seed=1), padding()
    segments = (torch.arange(N).expand(5, N) // 13).clone()  # 3 in a whole document
    segments[1] = -1
    segments[mask == 0] = 77  # padding is not looked at
    options = {"attention_mask": mask, "segment_ids": segments}
    found, expected = program(ids, **options), model(ids, **options)
    assert_same(found, expected)
    alone = {name: x[1:2] for name, x in options.items()}
    found, expected = program(ids[1:2], **alone), model(ids[1:2], **alone)
    if head == "model":
        assert expected.global_hidden_state.shape[1] == 1
        assert not found.global_hidden_state[:, 1:].any()
        found["global_hidden_state"] = found.global_hidden_state[:, :1]
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("fields", "names", "said"),
    [
        ({"attention_impl": "gather"}, ["attention_mask"], "last=0"),
        ({"attention_impl": "gather"}, ["global_attention_mask"], "GlobalTokens"),
        (
            {"graph": lb.longformer(8), "global_projections": True},
            ["global_attention_mask"],
            "cannot be exported with global tokens",
        ),
    ],
)
def test_what_cannot_be_exported_is_said(fields, names, said):
    masks = {name: torch.ones_like(tokens()) for name in names}
    with pytest.raises(ValueError, match=said):
        torch.export.export(tiny(lb.LongbirdModel, **fields), (tokens(),), masks)


# ---- ONNX ----


def run_onnx(path: Path, model: nn.Module, example: Tensor, ids: Tensor, **options: Any):
    """Outputs of ONNX Runtime for `ids`, of a model exported with an example."""
    import onnxruntime

    torch.onnx.export(model, (example,), path, dynamo=True, verbose=False, **options)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == ["input_ids"]
    return [torch.from_numpy(out) for out in session.run(None, {"input_ids": ids.numpy()})]


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
def test_onnx_of_every_head(head, tmp_path):
    """For documents of one length, any number of them; "auto" is gather there."""
    model_class, fields = HEADS[head]
    model = tiny(model_class, **fields)
    ids, shapes = tokens(rows=3, seed=1), {"input_ids": {0: BATCH}}
    found = run_onnx(tmp_path / "model.onnx", model, tokens(), ids, dynamic_shapes=shapes)
    torch.testing.assert_close(found, tensors(model(ids)), atol=1e-4, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("encoder", ["relative", "longformer", "etc"])
def test_onnx_of_every_encoder(encoder, tmp_path):
    model = tiny(
        lb.LongbirdForEmbedding,
        attention_impl="gather",
        pooling="globals" if encoder == "etc" else "first",
        **ENCODERS[encoder],
    )
    ids = tokens(seed=1)
    found = run_onnx(tmp_path / "model.onnx", model, tokens(), ids)
    torch.testing.assert_close(found, tensors(model(ids)), atol=1e-4, rtol=0)


@torch.no_grad()
def test_onnx_of_a_decoder(tmp_path):
    graph = lb.Window(4) | lb.GlobalTokens([0])
    model = tiny(lb.LongbirdForCausalLM, attention_impl="gather", graph=graph, use_cache=False)
    ids = tokens(seed=1)
    found = run_onnx(tmp_path / "model.onnx", model, tokens(), ids)
    torch.testing.assert_close(found, [model(ids).logits], atol=1e-4, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize(
    ("head", "encoder"), [("embedding", "longformer"), ("answer", "longformer"), ("model", "etc")]
)
def test_onnx_with_padding(head, encoder, tmp_path):
    import onnxruntime

    model_class, fields = HEADS[head]
    model = tiny(model_class, attention_impl="gather", **STABLE[encoder], **fields)
    shapes = {"input_ids": {0: BATCH}, "attention_mask": {0: BATCH}}
    example = (tokens(), torch.ones_like(tokens()))
    path = tmp_path / "model.onnx"
    torch.onnx.export(model, example, path, dynamo=True, verbose=False, dynamic_shapes=shapes)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    ids, mask = tokens(5, seed=1), padding()
    given = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
    found = [torch.from_numpy(out) for out in session.run(None, given)]
    torch.testing.assert_close(found, tensors(model(ids, mask)), atol=1e-4, rtol=0)


@pytest.mark.parametrize("impl", ["auto", "gather"])
@pytest.mark.parametrize(
    ("graph", "named"),
    [
        (lb.bigbird(block=4, random=1), "GlobalBlocks"),
        (lb.Window(3) | lb.GlobalTokens([-1]), "GlobalTokens"),
    ],
)
def test_onnx_with_padding_of_a_graph_that_depends_on_the_length(impl, graph, named, tmp_path):
    """torch tries twice, and reports what the first attempt said if both fail."""
    model = tiny(lb.LongbirdForEmbedding, attention_impl=impl, graph=graph)
    inputs = (tokens(), torch.ones_like(tokens()))
    with pytest.raises(RuntimeError, match=rf"{named}\(.*padding; .*longformer.*mask") as caught:
        torch.onnx.export(model, inputs, tmp_path / "model.onnx", dynamo=True, verbose=False)
    assert "use_cache" not in str(caught.value)
