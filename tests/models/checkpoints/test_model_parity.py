"""Ours against transformers from the same weights: hidden states, logits, losses, gradients.

Where the result of transformers depends on padding or on what the model was given before, as that
of BigBird does, it is compared with the result of a document alone.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from theirs import (
    HEADS,
    SEQ2SEQ,
    assert_same,
    batch_of,
    configuration,
    documents_of,
    forget,
    random_configuration,
    twins,
)
from torch import Tensor

import longbird
from longbird.models.checkpoints.folders import FAMILIES

BLOCKS = ("seeded", "hf_eval")
ACTIVATIONS = ("relu", "gelu", "gelu_new")
THRESHOLD = 36  # (5 + 2 * random) * block of the configurations here


def blocks_of(family: str, seed: int) -> dict[str, str]:
    """Either meaning of random blocks, for the families that have them."""
    return {"random_blocks": BLOCKS[seed % 2]} if "bird" in family else {}


def mark_question(documents: list[dict[str, Tensor]], config: Any, head: str) -> None:
    """Separators as the question-answering heads look for them, or an end token."""
    family, sep = config.model_type, getattr(config, "sep_token_id", 0)
    if head.startswith("LongbirdSeq2SeqFor"):
        for document in documents:
            document["input_ids"][-1] = config.eos_token_id
    elif family == "longformer" and head.endswith(("QuestionAnswering", "MultipleChoice")):
        for document in documents:
            document["input_ids"][[3, 4, -1]] = sep
    elif family == "big_bird" and head.endswith("QuestionAnswering"):
        for document in documents:
            document["input_ids"][[3, -1]] = sep


def decoder_inputs(family: str, rows: int, seed: int = 0, head: str = "") -> dict[str, Tensor]:
    """What a decoder is given besides documents."""
    if family not in SEQ2SEQ or head.startswith("LongbirdSeq2SeqFor"):
        return {}
    generator = torch.Generator().manual_seed(seed)
    return {"decoder_input_ids": torch.randint(10, 60, (rows, 6), generator=generator)}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("family", "head"), [pair for pair in HEADS if pair[1] != "LongbirdForEmbedding"]
)
def test_every_head_of_random_configurations(
    family: str, head: str, seed: int, tmp_path: Path
) -> None:
    config = random_configuration(family, head, seed)
    theirs, ours = twins(family, head, config, tmp_path, **blocks_of(family, seed))
    draw = random.Random(f"{family} {head} {seed} documents")
    choices = 3 if head == "LongbirdForMultipleChoice" else None
    own_output = head.startswith("LongbirdSeq2SeqFor")
    longest = 30 if head == "LongbirdForCausalLM" else 60 if own_output else 110
    lengths = [draw.randint(7, longest) for _ in range(choices * 2 if choices else 3)]
    types = getattr(config, "type_vocab_size", 0) if draw.random() < 0.5 else 0
    documents = documents_of(lengths, seed, types)
    mark_question(documents, config, head)
    if family in ("longformer", "led") and draw.random() < 0.7:
        share = draw.choice([0.0, 0.05, 0.5])
        for document in documents:
            marked = torch.rand(len(document["input_ids"])) < share
            document["global_attention_mask"] = marked.long()
    more = decoder_inputs(family, len(documents), head=head)
    side = draw.choice(["right"] if own_output else ["right", "left", "holes"])
    assert_same(theirs, ours, documents, side, choices, **more)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in SEQ2SEQ])
def test_a_sentence_embedding_is_the_mean_of_the_hidden_states(
    family: str, tmp_path: Path
) -> None:
    head = "LongbirdForEmbedding"
    theirs, ours = twins(family, head, configuration(family), tmp_path)
    documents = documents_of([20, 57, 1])
    with torch.no_grad():
        got = ours(**batch_of(documents, theirs.config.pad_token_id, "right")).embeddings
        for row, document in enumerate(documents):
            hidden = forget(theirs)(document["input_ids"][None]).last_hidden_state[0]
            want = F.normalize(hidden.mean(0), dim=0)
            torch.testing.assert_close(got[row], want, atol=2e-6, rtol=0)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("family", ["big_bird", "bigbird_pegasus"])
def test_lengths_around_blocks_and_around_full_attention(
    family: str, blocks: str, side: str, tmp_path: Path
) -> None:
    head = "LongbirdModel" if family == "big_bird" else "LongbirdSeq2SeqModel"
    config = configuration(family, head)
    theirs, ours = twins(family, head, config, tmp_path, random_blocks=blocks)
    at = THRESHOLD
    lengths = [1, 2, 20, at - 1, at, at + 1, at + 4, 61, 64, 65, 200, 203]
    documents = documents_of(lengths)
    assert_same(theirs, ours, documents, side, **decoder_inputs(family, len(lengths)))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize(("random_blocks", "block"), [(1, 2), (3, 4), (4, 4), (2, 16)])
def test_block_sizes_and_numbers_of_random_blocks(
    random_blocks: int, block: int, blocks: str, tmp_path: Path
) -> None:
    config = configuration(
        "big_bird",
        num_random_blocks=random_blocks,
        block_size=block,
        max_position_embeddings=320,
        num_attention_heads=4,
    )
    theirs, ours = twins("big_bird", "LongbirdModel", config, tmp_path, random_blocks=blocks)
    full = (5 + 2 * random_blocks) * block
    assert_same(theirs, ours, documents_of([full, full + 1, 2 * full, 300]))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_a_length_of_the_paper(blocks: str, tmp_path: Path) -> None:
    # At 1,024, 3,072 and 4,096 tokens the random blocks come from another plan.
    config = configuration(
        "big_bird", block_size=64, num_random_blocks=3, max_position_embeddings=4096
    )
    theirs, ours = twins("big_bird", "LongbirdModel", config, tmp_path, random_blocks=blocks)
    assert_same(theirs, ours, documents_of([1024, 1000]))


@pytest.mark.slow  # Hugging Face BigBird at up to 4,096 tokens
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize(
    ("n", "block", "random_blocks", "most"),
    [(4096, 64, 3, 4096), (3072, 64, 3, 4096), (2048, 64, 3, 4096), (1024, 16, 3, 1024)],
)
def test_long_documents(
    n: int, block: int, random_blocks: int, most: int, blocks: str, tmp_path: Path
) -> None:
    config = configuration(
        "big_bird",
        block_size=block,
        num_random_blocks=random_blocks,
        max_position_embeddings=most,
        num_hidden_layers=1,
    )
    theirs, ours = twins("big_bird", "LongbirdModel", config, tmp_path, random_blocks=blocks)
    assert_same(theirs, ours, documents_of([n]))


def test_an_earlier_batch_changes_nothing(tmp_path: Path) -> None:
    config = configuration("big_bird")
    theirs, ours = twins("big_bird", "LongbirdModel", config, tmp_path, random_blocks="hf_eval")
    long, short = (document["input_ids"][None] for document in documents_of([80, 9]))
    with torch.no_grad():
        want = theirs(long).last_hidden_state
        ours(short)
        torch.testing.assert_close(ours(long).last_hidden_state, want, atol=2e-5, rtol=0)
        theirs(short)
        assert (theirs(long).last_hidden_state - want).abs().max() > 0.1


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_random_blocks_are_the_same_in_training_and_evaluation(mode: str, tmp_path: Path) -> None:
    theirs, ours = twins("big_bird", "LongbirdModel", configuration("big_bird"), tmp_path)
    getattr(ours, mode)()
    assert_same(theirs, ours, documents_of([80, 111]))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("family", list(FAMILIES))
def test_activations(family: str, activation: str, tmp_path: Path) -> None:
    head = "LongbirdForConditionalGeneration" if family in SEQ2SEQ else "LongbirdForMaskedLM"
    config = configuration(family, head, hidden_act=activation)
    theirs, ours = twins(family, head, config, tmp_path)
    assert_same(theirs, ours, documents_of([45]), **decoder_inputs(family, 1))


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("rescale", [True, False])
@pytest.mark.parametrize("family", ["big_bird", "bigbird_pegasus"])
def test_biases_and_scales(family: str, rescale: bool, use_bias: bool, tmp_path: Path) -> None:
    head = "LongbirdModel" if family == "big_bird" else "LongbirdSeq2SeqModel"
    name = "rescale_embeddings" if family == "big_bird" else "scale_embedding"
    config = configuration(family, head, use_bias=use_bias, **{name: rescale})
    theirs, ours = twins(family, head, config, tmp_path)
    assert_same(theirs, ours, documents_of([45, 13]), **decoder_inputs(family, 2))


@pytest.mark.parametrize("family", ["big_bird", "bigbird_pegasus"])
def test_full_attention_by_configuration(family: str, tmp_path: Path) -> None:
    head = "LongbirdModel" if family == "big_bird" else "LongbirdSeq2SeqModel"
    config = configuration(family, head, attention_type="original_full")
    theirs, ours = twins(family, head, config, tmp_path)
    assert_same(theirs, ours, documents_of([100, 3]), **decoder_inputs(family, 2))


# Longformer and LED


@pytest.mark.parametrize("windows", [8, [4, 16], [16, 8]])
@pytest.mark.parametrize("share", [None, 0.0, 0.04, 0.6, 1.0])
@pytest.mark.parametrize("family", ["longformer", "led"])
def test_windows_and_global_tokens(
    family: str, share: float | None, windows: Any, tmp_path: Path
) -> None:
    head = "LongbirdModel" if family == "longformer" else "LongbirdSeq2SeqModel"
    theirs, ours = twins(family, head, configuration(family, attention_window=windows), tmp_path)
    widest = max(windows) if isinstance(windows, list) else windows
    documents = documents_of([1, widest, widest + 1, 5 * widest - 1])
    generator = torch.Generator().manual_seed(5)
    for document in documents if share is not None else []:
        drawn = torch.rand(len(document["input_ids"]), generator=generator)
        document["global_attention_mask"] = (drawn < share).long()
    side = "left" if share == 0.6 else "right"
    assert_same(theirs, ours, documents, side, **decoder_inputs(family, len(documents)))


def test_each_document_has_its_own_global_tokens(tmp_path: Path) -> None:
    config = configuration("longformer")
    theirs, ours = twins("longformer", "LongbirdModel", config, tmp_path)
    documents = documents_of([50, 50, 41, 30])
    for document, places in zip(documents, ([], [0], [7, 40, 3], list(range(30))), strict=True):
        marked = torch.zeros_like(document["input_ids"])
        marked[places] = 1
        document["global_attention_mask"] = marked
    assert_same(theirs, ours, documents)


@pytest.mark.parametrize("family", ["longformer", "led"])
def test_a_batch_of_theirs_with_padding(family: str, tmp_path: Path) -> None:
    head = "LongbirdModel" if family == "longformer" else "LongbirdSeq2SeqModel"
    theirs, ours = twins(family, head, configuration(family), tmp_path)
    documents = documents_of([50, 23])
    for document in documents:
        document["global_attention_mask"] = (document["input_ids"] < 15).long()
    batch = batch_of(documents, theirs.config.pad_token_id, "right")
    batch |= decoder_inputs(family, 2)
    kept = torch.ones(()) if family == "led" else batch["attention_mask"][..., None]
    with torch.no_grad():
        want, got = (model(**batch).last_hidden_state * kept for model in (theirs, ours))
    torch.testing.assert_close(got, want, atol=2e-5, rtol=0)


def test_an_attention_mask_of_twos_marks_global_tokens_or_is_refused(tmp_path: Path) -> None:
    # Longformer of transformers documents 2 as "global"; taking it for 1 would be silently wrong.
    config = configuration("longformer")
    theirs, ours = twins("longformer", "LongbirdModel", config, tmp_path)
    ids = documents_of([40])[0]["input_ids"][None]
    mask = torch.ones_like(ids)
    mask[0, [0, 9]] = 2
    with torch.no_grad():
        want = theirs(ids, attention_mask=mask).last_hidden_state
        try:
            got = ours(ids, attention_mask=mask).last_hidden_state
        except ValueError:
            return
    torch.testing.assert_close(got, want, atol=2e-5, rtol=0)


# question answering, choices, other inputs


@pytest.mark.parametrize("side", ["right", "left", "holes"])
@pytest.mark.parametrize("head", ["LongbirdForQuestionAnswering", "LongbirdForMultipleChoice"])
@pytest.mark.parametrize("family", ["longformer", "big_bird"])
def test_questions_are_found_by_separators(
    family: str, head: str, side: str, tmp_path: Path
) -> None:
    config = configuration(family, head)
    theirs, ours = twins(family, head, config, tmp_path, **blocks_of(family, 1))
    documents = documents_of([50, 41, 9, 30])
    for document, question in zip(documents, (5, 20, 2, 11), strict=True):
        places = [question, question + 1, -1] if family == "longformer" else [question, -1]
        document["input_ids"][places] = config.sep_token_id
    assert_same(theirs, ours, documents, side, 2 if "Choice" in head else None)


@pytest.mark.parametrize("types", [0, 2])
def test_questions_of_bigbird_that_have_no_end_or_token_types(types: int, tmp_path: Path) -> None:
    head = "LongbirdForQuestionAnswering"
    theirs, ours = twins("big_bird", head, configuration("big_bird"), tmp_path)
    documents = documents_of([50, 41, 1], types=types)
    documents[1]["input_ids"][7] = theirs.config.sep_token_id
    assert_same(theirs, ours, documents)


def test_three_separators_are_asked_for(tmp_path: Path) -> None:
    _, ours = twins(
        "longformer", "LongbirdForQuestionAnswering", configuration("longformer"), tmp_path
    )
    with pytest.raises(ValueError, match=r"three separators.*global_attention_mask"):
        ours(documents_of([30])[0]["input_ids"][None])


@pytest.mark.parametrize("side", ["right", "left"])
def test_the_first_token_is_global_for_classification(side: str, tmp_path: Path) -> None:
    head = "LongbirdForSequenceClassification"
    config = configuration("longformer", num_labels=3)
    theirs, ours = twins("longformer", head, config, tmp_path)
    assert_same(theirs, ours, documents_of([60, 33, 1]), side)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in SEQ2SEQ])
def test_given_positions_and_embeddings(family: str, tmp_path: Path) -> None:
    rescale = {"rescale_embeddings": True} if family == "big_bird" else {}
    config = configuration(family, **rescale)
    theirs, ours = twins(family, "LongbirdModel", config, tmp_path)
    ids = torch.randint(10, 60, (2, 50), generator=torch.Generator().manual_seed(0))
    for inputs in (
        {"input_ids": ids, "position_ids": (ids * 3) % 50},
        {"inputs_embeds": F.embedding(ids, theirs.get_input_embeddings().weight)},
    ):
        with torch.no_grad():
            want, got = (forget(theirs)(**inputs)[0], ours(**inputs)[0])
        torch.testing.assert_close(got, want, atol=2e-5, rtol=0)


@pytest.mark.parametrize("where", ["inputs_embeds", "decoder_inputs_embeds"])
@pytest.mark.parametrize("family", SEQ2SEQ)
def test_given_embeddings_of_encoder_and_decoder(family: str, where: str, tmp_path: Path) -> None:
    head = "LongbirdForConditionalGeneration"
    theirs, ours = twins(family, head, configuration(family, head), tmp_path)
    ids = documents_of([50])[0]["input_ids"][None]
    inputs = {"input_ids": ids, "decoder_input_ids": ids[:, :7]}
    given = inputs.pop("input_ids" if where == "inputs_embeds" else "decoder_input_ids")
    inputs[where] = F.embedding(given, theirs.get_input_embeddings().weight)
    with torch.no_grad():
        want, got = theirs(**inputs).logits, ours(**inputs).logits
    torch.testing.assert_close(got, want, atol=2e-5, rtol=0)


@pytest.mark.parametrize("family", ["roberta", "longformer", "mpnet"])
def test_pad_ids_inside_of_a_document_have_no_position(family: str, tmp_path: Path) -> None:
    theirs, ours = twins(family, "LongbirdModel", configuration(family), tmp_path)
    documents = documents_of([30, 22])
    documents[0]["input_ids"][[4, 5, 20]] = theirs.config.pad_token_id
    assert_same(theirs, ours, documents)


@pytest.mark.parametrize("pad", [0, 1, 5])
def test_mpnet_counts_positions_its_own_way(pad: int, tmp_path: Path) -> None:
    # Its code has 1 for the pad id of positions, whatever the configuration says.
    config = configuration("mpnet", pad_token_id=pad)
    theirs, ours = twins("mpnet", "LongbirdModel", config, tmp_path)
    assert_same(theirs, ours, documents_of([200, 11]))


def test_mpnet_has_32_buckets_or_is_refused(tmp_path: Path) -> None:
    # Its code uses 32 of them, however many there are.
    config = configuration("mpnet", relative_attention_num_buckets=64)
    try:
        theirs, ours = twins("mpnet", "LongbirdModel", config, tmp_path)
    except ValueError as error:
        assert "32 buckets" in str(error)
        return
    assert_same(theirs, ours, documents_of([200, 11]))


@pytest.mark.parametrize("kind", [torch.bool, torch.int32, torch.float32])
def test_attention_masks_of_any_type(kind: torch.dtype, tmp_path: Path) -> None:
    theirs, ours = twins("bert", "LongbirdModel", configuration("bert"), tmp_path)
    batch = batch_of(documents_of([30, 12]), 0, "right")
    mask = batch["attention_mask"]
    with torch.no_grad():
        want = theirs(**batch).last_hidden_state * mask[..., None]
        got = ours(batch["input_ids"], attention_mask=mask.to(kind)).last_hidden_state
    torch.testing.assert_close(got, want, atol=2e-5, rtol=0)


# losses and gradients


def labels_of(head: str, config: Any, rows: int, n: int) -> dict[str, Tensor]:
    """Labels for a batch [rows, n], as each head wants them."""
    generator = torch.Generator().manual_seed(1)

    def draw(high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=generator)

    match head.split("For", 1)[1]:
        case "MaskedLM" | "PreTraining" | "CausalLM":
            labels = draw(60, rows, n).masked_fill(draw(3, rows, n) > 0, -100)
            follows = {"next_sentence_label": draw(2, rows)} if "Pre" in head else {}
            return {"labels": labels, **follows}
        case "SequenceClassification":
            if config.problem_type == "multi_label_classification":
                return {"labels": draw(2, rows, config.num_labels).float()}
            if config.problem_type == "regression" or config.num_labels == 1:
                shape = (rows, config.num_labels) if config.num_labels > 1 else (rows,)
                return {"labels": torch.randn(shape, generator=generator)}
            return {"labels": draw(config.num_labels, rows)}
        case "TokenClassification":
            return {"labels": draw(config.num_labels, rows, n)}
        case "MultipleChoice":
            return {"labels": draw(2, rows // 2)}
        case "QuestionAnswering":
            # The second answer is beyond the document, and does not count.
            return {
                "start_positions": torch.tensor([8, n + 5]),
                "end_positions": torch.tensor([12, n + 9]),
            }
        case "ConditionalGeneration":
            labels = draw(60, rows, 7)
            labels[1, 5:] = -100
            return {"labels": labels}
        case _:
            return {}


PROBLEMS: list[dict[str, Any]] = [
    {"num_labels": 1},
    {"num_labels": 3},
    {"num_labels": 3, "problem_type": "regression"},
    {"num_labels": 1, "problem_type": "regression"},
    {"num_labels": 4, "problem_type": "multi_label_classification"},
    {"num_labels": 4, "problem_type": "single_label_classification"},
]
LOSSES = [
    (family, head, problem)
    for family, head in HEADS
    if head not in ("LongbirdModel", "LongbirdSeq2SeqModel", "LongbirdForEmbedding")
    for problem in (PROBLEMS if head.endswith("SequenceClassification") else [{}])
]


@pytest.mark.parametrize(("family", "head", "problem"), LOSSES)
def test_losses_and_gradients(
    family: str, head: str, problem: dict[str, Any], tmp_path: Path
) -> None:
    config = configuration(family, head, **problem)
    theirs, ours = twins(family, head, config, tmp_path)
    n, rows = (30, 2) if head == "LongbirdForCausalLM" else (50, 4 if "Choice" in head else 2)
    documents = documents_of([n] * rows)
    mark_question(documents, config, head)
    inputs = {"input_ids": torch.stack([document["input_ids"] for document in documents])}
    if "Choice" in head:
        inputs = {name: x.unflatten(0, (2, 2)) for name, x in inputs.items()}
    inputs |= labels_of(head, config, rows, n)

    want, got = (model(**inputs).loss for model in (theirs, ours))
    torch.testing.assert_close(got, want, atol=2e-5, rtol=0)
    want.backward()
    got.backward()
    assert_gradients_are_the_same(theirs, ours, family, head)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_gradients_of_hidden_states(family: str, tmp_path: Path) -> None:
    head = "LongbirdSeq2SeqModel" if family in SEQ2SEQ else "LongbirdModel"
    theirs, ours = twins(family, head, configuration(family, head), tmp_path)
    documents = documents_of([50, 50])
    if family in ("longformer", "led"):
        for document in documents:
            document["global_attention_mask"] = (document["input_ids"] < 13).long()
    batch = batch_of(documents, theirs.config.pad_token_id, "right")
    batch |= decoder_inputs(family, 2)
    for model in (theirs, ours):
        x = model(**batch)[0]
        # A plain sum would be constant under the last norm.
        weights = torch.randn(x.shape, generator=torch.Generator().manual_seed(2))
        (x * weights).sum().backward()
    assert_gradients_are_the_same(theirs, ours, family, head)


def assert_gradients_are_the_same(theirs: Any, ours: Any, family: str, head: str) -> None:
    """Gradients of all parameters, 1e-4 of the largest of a tensor.

    Some are zero but for rounding, as that of the bias of keys: they are compared with the
    largest of all tensors.
    """
    want = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    names = FAMILIES[family].ours(want, getattr(longbird, head)).origins
    want = {name: want[theirs] for name, theirs in names.items()}
    got = {name: p.grad for name, p in ours.named_parameters() if p.grad is not None}
    assert set(got) <= set(want)
    largest = max(float(gradient.abs().max()) for gradient in want.values())
    for name, gradient in want.items():
        scale = max(float(gradient.abs().max()), 1e-2 * largest)
        given = got.get(name, torch.zeros_like(gradient))
        assert float((given - gradient).abs().max()) < 1e-4 * scale, name


@pytest.mark.parametrize("head", ["LongbirdForMaskedLM", "LongbirdForTokenClassification"])
@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "longformer"])
def test_losses_of_padded_batches(family: str, head: str, tmp_path: Path) -> None:
    config = configuration(family, head, num_labels=5)
    theirs, ours = twins(family, head, config, tmp_path)
    batch = batch_of(documents_of([50, 31, 7]), config.pad_token_id, "right")
    high = 5 if "Token" in head else 60
    labels = torch.randint(high, (3, 50), generator=torch.Generator().manual_seed(3))
    batch["labels"] = labels.masked_fill(batch["attention_mask"] == 0, -100)
    want, got = (model(**batch).loss for model in (theirs, ours))
    torch.testing.assert_close(got, want, atol=2e-5, rtol=0)


def test_the_loss_of_a_padded_question_is_that_of_the_document_alone(tmp_path: Path) -> None:
    # In a batch of theirs, padding competes with the answer.
    head = "LongbirdForQuestionAnswering"
    theirs, ours = twins("bert", head, configuration("bert"), tmp_path)
    documents = documents_of([50, 31])
    answers = {"start_positions": torch.tensor([8, 9]), "end_positions": torch.tensor([12, 30])}
    alone = [
        theirs(
            d["input_ids"][None], **{name: x[row : row + 1] for name, x in answers.items()}
        ).loss
        for row, d in enumerate(documents)
    ]
    got = ours(**batch_of(documents, 0, "right"), **answers).loss
    torch.testing.assert_close(got, torch.stack(alone).mean(), atol=2e-5, rtol=0)


# encoder-decoders


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", SEQ2SEQ)
def test_decoder_attention_masks(family: str, side: str, tmp_path: Path) -> None:
    head = "LongbirdForConditionalGeneration"
    theirs, ours = twins(family, head, configuration(family, head), tmp_path)
    ids = torch.stack([document["input_ids"] for document in documents_of([50, 50])])
    output = batch_of(documents_of([6, 4], seed=1), theirs.config.pad_token_id, side)
    mask = output["attention_mask"]
    inputs = {"decoder_input_ids": output["input_ids"], "decoder_attention_mask": mask}
    with torch.no_grad():
        want, got = (model(ids, **inputs).logits for model in (theirs, ours))
    torch.testing.assert_close(got[mask != 0], want[mask != 0], atol=2e-5, rtol=0)


GENERATION: list[dict[str, Any]] = [
    {"repetition_penalty": 3.0},
    {"repetition_penalty": 3.0, "use_cache": False},
    {"num_beams": 3},
    {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True, "no_repeat_ngram_size": 2},
    {"num_beams": 3, "num_return_sequences": 3, "min_new_tokens": 5},
]


@pytest.mark.parametrize("options", GENERATION)
@pytest.mark.parametrize("lengths", [(60, 60), (33, 20, 1)])
@pytest.mark.parametrize("family", SEQ2SEQ)
def test_generated_tokens(
    family: str, lengths: tuple[int, ...], options: dict[str, Any], tmp_path: Path
) -> None:
    head = "LongbirdForConditionalGeneration"
    config = configuration(family, head)
    theirs, ours = twins(family, head, config, tmp_path, **blocks_of(family, 1))
    batch = batch_of(documents_of(list(lengths)), config.pad_token_id, "right")
    if family == "led":
        batch["global_attention_mask"] = (
            (torch.arange(max(lengths)) == 0).long().expand_as(batch["input_ids"])
        )
    want, got = (
        model.generate(**batch, max_new_tokens=12, do_sample=False, **options)
        for model in (theirs, ours)
    )
    assert got.tolist() == want.tolist()
    assert len(set(got.flatten().tolist())) > 2  # not the same token all over


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_a_saved_generation_configuration_is_used(family: str, tmp_path: Path) -> None:
    head = "LongbirdForConditionalGeneration"
    theirs, _ = twins(family, head, configuration(family, head), tmp_path)
    theirs.eval()
    theirs.generation_config.update(num_beams=3, forced_bos_token_id=11, max_new_tokens=9)
    theirs.save_pretrained(tmp_path)
    ours = longbird.LongbirdForConditionalGeneration.from_pretrained(
        tmp_path, **blocks_of(family, 1)
    )
    ids = torch.stack([document["input_ids"] for document in documents_of([60, 60])])
    assert ours.generate(ids).tolist() == theirs.generate(ids).tolist()


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}])
@pytest.mark.parametrize("family", ["bert", "big_bird"])
def test_generated_tokens_of_decoders(
    family: str, options: dict[str, Any], tmp_path: Path
) -> None:
    head = "LongbirdForCausalLM"
    config = configuration(family, head, bos_token_id=1, eos_token_id=2)
    theirs, ours = twins(family, head, config, tmp_path, **blocks_of(family, 1))
    batch = batch_of(documents_of([12, 7]), config.pad_token_id, "left")
    want, got = (
        model.generate(**batch, max_new_tokens=10, do_sample=False, **options)
        for model in (theirs, ours)
    )
    assert got.tolist() == want.tolist()


# attention weights


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "big_bird"])
def test_attention_weights_of_full_attention(family: str, tmp_path: Path) -> None:
    full = {"attention_type": "original_full"} if family == "big_bird" else {}
    config = configuration(family, attn_implementation="eager", **full)
    theirs, ours = twins(family, "LongbirdModel", config, tmp_path)
    ids = torch.stack([document["input_ids"] for document in documents_of([30, 30])])
    with torch.no_grad():
        want = theirs(ids, output_attentions=True).attentions
        got = ours(ids, output_attentions=True).attentions
    for theirs_layer, ours_layer in zip(want, got, strict=True):
        dense = ours_layer.dense(30)
        torch.testing.assert_close(dense, theirs_layer, atol=2e-6, rtol=0)
