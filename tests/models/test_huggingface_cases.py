"""What transformers' own tests ask of BigBird, Longformer, BigBird-Pegasus and LED, asked here.

No weights are needed: small models with random weights, over every family and head. Checks are
against another way to the same result: alone or in a batch, with or without a cache, before or
after a file, ids or embeddings, tuple or dict.
"""

import copy
import re
from unittest import mock

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot
from transformers.modeling_layers import GradientCheckpointingLayer

import longbird as lb

ROWS, N, VOCABULARY, WIDTH, HEADS, LAYERS = 3, 43, 61, 32, 4, 2
LENGTHS = torch.tensor([[N], [30], [11]])
MASK = (torch.arange(N) < LENGTHS).long()
LEGACY = lb.LegacyBigBird("huggingface", block=4, random=1, max_length=64)  # full up to 28 tokens

SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 37,
    "max_position_embeddings": 64,
    "eos_token_id": 2,
    "sep_token_id": 3,
}
ENCODERS = {
    "bigbird": {"graph": LEGACY, "qa_feed_forward": True, "qa_hides_question": True},
    "longformer": {
        "graph": [lb.longformer(4), lb.longformer(8)],
        "global_projections": True,
        "positions": "padding-aware",
        "pad_token_id": 1,
    },
    "etc": {"graph": lb.Window(3), "num_global_tokens": 2},
}
DECODERS = {
    "window": {"graph": lb.Window(5) | lb.GlobalTokens([0])},
    "full": {"graph": lb.Full()},
}
WRITERS = {
    "pegasus": {"graph": LEGACY},
    "led": {
        "graph": lb.longformer(4),
        "global_projections": True,
        "norm": "post",
        "embedding_norm": "before_dropout",
        "rescale_embeddings": False,
        "attention_bias": True,
        "attention_output_bias": True,
        "pad_token_id": 1,
        "bos_token_id": 0,
    },
}
ENCODER_CLASSES = (
    "Model",
    "ForPreTraining",
    "ForMaskedLM",
    "ForMultipleChoice",
    "ForQuestionAnswering",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForEmbedding",
)
WRITER_CLASSES = (
    "Seq2SeqModel",
    "ForConditionalGeneration",
    "Seq2SeqForQuestionAnswering",
    "Seq2SeqForSequenceClassification",
)
CASES = [
    *((family, name) for family in ENCODERS for name in ENCODER_CLASSES),
    *((family, "ForCausalLM") for family in DECODERS),
    *((family, name) for family in WRITERS for name in WRITER_CLASSES),
]
every_model = pytest.mark.parametrize(
    ("family", "name"), CASES, ids=[f"{f}-{n}" for f, n in CASES]
)
every_loss = pytest.mark.parametrize(
    ("family", "name"),
    [case for case in CASES if case[1] not in ("Model", "Seq2SeqModel", "ForEmbedding")],
    ids=[f"{f}-{n}" for f, n in CASES if n not in ("Model", "Seq2SeqModel", "ForEmbedding")],
)
every_lm = pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bigbird", "ForMaskedLM"),
        ("longformer", "ForPreTraining"),
        ("window", "ForCausalLM"),
        ("pegasus", "ForConditionalGeneration"),
        ("led", "ForConditionalGeneration"),
    ],
)
every_decoder = pytest.mark.parametrize("family", DECODERS)
every_writer = pytest.mark.parametrize("family", WRITERS)


def config_of(family, **changes):
    if family in WRITERS:
        decoder = {
            "decoder_layers": LAYERS,
            "decoder_attention_heads": HEADS,
            "decoder_intermediate_size": 29,
            "max_decoder_positions": 64,
        }
        return lb.LongbirdSeq2SeqConfig(**{**SIZES, **decoder, **WRITERS[family], **changes})
    return lb.LongbirdConfig(**{**SIZES, **(ENCODERS | DECODERS)[family], **changes})


def class_of(name):
    return getattr(lb, f"Longbird{name}")


def model_of(family, name, seed=0, **changes):
    """Weights far enough from zero that every part of the model matters."""
    torch.manual_seed(seed)
    model = class_of(name)(config_of(family, **{"initializer_range": 0.2, **changes}))
    for key, parameter in model.named_parameters():
        if key.endswith("bias"):
            nn.init.normal_(parameter, std=0.1)
    return model.eval()


def ids_of(rows=ROWS, n=N, seed=0) -> Tensor:
    return torch.randint(4, VOCABULARY, (rows, n), generator=torch.Generator().manual_seed(seed))


def inputs_of(family, name, labels=False):
    """A ragged batch for this class."""
    inputs = {"input_ids": ids_of(), "attention_mask": MASK.clone()}
    if family == "longformer":
        inputs["global_attention_mask"] = one_hot(torch.tensor([0, 7, 2]), N)
    if family == "led":
        inputs["global_attention_mask"] = one_hot(torch.tensor([0, 0, 0]), N)
    if name.startswith("Seq2SeqFor"):  # their output is the input, to its end token
        inputs["input_ids"].scatter_(1, LENGTHS - 1, SIZES["eos_token_id"])
    elif family in WRITERS:
        inputs["decoder_input_ids"] = ids_of(n=9, seed=1)
    else:
        inputs["token_type_ids"] = (torch.arange(N) > 5).long().expand(ROWS, N)
    if name == "ForMultipleChoice":
        inputs = {key: torch.stack([x, x.flip(0)], 1) for key, x in inputs.items()}
    if labels:
        inputs |= labels_of(family, name)
    return inputs


def labels_of(family, name):
    tokens = {"labels": ids_of(seed=2)}
    match name.removeprefix("Seq2Seq"):
        case "ForPreTraining":
            return tokens | {"next_sentence_label": torch.tensor([0, 1, 1])}
        case "ForMaskedLM" | "ForCausalLM":
            return tokens
        case "ForTokenClassification":
            return {"labels": tokens["labels"] % 2}
        case "ForConditionalGeneration":
            return {"labels": ids_of(n=9, seed=2)}
        case "ForQuestionAnswering":
            ends = {"start_positions": torch.tensor([1, 5, 8])}
            return ends | {"end_positions": torch.tensor([4, 5, 9])}
        case _:
            return {"labels": torch.tensor([0, 1, 1])}


def first_of(output) -> Tensor:
    """The result of a model that its task is about."""
    return next(
        value
        for key, value in output.items()
        if isinstance(value, Tensor) and key != "loss" and value.is_floating_point()
    )


