"""Which attention probabilities dropout keeps: a counter-based generator, in plain torch.

This is the specification that the native kernels follow bit for bit. Whether the probability of
query i and key j is kept depends on the seed, the number of the sequence, the head, i and j alone:
not on the implementation, the number of threads, or what else is in the batch. Forward and
backward therefore agree without storing a mask. All arithmetic is modulo 2**32:

    mix(x): x ^= x >> 16; x *= 0x7feb352d; x ^= x >> 15; x *= 0x846ca68b; x ^= x >> 16
    stream(sequence, head) = mix(lo32(seed) ^ mix(hi32(seed) ^ mix(sequence * heads + head)))
    row(i) = mix(stream ^ i)
    u(i, j) = mix(row(i) + j)
    keep (i, j) if and only if u(i, j) >= floor(p * 2**32)
"""

from __future__ import annotations

import torch
from torch import Tensor

WORD = 0xFFFFFFFF


def streams(seed: Tensor, sequences: Tensor, heads: int) -> Tensor:
    """The stream of every sequence and head.

    Args:
        seed: int64, 0-d.
        sequences: int64 [b], the numbers of the sequences.
        heads: How many heads there are.

    Returns:
        int64 [b, heads], each at least 0 and less than 2**32.
    """
    seed = seed.to(sequences.device)
    head = torch.arange(heads, device=sequences.device)
    counter = (sequences[:, None] * heads + head) & WORD
    return _mix((seed & WORD) ^ _mix(((seed >> 32) & WORD) ^ _mix(counter)))


def kept(stream: Tensor, i: Tensor, j: Tensor, p: float) -> Tensor:
    """Is the probability of query i and key j kept? Bool; the arguments broadcast.

    Args:
        stream: From `streams`.
        i: Numbers of query tokens within their sequence.
        j: Numbers of key tokens within their sequence.
        p: The probability of dropping.
    """
    row = _mix(stream ^ i)
    return _mix((row + j) & WORD) >= int(p * 2**32)


def _mix(x: Tensor) -> Tensor:
    # int64 holds the products: |x| < 2**32, and the second factor is taken modulo 2**32 to lie
    # within 2**31 of zero.
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & WORD
    x = x ^ (x >> 15)
    x = (x * (0x846CA68B - 2**32)) & WORD
    return x ^ (x >> 16)
