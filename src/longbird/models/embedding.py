"""One vector for each document."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from longbird.errors import InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.encoder import Encoded
from longbird.models.heads import Head
from longbird.models.inputs import Inputs, takes
from longbird.models.outputs import LongbirdForEmbeddingOutput


class LongbirdForEmbedding(Head):
    """One vector of length 1 for each document: by default the mean of its tokens.

    Examples:
        >>> import longbird as lb, torch
        >>> config = lb.LongbirdConfig(hidden_size=32, num_attention_heads=2, num_hidden_layers=1)
        >>> lb.LongbirdForEmbedding(config)(torch.randint(100, (2, 50))).embeddings.shape
        torch.Size([2, 32])
    """

    def __init__(self, config: LongbirdConfig) -> None:
        super().__init__(config)
        self.post_init()

    @takes(Inputs)
    def forward(
        self, inputs: Inputs, *, tokens_at_once: int | None = None
    ) -> LongbirdForEmbeddingOutput:
        """Embed documents.

        Args:
            inputs: The inputs of the encoder.
            tokens_at_once: Number of tokens that are encoded at once. Only the embeddings are
                kept, and the backward pass computes everything else again, part by part and with
                the same dropout. A loss over the embeddings of a large batch then has its exact
                gradients in the memory of a small one (the gradient cache of Gao et al. 2021).
        """
        if tokens_at_once is not None:
            if inputs.output_hidden_states or inputs.output_attentions:
                raise InvalidValueError(
                    "tokens_at_once keeps embeddings only: leave output_hidden_states and "
                    "output_attentions out"
                )
            return LongbirdForEmbeddingOutput(embeddings=self._in_parts(inputs, tokens_at_once))
        encoded = self.longbird.encode(inputs)
        return LongbirdForEmbeddingOutput(
            embeddings=F.normalize(self._pooled(encoded), dim=-1), **encoded.recorded
        )

    def _in_parts(self, inputs: Inputs, tokens: int) -> Tensor:
        """[rows, w]; only the last part keeps what its backward pass needs."""

        def embedded(part: Inputs, _: Tensor) -> Tensor:
            return F.normalize(self._pooled(self.longbird.encode(part)), dim=-1)

        *others, last = inputs.parts(tokens)
        # The tensor argument tells `checkpoint` which random state to restore. The backward pass
        # begins with the last part, which can stay in the memory that the others use in turn.
        found = [checkpoint(embedded, part, part.given, use_reentrant=False) for part in others]
        return torch.cat([*found, embedded(last, last.given)])

    def _pooled(self, encoded: Encoded) -> Tensor:
        """[rows, w], by the `pooling` of the configuration."""
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