@torch.no_grad()
def run(model, **inputs):
    return model(**inputs)


def assert_same(a, b, **tolerance):
    """Outputs of models, or parts of them."""
    if isinstance(a, Tensor):
        torch.testing.assert_close(a, b, **tolerance)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key], **tolerance)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y, **tolerance)


# ---- shapes


@every_model
def test_shapes_and_loss(family, name):
    model, inputs = model_of(family, name, num_labels=2), inputs_of(family, name)
    expected = {
        "Model": {"last_hidden_state": (ROWS, N, WIDTH), "pooler_output": (ROWS, WIDTH)},
        "ForPreTraining": {
            "prediction_logits": (ROWS, N, VOCABULARY),
            "seq_relationship_logits": (ROWS, 2),
        },
        "ForMaskedLM": {"logits": (ROWS, N, VOCABULARY)},
        "ForCausalLM": {"logits": (ROWS, N, VOCABULARY)},
        "ForMultipleChoice": {"logits": (ROWS, 2)},
        "ForQuestionAnswering": {"start_logits": (ROWS, N), "end_logits": (ROWS, N)},
        "ForSequenceClassification": {"logits": (ROWS, 2)},
        "ForTokenClassification": {"logits": (ROWS, N, 2)},
        "ForEmbedding": {"embeddings": (ROWS, WIDTH)},
        "Seq2SeqModel": {
            "last_hidden_state": (ROWS, 9, WIDTH),
            "encoder_last_hidden_state": (ROWS, N, WIDTH),
        },
        "ForConditionalGeneration": {"logits": (ROWS, 9, VOCABULARY)},
        "Seq2SeqForQuestionAnswering": {"start_logits": (ROWS, N), "end_logits": (ROWS, N)},
        "Seq2SeqForSequenceClassification": {"logits": (ROWS, 2)},
    }[name]
    without_mask = {key: x for key, x in inputs.items() if key != "attention_mask"}
    for given in (inputs, without_mask):
        output = run(model, **given)
        assert {key: tuple(output[key].shape) for key in expected} == expected
    if name not in ("Model", "Seq2SeqModel", "ForEmbedding"):
        output = run(model, **inputs_of(family, name, labels=True))
        assert {key: tuple(output[key].shape) for key in expected} == expected
        assert output.loss.ndim == 0 and output.loss.isfinite()


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize("n", [1, 9, 28, 29, 41, 60])
def test_any_length(family, n):
    """Documents of any length, multiples of a block or not, short ones with full attention."""
    model = model_of(family, "Model")
    assert run(model, input_ids=ids_of(n=n)).last_hidden_state.shape == (ROWS, n, WIDTH)


@pytest.mark.parametrize("family", [*ENCODERS, *WRITERS])
def test_a_short_batch_changes_nothing(family):
    """A short batch must not switch the model, or its configuration, to full attention."""
    name = "Seq2SeqModel" if family in WRITERS else "Model"
    model, inputs = model_of(family, name), inputs_of(family, name)
    before, config = run(model, **inputs), model.config.to_dict()
    run(model, **{key: x[:, :9] for key, x in inputs.items()})
    assert_same(run(model, **inputs), before, atol=0, rtol=0)
    assert model.config.to_dict() == config


def test_short_documents_have_full_attention():
    sparse, full = (model_of("bigbird", "Model", graph=graph) for graph in (LEGACY, lb.Full()))
    for n, same in ((28, True), (29, False)):
        a, b = (run(model, input_ids=ids_of(n=n)).last_hidden_state for model in (sparse, full))
        assert torch.allclose(a, b, atol=1e-5) is same


# ---- the same result on another way


@every_model
def test_deterministic(family, name):
    model, inputs = model_of(family, name), inputs_of(family, name)
    assert_same(run(model, **inputs), run(model, **inputs), atol=0, rtol=0)


@every_model
def test_train_and_eval_agree_without_dropout(family, name):
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "use_cache": False}
    model, inputs = model_of(family, name, **none), inputs_of(family, name)
    assert_same(run(model, **inputs), run(model.train(), **inputs))


@every_model
def test_alone_as_in_a_batch(family, name):
    """Every row of a ragged batch gives what it gives alone, without its padding."""
    model = model_of(family, name, use_cache=False)
    inputs = inputs_of(family, name)
    asked = {"output_hidden_states": name != "ForMultipleChoice"}  # there, rows are choices
    together = run(model, **inputs, **asked)
    for row, length in enumerate(LENGTHS[:, 0].tolist()):
        if name == "ForMultipleChoice" and length < N:
            continue  # its choices are of two lengths
        alone = {
            key: x[row : row + 1, ..., : x.shape[-1] if "decoder" in key else length]
            for key, x in inputs.items()
        }
        single = run(model, **alone, **asked)
        for key, value in single.items():
            for a, b in zip(
                value if isinstance(value, tuple) else (value,),
                together[key] if isinstance(value, tuple) else (together[key],),
                strict=True,
            ):
                b = b[row : row + 1]
                if a.ndim > 1 and b.shape[1] != a.shape[1]:
                    b = b[:, : a.shape[1]]
                torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", [*ENCODERS, *DECODERS])
def test_padding_may_be_anywhere(family):
    """Left padding, or holes, as random masks of transformers' tests have."""
    name = "ForCausalLM" if family in DECODERS else "ForMaskedLM"
    model, ids = model_of(family, name, use_cache=False), ids_of()
    mask = torch.rand(ROWS, N, generator=torch.Generator().manual_seed(3)) < 0.6
    mask[1] = torch.arange(N) >= 20
    marks = {"global_attention_mask": one_hot(mask.int().argmax(1), N)}
    marks = marks if family == "longformer" else {}
    logits = run(model, input_ids=ids, attention_mask=mask, **marks).logits
    assert not logits[~mask].any()
    for row in range(ROWS):
        kept = mask[row]
        marked = {key: x[row : row + 1, kept] for key, x in marks.items()}
        alone = run(model, input_ids=ids[row : row + 1, kept], **marked).logits
        torch.testing.assert_close(logits[row, kept], alone[0], atol=1e-5, rtol=1e-5)


