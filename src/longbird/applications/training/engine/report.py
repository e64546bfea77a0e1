"""A run on one page: report.html, the plots in it, and the card of its model."""

from __future__ import annotations

import base64
import html
import io
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from datasets import Dataset

from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.engine.run_folder import RunFolder, naming, write_text
from longbird.applications.training.settings.groups import Settings

CURVES = 12
"""Metrics that one picture shows, the first ones."""
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border-bottom: 1px solid #ddd; padding: .2rem .8rem .2rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; } pre { background: #f6f6f6; padding: 1rem; overflow-x: auto; }
"""


def write_report(
    folder: RunFolder,
    settings: Settings,
    data: dict[str, Any],
    result: dict[str, Any],
    parts: dict[str, Dataset],
) -> None:
    """Writes plots, card and report into the folder of a run."""
    plots = _plots(folder, parts)
    card = model_card(settings, data, result)
    write_text(folder.model / "README.md", card)
    images = "".join(
        f'<h2>{html.escape(name)}</h2><img alt="{html.escape(name)}" '
        f'src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
        for name, picture in plots.items()
    )
    lines = folder.worst.read_text("utf-8").splitlines() if folder.worst.exists() else []
    worst = [json.loads(line) for line in lines[:20]]
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(folder.path.name)}</title>
<style>{STYLE}</style></head><body>
<h1>{html.escape(folder.path.name)}</h1>
<p>{settings.task}: {result["steps"]:,} steps, {result["tokens"]:,} tokens,
{result["seconds"] / 60:,.1f} minutes. The best model is that of step {result["best step"]:,}.</p>
<h2>Results</h2>{_metrics_table(result["metrics"])}{_label_tables(result["metrics"])}
{"".join(f"<p>{html.escape(note)}</p>" for note in data.get("notes", []))}
{images}
<h2>Data</h2><pre>{html.escape(json.dumps(data, indent=1))}</pre>
<h2>Settings</h2><pre>{html.escape(settings.toml())}</pre>
<h2>What it is most wrong about</h2>{_worst_table(worst)}
</body></html>
"""
    write_text(folder.report, page)


def model_card(settings: Settings, data: dict[str, Any], result: dict[str, Any]) -> str:
    """The card of the best model, in Markdown, with the fields that the hub reads."""
    rows = [
        f"| {part} | {name} | {value:.4f} | {interval_of(metrics, name)} |"
        for part, metrics in result["metrics"].items()
        for name, value in metrics.items()
        if isinstance(value, float)
    ]
    table = "\n".join(
        ["| documents | metric | value | 95% interval |", "|---|---|---|---|", *rows]
    )
    counts = ", ".join(f"{count:,} for {part}" for part, count in data["documents"].items())
    files = "\n".join(
        f"- {part}: `{Path(file).name}`, sha256 `{digest}`"
        for part, hashes in data["files"].items()
        for file, digest in hashes.items()
    )
    held = data["held out"]
    split = f"Validation documents were held out {held}." if held else "Every part has its files."
    if "parts" in data:
        split = "; ".join(f"{part}: {words}" for part, words in data["parts"].items()) + "."
    notes = "".join(f"\n{note}\n" for note in data.get("notes", []))
    return f"""---
library_name: longbird
base_model: {settings.model}
tags: [longbird, {settings.task}]
---

# {settings.task}, up to {settings.length:,} tokens

Started from `{settings.model}`, trained with Longbird {version("longbird")}.

## Quality

{table}
{notes}
## Data

{counts}. {split}

{files}

## Cost and seeds

{result["steps"]:,} steps over {result["tokens"]:,} tokens, {result["seconds"] / 60:,.1f} minutes.
Seed {settings.seed}. The best model is that of step {result["best step"]:,}.

```toml
{settings.toml()}```
"""


def interval_of(metrics: dict[str, Any], name: str) -> str:
    """The 95% interval of a metric in words, or nothing if it has none.

    Examples:
        >>> interval_of({"intervals": {"accuracy": [0.5, 0.75]}}, "accuracy")
        '0.5000 to 0.7500'
        >>> interval_of({"intervals": {"accuracy": [1.0, 1.0]}}, "accuracy")
        'the same in every sample'
    """
    found = metrics.get("intervals", {}).get(name)
    if found is None:
        return ""
    low, high = (f"{x:.4f}" for x in found)
    # Where every document has the same score, the bootstrap has nothing to vary.
    return "the same in every sample" if low == high else f"{low} to {high}"


