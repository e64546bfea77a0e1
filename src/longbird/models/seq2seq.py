"""Encoder-decoders: a sparse encoder and a full causal decoder (BigBird-Pegasus, LED).

Axes: b batch, s tokens of the output, n tokens of the input, h heads, d head_dim, w width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin, initialization

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.config import LongbirdSeq2SeqConfig
from longbird.models.decoder import LongbirdDecoder
from longbird.models.encoder import LongbirdModel
from longbird.models.heads import ClassificationHead, label_count
from longbird.models.inputs import Seq2SeqInputs, last_columns, takes
from longbird.models.layers.checks import check_labels, check_tensor
from longbird.models.losses import answer_loss, document_loss, prediction_loss
from longbird.models.outputs import (
    LongbirdModelOutput,
    LongbirdSeq2SeqLMOutput,
    LongbirdSeq2SeqModelOutput,
    LongbirdSeq2SeqQuestionAnsweringOutput,
    LongbirdSeq2SeqSequenceClassifierOutput,
)
from longbird.models.pretrained import LongbirdPreTrainedModel
from longbird.models.question_answering import IMPOSSIBLE

ENCODER_OUTPUTS = ("hidden_states", "attentions", "global_attentions")
"""Fields of the output of an encoder that the models here return under "encoder_" and the name."""


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
    if TYPE_CHECKING:
        config: LongbirdSeq2SeqConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        self.encoder = LongbirdModel(config, add_pooling_layer=False)
        self.decoder = LongbirdDecoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """Return the token embeddings, which a tied decoder shares."""
        return self.encoder.embeddings.tokens

    def set_input_embeddings(self, value: Any) -> None:
        """Replace the token embeddings; those of an untied decoder are resized."""
        self.encoder.embeddings.tokens = value
        if self.config.tie_word_embeddings:
            self.decoder.tokens = value
        elif self.decoder.tokens.num_embeddings != value.num_embeddings:
            resized: Any = self._get_resized_embeddings(self.decoder.tokens, value.num_embeddings)
            self.decoder.tokens = resized

    @takes(Seq2SeqInputs)
    def forward(self, inputs: Seq2SeqInputs) -> LongbirdSeq2SeqModelOutput:
        """Encode the input [b, n], unless it has been encoded, and decode the output [b, s].

        Without an output, the input serves as the output, as in BART.
        """
        return self.run(inputs)

    def run(
        self,
        inputs: Seq2SeqInputs,
        decoder_input_ids: Tensor | None = None,
        use_cache: bool | None = None,
    ) -> LongbirdSeq2SeqModelOutput:
        """Run the forward pass for a head, which may give other decoder inputs."""
        if decoder_input_ids is None:
            decoder_input_ids = inputs.decoder_input_ids
        embedded = inputs.decoder_inputs_embeds
        if decoder_input_ids is None and embedded is None and inputs.input_ids is not None:
            check_tensor("input_ids", inputs.input_ids)
            decoder_input_ids = after_start(inputs.input_ids, self.config)
        options = {
            "output_hidden_states": inputs.output_hidden_states,
            "output_attentions": inputs.output_attentions,
            "return_dict": True,
        }
        if inputs.encoder_outputs is None:
            read = self.encoder(
                inputs.input_ids,
                attention_mask=inputs.attention_mask,
                inputs_embeds=inputs.inputs_embeds,
                global_attention_mask=inputs.global_attention_mask,
                edges=inputs.edges,
                **options,
            )
        else:
            read = as_encoder_outputs(inputs.encoder_outputs)
        check_rows(
            read.last_hidden_state, embedded if decoder_input_ids is None else decoder_input_ids
        )
        decoded = self.decoder(
            decoder_input_ids,
            inputs.decoder_attention_mask,
            read.last_hidden_state,
            inputs.attention_mask,
            inputs.past_key_values,
            embedded,
            inputs.use_cache if use_cache is None else use_cache,
            **options,
        )
        return LongbirdSeq2SeqModelOutput(
            last_hidden_state=decoded.last_hidden_state,
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.hidden_states,
            decoder_attentions=decoded.attentions,
            cross_attentions=decoded.cross_attentions,
            encoder_last_hidden_state=read.last_hidden_state,
            **{f"encoder_{name}": getattr(read, name, None) for name in ENCODER_OUTPUTS},
        )


def as_encoder_outputs(given: Any) -> Any:
    """Give the outputs of an encoder names; a tuple has them in the order of LED's encoder."""
    outputs = given
    if isinstance(given, (tuple, list)):
        values: dict[str, Any] = dict(
            zip(("last_hidden_state", *ENCODER_OUTPUTS), given, strict=False)
        )
        outputs = LongbirdModelOutput(**values)
    if not isinstance(getattr(outputs, "last_hidden_state", None), Tensor):
        raise InvalidTypeError(
            "encoder_outputs must be the output of the encoder, or a tuple that starts with its "
            f"last_hidden_state [batch, n, width], received {type(given).__name__} without it"
        )
    return outputs