@every_model
def test_tuple_as_dict(family, name):
    labels = name not in ("Model", "Seq2SeqModel", "ForEmbedding")
    model, inputs = model_of(family, name), inputs_of(family, name, labels=labels)
    attentions = name.endswith("Model") and family != "etc"
    asked = {"output_hidden_states": True, "output_attentions": attentions}
    as_dict = run(model, **inputs, **asked, return_dict=True)
    as_tuple = run(model, **inputs, **asked, return_dict=False)
    assert isinstance(as_tuple, tuple)
    assert_same(as_tuple, as_dict.to_tuple(), atol=0, rtol=0)
    model.config.return_dict = False
    assert isinstance(run(model, **inputs), tuple)


@every_model
def test_embeddings_as_ids(family, name):
    model, inputs = model_of(family, name), inputs_of(family, name)
    if name.startswith("Seq2SeqFor"):
        inputs["decoder_input_ids"] = inputs["input_ids"]
    expected = run(model, **inputs)
    lookup = model.get_input_embeddings()
    with_embeddings = {key: x for key, x in inputs.items() if not key.endswith("input_ids")}
    with_embeddings["inputs_embeds"] = lookup(inputs["input_ids"])
    if family in WRITERS:
        with_embeddings["decoder_inputs_embeds"] = lookup(inputs["decoder_input_ids"])
    if name == "Seq2SeqForSequenceClassification":
        with pytest.raises(ValueError, match="input_ids must be given"):
            run(model, **with_embeddings)
        return
    if name == "ForQuestionAnswering" and family == "bigbird":
        # Where the question ends cannot be seen in embeddings: nothing can be hidden.
        model.config.qa_hides_question = False
        expected = run(model, **inputs)
    assert_same(run(model, **with_embeddings), expected)
    assert_same(run(model, input_ids=None, **with_embeddings), expected)


@every_model
def test_a_row_without_tokens(family, name):
    """It gives finite numbers, and does not disturb the other rows."""
    model, inputs = model_of(family, name, use_cache=False), inputs_of(family, name)
    inputs["attention_mask"][1] = 0
    others = {key: x[[0, 2]] for key, x in inputs.items()}
    asked = {"output_attentions": family != "etc" and name.endswith("Model")}
    if name == "Seq2SeqForSequenceClassification":
        with pytest.raises(ValueError, match=r"end token .* rows \[1\] have none"):
            run(model, **inputs)
        return
    output = run(model, **inputs, **asked)
    for key, value in run(model, **others).items():
        if isinstance(value, Tensor):
            assert output[key].isfinite().all()
            torch.testing.assert_close(output[key][[0, 2]], value, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ENCODERS)
def test_a_mask_of_ones_is_no_mask(family):
    model, ids = model_of(family, "Model"), ids_of()
    expected = run(model, input_ids=ids)
    for dtype in (torch.long, torch.bool, torch.float32):
        mask = torch.ones(ids.shape, dtype=dtype)
        assert_same(run(model, input_ids=ids, attention_mask=mask), expected, atol=0, rtol=0)


def test_feed_forward_in_pieces(monkeypatch):
    from longbird.nn.layers import FeedForward

    for family, name in (("bigbird", "ForMaskedLM"), ("led", "ForConditionalGeneration")):
        model, inputs = model_of(family, name), inputs_of(family, name)
        whole = first_of(run(model, **inputs))
        with monkeypatch.context() as patch:
            patch.setattr(FeedForward, "PIECE", 5)
            pieces = first_of(run(model, **inputs))
        torch.testing.assert_close(pieces, whole)


# ---- hidden states and attentions


@every_model
def test_hidden_states(family, name):
    asked = {"output_hidden_states": True}
    by_config = name.endswith("Model")
    model = model_of(family, name, **(asked if by_config else {}))
    inputs = inputs_of(family, name)
    output = run(model, **inputs, **({} if by_config else asked))
    rows = 2 * ROWS if name == "ForMultipleChoice" else ROWS
    written = N if name.startswith("Seq2SeqFor") else 9
    sides = {"encoder_": N, "decoder_": written} if family in WRITERS else {"": N}
    for side, length in sides.items():
        states = output[f"{side}hidden_states"]
        assert len(states) == LAYERS + 1
        assert all(x.shape == (rows, length, WIDTH) for x in states)
    if name in ("Model", "Seq2SeqModel"):
        last = output[f"{'decoder_' if family in WRITERS else ''}hidden_states"][-1]
        assert torch.equal(last, output.last_hidden_state)
    plain = run(model, **inputs, output_hidden_states=False)
    assert not any("hidden_states" in key for key in plain)


@pytest.mark.parametrize(("family", "name"), [c for c in CASES if c[0] != "etc"])
def test_attentions(family, name):
    """Rows sum to 1 where there is a token, and look at tokens of their own document alone."""
    asked = {"output_attentions": True}
    by_config = name.endswith("Model")
    model = model_of(family, name, **(asked if by_config else {}))
    inputs = inputs_of(family, name)
    output = run(model, **inputs, **({} if by_config else asked))
    expected = run(model, **inputs, output_attentions=False)
    assert not any("attentions" in key for key in expected)
    assert_same(first_of(output), first_of(expected), atol=1e-5, rtol=1e-5)
    lengths = LENGTHS[:, 0].tolist()
    if name == "ForMultipleChoice":
        lengths = [length for pair in zip(lengths, lengths[::-1], strict=True) for length in pair]
    sparse = output["encoder_attentions" if family in WRITERS else "attentions"]
    assert len(sparse) == LAYERS
    for layer in sparse:
        weights = layer.dense(N)
        assert weights.shape == (len(lengths), HEADS, N, N)
        for row, length in zip(weights, lengths, strict=True):
            torch.testing.assert_close(row[:, :length].sum(-1), torch.ones(HEADS, length))
            assert not row[:, length:].any() and not row[..., length:].any()
    if family in WRITERS:
        written = N if name.startswith("Seq2SeqFor") else 9
        for key, keys in (("decoder_attentions", written), ("cross_attentions", N)):
            assert [x.shape for x in output[key]] == [(ROWS, HEADS, written, keys)] * LAYERS
            for x in output[key]:
                torch.testing.assert_close(x.sum(-1), torch.ones(ROWS, HEADS, written))
    if family in DECODERS:
        assert not sparse[0].dense(N).triu(1).any()


