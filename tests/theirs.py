"""Models of transformers at random, ours from the same weights, and how the two are compared."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

import longbird
from longbird.models.checkpoints.folders import FAMILIES

SEQ2SEQ = ("bigbird_pegasus", "led")
HEADS = [
    (family, head.__name__) for family, form in FAMILIES.items() for head in form.architectures
]

WIDTH: dict[str, Any] = {
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "vocab_size": 120,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
SEQ2SEQ_NAMES = {
    "hidden_size": "d_model",
    "num_attention_heads": "encoder_attention_heads",
    "intermediate_size": "encoder_ffn_dim",
    "num_hidden_layers": "encoder_layers",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "hidden_act": "activation_function",
}
BLOCKS = {"block_size": 4, "num_random_blocks": 2, "max_position_embeddings": 256}
DECODER = {"decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 36}
OWN: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {},
    "mpnet": {},
    "big_bird": BLOCKS,
    "longformer": {"attention_window": 8, "sep_token_id": 3},
    "bigbird_pegasus": {**BLOCKS, **DECODER},
    "led": {
        **DECODER,
        "attention_window": 8,
        "max_encoder_position_embeddings": 400,
        "max_decoder_position_embeddings": 64,
    },
}

PER_TOKEN = {
    "hidden_states",
    "encoder_hidden_states",
    "encoder_last_hidden_state",
    "prediction_logits",
    "start_logits",
    "end_logits",
}
"""Outputs with a row for each token of the input, whatever the head."""
NOT_COMPARED = (
    "loss",
    "past_key_values",
    "attentions",
    "global_attentions",
    "encoder_attentions",
    "encoder_global_attentions",
    "decoder_attentions",
    "cross_attentions",
)


def configuration(family: str, head: str = "LongbirdModel", **changes: Any) -> Any:
    """A small configuration of theirs, without dropout."""
    fields = {**WIDTH, **OWN[family]}
    if head == "LongbirdForCausalLM":
        fields["is_decoder"] = True
        if family == "big_bird":  # its sparse attention shows a decoder what is to come
            fields["attention_type"] = "original_full"
    fields |= changes
    if family in SEQ2SEQ:
        fields = {SEQ2SEQ_NAMES.get(name, name): value for name, value in fields.items()}
    return transformers.CONFIG_MAPPING[family](**fields)


def random_configuration(family: str, head: str, seed: int) -> Any:
    """A configuration drawn at random from what the family can say."""
    draw = random.Random(f"{family} {head} {seed}")
    heads = draw.choice([1, 2, 3, 4])
    fields: dict[str, Any] = {
        "num_attention_heads": heads,
        "hidden_size": heads * draw.choice([4, 8, 10, 16]),
        "num_hidden_layers": draw.choice([1, 2, 3]),
        "intermediate_size": draw.choice([7, 32, 65]),
        "vocab_size": draw.choice([90, 101]),
        "hidden_act": draw.choice(["relu", "gelu", "gelu_new", "gelu_fast", "silu", "quick_gelu"]),
    }
    if family in SEQ2SEQ:
        fields["decoder_layers"] = draw.choice([1, 3])
        fields["decoder_attention_heads"] = draw.choice([1, heads])
        fields["decoder_ffn_dim"] = draw.choice([9, 50])
        if head.endswith("SequenceClassification"):
            fields["num_labels"] = draw.choice([1, 2, 5])
    else:
        fields["layer_norm_eps"] = draw.choice([1e-12, 1e-5])
        fields["tie_word_embeddings"] = draw.random() < 0.7
        if head != "LongbirdForQuestionAnswering":
            fields["num_labels"] = draw.choice([1, 2, 5])
    if family != "mpnet":
        fields["pad_token_id"] = draw.choice([0, 1, 2])
        if family not in SEQ2SEQ:
            fields["type_vocab_size"] = draw.choice([2, 3])
    if family in ("big_bird", "bigbird_pegasus"):
        fields["block_size"] = draw.choice([2, 4, 8])
        fields["num_random_blocks"] = draw.choice([1, 2, 3])
        fields["use_bias"] = draw.random() < 0.5
        name = "rescale_embeddings" if family == "big_bird" else "scale_embedding"
        fields[name] = draw.random() < 0.5
    if family in ("longformer", "led"):
        window = draw.choice([4, 8, 16])
        each = [draw.choice([window, 2 * window]) for _ in range(fields["num_hidden_layers"])]
        fields["attention_window"] = draw.choice([window, each])
    return configuration(family, head, **fields)


def large_weights(model: nn.Module, seed: int = 0) -> None:
    """Fills a model with weights so large that every difference shows, norms and biases too."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.0, 0.15, generator=generator)
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight.add_(1.0)
        for name, buffer in model.named_buffers():
            if name.endswith("final_logits_bias"):
                buffer.normal_(0.0, 0.3, generator=generator)


def theirs_of(family: str, head: str, config: Any, seed: int = 0) -> Any:
    """A model of theirs with large weights, in evaluation mode."""
    architecture = FAMILIES[family].architectures[getattr(longbird, head)]
    model = getattr(transformers, architecture)(config)
    large_weights(model, seed)
    return model.eval()


