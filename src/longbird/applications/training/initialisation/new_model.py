"""New models by the name of a size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longbird.core.graph import Graph
from longbird.errors import InvalidValueError
from longbird.models import LongbirdConfig

PREFIX = "scratch:"
SIZES = {
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
"""Layers and width of the published BERTs (Devlin et al. 2018, Turc et al. 2019); a head has 64
numbers, and a feed-forward block is four times as wide."""


def size_of(model: str) -> str | None:
    """The size that "scratch:tiny" names; None if it is the name of something else.

    Raises:
        ValueError: There is no such size.

    Examples:
        >>> size_of("scratch:tiny"), size_of("minilm")
        ('tiny', None)
    """
    if not model.startswith(PREFIX):
        return None
    size = model[len(PREFIX) :]
    if size not in SIZES:
        raise InvalidValueError(
            f"{PREFIX}SIZE must be one of {', '.join(SIZES)}, received {model}"
        )
    return size


def new_config(
    size: str, tokenizer: Any, length: int, graph: Graph | None, head: Mapping[str, Any]
) -> LongbirdConfig:
    """The configuration of a new model of that size for a tokenizer."""
    layers, width = SIZES[size]
    return LongbirdConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        max_position_embeddings=length,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=_first(tokenizer.bos_token_id, tokenizer.cls_token_id),
        eos_token_id=_first(tokenizer.eos_token_id, tokenizer.sep_token_id),
        sep_token_id=tokenizer.sep_token_id,
        **({} if graph is None else {"graph": graph}),
        **head,
    )


def start_of(tokenizer: Any) -> int | None:
    """The token that a decoder starts after."""
    return _first(tokenizer.cls_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id)


def end_of(tokenizer: Any) -> int:
    """The token that ends what a decoder writes."""
    found = _first(tokenizer.eos_token_id, tokenizer.sep_token_id)
    if found is None:
        raise InvalidValueError(
            "the tokenizer has no token that ends a text (eos_token or sep_token)"
        )
    return found


def _first(*given: int | None) -> int | None:
    return next((each for each in given if each is not None), None)
