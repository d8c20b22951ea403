"""A cloud of points that is given as a whole, such as the one that others are compared with."""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Cloud:
    """Points, in the memory of the host.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    """

    x: Any
    y: Any
    z: Any
    point_id: Any = None

    def __len__(self) -> int:
        return len(self.x)

    def lifted(self, level: float) -> "Cloud":
        """Give the cloud with heights in another unit, of which `level` are one of today's."""
        return replace(self, z=self.z * level)
