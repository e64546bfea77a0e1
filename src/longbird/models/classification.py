"""Choosing among labels: for documents, for tokens, and for continuations of a question."""

from __future__ import annotations

from torch import Tensor, nn

from longbird.models.config import LongbirdConfig
from longbird.models.heads import (
    ClassificationHead,
    Head,
    around_separator,
    first_tokens,
    label_count,
)
from longbird.models.inputs import Inputs, takes
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

    @takes(Inputs)
    def forward(
        self, inputs: Inputs, labels: Tensor | None = None
    ) -> LongbirdSequenceClassifierOutput:
        """Classify documents; the first token is global in Longformer.

        Args:
            inputs: The inputs of the encoder.
            labels: [batch], or [batch, num_labels] of 0.0 and 1.0 for several labels.
        """
        inputs = self.with_global_tokens(inputs, first_tokens)
        encoded = self.longbird.encode(inputs)
        logits = self.classifier(encoded.first_of_each())
        return LongbirdSequenceClassifierOutput(
            loss=None if labels is None else document_loss(logits, labels, self.config),
            logits=logits,
            **encoded.recorded,
        )


class LongbirdForTokenClassification(Head):
    """Classification of tokens."""

    accepts_loss_kwargs = True  # num_items_in_batch
    _loss_function = staticmethod(token_loss)  # unless `model.loss_function` is set to another

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, label_count(config))
        self.post_init()

    @takes(Inputs)
    def forward(
        self,
        inputs: Inputs,
        labels: Tensor | None = None,
        *,
        num_items_in_batch: Tensor | int | None = None,
    ) -> LongbirdTokenClassifierOutput:
        """Classify tokens.

        Args:
            inputs: The inputs of the encoder.
            labels: [batch, n], -100 for tokens that do not count.
            num_items_in_batch: Divisor of the sum of the losses, which the `Trainer` gives.
        """
        encoded = self.longbird.encode(inputs)
        logits = self.classifier(self.dropout(encoded.x))
        loss = None
        if labels is not None:
            packed = encoded.documents.pack(labels, "labels")
            loss = self.loss_function(
                logits, packed, self.config, num_items_in_batch=num_items_in_batch
            )
        return LongbirdTokenClassifierOutput(
            loss=loss, logits=encoded.pad(logits), **encoded.recorded
        )


class LongbirdForMultipleChoice(Head):
    """Choosing among several continuations: inputs are [batch, choices, n]."""

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.classifier = ClassificationHead(config, 1, self.dropout, "tanh")
        self.post_init()

    @takes(Inputs)
    def forward(
        self, inputs: Inputs, labels: Tensor | None = None
    ) -> LongbirdMultipleChoiceOutput:
        """Score choices; what follows the question is global in Longformer.

        Args:
            inputs: The inputs of the encoder, [batch, choices, n].
            labels: [batch], the number of the right choice.
        """
        each = self.with_global_tokens(inputs.flattened(), self._after_question)
        rows, choices = inputs.given.shape[:2]
        encoded = self.longbird.encode(each)  # every choice is a document
        logits = self.classifier(encoded.first_of_each()).reshape(rows, choices)
        return LongbirdMultipleChoiceOutput(
            loss=None if labels is None else class_loss(logits, labels),
            logits=logits,
            **encoded.recorded,
        )

    def _after_question(self, inputs: Inputs) -> Tensor:
        return around_separator(inputs, self.config.sep_token_id, before=False)
