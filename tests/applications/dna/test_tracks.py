"""Labels along a genome base by base, and scores of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from planting import other_strand, write_fasta
from sklearn import metrics
from transformers import AutoTokenizer

from longbird.applications.dna.coding import Coding
from longbird.applications.dna.genomes import DnaTokenizer, open_genome, read_features
from longbird.applications.dna.labels import Cover
from longbird.applications.dna.profile import Profile
from longbird.applications.dna.runs import evaluate, finetune, load
from longbird.applications.dna.scanning import scan
from longbird.applications.dna.settings import DnaLabelSettings
from longbird.applications.dna.tracks import UNLABELLED, Tracks

QUIET: dict[str, Any] = {"say": lambda _: None}


def random_bases(length: int, seed: int = 0) -> str:
    return "".join(random.Random(seed).choices("ACGT", k=length))


def task_of(task: Any, folder: Path, *files: Path, tokenizer: Any = None, **options: Any) -> Any:
    (tokenizer or DnaTokenizer.base()).save(folder / "tokenizer")
    made = task()
    values = {"length": 66, "validation_on": ("none",), **options}
    settings = DnaLabelSettings(task.name, tuple(map(str, files)), **values)
    made.prepare(settings, AutoTokenizer.from_pretrained(folder / "tokenizer"))
    return made


def examples(task: Tracks) -> list[dict[str, Any]]:
    return list(task.examples((), task.settings, lambda _: None))


GFF = """##gff-version 3
c\tx\tCDS\t11\t40\t.\t+\t0\tID=one
c\tx\tCDS\t61\t90\t.\t+\t0\tID=one
c\tx\tCDS\t81\t100\t.\t-\t0\tID=two
c\tx\tgene\t1\t200\t.\t+\t.\tID=g
"""


@pytest.mark.parametrize("kind", ["base", "kmer", "bpe"])
def test_every_base_has_its_strands(tmp_path: Path, kind: str) -> None:
    bases = random_bases(400)
    bases = bases[:30] + "NNNN" + bases[34:]
    genome = write_fasta(tmp_path / "g.fa", c=bases)
    labels = tmp_path / "g.gff3"
    labels.write_text(GFF)
    tokenizer = {
        "base": DnaTokenizer.base,
        "kmer": lambda: DnaTokenizer.kmer(3),
        "bpe": lambda: DnaTokenizer.train([random_bases(5000, 1)], 60),
    }[kind]()
    expected = np.zeros((400, 2), int)
    expected[10:40, 0] = expected[60:90, 0] = expected[80:100, 1] = 1  # introns are not coding
    expected[30:34] = UNLABELLED
    found = np.full((400, 2), -1)
    read = examples(task_of(Coding, tmp_path, genome, labels, tokenizer=tokenizer))
    for each in read:
        start, end = map(int, each["place"].removeprefix("c:").removesuffix("(+)").split("-"))
        assert (found[start - 1 : end] == -1).all()
        found[start - 1 : end] = np.array(each["truth"]).reshape(-1, 2)
        assert each["bases"] == bases[start - 1 : end]
    np.testing.assert_array_equal(found, expected)


def test_coding_sequence_goes_over_the_origin(tmp_path: Path) -> None:
    bases = random_bases(100)
    genome = write_fasta(tmp_path / "g.fa", c=bases)
    labels = tmp_path / "g.gff3"
    labels.write_text("##gff-version 3\nc\tx\tCDS\t91\t115\t.\t-\t0\tID=one\n")
    (first, second) = examples(
        task_of(Coding, tmp_path, genome, labels, circular=("c",), length=52)
    )
    truth = np.concatenate([first["truth"], second["truth"]]).reshape(-1, 2)
    assert np.flatnonzero(truth[:, 1]).tolist() == [*range(15), *range(90, 100)]
    assert not truth[:, 0].any()


@pytest.mark.parametrize("bin", [1, 7])
def test_bins_have_the_mean_logit_of_their_bases(tmp_path: Path, bin: int) -> None:
    """The tokens of a base, found by counting, for pieces of any length."""
    tokenizer = DnaTokenizer.train([random_bases(5000, 1)], 60)
    task: Any = Profile()
    task.bin, task.channels, task.window = bin, ("a", "b"), 70
    tokenizer.save(tmp_path / "tokenizer")
    settings = DnaLabelSettings("dna-profile", (), length=66)
    task.prepare(settings, AutoTokenizer.from_pretrained(tmp_path / "tokenizer"))
    windows = [random_bases(70, 3), random_bases(53, 4)]
    batch = task.batch([task.read(each) for each in windows], task.pad)

    class Model:
        def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
            self.logits = torch.randn(
                *input_ids.shape, 2, generator=torch.Generator().manual_seed(0)
            )
            return self

    model = Model()
    found = task.run(model, batch)
    for row, bases in enumerate(windows):
        per_base: list[torch.Tensor] = []
        for at, token in enumerate(tokenizer.encode(bases).ids.tolist()):
            per_base += [model.logits[row, 1 + at]] * len(tokenizer.pieces[token])
        assert len(per_base) == len(bases)
        for number, start in enumerate(range(0, len(bases), bin)):
            expected = torch.stack(per_base[start : start + bin]).mean(0)
            torch.testing.assert_close(found[row, number], expected)


def test_profiles_are_of_features_and_of_signals(tmp_path: Path) -> None:
    import pyBigWig

    bases = random_bases(230)
    genome = write_fasta(tmp_path / "g.fa", c=bases)
    bed = tmp_path / "sites.bed"
    bed.write_text("c\t15\t21\nc\t100\t101\nc\t229\t230\n")
    values = np.random.default_rng(0).random(230)
    with pyBigWig.open(str(tmp_path / "chip.bw"), "w") as opened:
        opened.addHeader([("c", 230)])
        opened.addEntries("c", 0, values=values[:150].tolist(), span=1, step=1)
    task = task_of(Profile, tmp_path, genome, bed, tmp_path / "chip.bw", bin=10, quantile=0.8)
    assert task.channels == ("sites", "chip")
    assert task.window == 60
    truth = np.concatenate([each["truth"] for each in examples(task)]).reshape(-1, 2)
    assert np.flatnonzero(truth[:, 0]).tolist() == [1, 2, 10, 22]
    means = values[:150].reshape(15, 10).mean(1)
    assert truth[:15, 1].tolist() == (means > np.quantile(means, 0.8)).astype(int).tolist()
    assert (truth[15:, 1] == UNLABELLED).all()


def test_files_of_one_name_are_told_apart_by_their_endings(tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.fa", c=random_bases(100))
    (tmp_path / "g.bed").write_text("c\t5\t6\n")
    (tmp_path / "g.gff3").write_text("##gff-version 3\nc\tx\tgene\t6\t20\t.\t+\t.\tID=one\n")
    (tmp_path / "other.bed").write_text("c\t5\t6\n")
    files = (tmp_path / "g.bed", tmp_path / "g.gff3", tmp_path / "other.bed")
    task = task_of(Profile, tmp_path, genome, *files, bin=10)
    assert task.channels == ("g.bed", "g.gff3", "other")


def test_an_annotation_of_a_whole_sequence_is_no_target(tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.fa", c=random_bases(100))
    gff = tmp_path / "g.gff3"
    rows = [("region", 1, 100), ("gene", 11, 20), ("repeat", 71, 72)]
    gff.write_text(
        "##gff-version 3\n"
        + "".join(f"c\tx\t{kind}\t{a}\t{b}\t.\t+\t.\tID={kind}\n" for kind, a, b in rows)
    )
    truth = np.concatenate(
        [x["truth"] for x in examples(task_of(Profile, tmp_path, genome, gff, bin=10))]
    )
    assert np.flatnonzero(truth).tolist() == [1, 7]


def test_numbers_along_a_genome_are_a_signal_whatever_the_file_is_called(tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.fa", c=random_bases(100))
    rows = "".join(f"c\t{at}\t{at + 10}\t{at % 30}\n" for at in range(0, 100, 10))
    for name, heading in (("chip.bg", ""), ("chip.bed", "track type=bedGraph\n")):
        file = tmp_path / name
        file.write_text(heading + rows)
        task = task_of(Profile, tmp_path, genome, file, bin=10, quantile=0.5)
        truth = np.concatenate([each["truth"] for each in examples(task)])
        assert truth.tolist() == [0, 0, 1, 0, 0, 1, 0, 0, 1, 0]
        with pytest.raises(
            ValueError, match=r"a signal .* `longbird dna finetune profile` learns"
        ):
            examples(task_of(Coding, tmp_path, genome, file))


def test_the_other_strand_has_the_labels_of_the_other_strand(tmp_path: Path) -> None:
    bases = random_bases(64)
    genome = write_fasta(tmp_path / "g.fa", c=bases)
    labels = tmp_path / "g.gff3"
    labels.write_text("##gff-version 3\nc\tx\tCDS\t6\t20\t.\t+\t0\tID=one\n")
    task = task_of(Coding, tmp_path, genome, labels)
    (row,) = examples(task)
    seen: set[str] = set()
    for epoch in range(12):
        inputs = task.inputs_of(row, 0, 0, epoch)
        assert inputs["input_ids"] == task.inputs_of(row, 0, 0, epoch)["input_ids"]
        read = task.tokens.dna.decode(inputs["input_ids"])
        seen.add(read)
        if read == bases:
            expected = [(at, 0) for at in range(5, 20)]
        else:
            assert read == other_strand(bases)
            expected = [(63 - at, 1) for at in range(19, 4, -1)]
        assert [tuple(each) for each in np.argwhere(inputs["truth"])] == expected
    assert len(seen) == 2
    assert task.tokens.dna.decode(task.inputs_of(row, 0, 0, None)["input_ids"]) == bases


@pytest.mark.parametrize("ends", ["+-", ("plus", "minus"), ("fwd", "rev")])
def test_targets_of_strands_change_places_on_the_other_strand(tmp_path: Path, ends: Any) -> None:
    """Against the labels of the reverse complement, made by hand; sites have no strand."""
    bases = random_bases(64)
    genome = write_fasta(tmp_path / "g.fa", c=bases)
    reverse = write_fasta(tmp_path / "r.fa", c=other_strand(bases))
    spans = {f"genes {ends[0]}": (0, 12), "sites": (20, 24), f"genes {ends[1]}": (40, 64)}
    turned = [*spans.values()][::-1]  # what is on plus lies on minus there
    tasks: list[Any] = []
    for name, own, places in (("a", genome, [*spans.values()]), ("b", reverse, turned)):
        (tmp_path / name).mkdir()
        files: list[Path] = []
        for target, (start, end) in zip(spans, places, strict=True):
            files.append(tmp_path / name / f"{target}.bed")
            if name == "b":
                start, end = 64 - end, 64 - start
            files[-1].write_text(f"c\t{start}\t{end}\n")
        tasks.append(task_of(Profile, tmp_path / name, own, *files, bin=4))
    (row,), (other,) = (examples(task) for task in tasks)
    wanted = {own["bases"]: np.reshape(own["truth"], (-1, 3)).tolist() for own in (row, other)}
    seen: set[str] = set()
    for epoch in range(12):
        inputs = tasks[0].inputs_of(row, 0, 0, epoch)
        read = tasks[0].tokens.dna.decode(inputs["input_ids"])
        seen.add(read)
        assert inputs["truth"].tolist() == wanted[read]
    assert seen == {*wanted}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that have seen next to nothing: what matters here is where scores lie."""
    folder = tmp_path_factory.mktemp("runs")
    genome = write_fasta(folder / "g.fa", c=random_bases(1000))
    labels = folder / "g.gff3"
    labels.write_text(
        "##gff-version 3\n"
        + "".join(
            f"c\tx\tCDS\t{at}\t{at + 29}\t.\t{'+-'[number % 2]}\t0\tID=c{number}\n"
            for number, at in enumerate(range(10, 950, 50))
        )
    )
    made: dict[str, Path] = {}
    for task, tokens in (("coding", "base"), ("coding", "bpe"), ("profile", "base")):
        made[f"{task} {tokens}"] = out = folder / f"{task}-{tokens}"
        finetune(
            task, genome, [labels], out, steps=2, length=66, tokens=tokens, vocabulary=40, bin=8,
            kind=("CDS",), tokens_per_batch=512, **QUIET,
        )  # fmt: skip
    return made


