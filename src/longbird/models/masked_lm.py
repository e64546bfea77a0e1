"""Masked language modelling, and pretraining with a second sentence."""

from __future__ import annotations

from torch import Tensor, nn

from longbird.models.config import LongbirdConfig
from longbird.models.encoder import Encoded
from longbird.models.heads import Head
from longbird.models.inputs import Inputs, takes
from longbird.models.layers.layer import activation
from longbird.models.losses import class_loss, prediction_loss
from longbird.models.outputs import Floats, LongbirdForPreTrainingOutput, LongbirdMaskedLMOutput


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

    def predict_labels(
        self, encoded: Encoded, labels: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> tuple[Floats, Floats]:
        """Return logits and the loss for packed labels [t].

        With `sparse_prediction`, only labelled tokens have logits.
        """
        x = encoded.x
        if self.config.sparse_prediction:
            x, labels = x[labels != -100], labels[labels != -100]
        logits = self.predict(x)
        loss = prediction_loss(logits, labels, num_items_in_batch)
        return logits if self.config.sparse_prediction else encoded.pad(logits), loss

    def predict_masked(
        self,
        encoded: Encoded,
        labels: Tensor | None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> tuple[Floats, Floats]:
        """Return logits and, if there are labels [batch, n], the masked language-model loss."""
        if labels is None:
            return encoded.pad(self.predict(encoded.x)), None
        packed = encoded.documents.pack(labels, "labels")
        return self.predict_labels(encoded, packed, num_items_in_batch)


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

    @takes(Inputs)
    def forward(
        self,
        inputs: Inputs,
        labels: Tensor | None = None,
        *,
        num_items_in_batch: Tensor | int | None = None,
    ) -> LongbirdMaskedLMOutput:
        """Predict tokens.

        Args:
            inputs: The inputs of the encoder.
            labels: [batch, n], the tokens to predict, -100 for those that are not predicted.
            num_items_in_batch: Divisor of the sum of the losses, which the `Trainer` gives.
        """
        encoded = self.longbird.encode(inputs)
        logits, loss = self.predict_masked(encoded, labels, num_items_in_batch)
        return LongbirdMaskedLMOutput(loss=loss, logits=logits, **encoded.recorded)


class LongbirdForPreTraining(LanguageModel):
    """Masked language modelling, and whether the second sentence follows the first."""

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config, add_pooling_layer=True)
        self.next_sentence = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @takes(Inputs)
    def forward(
        self,
        inputs: Inputs,
        labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
    ) -> LongbirdForPreTrainingOutput:
        """Predict tokens, and whether the second sentence follows the first.

        Args:
            inputs: The inputs of the encoder.
            labels: [batch, n], the tokens to predict, -100 for those that are not predicted.
            next_sentence_label: [batch], 0 if the second sentence follows the first, else 1.
        """
        encoded = self.longbird.encode(inputs)
        follows = self.next_sentence(self.longbird.pool(encoded.first_of_each()))
        logits, loss = self.predict_masked(encoded, labels)
        if next_sentence_label is not None:
            next_loss = class_loss(follows, next_sentence_label, "next_sentence_label")
            loss = next_loss if loss is None else loss + next_loss
        return LongbirdForPreTrainingOutput(
            loss=loss,
            prediction_logits=logits,
            seq_relationship_logits=follows,
            **encoded.recorded,
        )