def check_rows(states: Tensor, output: Any) -> None:
    """Raise unless the input and the output, if it is a tensor, have the same number of rows."""
    shaped = isinstance(output, Tensor) and output.ndim > 1 and states.ndim == 3
    if shaped and len(output) != len(states):
        raise InvalidValueError(
            "labels, decoder_input_ids and decoder_inputs_embeds must have as many rows as the "
            f"input, {len(states)}, received {len(output)}"
        )


def after_start(ids: Tensor, config: LongbirdSeq2SeqConfig) -> Tensor:
    """Shift ids [b, s] to the right, behind the start token."""
    start, pad = cast("tuple[int, int]", (config.decoder_start_token_id, config.pad_token_id))
    shifted = ids.roll(1, -1)
    shifted[..., :1] = start
    return shifted.masked_fill(shifted == -100, pad)


def check_right_padding(mask: Tensor) -> None:
    """Raise unless padding is at the end of each row: the decoder takes columns for positions."""
    if bool((mask[:, 1:] > mask[:, :-1]).any()):
        raise InvalidValueError("attention_mask must have its padding at the end of every row")


class Seq2SeqHead(LongbirdPreTrainedModel):
    """A model with an encoder-decoder named `model`."""

    config_class = LongbirdSeq2SeqConfig
    base_model_prefix = "model"
    _tied_weights_keys = {  # noqa: RUF012
        "model.decoder.tokens.weight": "model.encoder.embeddings.tokens.weight"
    }
    if TYPE_CHECKING:
        config: LongbirdSeq2SeqConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        self.model = LongbirdSeq2SeqModel(config)


def recorded(decoded: LongbirdSeq2SeqModelOutput) -> dict[str, Any]:
    """The fields of an encoder-decoder's output that its heads return as they are."""
    return {name: x for name, x in decoded.items() if name != "last_hidden_state"}


