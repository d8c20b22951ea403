"""A camera: what it sees of a scene, and how large; `lod_select` in SQL stands on it."""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
import pyarrow as pa

from spatialq.database.sql_function import SqlFunction
from spatialq.functions.declaration import Choices, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

FUNCTION = "lod_select"
DEFAULT_FOV = 60.0
LEAST_SINE = 1e-6
"""Of the angle between `up` and the view: a smaller one leaves the picture's top to rounding."""

LEAST, MOST = 1e-30, 1e30
"""Of what a camera is made: products of several stay numbers."""


@dataclass(frozen=True)
class Camera(Choices):
    """Where a camera stands, where it looks, and how large its picture is.

    Parameters
    ----------
    eye, target : three numbers, each of at most 1e30
        Where it stands, and a point in the middle of its picture.
    up : three numbers
        What is up in the picture; not along the view.
    fov : float, degrees, >= 1e-30 and < 180, optional
        Angle of the view from bottom to top; 60 unless there is a `view_height`.
    view_height : float, >= 1e-30 and <= 1e30, optional
        Makes the view parallel: it shows so much of the scene from bottom to top.
    width, height : float, pixels, >= 1e-30 and <= 1e30
    near, far : float, 0 <= near < far, near <= 1e30
        Distances along the view between which it sees; it does not look back.
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
            if len(place) != 3 or not all(abs(each) <= MOST for each in place):
                self.refuse(name, f"three numbers from {-MOST:g} to {MOST:g}")
        if self.eye == self.target:
            self.refuse("target", "another place than eye")
        if not any(self.up):
            self.refuse("up", "a direction")
        forward = _unit(np.subtract(self.target, self.eye))
        if np.linalg.norm(np.cross(forward, _unit(np.array(self.up)))) < LEAST_SINE:
            self.refuse("up", "across the view from eye to target (looking down: [0, 1, 0])")
        if self.fov is not None and not LEAST <= self.fov < 180:
            self.refuse("fov", f">= {LEAST:g} and < 180 degrees")
        if self.fov is not None and self.view_height is not None:
            self.refuse("view_height", "left out where there is a fov")
        for name in ("view_height", "width", "height"):
            value = getattr(self, name)
            if value is not None and not LEAST <= value <= MOST:
                self.refuse(name, f">= {LEAST:g} and <= {MOST:g}")
        if not 0 <= self.near <= MOST:
            self.refuse("near", f">= 0 and <= {MOST:g}")
        if self.far is not None and not self.far > self.near:
            self.refuse("far", f"> near ({self.near:g})")

    @classmethod
    def of(cls, given: Any) -> "Camera":
        """Make a camera of named values.

        Raises
        ------
        ValueError
            If there is none, one is missing or unknown, or its value is wrong.
        """
        if not isinstance(given, Mapping):
            message = (
                f"{FUNCTION}: camera must be a struct such as "
                f"{{eye: [0, 0, 100], target: [50, 50, 0]}}, got {_in_sql(given)}"
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
                message = f"{cls.FUNCTION}: {name} must be {error}, got {_in_sql(given[name])}"
                raise ValueError(message) from None
        return cls(**chosen)

    @property
    def is_parallel(self) -> bool:
        """Whether things are as large far away as near."""
        return self.view_height is not None

    @property
    def scale(self) -> float:
        """Pixels that a length of 1 has at a distance of 1; in a parallel view at any."""
        if self.view_height is not None:
            return self.height / self.view_height
        return self.height / 2 / self._half_height

    @property
    def _half_height(self) -> float:
        """Half of what the picture shows at a distance of 1."""
        return math.tan(math.radians(DEFAULT_FOV if self.fov is None else self.fov) / 2)

    def axes(self) -> "FloatArray":
        """Give the unit vectors to the right, up and away from the viewer, a row each."""
        forward = _unit(np.subtract(self.target, self.eye))
        right = _unit(np.cross(forward, self.up))
        return np.array([right, np.cross(right, forward), forward])

    def planes(self) -> "FloatArray":
        """Give the planes around what it sees: a row each with the normal inwards and an offset.

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
    greatest = np.abs(vector).max()  # first: squares of far or near places leave the range
    shorter = vector / greatest
    return np.asarray(shorter / np.linalg.norm(shorter))


def _in_sql(value: Any) -> str:
    """Write a value of JSON for a sentence."""
    if isinstance(value, list):
        return f"[{', '.join(map(_in_sql, value))}]"
    return "NULL" if value is None else repr(value)


def _view(arguments: Any) -> Any:
    """Check what a call of `lod_select` was given, and say what its query needs of the camera."""
    return pa.array([_checked(**json.loads(text)) for text in arguments.to_pylist()], VIEW)


def _checked(camera: Any, pixels: Any, max_samples: Any) -> dict[str, Any]:
    camera = Camera.of(camera)
    if not Kind.of(float).fits(pixels) or not 0 < pixels < math.inf:
        message = f"{FUNCTION}: pixels must be a number > 0 and finite, got {_in_sql(pixels)}"
        raise ValueError(message)
    if max_samples is not None and not (Kind.of(int).fits(max_samples) and max_samples >= 1):
        message = (
            f"{FUNCTION}: max_samples must be a whole number >= 1 or NULL, "
            f"got {_in_sql(max_samples)}"
        )
        raise ValueError(message)
    x, y, z = camera.eye
    return {
        "x": x,
        "y": y,
        "z": z,
        "planes": [
            {"a": a, "b": b, "c": c, "d": d, "reach": sum(max(each, 0.0) for each in (a, b, c))}
            for a, b, c, d in camera.planes().tolist()
        ],
        "scale": camera.scale,
        "parallel": camera.is_parallel,
        "pixels": pixels,
        "max_samples": None if max_samples is None else min(max_samples, 2**63 - 1),
    }


VIEW = pa.struct(
    {
        **dict.fromkeys("xyz", pa.float64()),
        "planes": pa.list_(pa.struct(dict.fromkeys(("a", "b", "c", "d", "reach"), pa.float64()))),
        "scale": pa.float64(),
        "parallel": pa.bool_(),
        "pixels": pa.float64(),
        "max_samples": pa.int64(),
    }
)
SQL_FUNCTIONS = (
    SqlFunction(
        "lod_select_udf",
        ("VARCHAR",),
        "STRUCT(x DOUBLE, y DOUBLE, z DOUBLE, "
        "planes STRUCT(a DOUBLE, b DOUBLE, c DOUBLE, d DOUBLE, reach DOUBLE)[], "
        "scale DOUBLE, parallel BOOLEAN, pixels DOUBLE, max_samples BIGINT)",
        _view,
    ),
)
