"""The rules for the fields of a configuration, which are checked whenever a field is set.

A configuration may come from a file that somebody else wrote. So before anything is built or
allocated, every number has a type and a range, every switch is true or false, and every word is a
known one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import torch
from transformers.activations import ACT2FN

from longbird.core.graph import PerHead
from longbird.core.operator.dispatch import ALL
from longbird.errors import InvalidTypeError, InvalidValueError

LARGEST = 2**31 - 1
"""Maximum of any size; nobody has trained a table with more rows."""
MOST_LABELS = 2**17
"""Maximum number of labels; each has a name in config.json, twice."""
MOST_ROWS = 2**20
"""Maximum number of rows of tables by distance, which a forward pass may expand."""
MOST_LAYERS = 10_000


@dataclass(frozen=True)
class Rule:
    """What values a field accepts."""

    expected: str
    """The accepted values as a phrase, for messages."""
    kinds: tuple[type, ...]
    """The accepted types; others are a TypeError. A bool is not an integer."""
    allows: Callable[[Any], bool] = lambda _value: True
    """Whether a value of these types is accepted; others are a ValueError."""

    def check(self, name: str, value: Any) -> None:
        """Raise if a value is not accepted for the field of this name."""
        odd_bool = isinstance(value, bool) and bool not in self.kinds
        if odd_bool or not isinstance(value, self.kinds):
            raise InvalidTypeError(f"{name} must be {self.expected}, received {shown(value)}")
        if not self.allows(value):
            raise InvalidValueError(f"{name} must be {self.expected}, received {shown(value)}")


def shown(value: Any) -> str:
    """Show a value in a message, shortened to 80 characters."""
    try:
        text = repr(value)
    except ValueError:  # Python prints no integer of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:77]}..."


def whole(least: int, most: int = LARGEST) -> Rule:
    """Return the rule for an integer in a range."""
    return Rule(f"an integer from {least} to {most}", (int,), lambda x: least <= x <= most)


def optional(rule: Rule) -> Rule:
    """Return a rule that also accepts None."""
    return replace(
        rule,
        expected=f"{rule.expected}, or None",
        kinds=(*rule.kinds, type(None)),
        allows=lambda x: x is None or rule.allows(x),
    )


def one_of(words: Iterable[str]) -> Rule:
    """Return the rule for one of these words."""
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
    # what transformers stores
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
"""The rules by field; `graph` has none, because `longbird.core.graph.as_graph` checks it."""

SAVED_RULES: dict[str, Rule] = {
    name: optional(Rule("the name of an implementation", (str,)))
    for name in ("attn_implementation", "_attn_implementation", "experts_implementation")
} | {"quantization_config": optional(Rule("a dictionary", (dict,)))}
"""The rules for names of transformers in config.json, which it takes for granted."""


def _heads_differ(graph: Any, heads: int) -> bool:
    """Whether a graph, or a list of graphs, has a PerHead for another number of heads."""
    if isinstance(graph, list):
        return any(_heads_differ(each, heads) for each in graph)
    own = isinstance(graph, PerHead) and len(graph.graphs) != heads
    return own or any(_heads_differ(each, heads) for each in graph.combines)


Relation = tuple[Callable[[Any], bool], str, tuple[str, ...]]

RELATIONS: list[Relation] = [
    (
        lambda c: not isinstance(c.graph, list) or len(c.graph) == c.num_hidden_layers,
        "a list of graphs has one for each layer",
        ("num_hidden_layers", "graph"),
    ),
    (
        lambda c: not _heads_differ(c.graph, c.num_attention_heads),
        "PerHead must have one graph for each attention head",
        ("num_attention_heads", "graph"),
    ),
    (
        lambda c: c.hidden_size % c.num_attention_heads == 0,
        "hidden_size must be a multiple of the attention heads",
        ("hidden_size", "num_attention_heads"),
    ),
    (
        lambda c: (
            not c.relative_buckets
            or (c.relative_buckets >= 4 and c.relative_max_distance > c.relative_buckets // 4)
        ),
        "relative_buckets must be 0 or at least 4, and relative_max_distance above a quarter of "
        "them",
        ("relative_buckets", "relative_max_distance"),
    ),
    (
        lambda c: (
            c.positions != "padding-aware"
            or (c.absent_id is not None and c.absent_id < c.max_position_embeddings - 1)
        ),
        'positions="padding-aware" need the id that has no position, pad_token_id or '
        "position_padding_id, below max_position_embeddings - 1",
        ("pad_token_id", "position_padding_id", "max_position_embeddings"),
    ),
    (
        lambda c: not (c.global_projections and c.relative_buckets),
        "global tokens with projections of their own have no bias by distance: choose "
        "global_projections=True or relative_buckets, not both",
        ("global_projections", "relative_buckets"),
    ),
]
"""The relations between fields: a test, what is expected, and the fields that a message shows."""


def label_names(
    id2label: Any, label2id: Any, count: int | None
) -> tuple[dict[int, str] | None, dict[str, int] | None]:
    """Return the names of labels by number, and the numbers by name; each follows from the other.

    Raises:
        ValueError: They contradict each other, or the count of labels.
    """
    RULES["id2label"].check("id2label", id2label)
    RULES["label2id"].check("label2id", label2id)
    numbers = None if label2id is None else {name: int(i) for name, i in label2id.items()}
    if id2label is not None:
        names = {int(i): name for i, name in id2label.items()}
    elif numbers is None:
        return None, None
    else:
        names = {i: name for name, i in sorted(numbers.items(), key=itemgetter(1))}
        if list(names) != list(range(len(numbers))):
            raise InvalidValueError(
                "label2id must have each of the numbers 0, 1, 2, ... once where id2label is not "
                f"given; received {shown(label2id)}"
            )
    if count is not None and count != len(names):
        raise InvalidValueError(
            f"num_labels must be {len(names)}, as many as id2label or label2id names, received "
            f"{count}; leave num_labels out, or name as many labels"
        )
    following = {name: i for i, name in names.items()}
    if numbers is not None and numbers != following:
        raise InvalidValueError(
            f"label2id must be id2label the other way round; received id2label={shown(names)} and "
            f"label2id={shown(numbers)}: leave one of them out"
        )
    return names, following
