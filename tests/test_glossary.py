"""One word, one thing: the glossary and the classes of the package agree."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import longbird

PACKAGE = Path(longbird.__file__).parent
GLOSSARY = Path(__file__).parents[1] / "docs" / "glossary.md"

CLASSES = defaultdict(list)
for file in sorted(PACKAGE.rglob("*.py")):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ClassDef):
            CLASSES[node.name].append(f"{file.relative_to(PACKAGE)}:{node.lineno}")

# "- **rolling cache** (`RollingCache`): ..." or "- **edge**: ..."
ENTRY = re.compile(r"^- \*\*([^*]+)\*\*(?: \(`(\w+)`\))?:", re.MULTILINE)


def entries() -> list[tuple[str, str]]:
    return ENTRY.findall(GLOSSARY.read_text())


def class_name(term: str) -> str:
    """Return the name that a class for a term has: `RollingCache` for "rolling cache"."""
    return "".join(word[:1].upper() + word[1:] for word in re.findall(r"\w+", term))


def test_no_two_classes_have_the_same_name():
    assert not {name: places for name, places in CLASSES.items() if len(places) > 1}


def test_the_glossary_is_read_and_explains_each_term_once():
    terms = [term for term, _ in entries()]
    assert len(terms) > 30
    assert len(terms) == len(set(terms))
    assert GLOSSARY.read_text().count("\n- **") == len(terms)


@pytest.mark.parametrize(("term", "named"), entries(), ids=[term for term, _ in entries()])
def test_a_term_with_a_class_names_it(term, named):
    expected = class_name(term)
    assert named == (expected if expected in CLASSES else "")


def test_classes_that_the_glossary_mentions_exist():
    mentioned = set(re.findall(r"`(?:lb\.)?([A-Z]\w*[a-z]\w*)\b", GLOSSARY.read_text()))
    assert mentioned - set(CLASSES) == set()
