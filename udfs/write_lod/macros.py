"""The macro of `write_lod`."""

from . import WRITE_LOD

MACROS = (WRITE_LOD.macro,)
