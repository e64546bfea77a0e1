"""The heads of the encoder, one for each task; each runs on packed tokens.

A forward pass gathers its inputs, prepares them for the task, encodes, and computes its outputs.
"""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.utils.generic import can_return_tuple

from longbird.models.config import LongbirdConfig
from longbird.models.encoder import Encoded, LongbirdModel
from longbird.models.inputs import Inputs
from longbird.models.losses import (
    check_answers,
    class_loss,
    classes,
    document_loss,
    prediction_loss,
)
from longbird.models.outputs import (
    LongbirdForEmbeddingOutput,
    LongbirdForPreTrainingOutput,
    LongbirdForQuestionAnsweringOutput,
    LongbirdMaskedLMOutput,
    LongbirdMultipleChoiceOutput,
    LongbirdSequenceClassifierOutput,
    LongbirdTokenClassifierOutput,
)
from longbird.models.pretrained import LongbirdPreTrainedModel
from longbird.nn.checks import check_integers, readable
from longbird.nn.layers import FeedForward, activation

IMPOSSIBLE = -1e6
"""The logit of what cannot be an answer."""


class _Head(LongbirdPreTrainedModel):
    """An encoder named `longbird`."""

    def __init__(self, config: LongbirdConfig, add_pooling_layer: bool = False) -> None:
        super().__init__(config)
        self.longbird = LongbirdModel(config, add_pooling_layer)
        self.dropout = nn.Dropout(config.head_dropout)

    def with_global_tokens(self, inputs: Inputs, chosen: Callable[[Inputs], Tensor]) -> Inputs:
        """With the tokens that Longformer makes global for the task, if the user names none."""
        longformer = self.config.global_projections and not self.config.num_global_tokens
        if not longformer or inputs.global_attention_mask is not None:
            return inputs
        return replace(inputs, global_attention_mask=chosen(inputs))


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


class LongbirdForMaskedLM(_LanguageModel):
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
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds,
            global_attention_mask, segment_ids, past_key_values, use_cache, output_hidden_states,
            output_attentions, edges=edges,
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


class LongbirdForPreTraining(_LanguageModel):
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
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds,
            global_attention_mask, segment_ids, past_key_values, use_cache, output_hidden_states,
            output_attentions, edges=edges,
        )  # fmt: skip
        encoded = self.longbird.encode(inputs)
        pooled = self.longbird.pool(encoded)
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
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds,
            global_attention_mask, segment_ids, past_key_values, use_cache, output_hidden_states,
            output_attentions, edges=edges,
        )  # fmt: skip
        inputs = self.with_global_tokens(inputs, first_tokens)
        encoded = self.longbird.encode(inputs)
        logits = self.classifier(encoded.first)
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


class LongbirdForTokenClassification(_Head):
    """Classification of tokens."""

    accepts_loss_kwargs = True  # num_items_in_batch

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
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
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds,
            global_attention_mask, segment_ids, past_key_values, use_cache, output_hidden_states,
            output_attentions, edges=edges,
        )  # fmt: skip
        encoded = self.longbird.encode(inputs)
        logits = self.classifier(self.dropout(encoded.x))
        loss = None
        if labels is not None:
            labels = classes(encoded.documents.pack(labels, "labels"), logits)
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


