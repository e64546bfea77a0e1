"""The models, as `transformers.PreTrainedModel`s."""

from longbird.models.answering import LongbirdForQuestionAnswering as LongbirdForQuestionAnswering
from longbird.models.causal import LongbirdForCausalLM as LongbirdForCausalLM
from longbird.models.classification import (
    LongbirdForMultipleChoice as LongbirdForMultipleChoice,
)
from longbird.models.classification import (
    LongbirdForSequenceClassification as LongbirdForSequenceClassification,
)
from longbird.models.classification import (
    LongbirdForTokenClassification as LongbirdForTokenClassification,
)
from longbird.models.collator import LongbirdCollator as LongbirdCollator
from longbird.models.config import LongbirdConfig as LongbirdConfig
from longbird.models.config import LongbirdSeq2SeqConfig as LongbirdSeq2SeqConfig
from longbird.models.embedding import LongbirdForEmbedding as LongbirdForEmbedding
from longbird.models.encoder import LongbirdModel as LongbirdModel
from longbird.models.language import LongbirdForMaskedLM as LongbirdForMaskedLM
from longbird.models.language import LongbirdForPreTraining as LongbirdForPreTraining
from longbird.models.rolling import RollingCache as RollingCache
from longbird.models.seq2seq import (
    LongbirdForConditionalGeneration as LongbirdForConditionalGeneration,
)
from longbird.models.seq2seq import (
    LongbirdSeq2SeqForQuestionAnswering as LongbirdSeq2SeqForQuestionAnswering,
)
from longbird.models.seq2seq import (
    LongbirdSeq2SeqForSequenceClassification as LongbirdSeq2SeqForSequenceClassification,
)
from longbird.models.seq2seq import LongbirdSeq2SeqModel as LongbirdSeq2SeqModel
