"""The header of a cloud whose levels of detail are written."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spatialq.io.source import Box


@dataclass(frozen=True)
class Cloud:
    """What writers of nodes know of a cloud before the first node.

    Attributes
    ----------
    function : str
        The function that was called, for messages.
    points : int
    box : Box
        xmin, ymin, zmin, xmax, ymax, zmax.
    crs : str, optional
        PROJJSON; heights have the unit of x and y.
    metres : float, optional
        In a unit of a cloud without a CRS.
    brightest : int
        Greatest red, green or blue of all points.
    full : int
        Red, green or blue that is drawn as full light.
    """

    function: str
    points: int
    box: "Box"
    crs: str | None
    metres: float | None
    brightest: int
    full: int