@pytest.mark.parametrize("family", ["longformer", "led"])
def test_global_tokens_see_and_are_seen(family):
    name = "Seq2SeqModel" if family in WRITERS else "Model"
    model, inputs = model_of(family, name), inputs_of(family, name)
    inputs["global_attention_mask"] = one_hot(torch.tensor([7, 8, 9]), N)
    output = run(model, **inputs, output_attentions=True)
    key = "encoder_attentions" if family in WRITERS else "attentions"
    for layer in output[key]:
        for row, (place, length) in enumerate(zip((7, 8, 9), (N, 30, 11), strict=True)):
            weights = layer.dense(N)[row, :, :length, :length]
            assert (weights[:, place] > 0).all() and (weights[:, :, place] > 0).all()
    without = {k: x for k, x in inputs.items() if k != "global_attention_mask"}
    changed = first_of(run(model, **without)) - first_of(output)
    assert changed.abs().amax((1, 2)).min() > 1e-3


def test_each_task_of_longformer_has_its_global_tokens():
    ids = ids_of()
    ids[:, [4, 5, N - 1]] = SIZES["sep_token_id"]
    column = torch.arange(N).expand(ROWS, N)
    for name, expected in (
        ("ForSequenceClassification", column == 0),
        ("ForQuestionAnswering", column < 4),
        ("ForMultipleChoice", column > 5),
        ("ForTokenClassification", None),
        ("ForMaskedLM", None),
    ):
        model = model_of("longformer", name)
        shape = (lambda x: x[:, None]) if name == "ForMultipleChoice" else (lambda x: x)
        marks = {} if expected is None else {"global_attention_mask": shape(expected.long())}
        assert_same(
            run(model, input_ids=shape(ids)),
            run(model, input_ids=shape(ids), **marks),
            rtol=0,
            atol=0,
        )


@every_model
def test_gradients_reach_hidden_states_and_embeddings(family, name):
    model, inputs = model_of(family, name), inputs_of(family, name)
    model.enable_input_require_grads()
    first_of(model(**inputs)).square().sum().backward()
    gradient = model.get_input_embeddings().weight.grad
    assert gradient.isfinite().all() and gradient.any()
    model.disable_input_require_grads()


# ---- files


@every_model
def test_save_and_load(family, name, tmp_path):
    model, inputs = model_of(family, name), inputs_of(family, name)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "config.json").is_file() and (tmp_path / "model.safetensors").is_file()
    assert (tmp_path / "generation_config.json").is_file() is model.can_generate()
    loaded, info = class_of(name).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert not loaded.training
    assert_same(run(loaded, **inputs), run(model, **inputs))
    assert loaded.config.layer_graphs == model.config.layer_graphs
    loaded.save_pretrained(tmp_path / "again")
    again = class_of(name).from_pretrained(tmp_path / "again")
    assert_same(again.state_dict(), model.state_dict(), atol=0, rtol=0)
    assert all(parameter.is_contiguous() for parameter in again.parameters())


AUTO = {
    "Model": "AutoModel",
    "ForPreTraining": "AutoModelForPreTraining",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForMultipleChoice": "AutoModelForMultipleChoice",
    "ForQuestionAnswering": "AutoModelForQuestionAnswering",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForCausalLM": "AutoModelForCausalLM",
    "Seq2SeqModel": "AutoModel",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
    "Seq2SeqForQuestionAnswering": "AutoModelForQuestionAnswering",
    "Seq2SeqForSequenceClassification": "AutoModelForSequenceClassification",
}


@pytest.mark.parametrize(
    ("family", "name"),
    [("bigbird", name) for name in ENCODER_CLASSES if name in AUTO]
    + [("window", "ForCausalLM")]
    + [("led", name) for name in WRITER_CLASSES],
)
def test_auto_classes(family, name, tmp_path):
    model_of(family, name).save_pretrained(tmp_path)
    auto = getattr(transformers, AUTO[name])
    loaded = auto.from_pretrained(tmp_path)
    assert type(loaded) is class_of(name)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    assert type(config) is class_of(name).config_class
    assert type(auto.from_config(config)) is class_of(name)


@pytest.mark.parametrize("family", [*ENCODERS, *WRITERS])
def test_configuration(family, tmp_path):
    config = config_of(family, num_labels=5, id2label=None, problem_type="regression")
    config.save_pretrained(tmp_path)
    loaded = type(config).from_pretrained(tmp_path)
    assert loaded.to_dict() == config.to_dict()
    assert loaded.layer_graphs == config.layer_graphs
    assert copy.deepcopy(config).to_dict() == config.to_dict()
    assert len(loaded.id2label) == len(loaded.label2id) == 5
    loaded.num_labels = 3
    assert len(loaded.id2label) == 3
    assert type(config)(**config.to_diff_dict()).to_dict() == config.to_dict()
    assert type(config).from_pretrained(tmp_path, hidden_act="relu").hidden_act == "relu"
    assert type(config)().num_attention_heads > 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bigbird", "ForMaskedLM"),
        ("bigbird", "ForQuestionAnswering"),
        ("longformer", "Model"),
        ("etc", "ForEmbedding"),
        ("led", "ForConditionalGeneration"),
    ],
)
def test_half_precision(dtype, family, name, tmp_path):
    model, inputs = model_of(family, name, initializer_range=0.05), inputs_of(family, name)
    model.save_pretrained(tmp_path)
    half = class_of(name).from_pretrained(tmp_path, dtype=dtype)
    assert {parameter.dtype for parameter in half.parameters()} == {dtype}
    got, expected = first_of(run(half, **inputs)), first_of(run(model, **inputs))
    assert got.dtype in (dtype, torch.float32)
    shown = expected > -1e4  # in half precision, what cannot be an answer is as low as it goes
    assert torch.equal(got > -1e4, shown)
    torch.testing.assert_close(got.float()[shown], expected[shown], atol=0.1, rtol=0.1)


def test_loading_from_given_tensors():
    """Without a file: `from_pretrained(None, config=..., state_dict=...)`."""
    for family, name in (("bigbird", "ForMaskedLM"), ("led", "ForConditionalGeneration")):
        model = model_of(family, name)
        loaded = class_of(name).from_pretrained(
            None, config=model.config, state_dict=model.state_dict()
        )
        assert_same(loaded.state_dict(), model.state_dict(), atol=0, rtol=0)


