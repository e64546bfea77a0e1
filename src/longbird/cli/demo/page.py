"""The demonstration as one HTML page, which opens without a network."""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from longbird.cli.demo.answers import TITLE, Response, Results
from longbird.cli.demo.cost import Cost
from longbird.cli.processor import processor_name
from longbird.files.writing import writing_file

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .8rem .3rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
mark { background: #ffe08a; } .right { color: #176b3a; } .wrong { color: #a3261d; }
blockquote { margin: .3rem 0 .3rem 1rem; color: #444; }
"""


def write_page(results: Results, file: Path) -> None:
    """Write the results to an HTML file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Longbird reads a long document</title>
<style>{STYLE}</style></head><body>
<h1>Questions about a document of {results.words:,} words</h1>
<p>{escape(TITLE)}, read by the small reader that comes with Longbird {version("longbird")}, on
{escape(processor_name())}. The right answers were known before; right and wrong answers are shown
as the reader gave them.</p>
<h2>Answers</h2>
{"".join(_answer(results, response) for response in results.passages)}
<h2>Compared with chunks of 512 tokens, with the same model</h2>
<p>Chunks do not see each other, and the confidence was not calibrated for one answer of a hundred
chunks: the best guess is shown, whatever its confidence.</p>
{_comparison(results)}
<h2>Time and memory of one forward pass</h2>
<p>One pass over the first tokens of the document, with the same weights each time: along the
BigBird graph, over all pairs of tokens (dense attention), and in chunks of 512 tokens, which do
not see each other. Memory is what the pass took in addition to the model and the libraries,
measured in a separate process.</p>
{_costs(results.costs)}
</body></html>
"""
    with writing_file(file) as written:
        written.write_text(page, "utf-8")


def _answer(results: Results, response: Response) -> str:
    answer, question = response.answer, response.question
    right = question.answers[0] if question.answers else "none: the document does not say"
    quotes = "".join(
        f"<blockquote>{_marked(each, answer)} "
        f"<small>({results.document.place(each.start)})</small></blockquote>"
        for each in answer.evidence
    )
    return f"""<h3>{escape(question.text)}</h3>
<p><b class="{_verdict(response)}">{escape(response.text)}</b>
({answer.confidence:.0%} sure, {response.seconds:.1f} s); right: {escape(right)}</p>{quotes}"""


def _marked(evidence: Any, answer: Any) -> str:
    text = evidence.text
    if answer.start is None or not evidence.start <= answer.start < evidence.end:
        return escape(text)
    low, high = answer.start - evidence.start, answer.end - evidence.start
    return f"{escape(text[:low])}<mark>{escape(text[low:high])}</mark>{escape(text[high:])}"


def _comparison(results: Results) -> str:
    passages = {response.question: response for response in results.passages}
    rows = "".join(
        f"<tr><td>{escape(response.question.text)}</td>"
        f"{_cell(passages[response.question])}{_cell(response)}</tr>"
        for response in results.chunks
    )
    return (
        "<table><tr><th>question</th><th>passages of 4,096</th><th>chunks of 512</th></tr>"
        f"{rows}</table>"
    )


def _cell(response: Response) -> str:
    return (
        f'<td><span class="{_verdict(response)}">{escape(response.text)}</span>, '
        f"{response.seconds:.1f} s</td>"
    )


def _verdict(response: Response) -> str:
    return "right" if response.right else "wrong"


def _costs(costs: list[Cost]) -> str:
    rows = "".join(
        f'<tr><td>{cost.title}</td><td class="number">{cost.tokens:,}</td>'
        f'<td class="number">{cost.seconds:.2f} s</td>'
        f'<td class="number">{cost.bytes / 1e6:,.0f} MB</td></tr>'
        for cost in sorted(costs, key=lambda cost: cost.tokens)
    )
    return (
        f"<table><tr><th>method</th><th>tokens</th><th>time</th><th>memory</th></tr>{rows}</table>"
    )
