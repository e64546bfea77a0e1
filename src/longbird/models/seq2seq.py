"""Encoder-decoders: a sparse encoder and a full causal decoder (BigBird-Pegasus, LED).

Axes: b batch, s tokens of the output, n tokens of the input, h heads, d head_dim, w width.
"""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import EncoderDecoderCache, GenerationMixin, initialization
from transformers.utils.generic import can_return_tuple

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.answering import IMPOSSIBLE
from longbird.models.config import LongbirdSeq2SeqConfig
from longbird.models.decoder import LongbirdDecoder
from longbird.models.encoder import LongbirdModel
from longbird.models.heads import ClassificationHead, label_count
from longbird.models.inputs import last_columns
from longbird.models.layers.checks import (
    check_labels,
    check_tensor,
)
from longbird.models.losses import answer_loss, document_loss, prediction_loss
from longbird.models.outputs import (
    LongbirdModelOutput,
    LongbirdSeq2SeqLMOutput,
    LongbirdSeq2SeqModelOutput,
    LongbirdSeq2SeqQuestionAnsweringOutput,
    LongbirdSeq2SeqSequenceClassifierOutput,
)
from longbird.models.pretrained import LongbirdPreTrainedModel


class LongbirdSeq2SeqModel(LongbirdPreTrainedModel):
    """A sparse encoder and a full decoder, without a head.

    Examples:
        >>> import longbird as lb, torch
        >>> sizes = dict(vocab_size=100, hidden_size=32, num_attention_heads=2)
        >>> layers = dict(num_hidden_layers=1, decoder_layers=1, decoder_attention_heads=2)
        >>> config = lb.LongbirdSeq2SeqConfig(**sizes, **layers)
        >>> ids = torch.randint(100, (1, 300))
        >>> out = lb.LongbirdSeq2SeqModel(config)(ids, decoder_input_ids=ids[:, :7])
        >>> out.last_hidden_state.shape
        torch.Size([1, 7, 32])
    """

    config_class = LongbirdSeq2SeqConfig
    base_model_prefix = "model"
    _tied_weights_keys = {  # noqa: RUF012
        "decoder.tokens.weight": "encoder.embeddings.tokens.weight"
    }

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        self.encoder = LongbirdModel(config, add_pooling_layer=False)
        self.decoder = LongbirdDecoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The token embeddings, which the decoder shares unless they are not to be tied."""
        return self.encoder.embeddings.tokens

    def set_input_embeddings(self, value: Any) -> None:
        """Replaces the token embeddings; those of the decoder, if it has its own, get the size."""
        self.encoder.embeddings.tokens = value
        if self.config.tie_word_embeddings:
            self.decoder.tokens = value
        elif self.decoder.tokens.num_embeddings != value.num_embeddings:
            self.decoder.tokens = self._get_resized_embeddings(
                self.decoder.tokens, value.num_embeddings
            )

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: EncoderDecoderCache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        *,
        edges: Tensor | Sequence[Any] | None = None,
    ) -> LongbirdSeq2SeqModelOutput:
        """Encodes the input [b, n], unless it is given encoded, and decodes the output [b, s].

        Without an output, the input is its own, as in BART.
        """
        if decoder_input_ids is None and decoder_inputs_embeds is None and input_ids is not None:
            check_tensor("input_ids", input_ids)
            decoder_input_ids = after_start(input_ids, self.config)
        wanted = {
            "output_hidden_states": output_hidden_states,
            "output_attentions": output_attentions,
            "return_dict": True,
        }
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids,
                attention_mask=attention_mask,
                inputs_embeds=inputs_embeds,
                global_attention_mask=global_attention_mask,
                edges=edges,
                **wanted,
            )
        else:
            encoder_outputs = as_encoder_outputs(encoder_outputs)
        check_rows(
            encoder_outputs.last_hidden_state,
            decoder_inputs_embeds if decoder_input_ids is None else decoder_input_ids,
        )
        decoded = self.decoder(
            decoder_input_ids,
            decoder_attention_mask,
            encoder_outputs.last_hidden_state,
            attention_mask,
            past_key_values,
            decoder_inputs_embeds,
            use_cache,
            **wanted,
        )
        return LongbirdSeq2SeqModelOutput(
            last_hidden_state=decoded.last_hidden_state,
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.hidden_states,
            decoder_attentions=decoded.attentions,
            cross_attentions=decoded.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=getattr(encoder_outputs, "hidden_states", None),
            encoder_attentions=getattr(encoder_outputs, "attentions", None),
            encoder_global_attentions=getattr(encoder_outputs, "global_attentions", None),
        )


def as_encoder_outputs(given: Any) -> Any:
    """What an encoder gave, with names; a tuple has its fields in the order of LED's encoder."""
    outputs = given
    if isinstance(given, (tuple, list)):
        names = ("last_hidden_state", "hidden_states", "attentions", "global_attentions")
        outputs = LongbirdModelOutput(**dict(zip(names, given, strict=False)))
    if not isinstance(getattr(outputs, "last_hidden_state", None), Tensor):
        raise InvalidTypeError(
            "encoder_outputs must be the output of the encoder, or a tuple that starts with its "
            f"last_hidden_state [batch, n, width], received {type(given).__name__} without it"
        )
    return outputs


