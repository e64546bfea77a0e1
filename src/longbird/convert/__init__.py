"""Long models made of short ones, with a certificate of what was copied and how exact it is."""

from longbird.convert.certificate import Certificate as Certificate
from longbird.convert.lengthen import convert_checkpoint as convert_checkpoint
from longbird.convert.lengthen import longer_model as longer_model
from longbird.hf.tasks import ENCODER_TASKS as TASKS

__all__ = ["TASKS", "Certificate", "convert_checkpoint", "longer_model"]
