from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import longbird as lb
from longbird.analysis.theory import decoder_parts, nodes, turing
from longbird.analysis.theory.decoder_parts import first_node, places
from longbird.analysis.theory.machines import Machine, built_in
from longbird.analysis.theory.pictures import draw_run
from longbird.analysis.theory.turing import Decoder


def random_machine(seed: int) -> tuple[Machine, str]:
    """A machine of any table, with all moves, and an input."""
    draw = random.Random(seed)
    states = [f"q{k}" for k in range(draw.randint(1, 5))]
    symbols = "_abc"[: draw.randint(2, 4)]
    lines = [f"start: {states[0]}", "blank: _", "halt: end"]
    for state in states:
        for k, symbol in enumerate(symbols):
            if k and draw.random() < 0.1:
                continue  # it stops there
            then = "end" if draw.random() < 0.04 else draw.choice(states)
            lines.append(
                f"{state} {symbol} -> {draw.choice(symbols)} {draw.choice('LRSLR')} {then}"
            )
    text = "".join(draw.choice(symbols) for _ in range(draw.randint(0, 12)))
    return Machine.parse("\n".join([*lines, f"symbols: {' '.join(symbols)}"])), text


# ---- right ones ----


@pytest.mark.parametrize("name", built_in())
def test_built_in_machines_agree_with_the_simulation(name: str) -> None:
    Decoder(Machine.load(name)).run(steps=40).raise_if_failed()


@pytest.mark.parametrize(
    ("name", "text", "steps", "state", "tape"),
    [
        ("increment", "111", 8, "done", "1000"),
        ("increment", "", 2, "done", "1"),
        ("palindrome", "abaaba", 28, "yes", ""),
        ("palindrome", "ab", 4, "no", "b"),
        ("busy-beaver-2", "", 6, "H", "1111"),
        ("busy-beaver-3", "", 21, "H", "11111"),
    ],
)
def test_what_machines_compute(name: str, text: str, steps: int, state: str, tape: str) -> None:
    run = Decoder(Machine.load(name)).run(text).raise_if_failed()
    assert run.halted
    assert run.steps == steps
    assert run.configurations[-1].state == state
    assert "".join(run.tape().values()) == tape
    assert run.tape() == Machine.load(name).tape_after(text)
    assert run.nodes == (steps + 1) * (steps + 2) // 2


@pytest.mark.fast_cases(12)
@pytest.mark.parametrize("seed", range(60))
def test_random_machines_agree_with_the_simulation(seed: int) -> None:
    machine, text = random_machine(seed)
    Decoder(machine).run(text, steps=30).raise_if_failed()


@pytest.mark.slow  # a hundred machines
def test_random_machines_are_worth_running() -> None:
    runs = [
        Decoder(machine).run(text, steps=12) for machine, text in map(random_machine, range(12))
    ]
    assert any(run.halted for run in runs)
    assert not all(run.halted for run in runs)
    moves = {
        b.cell - a.cell
        for run in runs
        for a, b in zip(run.configurations, run.configurations[1:], strict=False)
    }
    assert moves == {-1, 0, 1}
    assert min(each.cell for run in runs for each in run.configurations) < -1
    assert {turing.INPUT, turing.BLANK} < {source for run in runs for source in run.sources}


@pytest.mark.slow  # a hundred thousand nodes take ten seconds
def test_a_hundred_thousand_nodes() -> None:
    run = Decoder(Machine.load("busy-beaver-5")).run(steps=447).raise_if_failed()
    assert run.steps == 447
    assert run.nodes == 100_576
    assert run.most_edges == 2


def test_the_number_of_edges_a_node_does_not_grow() -> None:
    for steps in (5, 30):
        assert Decoder(Machine.load("palindrome")).run("ab" * 20, steps=steps).most_edges == 3


def test_the_graph_sees_backwards_alone() -> None:
    nodes = np.arange(first_node(30))
    graph = lb.Edges(turing.self_edges(nodes))
    mask = graph.mask(len(nodes))[0]
    assert not np.triu(mask, 1).any()
    assert mask.sum(1).max() == 2


def test_places_of_nodes() -> None:
    expected = [(t, k) for t in range(60) for k in range(t + 1)]
    assert np.stack(places(np.arange(len(expected))), 1).tolist() == [list(e) for e in expected]
    far = np.array([first_node(10**7) - 1, first_node(10**7)])
    assert places(far)[0].tolist() == [10**7 - 1, 10**7]


def test_softmax_is_hardmax_at_this_scale() -> None:
    assert torch.tensor(-decoder_parts.HARD, dtype=torch.float64).exp() == 0


