"""The heads of the encoder, one for each task; each runs on packed tokens."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import (
    MaskedLMOutput,
    MultipleChoiceModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from transformers.utils.generic import ModelOutput

from longbird.models.config import LongbirdConfig
from longbird.models.encoder import Encoded, LongbirdModel, head
from longbird.models.outputs import (
    LongbirdForEmbeddingOutput,
    LongbirdForPreTrainingOutput,
    LongbirdForQuestionAnsweringOutput,
)
from longbird.models.pretrained import LongbirdPreTrainedModel
from longbird.nn.layers import FeedForward, activation

IMPOSSIBLE = -1e6
"""The logit of what cannot be an answer."""


def prediction_loss(
    logits: Tensor, labels: Tensor, num_items_in_batch: Tensor | int | None = None
) -> Tensor:
    """Mean cross-entropy of [..., vocabulary] over the labels that are not -100; 0 without any."""
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"labels must be of shape {list(logits.shape[:-1])}, received {list(labels.shape)}"
        )
    labels = labels.flatten()
    if num_items_in_batch is None:
        num_items_in_batch = (labels != -100).sum().clamp(min=1)
    total = F.cross_entropy(logits.flatten(0, -2).float(), labels, reduction="sum")
    return total / num_items_in_batch


class _Head(LongbirdPreTrainedModel):
    """An encoder named `longbird`, and how its inputs are prepared for the task."""

    def __init__(self, config: LongbirdConfig, add_pooling_layer: bool = False) -> None:
        super().__init__(config)
        self.longbird = LongbirdModel(config, add_pooling_layer)
        self.dropout = nn.Dropout(config.head_dropout)

    def encoded(self, inputs: dict[str, Any]) -> Encoded:
        """What `head` asks for: the documents of these inputs after the encoder."""
        longformer = self.config.global_projections and not self.config.num_global_tokens
        if longformer and inputs.get("global_attention_mask") is None:
            inputs["global_attention_mask"] = self.task_global_tokens(inputs)
        return self.longbird.encode(**inputs)

    def task_global_tokens(self, inputs: dict[str, Any]) -> Tensor | None:
        """The tokens that Longformer makes global for the task, if the user names none."""
        return None


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


class _LanguageModel(_Head):
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
        self, encoded: Encoded, labels: Tensor | None, **batch: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Logits and the masked language-model loss."""
        if labels is None:
            return encoded.pad(self.predict(encoded.x)), None
        x, labels = encoded.x, encoded.documents.pack(labels)
        if self.config.sparse_prediction:
            x, labels = x[labels != -100], labels[labels != -100]
        logits = self.predict(x)
        loss = prediction_loss(logits, labels, **batch)
        return logits if self.config.sparse_prediction else encoded.pad(logits), loss


class LongbirdForMaskedLM(_LanguageModel):
    """Masked language modelling.

    Examples:
        >>> import longbird as lb, torch
        >>> config = lb.LongbirdConfig(hidden_size=32, num_attention_heads=2, num_hidden_layers=1)
        >>> ids = torch.randint(100, (1, 50))
        >>> lb.LongbirdForMaskedLM(config)(ids, labels=ids).logits.shape
        torch.Size([1, 50, 50358])
    """

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.post_init()

    @head
    def forward(self, encoded: Encoded, labels: Tensor | None = None, **batch: Any) -> ModelOutput:
        """Labels [batch, n]: tokens to predict, -100 for those that are not."""
        logits, loss = self.predicted(encoded, labels, **batch)
        return encoded.output(MaskedLMOutput, loss=loss, logits=logits)


class LongbirdForPreTraining(_LanguageModel):
    """Masked language modelling, and whether the second sentence follows the first."""

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config, add_pooling_layer=True)
        self.next_sentence = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @head
    def forward(
        self,
        encoded: Encoded,
        labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        **batch: Any,
    ) -> ModelOutput:
        """Labels [batch, n] as in masked language modelling; next_sentence_label [batch]."""
        pooled = torch.tanh(self.longbird.pooler(encoded.first))  # type: ignore[misc]
        logits, loss = self.predicted(encoded, labels, **batch)
        follows = self.next_sentence(pooled)
        if next_sentence_label is not None:
            next_loss = F.cross_entropy(follows.float(), next_sentence_label.flatten())
            loss = next_loss if loss is None else loss + next_loss
        return encoded.output(
            LongbirdForPreTrainingOutput,
            loss=loss,
            prediction_logits=logits,
            seq_relationship_logits=follows,
        )


