"""Small new models that learn within minutes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, set_seed

from longbird.core.graph import Graph
from longbird.models import LongbirdConfig, LongbirdModel

BUCKETS, FARTHEST = 32, 128
ABOUT = (
    f"Models are new, without dropout, and with a bias by distance in {BUCKETS} buckets instead "
    "of absolute positions. In each layer that bias begins by looking at the neighbour on the "
    "left in one of four heads, on the right in the next, and near in the others: without that, "
    "minutes teach frequencies alone."
)


def write_new_model(
    folder: Path,
    seed: int,
    *,
    layers: int,
    width: int,
    heads: int,
    length: int,
    graph: Graph,
    bias: Callable[[int], torch.Tensor] | None = None,
    **more: Any,
) -> None:
    """Write a new model into the folder of its tokenizer, with a bias such as `near`."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    set_seed(seed)
    config = LongbirdConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=length,
        positions="none",
        relative_buckets=BUCKETS,
        relative_max_distance=FARTHEST,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        sep_token_id=tokenizer.sep_token_id,
        graph=graph,
        **more,
    )
    model = LongbirdModel(config, add_pooling_layer=False)
    with torch.no_grad():
        model.relative_bias.weight.copy_((bias or near)(heads))
    model.save_pretrained(folder)


def near(heads: int) -> torch.Tensor:
    """Return a bias by distance that favours neighbours and surroundings, [buckets, heads].

    Examples:
        >>> near(4)[1].tolist()  # the token before: for the head that looks to the left, best
        [-0.0, -6.0, -0.25, -0.03125]
    """
    distances = bucket_distances()
    kinds = (
        -(distances + 1).abs() - 4.0 * (distances > 0),
        -(distances - 1).abs() - 4.0 * (distances < 0),
        -distances.abs() / 4,
        -distances.abs() / 32,
    )
    return torch.stack([kinds[head % 4] for head in range(heads)], 1).clamp(min=-8.0)


def bucket_distances() -> torch.Tensor:
    """Return the first distance of each bucket, [buckets]."""
    half = BUCKETS // 2
    exact = half // 2
    step = (FARTHEST / exact) ** (1 / (half - exact))
    sizes = [*range(exact), *(exact * step**i for i in range(half - exact))]
    return torch.tensor([*(-x for x in sizes), *sizes], dtype=torch.float32)