def _metrics_table(metrics: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><td>{part}</td><td>{name}</td><td class="number">{value:.4f}</td>'
        f"<td>{interval_of(found, name)}</td></tr>"
        for part, found in metrics.items()
        for name, value in found.items()
        if isinstance(value, float)
    )
    return f"<table><tr><th>documents<th>metric<th>value<th>95% interval</tr>{rows}</table>"


def _worst_table(worst: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(str(each['place']))}</td><td>{html.escape(str(each['expected']))}"
        f"</td><td>{html.escape(_given(each))}</td>"
        f"<td>{html.escape(each['text'][:200])}</td></tr>"
        for each in worst
    )
    return f"<table><tr><th>where<th>expected<th>given<th>text</tr>{rows}</table>"


def _given(worst: dict[str, Any]) -> str:
    """Return a prediction as text; runs of version 0.2 have no text."""
    return worst.get("given_as_text") or json.dumps(worst["given"], ensure_ascii=False)


def _label_tables(metrics: dict[str, Any]) -> str:
    """Return the metrics of each label and the confusion matrix, if there are some."""
    return "".join(
        f"<h3>{html.escape(title)}, {part}</h3>{_html_table(rows)}"
        for part, found in metrics.items()
        for title, rows in label_tables(found)
    )


def label_tables(metrics: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
    """Return titles and rows, the first with the heads, of the tables about single labels.

    Examples:
        >>> confusion = {"labels": ["a", "b"], "counts": [[3, 0], [1, 2]]}
        >>> label_tables({"confusion": confusion})[0][1]
        [['true label', 'a', 'b'], ['a', '3', '0'], ['b', '1', '2']]
    """
    tables: list[tuple[str, list[list[str]]]] = []
    if found := metrics.get("by_label"):
        rows = [["label", "precision", "recall", "F1", "documents"]]
        for label, each in found.items():
            shares = [f"{each[name]:.4f}" for name in ("precision", "recall", "f1")]
            rows.append([label, *shares, f"{each['documents']:,.0f}"])
        tables.append(("Each label", rows))
    if found := metrics.get("confusion"):
        names = found["labels"]
        counts = [[f"{count:,}" for count in row] for row in found["counts"]]
        rows = [[name, *row] for name, row in zip(names, counts, strict=True)]
        tables.append(
            ("Confusion matrix, predicted labels in columns", [["true label", *names], *rows])
        )
    return tables


def _html_table(rows: list[list[str]]) -> str:
    head, *others = rows
    body = "".join(
        f"<tr><td>{html.escape(first)}</td>"
        + "".join(f'<td class="number">{html.escape(each)}</td>' for each in row)
        + "</tr>"
        for first, *row in others
    )
    heads = "".join(f"<th>{html.escape(each)}" for each in head)
    return f"<table><tr>{heads}</tr>{body}</table>"


def _plots(folder: RunFolder, parts: dict[str, Dataset]) -> dict[str, bytes]:
    """Loss, metrics and lengths as PNG, which are also written as files."""
    from matplotlib.figure import Figure

    lines = folder.logged()
    curves: dict[str, dict[str, list[tuple[int, float]]]] = {"loss": {}, "metrics": {}}
    for line in lines:
        for name, value in line.items():
            if name == "loss":
                curves["loss"].setdefault("loss", []).append((line["step"], value))
            elif name.startswith("eval_") and name != "eval_seconds":
                curves["metrics"].setdefault(name[5:], []).append((line["step"], value))
    figures: dict[str, Any] = {}
    for title, named in curves.items():
        if named:
            figure = Figure(figsize=(8, 4), layout="constrained")
            axes = figure.subplots()
            for name, points in list(named.items())[:CURVES]:
                axes.plot(*zip(*points, strict=True), label=name, marker="." * (len(points) < 40))
            axes.set_xlabel("step")
            axes.legend()
            figures[title] = figure
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    axes.hist([numbers_of(each, "tokens") for each in parts.values()], bins=40, label=list(parts))
    axes.set_xlabel("tokens of a document")
    axes.legend()
    figures["lengths"] = figure
    folder.plots.mkdir(exist_ok=True)
    pictures: dict[str, bytes] = {}
    for name, figure in figures.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        pictures[name] = buffer.getvalue()
        with naming(folder.plots / f"{name}.png"):
            (folder.plots / f"{name}.png").write_bytes(pictures[name])
    return pictures
