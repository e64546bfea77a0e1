"""transformers knows Longbird in whatever order the two are imported."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

# What is imported first in transformers decides which of its modules are half there when.
BEFORE = (
    "from transformers import AutoModel",
    "from transformers import AutoConfig",
    "from transformers import AutoTokenizer",
    "from transformers import BertModel",
    "from transformers import Trainer",
    "import transformers.modeling_utils",
    "import longbird.models.encoder",
    "import longbird.models.layers.layer",
    "import longbird.models.checkpoints.load",
    "longbird.LongbirdForMaskedLM",
)
AFTER = (
    "import transformers",
    "from transformers import AutoConfig",
    "from transformers import BertModel",
)

KNOWN = """
import sys
import longbird as lb
from transformers import AttentionInterface, AttentionMaskInterface, AutoConfig
from transformers import BertConfig, BertModel
assert "longbird" in AttentionInterface() and "longbird" in AttentionMaskInterface()
shape = dict(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
bert = BertModel(BertConfig(**shape, intermediate_size=8, attn_implementation="longbird"))
assert bert.config._attn_implementation == "longbird" and bert.config.longbird_graph is None
assert type(AutoConfig.for_model("longbird")) is lb.LongbirdConfig
assert type(AutoConfig.for_model("longbird-seq2seq")) is lb.LongbirdSeq2SeqConfig
register = "longbird.models.integration.register"
assert not any(type(finder).__module__ == register for finder in sys.meta_path)
"""

TASKS = """
from transformers import AutoConfig
import transformers as hf
import longbird as lb
shape = dict(
    vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
    max_position_embeddings=16, graph=lb.Window(2),
)
encoder = AutoConfig.for_model("longbird", **shape)
for task in (
    "Model", "ForPreTraining", "ForMaskedLM", "ForSequenceClassification", "ForCausalLM",
    "ForTokenClassification", "ForMultipleChoice", "ForQuestionAnswering",
):
    auto = getattr(hf, "AutoModel" if task == "Model" else f"AutoModel{task}")
    assert type(auto.from_config(encoder)) is getattr(lb, f"Longbird{task}"), task
seq2seq = AutoConfig.for_model("longbird-seq2seq", **shape, decoder_layers=1,
                               decoder_attention_heads=2, decoder_intermediate_size=8)
assert type(hf.AutoModel.from_config(seq2seq)) is lb.LongbirdSeq2SeqModel
generation = hf.AutoModelForSeq2SeqLM.from_config(seq2seq)
assert type(generation) is lb.LongbirdForConditionalGeneration
for task in ("ForQuestionAnswering", "ForSequenceClassification"):
    model = getattr(hf, f"AutoModel{task}").from_config(seq2seq)
    assert type(model) is getattr(lb, f"LongbirdSeq2Seq{task}"), task
"""

SAVED = """
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertTokenizer
import longbird as lb
words = "[PAD] [UNK] [CLS] [SEP] [MASK] a bird flies far".split()
config = lb.LongbirdConfig(
    vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=8, max_position_embeddings=16, graph=lb.Window(2) | lb.GlobalTokens([0]),
)
model = lb.LongbirdForMaskedLM(config).eval()
model.save_pretrained(folder)
BertTokenizer({word: number for number, word in enumerate(words)}).save_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
assert type(tokenizer) is BertTokenizer
inputs = tokenizer(["a bird", "a bird flies far"], padding=True, return_tensors="pt")
loaded = AutoModelForMaskedLM.from_pretrained(folder)
assert type(loaded) is lb.LongbirdForMaskedLM and loaded.config.graph == config.graph
with torch.no_grad():
    assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)
