"""Embeddings of texts, and of their parts with the whole text as context."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from longbird.applications.documents.windows import owned, windows
from longbird.applications.search.embedding_model import (
    DOCUMENT,
    QUERY,
    EmbeddingModel,
    load_embedding_model,
)
from longbird.applications.search.text_tokens import (
    UNITS,
    Numbers,
    Range,
    special_tokens,
    tokenized,
    units_of,
)
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.inputs import Inputs

CONTEXTS = ("document", "alone")
TOKENS_AT_ONCE = 16384


@dataclass(frozen=True, eq=False)
class Embedded:
    """Vectors of texts or of their parts.

    Attributes:
        vectors: float32 [n, width].
        documents: Index of the text of each vector, int64 [n].
        starts: Index of the first character of each part in its text, int64 [n].
        ends: Index after the last character of each part, int64 [n].
        tokens: Number of tokens of each text, int64 [texts].
        passages: Number of overlapping passages in which each text was read, int64 [texts]. A
            token counts in the passage where it has the most context.
    """

    vectors: npt.NDArray[np.float32]
    documents: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    passages: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self.vectors)


class Embedder:
    r"""Computes vectors of texts; texts with similar meanings have vectors with a large product.

    Args:
        model: A model from `load_embedding_model`; `from_pretrained` loads it as well.

    Examples:
        >>> import longbird as lb
        >>> embedder = lb.Embedder.from_pretrained("minilm")
        >>> text = "The mill was built in 1790. It closed in 1931.\n\nToday it is a museum."
        >>> found = embedder.embed([text, "Another text."], unit="sentence")
        >>> found.vectors.shape
        (4, 384)
        >>> [text[a:b] for a, b in zip(found.starts[:3], found.ends[:3])]
        ['The mill was built in 1790.', 'It closed in 1931.', 'Today it is a museum.']
        >>> question = embedder.embed_queries(["When did it shut down?"])
        >>> int((found.vectors @ question[0]).argmax())
        1
    """

    def __init__(self, model: EmbeddingModel) -> None:
        self.about = model
        self._before, self._after = special_tokens(model.tokenizer)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str] = "minilm",
        *,
        length: int | None = None,
        graph: Any = None,
    ) -> Embedder:
        """Load a model for embeddings; nothing is written.

        Args:
            name: minilm or mpnet, which are downloaded once; the folder of a run of `longbird
                finetune embed`, of a model, or of sentence-transformers; or the name of a model
                on the hub.
            length: Maximum number of tokens read at once: by default the training length of a
                Longbird model. A BERT, RoBERTa or MPNet is extended in memory to 4,096 tokens,
                as `longbird convert` does; up to its own length, its vectors do not change.
            graph: Graph of a model that is extended; by default full attention up to its own
                length, and `longbird.bigbird()` in longer documents.

        Raises:
            FileNotFoundError: The folder does not exist, or is a run that is not finished.
            ValueError: The model was trained for another task.
        """
        return cls(load_embedding_model(name, length=length, graph=graph))

    @property
    def model(self) -> Any:
        """The `LongbirdForEmbedding` model."""
        return self.about.model

    @property
    def length(self) -> int:
        """Maximum number of tokens that the model reads at once."""
        return self.about.length

    @property
    def width(self) -> int:
        """Number of dimensions of a vector."""
        return self.about.width

    def embed(
        self,
        texts: Sequence[str],
        unit: str = "document",
        *,
        units: Sequence[Sequence[Range]] | None = None,
        context: str = "document",
        prompt: str | None = None,
        tokens_at_once: int = TOKENS_AT_ONCE,
    ) -> Embedded:
        """Return the vectors of texts, or of their parts.

        Args:
            texts: Texts of any lengths; padding is not computed.
            unit: "document" for one vector per text, even if it is empty; "paragraph" or
                "sentence" for one vector for each of these that has a token.
            units: Parts of each text instead of `unit`, as pairs (start, end) of characters.
            context: "document" to read each text as a whole, so that the vector of a part is the
                mean over tokens that have seen the whole text (late chunking); "alone" to read
                each part by itself.
            prompt: Text to read before each text; by default the model's prompt for documents.
            tokens_at_once: Maximum number of tokens per batch, which affects only memory and
                speed.

        Raises:
            ValueError: The model uses the vector of one token, which parts of a text do not
                have; use `context="alone"`.
        """
        if isinstance(texts, str):
            raise InvalidTypeError(
                "texts must be a list of texts, received one text: put it into a list"
            )
        check_choice("unit", unit, UNITS)
        if units is not None and len(units) != len(texts):
            raise InvalidValueError(
                f"units must have one list of pairs for each of the {len(texts)} texts, received "
                f"{len(units)}"
            )
        pairs = (
            (text, _checked(text, number, None if units is None else units[number], unit))
            for number, text in enumerate(texts)
        )
        whole = unit == "document" and units is None
        nothing = Embedded(np.zeros((0, self.width), np.float32), *[np.zeros(0, np.int64)] * 5)
        found = [nothing, *self.stream(pairs, whole, context, prompt, tokens_at_once)]
        names = ("vectors", "documents", "starts", "ends", "tokens", "passages")
        return Embedded(
            *(np.concatenate([getattr(each, name) for each in found]) for name in names)
        )

    def embed_queries(self, queries: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of queries, [queries, width], with the model's prompt for queries."""
        return self.embed(queries, prompt=self.about.prompt_for(QUERY)).vectors

    def stream(
        self,
        texts: Iterable[tuple[str, Sequence[Range]]],
        whole: bool,
        context: str = "document",
        prompt: str | None = None,
        tokens_at_once: int = TOKENS_AT_ONCE,
    ) -> Iterator[Embedded]:
        """Yield the vectors of one text after the other, in order, while the next are read.

        Each text is given with the parts that get vectors. If the only part is the `whole` text,
        it gets a vector even without a token. `embed` describes the other parameters.
        """
        check_choice("context", context, CONTEXTS)
        if tokens_at_once < 1:
            raise InvalidValueError(
                f"tokens_at_once must be at least 1, received {tokens_at_once}"
            )
        if not whole and context == "document" and self.about.pooling != "mean":
            raise InvalidValueError(
                f"{self.about.name} uses the vector of one token of a document "
                f"(pooling={self.about.pooling}), which its parts do not have: read them one by "
                "one, with `context=alone`, or choose a model that uses the mean, such as minilm"
            )
        prompt = self.about.prompt_for(DOCUMENT) if prompt is None else prompt
        waiting: list[_Text] = []
        batch: list[_Passage] = []
        tokens = 0
        for number, (text, units) in enumerate(texts):
            waiting.append(_Text(self.about, number, units, whole))
            for passage in self._passages(waiting[-1], text, context == "alone", prompt):
                if batch and tokens + len(passage.ids) > tokens_at_once:
                    self._encode(batch)
                    batch, tokens = [], 0
                batch.append(passage)
                tokens += len(passage.ids)
            while waiting and not waiting[0].unread:
                yield waiting.pop(0).result()
        if batch:
            self._encode(batch)
        for each in waiting:
            yield each.result()

    def _passages(self, text: _Text, source: str, alone: bool, prompt: str) -> Iterator[_Passage]:
        """Yield all passages of a text that the model has to read."""
        if text.whole or not alone:
            yield from self._passages_of(text, source, 0, text.whole, prompt)
            return
        for number, (start, end) in enumerate(text.units):
            yield from self._passages_of(text, source[start:end], number, True, prompt)

    def _passages_of(
        self, text: _Text, source: str, first: int, whole: bool, prompt: str
    ) -> Iterator[_Passage]:
        """Yield the passages of a text or of one of its parts, number `first`.

        The vector of a `whole`, which is not divided further, includes special tokens.
        """
        about = self.about
        read = tokenized(prompt + source, about.tokenizer)
        prompt_ids, found = read.split_prompt(len(prompt))
        text.tokens += len(found)
        if len(found) == 0 and not text.whole:
            return  # only whitespace: such a part has no vector
        before = np.array([*self._before, *prompt_ids], np.int32)
        after = np.array(self._after, np.int32)
        room = about.length - len(before) - len(after)
        if room < about.length // 2:
            raise InvalidValueError(
                f"the prompt has {len(prompt_ids):,} tokens, more than half of the "
                f"{about.length:,} that the model reads at once; make it shorter"
            )
        places = windows(0, len(found), room)
        text.passages = max(text.passages, len(places))
        low, high = np.zeros(1, np.int64), np.array([len(found)])
        if not whole:
            low, high = found.ranges(text.units)
        for (begin, end), (own, others) in zip(places, owned(places), strict=True):
            ids = np.concatenate([before, found.ids[begin:end], after])
            if len(ids) == 0:
                continue  # an empty text, and a model without special tokens
            here = np.flatnonzero(whole | ((low < others) & (high > own) & (low < high)))
            shift = len(before) - begin
            starts, ends = (np.clip(x[here], own, others) + shift for x in (low, high))
            if whole and begin == 0 and (about.counts_prompt or len(prompt_ids) == 0):
                starts = np.zeros(1, np.int64)
            if whole and end == len(found):
                ends = np.array([len(ids)])
            text.unread += 1
            yield _Passage(text, ids, first + here, starts, ends)

    @torch.inference_mode()
    def _encode(self, batch: Sequence[_Passage]) -> None:
        """Run the model over passages, and add the vectors of their tokens to those of parts."""
        longest, model = max(len(passage.ids) for passage in batch), self.model
        ids, mask = np.zeros((2, len(batch), longest), np.int64)
        for row, passage in enumerate(batch):
            ids[row, : len(passage.ids)] = passage.ids
            mask[row, : len(passage.ids)] = 1
        encoded = model.longbird.encode(
            Inputs(
                input_ids=torch.from_numpy(ids).to(model.device),
                attention_mask=torch.from_numpy(mask).to(model.device),
            )
        )
        if self.about.pooling != "mean":
            pooled = model._pooled(encoded).double().cpu().numpy()
            for row, passage in enumerate(batch):
                passage.add(pooled[row : row + 1], np.ones(1, np.int64))
            return
        # The sum over any range of tokens is the difference of two cumulative sums.
        sums = torch.nn.functional.pad(encoded.x.double().cumsum(0), (0, 0, 1, 0)).cpu().numpy()
        first = 0
        for passage in batch:
            low, high = passage.low + first, passage.high + first
            passage.add(sums[high] - sums[low], high - low)
            first += len(passage.ids)


