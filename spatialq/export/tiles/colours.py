"""Colours as glTF has them: linear, where those of clouds and models are sRGB (IEC 61966-2-1)."""

from typing import TYPE_CHECKING

import numpy as np

from spatialq.runtime.arrays import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

THRESHOLD, SLOPE, OFFSET, POWER = 0.04045, 12.92, 0.055, 2.4


def linear(srgb: Floats, bits: int) -> "NDArray[np.uint8 | np.uint16]":
    """Convert values from 0 to 1 to whole numbers of 8 or 16 bits."""
    curve = ((srgb + OFFSET) / (1 + OFFSET)) ** POWER
    steps: Floats = np.rint(np.where(srgb <= THRESHOLD, srgb / SLOPE, curve) * (2**bits - 1))
    return steps.astype(np.uint8) if bits == 8 else steps.astype(np.uint16)
