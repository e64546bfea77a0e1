"""Loss, accuracy, perplexity and bits per byte of language models."""

from __future__ import annotations

import numpy as np

SUMS = ("nats", "predicted", "right", "ordinary", "unknown", "bytes")
"""What is added up over documents: the losses and number of the tokens that were predicted, how
many of them were found, the tokens that are not special, those that the tokenizer does not know,
and the bytes of the text."""


def measure(sums: np.ndarray, masked: bool) -> dict[str, np.ndarray]:
    """The metrics of sums over documents.

    Args:
        sums: As `SUMS` names them, [..., 6].
        masked: Were masked tokens predicted, rather than every next one?

    Returns:
        Each [...]. The loss is in nats for each token that was predicted, and the accuracy
        is the share of these that the model held for the most likely. A masked model does not give
        a text a probability: its perplexity is that of the masked tokens, each seen with what
        stands on both sides, and its bits per byte are what all tokens would cost at that rate;
        so both are called pseudo (Salazar et al. 2020), and are not to be compared with those of a
        causal model.
    """
    nats, predicted, right, ordinary, unknown, size = np.moveaxis(sums.astype(float), -1, 0)
    loss = nats / np.maximum(predicted, 1)
    bits = (loss * ordinary if masked else nats) / np.log(2) / np.maximum(size, 1)
    pseudo = "pseudo_" if masked else ""
    with np.errstate(over="ignore"):
        perplexity = np.exp(loss)
    return {
        "loss": loss,
        "accuracy": right / np.maximum(predicted, 1),
        f"{pseudo}perplexity": perplexity,
        f"{pseudo}bits_per_byte": bits,
        "unknown_tokens": unknown / np.maximum(ordinary + unknown, 1),
    }