def check_rows(states: Tensor, output: Any) -> None:
    """Raises unless the input and the output, where it is a tensor, are of as many documents."""
    shaped = isinstance(output, Tensor) and output.ndim > 1 and states.ndim == 3
    if shaped and len(output) != len(states):
        raise InvalidValueError(
            "labels, decoder_input_ids and decoder_inputs_embeds must have as many rows as the "
            f"input, {len(states)}, received {len(output)}"
        )


def after_start(ids: Tensor, config: Any) -> Tensor:
    """The ids [b, s] one place to the right, after the start token."""
    shifted = ids.roll(1, -1)
    shifted[..., :1] = config.decoder_start_token_id
    return shifted.masked_fill(shifted == -100, config.pad_token_id)


def check_right_padding(mask: Tensor) -> None:
    """Raises where padding is not at the end: the decoder takes columns for positions."""
    if bool((mask[:, 1:] > mask[:, :-1]).any()):
        raise InvalidValueError("attention_mask must have its padding at the end of every row")


class _Seq2SeqHead(LongbirdPreTrainedModel):
    """An encoder-decoder named `model`."""

    config_class = LongbirdSeq2SeqConfig
    base_model_prefix = "model"
    _tied_weights_keys = {  # noqa: RUF012
        "model.decoder.tokens.weight": "model.encoder.embeddings.tokens.weight"
    }

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        self.model = LongbirdSeq2SeqModel(config)


class LongbirdForConditionalGeneration(_Seq2SeqHead, GenerationMixin):
    """Summarisation, and whatever else reads a long text and writes a short one.

    Examples:
        >>> import longbird as lb, torch
        >>> sizes = dict(vocab_size=100, hidden_size=32, num_attention_heads=2, eos_token_id=None)
        >>> layers = dict(num_hidden_layers=1, decoder_layers=1, decoder_attention_heads=2)
        >>> config = lb.LongbirdSeq2SeqConfig(**sizes, **layers)
        >>> model = lb.LongbirdForConditionalGeneration(config)
        >>> document = torch.randint(3, 100, (1, 500))
        >>> model.generate(document, num_beams=2, max_new_tokens=5).shape
        torch.Size([1, 6])
    """

    _tied_weights_keys = {  # noqa: RUF012
        **_Seq2SeqHead._tied_weights_keys,
        "lm_head.weight": "model.encoder.embeddings.tokens.weight",
    }
    _keys_to_ignore_on_load_missing = ["final_logits_bias"]  # noqa: RUF012
    accepts_loss_kwargs = True  # num_items_in_batch

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.register_buffer("final_logits_bias", torch.zeros(1, config.vocab_size))
        self.post_init()

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> Any:
        """Resizes the vocabulary, the bias of the logits included."""
        embeddings = super().resize_token_embeddings(*args, **kwargs)
        bias = self.final_logits_bias
        self.final_logits_bias = F.pad(bias, (0, embeddings.num_embeddings - bias.shape[1]))
        return embeddings

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if module is self:
            initialization.zeros_(self.final_logits_bias)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """The labels one place to the right, after the start token."""
        return after_start(labels, self.config)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: EncoderDecoderCache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        *,
        edges: Tensor | Sequence[Any] | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        num_items_in_batch: Tensor | int | None = None,
    ) -> LongbirdSeq2SeqLMOutput:
        """Labels [b, s]: the output to learn, -100 for padding; decoder inputs come from it."""
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None and decoder_inputs_embeds is None:
                check_labels("labels", labels, self.config.vocab_size, "the vocabulary")
                if labels.ndim != 2:
                    raise InvalidValueError(
                        f"labels must be [batch, s], received {list(labels.shape)}"
                    )
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        decoded = self.model(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, encoder_outputs,
            past_key_values, inputs_embeds, decoder_inputs_embeds, global_attention_mask,
            use_cache, output_hidden_states, output_attentions, edges=edges, return_dict=True,
        )  # fmt: skip
        x = decoded.last_hidden_state[:, last_columns(logits_to_keep)]  # [b, s, w]
        if labels is not None and self.config.sparse_prediction:
            x, labels = x[labels != -100], labels[labels != -100]
        logits = self.lm_head(x) + self.final_logits_bias.flatten()
        loss = None if labels is None else prediction_loss(logits, labels, num_items_in_batch)
        return LongbirdSeq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.decoder_hidden_states,
            decoder_attentions=decoded.decoder_attentions,
            cross_attentions=decoded.cross_attentions,
            encoder_last_hidden_state=decoded.encoder_last_hidden_state,
            encoder_hidden_states=decoded.encoder_hidden_states,
            encoder_attentions=decoded.encoder_attentions,
            encoder_global_attentions=decoded.encoder_global_attentions,
        )