"""


@pytest.fixture(scope="module")
def run_with_torch() -> Iterator[Callable[[str], None]]:
    """Runs scripts in processes that have neither longbird nor transformers, but torch already.

    Whoever imports torch first makes no difference here, and to import what transformers takes of
    it is most of the time of a script: the processes are forks of one that has it.
    """
    if sys.version_info < (3, 11):
        pytest.skip("max_tasks_per_child came with Python 3.11")
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["torch", "torch._dynamo", "torch.distributed.tensor"])
    with ProcessPoolExecutor(1, mp_context=server, max_tasks_per_child=1) as processes:
        yield lambda script: processes.submit(execute, script).result()


def execute(script: str) -> None:
    assert "torch" in sys.modules
    assert not {"longbird", "transformers"} & sys.modules.keys()
    warnings.simplefilter("error")
    exec(script, {})


def run(*scripts: str) -> None:
    command = [sys.executable, "-W", "error", "-c", "\n".join(scripts)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_longbird_does_not_import_transformers():
    run("import sys, longbird", "assert 'transformers' not in sys.modules")


@pytest.mark.slow  # a process of its own
def test_registration_can_be_left_to_the_program(run_with_torch: Callable[[str], None]):
    run_with_torch("""
import os, sys
os.environ["LONGBIRD_REGISTER"] = "0"
finders = list(sys.meta_path)
import longbird as lb
assert sys.meta_path == finders
from transformers import AutoConfig
try:
    AutoConfig.for_model("longbird")
except ValueError:
    pass
else:
    raise AssertionError
lb.register_with_transformers()
assert type(AutoConfig.for_model("longbird")) is lb.LongbirdConfig
""")


@pytest.mark.slow  # a process for each
@pytest.mark.parametrize("later", BEFORE)
def test_longbird_comes_before(later: str, run_with_torch: Callable[[str], None]):
    run_with_torch(f"import longbird\n{later}\n{KNOWN}")


@pytest.mark.slow  # a process for each
@pytest.mark.parametrize("earlier", AFTER)
def test_longbird_comes_after(earlier: str, run_with_torch: Callable[[str], None]):
    run_with_torch(f"{earlier}\nimport longbird\n{KNOWN}")


@pytest.mark.slow  # imports all of transformers
def test_auto_classes_know_every_task(run_with_torch: Callable[[str], None]):
    run_with_torch(f"import longbird\n{TASKS}")


@pytest.mark.slow  # every model, twice
def test_saved_models_load_through_auto_classes(
    tmp_path: Path, run_with_torch: Callable[[str], None]
):
    run_with_torch(f"folder = {str(tmp_path)!r}\n{SAVED}")


def test_every_model_has_a_task():
    """The table of tasks is the one list; the stub of public names must be written out."""
    import longbird as lb
    from longbird import models
    from longbird.models.integration.tasks import TASKS as TABLE

    named = {name for task in TABLE.values() for name in task[:2] if name is not None}
    classes = {
        name
        for name, value in vars(models).items()
        if isinstance(value, type) and hasattr(value, "from_pretrained") and "Config" not in name
    }
    assert named == classes
    assert named == {
        name
        for name in lb.__all__
        if name.startswith("Longbird") and hasattr(getattr(lb, name), "from_pretrained")
    } - {"LongbirdConfig", "LongbirdSeq2SeqConfig"}


def test_the_names_of_tasks_need_neither_torch_nor_transformers():
    run(
        "import sys",
        "from longbird.models.integration.tasks import TASKS",
        "assert not {'torch', 'transformers'} & set(sys.modules)",
    )


@pytest.mark.slow  # a new process, which imports torch and transformers
def test_the_finder_only_watches_and_leaves_specs_as_they_are():
    run("""
import importlib.machinery, importlib.util, json, sys
import longbird
spec = importlib.util.find_spec("transformers")
assert type(spec.loader) is importlib.machinery.SourceFileLoader and spec.origin
assert "transformers" not in sys.modules
assert importlib.util.find_spec("json").loader is sys.modules["json"].__loader__
try:
    import transformers.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "transformers.no_such_module"
else:
    raise AssertionError
import transformers, inspect
assert "longbird.models.encoder" not in sys.modules  # transformers alone has no models yet
assert transformers.AutoConfig.for_model("longbird").model_type == "longbird"
auto = sys.modules["transformers.models.auto.configuration_auto"]
assert "class AutoConfig" in inspect.getsource(auto) and "exec_module" not in vars(auto.__loader__)
from longbird.models.integration import register
register.register_with_transformers()  # again, which changes nothing
method = transformers.PreTrainedModel.set_attn_implementation
assert not hasattr(method.__wrapped__, "__wrapped__")
""")
