"""What each field of a configuration may be: one rule for each, checked whenever it is set.

A configuration may come from a file that somebody else wrote. So every number has a type, is
finite and has a range, every switch is true or false, and every word is a known one, before
anything is built or allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers.activations import ACT2FN

from longbird.core.operator.dispatch import ALL
from longbird.errors import InvalidTypeError, InvalidValueError

LARGEST = 2**31 - 1
"""Of any size; torch counts rows of a table in 64 bits, but nobody has trained one beyond 32."""
MOST_LABELS = 2**17
"""Each has a name in config.json, twice."""
MOST_ROWS = 2**20
"""Of tables by distance, which a forward pass may spread out."""
MOST_LAYERS = 10_000


@dataclass(frozen=True)
class Rule:
    """What a value must be."""

    expected: str
    """In words."""
    kinds: tuple[type, ...]
    """Its type; another one is a TypeError. A bool does not count as an integer."""
    allows: Callable[[Any], bool] = lambda _value: True
    """Which values of these types; others are a ValueError."""

    def check(self, name: str, value: Any) -> None:
        """Raises if the value of this field is not allowed."""
        odd_bool = isinstance(value, bool) and bool not in self.kinds
        if odd_bool or not isinstance(value, self.kinds):
            raise InvalidTypeError(f"{name} must be {self.expected}, received {shown(value)}")
        if not self.allows(value):
            raise InvalidValueError(f"{name} must be {self.expected}, received {shown(value)}")


def shown(value: Any) -> str:
    """A value for a message: short, also if it is a list of a million numbers."""
    try:
        text = repr(value)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def whole(least: int, most: int = LARGEST) -> Rule:
    """An integer in a range."""
    return Rule(f"an integer from {least} to {most}", (int,), lambda x: least <= x <= most)


def optional(rule: Rule) -> Rule:
    """The same, or None."""
    return replace(
        rule,
        expected=f"{rule.expected}, or None",
        kinds=(*rule.kinds, type(None)),
        allows=lambda x: x is None or rule.allows(x),
    )


def one_of(words: Iterable[str]) -> Rule:
    """One of these words."""
    known = tuple(words)
    return Rule(f"one of {', '.join(known)}", (str,), lambda x: x in known)


def _is_token(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _are_labels(value: dict[Any, Any]) -> bool:
    try:
        numbers = {int(key) for key in value}
    except (TypeError, ValueError):
        return False
    counted = len(value) == len(numbers) and numbers == set(range(len(value)))
    return counted and all(isinstance(label, str) for label in value.values())


def _is_floating(value: Any) -> bool:
    kind = getattr(torch, value, None) if isinstance(value, str) else value
    return isinstance(kind, torch.dtype) and kind.is_floating_point


FLAG = Rule("true or false", (bool,))
RATE = Rule("a number from 0 to below 1", (int, float), lambda x: 0 <= x < 1)
TOKEN = optional(whole(0))
TOKENS = optional(
    Rule(
        "a token id, or a list of them",
        (int, list),
        lambda x: all(map(_is_token, x if isinstance(x, list) else [x])),
    )
)
ACTIVATION = one_of(ACT2FN)
TEXTS = Rule("a list of words", (list,), lambda x: all(isinstance(word, str) for word in x))

RULES: dict[str, Rule] = {
    # sizes
    "vocab_size": whole(1),
    "hidden_size": whole(1),
    "num_hidden_layers": whole(1, MOST_LAYERS),
    "num_attention_heads": whole(1),
    "intermediate_size": whole(1),
    "max_position_embeddings": whole(1),
    "type_vocab_size": whole(0),
    "num_global_tokens": whole(0, MOST_ROWS),
    "global_max_distance": whole(0, MOST_ROWS),
    "relative_buckets": whole(0, MOST_ROWS),
    "relative_max_distance": whole(1, MOST_ROWS),
    "num_answer_types": whole(0, MOST_LABELS),
    "num_labels": optional(whole(0, MOST_LABELS)),
    "chunk_size_feed_forward": whole(0),
    "decoder_layers": optional(whole(1, MOST_LAYERS)),
    "decoder_attention_heads": optional(whole(1)),
    "decoder_intermediate_size": optional(whole(1)),
    "max_decoder_positions": whole(1),
    # numbers
    "hidden_dropout_prob": RATE,
    "attention_probs_dropout_prob": RATE,
    "activation_dropout": RATE,
    "classifier_dropout": optional(RATE),
    "layer_norm_eps": Rule("a number above 0, and at most 1", (int, float), lambda x: 0 < x <= 1),
    "initializer_range": Rule(
        "a finite number from 0 on",
        (int, float),
        lambda x: 0 <= x <= LARGEST and math.isfinite(x),
    ),
    # tokens
    "pad_token_id": TOKEN,
    "bos_token_id": TOKEN,
    "eos_token_id": TOKENS,
    "sep_token_id": TOKEN,
    "decoder_start_token_id": TOKEN,
    "position_padding_id": TOKEN,
    # switches
    **dict.fromkeys(
        (
            "tie_word_embeddings", "use_cache", "is_decoder", "is_encoder_decoder",
            "rescale_embeddings", "attention_bias", "attention_output_bias", "global_projections",
            "lm_transform", "qa_feed_forward", "qa_hides_question", "supporting_sentences",
            "sparse_prediction", "add_cross_attention",
        ),
        FLAG,
    ),
    "output_hidden_states": optional(FLAG),
    "output_attentions": optional(FLAG),
    "return_dict": optional(FLAG),
    # words
    "hidden_act": ACTIVATION,
    "classifier_activation": ACTIVATION,
    "lm_activation": optional(ACTIVATION),
    "norm": one_of(("post", "pre")),
    "positions": one_of(("absolute", "padding-aware", "none")),
    "embedding_norm": one_of(("before_dropout", "after_dropout", "none")),
    "pooling": one_of(("mean", "first", "globals")),
    "attention_impl": one_of(("auto", *(implementation.NAME for implementation in ALL))),
    "quantize": optional(one_of(("int8",))),
    "problem_type": optional(
        one_of(("regression", "single_label_classification", "multi_label_classification"))
    ),
    # what transformers notes
    "architectures": optional(TEXTS),
    "transformers_version": optional(Rule("text", (str,))),
    "dtype": optional(
        Rule("a floating type of torch, or its name", (str, torch.dtype), _is_floating)
    ),
    "id2label": optional(
        Rule(
            "a dictionary from the numbers 0, 1, 2, ... to labels",
            (dict,),
            lambda x: len(x) <= MOST_LABELS and _are_labels(x),
        )
    ),
    "label2id": optional(
        Rule(
            "a dictionary from labels to numbers",
            (dict,),
            lambda x: (
                len(x) <= MOST_LABELS
                and all(isinstance(k, str) for k in x)
                and all(isinstance(v, (int, str)) and str(v).isdecimal() for v in x.values())
            ),
        )
    ),
}  # fmt: skip
"""By field; `graph` alone has none, because `longbird.core.graph.as_graph` reads and checks it."""
