"""Longbird: sparse attention for long sequences, exact, linear, and fast on a plain CPU.

Examples:
    >>> import torch
    >>> import longbird as lb
    >>> graph = lb.bigbird(block=16)
    >>> q, k, v = torch.randn(3, 1, 4, 1000, 32).unbind()
    >>> lb.attention(q, k, v, graph, impl="gather").shape
    torch.Size([1, 4, 1000, 32])
"""

from importlib import import_module as _import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING

from longbird import _register as _register
from longbird.graph import BlockWindow as BlockWindow
from longbird.graph import Causal as Causal
from longbird.graph import Edges as Edges
from longbird.graph import ErdosRenyi as ErdosRenyi
from longbird.graph import Full as Full
from longbird.graph import GlobalBlocks as GlobalBlocks
from longbird.graph import GlobalTokens as GlobalTokens
from longbird.graph import Graph as Graph
from longbird.graph import LegacyBigBird as LegacyBigBird
from longbird.graph import RandomBlocks as RandomBlocks
from longbird.graph import WattsStrogatz as WattsStrogatz
from longbird.graph import Window as Window
from longbird.graph import bigbird as bigbird
from longbird.graph import longformer as longformer
from longbird.layout import Layout as Layout
from longbird.ops.api import attention as attention
from longbird.ops.api import attention_packed as attention_packed
from longbird.ops.dispatch import implementations as implementations
from longbird.ops.weights import attention_weights as attention_weights
from longbird.oracle import check as check
from longbird.plan import plan as plan

__version__ = _version("longbird")

if _TYPE_CHECKING:
    from longbird.checkpoints import load_checkpoint as load_checkpoint
    from longbird.checkpoints import save_checkpoint as save_checkpoint
    from longbird.convert import convert_checkpoint as convert_checkpoint
    from longbird.models import LongbirdConfig as LongbirdConfig
    from longbird.models import LongbirdForCausalLM as LongbirdForCausalLM
    from longbird.models import (
        LongbirdForConditionalGeneration as LongbirdForConditionalGeneration,
    )
    from longbird.models import LongbirdForEmbedding as LongbirdForEmbedding
    from longbird.models import LongbirdForMaskedLM as LongbirdForMaskedLM
    from longbird.models import LongbirdForMultipleChoice as LongbirdForMultipleChoice
    from longbird.models import LongbirdForPreTraining as LongbirdForPreTraining
    from longbird.models import LongbirdForQuestionAnswering as LongbirdForQuestionAnswering
    from longbird.models import (
        LongbirdForSequenceClassification as LongbirdForSequenceClassification,
    )
    from longbird.models import LongbirdForTokenClassification as LongbirdForTokenClassification
    from longbird.models import LongbirdModel as LongbirdModel
    from longbird.models import LongbirdSeq2SeqConfig as LongbirdSeq2SeqConfig
    from longbird.models import (
        LongbirdSeq2SeqForQuestionAnswering as LongbirdSeq2SeqForQuestionAnswering,
    )
    from longbird.models import (
        LongbirdSeq2SeqForSequenceClassification as LongbirdSeq2SeqForSequenceClassification,
    )
    from longbird.models import LongbirdSeq2SeqModel as LongbirdSeq2SeqModel
    from longbird.models import RollingCache as RollingCache

# The models need transformers, which takes seconds to import: they come when they are asked for.
_LATER = {
    "convert_checkpoint": "convert",
    "load_checkpoint": "checkpoints",
    "save_checkpoint": "checkpoints",
    "RollingCache": "models",
    "LongbirdConfig": "models",
    "LongbirdForCausalLM": "models",
    "LongbirdForConditionalGeneration": "models",
    "LongbirdForEmbedding": "models",
    "LongbirdForMaskedLM": "models",
    "LongbirdForMultipleChoice": "models",
    "LongbirdForPreTraining": "models",
    "LongbirdForQuestionAnswering": "models",
    "LongbirdForSequenceClassification": "models",
    "LongbirdForTokenClassification": "models",
    "LongbirdModel": "models",
    "LongbirdSeq2SeqForQuestionAnswering": "models",
    "LongbirdSeq2SeqForSequenceClassification": "models",
    "LongbirdSeq2SeqConfig": "models",
    "LongbirdSeq2SeqModel": "models",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'longbird' has no attribute {name!r}")
    return getattr(_import_module(f"longbird.{_LATER[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_LATER]
