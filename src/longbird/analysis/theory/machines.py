"""Turing machines: a small language to write them in, and their direct simulation.

A machine is a text file. A line that begins with `#` is a comment; every other line is a setting
or a transition:

    # The state that it starts in, on the first symbol of the input.
    start: right
    # The states that it stops in; may be left out.
    halt: done
    # What is on every cell that was never written.
    blank: _
    # What it runs on if nothing else is given; may be left out.
    input: 1011
    # All its states, and all its symbols, so that others are mistakes; may be left out.
    states: right done
    symbols: 0 1 _
    # In `right` on a 1: write 1, move right, go on in `right`.
    right 1 -> 1 R right
    right _ -> 1 S done

A move is L, R or S (stay). The tape has no end on either side. Where there is no transition the
machine stops, as in a state that is named by `halt`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn

from longbird.errors import InvalidValueError

PROGRAMS = Path(__file__).with_name("programs")
MOVES = {"L": -1, "S": 0, "R": 1}
BEGIN = "before the input"
"""A decoder's first state, left of the input: it moves right, into the machine's own first."""

SETTING = re.compile(r"(start|halt|blank|input|states|symbols)\s*:(.*)")


class Transition(NamedTuple):
    """What a machine does in a state on a symbol."""

    write: str
    move: int
    state: str


class Configuration(NamedTuple):
    """A machine between two steps: its state, the symbol under its head, and the head's cell."""

    state: str
    symbol: str
    cell: int


@dataclass(frozen=True)
class Machine:
    r"""A Turing machine with one tape, which goes on without end on both sides.

    Attributes:
        states: Its states, in the order in which they are met.
        symbols: Its symbols, the blank first.
        start: The state that it starts in.
        halts: The states that it stops in.
        table: What it does, for each state and symbol; where there is nothing it stops.
        usual_input: What it runs on if nothing else is given.
        name: What messages and pictures call it.

    Examples:
        >>> machine = Machine.parse("start: go\nblank: _\ngo 0 -> 1 R go\ngo 1 -> 0 R go")
        >>> [tuple(step) for step in machine.simulate("01", 9)]
        [('go', '0', 0), ('go', '1', 1), ('go', '_', 2)]
        >>> machine.tape_after("01", 9)
        {0: '1', 1: '0'}
    """

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    start: str
    halts: frozenset[str]
    table: Mapping[tuple[str, str], Transition]
    usual_input: str = ""
    name: str = "machine"

    @property
    def blank(self) -> str:
        """What is on every cell that was never written."""
        return self.symbols[0]

    @staticmethod
    def parse(text: str, name: str = "machine") -> Machine:
        """The machine that a text describes.

        Args:
            text: The description, as at the top of this module.
            name: What errors call the text: the name of its file.

        Raises:
            ValueError: The text is not a machine; the message has the number of the line.
        """
        return _Parser(name).parse(text)

    @staticmethod
    def load(source: str | Path) -> Machine:
        """A machine from a file, or a built-in one by its name.

        Raises:
            ValueError: There is no such file or machine, or the file is not a machine.

        Examples:
            >>> Machine.load("increment").states
            ('right', 'carry', 'done')
        """
        path = Path(source)
        if str(source) in built_in():
            path = PROGRAMS / f"{source}.tm"
        elif not path.is_file():
            raise InvalidValueError(
                f"there is no machine {str(source)!r}; expected a text file that describes one, "
                f"or one of {', '.join(built_in())}"
            )
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidValueError(f"{path} is not a machine: it is not text in UTF-8") from None
        return Machine.parse(text, str(source))

    def read(self, text: str | Sequence[str] | None = None) -> tuple[str, ...]:
        """The symbols of an input: its characters, or its words if it has spaces.

        A single word that is a symbol is that symbol.

        Raises:
            ValueError: It has a symbol that the machine does not know, or can be read both ways.
        """
        text = self.usual_input if text is None else text
        symbols = self._split(text) if isinstance(text, str) else tuple(text)
        for place, symbol in enumerate(symbols):
            if symbol not in self.symbols:
                raise InvalidValueError(
                    f"the input of {self.name} has {symbol!r} at position {place}; expected the "
                    f"symbols {' '.join(self.symbols)}, with spaces between them if one has more "
                    "than one character"
                )
        return symbols

    def _split(self, text: str) -> tuple[str, ...]:
        words = tuple(text.split())
        if len(words) != 1:
            return words
        (word,) = words
        if word not in self.symbols:
            return tuple(word)
        if len(word) > 1 and set(word) <= set(self.symbols):
            raise InvalidValueError(
                f"the input {word!r} of {self.name} is a symbol, and so are its characters; give "
                "its symbols as a list, or use other symbols"
            )
        return words

    def transition(self, state: str, symbol: str) -> Transition:
        """What it does in a state on a symbol; where it stops, it stays as it is."""
        return self.table.get((state, symbol), Transition(symbol, 0, state))

    def simulate(
        self, text: str | Sequence[str] | None = None, steps: int = 1000
    ) -> Iterator[Configuration]:
        """The configurations from the first on: at most `steps` steps, fewer if it halts."""
        tape = dict(enumerate(self.read(text)))
        return self._run(tape, steps)

    def tape_after(
        self, text: str | Sequence[str] | None = None, steps: int = 1000
    ) -> dict[int, str]:
        """What is on the cells that are not blank, when it halts or after `steps` steps."""
        tape = dict(enumerate(self.read(text)))
        for _ in self._run(tape, steps):
            pass
        return {cell: symbol for cell, symbol in sorted(tape.items()) if symbol != self.blank}

    def _run(self, tape: dict[int, str], steps: int) -> Iterator[Configuration]:
        state, cell = self.start, 0
        for _ in range(steps):
            symbol = tape.get(cell, self.blank)
            yield Configuration(state, symbol, cell)
            if (state, symbol) not in self.table:
                return
            tape[cell], move, state = self.table[state, symbol]
            cell += move
        yield Configuration(state, tape.get(cell, self.blank), cell)


