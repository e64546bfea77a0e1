"""Reading and writing checkpoints of Longbird and of other libraries.

`folders` recognises a checkpoint and reads its configuration, `files` reads tensors, `sources`
gives them our names, `fit` compares them with a model, and `load` and `save` put the steps
together. Each family of other libraries is a table of names in a module of its own.
"""

from longbird.models.checkpoints.folders import FAMILIES as FAMILIES
from longbird.models.checkpoints.folders import read_config as read_config
from longbird.models.checkpoints.load import load_checkpoint as load_checkpoint
from longbird.models.checkpoints.save import save_checkpoint as save_checkpoint
