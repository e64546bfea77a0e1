"""Vectors of whole documents, and of their parts with the whole document as context."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
from longbird.applications.search.tokens import around, tokenized
from longbird.applications.search.units import (
    CONTEXTS,
    UNITS,
    Range,
    check_one_of,
    check_ranges,
    units_of,
)
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.inputs import Inputs

TOKENS_AT_ONCE = 16384


@dataclass(frozen=True, eq=False)
class Embedded:
    """Vectors, and what each is the vector of.

    Attributes:
        vectors: float32 [n, width].
        documents: int64 [n], the number of the text that each is of.
        starts: int64 [n], its first character there.
        ends: int64 [n], the character behind its last.
        tokens: int64 [texts], how many each text has.
        passages: int64 [texts]. A text that has more tokens than the model reads at once is read
            in this many passages that overlap, and each token counts in the one where it has most
            context.
    """

    vectors: npt.NDArray[np.float32]
    documents: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    passages: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """How many vectors there are."""
        return len(self.vectors)


class Embedder:
    r"""Texts to vectors: texts that say similar things have vectors with a large product.

    Args:
        model: As `load_embedding_model` gives it; `from_pretrained` does both.

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
        self._before, self._behind = around(model.tokenizer)

    @classmethod
    def from_pretrained(
        cls,
        name: str | os.PathLike[str] = "minilm",
        *,
        length: int | None = None,
        graph: Any = None,
    ) -> Embedder:
        """Loads a model for embeddings; nothing is written.

        Args:
            name: minilm or mpnet, which are downloaded once; the folder of a run of `longbird
                finetune embed`, of a model, or of sentence-transformers; or the name of a model on
                the hub.
            length: Tokens that it reads at once: by default what a model of Longbird was trained
                with. A BERT, RoBERTa or MPNet is made longer in memory, for 4,096, as `longbird
                convert` does; up to its own length, its vectors stay as they are.
            graph: Of a model that is made longer; by default full up to its own length, and
                `longbird.bigbird()` in longer documents.

        Raises:
            FileNotFoundError: There is no such folder, or it is a run that is not finished.
            ValueError: The model is for another task.
        """
        return cls(load_embedding_model(name, length=length, graph=graph))

    @property
    def model(self) -> Any:
        """The `LongbirdForEmbedding` that it runs."""
        return self.about.model

    @property
    def length(self) -> int:
        """Tokens that the model reads at once."""
        return self.about.length

    @property
    def width(self) -> int:
        """Numbers of a vector."""
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
        """The vectors of texts, or of their parts.

        Args:
            texts: Of any lengths; padding is not computed.
            unit: "document" for one vector per text, even for an empty one; "paragraph" or
                "sentence" for one for each of these that has a token.
            units: Instead, for each text the parts that you want, as pairs (start, end) of
                characters.
            context: "document": a text is read once, as a whole, and the vector of a part is the
                mean over its tokens, which have seen the whole text (late chunking). "alone": each
                part is read by itself, as if there were no other.
            prompt: Text that is read before each; by default what the model has for documents.
            tokens_at_once: Tokens that run through the model together, which changes only
                memory and speed.

        Raises:
            ValueError: The model takes its vectors from one token, which parts of a text do not
                have; use `context="alone"`.
        """
        if isinstance(texts, str):
            raise InvalidTypeError(
                "texts must be a list of texts, received one text: put it into a list"
            )
        check_one_of("unit", unit, UNITS)
        if units is not None and len(units) != len(texts):
            raise InvalidValueError(
                f"units must have one list of pairs for each of the {len(texts)} texts, received "
                f"{len(units)}"
            )
        pairs = (
            (
                text,
                units_of(text, unit)
                if units is None
                else check_ranges(text, units[number], number),
            )
            for number, text in enumerate(map(_checked, texts))
        )
        whole = unit == "document" and units is None
        found = [*self.stream(pairs, whole, context, prompt, tokens_at_once)]
        if not found:
            nothing = np.zeros(0, np.int64)
            return Embedded(np.zeros((0, self.width), np.float32), *[nothing] * 5)
        return Embedded(
            *(
                np.concatenate([getattr(each, name) for each in found])
                for name in ("vectors", "documents", "starts", "ends", "tokens", "passages")
            )
        )

    def embed_queries(self, queries: Sequence[str]) -> npt.NDArray[np.float32]:
        """The vectors of queries, [queries, width], with the model's prompt for queries."""
        return self.embed(queries, prompt=self.about.prompt_for(QUERY)).vectors

    def stream(
        self,
        texts: Iterable[tuple[str, Sequence[Range]]],
        whole: bool,
        context: str = "document",
        prompt: str | None = None,
        tokens_at_once: int = TOKENS_AT_ONCE,
    ) -> Iterator[Embedded]:
        """The vectors of one text after the other, in order, while the next are read.

        Args:
            texts: Each with the parts that are wanted.
            whole: Is the part always the whole text? It then gets a vector even without a token.
            context: As for `embed`.
            prompt: Likewise.
            tokens_at_once: Likewise.
        """
        check_one_of("context", context, CONTEXTS)
        if tokens_at_once < 1:
            raise InvalidValueError(
                f"tokens_at_once must be at least 1, received {tokens_at_once}"
            )
        if not whole and context == "document" and self.about.pooling != "mean":
            raise InvalidValueError(
                f"{self.about.name} takes its vectors from one token of a document "
                f"(pooling={self.about.pooling}), and its parts have no such token: "
                'read them one by one, with context="alone" (--context alone), or choose a model '
                "that takes the mean, such as minilm"
            )
        prompt = self.about.prompt_for(DOCUMENT) if prompt is None else prompt
        readings = (
            _Reading(self, number, text, units, whole, context, prompt)
            for number, (text, units) in enumerate(texts)
        )
        yield from self._run(readings, tokens_at_once)

    def _run(self, readings: Iterable[_Reading], most: int) -> Iterator[Embedded]:
        """Reads passages of several texts at once, and gives texts back as they are done."""
        waiting: list[_Reading] = []
        batch: list[_Passage] = []
        tokens = 0
        for reading in readings:
            waiting.append(reading)
            for passage in reading.passages():
                if batch and tokens + len(passage.ids) > most:
                    self._encode(batch)
                    batch, tokens = [], 0
                batch.append(passage)
                tokens += len(passage.ids)
            while waiting and waiting[0].done:
                yield waiting.pop(0).result()
        if batch:
            self._encode(batch)
        for reading in waiting:
            yield reading.result()

    @torch.inference_mode()
    def _encode(self, batch: Sequence[_Passage]) -> None:
        """Runs the model over passages, and adds up the vectors of the tokens of each part."""
        longest, model = max(len(passage.ids) for passage in batch), self.model
        ids = np.zeros((len(batch), longest), np.int64)
        kept = np.zeros((len(batch), longest), np.int64)
        for row, passage in enumerate(batch):
            ids[row, : len(passage.ids)] = passage.ids
            kept[row, : len(passage.ids)] = 1
        encoded = model.longbird.encode(
            Inputs(
                input_ids=torch.from_numpy(ids).to(model.device),
                attention_mask=torch.from_numpy(kept).to(model.device),
            )
        )
        if self.about.pooling != "mean":
            pooled = model._pooled(encoded).double().cpu().numpy()
            for row, passage in enumerate(batch):
                passage.add(pooled[row : row + 1], np.ones(1, np.int64))
            return
        # Sums over any range of tokens are differences of the sums up to each.
        sums = torch.nn.functional.pad(encoded.x.double().cumsum(0), (0, 0, 1, 0)).cpu().numpy()
        first = 0
        for passage in batch:
            low, high = passage.low + first, passage.high + first
            passage.add(sums[high] - sums[low], high - low)
            first += len(passage.ids)


