"""A large batch in the memory of a small one, with the gradients of the large one."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import longbird as lb


def model(**fields: Any) -> Any:
    torch.manual_seed(0)
    values: dict[str, Any] = {
        "vocab_size": 50, "hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2,
        "intermediate_size": 64, "max_position_embeddings": 256,
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    }  # fmt: skip
    config = lb.LongbirdConfig(**{**values, **fields}, graph=lb.bigbird(block=8, random=1))
    return lb.LongbirdForEmbedding(config).double().train()


def batch(lengths: list[int]) -> dict[str, torch.Tensor]:
    drawn = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 50, (len(lengths), max(lengths)), generator=drawn)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return {"input_ids": ids.where(mask, 0), "attention_mask": mask.long()}


def gradients(ours: Any, embeddings: torch.Tensor) -> dict[str, torch.Tensor]:
    """Of a loss in which every document meets every other."""
    (embeddings @ embeddings.T / 0.05).logsumexp(-1).sum().backward()
    found = {name: p.grad for name, p in ours.named_parameters() if p.grad is not None}
    ours.zero_grad()
    return found


LENGTHS = [90, 10, 33, 64, 5, 1, 120, 8, 17]


@pytest.mark.parametrize("layers_too", [False, True], ids=["parts", "parts-and-layers"])
@pytest.mark.parametrize("fields", [{}, {"num_global_tokens": 2}], ids=["", "globals"])
def test_gradients_are_those_of_the_whole_batch(fields: dict[str, Any], layers_too: bool) -> None:
    """With dropout, which differs from run to run unless every part draws the same again."""
    ours, given = model(**fields), batch(LENGTHS)
    if layers_too:
        ours.gradient_checkpointing_enable()
    # Each part alone, without a cache, draws what it does in its turn.
    torch.manual_seed(7)
    parts = [slice(0, 2), slice(2, 6), slice(6, 7), slice(7, 9)]  # 100, 103, 120 and 25 tokens
    kept = [ours(**{name: x[part] for name, x in given.items()}).embeddings for part in parts]
    expected = gradients(ours, torch.cat(kept))
    torch.manual_seed(7)
    cached = ours(**given, tokens_at_once=110).embeddings
    torch.testing.assert_close(cached, torch.cat(kept), atol=0, rtol=0)
    torch.manual_seed(99)  # the generator goes on in between
    found = gradients(ours, cached)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-12, rtol=1e-9)


def test_without_dropout_parts_change_nothing() -> None:
    ours, given = model(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), batch(LENGTHS)
    expected = gradients(ours, ours(**given).embeddings)
    for tokens in (1, 64, 10_000):
        found = gradients(ours, ours(**given, tokens_at_once=tokens).embeddings)
        for name, gradient in expected.items():
            torch.testing.assert_close(found[name], gradient, atol=1e-10, rtol=1e-7)
    with torch.no_grad():
        torch.testing.assert_close(
            ours(**given, tokens_at_once=64).embeddings, ours(**given).embeddings
        )


def test_what_cannot_be() -> None:
    ours, given = model(), batch([3, 4])
    with pytest.raises(ValueError, match="tokens_at_once must be at least 1, received 0"):
        ours(**given, tokens_at_once=0)
    with pytest.raises(ValueError, match="leave output_hidden_states"):
        ours(**given, tokens_at_once=8, output_hidden_states=True)


class Peak(TorchDispatchMode):
    """The most bytes that tensors made in this mode had at one time."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.most, self.seen = 0, 0, set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for x in tree_leaves(found):
            if isinstance(x, torch.Tensor) and x.untyped_storage()._cdata not in self.seen:
                storage = x.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                self.seen.add(key)
                self.now += size
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self.gone, key, size)
        return found

    def gone(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def peak(ours: Any, rows: int, tokens_at_once: int | None) -> int:
    given = batch([64] * rows)
    with Peak() as measured:
        embeddings = ours(**given, tokens_at_once=tokens_at_once).embeddings
        embeddings.pow(3).sum().backward()
    ours.zero_grad()
    return measured.most


def test_memory_is_that_of_a_part() -> None:
    ours = model()
    alone = peak(ours, 4, None)
    assert peak(ours, 32, None) > 6 * alone
    assert peak(ours, 32, 4 * 64) < 1.5 * alone