def test_small_cases() -> None:
    run = Decoder(Machine.load("increment")).run("1", steps=0).raise_if_failed()
    assert run.steps == 0
    assert run.nodes == 1
    assert not run.halted
    halting = Machine.parse("start: end\nhalt: end\nblank: _\ngo _ -> _ R end")
    assert Decoder(halting).run().raise_if_failed().halted
    assert Decoder(halting).run(steps=10**7).steps == 0
    with pytest.raises(ValueError, match="choose fewer steps"):
        Decoder(Machine.load("busy-beaver-5")).run(steps=10**7)


def test_a_machine_without_a_line_is_stuck() -> None:
    table = "blank: _\nright 1 -> 1 R right\nright _ -> 1 S done"
    run = Decoder(Machine.parse(f"start: right\nhalt: done\nsymbols: _ 0 1\n{table}")).run("10")
    assert run.ok
    assert run.halted
    assert run.stuck
    assert "is stuck in right" in str(run)
    assert "no line for right on 0" in str(run)
    # If no halt state is named, this is how it halts.
    table = table.replace("S done", "S right")
    run = Decoder(Machine.parse(f"start: right\nsymbols: _ 0 1\n{table}")).run("10")
    assert run.halted
    assert not run.stuck
    assert "halts in right" in str(run)


def test_many_states_take_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longbird.core.machine.available_bytes", lambda: 10_000)
    with pytest.raises(ValueError, match="choose a machine with fewer states"):
        Decoder(Machine.load("palindrome"))


def test_many_nodes_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turing, "AT_ONCE", 50)
    assert Decoder(MACHINE).run(TEXT, steps=25).raise_if_failed().nodes == 351


def test_a_large_table() -> None:
    """A counter over 30 states and 20 symbols of several characters, to the left and back."""
    symbols = [f"s{k}" for k in range(20)]
    lines = ["start: q0", "blank: s0"]
    for q in range(30):
        for k, symbol in enumerate(symbols):
            move = "LRS"[(q * k + q) % 3]
            lines.append(f"q{q} {symbol} -> s{(k * 7 + q) % 20} {move} q{(q * 11 + k) % 30}")
    run = Decoder(Machine.parse("\n".join(lines))).run("s3 s19 s4 s4", steps=40)
    assert run.raise_if_failed().steps == 40


# ---- wrong ones ----


MACHINE, TEXT = Machine.load("palindrome"), "abbabba"


def test_the_right_decoder_for_the_tests_below() -> None:
    assert Decoder(MACHINE).run(TEXT, steps=25).ok


