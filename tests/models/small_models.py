"""Small models with random weights, over every family and head, and how results are compared.

For what transformers' own tests ask of BigBird, Longformer, BigBird-Pegasus and LED: checks are
against another way to the same result, so that no downloaded weights are needed.
"""

from dataclasses import fields, is_dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot
from transformers.cache_utils import Cache, CacheLayerMixin

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
    """Outputs of models, or parts of them: all of them, whatever they are made of."""
    assert type(a) is type(b), f"{type(a)} is not {type(b)}"
    match a:
        case Tensor():
            torch.testing.assert_close(a, b, **tolerance)
        case dict():
            assert a.keys() == b.keys()
            for key in a:
                assert_same(a[key], b[key], **tolerance)
        case list() | tuple():
            for x, y in zip(a, b, strict=True):
                assert_same(x, y, **tolerance)
        case Cache() | CacheLayerMixin():
            assert_same(vars(a), vars(b), **tolerance)
        case None | bool() | int() | str() | type() | torch.dtype() | torch.device() | lb.Graph():
            assert a == b
        case _ if is_dataclass(a):
            for field in fields(a):
                assert_same(getattr(a, field.name), getattr(b, field.name), **tolerance)
        case _:
            raise TypeError(f"assert_same does not know how to compare {type(a)}")
