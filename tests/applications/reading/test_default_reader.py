"""The reader that ships: what is in the package, and the folder that is made of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import longbird as lb
from longbird.applications.reading import default_reader


def test_what_ships_is_small_and_knows_what_it_is() -> None:
    files = {file.name: file.stat().st_size for file in default_reader.SHIPPED.iterdir()}
    assert {"config.json", default_reader.DIFFERENCE, "README.md"} <= set(files)
    assert sum(files.values()) < 15_000_000
    kept = json.loads((default_reader.SHIPPED / "config.json").read_text("utf-8"))
    said = kept["task_specific_params"]["question-answering"]
    assert 0 <= said["confidence"]["least"] <= 1  # fitted, not assumed
    assert said["positions"] == "paragraph"


@pytest.mark.slow  # reads with all layers
def test_short_paragraphs_are_told_apart() -> None:
    """Lists and minutes, whose positions would all be the same if they counted anew in each."""
    names, towns = (
        "Anna Bruno Clara David Emma Felix".split(),
        "Rome Oslo Bonn Lima Riga Graz".split(),
    )
    text = "\n\n".join(f"{a} lives in {b}." for a, b in zip(names, towns, strict=True))
    reader = lb.Reader.from_pretrained("default")
    answers = [reader.ask(text, f"Where does {name} live?") for name in names]
    found = [answer.text for answer in answers]
    assert sum(a == b for a, b in zip(found, towns, strict=True)) >= 4, found
    plant = ["In 1961 the plant was opened.", "In 1998 it was closed.", "In 1975 it was burned."]
    answers.append(reader.ask("\n\n".join(plant), "When was the plant closed?"))
    assert answers[-1].text is not None
    assert "1998" in answers[-1].text
    assert not any("\n\n" in (answer.text or "") for answer in answers)


def test_another_calibration_is_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = shutil.copytree(default_reader.SHIPPED, tmp_path / "shipped")
    monkeypatch.setattr(default_reader, "SHIPPED", shipped)
    monkeypatch.setattr(default_reader, "cached", lambda name, *_, **__: name)
    before = default_reader.default_reader()
    assert default_reader.default_reader() == before
    config = shipped / "config.json"
    config.write_text(config.read_text("utf-8") + "\n", "utf-8")
    assert default_reader.default_reader() != before


def test_a_folder_called_default_is_another_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "default").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(default_reader, "cached", lambda name, *_, **__: Path(name))
    assert default_reader.folder_of_reader("default").name.startswith("reader-")
    assert default_reader.folder_of_reader("./default") == Path("default")


def test_a_name_of_a_model_that_answers_no_questions() -> None:
    with pytest.raises(ValueError, match="minilm was not trained to answer questions"):
        default_reader.folder_of_reader("minilm")


@pytest.mark.parametrize("file", ["tokenizer.json", "config.json", "model.safetensors"])
def test_a_damaged_cache_says_how_to_mend_it(
    file: str, small_reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGBIRD_CACHE", str(tmp_path / "cache"))
    for place, expected in (("cache", "Delete .*cache.reader, and it is made"), ("own", file[:5])):
        folder = shutil.copytree(small_reader, tmp_path / place / "reader")
        (folder / file).write_text("{")
        with pytest.raises(ValueError, match=expected) as caught:
            lb.Reader.from_pretrained(folder)
        assert str(folder) in str(caught.value)
        assert ("Delete" in str(caught.value)) == (place == "cache")


def test_a_run_that_lost_its_model(tmp_path: Path) -> None:
    for name in ("run.toml", "result.json"):
        (tmp_path / name).write_text("")
    with pytest.raises(FileNotFoundError, match="a finished run whose model"):
        lb.Reader.from_pretrained(tmp_path)
