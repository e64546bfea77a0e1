"""Dropout of attention weights by a counter-based generator, in plain torch.

The native kernels follow this specification bit for bit. Whether the weight of query i and key j
is kept depends only on the seed, the number of the sequence, the head, i and j: not on the
implementation, the number of threads, or the rest of the batch. Forward and backward therefore
agree without storing a mask. All arithmetic is modulo 2**32:

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
    """Return the stream of every sequence and head.

    Args:
        seed: Seed, a 0-d int64 tensor.
        sequences: Numbers of the sequences: int64 [b].
        heads: Number of heads.

    Returns:
        Streams int64 [b, heads], each at least 0 and less than 2**32.
    """
    seed = seed.to(sequences.device)
    head = torch.arange(heads, device=sequences.device)
    counter = (sequences[:, None] * heads + head) & WORD
    return _mix((seed & WORD) ^ _mix(((seed >> 32) & WORD) ^ _mix(counter)))


def kept(stream: Tensor, i: Tensor, j: Tensor, p: float) -> Tensor:
    """Return whether the weights of queries i and keys j are kept; the arguments broadcast.

    Args:
        stream: Streams from `streams`.
        i: Positions of queries in their sequence.
        j: Positions of keys in their sequence.
        p: Probability of dropping a weight.
    """
    row = _mix(stream ^ i)
    return _mix((row + j) & WORD) >= int(p * 2**32)


def _mix(x: Tensor) -> Tensor:
    # The products fit into int64: |x| < 2**32, and the second factor is reduced modulo 2**32 to
    # lie within 2**31 of zero.
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & WORD
    x = x ^ (x >> 15)
    x = (x * (0x846CA68B - 2**32)) & WORD
    return x ^ (x >> 16)
