"""The camera of `lod_select`: its position, its view and the size of its picture."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from spatialq.functions.declaration import Choices, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

FUNCTION = "lod_select"
DEFAULT_FOV = 60.0
MIN_SINE = 1e-6
"""Minimum sine of the angle between `up` and the view: with a smaller one, rounding would decide
which side of the picture is up."""

MIN_VALUE, MAX_VALUE = 1e-30, 1e30
"""Range of the numbers of a camera, so that products of several do not overflow."""


@dataclass(frozen=True)
class Camera(Choices):
    """Position, direction and picture size of a camera.

    Parameters
    ----------
    eye, target : three numbers, each of at most 1e30
        Position of the camera, and a point in the centre of its picture.
    up : three numbers
        Direction that is up in the picture; must not be along the view.
    fov : float, degrees, >= 1e-30 and < 180, optional
        Angle of the view from bottom to top; 60 unless there is a `view_height`.
    view_height : float, >= 1e-30 and <= 1e30, optional
        Makes the view parallel; the height of the scene from bottom to top of the picture.
    width, height : float, pixels, >= 1e-30 and <= 1e30
    near, far : float, 0 <= near < far, near <= 1e30
        Range of distances along the view that is visible; nothing behind the camera is.
    """

    FUNCTION = f"{FUNCTION}: camera"

    eye: tuple[float, ...]
    target: tuple[float, ...]
    up: tuple[float, ...] = (0.0, 0.0, 1.0)
    fov: float | None = None
    view_height: float | None = None
    width: float = 1920.0
    height: float = 1080.0
    near: float = 0.0
    far: float | None = None

    def __post_init__(self) -> None:
        for name in ("eye", "target", "up"):
            place = getattr(self, name)
            if len(place) != 3 or not all(abs(each) <= MAX_VALUE for each in place):
                self.refuse(name, f"three numbers from {-MAX_VALUE:g} to {MAX_VALUE:g}")
        if self.eye == self.target:
            self.refuse("target", "another place than eye")
        if not any(self.up):
            self.refuse("up", "a direction")
        forward = _unit(np.subtract(self.target, self.eye))
        if np.linalg.norm(np.cross(forward, _unit(np.array(self.up)))) < MIN_SINE:
            self.refuse("up", "across the view from eye to target (looking down: [0, 1, 0])")
        if self.fov is not None and not MIN_VALUE <= self.fov < 180:
            self.refuse("fov", f">= {MIN_VALUE:g} and < 180 degrees")
        if self.fov is not None and self.view_height is not None:
            self.refuse("view_height", "left out where there is a fov")
        for name in ("view_height", "width", "height"):
            value = getattr(self, name)
            if value is not None and not MIN_VALUE <= value <= MAX_VALUE:
                self.refuse(name, f">= {MIN_VALUE:g} and <= {MAX_VALUE:g}")
        if not 0 <= self.near <= MAX_VALUE:
            self.refuse("near", f">= 0 and <= {MAX_VALUE:g}")
        if self.far is not None and not self.far > self.near:
            self.refuse("far", f"> near ({self.near:g})")

    @classmethod
    def of(cls, given: Any) -> "Camera":
        """Make a camera from named values.

        Raises
        ------
        ValueError
            If there are no values, a name is missing or unknown, or a value is wrong.
        """
        if not isinstance(given, Mapping):
            message = (
                f"{FUNCTION}: camera must be a struct such as "
                f"{{eye: [0, 0, 100], target: [50, 50, 0]}}, got {in_sql(given)}"
            )
            raise ValueError(message)
        known = {each.name: each for each in fields(cls)}
        if unknown := sorted(set(given) - set(known)):
            message = f"{cls.FUNCTION} has no {unknown[0]!r}; there is {', '.join(known)}"
            raise ValueError(message)
        hints = get_type_hints(cls)
        chosen = {}
        for name, each in known.items():
            if given.get(name) is None:
                if each.default is MISSING:
                    message = f"{cls.FUNCTION} must have {name!r}"
                    raise ValueError(message)
                continue
            try:
                chosen[name] = Kind.of(hints[name]).convert(given[name])
            except TypeError as error:
                message = f"{cls.FUNCTION}: {name} must be {error}, got {in_sql(given[name])}"
                raise ValueError(message) from None
        return cls(**chosen)

    @property
    def is_parallel(self) -> bool:
        """Whether the projection is parallel, so that size does not depend on distance."""
        return self.view_height is not None

    @property
    def scale(self) -> float:
        """Pixels of a length of 1 at a distance of 1, or at any distance in a parallel view."""
        if self.view_height is not None:
            return self.height / self.view_height
        return self.height / 2 / self._half_height

    @property
    def _half_height(self) -> float:
        """Half the height of the scene in the picture at a distance of 1."""
        return math.tan(math.radians(DEFAULT_FOV if self.fov is None else self.fov) / 2)

    def axes(self) -> "FloatArray":
        """Give the unit vectors to the right, up and away from the viewer, as rows."""
        forward = _unit(np.subtract(self.target, self.eye))
        right = _unit(np.cross(forward, self.up))
        return np.array([right, np.cross(right, forward), forward])

    def planes(self) -> "FloatArray":
        """Give the planes around the visible space: rows of the inward normal and an offset.

        A point p is inside where ``normal @ (p - eye) + offset >= 0`` for all rows.
        """
        right, up, forward = self.axes()
        aspect = self.width / self.height
        rows = [(forward, -self.near)]
        if self.far is not None:
            rows.append((-forward, self.far))
        for axis, share in ((right, aspect), (up, 1.0)):
            for sign in (-1.0, 1.0):
                if self.view_height is not None:
                    rows.append((sign * axis, share * self.view_height / 2))
                else:
                    rows.append((sign * axis + share * self._half_height * forward, 0.0))
        return np.array([(*normal, offset) for normal, offset in rows])


def _unit(vector: "FloatArray") -> "FloatArray":
    largest = np.abs(vector).max()  # scaled first: squares may overflow or underflow
    shorter = vector / largest
    return np.asarray(shorter / np.linalg.norm(shorter))


def in_sql(value: Any) -> str:
    """Write a JSON value as SQL, for an error sentence."""
    if isinstance(value, list):
        return f"[{', '.join(map(in_sql, value))}]"
    return "NULL" if value is None else repr(value)
