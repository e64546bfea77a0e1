"""Where a checkpoint is: folders, names on the hub, and what cannot be either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import transformers
from folders import SMALL, at_most
from theirs import configuration, theirs_of

import longbird


def test_names_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = theirs_of("bert", "LongbirdModel", configuration("bert"))
    theirs.save_pretrained(tmp_path)
    asked: list[tuple[str, bool]] = []

    def download(name: str, **options: Any) -> str:
        asked.append((name, options.get("local_files_only", False)))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "hub" / "models--bert-base-uncased").mkdir(parents=True)
    longbird.load_checkpoint("google-bert/bert-base-uncased", longbird.LongbirdModel)
    # Without an owner, most likely a folder with a typing mistake: downloads are looked at alone.
    longbird.load_checkpoint("bert-base-uncased", longbird.LongbirdModel)
    assert asked == [("google-bert/bert-base-uncased", False), ("bert-base-uncased", True)]

    def unreachable(name: str, **options: Any) -> str:
        raise ConnectionError("no network")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(FileNotFoundError, match=r"no folder google-bert/bert.*hub: no network"):
        longbird.load_checkpoint("google-bert/bert-base-uncased", longbird.LongbirdModel)


def test_a_typing_mistake_in_the_name_of_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", fail)
    with at_most(2), pytest.raises(FileNotFoundError, match=r"no folder my-modle, .*owner/name"):
        longbird.LongbirdForMaskedLM.from_pretrained("my-modle")
    with at_most(2), pytest.raises(FileNotFoundError, match=r"no folder \./a/modle"):
        longbird.LongbirdForMaskedLM.from_pretrained("./a/modle")


NO_PATHS = [(None, TypeError), (3, TypeError), (b"bert", TypeError), (["a"], TypeError)]
NO_PATHS += [("", ValueError), (" ", ValueError)]


def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", fail)


@pytest.mark.parametrize(("path", "kind"), NO_PATHS)
def test_what_is_no_path_is_refused_at_once(
    path: Any, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline(monkeypatch)
    model = longbird.LongbirdModel(longbird.LongbirdConfig(**SMALL, graph=longbird.Full()))
    model.save_pretrained(tmp_path)
    monkeypatch.chdir(tmp_path)  # where an empty path would find one
    before = sorted(tmp_path.iterdir())
    for use in (
        longbird.LongbirdModel.from_pretrained,
        longbird.LongbirdConfig.from_pretrained,
        longbird.LongbirdSeq2SeqConfig.from_pretrained,
        lambda path: longbird.load_checkpoint(path, longbird.LongbirdModel),
        lambda path: longbird.convert_checkpoint(path, tmp_path / "new"),
        lambda path: longbird.convert_checkpoint(tmp_path, path),
        model.save_pretrained,
        lambda path: longbird.save_checkpoint(model, path, "bert"),
        lambda path: longbird.save_checkpoint(model, path, "tensorflow"),
    ):
        with at_most(2), pytest.raises(kind, match=r"expected the path of .*received"):
            use(path)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("options", [{}, {"config": longbird.LongbirdConfig()}])
def test_a_file_of_arrays_that_is_not_there(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file .*model\.npz"):
        longbird.LongbirdModel.from_pretrained(tmp_path / "model.npz", **options)


def test_a_folder_may_be_called_as_a_file(bert: Path) -> None:
    folder = bert.rename(bert.with_name("model.npz"))
    assert longbird.LongbirdModel.from_pretrained(folder).config.hidden_size == 16


@pytest.mark.parametrize("place", ["/proc/x", "file/x", "file/x/y", "new/" + "x" * 300])
def test_a_folder_that_cannot_be_made(place: str, bert: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = longbird.LongbirdModel.from_pretrained(bert)
    for write in (model.save_pretrained, lambda out: longbird.convert_checkpoint(bert, out, 100)):
        with pytest.raises(OSError, match=r"cannot be made in .*; choose another"):
            write(tmp_path / place)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bert", "file"]


@pytest.mark.parametrize("model_class", [transformers.BertModel, "LongbirdModel", None, dict])
def test_classes_that_are_not_ours(model_class: Any, bert: Path) -> None:
    with pytest.raises(TypeError, match=r"model_class must be a class of Longbird.*received"):
        longbird.load_checkpoint(bert, model_class)


def test_load_checkpoint_of_a_folder_of_ours(own: Path) -> None:
    with pytest.raises(ValueError, match=r"saved by Longbird: .*LongbirdModel\.from_pretrained"):
        longbird.load_checkpoint(own, longbird.LongbirdModel)


def test_the_folder_of_a_run_is_that_of_its_model(tmp_path: Path) -> None:
    config = longbird.LongbirdConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    model = longbird.LongbirdModel(config)
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "run.toml").write_text("")
    with pytest.raises(FileNotFoundError, match="a run that is not finished"):
        longbird.LongbirdModel.from_pretrained(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    assert longbird.LongbirdModel.from_pretrained(tmp_path).config.graph == config.graph
    (tmp_path / "model" / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"whose model, .* is missing"):
        longbird.LongbirdModel.from_pretrained(tmp_path)
