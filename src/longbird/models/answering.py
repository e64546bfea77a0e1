"""Questions about a document: where the answer is, and what supports it."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers.utils.generic import can_return_tuple

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
from longbird.models.inputs import Inputs
from longbird.models.layers.checks import check_integers, readable
from longbird.models.layers.layers import FeedForward
from longbird.models.losses import answer_loss, class_loss, mark_loss
from longbird.models.outputs import LongbirdForQuestionAnsweringOutput

IMPOSSIBLE = -1e6
"""The logit of what cannot be an answer."""


class LongbirdForQuestionAnswering(Head):
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
        answer beyond it, which was cut off, does not count, nor does one of -100.
        sentence_positions [batch, sentences] are the columns of the tokens that stand for
        sentences, -1 for none, and sentence_support, of the same shape, 1 for a supporting
        sentence. The question is global in Longformer, unless global_attention_mask is given.
        """
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            edges=edges,
        )  # fmt: skip
        has_types, has_sentences = self.config.num_answer_types, self.config.supporting_sentences
        call, settings = "in the same call", "in the configuration"
        for name, given, possible, needed in (
            (
                "start_positions", start_positions, end_positions is not None,
                f"end_positions {call}",
            ),
            (
                "end_positions", end_positions, start_positions is not None,
                f"start_positions {call}",
            ),
            ("answer_types", answer_types, has_types, f"num_answer_types above 0 {settings}"),
            (
                "sentence_positions", sentence_positions, has_sentences,
                f"supporting_sentences=True {settings}",
            ),
            (
                "sentence_support", sentence_support, sentence_positions is not None,
                f"sentence_positions {call}",
            ),
        ):  # fmt: skip
            if given is not None and not possible:
                raise InvalidValueError(f"{name} cannot be used alone: it needs {needed}")
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
            losses.append(self.loss_function(start, end, start_positions, end_positions))
        types = sentences = None
        if self.config.num_answer_types:
            types = self.answer_type(encoded.first_of_each())
            if answer_types is not None:
                losses.append(class_loss(types, answer_types, "answer_types"))
        if self.config.supporting_sentences and sentence_positions is not None:
            sentences = self._sentences(encoded, sentence_positions)
            if sentence_support is not None:
                real = sentence_positions >= 0
                losses.append(mark_loss(sentences, sentence_support, real, "sentence_support"))
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
            raise InvalidValueError(
                f"sentence_positions must be of shape [batch, sentences] with batch {len(every)}, "
                f"received {list(positions.shape)}"
            )
        if every.shape[1] == 0:
            encoded.documents.check_tokens()
        if readable(positions):
            text = encoded.pad(torch.ones_like(encoded.x[:, 0]))  # 0 for padding
            inside = (positions >= 0) & (positions < every.shape[1])
            at = text.gather(1, torch.where(inside, positions, 0)) > 0
            odd = positions[~(inside & at) & (positions != -1)]
            if len(odd):
                raise InvalidValueError(
                    "sentence_positions must be columns of the batch with a token, from 0 to "
                    f"{every.shape[1] - 1}, or -1 for none; received {odd[0].item()}"
                )
        place = positions.clamp(min=0)[..., None].expand(-1, -1, every.shape[-1])
        logits = self.sentence(every.gather(1, place))[..., 0]
        return logits.masked_fill(positions < 0, IMPOSSIBLE)
