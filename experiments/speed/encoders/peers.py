"""The whole encoders that are compared, with random weights of one shape, as users run them.

All models have no dropout, a vocabulary of `VOCABULARY` tokens and float32 weights. The forward
pass runs in evaluation mode under `torch.no_grad()`. A training step is forward, backward and
AdamW.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from experiments.speed.contest import Call, Peer, UnavailableError, refuse_without_memory
from experiments.speed.encoders.case import CHUNK, Case, Inputs, Shape, chunked, padded
from experiments.speed.hugging_face import LONGFORMER_WINDOW, numpy_state_kept, transformers_module
from longbird.core.graph.presets import bigbird

BLOCK = 64
RANDOM = 3


@dataclass(frozen=True, kw_only=True)
class Encoder(Peer):
    """A contestant.

    Attributes:
        build: Builds a model for a case, or raises `UnavailableError`.
        inputs: Converts documents into the inputs of the model.
        kept_bytes: Approximate memory that attention keeps per token and layer until the backward
            pass.
        matrix_bytes: Approximate further memory per layer for a document of n tokens.
    """

    build: Callable[[Case], Any]
    inputs: Callable[[Sequence[Tensor]], Inputs] = padded
    kept_bytes: Callable[[Shape], int] = lambda shape: 0
    matrix_bytes: Callable[[Shape, int], int] = lambda shape, n: 0

    def calls(self, *cases: Case) -> list[Call]:
        """Return calls of one model, which fits the longest case."""
        longest = max(cases, key=lambda case: case.n)
        self.refuse_if_impossible(longest)
        model = self.model(longest)
        optimizer = adamw(model) if longest.training else None
        return [ready(model, self.inputs(case.documents()), optimizer) for case in cases]

    def model(self, case: Case) -> Any:
        """Return a model with random weights, the same in every call."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return self.build(case)

    def refuse_if_impossible(self, case: Case) -> None:
        """Raise `UnavailableError` if there is not enough memory for a batch."""
        rows, shape = len(case.lengths), case.shape
        # Of a layer about 20 tensors as wide as the model are kept for backward, those of the
        # feed-forward block counted by their width.
        token = (20 if case.training else 10) * shape.width * 4 + self.kept_bytes(shape)
        kept = rows * case.n * token * (case.layers if case.training else 1)
        refuse_without_memory(kept + rows * self.matrix_bytes(shape, case.n))

    def difference(self, case: Case) -> float:
        """Return the largest difference from dense attention on the graph that it claims.

        The dense model is Longbird's, with the same weights and the reference implementation. It
        has one
        layer, so that graphs are compared rather than the growth of rounding errors.
        """
        from longbird.models import LongbirdModel

        transformers_module().utils.logging.disable_progress_bar()
        case = replace(case, layers=1)
        model, inputs = self.model(case), self.inputs(case.documents())
        out = ready(model, inputs, None)()
        # In eval mode, all random blocks of Hugging Face's BigBird are block 0.
        foreign = {"random_blocks": "hf_eval"} if self is HUGGING_FACE_BIGBIRD else {}
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            dense = LongbirdModel.from_pretrained(folder, **foreign)
        dense.config.attention_impl = "reference"
        return float((out - ready(dense, inputs, None)()).abs().max())


def ready(model: Any, inputs: Inputs, optimizer: torch.optim.Optimizer | None) -> Call:
    """Return a forward pass of a model, or a training step with an optimizer."""
    model.train(optimizer is not None)
    if optimizer is None:
        return torch.no_grad()(lambda: model(**inputs).last_hidden_state)
    shape = (*inputs["input_ids"].shape, model.config.hidden_size)
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(1))

    def step() -> None:
        with numpy_state_kept():
            out = model(**inputs).last_hidden_state
        out.backward(gradient)
        optimizer.step()
        optimizer.zero_grad()

    return step


def adamw(model: Any) -> torch.optim.Optimizer:
    """Return the optimizer of all training steps."""
    return torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)


INT8 = " int8"


def longbird(implementation: str = "native", quantize: bool = False) -> Encoder:
    """Return Longbird's encoder on the BigBird graph with one implementation."""

    def build(case: Case) -> Any:
        from longbird.models import LongbirdConfig, LongbirdModel

        config = LongbirdConfig(
            **replace(case, layers=max(1, case.layers)).sizes,
            graph=bigbird(block=BLOCK, random=RANDOM),
            max_position_embeddings=max(4096, case.n),
            attention_impl=implementation,
        )
        model = LongbirdModel(config)
        model.layers = model.layers[: case.layers]  # a configuration has at least one
        if quantize and case.training:
            raise UnavailableError("int8 weights are for inference alone")
        return model.to_int8() if quantize else model

    name = f"longbird {implementation}{INT8 if quantize else ''}"
    return Encoder(name=name, short=name, build=build)


def _bigbird(case: Case) -> Any:
    transformers = transformers_module()
    least = (5 + 2 * RANDOM) * BLOCK
    if case.n <= least:
        raise UnavailableError(f"it switches to full attention up to {least} tokens")
    config = transformers.BigBirdConfig(
        **case.sizes,
        attention_type="block_sparse",
        block_size=BLOCK,
        num_random_blocks=RANDOM,
        max_position_embeddings=max(4096, case.n),
    )
    return transformers.BigBirdModel(config)


def _gathered_bytes(shape: Shape) -> int:
    # Measured of both models: six tensors of the scores of 512 keys.
    return 6 * 512 * shape.heads * 4


HUGGING_FACE_BIGBIRD = Encoder(
    name="Hugging Face BigBird",
    short="HF BigBird",
    build=_bigbird,
    growth=2,  # its dense matrix of probabilities
    kept_bytes=_gathered_bytes,
    matrix_bytes=lambda shape, n: shape.heads * n * n * 4,
)


def _longformer(case: Case) -> Any:
    transformers = transformers_module()
    places = max(4096, case.n) + 2
    config = transformers.LongformerConfig(
        **case.sizes, attention_window=LONGFORMER_WINDOW, max_position_embeddings=places
    )
    model = transformers.LongformerModel(config)
    # It has as many windows as layers, and asks for their largest even where it has no layers.
    model.config.attention_window = [LONGFORMER_WINDOW] * max(1, case.layers)
    return model


HUGGING_FACE_LONGFORMER = Encoder(
    name=f"Hugging Face Longformer (another graph: window {LONGFORMER_WINDOW}, no global tokens)",
    short=f"HF Longformer ({LONGFORMER_WINDOW})",
    build=_longformer,
    kept_bytes=_gathered_bytes,
    matrix_bytes=lambda shape, n: n * n * 4,  # a mask, of which it uses one row
)


def _bert(case: Case) -> Any:
    transformers = transformers_module()
    config = transformers.BertConfig(
        **case.sizes, max_position_embeddings=CHUNK, attn_implementation="sdpa"
    )
    return transformers.BertModel(config)


BERT = Encoder(
    name=f"BERT with SDPA on chunks of {CHUNK}",
    short=f"BERT (chunks of {CHUNK})",
    build=_bert,
    inputs=chunked,
)

PEERS = (HUGGING_FACE_BIGBIRD, HUGGING_FACE_LONGFORMER, BERT)


def named(name: str) -> Encoder:
    """Return the encoder with this name, in a separate process."""
    here = {peer.name: peer for peer in PEERS}
    implementation = name.removeprefix("longbird ")
    return here.get(name) or longbird(implementation.removesuffix(INT8), INT8 in name)
