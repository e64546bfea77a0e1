"""Embeddings of tokens, their positions and their types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from longbird.errors import InvalidValueError
from longbird.models.layers.checks import as_floats, check_numbers
from longbird.models.layers.configuration import LayerConfig
from longbird.models.layers.packing import Documents

if TYPE_CHECKING:
    from longbird.models.rolling_cache import RollingCache


class TokenEmbedding(nn.Embedding):
    """Token embeddings; those of Pegasus are multiplied by sqrt(width)."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__(config.vocab_size, config.hidden_size, config.pad_token_id)
        scaled = config.rescale_embeddings and config.is_encoder_decoder
        self.scale = math.sqrt(config.hidden_size) if scaled else 1.0

    def forward(self, input: Tensor) -> Tensor:
        """[...] to [..., w]."""
        x = super().forward(input)
        return x * self.scale if self.scale != 1.0 else x


class Embeddings(nn.Module):
    """Token, position and type embeddings, and for BigBird-ETC those of the global tokens."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.tokens = TokenEmbedding(config)
        if config.positions != "none":
            self.positions = nn.Embedding(config.max_position_embeddings, width)
        if config.type_vocab_size:
            self.types = nn.Embedding(config.type_vocab_size, width)
        if config.embedding_norm != "none":
            self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        # BigBird also scales `inputs_embeds`.
        scaled = config.rescale_embeddings and not config.is_encoder_decoder
        self.scale = math.sqrt(width) if scaled else 1.0

    def forward(
        self,
        documents: Documents,
        cache: RollingCache | None,
        input_ids: Tensor | None,
        inputs_embeds: Tensor | None,
        token_type_ids: Tensor | None,
        position_ids: Tensor | None,
    ) -> Tensor:
        """Embed inputs [rows, n, ...] as packed tokens [t, w]; a cache counts their positions."""
        ids = None if input_ids is None else documents.pack(input_ids, "input_ids")
        if inputs_embeds is not None:
            x = as_floats("inputs_embeds", inputs_embeds, self.tokens.weight.dtype)
            x = documents.pack(x, "inputs_embeds")
        else:
            assert ids is not None
            check_numbers("input_ids", ids, self.tokens.num_embeddings, "the vocabulary")
            x = self.tokens(ids)
        x = x * self.scale if self.scale != 1.0 else x
        if self.config.type_vocab_size:
            x = x + self.types_of(documents, token_type_ids)
        elif token_type_ids is not None and bool(token_type_ids.any()):
            raise InvalidValueError(
                "the model has no token types (type_vocab_size=0), received token_type_ids"
            )
        if self.config.positions != "none":
            if position_ids is None:
                places = self.places(documents, cache, x, ids)
            else:
                places = self.given_places(documents, position_ids)
            x = x + self.positions(places)
        elif position_ids is not None:
            raise InvalidValueError(
                'the model has no positions (positions="none"), received position_ids'
            )
        return self.finish(x)

    def types_of(self, documents: Documents, token_type_ids: Tensor | None) -> Tensor:
        """Embed the type of every token, [t, w]; [w] if all are of the first type."""
        if token_type_ids is None:
            return self.types.weight[0]
        types = documents.pack(token_type_ids, "token_type_ids")
        check_numbers("token_type_ids", types, self.types.num_embeddings, "type_vocab_size")
        return self.types(types)

    def given_places(self, documents: Documents, position_ids: Tensor) -> Tensor:
        """Return the rows of the position table that the caller gave, int64 [t]."""
        if position_ids.ndim != 2 or position_ids.shape[0] not in (1, documents.rows):
            raise InvalidValueError(
                f"position_ids must be of shape [batch, n] = {[documents.rows, documents.n]} or "
                f"[1, n], received {list(position_ids.shape)}"
            )
        places = documents.pack(position_ids.expand(documents.rows, -1), "position_ids")
        rows = self.positions.num_embeddings
        check_numbers("position_ids", places, rows, "max_position_embeddings")
        return places

    def places(
        self, documents: Documents, cache: RollingCache | None, x: Tensor, ids: Tensor | None
    ) -> Tensor:
        """Count the rows of the position table of the tokens of every document, int64 [t]."""
        rows, offset, absent = self.positions.num_embeddings, 0, self.config.absent_id
        if self.config.positions == "padding-aware":  # RoBERTa: padding has a row of its own
            assert absent is not None  # the configuration has checked it
            offset = absent + 1
        past, unplaced = (None, 0) if cache is None else (cache.lengths, cache.absent)
        longest = documents.longest + (int(past.max()) if past is not None and len(past) else 0)
        if longest + offset > rows:
            if past is not None:
                raise InvalidValueError(
                    f"a document has {longest} tokens with those that were generated, and the "
                    f"model has positions for {rows - offset}; choose a smaller max_new_tokens, "
                    "or a shorter prompt"
                )
            raise InvalidValueError(
                f"a document has {longest} tokens, and the model has positions for "
                f"{rows - offset}; cut it (truncation=True, max_length={rows - offset} of the "
                "tokenizer), or let `longbird convert` make a longer model"
            )
        present = torch.ones(x.shape[0], dtype=torch.bool, device=x.device)
        if offset and ids is not None:
            present = ids != absent
        count = documents.counted(present)
        if past is not None:
            count = count + documents.spread(past - unplaced)
        if cache is not None and offset:
            cache.count_absent(documents, ~present)
        return count - 1 if not offset else count * present + offset - 1

    def finish(self, x: Tensor) -> Tensor:
        """Apply norm and dropout, in the order of the model."""
        match self.config.embedding_norm:
            case "before_dropout":
                return self.dropout(self.norm(x))
            case "after_dropout":
                return self.norm(self.dropout(x))
            case _:
                return self.dropout(x)
