"""The demo on one page, which opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longbird.files.writing import writing_file

if TYPE_CHECKING:
    from longbird.bench.demo.story import Story, Told

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .8rem .3rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
mark { background: #ffe08a; } .right { color: #176b3a; } .wrong { color: #a3261d; }
blockquote { margin: .3rem 0 .3rem 1rem; color: #444; }
"""
NAMES = {"longbird": "Longbird", "dense": "dense attention", "chunks": "chunks of 512"}


def write_page(story: Story, file: Path) -> None:
    """Writes it."""
    from importlib.metadata import version

    from longbird.bench.demo.story import TITLE
    from longbird.bench.environment import cpu_model

    file.parent.mkdir(parents=True, exist_ok=True)
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Longbird reads a long document</title>
<style>{STYLE}</style></head><body>
<h1>A document of {story.words:,} words, asked questions</h1>
<p>{escape(TITLE)}, read by the small reader that comes with Longbird {version("longbird")}, on
{escape(cpu_model())}. What is right was known before; right and wrong answers are shown as they
came.</p>
<h2>Answers</h2>
{"".join(_question(story, told) for told in story.whole)}
<h2>Beside chunks of 512 tokens, with the same model</h2>
<p>Chunks do not see each other, and how sure an answer in one of a hundred is was never fitted:
for them, the best guess is shown, however sure.</p>
{_ways(story)}
<h2>Reading at once: time and memory</h2>
<p>One pass over the first tokens of the document, the same weights each time: over the BigBird
graph, over all pairs of tokens (dense attention), and in chunks of 512, which do not see each
other. Memory is what the pass took beyond model and libraries, in a process of its own.</p>
{_once(story.once)}
</body></html>
"""
    with writing_file(file) as written:
        written.write_text(page, "utf-8")


def _question(story: Story, told: Told) -> str:
    answer, known = told.answer, told.known
    given = "not sure" if answer.text is None else answer.text
    right = " or ".join(known.answers[:1]) if known.answers else "none: the document does not say"
    quotes = "".join(
        f"<blockquote>{_marked(each, answer)} "
        f"<small>({story.document.place(each.start)})</small></blockquote>"
        for each in answer.evidence
    )
    return f"""<h3>{escape(known.question)}</h3>
<p><b class="{"right" if told.right else "wrong"}">{escape(given)}</b>
({answer.confidence:.0%} sure, {told.seconds:.1f} s); right: {escape(right)}</p>{quotes}"""


def _marked(evidence: Any, answer: Any) -> str:
    text = evidence.text
    if answer.start is None or not evidence.start <= answer.start < evidence.end:
        return escape(text)
    low, high = answer.start - evidence.start, answer.end - evidence.start
    return f"{escape(text[:low])}<mark>{escape(text[low:high])}</mark>{escape(text[high:])}"


def _ways(story: Story) -> str:
    whole = {told.known: told for told in story.whole}
    rows = "".join(
        f"<tr><td>{escape(part.known.question)}</td>{_cell(whole[part.known])}{_cell(part)}</tr>"
        for part in story.chunks
    )
    return (
        "<table><tr><th>question</th><th>passages of 4,096</th><th>chunks of 512</th></tr>"
        f"{rows}</table>"
    )


def _cell(told: Told) -> str:
    given = "not sure" if told.answer.text is None else told.answer.text
    kind = "right" if told.right else "wrong"
    return f'<td><span class="{kind}">{escape(given)}</span>, {told.seconds:.1f} s</td>'


def _once(found: list[dict[str, Any]]) -> str:
    rows = "".join(
        f'<tr><td>{NAMES[each["who"]]}</td><td class="number">{each["tokens"]:,}</td>'
        f'<td class="number">{each["seconds"]:.2f} s</td>'
        f'<td class="number">{each["bytes"] / 1e6:,.0f} MB</td></tr>'
        for each in sorted(found, key=lambda each: each["tokens"])
    )
    return (
        "<table><tr><th>how</th><th>tokens</th><th>time</th><th>memory</th></tr>"
        + rows
        + "</table>"
    )
