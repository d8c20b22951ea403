"""The macro of `write_ground`."""

from . import WRITE_GROUND

MACROS = (WRITE_GROUND.macro,)
