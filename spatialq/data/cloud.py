"""A cloud of points that is given as a whole, such as the one that others are compared with."""

from dataclasses import dataclass, replace

from spatialq.runtime.arrays import Floats, Ints


@dataclass(frozen=True)
class Cloud:
    """Points, in the memory of the host.

    Parameters
    ----------
    x, y, z : float64[n]
    point_id : int64[n] or None
        None for 0, 1, 2 ...
    """

    x: Floats
    y: Floats
    z: Floats
    point_id: Ints | None = None

    def __len__(self) -> int:
        return len(self.x)

    def lifted(self, level: float) -> "Cloud":
        """Give the cloud with heights in another unit, of which `level` are one of today's."""
        return replace(self, z=self.z * level)
