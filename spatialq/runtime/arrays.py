"""The types of NumPy arrays of numbers, by what is in them."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Uint16s = NDArray[np.uint16]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