class _Text:
    """The parts of a text that get vectors, with the sums over the tokens read so far."""

    def __init__(
        self, about: EmbeddingModel, number: int, units: Sequence[Range], whole: bool
    ) -> None:
        self.about, self.number, self.units, self.whole = about, number, units, whole
        self.sums = np.zeros((len(units), about.width))
        self.counts = np.zeros(len(units), np.int64)
        self.unread = 0  # passages that wait for the model
        self.passages = 0  # if parts are read alone, of the part that has most
        self.tokens = 0

    def result(self) -> Embedded:
        """Return the vectors of the parts that have tokens, or of the whole text."""
        there = np.ones(len(self.units), bool) if self.whole else self.counts > 0
        vectors = self.sums[there] / np.maximum(self.counts[there], 1)[:, None]
        if self.about.normalized:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.maximum(lengths, 1e-12)
        places = np.array(self.units, np.int64).reshape(-1, 2)[there]
        return Embedded(
            vectors.astype(np.float32),
            np.full(len(vectors), self.number, np.int64),
            places[:, 0],
            places[:, 1],
            np.array([self.tokens], np.int64),
            np.array([self.passages], np.int64),
        )


@dataclass(eq=False)
class _Passage:
    """Tokens that the model reads at once, and the parts of a text that have some of them."""

    text: _Text
    ids: Numbers
    parts: Numbers
    """Indices of the parts."""
    low: Numbers
    """First token of each part, within the passage."""
    high: Numbers
    """Token after the last one of each part."""

    def add(self, sums: Numbers, counts: Numbers) -> None:
        """Add the sums over its tokens to those of other passages."""
        self.text.sums[self.parts] += sums
        self.text.counts[self.parts] += counts
        self.text.unread -= 1


def check_choice(name: str, given: object, known: Sequence[str]) -> None:
    """Raise an error if a value is none of the known ones."""
    if given not in known:
        raise InvalidValueError(
            f"{name} must be one of {', '.join(known)}, received {given!r:.80}"
        )


def _checked(text: Any, number: int, units: Sequence[Range] | None, unit: str) -> list[Range]:
    """Return the parts of a text that the caller chose, after checking both."""
    if not isinstance(text, str):
        raise InvalidTypeError(f"texts must be text, received {text!r:.80}")
    if units is None:
        return units_of(text, unit)
    for start, end in units:
        if not 0 <= start <= end <= len(text):
            raise InvalidValueError(
                f"units of text {number} must be pairs (start, end) of characters with 0 <= start "
                f"<= end <= {len(text):,}, its length; received ({start}, {end})"
            )
    return [(int(start), int(end)) for start, end in units]