def newest_first(nodes: np.ndarray) -> np.ndarray:
    steps, place = places(nodes)
    scan, back = nodes[place > 0], (steps - place)[place > 0]
    records = np.stack([scan, back * (back + 1) // 2], axis=1)
    return np.concatenate([np.stack([nodes, nodes], axis=1), records])


def one_late(nodes: np.ndarray) -> np.ndarray:
    """T(k) for T(k - 1)."""
    _, k = places(nodes)
    scan = np.stack([nodes, k * (k + 1) // 2], axis=1)[k > 0]
    return np.concatenate([np.stack([nodes, nodes], axis=1), scan])


@pytest.mark.parametrize("edges", [newest_first, one_late])
def test_wrong_edges_are_caught(edges, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turing, "self_edges", edges)
    assert not Decoder(MACHINE).run(TEXT, steps=25).ok


def test_wrong_edges_to_the_input_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = turing.cross_edges
    monkeypatch.setattr(turing, "cross_edges", lambda nodes, cells: right(nodes, cells - 1))
    assert not Decoder(MACHINE).run(TEXT, steps=25).ok


def test_compute_nodes_in_the_wrong_places_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's g(i + 1) - g(i) marks 2, 5, 9 instead of 0, 1, 3, 6."""
    right = turing.places

    def wrong(nodes: np.ndarray):
        steps, place = right(nodes)
        return steps, np.where(place == steps, 0, place + 1)

    monkeypatch.setattr(turing, "places", wrong)
    assert not Decoder(MACHINE).run(TEXT, steps=25).ok


def test_one_missing_edge_is_caught_when_all_nodes_run_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Decoding is then right, but is not what the graph gives."""
    decoder = Decoder(MACHINE)
    sources = decoder.run(TEXT, steps=25).sources
    step = max(step for step, source in enumerate(sources) if 0 <= source < step - 1)
    node = first_node(step) + sources[step] + 2  # the scan node that finds the last write
    right = turing.self_edges

    def wrong(nodes: np.ndarray) -> np.ndarray:
        edges = right(nodes)
        missing = (edges[:, 0] == node) & (edges[:, 1] != node)
        return edges[~missing] if len(nodes) > 100 else edges

    monkeypatch.setattr(turing, "self_edges", wrong)
    assert decoder.run(TEXT, steps=25, at_once=False).ok
    assert f"node {node} " in (decoder.run(TEXT, steps=25).problem or "")


def without(decoder: Decoder, weight: str, name: str) -> None:
    """Takes a coordinate out of a layer."""
    decoder.weights()[weight][..., decoder.stream.index[name]] = 0


@pytest.mark.fast_cases(20)
@pytest.mark.parametrize(
    ("weight", "name"),
    [
        ("step.inward", "compute"),
        ("step.outward", "cell"),
        ("step.outward", "cell before"),
        ("recall.query", "one"),
        ("recall.key", "compute"),
        ("recall.value", "cell before"),
        ("recall.value", "compute"),
        ("recall.output", "record cell"),
        ("look.output", "input cell"),
        ("compare.inward", "cell"),
        ("compare.inward", "record cell"),
        ("match.inward", "input there"),
        ("match.inward", "same as record"),
        ("choose.inward", "take record"),
        ("choose.inward", "take input"),
    ],
)
def test_a_missing_coordinate_is_caught(weight: str, name: str) -> None:
    decoder = Decoder(MACHINE)
    without(decoder, weight, name)
    assert not decoder.run(TEXT, steps=25).ok


def test_without_the_bit_that_the_head_stayed_machines_that_stay_are_wrong() -> None:
    text = (
        "start: a\nblank: _\na _ -> x R b\nb _ -> x L c\nc x -> y S d\nd y -> z S d\nd z -> z R a"
    )
    machine = Machine.parse(text)
    assert Decoder(machine).run(steps=20).ok
    decoder = Decoder(machine)
    without(decoder, "match.inward", "stayed")
    assert not decoder.run(steps=20).ok


def test_a_missing_test_for_input_is_caught() -> None:
    """Cell 0 looks like an input cell where there is none; the `input there` bit tells."""
    decoder = Decoder(Machine.load("busy-beaver-3"))
    decoder.match.bias[1] += 1  # take the input where its cell is the head's, there or not
    assert not decoder.run(steps=21).ok


# A machine whose steps use every layer: all symbols are read from the input and from records.
SWEEPER = Machine.parse("""
start: r
blank: _
r a -> b R r
r b -> _ R r
r _ -> a L l
l a -> _ L l
l b -> a L l
l _ -> b S m
m b -> a S r
""")


WEIGHTS = [
    (name, place)
    for name, weight in Decoder(SWEEPER).weights().items()
    for place in map(tuple, weight.nonzero().tolist())
]


def test_a_node_is_right_on_whatever_it_can_be_given() -> None:
    assert Decoder(SWEEPER).check() is None
    assert all(Decoder(machine).check() is None for machine, _ in map(random_machine, range(8)))


@pytest.mark.fast_cases(10)
@pytest.mark.parametrize(("name", "place"), WEIGHTS, ids=str)
def test_a_changed_weight_is_caught(name: str, place: tuple[int, ...]) -> None:
    """Any that is not zero, of any line of the table: of the other sign, 0, or off by a bit."""
    assert len(WEIGHTS) > 150
    decoder = Decoder(SWEEPER)
    weight = decoder.weights()[name]
    right = weight[place].item()
    # Larger scores are hardmax all the more, and a node that stayed takes nothing all the more.
    spared = name in ("recall.query", "recall.key") or (name, right) == ("match.inward", -1)
    for wrong in (-right, 0.0) if spared else (-right, 0.0, 1.001 * right):
        weight[place] = wrong
        assert decoder.check() is not None, wrong
    weight[place] = -right
    assert not decoder.run("a", steps=1).ok  # a run of two lines of the table


def test_a_large_table_is_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MOST_NODES", 300)
    decoder = Decoder(SWEEPER)
    assert decoder.check() is None
    for line in range(len(decoder.step.bias) - 3):
        decoder.step.outward[line] *= -1
        assert decoder.check() is not None
        decoder.step.outward[line] *= -1


# ---- the picture ----


def test_the_picture(tmp_path) -> None:
    run = Decoder(Machine.load("increment")).run()
    for name in ("run.png", "run.svg"):
        draw_run(run, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5000
    with pytest.raises(ValueError, match=r"ends in .png"):
        draw_run(run, tmp_path / "run.txt")


def test_sources_are_the_last_writes() -> None:
    run = Decoder(Machine.load("busy-beaver-4")).run(steps=60, at_once=False)
    last: dict[int, int] = {}
    for step, (here, source) in enumerate(zip(run.configurations, run.sources, strict=True)):
        assert source == last.get(here.cell, turing.BLANK)
        last[here.cell] = step
