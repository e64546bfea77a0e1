"""Tokenizers of DNA: no base lost, coordinates exact, the same ids in transformers."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longbird.applications.dna.genomes import (
    DnaTokenizer,
    Interval,
    open_genome,
    reverse_complement,
)

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]
SEQUENCES = st.text("ACGTNacgtnRYSWKMBDHVXryswkmbdhvxUu", max_size=120) | st.text("ACGTN")


def drawn(length: int, seed: int = 0) -> str:
    """With words that repeat, so that there is something to learn."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("ACGT", k=rng.randrange(3, 9))) for _ in range(30)]
    return "".join(rng.choices(words, k=length // 4))[:length]


def meant(text: str) -> str:
    return "".join(
        "T" if base in "uU" else base.upper() if base.upper() in "ACGTN" else "N" for base in text
    )


KINDS = {
    "bpe": lambda: DnaTokenizer.train([drawn(20_000)], 200),
    "base": DnaTokenizer.base,
    "2-mers": lambda: DnaTokenizer.kmer(2),
    "6-mers": lambda: DnaTokenizer.kmer(6),
}


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> DnaTokenizer:
    return KINDS[request.param]()


@pytest.fixture(scope="module")
def saved(tokenizer: DnaTokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(folder)
    return folder


@pytest.fixture(scope="module")
def theirs(saved: Path):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(saved)


@pytest.mark.slow  # trains a tokenizer
@pytest.mark.fast_cases(4)
@given(text=SEQUENCES)
def test_nothing_is_lost(tokenizer: DnaTokenizer, text: str):
    """Joined pieces are the sequence, and each lies where its bounds say, on both strands."""
    encoding, bases = tokenizer.encode(text), meant(text)
    pieces = [tokenizer.pieces[token] for token in encoding.ids]
    assert "".join(pieces) == bases == tokenizer.decode(encoding.ids)
    assert encoding.ids.dtype == encoding.bounds.dtype == np.int64
    assert len(encoding.bounds) == len(encoding) + 1
    for window in (Interval("a", 1000, 1000 + len(bases), strand) for strand in "+-"):
        for token, piece in enumerate(pieces):
            interval = encoding.interval(token, window)
            # Cut out of the genome, then turned round: the other way to the same bases.
            genome = bases if window.strand == "+" else reverse_complement(bases)
            cut = genome[interval.start - 1000 : interval.end - 1000]
            assert (cut if window.strand == "+" else reverse_complement(cut)) == piece
            for position in range(interval.start, interval.end):
                assert encoding.token_at(window.base(position)) == token
                assert encoding.tokens_of_bases()[window.base(position)] == token
    assert len(encoding.tokens_of_bases()) == len(bases)
    for outside in (-1, len(bases)):
        with pytest.raises(IndexError):
            encoding.token_at(outside)


@pytest.mark.fast_cases(4)
@given(text=SEQUENCES)
def test_transformers_gives_the_same_ids(tokenizer: DnaTokenizer, theirs, text: str):
    encoding = tokenizer.encode(text)
    assert theirs(text, add_special_tokens=False)["input_ids"] == encoding.ids.tolist()
    wrapped = [theirs.cls_token_id, *encoding.ids.tolist(), theirs.sep_token_id]
    assert theirs(text)["input_ids"] == wrapped
    assert theirs.decode(wrapped, skip_special_tokens=True) == meant(text)
    bounds = [0, *encoding.bounds.tolist(), len(text)]
    assert tokenizer.bounds(wrapped).tolist() == bounds  # special tokens have no bases


def test_special_tokens(tokenizer: DnaTokenizer, theirs):
    assert list(tokenizer.pieces[:5]) == SPECIAL
    names = ("pad", "cls", "sep", "mask", "unk")
    assert [getattr(theirs, f"{name}_token_id") for name in names] == [0, 1, 2, 3, 4]
    assert len(theirs) == len(tokenizer) == len(tokenizer.lengths)
    assert tokenizer.lengths[:5].tolist() == [0] * 5
    assert theirs("AC[MASK]GT", add_special_tokens=False)["input_ids"].count(3) == 1


def test_load_gives_the_same(tokenizer: DnaTokenizer, saved: Path, theirs, tmp_path: Path):
    theirs.save_pretrained(tmp_path)  # as a trainer does beside a model
    for folder in (saved, tmp_path):
        loaded = DnaTokenizer.load(folder)
        assert loaded.pieces == tokenizer.pieces
        assert (loaded.kind, loaded.k) == (tokenizer.kind, tokenizer.k)
        text = drawn(3000, 7)
        assert np.array_equal(loaded.encode(text).ids, tokenizer.encode(text).ids)


def test_kmers_are_cut_as_defined():
    """Anew after each N, with single bases for what is left over."""
    rng = random.Random(0)
    for k in (1, 2, 3, 6):
        tokenizer = DnaTokenizer.kmer(k)
        assert len(tokenizer) == 10 + (4**k if k > 1 else 0)
        for _ in range(100):
            text = "".join(rng.choices("ACGTN", (9, 9, 9, 9, 1), k=rng.randrange(60)))
            wanted: list[str] = []
            for number, run in enumerate(text.split("N")):
                wanted += ["N"] * (number > 0)
                whole = len(run) // k * k
                wanted += [run[start : start + k] for start in range(0, whole, k)]
                wanted += list(run[whole:])
            pieces = [tokenizer.pieces[token] for token in tokenizer.encode(text).ids]
            assert pieces == wanted


def test_training_is_repeatable_and_keeps_to_its_limits(tmp_path: Path):
    (tmp_path / "a.fa").write_text(f">a\n{drawn(30_000)}\n>b\n{'N' * 5000}{drawn(9000, 3)}\n")
    with open_genome(tmp_path / "a.fa") as genome:
        first = DnaTokenizer.train([genome, drawn(5000, 5)], 300, longest=7)
        again = DnaTokenizer.train([genome, drawn(5000, 5)], 300, longest=7)
        assert first.pieces == again.pieces
        assert len(first) == 300
        assert first.lengths.max() <= 7
        for longest in (4, 16):  # which poly-A reaches exactly
            limited = DnaTokenizer.train(["A" * 5000], 100, longest=longest)
            assert limited.lengths.max() == longest
        assert not any("N" in piece and len(piece) > 1 for piece in first.pieces[5:])
        few = [DnaTokenizer.train([genome], 60, sample=6000, seed=seed) for seed in (0, 1)]
        assert few[0].pieces != few[1].pieces  # of three stretches each, which are drawn
        # With both strands, what is learned is not of one: poly-A and poly-T are alike.
        both = DnaTokenizer.train(["A" * 5000], 14)
        assert "TT" in both.pieces
        assert "AA" in both.pieces


def test_what_is_refused(tmp_path: Path):
    tokenizer = DnaTokenizer.base()
    with pytest.raises(ValueError, match="received 'E', 'F'"):
        tokenizer.encode("ACGEF")
    for vocabulary in (9, 2**21):
        with pytest.raises(ValueError, match=f"received {vocabulary}"):
            DnaTokenizer.train(["ACGT"], vocabulary)
    with pytest.raises(ValueError, match="no bases but N"):
        DnaTokenizer.train(["NNNN"], 20)
    with pytest.raises(TypeError, match=r"open genome, or bases; received PosixPath"):
        DnaTokenizer.train([tmp_path], 20)  # type: ignore[list-item]
    for k in (0, 9):
        with pytest.raises(ValueError, match=f"received {k}"):
            DnaTokenizer.kmer(k)
    with pytest.raises(FileNotFoundError, match=r"no tokenizer\.json"):
        DnaTokenizer.load(tmp_path)
    tokenizer.save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    content["model"]["vocab"] |= {"hello": len(content["model"]["vocab"])}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"not a tokenizer of DNA .* 'hello'"):
        DnaTokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a tokenizer"):
        DnaTokenizer.load(tmp_path)
