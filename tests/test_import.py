"""Importing longbird is quick, brings exactly the public names, and leaves the process alone."""

import subprocess
import sys

import pytest

import longbird as lb

NAMES = {
    "Graph", "Full", "Causal", "Window", "BlockWindow", "GlobalTokens", "GlobalBlocks",
    "RandomBlocks", "ErdosRenyi", "WattsStrogatz", "Edges", "LegacyBigBird", "PerHead", "ByLength",
    "bigbird", "longformer", "Layout", "attention", "attention_packed", "attention_weights",
    "implementations", "check", "plan",
}  # fmt: skip

# These need transformers, and come when they are asked for.
MODELS = {
    "LongbirdConfig", "LongbirdSeq2SeqConfig", "LongbirdModel", "LongbirdForMaskedLM",
    "LongbirdForPreTraining", "LongbirdForSequenceClassification",
    "LongbirdForTokenClassification", "LongbirdForMultipleChoice", "LongbirdForQuestionAnswering",
    "LongbirdForEmbedding", "LongbirdForCausalLM", "LongbirdSeq2SeqModel",
    "LongbirdForConditionalGeneration", "RollingCache", "load_checkpoint", "save_checkpoint",
    "convert_checkpoint", "LongbirdSeq2SeqForQuestionAnswering",
    "LongbirdSeq2SeqForSequenceClassification", "LongbirdCollator", "segments", "finetune",
    "evaluate", "Embedder", "Vectors", "embed_files", "Answer", "Evidence", "Reader", "quantize",
    "register_task",
    "register_with_transformers",
}  # fmt: skip


def run(script: str) -> str:
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_public_names():
    assert set(lb.__all__) == NAMES | MODELS
    assert set(dir(lb)) >= NAMES | MODELS
    assert all(getattr(lb, name).__doc__ for name in NAMES | MODELS)


def test_version():
    major, minor, *_ = lb.__version__.split(".")
    assert int(major) >= 0
    assert int(minor) >= 0


def test_brings_nothing_heavy():
    heavy = (
        "torch", "torch._dynamo", "torch._inductor", "matplotlib", "transformers", "typer", "rich",
        "pandas", "scipy", "numpy",
    )  # fmt: skip
    script = f"import sys, longbird; print([name for name in {heavy} if name in sys.modules])"
    assert run(script).strip() == "[]"


def test_models_bring_no_more_than_the_models_of_transformers():
    heavy = ("transformers.trainer", "datasets", "matplotlib", "pandas", "sklearn", "typer")
    script = f"""
import sys, longbird as lb
config = lb.LongbirdConfig(
    vocab_size=20, hidden_size=8, num_attention_heads=2, num_hidden_layers=1, intermediate_size=8
)
lb.LongbirdModel(config)
print([name for name in {heavy} if name in sys.modules])
"""
    assert run(script).strip() == "[]"


def test_graphs_need_numpy_alone():
    script = "import sys, longbird; longbird.bigbird().layout(4096); print('torch' in sys.modules)"
    assert run(script).strip() == "False"


@pytest.mark.slow  # a process for each
def test_leaves_global_state_alone():
    run("""
import os, random, sys, warnings
import numpy, torch
def state():
    return (
        torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_default_dtype(),
        torch.is_grad_enabled(), torch.random.get_rng_state().tolist(), random.getstate(),
        str(numpy.random.get_state()), dict(os.environ), list(warnings.filters), sys.path[:],
        torch.are_deterministic_algorithms_enabled(), torch.backends.mkldnn.enabled,
        numpy.geterr(), numpy.get_printoptions(), os.getcwd(),
    )
before = state()
import longbird
assert state() == before
""")


def test_is_quick():
    """Beyond torch itself: about 0.1 s; more leaves room for a busy machine."""
    script = """
import time, torch
start = time.process_time()
import longbird
print(time.process_time() - start)
"""
    assert float(run(script)) < 0.5
