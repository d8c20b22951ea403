"""How tiles are written."""

import math
from dataclasses import dataclass

ERROR_FACTOR = 16.0
"""Viewers refine where the error is more than 16 pixels: so voxels are as wide as a pixel."""


@dataclass(frozen=True)
class TileOptions:
    """How tiles are written.

    Attributes
    ----------
    compress : bool
        Whether with EXT_meshopt_compression.
    implicit : bool
        Whether the tree is implied by subtrees instead of written tile by tile.
    colour_bits : int
        8 or 16. In 8 bits the dark tones of a photograph are lost, since colours are linear.
    error_factor : float
        Geometric error of a tile, in widths of its voxels.
    """

    compress: bool = True
    implicit: bool = False
    colour_bits: int = 16
    error_factor: float = ERROR_FACTOR

    def check(self, function: str) -> None:
        """Reject values that make no sense.

        Raises
        ------
        ValueError
            With the option, its value and what would be right.
        """
        if self.colour_bits not in (8, 16):
            message = f"{function}: colour_bits must be 8 or 16, got {self.colour_bits!r}"
            raise ValueError(message)
        factor = self.error_factor
        is_number = isinstance(factor, int | float) and not isinstance(factor, bool)
        if not (is_number and 0 < factor < math.inf):
            message = f"{function}: error_factor must be a number > 0 and finite, got {factor!r}"
            raise ValueError(message)
        for name in ("compress", "implicit"):
            if not isinstance(getattr(self, name), bool):
                message = f"{function}: {name} must be true or false, got {getattr(self, name)!r}"
                raise ValueError(message)
