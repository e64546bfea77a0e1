"""Checkpoints of other libraries: one name table for each, read in both directions."""

from longbird.checkpoints.detect import FAMILIES as FAMILIES
from longbird.checkpoints.detect import HUB as HUB
from longbird.checkpoints.detect import OWN as OWN
from longbird.checkpoints.detect import find_folder as find_folder
from longbird.checkpoints.detect import is_arrays as is_arrays
from longbird.checkpoints.detect import model_type_of as model_type_of
from longbird.checkpoints.load import check_own as check_own
from longbird.checkpoints.load import compare_state as compare_state
from longbird.checkpoints.load import load_checkpoint as load_checkpoint
from longbird.checkpoints.save import save_checkpoint as save_checkpoint
from longbird.checkpoints.sentence_transformers import write_pipeline as write_pipeline
from longbird.checkpoints.writing import writing_folder as writing_folder
