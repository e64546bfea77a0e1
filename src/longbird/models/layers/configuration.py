"""The configuration as layers see it."""

from __future__ import annotations

from typing import Protocol


class LayerConfig(Protocol):
    """The fields of a configuration that layers read; `LongbirdConfig` says what each one means.

    Layers depend on these fields alone, so that they can be built and tested without transformers'
    configuration classes.
    """

    vocab_size: int
    hidden_size: int
    num_attention_heads: int
    hidden_act: str
    hidden_dropout_prob: float | int
    attention_probs_dropout_prob: float | int
    activation_dropout: float | int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float
    pad_token_id: int | None
    is_encoder_decoder: bool
    norm: str
    positions: str
    embedding_norm: str
    rescale_embeddings: bool
    attention_bias: bool
    attention_output_bias: bool
    global_projections: bool
    global_max_distance: int

    @property
    def absent_id(self) -> int | None:
        """The token id that has no position of its own, where positions are padding-aware."""
        ...