def scanned(run: Path, folder: Path, bases: str, **options: Any) -> dict[str, Any]:
    import pyarrow.parquet as pq

    file = write_fasta(folder / "scanned.fa", c=bases)
    out = folder / "scanned.parquet"
    scan(run, file, out, force=True, **options, **QUIET)
    return pq.read_table(out).to_pydict()


@pytest.mark.parametrize("circular", [None, ("c",)])
@pytest.mark.parametrize("name", ["coding base", "coding bpe", "profile base"])
@pytest.mark.parametrize("length", [401, 400, 50])
def test_scores_of_both_strands_are_the_same(
    runs: dict[str, Path], tmp_path: Path, name: str, length: int, circular: Any
) -> None:
    # Bins count from the first base, so that those of the other strand are others if the last is
    # short; see below for these.
    bases = random_bases(length // 8 * 8 if "profile" in name else length, 5)
    found, other = (
        scanned(runs[name], tmp_path, each, both_strands=True, circular=circular)
        for each in (bases, other_strand(bases))
    )
    columns = list(found)[3:]
    assert found["start"][0] == 0
    assert found["end"][-1] == len(bases)
    assert found["start"] == [len(bases) - end for end in other["end"][::-1]]
    swapped = columns[::-1] if "coding" in name else columns
    for own, theirs in zip(columns, swapped, strict=True):
        np.testing.assert_allclose(found[own], other[theirs][::-1], atol=1e-5)
        assert np.std(found[own]) > 0


@pytest.mark.parametrize("length", [44, 41, 48, 1])
def test_a_short_bin_is_the_same_on_both_strands(
    runs: dict[str, Path], tmp_path: Path, length: int
) -> None:
    """Bins of 8 bases against a loop over the logits of both readings, base by base."""
    bases = random_bases(length, 7)
    found = scanned(runs["profile base"], tmp_path, bases, both_strands=True)
    model = load(runs["profile base"])
    logits: list[np.ndarray] = []
    for read in (bases, other_strand(bases)):
        with torch.no_grad():
            each = model.model(torch.tensor([model.tokenizer(read)["input_ids"]])).logits
        logits.append(each[0, 1:-1, 0].numpy())
    both = [logits[0], logits[1][::-1]]
    expected = [
        np.mean([1 / (1 + np.exp(-own[at : at + 8].mean())) for own in both])
        for at in range(0, length, 8)
    ]
    np.testing.assert_allclose(found["CDS"], expected, atol=1e-5)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("circular", [None, ("c",)])
@pytest.mark.parametrize("length", [44, 64, 67, 403])
def test_bins_have_their_own_bases_however_long_the_sequence_is(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    length: int, circular: Any, both: bool,
) -> None:  # fmt: skip
    def share(text: str) -> float:
        return (text.count("A") + text.count("T")) / sum(map(text.count, "ACGT"))

    def scored(self: Any, model: Any, windows: list[str]) -> list[np.ndarray]:
        return [
            np.array([[share(each[at : at + 8])] for at in range(0, len(each), 8)])
            for each in windows
        ]

    monkeypatch.setattr(Profile, "scored", scored)
    bases = random_bases(length, 8)
    found = scanned(runs["profile base"], tmp_path, bases, both_strands=both, circular=circular)
    expected = [share(bases[at : at + 8]) for at in range(0, length, 8)]
    np.testing.assert_allclose(found["CDS"], expected, atol=1e-6)


@pytest.mark.parametrize("length", [5, 20, 44, 63, 67, 203, 208])
def test_the_last_bin_of_a_circle_is_followed_by_the_first(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """A model that says of each bin whether there is an A after it."""

    def scored(self: Any, model: Any, windows: list[str]) -> list[np.ndarray]:
        return [
            np.array([[each[at + 8 : at + 9] == "A"] for at in range(0, len(each), 8)], float)
            for each in windows
        ]

    monkeypatch.setattr(Profile, "scored", scored)
    bases = "A" + random_bases(length - 1, 9)
    found = scanned(runs["profile base"], tmp_path, bases, circular=("c",))
    after = [*range(8, length, 8), 0]
    assert [bool(x) for x in found["CDS"]] == [bases[at] == "A" for at in after]


def test_a_short_sequence_is_scored_as_the_model_does(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    bases = random_bases(60, 6)
    found = scanned(runs["coding base"], tmp_path, bases)
    model = load(runs["coding base"])
    ids = torch.tensor([model.tokenizer(bases)["input_ids"]])
    with torch.no_grad():
        scores = model.model(ids).logits[0, 1:-1].sigmoid().numpy()
    np.testing.assert_allclose(found["coding +"], scores[:, 0], atol=1e-5)
    np.testing.assert_allclose(found["coding -"], scores[:, 1], atol=1e-5)


def test_what_is_n_has_no_score(runs: dict[str, Path], tmp_path: Path) -> None:
    found = scanned(runs["coding base"], tmp_path, random_bases(100) + "N" * 300)
    assert not np.isnan(found["coding +"][:100]).any()
    assert np.isnan(found["coding +"][-100:]).all()


def test_other_labels_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.fa", c=random_bases(200))
    bed = tmp_path / "a.bed"
    bed.write_text("c\t5\t9\n")
    with pytest.raises(ValueError, match="the model has 1 targets"):
        evaluate(runs["profile base"], genome, [bed, bed], kind=(), **QUIET)


@pytest.mark.slow  # uses trained models
@pytest.mark.parametrize("name", ["coding base", "coding bpe", "profile base"])
def test_every_metric_lies_within_its_interval(runs: dict[str, Path], name: str) -> None:
    folder = runs[name].parent
    metrics = evaluate(
        runs[name], folder / "g.fa", [folder / "g.gff3"], kind=("CDS",), **QUIET
    ).metrics
    assert {"mcc", "auroc", "f1"} <= set(metrics["intervals"])
    for metric, (low, high) in metrics["intervals"].items():
        assert low <= metrics[metric] <= high, metric


def test_targets_are_known_by_their_names(tmp_path: Path) -> None:
    """In whatever order they are given; other names count in the order of the run."""
    genome = write_fasta(tmp_path / "g.fa", c=random_bases(1000))
    files: dict[str, Path] = {}
    for name, every in (("rare", 250), ("often", 50), ("other", 250)):
        files[name] = tmp_path / f"{name}.bed"
        lines = (f"c\t{at}\t{at + 8}\n" for at in range(0, 1000, every))
        files[name].write_text("".join(lines))
    given = [files["rare"], files["often"]]
    options: dict[str, Any] = {"length": 66, "steps": 1, "bin": 8, **QUIET}
    finetune("profile", genome, given, tmp_path / "run", validation_on=("none",), **options)
    same, turned, named = (
        evaluate(tmp_path / "run", genome, labels, **QUIET).metrics
        for labels in (given, given[::-1], [files["other"], files["often"]])
    )
    assert same == turned == named
    assert same["prevalence rare"] < same["prevalence often"]
    with pytest.raises(ValueError, match="rare, often, and the labels are often, other: give"):
        evaluate(tmp_path / "run", genome, [files["often"], files["other"]], **QUIET)
    with pytest.raises(ValueError, match=r"bin is part of a model, and .* has 8: received 7"):
        evaluate(tmp_path / "run", genome, given, bin=7, **QUIET)
    few = evaluate(tmp_path / "run", genome, given, on="c:1-128", **QUIET)
    assert "2 are too few" in few.metrics["notes"][-1]
    assert "too few" not in same["notes"][-1]


@pytest.mark.parametrize("task", ["coding", "profile"])
def test_nothing_can_be_measured_where_nothing_is_labelled(tmp_path: Path, task: str) -> None:
    genome = write_fasta(tmp_path / "g.fa", c=random_bases(1000))
    labels = tmp_path / "g.gff3"
    labels.write_text(
        "##gff-version 3\nc\tx\tCDS\t10\t90\t.\t+\t0\tID=a\nc\tx\tCDS\t210\t290\t.\t-\t0\tID=b\n"
    )
    options: dict[str, Any] = {"length": 66, "steps": 1, "bin": 8, "kind": ("CDS",), **QUIET}
    said = r"the b\w+s of validation, 0 of \d+ as .*`validation_on`"
    with pytest.raises(ValueError, match=said):
        finetune(task, genome, [labels], tmp_path / "run", **options)


class Guess:
    """Logits of their own for every token, or zero."""

    def __init__(self, spread: float = 0.0) -> None:
        self.spread, self.draw = spread, torch.Generator().manual_seed(0)

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        self.logits = self.spread * torch.randn(*input_ids.shape, 2, generator=self.draw)
        return self


def batch_of(task: Any, rows: Any) -> Any:
    return task.batch([task.inputs_of(row, 0, at, None) for at, row in enumerate(rows)], task.pad)


def test_every_base_is_measured_and_none_is_kept(tmp_path: Path) -> None:
    """Against scikit-learn on all bases that have labels, and without their labels or scores."""
    bases = random_bases(500)
    genome = write_fasta(tmp_path / "g.fa", c=bases[:200] + "N" * 20 + bases[220:])
    labels = tmp_path / "g.gff3"
    labels.write_text(GFF + "c\tx\tCDS\t301\t420\t.\t-\t0\tID=three\n")
    task = task_of(Coding, tmp_path, genome, labels)
    rows = examples(task)
    said = task.predictions(Guess(3.0), batch_of(task, rows))
    logits = Guess(3.0)(batch_of(task, rows)["input_ids"], torch.empty(0)).logits
    truth = np.concatenate([np.reshape(each["truth"], (-1, 2)) for each in rows])
    scores = np.concatenate(
        [own[1 : 1 + len(each["bases"])].sigmoid() for own, each in zip(logits, rows, strict=True)]
    )
    kept = [{name: x for name, x in row.items() if name not in task.on_disk} for row in rows]
    assert "truth" not in kept[0]
    kept, said = task.whole_documents(kept, said)
    found = task.measure(kept, said)
    for channel, name in enumerate("+-"):
        known = truth[:, channel] != UNLABELLED
        assert known.sum() == 480
        own = truth[known, channel], scores[known, channel]
        assert found[f"auroc {name}"] == pytest.approx(metrics.roc_auc_score(*own))
        average = metrics.average_precision_score(*own)
        assert found[f"average_precision {name}"] == pytest.approx(average)
        expected = metrics.matthews_corrcoef(own[0], own[1] >= 0.5)
        assert found[f"mcc {name}"] == pytest.approx(expected)
        assert found[f"prevalence {name}"] == pytest.approx(own[0].mean())
    size = len(rows[0]["bases"])
    first, there = truth[:size] == 1, scores[:size]
    assert task.expected(kept[0]) == pytest.approx(dict(zip("+-", first.mean(0), strict=True)))
    assert task.answer(said[0]) == pytest.approx(dict(zip("+-", there.mean(0), strict=True)))
    assert task.wrongness(kept[0], said[0]) == pytest.approx(np.abs(first - there).mean())


def test_one_target_with_labels_is_enough_to_measure(tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.fa", c=random_bases(256))
    labels = tmp_path / "g.gff3"
    labels.write_text(
        "##gff-version 3\n"
        "c\tx\tCDS\t10\t90\t.\t+\t0\tID=a\nc\tx\tCDS\t95\t99\t.\t-\t0\tID=b\n"
        "c\tx\tCDS\t210\t230\t.\t+\t0\tID=c\n"
    )
    task = task_of(Coding, tmp_path, genome, labels, validation_on=("c:193-256",))
    rows = Dataset.from_list([each for each in examples(task) if each["part"] == "validation"])
    task.check({"validation": rows}, task.settings)
    measured = task.measure(list(rows), task.predictions(Guess(), batch_of(task, rows)))
    assert measured["auroc"] == measured["auroc +"] == 0.5
    assert "auroc -" not in measured


@pytest.mark.slow  # learns
def test_profile_and_coding_learn_what_is_planted(tmp_path: Path) -> None:
    """Coding sequence is rich in G on its own strand; a site is a motif."""
    drawn = random.Random(0)
    bases: list[str] = []
    cds: list[str] = []
    sites: list[str] = []
    while len(bases) < 12_000:
        start, kind = len(bases), drawn.choice("+-.")
        if kind == ".":
            own = drawn.choices("ACGT", k=60)
            if drawn.random() < 0.5:
                own[20:32] = "ACCCATGGACCC"
                sites.append(f"c\t{start + 20}\t{start + 32}\n")
        else:
            own = drawn.choices(
                "ACGT", weights=[1, 1, 6, 1] if kind == "+" else [1, 6, 1, 1], k=60
            )
            cds.append(f"c\tx\tCDS\t{start + 1}\t{start + 60}\t.\t{kind}\t0\tID=c{start}\n")
        bases += own
    genome = write_fasta(tmp_path / "g.fa", c="".join(bases))
    (tmp_path / "g.gff3").write_text("##gff-version 3\n" + "".join(cds))
    (tmp_path / "sites.bed").write_text("".join(sites))
    options: dict[str, Any] = {
        "length": 122, "steps": 80, "tokens_per_batch": 1952, "learning_rate": 2e-3, **QUIET
    }  # fmt: skip
    run = finetune("coding", genome, [tmp_path / "g.gff3"], tmp_path / "coding", **options)
    found = evaluate(run.path, genome, [tmp_path / "g.gff3"], on=["5/5"], **QUIET).metrics
    assert found["auroc +"] > 0.9
    assert found["auroc -"] > 0.9
    assert found["mcc"] > 0.5
    files = [tmp_path / "sites.bed", tmp_path / "g.gff3"]
    run = finetune(
        "profile", genome, files, tmp_path / "profile", bin=20, kind=("CDS",), **options
    )
    found = evaluate(run.path, genome, files, on=["5/5"], kind=("CDS",), **QUIET).metrics
    assert found["auroc CDS"] > 0.9
    assert found["auroc sites"] > 0.8
    scan(run.path, genome, tmp_path / "p.bed", **QUIET)
    with open_genome(genome) as opened:
        known = Cover(
            [each.interval for each in read_features(tmp_path / "g.gff3", opened)], opened
        )
        found = [each for each in read_features(tmp_path / "p.bed", opened) if each.id == "CDS"]
        coding = sum(int(known.bases(each.interval).sum()) for each in found)
    # Two thirds of the bases are coding, so that calling all of them would not do.
    assert coding > 0.7 * sum(len(each.interval) for each in found)
    assert coding > 0.7 * len(cds) * 60
