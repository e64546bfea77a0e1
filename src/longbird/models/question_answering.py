"""Questions about a document: where the answer is, and which sentences support it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from longbird.errors import InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.encoder import Encoded
from longbird.models.heads import (
    ClassificationHead,
    Head,
    around_separator,
    first_number,
    separators,
)
from longbird.models.inputs import Inputs, takes
from longbird.models.layers.checks import check_integers, readable
from longbird.models.layers.layer import FeedForward
from longbird.models.losses import answer_loss, class_loss, mark_loss
from longbird.models.outputs import LongbirdForQuestionAnsweringOutput

IMPOSSIBLE = -1e6
"""The logit of a token that cannot be part of an answer."""


class LongbirdForQuestionAnswering(Head):
    """Question answering: where the answer is, its type, and the sentences that support it.

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
    _loss_function = staticmethod(answer_loss)  # unless `model.loss_function` is set to another

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

    @takes(Inputs)
    def forward(
        self,
        inputs: Inputs,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        answer_types: Tensor | None = None,
        sentence_positions: Tensor | None = None,
        sentence_support: Tensor | None = None,
    ) -> LongbirdForQuestionAnsweringOutput:
        """Find answers; the question is global in Longformer.

        The loss is the sum of the losses of the outputs that have labels.

        Args:
            inputs: The inputs of the encoder.
            start_positions: [batch], the columns where answers start. As in transformers, a column
                beyond the batch, which was cut off, does not count, and neither does -100.
            end_positions: [batch], the columns of the last tokens of answers, likewise.
            answer_types: [batch], the types of answers, with `num_answer_types`.
            sentence_positions: [batch, sentences], the columns of the tokens that stand for
                sentences, -1 for none, with `supporting_sentences`.
            sentence_support: [batch, sentences], 1 for sentences that support the answer.
        """
        self._check_labels(
            start_positions, end_positions, answer_types, sentence_positions, sentence_support
        )
        hidden = None
        if self.config.qa_hides_question and inputs.input_ids is not None:
            inputs, hidden = self._hide_question(inputs)
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
            losses.append(self.loss_function(start, end, start_positions, end_positions))
        types = sentences = None
        if self.config.num_answer_types:
            types = self.answer_type(encoded.first_of_each())
            if answer_types is not None:
                losses.append(class_loss(types, answer_types, "answer_types"))
        if self.config.supporting_sentences and sentence_positions is not None:
            sentences = self._score_sentences(encoded, sentence_positions)
            if sentence_support is not None:
                real = sentence_positions >= 0
                losses.append(mark_loss(sentences, sentence_support, real, "sentence_support"))
        return LongbirdForQuestionAnsweringOutput(
            loss=torch.stack(losses).sum() if losses else None,
            start_logits=start,
            end_logits=end,
            answer_type_logits=types,
            sentence_logits=sentences,
            **encoded.recorded,
        )

    def _check_labels(
        self,
        start: Tensor | None,
        end: Tensor | None,
        types: Tensor | None,
        positions: Tensor | None,
        support: Tensor | None,
    ) -> None:
        """Raise if labels are given without what they need."""
        needs: list[tuple[str, Tensor | None, bool, str]] = [
            ("start_positions", start, end is not None, "end_positions in the same call"),
            ("end_positions", end, start is not None, "start_positions in the same call"),
            (
                "answer_types", types, self.config.num_answer_types > 0,
                "num_answer_types above 0 in the configuration",
            ),
            (
                "sentence_positions", positions, self.config.supporting_sentences,
                "supporting_sentences=True in the configuration",
            ),
            (
                "sentence_support", support, positions is not None,
                "sentence_positions in the same call",
            ),
        ]  # fmt: skip
        for name, given, possible, needed in needs:
            if given is not None and not possible:
                raise InvalidValueError(f"{name} cannot be used alone: it needs {needed}")

    def _question(self, inputs: Inputs) -> Tensor:
        return around_separator(inputs, self.config.sep_token_id, before=True)

    def _hide_question(self, inputs: Inputs) -> tuple[Inputs, Tensor]:
        """Mark the context by token types as BigBird does, and find the tokens of the question."""
        rank = inputs.ranks()
        question = rank <= first_number(rank, separators(inputs, rank, self.config.sep_token_id))
        if inputs.token_type_ids is None and self.config.type_vocab_size > 1:
            inputs = replace(inputs, token_type_ids=(~question).long())
        return inputs, question & (rank > 0)  # the first token stands for "no answer"

    def _score_sentences(self, encoded: Encoded, positions: Tensor) -> Tensor:
        """[rows, sentences]: a logit for each sentence, from the token that stands for it."""
        padded = encoded.pad(encoded.x)  # [rows, n, w]
        rows, n, width = padded.shape
        check_integers("sentence_positions", positions)
        if positions.ndim != 2 or len(positions) != rows:
            raise InvalidValueError(
                f"sentence_positions must be of shape [batch, sentences] with batch {rows}, "
                f"received {list(positions.shape)}"
            )
        if n == 0:
            encoded.documents.check_tokens()
        if readable(positions):
            text = encoded.pad(torch.ones_like(encoded.x[:, 0]))  # 0 for padding
            inside = (positions >= 0) & (positions < n)
            at = text.gather(1, torch.where(inside, positions, 0)) > 0
            odd = positions[~(inside & at) & (positions != -1)]
            if len(odd):
                raise InvalidValueError(
                    "sentence_positions must be columns of the batch with a token, from 0 to "
                    f"{n - 1}, or -1 for none; received {odd[0].item()}"
                )
        place = positions.clamp(min=0)[..., None].expand(-1, -1, width)
        logits = self.sentence(padded.gather(1, place))[..., 0]
        return logits.masked_fill(positions < 0, IMPOSSIBLE)