@dataclass(eq=False)
class _Passage:
    """As many tokens as a model reads at once, and the parts of a text that have some of them."""

    reading: _Reading
    ids: npt.NDArray[Any]
    parts: npt.NDArray[Any]
    """Their numbers."""
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]

    def add(self, sums: npt.NDArray[Any], counts: npt.NDArray[Any]) -> None:
        """Adds what the model says of its tokens to what it said in other passages."""
        self.reading.sums[self.parts] += sums
        self.reading.counts[self.parts] += counts
        self.reading.left -= 1


@dataclass(eq=False)
class _Reading:
    """One text on its way through the model."""

    embedder: Embedder
    number: int
    text: str
    units: Sequence[Range]
    whole: bool
    context: str
    prompt: str
    sums: npt.NDArray[Any] = field(init=False)
    counts: npt.NDArray[Any] = field(init=False)
    left: int = 0
    """Passages that were given out and not yet read."""
    read: int = 0
    """Passages of it, or of the part of it that has most."""
    tokens: int = 0
    all_given: bool = False

    def __post_init__(self) -> None:
        """Make room for its vectors."""
        self.sums = np.zeros((len(self.units), self.embedder.width))
        self.counts = np.zeros(len(self.units), np.int64)

    @property
    def done(self) -> bool:
        """Was all of it read?"""
        return self.all_given and self.left == 0

    def passages(self) -> Iterator[_Passage]:
        """All that the model has to read of it."""
        alone = self.context == "alone" and not self.whole
        if not alone:
            yield from self._passages(self.text, 0, self.units, self.whole)
        else:
            for number, (start, end) in enumerate(self.units):
                yield from self._passages(self.text[start:end], number, None, True)
        self.all_given = True

    def _passages(
        self, text: str, first: int, units: Sequence[Range] | None, whole: bool
    ) -> Iterator[_Passage]:
        """Those of a text; where it is `whole`, what stands around it counts, too."""
        about = self.embedder.about
        before, behind = self.embedder._before, self.embedder._behind
        found = tokenized(self.prompt + text, about.tokenizer)
        prompt, found = found.behind(len(self.prompt))
        self.tokens += len(found)
        if len(found) == 0 and (not whole or units is None):
            return  # nothing but space: such a part has no vector
        before = np.array([*before, *prompt], np.int32)
        room = about.length - len(before) - len(behind)
        if room < about.length // 2:
            raise InvalidValueError(
                f"the prompt has {len(prompt):,} tokens, more than half of the {about.length:,} "
                "that the model reads at once; make it shorter"
            )
        places = windows(0, len(found), room)
        own = owned(places)
        self.read = max(self.read, len(places))
        counted = about.counts_prompt or len(prompt) == 0
        if whole:
            low, high = np.zeros(1, np.int64), np.array([len(found)])
        else:
            low, high = found.ranges(units or [])
        for number, ((begin, end), (mine, others)) in enumerate(zip(places, own, strict=True)):
            ids = np.concatenate([before, found.ids[begin:end], np.array(behind, np.int32)])
            if len(ids) == 0:
                continue  # an empty text, and a model that wants nothing around it
            here = np.flatnonzero(whole | ((low < others) & (high > mine) & (low < high)))
            shift = len(before) - begin
            a, b = (np.clip(x[here], mine, others) + shift for x in (low, high))
            if whole and number == 0 and counted:
                a = np.zeros(1, np.int64)
            if whole and number == len(places) - 1:
                b = np.array([len(ids)])
            self.left += 1
            yield _Passage(self, ids, first + here, a, b)

    def result(self) -> Embedded:
        """The vectors of the parts that have tokens, or of the whole text."""
        there = np.ones(len(self.units), bool) if self.whole else self.counts > 0
        vectors = self.sums[there] / np.maximum(self.counts[there], 1)[:, None]
        if self.embedder.about.normalized:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.maximum(lengths, 1e-12)
        places = np.array(self.units, np.int64).reshape(-1, 2)[there]
        return Embedded(
            vectors.astype(np.float32),
            np.full(len(vectors), self.number, np.int64),
            places[:, 0],
            places[:, 1],
            np.array([self.tokens], np.int64),
            np.array([self.read], np.int64),
        )


def _checked(text: Any) -> str:
    if not isinstance(text, str):
        raise InvalidTypeError(f"texts must be text, received {text!r:.80}")
    return text
