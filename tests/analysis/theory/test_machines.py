from __future__ import annotations

import pytest

from longbird.analysis.theory import machines
from longbird.analysis.theory.machines import Machine, built_in

GOOD = """
# Turns a into b and halts on the first blank.
start: go
halt: end
blank: _
input: aab
go a -> b R go
go b -> b R go
go _ -> _ L end
"""


def test_a_machine_is_read() -> None:
    machine = Machine.parse(GOOD)
    assert machine.states == ("go", "end")
    assert machine.symbols == ("_", "a", "b")
    assert machine.halts == {"end"}
    assert machine.blank == "_"
    assert machine.table["go", "a"] == ("b", 1, "go")
    assert machine.tape_after() == dict(enumerate("bbb"))
    assert [tuple(each) for each in machine.simulate("a")] == [
        ("go", "a", 0),
        ("go", "_", 1),
        ("end", "b", 0),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("go a -> b R go", "go a -> b R", r"line 7: 'go a -> b R' is neither .* transition"),
        ("go a -> b R go", "go a b R go", r"line 7: .* is neither"),
        ("go a -> b R go", "go a -> b X go", r"line 7: the move is 'X', expected L, R or S"),
        ("go a -> b R go", "go a -> b R goo", r"line 7: state 'goo' has no transitions .* 'go'\?"),
        ("go a -> b R go", "go b -> b R go", r"line 8: line 7 already says"),
        (
            "halt: end",
            "halt: end # here",
            r"line 4: '#' cannot be a state; a comment needs a line",
        ),
        ("go a -> b R go", "end a -> b R go", r"line 7: 'end' is a halt state"),
        ("start: go", "start: begin", r"line 3: state 'begin' has no transitions"),
        ("start: go", "start: go end", r"line 3: 'start' takes one word, received 2"),
        ("blank: _", "blank: _ # nothing", r"line 5: .* received 3; a comment needs a line"),
        ("go a -> b R go", "go a -> b R go # on", r"line 7: '#' is behind .* needs a line"),
        ("start: go", "blank: _", r"line 5: 'blank' was already given in line 3"),
        ("start: go", "", r"has no line 'start: ...'"),
        ("blank: _", "", r"has no line 'blank: ...'"),
        ("input: aab", "input: abc", r"line 6: the input .* has 'c' at position 2"),
        ("input: aab", "symbols: _ a", r"line 7: symbol 'b' is not among the symbols of line 6"),
        ("input: aab", "symbols: a b", r"line 5: symbol '_' is not among the symbols of line 6"),
        ("input: aab", "states: go", r"line 4: state 'end' is not among the states of line 6"),
    ],
)
@pytest.mark.fast_cases(17)
def test_mistakes_name_their_line(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"my.tm,? {message}"):
        Machine.parse(GOOD.replace(old, new), "my.tm")


def test_a_machine_without_transitions_is_refused() -> None:
    with pytest.raises(ValueError, match="no transitions; a transition is"):
        Machine.parse("start: a\nblank: _")


def test_symbols_of_several_characters() -> None:
    machine = Machine.parse("start: q\nblank: []\nq x1 -> # L q\nq # -> x1 L q\nq [] -> [] S q")
    assert machine.read("x1 # x1") == ("x1", "#", "x1")
    assert machine.read("x1") == ("x1",)
    assert machine.read("") == ()
    with pytest.raises(ValueError, match="spaces between them"):
        machine.read("x1#")


def test_an_arrow_is_a_symbol() -> None:
    machine = Machine.parse("start: a\nblank: ->\nsymbols: -> 0\na -> -> 0 R a\na 0 -> -> L a")
    assert machine.symbols == ("->", "0")
    assert machine.table["a", "->"] == ("0", 1, "a")
    machine = Machine.parse("start: a\nblank: 0\nsymbols: 0 -> 1 _ x\na 0 -> 1 R a")
    assert set(machine.symbols) == {"0", "->", "1", "_", "x"}


def test_an_input_that_can_be_read_in_two_ways() -> None:
    machine = Machine.parse("start: a\nblank: _\nsymbols: _ 1 11\na 1 -> 11 R a")
    assert machine.read("1") == ("1",)
    assert machine.read("1 11") == ("1", "11")
    assert machine.read(["11"]) == ("11",)
    assert machine.read("111") == ("1", "1", "1")
    with pytest.raises(ValueError, match="is a symbol, and so are its characters"):
        machine.read("11")


def test_marks_and_empty_files() -> None:
    assert Machine.parse("\ufeff" + GOOD).states == ("go", "end")
    with pytest.raises(ValueError, match=r"my\.tm is empty"):
        Machine.parse(" \n", "my.tm")


def test_it_stops_where_there_is_no_transition() -> None:
    machine = Machine.parse("start: q\nblank: 0\nq 0 -> 1 R r\nr 0 -> 1 L q")
    assert [each.state for each in machine.simulate(steps=99)] == ["q", "r", "q"]


@pytest.mark.parametrize(("states", "steps", "ones"), [(2, 6, 4), (3, 21, 5), (4, 107, 13)])
def test_busy_beavers(states: int, steps: int, ones: int) -> None:
    machine = Machine.load(f"busy-beaver-{states}")
    run = list(machine.simulate())
    assert len(run) - 1 == steps
    assert run[-1].state == "H"
    assert len(machine.tape_after()) == ones


def test_increment_and_palindrome() -> None:
    increment, palindrome = Machine.load("increment"), Machine.load("palindrome")
    for number in range(40):
        tape = increment.tape_after(f"{number:b}")
        assert int("".join(tape.values()), 2) == number + 1
    for number in range(64):
        word = f"{number:b}".replace("0", "a").replace("1", "b")
        *_, last = palindrome.simulate(word)
        assert last.state == ("yes" if word == word[::-1] else "no")


def test_loading(tmp_path) -> None:
    (tmp_path / "mine.tm").write_text(GOOD, encoding="utf-8")
    assert Machine.load(tmp_path / "mine.tm").table == Machine.parse(GOOD).table
    assert set(built_in()) >= {"increment", "palindrome", "busy-beaver-4"}
    with pytest.raises(ValueError, match="or one of busy-beaver-2"):
        Machine.load("increments")
    (tmp_path / "binary.tm").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not text in UTF-8"):
        Machine.load(tmp_path / "binary.tm")


def test_the_example_of_the_module_is_a_machine() -> None:
    lines = (machines.__doc__ or "").splitlines()
    example = "\n".join(line for line in lines if line.startswith("    "))
    assert Machine.parse(example).states == ("right", "done")
