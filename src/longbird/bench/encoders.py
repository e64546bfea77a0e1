"""The whole encoders that are compared: random weights, one shape, each as its users run it.

All models have no dropout, a vocabulary of `VOCABULARY` and float32 weights. Forward
runs in eval mode under `torch.no_grad()`; a training step is forward, backward and AdamW.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from longbird.bench.contest import UnavailableError, refuse_without_memory
from longbird.bench.peers import LONGFORMER_WINDOW, numpy_state_kept
from longbird.graph.presets import bigbird

# A real vocabulary would make a step mostly AdamW's, over embeddings of tokens that do not occur.
VOCABULARY = 1024
CHUNK = 512  # what a BERT can read at once
BLOCK = 64
RANDOM = 3

Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class Shape:
    """The sizes that all encoders of a comparison share."""

    name: str
    layers: int
    width: int
    heads: int
    inner: int

    @property
    def sizes(self) -> dict[str, Any]:
        """As the configurations of transformers call them, Longbird's too."""
        return {
            "num_hidden_layers": self.layers,
            "hidden_size": self.width,
            "num_attention_heads": self.heads,
            "intermediate_size": self.inner,
            "vocab_size": VOCABULARY,
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
        }

    def __str__(self) -> str:
        """One line for reports."""
        return (
            f"{self.name}: {self.layers} layers of {self.width}, {self.heads} heads of "
            f"{self.width // self.heads}, feed-forward {self.inner}"
        )


SHAPES = {
    "base": Shape("BigBird-base", layers=12, width=768, heads=12, inner=3072),
    "minilm": Shape("MiniLM", layers=6, width=384, heads=12, inner=1536),
}


def documents(lengths: Sequence[int]) -> list[Tensor]:
    """Token ids of documents of these lengths, the same at every call."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(5, VOCABULARY, (n,), generator=generator) for n in lengths]


def padded(texts: Sequence[Tensor]) -> Inputs:
    """A batch as everybody takes it, with a mask if there is padding."""
    ids = pad_sequence(list(texts), batch_first=True)
    lengths = torch.tensor([len(text) for text in texts])
    mask = torch.arange(ids.shape[1]) < lengths[:, None]
    return {"input_ids": ids} | ({} if bool(mask.all()) else {"attention_mask": mask.long()})


def chunked(texts: Sequence[Tensor]) -> Inputs:
    """The same tokens in chunks of `CHUNK`, as a BERT has to take them."""
    return padded([chunk for text in texts for chunk in text.split(CHUNK)])


@dataclass(frozen=True)
class Encoder:
    """One contestant.

    Attributes:
        name: As it is called in reports.
        short: The same at the head of a column.
        build: A model of a shape for documents of up to n tokens, or raises `UnavailableError`.
        inputs: Documents as it takes them.
        growth: Its time grows about as the length to this power.
        kept_bytes: About what its attention holds for a token of a layer until backward.
        matrix_bytes: About what it holds besides for one layer of one document of n tokens.
    """

    name: str
    short: str
    build: Callable[[Shape, int], Any]
    inputs: Callable[[Sequence[Tensor]], Inputs] = padded
    growth: float = 1.0
    kept_bytes: Callable[[Shape], int] = lambda shape: 0
    matrix_bytes: Callable[[Shape, int], int] = lambda shape, n: 0

    def refuse_if_impossible(
        self, shape: Shape, lengths: Sequence[int], *, training: bool
    ) -> None:
        """Raise `UnavailableError` if the machine's memory does not do for a batch."""
        rows, n = len(lengths), max(lengths)
        # Of a layer about 20 tensors as wide as the model are kept for backward, those of the
        # feed-forward block counted by their width.
        token = (20 if training else 10) * shape.width * 4 + self.kept_bytes(shape)
        kept = rows * n * token * (shape.layers if training else 1)
        refuse_without_memory(kept + rows * self.matrix_bytes(shape, n))

    def model(self, shape: Shape, n: int) -> Any:
        """A model with random weights, the same at every call."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return self.build(shape, n)


def ready(
    model: Any, inputs: Inputs, optimizer: torch.optim.Optimizer | None
) -> Callable[[], Any]:
    """A forward pass of a model in eval mode; with an optimizer, a training step."""
    model.train(optimizer is not None)
    if optimizer is None:
        return torch.no_grad()(lambda: model(**inputs).last_hidden_state)
    shape = (*inputs["input_ids"].shape, model.config.hidden_size)
    gradient = torch.randn(shape, generator=torch.Generator().manual_seed(1))

    def step() -> None:
        optimizer.zero_grad()
        with numpy_state_kept():
            out = model(**inputs).last_hidden_state
        out.backward(gradient)
        optimizer.step()

    return step


def adamw(model: Any) -> torch.optim.Optimizer:
    """The optimizer of all training steps."""
    return torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)


def longbird(implementation: str = "native") -> Encoder:
    """Longbird's encoder on the BigBird graph, with attention by one implementation."""

    def build(shape: Shape, n: int) -> Any:
        from longbird.models import LongbirdConfig, LongbirdModel

        config = LongbirdConfig(
            **replace(shape, layers=max(1, shape.layers)).sizes,
            graph=bigbird(block=BLOCK, random=RANDOM),
            max_position_embeddings=max(4096, n),
            attention_impl=implementation,
        )
        model = LongbirdModel(config)
        model.layers = model.layers[: shape.layers]  # a configuration has at least one
        return model

    name = f"longbird {implementation}"
    return Encoder(name, name, build)


