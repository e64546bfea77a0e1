"""A tokenizer learned from the user's files, by the library `tokenizers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from longbird.applications.training.data.columns import as_text, find_column, value_of
from longbird.applications.training.data.files import cut, rows, text_reader
from longbird.errors import ExistingFileError, InvalidValueError

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
KINDS = ("wordpiece", "bpe", "unigram")
MOST = 2**20
"""Characters that are read at once."""


def train_tokenizer(
    files: Iterable[str | Path],
    out: str | Path,
    *,
    vocabulary: int = 30000,
    kind: str = "wordpiece",
    lowercase: bool = False,
    text: str | None = None,
    encoding: str = "utf-8",
    say: Callable[[str], None] = print,
) -> Any:
    """Learns a tokenizer and saves it as a folder that `AutoTokenizer` loads.

    Accents are kept, in whatever case. Special tokens are those of BERT: a text becomes
    `[CLS] text [SEP]`, a pair `[CLS] text [SEP] text [SEP]`.

    Args:
        files: As for `finetune`; of tables, the column of the text.
        out: The folder to write.
        vocabulary: Tokens, with the special ones; fewer if the files have no more.
        kind: "wordpiece" (BERT), "bpe" (of bytes, so that no character is unknown), or "unigram"
            (SentencePiece; for languages that are written without spaces, too).
        lowercase: Is a capital the same as a small letter?
        text: Column of the text.
        encoding: Of the files.
        say: Is told of a column that was guessed, and of the result.

    Raises:
        FileExistsError: There is something in `out`.
        ValueError: There is no text in the files, or an argument is out of range.
    """
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ExistingFileError(f"{out} exists already: name a new folder")
    if kind not in KINDS:
        raise InvalidValueError(f"kind must be one of {', '.join(KINDS)}, received {kind}")
    least = len(SPECIAL) + (256 if kind == "bpe" else 1)  # bytes are there from the beginning
    if not least <= vocabulary <= 2**24:
        raise InvalidValueError(
            f"vocabulary must be between {least} and {2**24:,} for {kind}, received {vocabulary}"
        )
    tokenizer, trainer = _untrained(kind, vocabulary, lowercase)
    seen = 0

    def counted() -> Iterator[str]:
        nonlocal seen
        for part in _texts(files, text, encoding, say):
            seen += bool(part.strip())
            yield part

    tokenizer.train_from_iterator(counted(), trainer)
    if not seen:
        raise InvalidValueError(
            f"{', '.join(map(str, files))} has no text: there is nothing to learn"
        )
    first, last = (tokenizer.token_to_id(SPECIAL[name]) for name in ("cls_token", "sep_token"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", first), ("[SEP]", last)],
    )
    whole = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **SPECIAL,
    )
    whole.save_pretrained(out)
    say(f"a {kind} tokenizer of {len(whole):,} tokens is in {out}")
    return whole


def _untrained(kind: str, vocabulary: int, lowercase: bool) -> tuple[Any, Any]:
    """A tokenizer, and what trains it."""
    options: dict[str, Any] = {
        "vocab_size": vocabulary,
        "special_tokens": list(SPECIAL.values()),
        "show_progress": False,
    }
    unknown = SPECIAL["unk_token"]
    smaller = [normalizers.Lowercase()] if lowercase else []
    if kind == "wordpiece":
        tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token=unknown))
        composed = normalizers.Sequence([normalizers.NFC(), *smaller])
        cleaned = normalizers.BertNormalizer(strip_accents=False, lowercase=False)
        tokenizer.normalizer = normalizers.Sequence([cleaned, composed])
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        return tokenizer, trainers.WordPieceTrainer(**options)
    if kind == "bpe":
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), *smaller])
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        every_byte = pre_tokenizers.ByteLevel.alphabet()
        return tokenizer, trainers.BpeTrainer(initial_alphabet=every_byte, **options)
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *smaller])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer, trainers.UnigramTrainer(unk_token=unknown, **options)


def _texts(
    files: Iterable[str | Path], text: str | None, encoding: str, say: Callable[[str], None]
) -> Iterator[str]:
    """The text of the files, in parts."""
    column, file = "", None
    for row in rows(files, encoding, text_reader("file", MOST)):
        if row.file != file:
            column, file = find_column("text", text, list(row.values), say), row.file
        yield from cut(as_text(value_of(row, column), row, column), MOST)
