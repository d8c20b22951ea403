"""The macro of `write_tiles`."""

from . import WRITE_TILES

MACROS = (WRITE_TILES.macro,)