class LongbirdForConditionalGeneration(Seq2SeqHead, GenerationMixin):
    """Summarisation, and other tasks that read a long text and write a short one.

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
        **Seq2SeqHead._tied_weights_keys,
        "lm_head.weight": "model.encoder.embeddings.tokens.weight",
    }
    _keys_to_ignore_on_load_missing = ["final_logits_bias"]  # noqa: RUF012
    accepts_loss_kwargs = True  # num_items_in_batch

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.final_logits_bias: Tensor
        self.register_buffer("final_logits_bias", torch.zeros(1, config.vocab_size))
        self.post_init()

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> Any:
        """Resize the vocabulary, including the bias of the logits."""
        embeddings = super().resize_token_embeddings(*args, **kwargs)
        bias = self.final_logits_bias
        self.final_logits_bias = F.pad(bias, (0, embeddings.num_embeddings - bias.shape[1]))
        return embeddings

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if module is self:
            initialization.zeros_(self.final_logits_bias)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Shift labels to the right, behind the start token."""
        return after_start(labels, self.config)

    @takes(Seq2SeqInputs)
    def forward(
        self,
        inputs: Seq2SeqInputs,
        *,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        num_items_in_batch: Tensor | int | None = None,
    ) -> LongbirdSeq2SeqLMOutput:
        """Predict the tokens of the output.

        Args:
            inputs: The inputs of the encoder and the decoder.
            labels: [b, s], the tokens of the output, -100 for padding. The decoder inputs are made
                of them unless they are given.
            logits_to_keep: Number of last columns that get logits; 0 for all columns.
            num_items_in_batch: Divisor of the sum of the losses, which the `Trainer` gives.
        """
        written = None
        given = (inputs.decoder_input_ids, inputs.decoder_inputs_embeds)
        if labels is not None and given == (None, None):
            check_labels("labels", labels, self.config.vocab_size, "the vocabulary")
            if labels.ndim != 2:
                raise InvalidValueError(
                    f"labels must be [batch, s], received {list(labels.shape)}"
                )
            written = self.prepare_decoder_input_ids_from_labels(labels)
        decoded = self.model.run(inputs, written, use_cache=None if labels is None else False)
        states = decoded.last_hidden_state
        assert states is not None
        x = states[:, last_columns(logits_to_keep)]  # [b, s, w]
        if labels is not None and self.config.sparse_prediction:
            x, labels = x[labels != -100], labels[labels != -100]
        logits = self.lm_head(x) + self.final_logits_bias.flatten()
        return LongbirdSeq2SeqLMOutput(
            loss=None if labels is None else prediction_loss(logits, labels, num_items_in_batch),
            logits=logits,
            **recorded(decoded),
        )


class LongbirdSeq2SeqForSequenceClassification(Seq2SeqHead):
    """Classification of documents by the output of the decoder at their last end token (BART)."""

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        dropout, act = nn.Dropout(config.head_dropout), config.classifier_activation
        self.classifier = ClassificationHead(config, label_count(config), dropout, act)
        self.post_init()

    @takes(Seq2SeqInputs)
    def forward(
        self, inputs: Seq2SeqInputs, *, labels: Tensor | None = None
    ) -> LongbirdSeq2SeqSequenceClassifierOutput:
        """Classify documents.

        Args:
            inputs: The inputs of the encoder and the decoder.
            labels: As for `LongbirdForSequenceClassification`.
        """
        if inputs.input_ids is None:
            raise InvalidValueError(
                "input_ids must be given: the end of a document is found in them"
            )
        decoded = self.model.run(inputs)
        x = decoded.last_hidden_state  # [b, s, w]
        assert x is not None
        last = self._last_ends(inputs.input_ids, inputs.attention_mask)
        logits = self.classifier(x[torch.arange(len(x), device=x.device), last])
        return LongbirdSeq2SeqSequenceClassifierOutput(
            loss=None if labels is None else document_loss(logits, labels, self.config),
            logits=logits,
            **recorded(decoded),
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


class LongbirdSeq2SeqForQuestionAnswering(Seq2SeqHead):
    """Where the answer is, by the output of the decoder at every token of the input (BART)."""

    _loss_function = staticmethod(answer_loss)  # unless `model.loss_function` is set to another

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        self.span = nn.Linear(config.hidden_size, 2)
        self.post_init()

    @takes(Seq2SeqInputs)
    def forward(
        self,
        inputs: Seq2SeqInputs,
        *,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
    ) -> LongbirdSeq2SeqQuestionAnsweringOutput:
        """Find answers.

        Args:
            inputs: The inputs of the encoder and the decoder.
            start_positions: [b], the columns where answers start.
            end_positions: [b], the columns of the last tokens of answers.
        """
        decoded = self.model.run(inputs)
        span, mask = self.span(decoded.last_hidden_state), inputs.attention_mask  # [b, s, 2]
        if mask is not None and mask.shape == span.shape[:2]:
            check_right_padding(mask)
            span = span.masked_fill(mask[..., None] == 0, IMPOSSIBLE)
        start, end = span.unbind(-1)
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = self.loss_function(start, end, start_positions, end_positions)
        return LongbirdSeq2SeqQuestionAnsweringOutput(
            loss=loss, start_logits=start, end_logits=end, **recorded(decoded)
        )
