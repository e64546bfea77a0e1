from .causal_lm import LongbirdForCausalLM as LongbirdForCausalLM
from .classification import (
    LongbirdForMultipleChoice as LongbirdForMultipleChoice,
)
from .classification import (
    LongbirdForSequenceClassification as LongbirdForSequenceClassification,
)
from .classification import (
    LongbirdForTokenClassification as LongbirdForTokenClassification,
)
from .collator import LongbirdCollator as LongbirdCollator
from .config import LongbirdConfig as LongbirdConfig
from .config import LongbirdSeq2SeqConfig as LongbirdSeq2SeqConfig
from .embedding import LongbirdForEmbedding as LongbirdForEmbedding
from .encoder import LongbirdModel as LongbirdModel
from .masked_lm import LongbirdForMaskedLM as LongbirdForMaskedLM
from .masked_lm import LongbirdForPreTraining as LongbirdForPreTraining
from .question_answering import LongbirdForQuestionAnswering as LongbirdForQuestionAnswering
from .rolling_cache import RollingCache as RollingCache
from .seq2seq import (
    LongbirdForConditionalGeneration as LongbirdForConditionalGeneration,
)
from .seq2seq import (
    LongbirdSeq2SeqForQuestionAnswering as LongbirdSeq2SeqForQuestionAnswering,
)
from .seq2seq import (
    LongbirdSeq2SeqForSequenceClassification as LongbirdSeq2SeqForSequenceClassification,
)
from .seq2seq import LongbirdSeq2SeqModel as LongbirdSeq2SeqModel