def test_a_head_from_a_base_model_and_back(tmp_path, caplog):
    """What is not in the file is listed, never taken silently."""
    base = model_of("bigbird", "Model")
    base.save_pretrained(tmp_path / "base")
    head = lb.LongbirdForSequenceClassification.from_pretrained(tmp_path / "base")
    assert "classifier.out.weight" in caplog.text
    for key, value in head.longbird.state_dict().items():
        assert torch.equal(value, base.state_dict()[key])
    head.save_pretrained(tmp_path / "head")
    caplog.clear()
    back = lb.LongbirdModel.from_pretrained(tmp_path / "head")
    assert "left out of the file: classifier.dense.bias" in caplog.text
    for key, value in head.longbird.state_dict().items():
        assert torch.equal(value, back.state_dict()[key])


@pytest.mark.parametrize(
    ("family", "base", "name"),
    [
        ("bigbird", "Model", "ForMaskedLM"),
        ("window", "Model", "ForCausalLM"),
        ("led", "Seq2SeqModel", "ForConditionalGeneration"),
    ],
)
def test_who_asks_for_the_list_gets_it(family, base, name, tmp_path):
    """`output_loading_info` is for callers that look at the missing names themselves."""
    model = model_of(family, base)
    model.save_pretrained(tmp_path)
    loaded, info = class_of(name).from_pretrained(tmp_path, output_loading_info=True)
    prefix = loaded.base_model_prefix
    heads = {key for key, _ in loaded.named_parameters() if not key.startswith(f"{prefix}.")}
    # The bias of a decoder's logits is zero where a file has none.
    assert set(info["missing_keys"]) == heads
    for key, value in loaded.base_model.state_dict().items():
        assert torch.equal(value, model.state_dict()[key])


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bigbird", "ForMaskedLM"),
        *((family, name) for family in WRITERS for name in WRITER_CLASSES),
    ],
)
def test_lost_embeddings_are_missed(family, name, tmp_path):
    """Tied weights are in the file once: without it, all of them are missing."""
    model_of(family, name).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = load_file(file)
    lost = [key for key in tensors if tensors[key].shape == (VOCABULARY, WIDTH)]
    assert len(lost) == 1
    save_file({key: x for key, x in tensors.items() if key not in lost}, file, {"format": "pt"})
    with pytest.raises(ValueError, match=re.escape(lost[0])):
        class_of(name).from_pretrained(tmp_path)


@pytest.mark.parametrize("family", ["bigbird", "longformer", "etc"])
def test_another_number_of_labels(family, tmp_path):
    model = model_of(family, "ForSequenceClassification", num_labels=3)
    model.save_pretrained(tmp_path)
    load = lb.LongbirdForSequenceClassification.from_pretrained
    other = load(tmp_path, num_labels=7)
    inputs = inputs_of(family, "ForSequenceClassification")
    assert run(other, **inputs).logits.shape == (ROWS, 7)
    assert_same(other.longbird.state_dict(), model.longbird.state_dict(), atol=0, rtol=0)


# ---- weights


@every_model
def test_initialisation(family, name):
    """Weights around 0 as wide as the configuration says, norms 1, biases 0; as from `meta`."""
    model = class_of(name)(config_of(family, initializer_range=1e-10))
    for key, parameter in model.named_parameters():
        is_norm = "norm" in key and key.endswith("weight")
        torch.testing.assert_close(
            parameter, torch.full_like(parameter, float(is_norm)), atol=1e-8, rtol=0
        )
    with torch.device("meta"):
        empty = class_of(name)(config_of(family, initializer_range=1e-10))
    empty.to_empty(device="cpu").init_weights()
    assert_same(empty.state_dict(), model.state_dict(), atol=1e-8, rtol=0)
    assert_same(dict(empty.named_buffers()), dict(model.named_buffers()), atol=0, rtol=0)
    run(empty.eval(), **inputs_of(family, name))


@every_lm
def test_tied_weights(family, name, tmp_path):
    model = model_of(family, name)
    given, taken = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert given is taken
    model.save_pretrained(tmp_path)
    loaded = class_of(name).from_pretrained(tmp_path)
    assert loaded.get_input_embeddings().weight is loaded.get_output_embeddings().weight
    untied = model_of(family, name, tie_word_embeddings=False)
    assert not torch.equal(
        untied.get_input_embeddings().weight, untied.get_output_embeddings().weight
    )
    untied.save_pretrained(tmp_path)
    loaded = class_of(name).from_pretrained(tmp_path)
    assert_same(loaded.state_dict(), untied.state_dict(), atol=0, rtol=0)


@every_lm
@pytest.mark.parametrize("tied", [True, False])
def test_resized_vocabulary(family, name, tied):
    model = model_of(family, name, tie_word_embeddings=tied)
    inputs = inputs_of(family, name)
    kind = type(model.get_input_embeddings())
    before = model.get_input_embeddings().weight.clone()
    expected = first_of(run(model, **inputs))
    for size in (VOCABULARY + 10, VOCABULARY):
        embeddings = model.resize_token_embeddings(size)
        assert embeddings is model.get_input_embeddings()
        assert type(embeddings) is kind
        assert model.config.vocab_size == size == embeddings.num_embeddings
        assert torch.equal(embeddings.weight[:VOCABULARY], before)
        output = model.get_output_embeddings()
        assert output.weight.shape == (size, WIDTH) and output.out_features == size
        assert (output.weight is embeddings.weight) is tied
        changed = inputs | {"input_ids": inputs["input_ids"].clone()}
        if size > VOCABULARY:
            changed["input_ids"][:, 5] = size - 1
        logits = first_of(run(model, **changed))
        assert logits.shape[-1] == size
    torch.testing.assert_close(logits, expected)
    assert model.resize_token_embeddings(pad_to_multiple_of=16).num_embeddings == 64


@every_model
def test_embeddings_can_be_replaced(family, name):
    model = model_of(family, name)
    assert isinstance(model.get_input_embeddings(), nn.Embedding)
    other = nn.Embedding(VOCABULARY, WIDTH)
    model.set_input_embeddings(other)
    assert model.get_input_embeddings() is other
    assert (model.base_model is model) == name.endswith("Model")
    assert model.main_input_name == "input_ids"


# ---- training


def training_model(family, name, **changes):
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "use_cache": False}
    return model_of(family, name, **{**none, **changes}).train()


def gradients_of(model, inputs):
    model.zero_grad()
    model(**inputs).loss.backward()
    return {
        key: parameter.grad.clone()
        for key, parameter in model.named_parameters()
        if parameter.grad is not None
    }


