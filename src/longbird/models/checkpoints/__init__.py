"""Checkpoints of other libraries: one name table for each, read in both directions."""

from longbird.files.writing import writing_folder as writing_folder
from longbird.models.checkpoints.configs import read_config as read_config
from longbird.models.checkpoints.detect import FAMILIES as FAMILIES
from longbird.models.checkpoints.detect import own_folder as own_folder
from longbird.models.checkpoints.load import load_checkpoint as load_checkpoint
from longbird.models.checkpoints.own import load_own as load_own
from longbird.models.checkpoints.own import load_state as load_state
from longbird.models.checkpoints.save import save_checkpoint as save_checkpoint
from longbird.models.checkpoints.sentence_transformers import (
    write_sentence_transformers as write_sentence_transformers,
)
