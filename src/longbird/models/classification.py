"""Labels for documents, for tokens, and for choices."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from transformers.utils.generic import can_return_tuple

from longbird.models.config import LongbirdConfig
from longbird.models.heads import (
    ClassificationHead,
    Head,
    around_separator,
    first_tokens,
    label_count,
)
from longbird.models.inputs import Inputs
from longbird.models.losses import class_loss, document_loss, token_loss
from longbird.models.outputs import (
    LongbirdMultipleChoiceOutput,
    LongbirdSequenceClassifierOutput,
    LongbirdTokenClassifierOutput,
)


class LongbirdForSequenceClassification(Head):
    """Classification of documents: one label, several labels, or a number (`problem_type`)."""

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        act = config.classifier_activation
        self.classifier = ClassificationHead(config, label_count(config), self.dropout, act)
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
    ) -> LongbirdSequenceClassifierOutput:
        """Labels [batch], or [batch, num_labels] of 0.0 and 1.0 for several labels.

        Longformer's first token is global, unless global_attention_mask says otherwise.
        """
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            edges=edges,
        )  # fmt: skip
        inputs = self.with_global_tokens(inputs, first_tokens)
        encoded = self.longbird.encode(inputs)
        logits = self.classifier(encoded.first_of_each())
        loss = None
        if labels is not None:
            loss = document_loss(logits, labels, self.config)
        return LongbirdSequenceClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )


class LongbirdForTokenClassification(Head):
    """Classification of tokens."""

    accepts_loss_kwargs = True  # num_items_in_batch
    _loss_function = staticmethod(token_loss)  # unless `model.loss_function` is set to another

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, label_count(config))
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
    ) -> LongbirdTokenClassifierOutput:
        """Labels [batch, n]: -100 for tokens that do not count."""
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            edges=edges,
        )  # fmt: skip
        encoded = self.longbird.encode(inputs)
        logits = self.classifier(self.dropout(encoded.x))
        loss = None
        if labels is not None:
            labels = encoded.documents.pack(labels, "labels")
            loss = self.loss_function(
                logits, labels, self.config, num_items_in_batch=num_items_in_batch
            )
        return LongbirdTokenClassifierOutput(
            loss=loss,
            logits=encoded.pad(logits),
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )


class LongbirdForMultipleChoice(Head):
    """Choosing among several continuations: inputs are [batch, choices, n]."""

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.classifier = ClassificationHead(config, 1, self.dropout, "tanh")
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
    ) -> LongbirdMultipleChoiceOutput:
        """Labels [batch]: the number of the right choice.

        What follows the question is global in Longformer, unless global_attention_mask is given.
        """
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            edges=edges,
        )  # fmt: skip
        each = self.with_global_tokens(inputs.flattened(), self._after_question)
        encoded = self.longbird.encode(each)  # every choice is a document
        rows, choices = inputs.given.shape[:2]
        logits = self.classifier(encoded.first_of_each()).reshape(rows, choices)
        loss = None if labels is None else class_loss(logits, labels)
        return LongbirdMultipleChoiceOutput(
            loss=loss,
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )

    def _after_question(self, inputs: Inputs) -> Tensor:
        return around_separator(inputs, self.config.sep_token_id, before=False)