@every_loss
def test_training_with_and_without_checkpointing(family, name):
    """All parameters learn, and recomputing the layers gives the same gradients."""
    model, inputs = training_model(family, name), inputs_of(family, name, labels=True)
    expected = gradients_of(model, inputs)
    assert set(expected) == {key for key, _ in model.named_parameters()}
    assert all(gradient.isfinite().all() for gradient in expected.values())
    layer = next(m for m in model.modules() if isinstance(m, GradientCheckpointingLayer))
    for reentrant in (False, True):
        options = {"use_reentrant": reentrant}
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
        with mock.patch.object(layer, "forward", wraps=layer.forward) as forward:
            if reentrant:
                model.enable_input_require_grads()
            got = gradients_of(model, inputs)
            assert forward.call_count > 1
        assert_same(got, expected, atol=1e-5, rtol=1e-4)
        model.gradient_checkpointing_disable()
    model.disable_input_require_grads()


@every_loss
def test_dropout_is_seeded_by_torch(family, name):
    model = training_model(family, name, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    inputs = inputs_of(family, name, labels=True)
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(float(run(model, **inputs).loss))
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("family", ENCODERS)
@pytest.mark.parametrize(
    ("problem", "labels"),
    [
        ("multi_label_classification", torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])),
        ("single_label_classification", torch.tensor([0, 1, 1])),
        ("regression", torch.tensor([0.3, -1.0, 2.0])),
    ],
    ids=["several", "one", "number"],
)
def test_problem_types(family, problem, labels):
    count = 1 if problem == "regression" else 2
    name = "ForSequenceClassification"
    model = training_model(family, name, num_labels=count, problem_type=problem)
    output = model(**inputs_of(family, name), labels=labels)
    output.loss.backward()
    expected = {
        "multi_label_classification": nn.functional.binary_cross_entropy_with_logits,
        "single_label_classification": cross_entropy,
        "regression": lambda x, y: (x[:, 0] - y).square().mean(),
    }[problem](output.logits, labels)
    torch.testing.assert_close(output.loss, expected)


@pytest.mark.parametrize("name", ["ForMaskedLM", "ForTokenClassification"])
def test_labels_that_do_not_count(name):
    """-100, and whatever stands in the padding."""
    model, inputs = model_of("bigbird", name), inputs_of("bigbird", name, labels=True)
    inputs["labels"][:, 3:9] = -100
    output = run(model, **inputs)
    hidden = inputs["labels"].masked_fill(MASK == 0, -100)
    expected = cross_entropy(output.logits.flatten(0, 1), hidden.flatten())
    torch.testing.assert_close(output.loss, expected)


