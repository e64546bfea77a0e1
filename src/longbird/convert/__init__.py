"""Long models made of short ones, with a certificate of what was copied and how exact it is."""

from longbird.convert.certificate import Certificate as Certificate
from longbird.convert.lengthen import TASKS as TASKS
from longbird.convert.lengthen import convert_checkpoint as convert_checkpoint
