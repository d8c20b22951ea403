"""Houses as convex bodies: what a laser beam meets, and the roof planes as truth."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spatialq.demo.terrain import ORIGIN, YARD
from spatialq.runtime.arrays import Floats


class Body(NamedTuple):
    """A convex body: all points p with ``planes[:, :3] @ p <= planes[:, 3]``.

    `box` is umin, vmin, umax, vmax in metres; `colour` is red, green, blue of 8 bit.
    """

    planes: Floats
    box: tuple[float, float, float, float]
    classification: int
    colour: tuple[int, int, int]


class RoofPlane(NamedTuple):
    """One face of a roof.

    `corners` is float64[4, 3] in the CRS of the tile, counter-clockwise from above; `normal` is
    the unit vector out of the roof and ``normal @ p == offset`` on the plane.
    """

    house: str
    corners: Floats
    normal: Floats
    offset: float


@dataclass(frozen=True)
class House:
    """A rectangular house, in metres; its own x runs along the ridge.

    Attributes
    ----------
    u, v, floor, angle
        Position of the outer south-west corner in the tile, height of the ground floor, and the
        direction of the house's x axis in degrees counter-clockwise from east.
    length, width
        Outer size of the walls.
    eaves
        Height above the floor at which the roof's underside meets the outer wall face.
    pitch
        Slope of both roof halves in degrees; 0 is a flat roof.
    thickness
        Of the roof, perpendicular to it.
    eaves_overhang, gable_overhang
        Horizontal reach of the roof beyond the walls.
    """

    name: str
    u: float
    v: float
    floor: float
    angle: float
    length: float
    width: float
    eaves: float
    pitch: float
    thickness: float = 0.25
    eaves_overhang: float = 0.6
    gable_overhang: float = 0.5
    roof_colour: tuple[int, int, int] = (150, 75, 55)
    wall_colour: tuple[int, int, int] = (205, 198, 185)

    @property
    def slope(self) -> float:
        """Rise of the roof per metre."""
        return math.tan(math.radians(self.pitch))

    @property
    def plumb_thickness(self) -> float:
        """Vertical thickness of the roof."""
        return self.thickness / math.cos(math.radians(self.pitch))

    @property
    def axes(self) -> Floats:
        """Rows are the house's x, y and z directions in the tile."""
        cos, sin = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        return np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])

    @property
    def centre(self) -> tuple[float, float]:
        """Middle of the house in the tile."""
        u, v, _ = self.to_tile(np.array([[self.length / 2, self.width / 2, 0.0]]))[0]
        return float(u), float(v)

    def to_tile(self, points: Floats) -> Floats:
        """Turn float64[n, 3] of the house into u, v and height."""
        return np.array([self.u, self.v, self.floor]) + points @ self.axes

    def bodies(self) -> list[Body]:
        """Walls with gables as one body, each half of the roof as another."""
        length, width, middle = self.length, self.width, self.width / 2
        under = [_under(self.slope, self.eaves, 0.0), _under(-self.slope, self.eaves, width)]
        walls = [*_sides(0.0, length, 0.0, width), (0.0, 0.0, -1.0, 3.0), *under]
        bodies = [self._body(walls, (0.0, length, 0.0, width), self.wall_colour, 6)]
        reach, lap = self.eaves_overhang, self.gable_overhang
        halves = (
            [(-reach, middle), (middle, width + reach)] if self.pitch else [(-reach, width + reach)]
        )
        for low, high in halves:
            lower = under[0] if low < 0 else under[1]
            upper = (*lower[:3], lower[3] + self.plumb_thickness * lower[2])
            faces = [*_sides(-lap, length + lap, low, high), tuple(-q for q in lower), upper]
            extent = (-lap, length + lap, low, high)
            bodies.append(self._body(faces, extent, self.roof_colour, 6))
        return bodies

    def roof_planes(self) -> list[RoofPlane]:
        """Upper faces of the roof in the CRS of the tile."""
        reach, lap, width = self.eaves_overhang, self.gable_overhang, self.width
        top = self.eaves + self.plumb_thickness
        ridge, foot = top + width / 2 * self.slope, top - reach * self.slope
        west, east = -lap, self.length + lap
        if self.pitch:
            south = [(west, -reach, foot), (east, -reach, foot)]
            south += [(east, width / 2, ridge), (west, width / 2, ridge)]
            north = [(west, width / 2, ridge), (east, width / 2, ridge)]
            north += [(east, width + reach, foot), (west, width + reach, foot)]
            faces = [south, north]
        else:
            y0, y1 = -reach, width + reach
            faces = [[(west, y0, top), (east, y0, top), (east, y1, top), (west, y1, top)]]
        planes = []
        for face in faces:
            corners = self.to_tile(np.array(face)) + np.array([*ORIGIN, 0.0])
            normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
            normal /= np.linalg.norm(normal)
            planes.append(RoofPlane(self.name, corners, normal, float(normal @ corners[0])))
        return planes

    def _body(
        self,
        faces: list[tuple[float, ...]],
        extent: tuple[float, float, float, float],
        colour: tuple[int, int, int],
        classification: int,
    ) -> Body:
        return oriented_body(self, faces, extent, classification, colour)


