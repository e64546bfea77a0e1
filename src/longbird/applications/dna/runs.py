"""Runs on genomes: pretraining, learning from labels, and measuring."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longbird import models
from longbird.applications.dna.default import PRETRAINED, PROMOTER, folder_of_dna
from longbird.applications.dna.genomic import DESCRIPTION, Genomic
from longbird.applications.dna.labelled import paths_of
from longbird.applications.dna.opening import open_genomes_of
from longbird.applications.dna.pretraining import Pretraining
from longbird.applications.dna.promoters import Promoters
from longbird.applications.dna.settings import (
    DnaLabelSettings,
    DnaPretrainingSettings,
    DnaSettings,
)
from longbird.applications.dna.tracks import Coding, Profile
from longbird.applications.reading.loading import folder_of_model, load_tokenizer, quiet
from longbird.applications.training.data.token_store import stored
from longbird.applications.training.engine.evaluation import Evaluation, evaluate_rows
from longbird.applications.training.engine.finetune import Run, run
from longbird.applications.training.engine.run_folder import RunFolder, read_json
from longbird.applications.training.settings.definition import (
    check_names,
    make_settings,
    read_settings,
)
from longbird.errors import InvalidValueError
from longbird.files.digest import sha256_of
from longbird.files.paths import check_path
from longbird.models.checkpoints.folders import read_config
from longbird.models.integration.tasks import ENCODER_TASKS

LEARNED: dict[str, type[Genomic]] = {"promoter": Promoters, "profile": Profile, "coding": Coding}
"""What is learned from labels, by the name that the command has for it."""
FEW = 10
"""Windows with which intervals say nothing."""
SHORT = 512
"""Tokens of a window of genes, if nobody says."""
BY_NAME = {task.name: task for task in (Pretraining, *LEARNED.values())}


def pretrain(
    genomes: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    extend: bool = False,
    say: Callable[[str], None] = print,
    **options: Any,
) -> Run:
    """Trains a masked language model on genomes; the same call again goes on where it stopped.

    Args:
        genomes: FASTA (plain, gzip, bgzip) or GenBank.
        out: The folder of the run.
        extend: Whether to continue a run with more `epochs` or `steps` than it was started with.
        say: Function that is called with each line of progress.
        **options: Options of the task, such as `tokens="bpe"` and `length=4096`.
    """
    files = paths_of(genomes, "a genome")
    settings = make_settings(DnaPretrainingSettings, Pretraining.name, files, _started(options))
    return _run(Pretraining(), settings, out, say, extend)


def finetune(
    task: str,
    genome: str | Path,
    labels: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    extend: bool = False,
    say: Callable[[str], None] = print,
    **options: Any,
) -> Run:
    """Trains a model on the labels of a genome; the same call again goes on where it stopped.

    Args:
        task: "promoter", "profile" or "coding".
        genome: FASTA or GenBank.
        labels: BED, GFF3, GenBank or bigWig; if there are none, the genome's own (GenBank).
            Further genomes may follow, each with its labels after it.
        out: The folder of the run.
        extend: Whether to continue a run with more `epochs` or `steps` than it was started with.
        say: Function that is called with each line of progress.
        **options: Options of the task, such as `model="run"` and `negatives="intergenic"`.
    """
    if task not in LEARNED:
        raise InvalidValueError(f"the task must be one of {', '.join(LEARNED)}, received {task}")
    ours = LEARNED[task]
    check_path(genome, "a genome")
    files = [str(genome), *paths_of(labels, "a file of labels")]
    given = _started(options)
    if "length" not in given and given.get("config") is None:
        given["length"] = _usual_length(ours, given)
    if not given.keys() & {"model", "config", "tokens"}:
        say("the model begins with random weights; `--model default` begins with what it knows")
    settings = make_settings(DnaLabelSettings, ours.name, files, given)
    return _run(ours(), settings, out, say, extend)


def _started(options: dict[str, Any]) -> dict[str, Any]:
    """What was given, with the folder of the model that ships in the place of its name."""
    given = {name: value for name, value in options.items() if value is not None}
    if "model" in given and not str(given["model"]).startswith("scratch:"):
        given["model"] = str(folder_of_dna(given["model"], PRETRAINED))
    return given


def _run(
    task: Genomic, settings: Any, out: str | Path, say: Callable[[str], None], extend: bool
) -> Run:
    """Looks at the files first: what cannot be read leaves no folder behind."""
    if settings.tokens != "base" and not settings.model.startswith("scratch:"):
        raise InvalidValueError(
            f"--tokens {settings.tokens} is for a new model, and {settings.model} has a "
            "tokenizer: leave --tokens out, or start with --model scratch:SIZE"
        )
    if not RunFolder(out).result.exists():
        task.look(settings)
    return run(task, settings, out, say, extend=extend)


def _usual_length(task: type[Genomic], given: dict[str, Any]) -> int:
    """Tokens that are enough: those of a window of a promoter, or what the model reads.

    Genes are learned faster in short windows, of which a step has more: the experiment `coding`
    has both.
    """
    if task is Promoters:
        fields = DnaLabelSettings.__dataclass_fields__
        window = sum(
            int(given.get(each, fields[each].default)) for each in ("upstream", "downstream")
        )
        return max(8, window + 2)  # a run has no fewer
    model = str(given.get("model", "scratch:tiny"))
    longest = 4096
    if not model.startswith("scratch:"):
        longest = read_config(folder_of_model(model)).longest_document
    return min(longest, SHORT) if task is Coding else longest


@dataclass(frozen=True)
class TrainedDna:
    """A model of DNA and what it was trained for."""

    model: Any
    tokenizer: Any
    task: Genomic
    settings: DnaSettings
    folder: Path
    """Of the model."""
    description: dict[str, Any]


def load(path: str | Path, **options: Any) -> TrainedDna:
    """The model of a run, or in a folder of its own.

    Args:
        path: The folder, or "default" for the model for promoters that comes with Longbird.
        **options: Fields of `DnaSettings` that say how to read genomes and labels.

    Raises:
        FileNotFoundError: There is no such folder, or its run is not finished.
        ValueError: It was not trained on genomes.
    """
    path = folder_of_dna(path, PROMOTER)
    folder = folder_of_model(path)
    file = folder / DESCRIPTION
    if not file.is_file():
        raise InvalidValueError(
            f"{path} was not trained by `longbird dna`: its model has no {DESCRIPTION}"
        )
    description = read_json(file)
    kept = RunFolder(path).settings
    pretrained = description["task"] == Pretraining.name
    kind = DnaPretrainingSettings if pretrained else DnaLabelSettings
    values = read_settings(kept, kind) if kept.is_file() else {}
    values |= {"task": description["task"], "length": description["length"], "train": ()}
    # These say how the genome that was learned from was read, and not how another is.
    values = {name: value for name, value in values.items() if name not in ("alias", "circular")}
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("length", "upstream", "downstream", "bin"):
        if given.get(name, description.get(name)) != description.get(name):
            raise InvalidValueError(
                f"{name} is part of a model, and {path} has {description.get(name)}: received "
                f"{given[name]!r:.80}"
            )
    for name in ("upstream", "downstream", "negatives", "per_positive", "bin", "quantile"):
        if name in description and not pretrained:
            values.setdefault(name, description[name])
    check_names(kind, given, description["task"])
    settings = kind(**{**values, **given})
    task = BY_NAME[description["task"]]()
    task.restore(description)
    tokenizer = load_tokenizer(folder)
    task.prepare(settings, tokenizer)
    with quiet():
        model = getattr(models, ENCODER_TASKS[task.head]).from_pretrained(folder).eval()
    return TrainedDna(model, tokenizer, task, settings, folder, description)


def evaluate(
    path: str | Path,
    genome: str | Path,
    labels: str | Path | Sequence[str | Path] = (),
    *,
    on: str | Sequence[str] = (),
    say: Callable[[str], None] = print,
    **options: Any,
) -> Evaluation:
    """How good a model is on a genome, with 95% confidence intervals.

    Args:
        path: The folder of a run, or of a model, or "default": with labels the model for
            promoters that comes with Longbird, without any the pretrained one.
        genome: FASTA or GenBank.
        labels: As for `finetune`, with further genomes; of a pretrained model, these alone.
        on: Stretches to measure on, as `--validation-on` takes them; all by default.
        say: Is told what is going on.
        **options: Fields of `DnaSettings` that say how to read the genome and its labels.
    """
    check_path(genome, "a genome")
    files = (str(genome), *paths_of(labels, "a file of labels"))
    on = [on] if isinstance(on, str) else on
    path = folder_of_dna(path, PROMOTER if labels else PRETRAINED)
    trained = load(path, **options)
    task = trained.task
    if options.get("mask") is not None and not isinstance(task, Pretraining):
        raise InvalidValueError("--mask is for a pretrained model: this one hides nothing")
    given = task.genomes(files)
    if not on:
        _tell_learned(path, [each.genome for each in given], say)
    task.measured_on(open_genomes_of(trained.settings, given), files, on)
    examples = (each for each in task.examples((), trained.settings, say))
    wanted = (each for each in examples if each["part"] == "test")
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch, "rows.arrow")
        rows = stored(task, wanted, trained.tokenizer, trained.settings.length, place)
        if len(rows) == 0:
            raise InvalidValueError(f"{', '.join(files)} has no windows to measure on")
        task.check({"the genome": rows}, trained.settings)
        found = evaluate_rows(
            trained.model, task, rows, trained.tokenizer, trained.settings.tokens_per_batch
        )
    found.metrics["notes"] = task.notes()
    if len(rows) < FEW:
        found.metrics["notes"].append(
            f"Intervals are drawn from windows, and {len(rows)} are too few for them: measure on "
            "more of a genome, or on another."
        )
    return found


def _tell_learned(path: str | Path, genomes: Sequence[str], say: Callable[[str], None]) -> None:
    """Says so if a model is measured on what it was trained on."""
    folder = RunFolder(path)
    if not folder.data.is_file():
        return
    data = json.loads(folder.data.read_text("utf-8"))
    learned = {*data["files"]["train"].values()}
    if same := [each for each in genomes if sha256_of(Path(each)) in learned]:
        held = "; ".join(
            f"{part} was {words}" for part, words in data["parts"].items() if part != "train"
        )
        say(
            f"warning: the model learned from {', '.join(same)}, so that what is measured says "
            "nothing of other genomes. Measure with --on what was held out "
            f"({held or 'nothing was'})"
        )
