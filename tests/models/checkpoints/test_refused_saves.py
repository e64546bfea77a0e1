"""What a family cannot say is not saved in its form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from folders import SMALL

import longbird
from longbird.models.checkpoints.folders import FAMILIES

FULL: dict[str, Any] = {**SMALL, "graph": longbird.Full()}
WINDOW: dict[str, Any] = {
    **SMALL,
    "graph": longbird.Window(4),
    "positions": "padding-aware",
    "pad_token_id": 1,
    "global_projections": True,
}
LEGACY = longbird.LegacyBigBird("huggingface", block=4, random=2, max_length=80)
CANNOT_BE_SAID: list[tuple[str, str, dict[str, Any]]] = [
    ("bert", "LongbirdModel", {**SMALL, "graph": longbird.Window(4)}),
    ("bert", "LongbirdModel", {**SMALL, "graph": [longbird.Full(), longbird.Window(4)]}),
    ("bert", "LongbirdModel", {**FULL, "rescale_embeddings": True}),
    ("bert", "LongbirdModel", {**FULL, "positions": "padding-aware"}),
    ("bert", "LongbirdModel", {**FULL, "positions": "none"}),
    ("bert", "LongbirdModel", {**FULL, "attention_bias": False}),
    ("bert", "LongbirdModel", {**FULL, "type_vocab_size": 0}),
    ("bert", "LongbirdModel", {**FULL, "norm": "pre"}),
    ("bert", "LongbirdModel", {**FULL, "embedding_norm": "none"}),
    ("bert", "LongbirdModel", {**FULL, "num_global_tokens": 3}),
    ("bert", "LongbirdForMaskedLM", {**FULL, "lm_activation": "relu"}),
    ("bert", "LongbirdForMaskedLM", {**FULL, "lm_transform": False}),
    ("bert", "LongbirdForQuestionAnswering", {**FULL, "num_answer_types": 3}),
    ("roberta", "LongbirdModel", FULL),
    ("mpnet", "LongbirdModel", {**FULL, "type_vocab_size": 0, "positions": "padding-aware"}),
    ("big_bird", "LongbirdModel", {**SMALL, "graph": longbird.bigbird(block=4)}),
    ("big_bird", "LongbirdModel", {**SMALL, "graph": [LEGACY, longbird.Full()]}),
    (
        "big_bird",
        "LongbirdModel",
        {**SMALL, "graph": longbird.LegacyBigBird("huggingface", 4, 2, seed=3, max_length=80)},
    ),
    (
        "big_bird",
        "LongbirdModel",
        {**SMALL, "graph": longbird.LegacyBigBird("huggingface", 4, 2, 0, 80, full_up_to=50)},
    ),
    ("big_bird", "LongbirdForQuestionAnswering", {**SMALL, "graph": LEGACY}),
    ("longformer", "LongbirdModel", {**WINDOW, "graph": longbird.Window(4, dilation=2)}),
    ("longformer", "LongbirdModel", {**WINDOW, "graph": longbird.Window(0)}),
    ("longformer", "LongbirdModel", {**WINDOW, "graph": longbird.Full()}),
    ("longformer", "LongbirdModel", {**WINDOW, "global_projections": False}),
    ("longformer", "LongbirdModel", {**WINDOW, "positions": "absolute"}),
    ("tensorflow", "LongbirdModel", {**SMALL, "graph": longbird.Window(4)}),
    ("tensorflow", "LongbirdModel", {**SMALL, "graph": LEGACY, "norm": "pre"}),
    ("tensorflow", "LongbirdModel", {**SMALL, "graph": LEGACY, "type_vocab_size": 0}),
    ("t5", "LongbirdModel", FULL),
]


@pytest.mark.parametrize(("family", "head", "fields"), CANNOT_BE_SAID)
def test_what_a_family_cannot_say_is_refused(
    family: str, head: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    model = getattr(longbird, head)(longbird.LongbirdConfig(**fields))
    path = tmp_path / ("saved.npz" if family == "tensorflow" else "saved")
    with pytest.raises(ValueError):
        longbird.save_checkpoint(model, path, family)
    assert not path.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"layer_norm_eps": 1e-3},
        {"norm": "post"},
        {"graph": longbird.Window(4)},
        {"max_decoder_positions": 33},
        {"attention_output_bias": True},
    ],
)
def test_encoder_decoders_that_a_family_cannot_say(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    fields = {
        **FULL,
        "decoder_layers": 1,
        "decoder_attention_heads": 2,
        "decoder_intermediate_size": 24,
        "max_decoder_positions": 80,
        **changes,
    }
    model = longbird.LongbirdSeq2SeqModel(longbird.LongbirdSeq2SeqConfig(**fields))
    with pytest.raises(ValueError):
        longbird.save_checkpoint(model, tmp_path / "saved", "bigbird_pegasus")
    assert not (tmp_path / "saved").exists()


SEQ2SEQ = longbird.LongbirdSeq2SeqConfig(**SMALL, graph=longbird.Full())


@pytest.mark.parametrize("family", [*FAMILIES, "tensorflow"])
@pytest.mark.parametrize(
    "model",
    [
        longbird.LongbirdForMaskedLM(longbird.LongbirdConfig(**FULL)),
        longbird.LongbirdForCausalLM(longbird.LongbirdConfig(**FULL)),
        longbird.LongbirdForConditionalGeneration(SEQ2SEQ),
        longbird.LongbirdSeq2SeqForSequenceClassification(SEQ2SEQ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classes_that_a_family_does_not_have(model: Any, family: str, tmp_path: Path) -> None:
    """A message with the format and the class, whatever is asked for; or it can be saved."""
    try:
        longbird.save_checkpoint(model, tmp_path / "saved", family)
    except ValueError as error:
        assert "Google" in str(error) or family in str(error) or "save_pretrained" in str(error)
        seq2seq = family in ("led", "bigbird_pegasus")
        if model.config.is_encoder_decoder is not seq2seq:
            assert f"no counterpart of {type(model).__name__}" in str(error)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", [3, None, torch.nn.Linear(2, 2), longbird.LongbirdModel])
def test_what_is_no_model_of_ours(model: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"model must be one of Longbird.*received"):
        longbird.save_checkpoint(model, tmp_path / "saved", "bert")


@pytest.mark.parametrize("family", ["t5", "", None, 3])
def test_families_that_do_not_exist(family: Any, tmp_path: Path) -> None:
    model = longbird.LongbirdModel(longbird.LongbirdConfig(**FULL))
    with pytest.raises(ValueError, match=r"family must be one of bert, .*tensorflow; received"):
        longbird.save_checkpoint(model, tmp_path / "saved", family)
