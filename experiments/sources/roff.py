"""The text of a manual page in roff, with the macros of man(7) or of Perl's pod2man.

The result is what a reader sees, without the layout: a paragraph is a line, and code keeps its
lines.
Unknown macros are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

JOINED = {"BI", "BR", "IB", "IR", "RB", "RI"}
"""Macros whose arguments alternate between two fonts, without spaces between them."""
SPACED = {"B", "I", "R", "SB", "SM", "UR", "MT", "SY", "OP"}
"""Macros whose arguments are text."""
BREAKS = {
    "PP", "P", "LP", "TP", "TQ", "HP", "IP", "SS", "Sp", "sp", "br", "RS", "RE", "in", "ti", "nf",
    "fi", "EX", "EE", "Vb", "Ve", "YS",
}  # fmt: skip
"""Macros that end a line of text."""
VERBATIM = {"nf": True, "EX": True, "Vb": True, "fi": False, "EE": False, "Ve": False}
"""Macros after which lines are kept as they are, or no longer."""
CHARACTERS = {
    "aq": "'", "dq": '"', "lq": "\N{LEFT DOUBLE QUOTATION MARK}",
    "rq": "\N{RIGHT DOUBLE QUOTATION MARK}", "oq": "'", "cq": "'", "em": "--", "en": "-",
    "hy": "-", "mi": "-", "bu": "*", "ha": "^", "ti": "~", "rs": "\\", "ga": "`", "co": "(c)",
    "rg": "(R)", "tm": "(TM)", "+-": "+-", "mu": "x", "->": "->", "<-": "<-", ">=": ">=",
    "<=": "<=", "!=": "!=", "de": "\N{DEGREE SIGN}", "12": "1/2", "14": "1/4", "34": "3/4",
    "if": "infinity", "*p": "pi", "at": "@", "sh": "#", "or": "|", "ba": "|", "sl": "/",
    "lB": "[", "rB": "]", "lC": "{", "rC": "}", "ss": "\N{LATIN SMALL LETTER SHARP S}",
    ":a": "\N{LATIN SMALL LETTER A WITH DIAERESIS}",
    ":o": "\N{LATIN SMALL LETTER O WITH DIAERESIS}",
    ":u": "\N{LATIN SMALL LETTER U WITH DIAERESIS}",
    "'e": "\N{LATIN SMALL LETTER E WITH ACUTE}",
}  # fmt: skip
r"""What `\(xx` and `\[xx]` stand for."""
STRINGS = {
    "--": "--", 'L"': '"', 'R"': '"', "C+": "C++", "Aq": "'", "PI": "pi", "lq": '"', "rq": '"',
}  # fmt: skip
r"""What `\*(xx` stands for; those that pod2man defines."""
ESCAPE = re.compile(
    r"""\\(?:
      f(?:\[[^]]*\]|\(..|.) | s(?:\[[^]]*\]|[-+]?\d|\([-+]?..) | [mFgkMnVY](?:\[[^]]*\]|\(..|.)
    | [hvwobDlLXZN]'[^']*' | \*(?:\[(?P<string>[^]]*)\]|\((?P<str>..)|.)
    | \((?P<char>..) | \[(?P<character>[^]]*)\] | (?P<comment>["\#].*) | (?P<one>.) | $
    )""",
    re.VERBOSE,
)
ONE = {"e": "\\", "~": " ", "0": " ", "t": "\t"} | {each: each for each in "-\\ .'`"}
"""What a backslash and one character stand for, if for anything."""
NAME_AND_SUMMARY = re.compile(r"\s+(?:-+|\N{EN DASH}|\N{EM DASH})\s+")


def sections(source: str) -> list[tuple[str, str]]:
    r"""Return the sections of a page, each with its title and its text.

    Examples:
        >>> sections(".TH ls 1\n.SH NAME\nls \\- list\n.SH USE\nType\n.BR ls (1)\nto\nlist.\n")
        [('NAME', 'ls - list'), ('USE', 'Type ls(1) to list.')]
    """
    return [(title, "\n".join(lines).strip("\n")) for title, lines in _sections(source)]


def name_line(text: str) -> tuple[list[str], str] | None:
    """Return the names of a page and its summary from the section NAME, or None.

    Examples:
        >>> name_line("open, creat - open a file")
        (['open', 'creat'], 'open a file')
    """
    names, *summary = NAME_AND_SUMMARY.split(" ".join(text.split()), maxsplit=1)
    if not summary or not summary[0].strip():
        return None
    return [name.strip() for name in names.split(",") if name.strip()], summary[0].strip()


def unescaped(text: str) -> str:
    r"""Return a text without escapes.

    Examples:
        >>> unescaped(r"\fBls\fR \-l \(aqa\(aq \*(Aqb\*(Aq")
        "ls -l 'a' 'b'"
    """

    def character(found: re.Match[str]) -> str:
        if (name := found["char"] or found["character"]) is not None:
            if re.fullmatch("u[0-9A-F]{4,6}", name):
                return chr(int(name[1:], 16)) if int(name[1:], 16) < 0x110000 else ""
            return CHARACTERS.get(name, "")
        if (name := found["string"] or found["str"]) is not None:
            return STRINGS.get(name, "")
        return ONE.get(found["one"] or "", "")

    return ESCAPE.sub(character, text)


def _sections(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yield titles with lines."""
    title, lines = "", _Lines()
    for macro, text in _requests(source):
        if macro == "SH":
            if title:
                yield title, lines.all()
            title, lines = text, _Lines()
        else:
            lines.take(macro, text)
    if title:
        yield title, lines.all()


class _Lines:
    """The lines of a section while they are assembled."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.open: list[str] = []
        self.verbatim = False

    def take(self, macro: str, text: str) -> None:
        if macro in BREAKS or (self.verbatim and not macro):
            self.end()
            self.verbatim = VERBATIM.get(macro, self.verbatim)
        if macro in ("", *SPACED, *JOINED):
            if self.verbatim:
                self.done.append(text.rstrip())
            elif text.strip():
                self.open.append(text.strip())
            else:
                self.end()
        elif macro in ("IP", "SS") and text:
            self.done.append(text)

    def end(self) -> None:
        if self.open:
            self.done.append(" ".join(self.open))
        self.open = []

    def all(self) -> list[str]:
        self.end()
        return self.done


def _requests(source: str) -> Iterator[tuple[str, str]]:
    """Yield macros with their text, and "" with lines of text, from the title of the page on."""
    title = re.search(r"^\.TH\b.*\n", source, re.MULTILINE)
    body = source[title.end() :] if title else ""
    lines = iter(body.replace("\\\n", "").split("\n"))
    for line in lines:
        yield from _request(line, lines)


def _request(line: str, lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    if line[:1] not in (".", "'"):
        yield "", unescaped(line)
        return
    macro, _, rest = line[1:].strip().partition(" ")
    if macro in ("de", "ig", "am"):
        _skip_to(r"\.\.", lines)
    elif macro == "TS":
        yield from _table(lines)
    elif macro in ("if", "ie"):
        condition, _, rest = rest.strip().partition(" ")
        if rest.strip().startswith("\\{"):
            _skip_to(r".*\\\}", lines)
        elif condition == "n":
            yield from _request(rest.strip(), lines)
    elif macro.startswith("el") and "\\{" in line:
        _skip_to(r".*\\\}", lines)
    elif macro == "IP":
        yield macro, " ".join(_arguments(rest)[:1])
    elif macro in JOINED:
        yield macro, "".join(_arguments(rest))
    elif macro in SPACED or macro in ("SH", "SS"):
        yield macro, " ".join(_arguments(rest))
    elif macro in BREAKS:
        yield macro, ""


def _skip_to(end: str, lines: Iterator[str]) -> None:
    for line in lines:
        if re.match(end, line):
            return


def _arguments(text: str) -> list[str]:
    r"""Return the arguments of a macro: words, or quoted strings with doubled quotes."""
    text = re.sub(r'(?<!\\\*\([LR])\\".*', "", text)  # a remark, unless it is part of \*(L"
    found = re.findall(r'"((?:[^"]|"")*)(?:"|$)|((?:\\.|[^\s"\\]|(?<=\S)")+)', text)
    return [unescaped((quoted or word).replace('""', '"')) for quoted, word in found]


def _table(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Return the rows of a table, whose cells are separated by tabs, one line each."""
    in_format = True
    yield "br", ""
    for line in lines:
        if line.startswith(".TE"):
            break
        if in_format:
            in_format = not line.rstrip().endswith(".")
        elif line.startswith(".T&"):
            in_format = True
        elif line.strip() in ("_", "=", "T{", "T}") or line.startswith('.\\"'):
            continue
        elif line.startswith("."):
            yield from _request(line, lines)
        else:
            yield "", unescaped(re.sub(r"T[{}]", "", line)).replace("\t", " ")
            yield "br", ""
    yield "br", ""
