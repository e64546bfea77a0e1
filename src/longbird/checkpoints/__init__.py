"""Checkpoints of other libraries: one name table for each, read in both directions."""

from longbird.checkpoints.files import check_folder as check_folder
from longbird.checkpoints.load import is_foreign as is_foreign
from longbird.checkpoints.load import load_checkpoint as load_checkpoint
from longbird.checkpoints.load import pooler_of as pooler_of
from longbird.checkpoints.load import report as report
from longbird.checkpoints.load import save_checkpoint as save_checkpoint
from longbird.checkpoints.load import wrong_shapes as wrong_shapes
