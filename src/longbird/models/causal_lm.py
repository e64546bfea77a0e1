"""A causal decoder over a sparse graph."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithCrossAttentions

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.inputs import Inputs, last_columns, takes
from longbird.models.layers.packing import Documents
from longbird.models.masked_lm import LanguageModel
from longbird.models.rolling_cache import RollingCache


class LongbirdForCausalLM(LanguageModel, GenerationMixin):
    """Predicts the next token; every graph of the configuration is restricted to earlier tokens.

    `generate` keeps a rolling cache, which holds the keys that the graph can still reach, however
    long the text is. The graph must be one that can be streamed. The default, `longbird.bigbird()`
    cannot be: its last block is global, and which block is the last changes with every token. A
    window with global tokens at the beginning can, as in the example.

    Examples:
        >>> import longbird as lb, torch
        >>> sizes = dict(
        ...     vocab_size=100, hidden_size=32, num_attention_heads=2, num_hidden_layers=2
        ... )
        >>> positions = dict(positions="none", relative_buckets=32)  # for texts of any length
        >>> graph = lb.Window(8) | lb.GlobalTokens([0])
        >>> config = lb.LongbirdConfig(graph=graph, eos_token_id=None, **sizes, **positions)
        >>> model = lb.LongbirdForCausalLM(config)
        >>> model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=20, do_sample=False).shape
        torch.Size([1, 23])
    """

    accepts_loss_kwargs = True  # num_items_in_batch

    def __init__(self, config: LongbirdConfig) -> None:
        if config.num_global_tokens or config.global_projections:
            raise InvalidValueError(
                "a causal model has its global tokens in its graph, as GlobalTokens(...): "
                "num_global_tokens and global_projections would show it later tokens"
            )
        config = copy.deepcopy(config)  # the caller's configuration does not change
        config.is_decoder = True
        super().__init__(config)
        self.post_init()

    def _prepare_cache_for_generation(
        self, generation_config: Any, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> bool:
        if generation_config.cache_implementation is not None:
            raise InvalidValueError(
                "a causal model has a rolling cache: leave cache_implementation out"
            )
        if generation_config.use_cache and model_kwargs.get("past_key_values") is None:
            model_kwargs["past_key_values"] = cache = RollingCache(self.longbird.layer_graphs)
            if generation_config.is_assistant:  # its guesses may be taken back
                cache.activate_past_recording()
        return False  # a rolling cache is never compiled

    def _prepare_position_ids_for_generation(self, *args: Any, **kwargs: Any) -> Any:
        """None: the cache counts positions, whatever their scheme."""

    @takes(Inputs)
    def forward(
        self,
        inputs: Inputs,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        *,
        num_items_in_batch: Tensor | int | None = None,
        **shifted: Tensor | None,
    ) -> CausalLMOutputWithCrossAttentions:
        """Predict the next token of every token.

        Args:
            inputs: The inputs of the decoder.
            labels: [batch, n], the tokens themselves; each is predicted from earlier ones.
            logits_to_keep: Number of last columns that get logits; 0 for all columns.
            num_items_in_batch: Divisor of the sum of the losses, which the `Trainer` gives.
            **shifted: `shift_labels` [batch, n], the token to predict at each token, instead of
                `labels`.
        """
        # It has no name of its own: the Trainer would take it for a label that it must find.
        shift_labels = shifted.pop("shift_labels", None)
        for name in shifted:
            raise InvalidTypeError(
                f"{type(self).__name__}.forward() got an unexpected keyword argument {name!r}"
            )
        encoded = self.longbird.encode(inputs)
        if labels is not None or shift_labels is not None:
            following = _following(encoded.documents, labels, shift_labels)
            logits, loss = self.predict_labels(encoded, following, num_items_in_batch)
        else:
            last, loss = last_columns(logits_to_keep), None
            kept = encoded.pad(torch.ones_like(encoded.x[:, :1]))[:, last]  # 0 for padding
            logits = self.predict(encoded.pad(encoded.x)[:, last]) * kept
        recorded = encoded.recorded
        return CausalLMOutputWithCrossAttentions(
            loss=loss,
            logits=logits,
            past_key_values=encoded.past_key_values,
            hidden_states=recorded["hidden_states"],
            attentions=recorded["attentions"],
            cross_attentions=encoded.cross_attentions,
        )


def _following(documents: Documents, labels: Tensor | None, shift_labels: Tensor | None) -> Tensor:
    """The token to predict at every token, [t]: the next one; -100 at the end of a document."""
    if shift_labels is not None:
        return documents.pack(shift_labels, "shift_labels")
    assert labels is not None
    following = documents.pack(labels, "labels").roll(-1)
    following[[end - 1 for start, end in documents.bounds if end > start]] = -100
    return following