def oriented_body(
    frame: House,
    faces: list[tuple[float, ...]],
    extent: tuple[float, float, float, float],
    classification: int,
    colour: tuple[int, int, int],
) -> Body:
    """Move half-spaces ``a x + b y + c z <= d`` of a house's frame into the tile.

    Parameters
    ----------
    extent
        xmin, xmax, ymin, ymax of the body in the frame.
    """
    local = np.array(faces)
    normals = local[:, :3] @ frame.axes
    offsets = local[:, 3] + normals @ np.array([frame.u, frame.v, frame.floor])
    x0, x1, y0, y1 = extent
    corners = frame.to_tile(np.array([(x, y, 0.0) for x in (x0, x1) for y in (y0, y1)]))
    (u0, v0), (u1, v1) = corners[:, :2].min(axis=0), corners[:, :2].max(axis=0)
    planes = np.column_stack([normals, offsets])
    return Body(planes, (u0, v0, u1, v1), classification, colour)


def box_body(frame: House, classification: int, colour: tuple[int, int, int]) -> Body:
    """Give the plain box of a frame's length, width and eaves: cars, garden walls, decks."""
    extent = (0.0, frame.length, 0.0, frame.width)
    faces = [*_sides(*extent), (0.0, 0.0, -1.0, frame.thickness), (0.0, 0.0, 1.0, frame.eaves)]
    return oriented_body(frame, faces, extent, classification, colour)


def _sides(x0: float, x1: float, y0: float, y1: float) -> list[tuple[float, ...]]:
    return [(-1.0, 0, 0, -x0), (1.0, 0, 0, x1), (0, -1.0, 0, -y0), (0, 1.0, 0, y1)]


def _under(slope: float, eaves: float, y: float) -> tuple[float, ...]:
    """Half-space below the plane that rises by `slope` along y and meets `eaves` at y."""
    scale = math.hypot(slope, 1.0)
    return (0.0, -slope / scale, 1.0 / scale, (eaves - slope * y) / scale)


def _model_house() -> House:
    length, width, angle = 10.0, 8.0, 23.0
    turn = math.radians(angle)
    u = YARD[0] - length / 2 * math.cos(turn) + width / 2 * math.sin(turn)
    v = YARD[1] - length / 2 * math.sin(turn) - width / 2 * math.cos(turn)
    # whole centimetres, so that the map conversion can be written in few digits
    corner = (round(u, 2), round(v, 2))
    return House("model house", *corner, YARD[2] + 0.15, angle, length, width, 5.6, 40.0)


MODEL_HOUSE = _model_house()
