from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import transformers
from rich.console import Console
from typer.testing import CliRunner

import longbird as lb
from longbird.analysis.check import check as oracle_check
from longbird.cli import info as info_module
from longbird.cli.app import APPLY, COMMANDS, app
from longbird.cli.demo import kernel
from longbird.cli.graph_argument import parse_graph
from longbird.cli.terminal import working
from longbird.core.graph.expression import names


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    """Runs the command as in a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.output

    return run


@pytest.fixture
def refused():
    """Runs the command, which must raise a ValueError: what it says."""

    def refused(*arguments: str) -> str:
        with pytest.raises(ValueError) as error:
            CliRunner().invoke(app, list(arguments), catch_exceptions=False)
        return str(error.value)

    return refused


# ---- graphs as people type them ----


@pytest.mark.parametrize(
    ("text", "graph"),
    [
        ("bigbird", lb.bigbird()),
        ("longformer", lb.longformer()),
        (" Full ", lb.Full()),
        ("Window(8, dilation=2)", lb.Window(8, dilation=2)),
        ("bigbird(block=64) & Causal()", lb.bigbird(block=64) & lb.Causal()),
        (
            "(Window(2) | GlobalTokens([0, -1])) & Causal",
            (lb.Window(2) | lb.GlobalTokens([0, -1])) & lb.Causal(),
        ),
        ("lb.Window(1) | longbird.Full()", lb.Window(1) | lb.Full()),
        ("Edges([(0, 1), (2, 3)])", lb.Edges([(0, 1), (2, 3)])),
        ('{"type": "Window", "radius": 3, "dilation": 1}', lb.Window(3)),
    ],
)
def test_parse_graph(text: str, graph: lb.Graph) -> None:
    assert parse_graph(text) == graph


@pytest.mark.parametrize(
    "graph", [lb.bigbird(block=16, seed=4), lb.longformer() & lb.Causal(), lb.ErdosRenyi(0.25)]
)
def test_what_a_graph_prints_can_be_typed(graph: lb.Graph) -> None:
    assert parse_graph(repr(graph)) == graph


def test_parse_graph_reads_files(tmp_path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(lb.bigbird(seed=3).to_json())
    assert parse_graph(str(path)) == lb.bigbird(seed=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a graph"),
        ("Widow(3)", "Did you mean Window"),
        ("Window(3", "was never closed"),
        ("Window(3) + Full()", "is not a graph"),
        ("Window(3) | 5", "'5' is not a graph"),
        ("__import__('os').system('true')", "is not a graph"),
        ("Window(open('x'))", "'open' is not a graph"),
        ("Window(radius=[].append)", "is not a graph"),
        ("Window(**{'radius': 3})", "means nothing here"),
        ("Window(*[3])", "cannot be an argument"),
        ("(lambda: Full())()", "is not a graph"),
        ("[Full() for _ in '1']", "is not a graph"),
        ("Window(radius='a')", "radius must be an integer"),
        ("Window()", "Window: "),
        ("nowhere.json", "there is no file nowhere.json"),
        ('{"type": "Circle"}', "unknown graph type 'Circle'"),
        ("(" * 10_000, "is not a graph"),
    ],
)
def test_what_is_not_a_graph_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_graph(text)


# ---- subcommands ----


@pytest.mark.parametrize(
    "command", ["finetune classify", "pretrain", "dna pretrain", "dna finetune"]
)
def test_help_shows_defaults(command: str) -> None:
    words = {"Default: linear.", "Default: utf-8.", "Default: minilm."}
    words = {"Default: linear."} if "dna" in command else words
    arguments = [*command.split(), "--help"]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "160", "NO_COLOR": "1"}).output
    assert {word for word in words if word in shown} == words


def test_help_names_the_subcommands(run) -> None:
    output = run("--help")
    for name in COMMANDS:
        assert f" {name} " in output


def test_every_file_is_a_command_or_serves_them() -> None:
    cli = Path(info_module.__file__).parent
    files = {path.stem for path in cli.iterdir() if path.suffix in ("", ".py")} - {"__pycache__"}
    serving = {
        "__init__",
        "app",
        "apply",
        "early",
        "entry",
        "errors",
        "command",
        "flags",
        "graph_argument",
        "options",
        "processor",
        "terminal",
        "training_options",
    }
    assert files == set(COMMANDS) - {*APPLY} | serving


def test_graph_show_draws_within_80_columns(run) -> None:
    output = run("graph", "show", "bigbird(block=16)", "-n", "300", "--heads", "2", "--head", "1")
    assert "300 tokens, 2 heads, " in output
    assert "density" in output
    assert "tiles of" in output
    assert "⣿" in output
    assert "window" in output
    assert "random" in output
    assert "global" in output
    assert "\x1b" not in output
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.slow  # draws
def test_graph_show_writes_pictures(run, tmp_path) -> None:
    path = tmp_path / "picture.png"
    assert "picture.png" in run("graph", "show", "bigbird", "-o", str(path)).replace("\n", "")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_graph_show_lists_what_there_is(run) -> None:
    output = run("graph", "show")
    for name in names():
        assert f"{name}(" in output
    assert "Window(radius, dilation=1)" in output
    assert "[1]" not in output  # footnotes of the docs


def test_graph_show_prints_json(run) -> None:
    output = run("graph", "show", "Window(3) & Causal()", "--json")
    assert json.loads(output)["type"] == "Intersection"
    assert lb.Graph.from_json(output) == lb.Window(3) & lb.Causal()


def test_check_agrees(run) -> None:
    output = run(
        "check", "Window(5) & Causal()", "-n", "70", "--head-dim", "8", "--impl", "gather"
    )
    assert "70 tokens, batch 1, 2 heads of 8, float32" in output
    assert "ok" in output
    assert "FAILED" not in output


def test_check_fails_with_exit_code_1(run) -> None:
    # A named implementation that cannot run the call is a failure, with its reason.
    output = run("check", "Window(5)", "-n", "9", "--impl", "native", "--dtype", "float64", code=1)
    assert "did not run" in output
    assert "float64" in output


def test_check_compiles_flex_only_when_asked(run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def check(graph, n, *, impls, **options):
        asked.append(impls)
        return oracle_check(graph, n, impls=["gather"], **options)

    monkeypatch.setattr("longbird.analysis.check.check", check)
    run("check", "Window(5)", "-n", "20")
    run("check", "Window(5)", "-n", "20", "--impl", "flex", "--impl", "gather")
    assert [list(names) for names in asked] == [["native", "gather"], ["flex", "gather"]]


def test_what_cannot_run_is_no_failure_unless_named(run) -> None:
    output = run("check", "Window(5)", "-n", "9", "--dtype", "float64")
    assert "did not run" in output
    assert "ok" in output


def test_info_says_what_is_here_and_where(run) -> None:
    output = run("info")
    for name in (*lb.implementations(), "torch", "threads", "instruction set"):
        assert name in output
    assert str(Path(lb.__file__).parent) in output.replace("\n", "").replace(" ", "")


def test_info_says_what_to_do_without_native_kernels(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longbird.core.operator.native.missing", lambda: "the kernels flew away")
    monkeypatch.setattr("longbird.core.operator.native.instruction_sets", lambda: [])
    monkeypatch.setattr(info_module.importlib.util, "find_spec", lambda name: None)
    output = run("info")
    assert "The native kernels are missing" in output
    assert "the kernels flew away" in output
    assert "C++17 compiler" in output
    assert "pip install --force-reinstall" in output


@pytest.mark.slow  # measures
def test_demo_draws_checks_and_times(run, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(kernel, "SECONDS", 0.1)
    monkeypatch.setattr(kernel, "CHECKED_TOKENS", 100)
    output = run("demo", "kernel", "--out", str(tmp_path), "-n", "256")
    assert (tmp_path / "bigbird.png").read_bytes().startswith(b"\x89PNG")
    assert "ok" in output
    words = " ".join(output.split())
    assert "Over 256 tokens with 12 heads of 64" in words
    assert "The result is exact" in words


def test_plan_predicts(run) -> None:
    assert "256 tokens" in run("plan", "Window(8)", "-n", "256", "--heads", "2")


@pytest.mark.parametrize(("share", "warned"), [(0.4, False), (0.6, True), (None, False)])
def test_plan_says_when_the_machine_is_busy(monkeypatch, share, warned) -> None:
    load = None if share is None else share * (os.cpu_count() or 1)
    monkeypatch.setattr("longbird.cli.processor.load_average", lambda: load)
    result = CliRunner().invoke(app, ["plan", "Window(8)", "-n", "256", "--heads", "2"])
    assert result.exit_code == 0
    assert result.stderr.count("The machine was busy") == warned
    assert result.stderr.count("\n") == warned
    assert "busy" not in result.stdout


def test_check_fails_for_a_false_fact(run) -> None:
    @dataclass(frozen=True)
    class FarStream(lb.Graph):
        streams = True

        def edge(self, i, j, n):
            return (i >= j) & (2 * j <= n)

    output = run("check", "FarStream() | Window(2)", "-n", "40", "--impl", "gather", code=1)
    assert "FAILED  FarStream(): streams is false: query 2" in output


SMALL = {
    "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 8,
    "vocab_size": 50,
}  # fmt: skip


@pytest.mark.parametrize(
    "config",
    [
        lb.LongbirdConfig(**SMALL, graph=lb.bigbird(16)),
        transformers.BigBirdConfig(**SMALL, block_size=16),
        transformers.BertConfig(**SMALL),
        transformers.LEDConfig(
            vocab_size=50,
            d_model=32,
            encoder_layers=3,
            encoder_attention_heads=4,
            attention_window=8,
        ),
    ],
    ids=lambda config: config.model_type,
)
def test_plan_of_a_model_is_that_of_its_configuration(
    run, refused, tmp_path: Path, config
) -> None:
    config.save_pretrained(tmp_path)
    said = run("plan", str(tmp_path), "-n", "256")
    assert "256 tokens, batch 1, 4 heads of 8, 3 layers" in said
    assert ("Full()" in said) == (config.model_type == "bert")
    said = refused("plan", str(tmp_path), "--heads", "2", "--layers", "1")
    assert "says what --heads and --layers would: leave the option" in said


def test_a_model_is_not_a_graph(refused, tmp_path: Path) -> None:
    lb.LongbirdConfig(**SMALL).save_pretrained(tmp_path)
    assert "is the folder of a model; expected a graph: an exp" in refused("check", str(tmp_path))
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    assert "received 'gpt2'" in refused("plan", str(tmp_path))


# ---- what is shown meanwhile ----


@pytest.mark.parametrize("terminal", [True, False])
def test_what_is_going_on_is_shown_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=terminal, width=80)
    monkeypatch.setattr("longbird.cli.terminal.stderr", console)
    with working("Counting to a million"):
        pass
    assert ("Counting to a million" in shown.getvalue()) == terminal


def test_brackets_in_what_is_shown_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=80)
    monkeypatch.setattr("longbird.cli.terminal.stderr", console)
    with working("Reading [/b].txt") as show:
        show("Reading [/c].txt")
    assert "[/c].txt" in shown.getvalue()
