"""The dropout generator against a plain transcription of its definition."""

import pytest
import torch

from longbird.core.operator import dropout

WORD = 2**32


def mix(x: int) -> int:
    x ^= x >> 16
    x = x * 0x7FEB352D % WORD
    x ^= x >> 15
    x = x * 0x846CA68B % WORD
    return x ^ x >> 16


def u(seed: int, sequence: int, heads: int, head: int, i: int, j: int) -> int:
    low, high = seed % WORD, (seed >> 32) % WORD
    stream = mix(low ^ mix(high ^ mix((sequence * heads + head) % WORD)))
    return mix((mix(stream ^ i) + j) % WORD)


@pytest.mark.parametrize("seed", [0, 1, -1, 2**32, 2**63 - 1, -(2**63), 123456789012345])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.999])
def test_definition(seed, p):
    sequences, heads = torch.tensor([0, 1, 70_000]), 3
    i, j = torch.tensor([0, 1, 5, 100_000]), torch.tensor([0, 2, 3, 99_999, 2**31])
    streams = dropout.streams(torch.tensor(seed), sequences, heads)
    kept = dropout.kept(streams[:, :, None, None], i[:, None], j, p)
    expected = [
        [
            [
                [u(seed, s, heads, head, a, b) >= int(p * WORD) for b in j.tolist()]
                for a in i.tolist()
            ]
            for head in range(heads)
        ]
        for s in sequences.tolist()
    ]
    assert kept.tolist() == expected


@pytest.mark.parametrize("p", [0.05, 0.3, 0.9])
def test_rate(p):
    """Within five standard deviations over a million edges."""
    stream = dropout.streams(torch.tensor(7), torch.arange(1), 1)[:, :, None, None]
    token = torch.arange(1000)
    dropped = 1 - dropout.kept(stream, token[:, None], token, p).double().mean()
    assert abs(float(dropped) - p) < 5 * (p * (1 - p) / 1e6) ** 0.5


def test_rows_columns_and_streams_look_independent():
    streams = dropout.streams(torch.tensor(7), torch.arange(4), 2)
    token = torch.arange(500)
    kept = dropout.kept(streams[:, :, None, None], token[:, None], token, 0.5).double() - 0.5
    maps = kept.flatten(0, 1)
    for a in range(8):
        for b in range(a):
            assert abs(float((maps[a] * maps[b]).mean())) < 5 * 0.25 / 500
    assert abs(float((maps[0, 1:] * maps[0, :-1]).mean())) < 5 * 0.25 / 500
    assert abs(float((maps[0, :, 1:] * maps[0, :, :-1]).mean())) < 5 * 0.25 / 500
    assert abs(float((maps[0, 1:, 1:] * maps[0, :-1, :-1]).mean())) < 5 * 0.25 / 500
    assert abs(float((maps[0, 1:, :-1] * maps[0, :-1, 1:]).mean())) < 5 * 0.25 / 500
