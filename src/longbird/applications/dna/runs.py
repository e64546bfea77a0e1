"""Training DNA models on genomes, loading them, and measuring them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longbird import models
from longbird.applications.dna.coding import Coding
from longbird.applications.dna.default import PRETRAINED, PROMOTER, folder_of_dna
from longbird.applications.dna.genome_files import open_genomes_of, paths_of
from longbird.applications.dna.genomic import DESCRIPTION, Genomic
from longbird.applications.dna.pretraining import Pretraining
from longbird.applications.dna.profile import Profile
from longbird.applications.dna.promoters import Promoters
from longbird.applications.dna.settings import (
    DnaLabelSettings,
    DnaPretrainingSettings,
    DnaSettings,
)
from longbird.applications.reading.loading import load_tokenizer, quiet
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
from longbird.files.paths import check_path, folder_of_model
from longbird.models.checkpoints.folders import read_config
from longbird.models.integration.tasks import ENCODER_TASKS

LEARNED: dict[str, type[Genomic]] = {"promoter": Promoters, "profile": Profile, "coding": Coding}
"""Tasks that learn from labels, by their name on the command line."""
FEW = 10
"""Number of windows below which confidence intervals are meaningless."""
SHORT = 512
"""Default number of tokens of a window for genes."""
BY_NAME = {task.name: task for task in (Pretraining, *LEARNED.values())}


def pretrain(
    genomes: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    extend: bool = False,
    say: Callable[[str], None] = print,
    **options: Any,
) -> Run:
    """Train a masked language model on genomes; repeating the call resumes it.

    Args:
        genomes: FASTA (plain, gzip, bgzip) or GenBank files.
        out: Folder of the run.
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
    """Train a model on the labels of a genome; repeating the call resumes it.

    Args:
        task: "promoter", "profile" or "coding".
        genome: FASTA or GenBank file.
        labels: BED, GFF3, GenBank or bigWig files; if there are none, the labels of the genome
            itself (GenBank). Further genomes may follow, each with its labels after it.
        out: Folder of the run.
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
        say("the model starts with random weights; `model=default` starts with pretrained ones")
    settings = make_settings(DnaLabelSettings, ours.name, files, given)
    return _run(ours(), settings, out, say, extend)


def _started(options: dict[str, Any]) -> dict[str, Any]:
    """Return the given options, with the folder of the model in place of "default"."""
    given = {name: value for name, value in options.items() if value is not None}
    if "model" in given and not str(given["model"]).startswith("scratch:"):
        given["model"] = str(folder_of_dna(given["model"], PRETRAINED))
    return given


def _run(
    task: Genomic, settings: Any, out: str | Path, say: Callable[[str], None], extend: bool
) -> Run:
    """Check the files first, so that unreadable files leave no folder behind."""
    if settings.tokens != "base" and not settings.model.startswith("scratch:"):
        raise InvalidValueError(
            f"`tokens={settings.tokens}` is for a new model, and {settings.model} has a "
            "tokenizer: leave `tokens` out, or start with a new model, `model=scratch:SIZE`"
        )
    if not RunFolder(out).result.exists():
        task.look(settings)
    return run(task, settings, out, say, extend=extend)


def _usual_length(task: type[Genomic], given: dict[str, Any]) -> int:
    """Return the default number of tokens: a promoter's window, or what the model reads.

    Genes are learned faster in short windows, since a step has more of them: the experiment
    `coding` compares both.
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
    """A DNA model and its task."""

    model: Any
    tokenizer: Any
    task: Genomic
    settings: DnaSettings
    folder: Path
    """Folder of the model."""
    description: dict[str, Any]


def load(path: str | Path, **options: Any) -> TrainedDna:
    """Load the model of a run, or of a model folder.

    Args:
        path: The folder, or "default" for the promoter model that comes with Longbird.
        **options: Fields of `DnaSettings` that say how to read genomes and labels.

    Raises:
        FileNotFoundError: The folder does not exist, or its run is not finished.
        ValueError: The model was not trained on genomes.
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
    # These options applied to the genome that was learned from, and not to others.
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
    """Measure a model on a genome, with 95% confidence intervals.

    Args:
        path: Folder of a run or of a model, or "default": with labels the promoter model that
            comes with Longbird, without labels the pretrained model.
        genome: FASTA or GenBank file.
        labels: Labels and further genomes, as for `finetune`; for a pretrained model, only
            further genomes.
        on: Regions to measure on, as for `validation_on`; all by default.
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
        raise InvalidValueError("`mask` is for a pretrained model: this one hides nothing")
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
    """Warn if a model is measured on the genome that it was trained on."""
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
            f"warning: the model was trained on {', '.join(same)}, so the metrics do not tell how "
            "good it is on other genomes. Measure with `on` what was held out "
            f"({held or 'nothing was'})"
        )
