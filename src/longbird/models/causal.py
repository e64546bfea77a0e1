"""A causal decoder over a sparse graph: Longformer's language model."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithCrossAttentions
from transformers.utils.generic import can_return_tuple

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.inputs import Inputs, last_columns
from longbird.models.language import LanguageModel
from longbird.models.layers.packing import Documents
from longbird.models.losses import prediction_loss
from longbird.models.rolling import RollingCache


class LongbirdForCausalLM(LanguageModel, GenerationMixin):
    """Predicts the next token; every graph of the configuration is restricted to the past.

    `generate` keeps a rolling cache: the keys that the graph can still reach, whatever the length.
    The graph must stream for that: the default one, `longbird.bigbird()`, does not, because its
    last block is global, and which one that is changes with every token. A window with global
    tokens at the beginning does, as in the example.

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
                "num_global_tokens and global_projections would show it what follows"
            )
        config = copy.deepcopy(config)  # the caller's stays as it is
        config.is_decoder = True
        super().__init__(config)
        self.post_init()

    def _prepare_cache_for_generation(
        self, generation_config: Any, model_kwargs: dict[str, Any], *args: Any
    ) -> None:
        if generation_config.cache_implementation is not None:
            raise InvalidValueError(
                "a causal model has a rolling cache: leave cache_implementation out"
            )
        if generation_config.use_cache and model_kwargs.get("past_key_values") is None:
            model_kwargs["past_key_values"] = cache = RollingCache(self.longbird.layer_graphs)
            if generation_config.is_assistant:  # its guesses may be taken back
                cache.activate_past_recording()

    def _prepare_position_ids_for_generation(self, *args: Any, **kwargs: Any) -> None:
        """None: positions are counted by the cache, whatever their scheme."""

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        *,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        edges: Tensor | Sequence[Any] | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **shifted: Tensor | None,
    ) -> CausalLMOutputWithCrossAttentions:
        """Labels [batch, n]: the tokens themselves; each is predicted from those before it.

        `shift_labels` [batch, n], in their place, are what each token is to predict. With
        `logits_to_keep`, only the last that many columns have logits.
        """
        # Without a name in the signature: the Trainer would take it for a label that it must find.
        shift_labels = shifted.pop("shift_labels", None)
        for name in shifted:
            raise InvalidTypeError(
                f"{type(self).__name__}.forward() got an unexpected keyword argument {name!r}"
            )
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            encoder_hidden_states=encoder_hidden_states,
            encoder_attention_mask=encoder_attention_mask, edges=edges,
        )  # fmt: skip
        encoded = self.longbird.encode(inputs)
        loss = None
        if labels is not None or shift_labels is not None:
            x, following = encoded.x, self._following(encoded.documents, labels, shift_labels)
            if self.config.sparse_prediction:
                x, following = x[following != -100], following[following != -100]
            logits = self.predict(x)
            loss = prediction_loss(logits, following, num_items_in_batch)
            logits = logits if self.config.sparse_prediction else encoded.pad(logits)
        else:
            last = last_columns(logits_to_keep)
            kept = encoded.pad(torch.ones_like(encoded.x[:, :1]))[:, last]  # 0 for padding
            logits = self.predict(encoded.pad(encoded.x)[:, last]) * kept
        return CausalLMOutputWithCrossAttentions(
            loss=loss,
            logits=logits,
            past_key_values=encoded.past_key_values,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            cross_attentions=encoded.cross_attentions,
        )

    @staticmethod
    def _following(
        documents: Documents, labels: Tensor | None, shift_labels: Tensor | None
    ) -> Tensor:
        """What every token is to predict, [t]: the next one; -100 for the last of a document."""
        if shift_labels is not None:
            return documents.pack(shift_labels, "shift_labels")
        assert labels is not None
        following = documents.pack(labels, "labels").roll(-1)
        following[[end - 1 for start, end in documents.bounds if end > start]] = -100
        return following
