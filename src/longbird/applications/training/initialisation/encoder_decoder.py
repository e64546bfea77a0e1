"""The encoder-decoder that a run starts from: one of its kind, made of an encoder, or new."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from transformers import AutoConfig

from longbird import models
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.initialisation.lengthening import long_enough
from longbird.applications.training.initialisation.new_model import end_of, new_config, start_of
from longbird.applications.training.settings.tasks import SummarizeSettings
from longbird.core.graph import Graph
from longbird.errors import InvalidValueError
from longbird.models.warm_start import seq2seq_config, warm_started

POSITIONS = 512
"""Of a new decoder, at least."""


def starting_encoder_decoder(
    source: str,
    size: str | None,
    graph: Graph | None,
    head_settings: Mapping[str, Any],
    settings: SummarizeSettings,
    folder: RunFolder,
    tokenizer: Any,
    say: Callable[[str], None],
) -> Any:
    """An encoder-decoder with positions for `settings.length` tokens, that knows how to write.

    Args:
        source: A folder or a name.
        size: Instead, the size of a new model.
        graph: Of the encoder.
        head_settings: Fields of its configuration.
        settings: Of the run.
        folder: Of the run, for an encoder that is made longer.
        tokenizer: Of the run.
        say: Function that is called with each line of progress.

    Raises:
        ValueError: It cannot be loaded, made that long, or write that much.
    """
    fields = {
        "decoder_start_token_id": start_of(tokenizer),
        "eos_token_id": end_of(tokenizer),
        "max_decoder_positions": max(POSITIONS, settings.summary_tokens),
        **head_settings,
    }
    if size is not None:
        config = new_config(size, tokenizer, settings.length, graph, {})
        model = models.LongbirdForConditionalGeneration(seq2seq_config(config, **fields))
    elif not folder.start.exists() and _reads_and_writes(source):
        model = _as_it_is(source, graph, head_settings, settings)
    else:
        encoder = _encoder(source, graph, settings, folder, say)
        model, new = warm_started(encoder, seq2seq_config(encoder.config, **fields))
        say(
            f"{settings.model} is an encoder: the decoder starts with its weights, too, and looks "
            "at the document with a copy of its attention"
            + (f"; new, with random weights: {', '.join(new)}" if new else "")
            + ("; it has no bias by distance" if encoder.config.relative_buckets else "")
        )
    most = model.config.max_decoder_positions
    if settings.summary_tokens > most:
        raise InvalidValueError(
            f"`summary_tokens={settings.summary_tokens}` is more than the {most:,} positions "
            f"that the decoder of {settings.model} has"
        )
    set_writing(model, settings, tokenizer)
    return model


def set_writing(model: Any, settings: SummarizeSettings, tokenizer: Any) -> None:
    """Puts into the model how it writes, so that `generate` does the same everywhere."""
    end = end_of(tokenizer)
    empty = tokenizer(text_target="")["input_ids"]
    how = model.generation_config
    how.update(
        num_beams=settings.beams,
        early_stopping=settings.beams > 1,
        length_penalty=(how.length_penalty if settings.beams > 1 else None) or 1.0,
        no_repeat_ngram_size=3,
        min_length=0,
        max_length=settings.summary_tokens + 1,  # with the token that it starts after
        max_new_tokens=None,
        forced_bos_token_id=empty[0] if empty and empty[0] != end else None,
        eos_token_id=end,
        decoder_start_token_id=model.config.decoder_start_token_id,
        pad_token_id=model.config.pad_token_id,
    )


def _reads_and_writes(source: str) -> bool:
    """Is this an encoder-decoder?"""
    config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    return bool(config.is_encoder_decoder)


def _as_it_is(
    source: str, graph: Graph | None, head_settings: Mapping[str, Any], settings: SummarizeSettings
) -> Any:
    options = {} if graph is None else {"graph": graph}
    model = models.LongbirdForConditionalGeneration.from_pretrained(
        source, **options, **head_settings
    )
    most = model.config.longest_document
    if settings.length > most:
        raise InvalidValueError(
            f"`length={settings.length}` is more than the {most:,} tokens that {settings.model} "
            "has positions for, and an encoder-decoder is not made longer: choose a smaller "
            "`length`, or start from an encoder"
        )
    return model


def _encoder(
    source: str,
    graph: Graph | None,
    settings: SummarizeSettings,
    folder: RunFolder,
    say: Callable[[str], None],
) -> Any:
    """An encoder, made longer where that is needed."""
    options = {} if graph is None else {"graph": graph}
    return models.LongbirdModel.from_pretrained(
        long_enough(source, settings.length, graph, folder, say), **options
    )
