"""A camera: its position, its view and the size of its picture."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import cached_property

import numpy as np

from spatialq.functions.declaration import Parameters, parameter, parameters_of
from spatialq.runtime.arrays import Floats

DEFAULT_FOV = 60.0
MIN_SINE = 1e-6
"""Minimum sine of the angle between `up` and the view: with a smaller one, rounding would decide
which side of the picture is up."""

MIN, MAX = 1e-30, 1e30
"""Range of the numbers of a camera, so that products of several do not overflow."""
PLACE = f"three numbers from {-MAX:g} to {MAX:g}"


@dataclass(frozen=True)
class Camera(Parameters):
    """Where a camera stands, where it looks, and how large its picture is."""

    eye: tuple[float, ...] = parameter(MISSING, "Where it stands.", must_be=PLACE)
    target: tuple[float, ...] = parameter(
        MISSING, "A point in the middle of its picture.", must_be=PLACE
    )
    up: tuple[float, ...] = parameter(
        (0.0, 0.0, 1.0), "What is up in the picture; not along the view.", must_be=PLACE
    )
    fov: float | None = parameter(
        None,
        "Angle of the view from bottom to top; 60 unless there is a view_height.",
        unit="degrees",
        at_least=MIN,
        below=180,
    )
    view_height: float | None = parameter(
        None,
        "Makes the view parallel: it shows so much of the scene from bottom to top.",
        at_least=MIN,
        at_most=MAX,
    )
    width: float = parameter(1920.0, "Of the picture, pixels.", at_least=MIN, at_most=MAX)
    height: float = parameter(1080.0, "Of the picture, pixels.", at_least=MIN, at_most=MAX)
    near: float = parameter(
        0.0, "Distance along the view from which it sees.", at_least=0, at_most=MAX
    )
    far: float | None = parameter(
        None, "Distance along the view to which it sees; by default to infinity.", must_be="> near"
    )

    def check(self) -> None:
        """Reject places and directions that make no view."""
        for name in ("eye", "target", "up"):
            place = getattr(self, name)
            if len(place) != 3 or not all(abs(each) <= MAX for each in place):
                self.reject(name, PLACE)
        if self.eye == self.target:
            self.reject("target", "another place than eye")
        if not any(self.up):
            self.reject("up", "a direction")
        forward = _unit(np.subtract(self.target, self.eye))
        if np.linalg.norm(np.cross(forward, _unit(np.array(self.up)))) < MIN_SINE:
            self.reject("up", "across the view from eye to target (looking down: [0, 1, 0])")
        if self.fov is not None and self.view_height is not None:
            self.reject("view_height", "left out where there is a fov")
        if self.far is not None and not self.far > self.near:
            self.reject("far", f"> near ({self.near:g})")

    @classmethod
    def of(cls, caller: str, given: object) -> "Camera":
        """Make a camera from named values.

        Parameters
        ----------
        caller : str
            The function that was called, for the error sentence.
        given : mapping

        Raises
        ------
        ValueError
            If there are no values, a name is missing or unknown, or a value is wrong.
        """
        if not isinstance(given, Mapping):
            message = (
                f"{caller}: camera must be a struct such as "
                f"{{eye: [0, 0, 100], target: [50, 50, 0]}}, got {in_sql(given)}"
            )
            raise ValueError(message)
        place = f"{caller}: camera"
        known = {each.name: each for each in parameters_of(cls)}
        if unknown := sorted(set(given) - set(known)):
            message = f"{place} has no {unknown[0]!r}; there is {', '.join(known)}"
            raise ValueError(message)
        chosen = {}
        for name, each in known.items():
            if given.get(name) is None:
                if each.default is MISSING:
                    message = f"{place} must have {name!r}"
                    raise ValueError(message)
                continue
            try:
                chosen[name] = each.convert(given[name])
            except TypeError as error:
                message = f"{place}: {name} must be {error}, got {in_sql(given[name])}"
                raise ValueError(message) from None
        return cls(**chosen, caller=place)

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

    def axes(self) -> Floats:
        """Give the unit vectors to the right, up and away from the viewer, as rows."""
        return self._axes

    @cached_property
    def _axes(self) -> Floats:
        forward = _unit(np.subtract(self.target, self.eye))
        right = _unit(np.cross(forward, self.up))
        return np.array([right, np.cross(right, forward), forward])

    def planes(self) -> Floats:
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


def _unit(vector: Floats) -> Floats:
    largest = np.abs(vector).max()  # scaled first: squares may overflow or underflow
    shorter = vector / largest
    return np.asarray(shorter / np.linalg.norm(shorter))


def in_sql(value: object) -> str:
    """Write a JSON value as SQL, for an error sentence."""
    if isinstance(value, list):
        return f"[{', '.join(map(in_sql, value))}]"
    return "NULL" if value is None else repr(value)