@every_decoder
def test_causal_loss(family):
    """Every token is predicted from those before it; padding neither predicts nor is predicted."""
    model, inputs = model_of(family, "ForCausalLM"), inputs_of(family, "ForCausalLM")
    output = run(model, **inputs, labels=inputs["input_ids"])
    labels = inputs["input_ids"].masked_fill(MASK == 0, -100)
    expected = cross_entropy(output.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    torch.testing.assert_close(output.loss, expected)


@every_decoder
def test_labels_that_are_shifted_already(family):
    """`shift_labels`, which transformers gives where a sequence is split between machines."""
    model, ids = model_of(family, "ForCausalLM"), ids_of()
    following = nn.functional.pad(ids[:, 1:], (0, 1), value=-100)
    expected = run(model, input_ids=ids, labels=ids).loss
    got = run(model, input_ids=ids, labels=ids, shift_labels=following).loss
    torch.testing.assert_close(got, expected)


@every_writer
def test_loss_of_the_output_is_shifted_once(family):
    model = model_of(family, "ForConditionalGeneration")
    inputs = inputs_of(family, "ForConditionalGeneration", labels=True)
    inputs["labels"][1, 6:] = -100
    output = run(model, **inputs)
    expected = cross_entropy(output.logits.flatten(0, 1), inputs["labels"].flatten())
    torch.testing.assert_close(output.loss, expected)
    start, pad = model.config.decoder_start_token_id, model.config.pad_token_id
    shifted = torch.full_like(inputs["labels"], start)
    shifted[:, 1:] = inputs["labels"][:, :-1].masked_fill(inputs["labels"][:, :-1] == -100, pad)
    del inputs["decoder_input_ids"]
    by_labels = run(model, **inputs)
    del inputs["labels"]
    by_ids = run(model, **inputs, decoder_input_ids=shifted)
    torch.testing.assert_close(by_labels.logits, by_ids.logits)


# ---- caches


@every_decoder
@pytest.mark.parametrize("steps", [[1] * 12, [3, 1, 5, 3], [12]], ids=["one", "some", "all"])
def test_cached_steps_of_a_causal_model(family, steps):
    model, ids = model_of(family, "ForCausalLM"), ids_of(n=32)
    expected = run(model, input_ids=ids, use_cache=False)
    assert expected.past_key_values is None
    output = run(model, input_ids=ids[:, :20])  # a cache is made without asking
    logits = [output.logits]
    for step in steps:
        seen = sum(x.shape[1] for x in logits)
        output = run(
            model, input_ids=ids[:, seen : seen + step], past_key_values=output.past_key_values
        )
        logits.append(output.logits)
    torch.testing.assert_close(torch.cat(logits, 1), expected.logits, atol=1e-4, rtol=1e-4)


@every_decoder
def test_cached_steps_after_left_padding(family):
    model, ids = model_of(family, "ForCausalLM"), ids_of(n=32)
    mask = torch.arange(32) >= torch.tensor([[0], [6], [13]])
    expected = run(model, input_ids=ids, attention_mask=mask, use_cache=False).logits
    output = run(model, input_ids=ids[:, :20], attention_mask=mask[:, :20], use_cache=True)
    for n in (21, 24, 32):
        seen = output.past_key_values.get_seq_length()
        output = run(
            model,
            input_ids=ids[:, seen:n],
            attention_mask=mask[:, :n],
            past_key_values=output.past_key_values,
        )
        torch.testing.assert_close(output.logits, expected[:, seen:n], atol=1e-4, rtol=1e-4)


@every_writer
@pytest.mark.parametrize("steps", [[1] * 5, [3, 2]], ids=["one", "some"])
def test_cached_steps_of_a_writer(family, steps):
    model = model_of(family, "ForConditionalGeneration")
    inputs = inputs_of(family, "ForConditionalGeneration")
    output_ids = inputs.pop("decoder_input_ids")
    output_mask = torch.arange(9) >= torch.tensor([[0], [2], [3]])
    for mask in (None, output_mask):
        masks = {} if mask is None else {"decoder_attention_mask": mask}
        whole = run(model, **inputs, decoder_input_ids=output_ids, use_cache=False, **masks)
        assert whole.past_key_values is None
        masks = {} if mask is None else {"decoder_attention_mask": mask[:, :4]}
        output = run(model, **inputs, decoder_input_ids=output_ids[:, :4], **masks)
        encoded = (output.encoder_last_hidden_state,)
        seen = 4
        for step in steps:
            masks = {} if mask is None else {"decoder_attention_mask": mask[:, : seen + step]}
            output = run(
                model,
                attention_mask=inputs["attention_mask"],
                encoder_outputs=encoded,
                decoder_input_ids=output_ids[:, seen : seen + step],
                past_key_values=output.past_key_values,
                **masks,
            )
            got, expected = output.logits, whole.logits[:, seen : seen + step]
            torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
            seen += step
        assert output.past_key_values.get_seq_length() == 9


@every_writer
def test_encoder_alone(family, tmp_path):
    """What the encoder gives alone, after a file too, is what the whole model makes of it."""
    model, inputs = model_of(family, "Seq2SeqModel"), inputs_of(family, "Seq2SeqModel")
    expected = run(model, **inputs)
    output_ids = inputs.pop("decoder_input_ids")
    encoder = model.get_encoder()
    encoded = run(encoder, **inputs)
    assert torch.equal(encoded[0], expected.encoder_last_hidden_state)
    given = run(
        model,
        attention_mask=inputs["attention_mask"],
        encoder_outputs=encoded,
        decoder_input_ids=output_ids,
    )
    assert torch.equal(given.last_hidden_state, expected.last_hidden_state)
    encoder.save_pretrained(tmp_path)
    loaded = type(encoder).from_pretrained(tmp_path)
    torch.testing.assert_close(run(loaded, **inputs)[0], encoded[0])


@every_writer
def test_decoder_alone(family, tmp_path):
    """The decoder runs without the rest of the model, with a cache, and after a file."""
    model, inputs = model_of(family, "Seq2SeqModel"), inputs_of(family, "Seq2SeqModel")
    expected = run(model, **inputs)
    decoder = model.get_decoder()
    read = {
        "encoder_hidden_states": expected.encoder_last_hidden_state,
        "encoder_attention_mask": inputs["attention_mask"],
    }
    ids = inputs["decoder_input_ids"]
    output = run(decoder, input_ids=ids, **read)
    torch.testing.assert_close(output.last_hidden_state, expected.last_hidden_state)
    first = run(decoder, input_ids=ids[:, :6], use_cache=True, **read)
    then = run(decoder, input_ids=ids[:, 6:], past_key_values=first.past_key_values, **read)
    torch.testing.assert_close(
        then.last_hidden_state, expected.last_hidden_state[:, 6:], atol=1e-4, rtol=1e-4
    )
    decoder.save_pretrained(tmp_path)
    loaded = type(decoder).from_pretrained(tmp_path)
    assert torch.equal(run(loaded, input_ids=ids, **read)[0], output[0])


@every_writer
def test_decoder_without_an_encoder(family):
    """A language model of its own: without an input there is no attention to it."""
    decoder, ids = model_of(family, "Seq2SeqModel").get_decoder(), ids_of(n=12)
    mask = torch.arange(12) >= torch.tensor([[0], [2], [5]])
    expected = run(decoder, input_ids=ids, attention_mask=mask).last_hidden_state
    first = run(decoder, input_ids=ids[:, :9], attention_mask=mask[:, :9], use_cache=True)
    cache = first.past_key_values
    then = run(decoder, input_ids=ids[:, 9:], attention_mask=mask, past_key_values=cache)
    got = then.last_hidden_state
    torch.testing.assert_close(got, expected[:, 9:], atol=1e-4, rtol=1e-4)


def test_a_graph_that_cannot_be_streamed():
    """It needs no cache to be evaluated or, slowly, to generate; and none is made up."""
    model, inputs = model_of("bigbird", "ForCausalLM"), inputs_of("bigbird", "ForCausalLM", True)
    output = run(model, **inputs)
    assert output.past_key_values is None and output.loss.isfinite()
    assert_same(run(model, **inputs, use_cache=False), output, atol=0, rtol=0)
    with pytest.raises(ValueError, match="LegacyBigBird"):
        run(model, **inputs, use_cache=True)
    ids = inputs["input_ids"]
    got = model.generate(ids, max_new_tokens=2, do_sample=False, use_cache=False)
    assert torch.equal(got[:, N], run(model, input_ids=ids).logits[:, -1].argmax(-1))


# ---- generation

GENERATORS = [*((f, "ForCausalLM") for f in DECODERS), *((f, WRITER_CLASSES[1]) for f in WRITERS)]
every_generator = pytest.mark.parametrize(("family", "name"), GENERATORS)
METHODS = {
    "greedy": {"do_sample": False},
    "sample": {"do_sample": True, "top_k": 10, "temperature": 0.7, "num_return_sequences": 2},
    "beams": {"num_beams": 3, "do_sample": False, "length_penalty": 2.0},
    "beam sample": {"num_beams": 2, "do_sample": True, "num_return_sequences": 2},
    "processors": {
        "repetition_penalty": 1.2,
        "bad_words_ids": [[1, 0]],
        "no_repeat_ngram_size": 2,
    },
}


def prompt_of(family):
    """A batch to generate from: padded on the left, or a text to read."""
    if family in WRITERS:
        inputs = inputs_of(family, "ForConditionalGeneration")
        del inputs["decoder_input_ids"]
        return inputs
    return {"input_ids": ids_of(n=17), "attention_mask": (torch.arange(17) >= LENGTHS // 9).long()}


def generate(model, prompt, new=6, **options):
    torch.manual_seed(0)
    return model.generate(
        **prompt,
        max_new_tokens=new,
        min_new_tokens=new,
        **{"return_dict_in_generate": True, "output_logits": True, **options},
    )


@every_generator
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_generation_with_and_without_cache(family, name, method):
    model, prompt = model_of(family, name), prompt_of(family)
    cached = generate(model, prompt, use_cache=True, **method)
    plain = generate(model, prompt, use_cache=False, **method)
    start = 1 if family in WRITERS else prompt["input_ids"].shape[1]
    rows = ROWS * method.get("num_return_sequences", 1)
    assert cached.sequences.shape == (rows, start + 6)
    assert cached.past_key_values is not None and plain.get("past_key_values") is None
    assert torch.equal(cached.sequences, plain.sequences)
    assert_same(cached.logits, plain.logits, atol=1e-4, rtol=1e-4)


@every_generator
def test_generation_alone_as_in_a_batch(family, name):
    model, prompt = model_of(family, name), prompt_of(family)
    together = generate(model, prompt).sequences
    for row in range(ROWS):
        kept = prompt["attention_mask"][row] != 0
        alone = generate(model, {key: x[row : row + 1, kept] for key, x in prompt.items()})
        assert torch.equal(alone.sequences[0, -6:], together[row, -6:])


@every_generator
def test_generation_can_go_on(family, name):
    """From the cache of an earlier call, as from the beginning."""
    model, prompt = model_of(family, name), prompt_of(family)
    expected = generate(model, prompt, new=7)
    begun = generate(model, prompt, new=4)
    key = "decoder_input_ids" if family in WRITERS else "input_ids"
    prompt[key] = begun.sequences
    if family in DECODERS:
        prompt["attention_mask"] = nn.functional.pad(prompt["attention_mask"], (0, 4), value=1)
    else:  # without it, transformers gives the model the whole output again
        prompt["decoder_attention_mask"] = torch.ones_like(begun.sequences)
    ended = generate(model, prompt, new=3, past_key_values=begun.past_key_values)
    assert torch.equal(ended.sequences, expected.sequences)
    assert_same(begun.logits + ended.logits, expected.logits, atol=1e-4, rtol=1e-4)


@every_generator
def test_generation_reports_everything(family, name):
    model, prompt = model_of(family, name), prompt_of(family)
    asked = {"output_scores": True, "output_hidden_states": True, "output_attentions": True}
    output = generate(model, prompt, use_cache=False, **asked)
    assert [x.shape for x in output.scores] == [(ROWS, VOCABULARY)] * 6
    prefix = "decoder_" if family in WRITERS else ""
    start = 1 if family in WRITERS else prompt["input_ids"].shape[1]
    states, weights = output[f"{prefix}hidden_states"], output[f"{prefix}attentions"]
    assert len(states) == len(weights) == 6
    for step, (of_states, of_weights) in enumerate(zip(states, weights, strict=True)):
        n = start + step
        assert [x.shape for x in of_states] == [(ROWS, n, WIDTH)] * (LAYERS + 1)
        dense = [x if isinstance(x, Tensor) else x.dense(n) for x in of_weights]
        assert [x.shape for x in dense] == [(ROWS, HEADS, n, n)] * LAYERS
    if family in WRITERS:
        assert len(output.encoder_hidden_states) == LAYERS + 1
        assert len(output.encoder_attentions) == len(output.cross_attentions[0]) == LAYERS


@every_decoder
@pytest.mark.parametrize("beams", [1, 2])
def test_generation_from_embeddings(family, beams):
    model, prompt = model_of(family, "ForCausalLM"), prompt_of(family)
    expected = generate(model, prompt, num_beams=beams).sequences
    ids = prompt.pop("input_ids")
    embeddings = model.get_input_embeddings()(ids)
    got = generate(model, {**prompt, "inputs_embeds": embeddings}, num_beams=beams).sequences
    assert torch.equal(got, expected[:, ids.shape[1] :])


@every_decoder
def test_generation_with_given_positions(family):
    model, prompt = model_of(family, "ForCausalLM"), prompt_of(family)
    places = (prompt["attention_mask"].cumsum(1) - 1).clamp(min=0)
    expected = generate(model, prompt)
    got = generate(model, {**prompt, "position_ids": places})
    assert torch.equal(got.sequences, expected.sequences)
    assert_same(got.logits, expected.logits, atol=1e-4, rtol=1e-4)


@every_generator
def test_logits_of_the_last_tokens_alone(family, name):
    model, inputs = model_of(family, name), inputs_of(family, name)
    expected = run(model, **inputs).logits
    for kept in (0, 1, 3):
        got = run(model, **inputs, logits_to_keep=kept).logits
        torch.testing.assert_close(got, expected[:, -kept:], atol=1e-5, rtol=1e-5)


@every_generator
def test_generation_from_nothing(family, name):
    model = model_of(family, name)
    assert model.generate(do_sample=False, max_new_tokens=3).shape[0] == 1


@every_writer
def test_generation_with_a_draft(family):
    """Assisted decoding, and drafts copied from the prompt, change nothing."""
    model, other = (model_of(family, "ForConditionalGeneration", seed=seed) for seed in (0, 1))
    prompt = {key: x[:1] for key, x in prompt_of(family).items()}
    expected = generate(model, prompt, new=8).sequences
    for assistant in (model, other):
        assistant.generation_config.num_assistant_tokens = 2
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
        assert torch.equal(
            generate(model, prompt, new=8, assistant_model=assistant).sequences, expected
        )
    lookup = generate(model, prompt, new=8, prompt_lookup_num_tokens=2).sequences
    assert torch.equal(lookup, expected)


@every_writer
def test_generation_in_half_precision(family):
    model, prompt = model_of(family, "ForConditionalGeneration").half(), prompt_of(family)
    assert generate(model, prompt, num_beams=2).sequences.shape == (ROWS, 7)
    assert generate(model, prompt, **METHODS["sample"]).sequences.shape == (2 * ROWS, 7)


@every_writer
def test_an_encoder_decoder_may_be_called_a_decoder(family):
    """transformers sets `is_decoder` on the whole model; its encoder stays an encoder."""
    prompt = prompt_of(family)
    expected = generate(model_of(family, "ForConditionalGeneration"), prompt)
    got = generate(model_of(family, "ForConditionalGeneration", is_decoder=True), prompt)
    assert torch.equal(got.sequences, expected.sequences)


@every_generator
def test_what_generation_is_given_reaches_the_model(family, name):
    model = model_of(family, name)
    given = {"output_attentions": True, "output_hidden_states": True, "another": 42}
    prepared = model.prepare_inputs_for_generation(input_ids=ids_of(n=3), **given)
    assert ("decoder_input_ids" if family in WRITERS else "input_ids") in prepared
    assert given.items() <= prepared.items()
    assert transformers.GenerationMixin in type(model).__bases__