def twins(family: str, head: str, config: Any, folder: Path, **options: Any) -> tuple[Any, Any]:
    """A model of theirs, and ours loaded from what it saves.

    With `random_blocks="seeded"`, the default, theirs is in training mode, where BigBird of
    transformers draws its random blocks; configurations here have no dropout.
    """
    theirs = theirs_of(family, head, config)
    theirs.save_pretrained(folder)
    ours = getattr(longbird, head).from_pretrained(folder, **options)
    if "bird" in family and options.get("random_blocks", "seeded") == "seeded":
        theirs.train()
    return theirs, ours


def forget(theirs: Any) -> Any:
    """Undoes the switch to full attention, which BigBird of transformers makes for good."""
    base = getattr(theirs, theirs.base_model_prefix, theirs)
    if theirs.config.model_type == "bigbird_pegasus":
        base.encoder.set_attention_type(theirs.config.attention_type)
    elif theirs.config.model_type == "big_bird":
        base.set_attention_type(theirs.config.attention_type)
    return theirs


def documents_of(lengths: list[int], seed: int = 0, types: int = 0) -> list[dict[str, Tensor]]:
    """Documents of these lengths, with token types if there are any."""
    generator = torch.Generator().manual_seed(seed)
    documents: list[dict[str, Tensor]] = []
    for n in lengths:
        document = {"input_ids": torch.randint(10, 60, (n,), generator=generator)}
        if types:
            document["token_type_ids"] = torch.randint(types, (n,), generator=generator)
        documents.append(document)
    return documents


def batch_of(documents: list[dict[str, Tensor]], pad: int, side: str) -> dict[str, Tensor]:
    """One batch of documents with an attention mask, padded at one side or with "holes"."""
    lengths = [len(document["input_ids"]) for document in documents]
    n = max(lengths) + (5 if side == "holes" else 0)
    draw = random.Random(n)
    places = {
        "right": lambda length: range(length),
        "left": lambda length: range(n - length, n),
        "holes": lambda length: sorted(draw.sample(range(n), length)),
    }[side]
    chosen = [torch.tensor(list(places(length))) for length in lengths]
    marked = [{**d, "attention_mask": torch.ones_like(d["input_ids"])} for d in documents]
    batch: dict[str, Tensor] = {}
    for name in marked[0]:
        empty = torch.full((n,), pad if name == "input_ids" else 0)
        rows = zip(marked, chosen, strict=True)
        batch[name] = torch.stack([empty.index_copy(0, place, d[name]) for d, place in rows])
    return batch


def assert_same(
    theirs: Any,
    ours: Any,
    documents: list[dict[str, Tensor]],
    side: str = "right",
    choices: int | None = None,
    tolerance: float = 2e-5,
    **by_row: Tensor,
) -> None:
    """Every output of ours for a padded batch is theirs for the document alone.

    `by_row` are inputs that are not padded, such as those of a decoder.
    """
    head = type(ours).__name__
    batch = batch_of(documents, theirs.config.pad_token_id, side)
    kept = batch["attention_mask"] != 0
    if choices:
        batch = {name: x.unflatten(0, (-1, choices)) for name, x in batch.items()}
    with torch.no_grad():
        got = ours(**batch, **by_row, output_hidden_states=True)
        for row, document in enumerate(documents):
            one = {name: x[None, None] if choices else x[None] for name, x in document.items()}
            one |= {name: x[row : row + 1] for name, x in by_row.items()}
            want = forget(theirs)(**one, output_hidden_states=True)
            for name, expected, given in _pairs(want, got):
                if choices and name == "logits":
                    given, expected = given.flatten(), expected.flatten()
                given, expected = given[row], expected[0]
                if _per_token(name, head):
                    given, expected = given[kept[row]], expected[: int(kept[row].sum())]
                where = f"{name} of document {row} ({len(document['input_ids'])} tokens)"
                torch.testing.assert_close(
                    given, expected, atol=tolerance, rtol=0, msg=lambda m, w=where: f"{w}: {m}"
                )


def _pairs(want: Any, got: Any) -> Iterator[tuple[str, Tensor, Tensor]]:
    """The outputs of theirs and of ours by name, tuples one by one."""
    for name, expected in want.items():
        if name in NOT_COMPARED or expected is None:
            continue
        if not isinstance(expected, tuple):
            yield name, expected, getattr(got, name)
            continue
        for layer, (a, b) in enumerate(zip(expected, getattr(got, name), strict=True)):
            yield f"{name}[{layer}]", a, b


def _per_token(name: str, head: str) -> bool:
    name = name.split("[")[0]
    if name == "last_hidden_state":
        return head != "LongbirdSeq2SeqModel"
    if name == "decoder_hidden_states":  # of these heads, whose output is the input itself
        return head.startswith("LongbirdSeq2SeqFor")
    if name == "logits":
        return head.endswith(("MaskedLM", "TokenClassification", "CausalLM"))
    return name in PER_TOKEN
