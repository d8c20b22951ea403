"""The types of NumPy arrays, by what is in them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

DType = np.dtype[Any]
"""Of what is in one."""
Array = NDArray[Any]
"""Of numbers of any type."""
Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Uint32s = NDArray[np.uint32]
Uint16s = NDArray[np.uint16]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Records = NDArray[np.void]
"""Of structs, such as points of a file."""
