"""The report of an experiment: a page, a JSON file and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.framework.environment import cpu_slug
from experiments.framework.experiment import Claim, Contestant, Metric
from experiments.framework.intervals import Bootstrap, Figure, figure_of
from experiments.framework.ledger import Finding
from experiments.framework.page import Sheet, digits, write_run
from experiments.framework.picture import draw
from experiments.framework.predictors import Predictors, predictors
from experiments.framework.run import Found

Figures = Mapping[str, Mapping[str, Figure]]
"""Figures by metric and contestant."""


class Report:
    """Figures, differences and a summary in words, computed from the findings."""

    def __init__(self, found: Found) -> None:
        self.found, self.experiment = found, found.experiment
        here = [x for x in self.experiment.contestants if x.name in found.findings]
        self.contestants: list[Contestant] = here
        if not here:
            raise ValueError(
                "nothing has been run yet: leave out --only, or name other contestants"
            )
        self.bootstrap = Bootstrap([x for each in found.findings.values() for x in each])
        self.samples = {
            (metric.name, name): self.bootstrap.samples(findings, metric)
            for metric in self.experiment.metrics
            for name, findings in found.findings.items()
        }

    @property
    def figures(self) -> Figures:
        """All metrics of all contestants."""
        return {
            metric.name: {x.name: self.figure(metric, x.name) for x in self.contestants}
            for metric in self.experiment.metrics
        }

    @property
    def differences(self) -> Figures:
        """Differences from the reference; empty if that has not been run."""
        if self.experiment.reference not in self.found.findings:
            return {metric.name: {} for metric in self.experiment.metrics}
        return {
            metric.name: {
                x.name: self.difference(metric.name, x.name, self.experiment.reference)
                for x in self.contestants
                if x.name != self.experiment.reference
            }
            for metric in self.experiment.metrics
        }

    def figure(self, metric: Metric, name: str) -> Figure:
        """Return a metric of a contestant."""
        return figure_of(self.samples[metric.name, name])

    def difference(self, metric: str, name: str, other: str) -> Figure:
        """Return the difference between two contestants."""
        return figure_of(self.samples[metric, name] - self.samples[metric, other])

    @cached_property
    def predictors(self) -> Predictors | None:
        """Measures that predict the first metric; None if not asked, or too few were run."""
        asked, metric = self.experiment.prediction, self.experiment.metrics[0].name
        if asked is None:
            return None
        found = self.found.findings
        among = {name: found[name] for name in asked.among if name in found}
        samples = {name: self.samples[metric, name] for name in among}
        return predictors(metric, asked.measures, among, samples)

    # ---- tables

    def results(self) -> Sheet:
        """Return a table with a row for each contestant and a column for each metric."""
        published = [x for x in self.experiment.metrics if self._is_published(x)]
        heads = ["contestant", "seeds"]
        heads += [metric.name for metric in self.experiment.metrics]
        heads += [f"{metric.name}, published" for metric in published]
        rows = [
            [
                each.name,
                str(len(self.found.findings[each.name])) if each.seeded else "none",
                *(_shown(figures[each.name]) for figures in self.figures.values()),
                *(
                    digits(each.published[x.name]) if x.name in each.published else "-"
                    for x in published
                ),
            ]
            for each in self.contestants
        ]
        way = {True: "more is better", False: "less is better"}
        notes = [
            f"{x.name}: {x.about} ({way[x.more_is_better]})." for x in self.experiment.metrics
        ]
        notes += [f"Not run: {', '.join(self.found.missing)}."] if self.found.missing else []
        return Sheet(
            "Results: mean over seeds, and 95% interval",
            heads,
            rows,
            [*notes, *self.experiment.sources],
        )

    def against_reference(self) -> Sheet:
        """Return a table of paired differences from the reference."""
        rows = [
            [each.name, *(_signed(x[each.name]) for x in self.differences.values())]
            for each in self.contestants
            if all(each.name in x for x in self.differences.values())
        ]
        return Sheet(
            f"Differences to {self.experiment.reference}: mean over seeds, and 95% interval",
            ["contestant", *(metric.name for metric in self.experiment.metrics)],
            rows,
            [
                "Paired: each sample of the bootstrap has the same seeds and documents for both. "
                "Each interval is for itself; with many comparisons some exclude 0 by luck."
            ],
        )

    def seeds(self) -> Sheet:
        """Return a table of the metrics of each seed."""
        every = [
            (metric, name, findings)
            for name, findings in self.found.findings.items()
            for metric in self.experiment.metrics
        ]
        rows = [
            [name, metric.name, *(f"{each.seed}: {digits(x)}" for each, x in self._alone(*rest))]
            for metric, name, findings in every
            for rest in [(metric, findings)]
        ]
        width = max(map(len, rows))
        heads = ["contestant", "metric", *["seed: value"] * (width - 2)]
        return Sheet("Seed by seed", heads, [row + [""] * (width - len(row)) for row in rows])

    def _alone(self, metric: Metric, findings: Any) -> list[tuple[Any, float]]:
        """Return each finding with its value; in scans, the documents of seeds can differ."""
        found: list[tuple[Any, float]] = []
        for each in findings:
            columns = {name: np.asarray(values) for name, values in each.documents.items()}
            once = np.ones((1, len(next(iter(columns.values())))))
            found.append((each, metric.scale * float(metric.of(columns, once)[0])))
        return found

    def costs(self) -> Sheet:
        """Return a table of the costs, averaged over seeds."""
        spent = {
            name: {
                key: [x.cost[key] for x in findings if key in x.cost] for key in _keys(findings)
            }
            for name, findings in self.found.findings.items()
        }
        names = list(dict.fromkeys(key for each in spent.values() for key in each))
        rows = [
            [
                each.name,
                *(
                    digits(float(np.mean(spent[each.name][key])))
                    if spent[each.name].get(key)
                    else "-"
                    for key in names
                ),
            ]
            for each in self.contestants
        ]
        seconds = sum(
            x.cost["core seconds"] for each in self.found.findings.values() for x in each
        )
        note = f"All attempts together took {digits(seconds / 60)} minutes of one core."
        return Sheet("Cost of an attempt, mean over seeds", ["contestant", *names], rows, [note])

    def _is_published(self, metric: Metric) -> bool:
        return any(metric.name in each.published for each in self.experiment.contestants)

    # ---- words

    def verdict(self, claim: Claim) -> str:
        """Return a sentence about whether a claim holds, by the interval of the difference."""
        if claim.better not in self.found.findings or claim.worse not in self.found.findings:
            return f"Not measured: {claim.text}."
        metric = next(x for x in self.experiment.metrics if x.name == claim.metric)
        found = self.difference(claim.metric, claim.better, claim.worse)
        low, high = (found.low, found.high) if metric.more_is_better else (-found.high, -found.low)
        said = "Undecided here"
        if low > claim.margin:
            said = "Holds here"
        elif high < claim.margin:
            said = "Does not hold here"
        return (
            f"{said}: {claim.text} ({claim.metric} of {claim.better} less that of {claim.worse}: "
            f"{_signed(found)})."
        )

    def words(self) -> list[str]:
        """Return sentences about the results, which follow fixed rules."""
        if self.experiment.scale != "default":
            return [f"Nothing: scale {self.experiment.scale} shows that everything runs."]
        metric, reference = self.experiment.metrics[0], self.experiment.reference
        better, worse, alike = [], [], []
        for name, found in self.differences[metric.name].items():
            low, high = found.low, found.high
            if not metric.more_is_better:
                low, high = -high, -low
            (better if low > 0 else worse if high < 0 else alike).append(name)
        lines = [self.verdict(claim) for claim in self.experiment.claims]
        lines += known.words() if (known := self.predictors) else []
        if self.differences[metric.name]:
            lines.append(
                f"Beside {reference}, by {metric.name}: better are {_listed(better)}; worse are "
                f"{_listed(worse)}; not distinguishable are {_listed(alike)}."
            )
        for each in self.contestants:
            for name, value in each.published.items():
                here = self.figures[name][each.name]
                if here.low <= value <= here.high:
                    lines.append(
                        f"{each.name}: the published {name} of {digits(value)} is inside the "
                        f"interval here ({_shown(here)})."
                    )
                else:
                    lines.append(
                        f"{each.name}: the published {name} of {digits(value)} was not reproduced "
                        f"as a number (here {_shown(here)})."
                    )
        return lines

    # ---- files

    def markdown(self, picture: str) -> str:
        """Return the page."""
        found, experiment = self.found, self.experiment
        commits = {x.commit or "unknown" for each in found.findings.values() for x in each}
        where = found.environment
        versions = ", ".join(f"{name} {x or 'missing'}" for name, x in where["versions"].items())
        dates = sorted({x.date for each in found.findings.values() for x in each})
        days = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
        facts = [
            f"Command: `{found.command}`",
            f"Budget: {experiment.budget}",
            *(f"Data: {line}" for line in experiment.data),
            *experiment.notes,
            self._uncertainty(),
            f"Machine: {where['cpu']}, {where['cores']} cores, {where['threads']} threads used, "
            f"{(where['memory_bytes'] or 0) / 1e9:.0f} GB, {where['system']}; kernels: "
            f"{where['isa']}",
            f"Versions: {versions}, Python {where['python']}; commit "
            f"{', '.join(sorted(commits))}; run {days}",
            "The same command with an empty work folder gives the same figures on such a machine "
            "with as many threads; times differ.",
        ]
        if experiment.scale != "default":
            facts.insert(
                1, f"**Scale {experiment.scale}: shows that everything runs, no result.**"
            )
        sheets = [self.results(), self.against_reference()]
        sheets += known.sheets() if (known := self.predictors) else []
        sheets += [self.costs()]
        sheets += [self.seeds()] if any(len(each) > 1 for each in found.findings.values()) else []
        return "\n".join(
            [
                f"# {experiment.title}, {found.date}",
                "",
                experiment.asks,
                "",
                *(f"- {fact}" for fact in facts),
                "",
                "## What was and was not reproduced",
                "",
                *(f"- {line}" for line in self.words()),
                "",
                "## Contestants",
                "",
                *(f"- {each.name}: {each.about}" for each in self.contestants),
                "",
                *(each.markdown() for each in sheets),
                f"![{experiment.metrics[0].name}]({picture})",
                "",
            ]
        )

    def _uncertainty(self) -> str:
        """Describe the bootstrap."""
        first = self.samples[self.experiment.metrics[0].name, self.contestants[0].name]
        grouped = "groups of " if self._grouped() else ""
        drawn = f"samples over {self.bootstrap.groups:,} {grouped}held-out documents"
        drawn = f"Intervals: bootstrap of {len(first) - 1:,} {drawn}"
        if not any(each.seeded for each in self.contestants):
            return f"Nothing is drawn at random, so all run once. {drawn}."
        return (
            f"Seeds: {', '.join(map(str, self.found.seeds))}. {drawn} and over seeds. With three "
            "seeds, intervals have two thirds of the variance between seeds."
        )

    def _grouped(self) -> bool:
        return any("group" in x.documents for each in self.found.findings.values() for x in each)

    def write(self, folder: Path) -> list[Path]:
        """Write the page, the JSON file and the picture, and return their paths."""
        experiment, where = self.experiment, self.found.environment
        name = f"{experiment.family}-{experiment.name}_{cpu_slug(where['cpu'])}_{self.found.date}"
        names = [each.name for each in self.contestants]
        return write_run(
            folder,
            name,
            self.markdown(f"{name}.png"),
            self.values(),
            partial(draw, experiment, self.figures, names, self.predictors),
        )

    def values(self) -> dict[str, Any]:
        """Return all figures, and the cost and facts of each attempt."""
        experiment = self.experiment
        return {
            "experiment": experiment.name,
            "scale": experiment.scale,
            "command": self.found.command,
            "date": self.found.date,
            "environment": self.found.environment,
            "asks": experiment.asks,
            "budget": experiment.budget,
            "data": list(experiment.data),
            "seeds": list(self.found.seeds),
            "reference": experiment.reference,
            "contestants": {
                x.name: {"about": x.about, "settings": x.settings, "published": x.published}
                for x in self.contestants
            },
            "figures": _plain(self.figures),
            "differences": _plain(self.differences),
            "words": self.words(),
            "prediction": known.as_json() if (known := self.predictors) else None,
            "attempts": [_attempt(x) for each in self.found.findings.values() for x in each],
        }


def _attempt(finding: Finding) -> dict[str, Any]:
    """Return an attempt without its columns, of which there is a number for each document."""
    attempt = asdict(finding)
    del attempt["documents"]
    return attempt


def _keys(findings: Any) -> list[str]:
    return list(dict.fromkeys(key for each in findings for key in each.cost))


def _plain(figures: Figures) -> Any:
    return {
        metric: {
            name: [None if np.isnan(y) else y for y in (x.value, x.low, x.high)]
            for name, x in each.items()
        }
        for metric, each in figures.items()
    }


def _shown(x: Figure) -> str:
    if np.isnan(x.value):  # such as wrong calls at a recall that is never reached
        return "none"
    return f"{digits(x.value)} ({digits(x.low)} to {digits(x.high)})"


def _signed(x: Figure) -> str:
    if np.isnan(x.value):
        return "none"
    value, low, high = (("+" if y > 0 else "") + digits(y) for y in (x.value, x.low, x.high))
    return f"{value} ({low} to {high})"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