class LongbirdSeq2SeqForSequenceClassification(_Seq2SeqHead):
    """Classification of documents by what the decoder says at their last end token (BART)."""

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        dropout, act = nn.Dropout(config.head_dropout), config.classifier_activation
        self.classifier = ClassificationHead(config, label_count(config), dropout, act)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: EncoderDecoderCache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        *,
        edges: Tensor | Sequence[Any] | None = None,
        labels: Tensor | None = None,
    ) -> LongbirdSeq2SeqSequenceClassifierOutput:
        """Labels as in `LongbirdForSequenceClassification`."""
        if input_ids is None:
            raise InvalidValueError(
                "input_ids must be given: the end of a document is found in them"
            )
        decoded = self.model(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, encoder_outputs,
            past_key_values, inputs_embeds, decoder_inputs_embeds, global_attention_mask,
            use_cache, output_hidden_states, output_attentions, edges=edges, return_dict=True,
        )  # fmt: skip
        x = decoded.last_hidden_state  # [b, s, w]
        last = self._last_ends(input_ids, attention_mask)
        logits = self.classifier(x[torch.arange(len(x), device=x.device), last])
        loss = None
        if labels is not None:
            loss = document_loss(logits, labels, self.config)
        return LongbirdSeq2SeqSequenceClassifierOutput(
            loss=loss,
            logits=logits,
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.decoder_hidden_states,
            decoder_attentions=decoded.decoder_attentions,
            cross_attentions=decoded.cross_attentions,
            encoder_last_hidden_state=decoded.encoder_last_hidden_state,
            encoder_hidden_states=decoded.encoder_hidden_states,
            encoder_attentions=decoded.encoder_attentions,
            encoder_global_attentions=decoded.encoder_global_attentions,
        )

    def _last_ends(self, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """The column of the last end token of every document, [b]."""
        ends = torch.tensor(self.config.eos_token_id, device=input_ids.device)
        is_end = torch.isin(input_ids, ends)
        if attention_mask is not None:
            check_right_padding(attention_mask)
            is_end = is_end & (attention_mask != 0)
        place = torch.arange(input_ids.shape[1], device=input_ids.device)
        last = F.pad(torch.where(is_end, place, -1), (1, 0), value=-1).amax(1)
        if bool((last < 0).any()):
            raise InvalidValueError(
                f"every document must have an end token (eos_token_id={ends.tolist()}); rows "
                f"{(last < 0).nonzero()[:, 0].tolist()} have none"
            )
        return last


class LongbirdSeq2SeqForQuestionAnswering(_Seq2SeqHead):
    """Where the answer is, by what the decoder says at every token of the input (BART)."""

    _loss_function = staticmethod(answer_loss)  # unless `model.loss_function` is set to another

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        self.span = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: Any = None,
        past_key_values: EncoderDecoderCache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        *,
        edges: Tensor | Sequence[Any] | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
    ) -> LongbirdSeq2SeqQuestionAnsweringOutput:
        """start_positions and end_positions [b]: the columns of the answer."""
        decoded = self.model(
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, encoder_outputs,
            past_key_values, inputs_embeds, decoder_inputs_embeds, global_attention_mask,
            use_cache, output_hidden_states, output_attentions, edges=edges, return_dict=True,
        )  # fmt: skip
        span = self.span(decoded.last_hidden_state)  # [b, s, 2]
        if attention_mask is not None and attention_mask.shape == span.shape[:2]:
            check_right_padding(attention_mask)
            span = span.masked_fill(attention_mask[..., None] == 0, IMPOSSIBLE)
        start, end = span.unbind(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = self.loss_function(start, end, start_positions, end_positions)
        return LongbirdSeq2SeqQuestionAnsweringOutput(
            loss=loss,
            start_logits=start,
            end_logits=end,
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.decoder_hidden_states,
            decoder_attentions=decoded.decoder_attentions,
            cross_attentions=decoded.cross_attentions,
            encoder_last_hidden_state=decoded.encoder_last_hidden_state,
            encoder_hidden_states=decoded.encoder_hidden_states,
            encoder_attentions=decoded.encoder_attentions,
            encoder_global_attentions=decoded.encoder_global_attentions,
        )
