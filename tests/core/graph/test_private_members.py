"""Only the package of graphs uses what is private to graphs."""

import ast
from pathlib import Path

import longbird
from longbird.core.graph import Graph
from longbird.core.graph.identity import CLASSES

PACKAGE = Path(longbird.__file__).parent
ROOT = Path(__file__).parents[3]
OWN = PACKAGE / "core" / "graph"
FILES = [
    file
    for folder in (PACKAGE, ROOT / "experiments", ROOT / "recipes")
    for file in sorted(folder.rglob("*.py"))
    if OWN not in file.parents
]


def private(names):
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


# Notebooks look for this name.
PIECES = [cls for cls in CLASSES.values() if cls.__module__.startswith("longbird.")]
MEMBERS = set.union(*(private([*vars(cls), *cls.__annotations__]) for cls in (Graph, *PIECES)))
MEMBERS -= {"_repr_svg_"}


def uses(tree: ast.Module) -> list[str]:
    """Return the private members of graphs that a file accesses or imports."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in MEMBERS:
            # A class of another package may have a private member of the same name.
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(
            "longbird.core.graph"
        ):
            found += [
                f"line {node.lineno}: {name}" for name in private(x.name for x in node.names)
            ]
    return found


def test_there_is_something_to_find():
    assert {"_set", "_mapped", "_json"} <= MEMBERS
    assert len(FILES) > 100
    assert uses(ast.parse("graph._mapped(f)")) == ["line 1: graph._mapped"]
    assert uses(ast.parse("from longbird.core.graph.base import _x")) == ["line 1: _x"]


def test_no_other_package_uses_private_members():
    found = {str(file): uses(ast.parse(file.read_text())) for file in FILES}
    assert not {file: lines for file, lines in found.items() if lines}
