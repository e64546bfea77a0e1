from .analysis.check import check as check
from .analysis.plan import plan as plan
from .applications.reading.reader import Answer as Answer
from .applications.reading.reader import Evidence as Evidence
from .applications.reading.reader import Reader as Reader
from .applications.search.embed_files import embed_files as embed_files
from .applications.search.embedder import Embedder as Embedder
from .applications.search.vectors import Vectors as Vectors
from .applications.training.engine.evaluation import evaluate as evaluate
from .applications.training.engine.finetune import finetune as finetune
from .applications.training.tasks.registry import register_task as register_task
from .core.graph import BlockWindow as BlockWindow
from .core.graph import ByLength as ByLength
from .core.graph import Causal as Causal
from .core.graph import Edges as Edges
from .core.graph import ErdosRenyi as ErdosRenyi
from .core.graph import Full as Full
from .core.graph import GlobalBlocks as GlobalBlocks
from .core.graph import GlobalTokens as GlobalTokens
from .core.graph import Graph as Graph
from .core.graph import LegacyBigBird as LegacyBigBird
from .core.graph import PerHead as PerHead
from .core.graph import RandomBlocks as RandomBlocks
from .core.graph import WattsStrogatz as WattsStrogatz
from .core.graph import Window as Window
from .core.graph import bigbird as bigbird
from .core.graph import longformer as longformer
from .core.layout import Layout as Layout
from .core.operator.api import attention as attention
from .core.operator.api import attention_packed as attention_packed
from .core.operator.dispatch import implementations as implementations
from .core.operator.weights import attention_weights as attention_weights
from .models import LongbirdCollator as LongbirdCollator
from .models import LongbirdConfig as LongbirdConfig
from .models import LongbirdForCausalLM as LongbirdForCausalLM
from .models import LongbirdForConditionalGeneration as LongbirdForConditionalGeneration
from .models import LongbirdForEmbedding as LongbirdForEmbedding
from .models import LongbirdForMaskedLM as LongbirdForMaskedLM
from .models import LongbirdForMultipleChoice as LongbirdForMultipleChoice
from .models import LongbirdForPreTraining as LongbirdForPreTraining
from .models import LongbirdForQuestionAnswering as LongbirdForQuestionAnswering
from .models import LongbirdForSequenceClassification as LongbirdForSequenceClassification
from .models import LongbirdForTokenClassification as LongbirdForTokenClassification
from .models import LongbirdModel as LongbirdModel
from .models import LongbirdSeq2SeqConfig as LongbirdSeq2SeqConfig
from .models import LongbirdSeq2SeqForQuestionAnswering as LongbirdSeq2SeqForQuestionAnswering
from .models import (
    LongbirdSeq2SeqForSequenceClassification as LongbirdSeq2SeqForSequenceClassification,
)
from .models import LongbirdSeq2SeqModel as LongbirdSeq2SeqModel
from .models import RollingCache as RollingCache
from .models.checkpoints import load_checkpoint as load_checkpoint
from .models.checkpoints import save_checkpoint as save_checkpoint
from .models.conversion import convert_checkpoint as convert_checkpoint
from .models.integration.register import (
    register_with_transformers as register_with_transformers,
)
from .models.quantize import quantize as quantize
from .models.segments import segments as segments

__version__: str
