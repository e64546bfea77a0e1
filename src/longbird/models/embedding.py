"""One vector for each document."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.utils.generic import can_return_tuple

from longbird.errors import InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.encoder import Encoded
from longbird.models.heads import Head
from longbird.models.inputs import Inputs
from longbird.models.outputs import LongbirdForEmbeddingOutput


class LongbirdForEmbedding(Head):
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
        tokens_at_once: int | None = None,
    ) -> LongbirdForEmbeddingOutput:
        """Takes what `LongbirdModel` takes, and `tokens_at_once`.

        With it, as many rows run at once as have that many tokens, and their embeddings alone are
        kept: backward computes the rest again, a part at a time, with the same dropout. A loss
        over the embeddings of a large batch then has its exact gradients in the memory of a small
        one (the gradient cache of Gao et al. 2021).
        """
        inputs = Inputs(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
            position_ids=position_ids, inputs_embeds=inputs_embeds,
            global_attention_mask=global_attention_mask, segment_ids=segment_ids,
            past_key_values=past_key_values, use_cache=use_cache,
            output_hidden_states=output_hidden_states, output_attentions=output_attentions,
            edges=edges,
        )  # fmt: skip
        if tokens_at_once is not None:
            if output_hidden_states or output_attentions:
                raise InvalidValueError(
                    "tokens_at_once keeps embeddings alone: leave output_hidden_states and "
                    "output_attentions out"
                )
            return LongbirdForEmbeddingOutput(embeddings=self._in_parts(inputs, tokens_at_once))
        encoded = self.longbird.encode(inputs)
        return LongbirdForEmbeddingOutput(
            embeddings=F.normalize(self._pooled(encoded), dim=-1),
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
            global_attentions=encoded.global_attentions,
        )

    def _in_parts(self, inputs: Inputs, tokens: int) -> Tensor:
        """[rows, w]; what is needed for backward is kept of the last part alone."""

        def embedded(part: Inputs, _: Tensor) -> Tensor:
            return F.normalize(self._pooled(self.longbird.encode(part)), dim=-1)

        *others, last = inputs.parts(tokens)
        # The tensor says whose random numbers are to be the same again. Backward begins with the
        # last part, so that it can be kept in the room that the others take one after another.
        found = [checkpoint(embedded, part, part.given, use_reentrant=False) for part in others]
        return torch.cat([*found, embedded(last, last.given)])

    def _pooled(self, encoded: Encoded) -> Tensor:
        """[rows, w], as `pooling` says."""
        match self.config.pooling:
            case "first":
                return encoded.first_of_each()
            case "globals":
                added = encoded.context.added
                if added is None:
                    raise InvalidValueError('pooling="globals" needs num_global_tokens above 0')
                return added.mean(encoded.added, encoded.documents.rows)
            case _:
                encoded.documents.check_tokens()
                return encoded.documents.mean(encoded.x)