class ClassificationHead(nn.Module):
    """Two layers over what stands for a whole document."""

    def __init__(self, config: LongbirdConfig, labels: int, dropout: nn.Module, act: str) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = activation(act)
        self.dropout = dropout
        self.out = nn.Linear(config.hidden_size, labels)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, w] to [rows, labels]."""
        return self.out(self.dropout(self.activation(self.dense(self.dropout(x)))))


class LongbirdForSequenceClassification(_Head):
    """Classification of documents: one label, several labels, or a number (`problem_type`)."""

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        act = config.classifier_activation
        self.classifier = ClassificationHead(config, config.num_labels, self.dropout, act)
        self.post_init()

    def task_global_tokens(self, inputs: dict[str, Any]) -> Tensor | None:
        """The first token of every document."""
        return _ranks(inputs)[0] == 0

    @head
    def forward(self, encoded: Encoded, labels: Tensor | None = None, **batch: Any) -> ModelOutput:
        """Labels [batch], or [batch, num_labels] of 0.0 and 1.0 for several labels."""
        logits = self.classifier(encoded.first)
        loss = None if labels is None else self.loss_function(labels, logits, self.config, **batch)
        return encoded.output(SequenceClassifierOutput, loss=loss, logits=logits)


class LongbirdForTokenClassification(_Head):
    """Classification of tokens."""

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @head
    def forward(self, encoded: Encoded, labels: Tensor | None = None, **batch: Any) -> ModelOutput:
        """Labels [batch, n]: -100 for tokens that do not count."""
        logits = self.classifier(self.dropout(encoded.x))
        loss = None
        if labels is not None:
            packed = encoded.documents.pack(labels)
            loss = self.loss_function(logits, packed, self.config, **batch)
        return encoded.output(TokenClassifierOutput, loss=loss, logits=encoded.pad(logits))


class LongbirdForMultipleChoice(_Head):
    """Choosing among several continuations: inputs are [batch, choices, n]."""

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.classifier = ClassificationHead(config, 1, self.dropout, "tanh")
        self.post_init()

    def encoded(self, inputs: dict[str, Any]) -> Encoded:
        """Every choice is a document."""
        flat = {
            name: value.flatten(0, 1) if isinstance(value, Tensor) else value
            for name, value in inputs.items()
        }
        encoded = super().encoded(flat)
        encoded.note = _given(inputs).shape[1]
        return encoded

    def task_global_tokens(self, inputs: dict[str, Any]) -> Tensor | None:
        """The tokens after the question."""
        return _around_separator(inputs, self.config.sep_token_id, before=False)

    @head
    def forward(self, encoded: Encoded, labels: Tensor | None = None, **batch: Any) -> ModelOutput:
        """Labels [batch]: the number of the right choice."""
        logits = self.classifier(encoded.first).reshape(-1, encoded.note)
        loss = None if labels is None else F.cross_entropy(logits.float(), labels)
        return encoded.output(MultipleChoiceModelOutput, loss=loss, logits=logits)


class LongbirdForQuestionAnswering(_Head):
    """Question answering: where the answer is, of what type it is, which sentences support it.

    Examples:
        >>> import longbird as lb, torch
        >>> sizes = dict(hidden_size=32, num_attention_heads=2, num_hidden_layers=1)
        >>> config = lb.LongbirdConfig(num_answer_types=3, supporting_sentences=True, **sizes)
        >>> model = lb.LongbirdForQuestionAnswering(config)
        >>> out = model(torch.randint(100, (1, 50)), sentence_positions=torch.tensor([[5, 20]]))
        >>> out.answer_type_logits.shape, out.sentence_logits.shape
        (torch.Size([1, 3]), torch.Size([1, 2]))
    """

    accepts_loss_kwargs = False  # its loss is a mean: the Trainer divides it by the steps

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        if config.qa_feed_forward:
            self.feed_forward = FeedForward(width, config.intermediate_size, config)
            self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.span = nn.Linear(width, 2)
        act, types = config.classifier_activation, config.num_answer_types
        if types:
            self.answer_type = ClassificationHead(config, types, self.dropout, act)
        if config.supporting_sentences:
            self.sentence = ClassificationHead(config, 1, self.dropout, act)
        self.post_init()

    def encoded(self, inputs: dict[str, Any]) -> Encoded:
        """BigBird marks the context by token types, and hides the question from the answer."""
        hidden = None
        if self.config.qa_hides_question and inputs.get("input_ids") is not None:
            rank, separators = _ranks(inputs, self.config.sep_token_id)
            question = rank <= _first(rank, separators)
            if inputs.get("token_type_ids") is None and self.config.type_vocab_size > 1:
                inputs["token_type_ids"] = (~question).long()
            hidden = question & (rank > 0)  # the first token stands for "no answer"
        encoded = super().encoded(inputs)
        encoded.note = hidden
        return encoded

    def task_global_tokens(self, inputs: dict[str, Any]) -> Tensor | None:
        """The question."""
        return _around_separator(inputs, self.config.sep_token_id, before=True)

    @head
    def forward(
        self,
        encoded: Encoded,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        answer_types: Tensor | None = None,
        sentence_positions: Tensor | None = None,
        sentence_support: Tensor | None = None,
        **batch: Any,
    ) -> ModelOutput:
        """The loss is the sum of the losses of those outputs that labels are given for.

        start_positions and end_positions [batch] are columns of the batch; sentence_positions
        [batch, sentences] the columns of the tokens that stand for sentences, -1 for none, and
        sentence_support, of the same shape, 1 for a supporting sentence.
        """
        for name, given, possible in (
            ("start_positions", start_positions, end_positions is not None),
            ("end_positions", end_positions, start_positions is not None),
            ("answer_types", answer_types, self.config.num_answer_types),
            ("sentence_positions", sentence_positions, self.config.supporting_sentences),
            ("sentence_support", sentence_support, sentence_positions is not None),
        ):
            if given is not None and not possible:
                raise ValueError(f"{name} cannot be used alone, or by this configuration")
        x = encoded.x
        if self.config.qa_feed_forward:
            x = self.norm(self.dropout(self.feed_forward(self.dropout(x))) + x)
        start, end = encoded.pad(self.span(x).float(), IMPOSSIBLE).unbind(-1)  # [rows, n]
        if encoded.note is not None:
            start, end = start + IMPOSSIBLE * encoded.note, end + IMPOSSIBLE * encoded.note

        losses: list[Tensor] = []
        if start_positions is not None and end_positions is not None:
            losses.append(self.loss_function(start, end, start_positions, end_positions, **batch))
        types = sentences = None
        if self.config.num_answer_types:
            types = self.answer_type(encoded.first)
            if answer_types is not None:
                losses.append(F.cross_entropy(types.float(), answer_types))
        if self.config.supporting_sentences and sentence_positions is not None:
            sentences = self._sentences(encoded, sentence_positions)
            if sentence_support is not None:
                real = sentence_positions >= 0
                wanted = sentence_support[real].to(sentences.dtype)
                each = F.binary_cross_entropy_with_logits(sentences[real], wanted, reduction="sum")
                losses.append(each / max(len(wanted), 1))
        return encoded.output(
            LongbirdForQuestionAnsweringOutput,
            loss=torch.stack(losses).sum() if losses else None,
            start_logits=start,
            end_logits=end,
            answer_type_logits=types,
            sentence_logits=sentences,
        )

    def _sentences(self, encoded: Encoded, positions: Tensor) -> Tensor:
        """[rows, sentences]: a logit for each sentence, from the token that stands for it."""
        every = encoded.pad(encoded.x)  # [rows, n, w]
        place = positions.clamp(min=0)[..., None].expand(-1, -1, every.shape[-1])
        logits = self.sentence(every.gather(1, place))[..., 0]
        return logits.masked_fill(positions < 0, IMPOSSIBLE)


class LongbirdForEmbedding(_Head):
    """One vector of length 1 for each document: the mean of its tokens, by default.

    Examples:
        >>> import longbird as lb, torch
        >>> config = lb.LongbirdConfig(hidden_size=32, num_attention_heads=2, num_hidden_layers=1)
        >>> lb.LongbirdForEmbedding(config)(torch.randint(100, (2, 50))).embeddings.shape
        torch.Size([2, 32])
    """

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.post_init()

    @head
    def forward(self, encoded: Encoded) -> ModelOutput:
        """Has no inputs of its own."""
        match self.config.pooling:
            case "first":
                pooled = encoded.first
            case "globals":
                added = encoded.documents.added
                if not added:
                    raise ValueError('pooling="globals" needs num_global_tokens above 0')
                pooled = torch.stack([part.mean(0) for part in encoded.added.split(list(added))])
            case _:
                pooled = encoded.documents.mean(encoded.x)
        return encoded.output(LongbirdForEmbeddingOutput, embeddings=F.normalize(pooled, dim=-1))


def _given(inputs: dict[str, Any]) -> Tensor:
    """The ids or the embeddings."""
    ids = inputs.get("input_ids")
    return inputs["inputs_embeds"] if ids is None else ids


def _ranks(inputs: dict[str, Any], sep: int | None = None) -> tuple[Tensor, Tensor]:
    """The number of every token in its document, [rows, n], -1 for padding; and where `sep` is."""
    given, mask = _given(inputs), inputs.get("attention_mask")
    kept = torch.ones(given.shape[:2], dtype=torch.bool, device=given.device)
    kept = kept if mask is None else mask != 0
    rank = (kept.cumsum(1) - 1).masked_fill(~kept, -1)
    return rank, kept & (given == sep) if sep is not None else kept


def _first(rank: Tensor, marked: Tensor) -> Tensor:
    """The number of the first marked token of every document, [rows, 1]; 0 if there is none."""
    return rank.gather(1, marked.int().argmax(1, keepdim=True)).clamp(min=0)


def _around_separator(inputs: dict[str, Any], sep: int | None, before: bool) -> Tensor:
    """Bool [rows, n]: the tokens before the first separator, or after the second."""
    if inputs.get("input_ids") is None or sep is None:
        raise ValueError(
            "with inputs_embeds, or without sep_token_id, global_attention_mask must say which "
            "tokens are global"
        )
    rank, separators = _ranks(inputs, sep)
    counts = separators.sum(1)
    if bool((counts != 3).any()):
        raise ValueError(
            f"the global tokens of a question are found by three separators (id {sep}) in every "
            f"document, received {counts.tolist()}; give global_attention_mask instead"
        )
    first = _first(rank, separators)
    return (rank >= 0) & (rank < first) if before else rank > first + 1