def built_in() -> dict[str, str]:
    """The machines that come along: for each name, what the machine does."""
    return {
        path.stem: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for path in sorted(PROGRAMS.glob("*.tm"))
    }


class _Parser:
    """Reads a description line by line; errors name the line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.settings: dict[str, tuple[int, list[str]]] = {}
        self.table: dict[tuple[str, str], Transition] = {}
        self.lines: dict[tuple[str, str], int] = {}

    def parse(self, text: str) -> Machine:
        text = text.removeprefix("\ufeff")
        if not text.strip():
            raise InvalidValueError(f"{self.name} is empty; expected settings and transitions")
        for number, line in enumerate(text.splitlines(), start=1):
            line = line.strip()
            if line and not line.startswith("#"):
                self._read(number, line)
        start, blank = self._one("start"), self._one("blank")
        halts = self.settings.get("halt", (0, []))[1]
        if not self.table:
            raise InvalidValueError(f"{self.name} has no transitions; {_A_TRANSITION}")
        self._check_halts(halts)
        if "states" in self.settings:
            declared = set(self.settings["states"][1])
            for state in halts:
                self._check_known("state", state, declared, self.settings["halt"][0])
        working = {state for state, _ in self.table}
        known = (working | set(halts)) & set(self._declared("states", working | set(halts)))
        self._check_known("state", start, known, self.settings["start"][0])
        for pair, then in self.table.items():
            for state in (pair[0], then.state):
                self._check_known("state", state, known, self.lines[pair])
        symbols = dict.fromkeys([blank])
        for pair, then in self.table.items():
            symbols |= dict.fromkeys([pair[1], then.write])
        symbols = dict.fromkeys([*symbols, *self._declared("symbols", ())])
        if "symbols" in self.settings:
            declared = set(self._declared("symbols", ()))
            self._check_known("symbol", blank, declared, self.settings["blank"][0])
            for pair, then in self.table.items():
                for symbol in (pair[1], then.write):
                    self._check_known("symbol", symbol, declared, self.lines[pair])
        states = dict.fromkeys([start, *(state for state, _ in self.table), *halts])
        line, words = self.settings.get("input", (0, []))
        machine = Machine(
            states=tuple(states),
            symbols=tuple(symbols),
            start=start,
            halts=frozenset(halts),
            table=self.table,
            usual_input=" ".join(words),
            name=self.name,
        )
        try:
            machine.read()
        except ValueError as error:
            raise InvalidValueError(f"{self.name}, line {line}: {error}") from None
        return machine

    def _read(self, number: int, line: str) -> None:
        words = line.split()
        is_transition = len(words) == 6 and words[2] == "->"
        has_move = is_transition and words[4] in MOVES
        setting = SETTING.fullmatch(line)
        if setting and not has_move:
            if setting[1] in self.settings:
                first = self.settings[setting[1]][0]
                self._fail(number, f"{setting[1]!r} was already given in line {first}")
            words = setting[2].split()
            if setting[1] in ("start", "halt", "states"):
                for word in words:
                    if word.startswith("#"):
                        self._fail(
                            number,
                            f"{word!r} cannot be a state; {_A_COMMENT}",
                        )
            self.settings[setting[1]] = number, words
            return
        if words[2:3] == ["->"] and len(words) > 6 and words[6].startswith("#"):
            self._fail(number, f"{words[6]!r} is behind a transition; {_A_COMMENT}")
        if not is_transition:
            self._fail(number, f"{line!r} is neither a setting nor a transition; {_A_TRANSITION}")
        state, symbol, _, write, move, then = words
        if move not in MOVES:
            self._fail(number, f"the move is {move!r}, expected L, R or S")
        if (state, symbol) in self.table:
            first = self.lines[state, symbol]
            self._fail(number, f"line {first} already says what happens in {state} on {symbol}")
        self.table[state, symbol] = Transition(write, MOVES[move], then)
        self.lines[state, symbol] = number

    def _one(self, setting: str) -> str:
        if setting not in self.settings:
            raise InvalidValueError(f"{self.name} has no line '{setting}: ...', which is needed")
        line, words = self.settings[setting]
        if len(words) != 1:
            comment = f"; {_A_COMMENT}" if any(word.startswith("#") for word in words) else ""
            self._fail(line, f"{setting!r} takes one word, received {len(words)}{comment}")
        return words[0]

    def _declared(self, setting: str, otherwise: Sequence[str] | set[str]) -> list[str]:
        return self.settings[setting][1] if setting in self.settings else list(otherwise)

    def _check_halts(self, halts: Sequence[str]) -> None:
        for (state, _), line in self.lines.items():
            if state in halts:
                self._fail(line, f"{state!r} is a halt state, so that it has no transitions")

    def _check_known(self, kind: str, name: str, known: set[str], line: int) -> None:
        if name in known:
            return
        nearest = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        if kind == "state" and "states" not in self.settings:
            self._fail(line, f"state {name!r} has no transitions and is not named by 'halt'{hint}")
        why = f"is not among the {kind}s of line {self.settings[kind + 's'][0]}"
        if kind == "state" and name in self.settings["states"][1]:
            why = "has no transitions and is not named by 'halt'"
        self._fail(line, f"{kind} {name!r} {why}{hint}")

    def _fail(self, line: int, problem: str) -> NoReturn:
        raise InvalidValueError(f"{self.name}, line {line}: {problem}")


_A_COMMENT = "a comment needs a line of its own"
_A_TRANSITION = "a transition is 'state symbol -> symbol move state', as in 'right 1 -> 0 L carry'"
