"""Texts of manual pages compared with the output of groff."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter

import pytest

from experiments.sources import roff

PAGE = r'''.\" t
.\" A remark.
.de Vb \" Begin verbatim text
.ft CW
.nf
..
.if n \{\
.    ds L" ""
.    ds R" ""
.\}
.TH demo 1 2026-01-01 "Longbird"
.SH NAME
demo, \fBdemo2\fP \- shows \(aqthings\(aq
.SH SYNOPSIS
.B demo
.RI [ option ]...
.I file
.SH "A LONGER TITLE"
First line
.BR open (2),
second \fIline\fP \e end. \" a remark
.\" another
.PP
.BI "int f(char *" s ", int " n );
.IP \(bu 3
An item.
.TP
.B \-x
Its meaning.
.nf
    code  here
\&.not a macro
.fi
.ie n .IP """quoted""" 4
.el .IP "\f(CWquoted\fR" 4
A case
continued\c
.SS "Sub title"
.TS
l c
lB c.
Name	Value
_
one	1
T{
long cell
T}	2
.TE
.UR https://example.org
a link
.UE
'''


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))


def test_sections() -> None:
    found = dict(roff.sections(PAGE))
    assert found == {
        "NAME": "demo, demo2 - shows 'things'",
        "SYNOPSIS": "demo [option]... file",
        "A LONGER TITLE": "First line open(2), second line \\ end.\nint f(char *s, int n);\n*\n"
        'An item.\n-x Its meaning.\n    code  here\n.not a macro\n"quoted"\nA case continued\n'
        "Sub title\nName Value\none 1\nlong cell\n2\nhttps://example.org a link",
    }
    assert roff.name_line(found["NAME"]) == (["demo", "demo2"], "shows 'things'")


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff to compare with")
def test_the_words_are_those_of_groff() -> None:
    """But for the header and the footer of the page."""
    page = PAGE.replace('.de Vb \\" Begin verbatim text', '.de Vb \\" begin')
    command = ["groff", "-t", "-man", "-Tascii", "-P-cbou", "-rLL=2000n"]
    shown = subprocess.run(command, input=page, capture_output=True, text=True, check=True).stdout
    mine = words(" ".join(f"{title} {text}" for title, text in roff.sections(page)))
    theirs = words(shown)
    extra = words("demo 1 General Commands Manual demo 1 Longbird 2026 01 01 demo 1")
    extra += words("o")  # a bullet
    assert not mine - theirs - words("https example org a link")  # it may be set as <...>
    assert not theirs - mine - extra


@pytest.mark.parametrize("text", ["", "demo", "demo - ", "- what"], ids=repr)
def test_name_lines_without_a_summary(text: str) -> None:
    assert roff.name_line(text) is None


@pytest.mark.parametrize("mark", ["-", "--", "\N{EM DASH}", "\N{EN DASH}"])
def test_name_lines(mark: str) -> None:
    assert roff.name_line(f"a::b,\n c {mark} x - y") == (["a::b", "c"], "x - y")


@pytest.mark.parametrize(
    "source",
    ["", ".", "'", ".TH", ".TH x\n", ".TH x\n.SH", ".TH x\n.SH A\n.TS\nl.", ".TH x\n.de", "\\"],
    ids=repr,
)
def test_broken_pages(source: str) -> None:
    assert "".join(text for _, text in roff.sections(source)) == ""


def test_pages_that_point_to_another() -> None:
    assert roff.sections(".so man7/queue.7\n") == []
