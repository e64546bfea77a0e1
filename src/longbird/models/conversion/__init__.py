"""Make long models from short ones, with a certificate of what was copied and how exact it is."""

from longbird.models.conversion.certificate import Certificate as Certificate
from longbird.models.conversion.lengthen import convert_checkpoint as convert_checkpoint
from longbird.models.conversion.lengthen import longer_model as longer_model
from longbird.models.integration.tasks import ENCODER_TASKS as TASKS

__all__ = ["TASKS", "Certificate", "convert_checkpoint", "longer_model"]
