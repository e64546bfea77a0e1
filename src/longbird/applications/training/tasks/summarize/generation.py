"""What an encoder-decoder writes: in groups of documents of like length, and little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache

KEPT = 2**28
"""Bytes of the keys and values that are kept of documents: one document may take more."""


class BeamCache(EncoderDecoderCache):
    """A cache for beams, which all look at the same document."""

    def reorder_cache(self, beam_idx: Any) -> None:
        """Moves what was written; what was read is the same for all beams of a document.

        transformers would copy it for every token.
        """
        self.self_attention_cache.reorder_cache(beam_idx)


def written(
    model: Any,
    batch: Mapping[str, Tensor],
    more: Callable[[Any, Mapping[str, Tensor]], Mapping[str, Tensor]],
    most: int,
) -> list[list[int]]:
    """The tokens that a model writes about each document, as its `generation_config` says.

    Args:
        model: The model.
        batch: `input_ids` and `attention_mask`, padded at the end.
        more: Other inputs of the encoder for a batch.
        most: Tokens to write at most, where the `generation_config` does not say it.
    """
    how = model.generation_config
    limit = {"max_length": 1 + min(most, model.config.max_decoder_positions)}
    limit = {} if how.max_length or how.max_new_tokens else limit
    lengths = batch["attention_mask"].sum(1)
    found: dict[int, list[int]] = {}
    for group in groups(lengths.tolist(), _bytes_of_a_token(model)):
        rows = torch.tensor(group, device=lengths.device)
        columns = int(lengths[rows].max())
        inputs = {name: batch[name][rows, :columns] for name in ("input_ids", "attention_mask")}
        cache = BeamCache(DynamicCache(), DynamicCache())
        ids = model.generate(**inputs, **more(model, inputs), past_key_values=cache, **limit)
        found |= zip(group, ids.tolist(), strict=True)
    return [found[row] for row in range(len(lengths))]


def groups(lengths: list[int], bytes_of_a_token: int) -> Iterator[list[int]]:
    """Rows in groups of like length, that take at most `KEPT` bytes with their padding.

    Examples:
        >>> list(groups([100, 10, 90, 12], bytes_of_a_token=2**20))
        [[0, 2], [3, 1]]
    """
    group: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if group:
            longest = lengths[group[0]]
            too_many = (len(group) + 1) * longest * bytes_of_a_token > KEPT
            if too_many or 2 * lengths[row] < longest:
                yield group
                group = []
        group.append(row)
    if group:
        yield group


def _bytes_of_a_token(model: Any) -> int:
    config, beams = model.config, model.generation_config.num_beams or 1
    return 8 * config.hidden_size * config.decoder_layers * beams
