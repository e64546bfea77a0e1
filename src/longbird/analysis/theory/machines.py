"""Turing machines: a small language for their description, and direct simulation.

A machine is a text file. A line that begins with `#` is a comment; every other line is a setting
or a transition:

    # Initial state; the head is on the first symbol of the input.
    start: right
    # Halt states (optional).
    halt: done
    # Symbol on every cell that has not been written.
    blank: _
    # Default input (optional).
    input: 1011
    # All states and all symbols, so that others are reported as errors (optional).
    states: right done
    symbols: 0 1 _
    # In state `right` on symbol 1: write 1, move right, stay in state `right`.
    right 1 -> 1 R right
    right _ -> 1 S done

A move is L, R or S (stay). The tape is infinite in both directions. The machine stops if there is
no transition, as in halt states.
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
"""First state of a decoder, left of the input, from which it moves into the initial state."""

SETTING = re.compile(r"(start|halt|blank|input|states|symbols)\s*:(.*)")


class Transition(NamedTuple):
    """The action of a machine in a state on a symbol."""

    write: str
    move: int
    state: str


class Configuration(NamedTuple):
    """A machine between two steps: its state, the symbol under its head, and the cell."""

    state: str
    symbol: str
    cell: int


@dataclass(frozen=True)
class Machine:
    r"""A Turing machine with one tape, which is infinite in both directions.

    Attributes:
        states: States in the order of their appearance.
        symbols: Symbols, with the blank first.
        start: Initial state.
        halts: Halt states.
        table: Transitions by state and symbol; the machine stops if there is none.
        usual_input: Default input.
        name: Name in messages and pictures.

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
        """Symbol on every cell that has not been written."""
        return self.symbols[0]

    @staticmethod
    def parse(text: str, name: str = "machine") -> Machine:
        """Return the machine that a text describes.

        Args:
            text: Description in the format of this module.
            name: Name of the text in error messages.

        Raises:
            ValueError: The text does not describe a machine; the message has the line number.
        """
        return _Parser(name).parse(text)

    @staticmethod
    def load(source: str | Path) -> Machine:
        """Return a machine from a file, or a built-in machine by its name.

        Raises:
            ValueError: There is no such file or machine, or the file does not describe a machine.

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
        """Return the symbols of an input: its characters, or its words if it has spaces.

        A single word that is a symbol is that symbol.

        Raises:
            ValueError: A symbol is unknown, or the input is ambiguous.
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
        """Return the transition in a state on a symbol; if there is none, nothing changes."""
        return self.table.get((state, symbol), Transition(symbol, 0, state))

    def simulate(
        self, text: str | Sequence[str] | None = None, steps: int = 1000
    ) -> Iterator[Configuration]:
        """Yield the configurations of at most `steps` steps, from the first on."""
        tape = dict(enumerate(self.read(text)))
        return self._run(tape, steps)

    def tape_after(
        self, text: str | Sequence[str] | None = None, steps: int = 1000
    ) -> dict[int, str]:
        """Return the cells that are not blank when it halts or after `steps` steps."""
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
    """Return the built-in machines: names, and what each machine does."""
    return {
        path.stem: path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for path in sorted(PROGRAMS.glob("*.tm"))
    }


class _Parser:
    """Parses a description line by line; errors have the line number."""

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