class LongbirdForMultipleChoice(_Head):
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
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds,
            global_attention_mask, segment_ids, past_key_values, use_cache, output_hidden_states,
            output_attentions, edges=edges,
        )  # fmt: skip
        if inputs.given.ndim < 3:
            raise ValueError(
                "multiple choice takes input_ids [batch, choices, n], received "
                f"{list(inputs.given.shape)}"
            )
        choices = inputs.given.shape[1]
        each = self.with_global_tokens(inputs.flattened(), self._after_question)
        encoded = self.longbird.encode(each)  # every choice is a document
        logits = self.classifier(encoded.first).reshape(-1, choices)
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
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        answer_types: Tensor | None = None,
        sentence_positions: Tensor | None = None,
        sentence_support: Tensor | None = None,
        *,
        edges: Tensor | Sequence[Any] | None = None,
    ) -> LongbirdForQuestionAnsweringOutput:
        """The loss is the sum of the losses of those outputs that labels are given for.

        start_positions and end_positions [batch] are columns of the batch; as in transformers, an
        answer beyond it does not count. sentence_positions [batch, sentences] are the columns of
        the tokens that stand for sentences, -1 for none, and sentence_support, of the same shape,
        1 for a supporting sentence. The question is global in Longformer, unless
        global_attention_mask is given.
        """
        inputs = Inputs(
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds,
            global_attention_mask, segment_ids, past_key_values, use_cache, output_hidden_states,
            output_attentions, edges=edges,
        )  # fmt: skip
        for name, given, possible in (
            ("start_positions", start_positions, end_positions is not None),
            ("end_positions", end_positions, start_positions is not None),
            ("answer_types", answer_types, self.config.num_answer_types),
            ("sentence_positions", sentence_positions, self.config.supporting_sentences),
            ("sentence_support", sentence_support, sentence_positions is not None),
        ):
            if given is not None and not possible:
                raise ValueError(f"{name} cannot be used alone, or by this configuration")
        hidden = None
        if self.config.qa_hides_question and input_ids is not None:
            inputs, hidden = self._hiding_question(inputs)
        inputs = self.with_global_tokens(inputs, self._question)
        encoded = self.longbird.encode(inputs)

        x = encoded.x
        if self.config.qa_feed_forward:
            x = self.norm(self.dropout(self.feed_forward(self.dropout(x))) + x)
        start, end = encoded.pad(self.span(x).float(), IMPOSSIBLE).unbind(-1)  # [rows, n]
        if hidden is not None:
            start, end = start + IMPOSSIBLE * hidden, end + IMPOSSIBLE * hidden

        losses: list[Tensor] = []
        if start_positions is not None and end_positions is not None:
            check_answers(start_positions, end_positions, len(start))
            losses.append(self.loss_function(start, end, start_positions, end_positions))
        types = sentences = None
        if self.config.num_answer_types:
            types = self.answer_type(encoded.first)
            if answer_types is not None:
                losses.append(class_loss(types, answer_types, "answer_types"))
        if self.config.supporting_sentences and sentence_positions is not None:
            sentences = self._sentences(encoded, sentence_positions)
            if sentence_support is not None:
                losses.append(self._support_loss(sentences, sentence_positions, sentence_support))
        return LongbirdForQuestionAnsweringOutput(
            loss=torch.stack(losses).sum() if losses else None,
            start_logits=start,
            end_logits=end,
            answer_type_logits=types,
            sentence_logits=sentences,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )

    def _question(self, inputs: Inputs) -> Tensor:
        return around_separator(inputs, self.config.sep_token_id, before=True)

    def _hiding_question(self, inputs: Inputs) -> tuple[Inputs, Tensor]:
        """BigBird marks the context by token types, and hides the question from the answer."""
        rank = inputs.ranks()
        question = rank <= first_number(rank, separators(inputs, rank, self.config.sep_token_id))
        if inputs.token_type_ids is None and self.config.type_vocab_size > 1:
            inputs = replace(inputs, token_type_ids=(~question).long())
        return inputs, question & (rank > 0)  # the first token stands for "no answer"

    def _sentences(self, encoded: Encoded, positions: Tensor) -> Tensor:
        """[rows, sentences]: a logit for each sentence, from the token that stands for it."""
        every = encoded.pad(encoded.x)  # [rows, n, w]
        check_integers("sentence_positions", positions)
        if positions.ndim != 2 or len(positions) != len(every):
            raise ValueError(
                f"sentence_positions must be of shape [batch, sentences] with batch {len(every)}, "
                f"received {list(positions.shape)}"
            )
        if readable(positions):
            text = encoded.pad(torch.ones_like(encoded.x[:, 0]))  # 0 for padding
            inside = (positions >= 0) & (positions < every.shape[1])
            at = text.gather(1, torch.where(inside, positions, 0)) > 0
            odd = positions[~(inside & at) & (positions != -1)]
            if len(odd):
                raise ValueError(
                    "sentence_positions must be columns of the batch with a token, from 0 to "
                    f"{every.shape[1] - 1}, or -1 for none; received {odd[0].item()}"
                )
        place = positions.clamp(min=0)[..., None].expand(-1, -1, every.shape[-1])
        logits = self.sentence(every.gather(1, place))[..., 0]
        return logits.masked_fill(positions < 0, IMPOSSIBLE)

    def _support_loss(self, logits: Tensor, positions: Tensor, support: Tensor) -> Tensor:
        """Mean over the sentences that there are; 0 without any."""
        if support.shape != positions.shape:
            raise ValueError(
                f"sentence_support must be of the shape of sentence_positions, "
                f"{list(positions.shape)}, received {list(support.shape)}"
            )
        real = positions >= 0
        wanted = support[real].to(logits.dtype)
        each = F.binary_cross_entropy_with_logits(logits[real], wanted, reduction="sum")
        return each / max(len(wanted), 1)


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
        *,
        edges: Tensor | Sequence[Any] | None = None,
    ) -> LongbirdForEmbeddingOutput:
        """Takes what `LongbirdModel` takes."""
        inputs = Inputs(
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds,
            global_attention_mask, segment_ids, past_key_values, use_cache, output_hidden_states,
            output_attentions, edges=edges,
        )  # fmt: skip
        encoded = self.longbird.encode(inputs)
        return LongbirdForEmbeddingOutput(
            embeddings=F.normalize(self._pooled(encoded), dim=-1),
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )

    def _pooled(self, encoded: Encoded) -> Tensor:
        """[rows, w], as `pooling` says."""
        match self.config.pooling:
            case "first":
                return encoded.first
            case "globals":
                added = encoded.context.added
                if added is None:
                    raise ValueError('pooling="globals" needs num_global_tokens above 0')
                return added.mean(encoded.added, encoded.documents.rows)
            case _:
                return encoded.documents.mean(encoded.x)


def first_tokens(inputs: Inputs) -> Tensor:
    """Bool [rows, n]: the first token of every document."""
    return inputs.ranks() == 0


def separators(inputs: Inputs, rank: Tensor, sep: int | None) -> Tensor:
    """Bool [rows, n]: where the separator stands; every token, if there is none."""
    kept = rank >= 0
    return kept & (inputs.given == sep) if sep is not None else kept


def first_number(rank: Tensor, marked: Tensor) -> Tensor:
    """The number of the first marked token of every document, [rows, 1]; 0 if there is none."""
    return rank.gather(1, marked.int().argmax(1, keepdim=True)).clamp(min=0)


def around_separator(inputs: Inputs, sep: int | None, before: bool) -> Tensor:
    """Bool [rows, n]: the tokens before the first separator, or after the second."""
    if inputs.input_ids is None or sep is None:
        raise ValueError(
            "with inputs_embeds, or without sep_token_id, global_attention_mask must say which "
            "tokens are global"
        )
    rank = inputs.ranks()
    marked = separators(inputs, rank, sep)
    counts = marked.sum(1)
    if bool((counts != 3).any()):
        raise ValueError(
            f"the global tokens of a question are found by three separators (id {sep}) in every "
            f"document, received {counts.tolist()}; give global_attention_mask instead"
        )
    first = first_number(rank, marked)
    return (rank >= 0) & (rank < first) if before else rank > first + 1
