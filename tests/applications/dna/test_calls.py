"""Calls of coding sequence on synthetic genomes whose stretches are known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from longbird.applications.dna.genomes import Contig
from longbird.applications.dna.scanning.calls import CalledStretch, CallSettings, calls
from longbird.applications.dna.scanning.formats import Content, write_bed, write_gff3
from longbird.applications.dna.scanning.track import Track, moving_average
from longbird.applications.dna.settings import ScanSettings
from longbird.applications.dna.sweeps import Tiles

LENGTH = 60_000


def track_of(scores: np.ndarray, *, circular: bool = False) -> Track:
    contig = Contig("c", len(scores), circular)
    genome: Any = SimpleNamespace(sequences={"c": contig})
    sweeps = [Tiles(contig, 64, 1, scores.shape[1])]
    return Track(genome, sweeps, scores, ("+", "-"), "coding", 0.5)


def known_stretches(draw: np.random.Generator) -> list[tuple[int, int, int]]:
    """Start, end and channel of genes of 300 to 1,500 bases, 100 to 600 bases apart."""
    found: list[tuple[int, int, int]] = []
    at = 400
    while at < LENGTH - 2500:
        end = at + int(draw.integers(300, 1500))
        found.append((at, end, int(draw.integers(2))))
        at = end + int(draw.integers(100, 600))
    return found


def noisy_scores(known: list[tuple[int, int, int]], draw: np.random.Generator) -> np.ndarray:
    """Scores of a fair model, which flicker around the threshold from base to base."""
    logits = draw.normal(-1, 1, (LENGTH, 2))
    for start, end, channel in known:
        logits[start:end, channel] += 2
    return (1 / (1 + np.exp(-logits))).astype(np.float32)


def overlap(one: tuple[int, int], two: tuple[int, int]) -> float:
    """Shared bases of two stretches, as a share of those of both together."""
    shared = max(0, min(one[1], two[1]) - max(one[0], two[0]))
    return shared / (one[1] - one[0] + two[1] - two[0] - shared)


def matched(found: list[CalledStretch], known: list[tuple[int, int, int]]) -> int:
    """Number of known stretches that a call covers nearly exactly."""
    return sum(
        any(
            call.channel == channel and overlap((call.start, call.end), (start, end)) > 0.8
            for call in found
        )
        for start, end, channel in known
    )


def test_defaults_find_known_stretches_where_bases_alone_are_fragments() -> None:
    draw = np.random.default_rng(0)
    known = known_stretches(draw)
    track = track_of(noisy_scores(known, draw))
    fragments = list(calls(track, CallSettings()))
    assert len(fragments) > 100 * len(known)
    assert matched(fragments, known) == 0
    found = list(calls(track, CallSettings.of("coding", ScanSettings("dna-scan", ()))))
    assert matched(found, known) >= 0.95 * len(known)  # recall
    assert matched(found, known) >= 0.95 * len(found)  # precision
    assert all(call.length >= 90 for call in found)


def test_each_option_by_itself() -> None:
    scores = np.full((400, 2), 0.1, np.float32)
    for start, end in ((50, 90), (95, 140), (150, 155), (200, 260)):
        scores[start:end, 0] = 0.9
    scores[92, 0] = np.nan
    track = track_of(scores)

    def found(**options: int) -> list[tuple[int, int]]:
        return [(each.start, each.end) for each in calls(track, CallSettings(**options))]

    assert found() == [(50, 90), (95, 140), (150, 155), (200, 260)]
    assert found(merge_gap=4) == found()
    assert found(merge_gap=5) == [(50, 140), (150, 155), (200, 260)]
    assert found(merge_gap=10) == [(50, 155), (200, 260)]
    assert found(minimum_length=41) == [(95, 140), (200, 260)]
    assert found(merge_gap=5, minimum_length=6) == [(50, 140), (200, 260)]
    assert found(smoothing=21)[-1] == (200, 260)  # the ends of long stretches stay
    assert (150, 155) not in found(smoothing=21)
    [merged, *_] = calls(track, CallSettings(merge_gap=5))
    assert merged.score == pytest.approx((85 * 0.9 + 4 * 0.1) / 89)  # all bases that have a score


@pytest.mark.parametrize("size", [3, 7, 64])
@pytest.mark.parametrize("peaks", [False, True])
@pytest.mark.parametrize("circular", [False, True])
def test_blocks_and_strands_do_not_change_calls(
    size: int, peaks: bool, circular: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(1)
    scores = np.repeat(draw.random((80, 2)), 5, axis=0)[:397].astype(np.float32)
    scores += draw.normal(0, 1e-3, scores.shape).astype(np.float32)  # no two are equal
    scores[draw.random(scores.shape) < 0.02] = np.nan
    settings = CallSettings(smoothing=9, merge_gap=4, minimum_length=12, peaks=peaks)
    track = track_of(scores, circular=circular)
    whole = list(calls(track, settings))
    assert len(whole) > 5
    other = track_of(scores[::-1, ::-1].copy(), circular=circular)
    turned = {
        (397 - each.end, 397 - each.start, 1 - each.channel) for each in calls(other, settings)
    }
    assert turned == {(each.start, each.end, each.channel) for each in whole}
    before = Track.smoothed_blocks
    monkeypatch.setattr(Track, "smoothed_blocks", lambda self, width: before(self, width, size))
    assert [each.extent for each in calls(track, settings)] == [each.extent for each in whole]


def test_a_stretch_across_the_origin_counts_with_both_parts() -> None:
    scores = np.full((300, 2), 0.1, np.float32)
    scores[:20, 0] = scores[290:, 0] = 0.9
    scores[:5, 1] = 0.9
    settings = CallSettings(minimum_length=30)
    linear, circle = (
        [(each.start, each.end) for each in calls(track_of(scores, circular=circular), settings)]
        for circular in (False, True)
    )
    assert linear == []
    assert circle == [(0, 20), (290, 300)]
    smoothed = [
        (each.start, each.end, each.channel)
        for each in calls(track_of(scores, circular=True), CallSettings(smoothing=11))
    ]
    assert smoothed == [(0, 20, 0), (290, 300, 0)]  # edges on both sides of the origin stay


def test_smoothing_counts_bases_not_bins() -> None:
    contig = Contig("c", 1000)
    scores = np.full((100, 2), 0.1, np.float32)
    scores[::2, 0] = 0.9
    genome: Any = SimpleNamespace(sequences={"c": contig})
    track = Track(genome, [Tiles(contig, 320, 10, 2)], scores, ("+", "-"), "coding", 0.45)
    assert len(list(calls(track, CallSettings(smoothing=29)))) == 50  # fewer than three bins
    assert len(list(calls(track, CallSettings(smoothing=50)))) < 50
    np.testing.assert_allclose(moving_average(scores, 2)[:, 0], [0.58, 0.42] * 48, atol=1e-6)


def test_files_have_the_calls(tmp_path: Path) -> None:
    scores = np.full((400, 2), 0.1, np.float32)
    scores[50:160, 0] = scores[200:210, 1] = 0.9
    content = Content(track_of(scores), CallSettings(minimum_length=90), None)
    assert write_bed(content, tmp_path / "s.bed") == write_gff3(content, tmp_path / "s.gff3") == 1
    assert (tmp_path / "s.bed").read_text().splitlines()[1:] == ["c\t50\t160\tcoding\t900\t+"]
    last = (tmp_path / "s.gff3").read_text().splitlines()[-1].split("\t")
    assert last[2:5] == ["CDS_region", "51", "160"]


@pytest.mark.parametrize("name", ["smoothing", "merge_gap", "minimum_length"])
def test_wrong_options_are_errors(name: str) -> None:
    wrong: dict[str, Any] = {name: -1}
    with pytest.raises(ValueError, match=f"`{name}` must be between 0 and 1,000,000"):
        ScanSettings("dna-scan", (), **wrong)
    wrong = {name: 2.5}
    with pytest.raises(TypeError, match=f"`{name}` must be a whole number"):
        ScanSettings("dna-scan", (), **wrong)
    defaults = ScanSettings("dna-scan", ())
    assert CallSettings.of("profile", defaults) == CallSettings()
    assert CallSettings.of("promoter", defaults) == CallSettings(peaks=True)
