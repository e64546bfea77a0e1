from .checkpoints import load_checkpoint as load_checkpoint
from .checkpoints import save_checkpoint as save_checkpoint
from .convert import convert_checkpoint as convert_checkpoint
from .cost import plan as plan
from .graph import BlockWindow as BlockWindow
from .graph import ByLength as ByLength
from .graph import Causal as Causal
from .graph import Edges as Edges
from .graph import ErdosRenyi as ErdosRenyi
from .graph import Full as Full
from .graph import GlobalBlocks as GlobalBlocks
from .graph import GlobalTokens as GlobalTokens
from .graph import Graph as Graph
from .graph import LegacyBigBird as LegacyBigBird
from .graph import PerHead as PerHead
from .graph import RandomBlocks as RandomBlocks
from .graph import WattsStrogatz as WattsStrogatz
from .graph import Window as Window
from .graph import bigbird as bigbird
from .graph import longformer as longformer
from .layout import Layout as Layout
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
from .models.segments import segments as segments
from .ops.api import attention as attention
from .ops.api import attention_packed as attention_packed
from .ops.dispatch import implementations as implementations
from .ops.weights import attention_weights as attention_weights
from .oracle import check as check
from .reading.embed_files import embed_files as embed_files
from .reading.embedder import Embedder as Embedder
from .reading.reader import Answer as Answer
from .reading.reader import Evidence as Evidence
from .reading.reader import Reader as Reader
from .reading.vectors import Vectors as Vectors
from .tasks.evaluate import evaluate as evaluate
from .tasks.finetune import finetune as finetune

__version__: str