def _bigbird(shape: Shape, n: int) -> Any:
    transformers = _transformers()
    least = (5 + 2 * RANDOM) * BLOCK
    if n <= least:
        raise UnavailableError(f"it switches to full attention up to {least} tokens")
    config = transformers.BigBirdConfig(
        **shape.sizes,
        attention_type="block_sparse",
        block_size=BLOCK,
        num_random_blocks=RANDOM,
        max_position_embeddings=max(4096, n),
    )
    return transformers.BigBirdModel(config)


def _gathered_bytes(shape: Shape) -> int:
    # Measured of both models: six tensors of the scores of 512 keys.
    return 6 * 512 * shape.heads * 4


HUGGING_FACE_BIGBIRD = Encoder(
    "Hugging Face BigBird",
    "HF BigBird",
    _bigbird,
    growth=2,  # its dense matrix of probabilities
    kept_bytes=_gathered_bytes,
    matrix_bytes=lambda shape, n: shape.heads * n * n * 4,
)


def _longformer(shape: Shape, n: int) -> Any:
    transformers = _transformers()
    config = transformers.LongformerConfig(
        **shape.sizes, attention_window=LONGFORMER_WINDOW, max_position_embeddings=max(4096, n) + 2
    )
    model = transformers.LongformerModel(config)
    # It has as many windows as layers, and asks for their largest even where it has no layers.
    model.config.attention_window = [LONGFORMER_WINDOW] * max(1, shape.layers)
    return model


HUGGING_FACE_LONGFORMER = Encoder(
    f"Hugging Face Longformer (another graph: window {LONGFORMER_WINDOW}, no global tokens)",
    f"HF Longformer ({LONGFORMER_WINDOW})",
    _longformer,
    kept_bytes=_gathered_bytes,
    matrix_bytes=lambda shape, n: n * n * 4,  # a mask, of which it uses one row
)


def _bert(shape: Shape, n: int) -> Any:
    transformers = _transformers()
    config = transformers.BertConfig(
        **shape.sizes, max_position_embeddings=CHUNK, attn_implementation="sdpa"
    )
    return transformers.BertModel(config)


BERT = Encoder(
    f"BERT with SDPA on chunks of {CHUNK}", f"BERT (chunks of {CHUNK})", _bert, inputs=chunked
)

PEERS = (HUGGING_FACE_BIGBIRD, HUGGING_FACE_LONGFORMER, BERT)


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise UnavailableError(
            f"transformers cannot be imported ({error}): pip install transformers"
        ) from error
    return transformers


def difference(encoder: Encoder, shape: Shape, n: int) -> float:
    """Largest difference of an encoder's output from dense attention on the graph it claims.

    The dense model is Longbird's, with the same weights and the reference implementation. It has
    one layer, so that graphs are compared, and not how rounding grows.
    """
    from longbird.models import LongbirdModel

    model = encoder.model(replace(shape, layers=1), n)
    inputs = encoder.inputs(documents([n]))
    out = ready(model, inputs, None)()
    # In eval mode, all random blocks of Hugging Face's BigBird are block 0.
    foreign = {"random_blocks": "hf_eval"} if encoder is HUGGING_FACE_BIGBIRD else {}
    with tempfile.TemporaryDirectory() as folder, _no_progress_bars():
        model.save_pretrained(folder)
        dense = LongbirdModel.from_pretrained(folder, **foreign)
    dense.config.attention_impl = "reference"
    return float((out - ready(dense, inputs, None)()).abs().max())


@contextmanager
def _no_progress_bars() -> Generator[None, None, None]:
    logging = _transformers().utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
