"""Where tiles lie: from metres around an origin to the earth, or to the coordinates of the map."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import CrsError, CrsWarning
from spatialq.io import crs as crs_text
from spatialq.runtime.arrays import Floats

if TYPE_CHECKING:
    from spatialq.io.source import Box

WGS84, WGS84_3D = "EPSG:4326", "EPSG:4979"
SEMI_MAJOR, FLATTENING = 6378137.0, 1 / 298.257223563
STEP = 100.0
"""Metres to each side, from which the directions of the map's axes on the earth follow."""
FAR = 1.0
"""Metres by which the plane of the map may leave the earth without a warning."""


@dataclass(frozen=True)
class Place:
    """The frame in which tiles are written: metres along the axes of the map, from an origin.

    Attributes
    ----------
    origin : float64[3]
        In the units of the map.
    metres : float
        In a unit of the map.
    transform : sequence of float
        16 numbers, column by column: from the frame to the earth (EPSG:4978), or to the map in
        metres where its CRS is not known.
    crs : str, optional
        PROJJSON of the map where tiles lie on the earth.
    """

    origin: Floats
    metres: float
    transform: tuple[float, ...]
    crs: str | None = None

    @property
    def lies_in(self) -> str:
        """Say for people what the transform leads to."""
        return "EPSG:4978" if self.crs else "the coordinates of the source, in metres"

    def local(self, xyz: Floats) -> Floats:
        """Give positions of the map in the frame."""
        return (xyz - self.origin) * self.metres


def place_of(function: str, crs: str | None, box: "Box", metres: float | None = None) -> Place:
    """Choose the frame for data in a box: its origin is the middle of the box, at its foot.

    Parameters
    ----------
    function : str
        The function that was called, for messages.
    crs : str, optional
        PROJJSON of the data.
    box : Box
        xmin, ymin, zmin, xmax, ymax, zmax.
    metres : float, optional
        In a unit of data without a CRS; by default 1.

    Raises
    ------
    CrsError
        If x and y are degrees.

    Warns
    -----
    CrsWarning
        If PROJ knows no way from the CRS to the earth: the place is then that of data without a
        CRS. If the data reach so far that the plane of the map leaves the earth.
    """
    origin = np.array([(box[0] + box[3]) / 2, (box[1] + box[4]) / 2, box[2]])
    units = None if crs is None else crs_text.metres_per_unit(crs)
    if crs is not None and units is None:
        message = (
            f"{function}: tiles need x and y of a map, got degrees of {crs_text.name(crs)}: "
            "reproject the points first, for example to their UTM zone"
        )
        raise CrsError(message)
    metres = units[0] if units else metres or 1.0
    on_map = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    nowhere = Place(origin, metres, (*on_map, *(origin * metres).tolist(), 1.0))
    if crs is None:
        return nowhere
    try:
        to_earth = _to_earth(function, crs, box)
    except CrsError as error:
        message = f"{function}: tiles are not placed on the earth: {error}"
        warnings.warn(message, CrsWarning, stacklevel=2)
        return nowhere
    return _on_earth(function, Place(origin, metres, nowhere.transform, crs), box, to_earth)


def _on_earth(function: str, place: Place, box: "Box", to_earth: Any) -> Place:
    """Place the frame on the earth, with the axes of the map at its origin."""
    step = STEP / place.metres
    around = np.concatenate(
        [[place.origin] * 3 - step * np.eye(3), [place.origin] * 3 + step * np.eye(3)]
    )
    ends = to_earth(around)
    axes = (ends[3:] - ends[:3]) / (2 * STEP)
    (middle,) = to_earth(place.origin[None])
    if not (np.isfinite(axes).all() and np.isfinite(middle).all()):
        message = (
            f"{function}: tiles are not placed on the earth: {crs_text.name(place.crs)} is not "
            f"defined at {', '.join(map(str, place.origin.tolist()))}"
        )
        warnings.warn(message, CrsWarning, stacklevel=3)
        return Place(place.origin, place.metres, place.transform)
    corners = np.array(np.meshgrid(*zip(box[:3], box[3:], strict=True))).reshape(3, -1).T
    off = float(
        np.linalg.norm(to_earth(corners) - (place.local(corners) @ axes + middle), axis=1).max()
    )
    if off > FAR:
        message = (
            f"{function}: tiles lie in the plane of the map, which is up to {off:.1f} m off the "
            f"earth at their borders"
        )
        warnings.warn(message, CrsWarning, stacklevel=3)
    columns = [[*axis.tolist(), 0.0] for axis in axes]
    flat = (*columns[0], *columns[1], *columns[2], *middle.tolist(), 1.0)
    return Place(place.origin, place.metres, flat, place.crs)


def _to_earth(function: str, crs: str, box: "Box") -> Any:
    """Give the function from coordinates of a map to EPSG:4978.

    Heights without a datum, and those whose grid is not installed, count as ellipsoidal ones.
    """
    from spatialq.io.reproject import area_of, reprojection

    area = area_of(crs, box)
    try:
        way = reprojection(function, crs, crs_text.from_text(WGS84_3D), area)
    except CrsError:
        way = reprojection(function, crs_text.horizontal(crs), crs_text.from_text(WGS84), area)
    metres = 1.0 if way.moves_heights else (crs_text.metres_per_unit(crs) or (1.0, 1.0))[1]

    def to_earth(xyz: Floats) -> Floats:
        east, north, up = way(*np.ascontiguousarray(xyz.T))
        return geocentric(east, north, up if way.moves_heights else xyz[:, 2] * metres)

    return to_earth


def geocentric(longitude: Any, latitude: Any, height: Any) -> Floats:
    """Convert degrees and metres on the ellipsoid of WGS 84 to its geocentric coordinates.

    Returns
    -------
    float64[n, 3]
    """
    along, across = np.radians(longitude), np.radians(latitude)
    squared = FLATTENING * (2 - FLATTENING)
    radius = SEMI_MAJOR / np.sqrt(1 - squared * np.sin(across) ** 2)
    level = (radius + height) * np.cos(across)
    up = (radius * (1 - squared) + height) * np.sin(across)
    return np.stack([level * np.cos(along), level * np.sin(along), up], axis=1)
