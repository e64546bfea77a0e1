"""Masked language modelling, and pretraining with a second sentence."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from transformers.utils.generic import can_return_tuple

from longbird.models.config import LongbirdConfig
from longbird.models.encoder import Encoded
from longbird.models.heads import Head
from longbird.models.inputs import Inputs
from longbird.models.layers.layers import activation
from longbird.models.losses import class_loss, prediction_loss
from longbird.models.outputs import LongbirdForPreTrainingOutput, LongbirdMaskedLMOutput


class Transform(nn.Module):
    """A layer between the encoder and the vocabulary."""

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.dense = nn.Linear(width, width)
        self.activation = activation(config.lm_activation or config.hidden_act)
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        """[t, w] to [t, w]."""
        return self.norm(self.activation(self.dense(x)))


class LanguageModel(Head):
    """A head that predicts tokens; the vocabulary shares its weights with the embeddings."""

    _tied_weights_keys = {"lm_head.weight": "longbird.embeddings.tokens.weight"}  # noqa: RUF012

    def __init__(self, config: LongbirdConfig, add_pooling_layer: bool = False) -> None:
        super().__init__(config, add_pooling_layer)
        self.lm_transform = Transform(config) if config.lm_transform else nn.Identity()
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)

    def predict(self, x: Tensor) -> Tensor:
        """[..., w] to [..., vocabulary]."""
        return self.lm_head(self.lm_transform(x))

    def predicted(
        self,
        encoded: Encoded,
        labels: Tensor | None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Logits and the masked language-model loss."""
        if labels is None:
            return encoded.pad(self.predict(encoded.x)), None
        x, labels = encoded.x, encoded.documents.pack(labels, "labels")
        if self.config.sparse_prediction:
            x, labels = x[labels != -100], labels[labels != -100]
        logits = self.predict(x)
        loss = prediction_loss(logits, labels, num_items_in_batch)
        return logits if self.config.sparse_prediction else encoded.pad(logits), loss


class LongbirdForMaskedLM(LanguageModel):
    """Masked language modelling.

    Examples:
        >>> import longbird as lb, torch
        >>> config = lb.LongbirdConfig(hidden_size=32, num_attention_heads=2, num_hidden_layers=1)
        >>> ids = torch.randint(100, (1, 50))
        >>> lb.LongbirdForMaskedLM(config)(ids, labels=ids).logits.shape
        torch.Size([1, 50, 50358])
    """

    accepts_loss_kwargs = True  # num_items_in_batch

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.post_init()

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
        *,
        edges: Tensor | Sequence[Any] | None = None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> LongbirdMaskedLMOutput:
        """Labels [batch, n]: tokens to predict, -100 for those that are not."""
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            edges=edges,
        )  # fmt: skip
        encoded = self.longbird.encode(inputs)
        logits, loss = self.predicted(encoded, labels, num_items_in_batch)
        return LongbirdMaskedLMOutput(
            loss=loss,
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )


class LongbirdForPreTraining(LanguageModel):
    """Masked language modelling, and whether the second sentence follows the first."""

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config, add_pooling_layer=True)
        self.next_sentence = nn.Linear(config.hidden_size, 2)
        self.post_init()

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
        next_sentence_label: Tensor | None = None,
        *,
        edges: Tensor | Sequence[Any] | None = None,
    ) -> LongbirdForPreTrainingOutput:
        """Labels [batch, n] as in masked language modelling; next_sentence_label [batch]."""
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            edges=edges,
        )  # fmt: skip
        encoded = self.longbird.encode(inputs)
        pooled = self.longbird.pool(encoded.first_of_each())
        logits, loss = self.predicted(encoded, labels)
        follows = self.next_sentence(pooled)
        if next_sentence_label is not None:
            next_loss = class_loss(follows, next_sentence_label, "next_sentence_label")
            loss = next_loss if loss is None else loss + next_loss
        return LongbirdForPreTrainingOutput(
            loss=loss,
            prediction_logits=logits,
            seq_relationship_logits=follows,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )
