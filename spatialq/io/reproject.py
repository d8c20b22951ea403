"""Coordinates from one coordinate reference system to another, by one operation of PROJ.

PROJ knows several operations between most pairs of systems, of different accuracy. Here one is
chosen for all points, for the extent of the data: left to itself PROJ chooses one for each point,
which leaves seams. An operation whose grid is not installed is skipped with a warning, and one
that ignores the datum or the heights ("ballpark") is never used.
"""

import math
import os
import threading
import warnings
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import CrsError
from spatialq.io import crs as crs_text
from spatialq.io.crs import in_proj_thread
from spatialq.runtime.arrays import Floats
from spatialq.runtime.threads import Pool, n_threads, spans

if TYPE_CHECKING:
    from pyproj.transformer import TransformerGroup

    from spatialq.io.source import Box

Area = tuple[float, float, float, float]
"""West, south, east, north in degrees."""

MOST_GRIDS = 3
"""That a sentence names."""
MOST_THREADS = 8
CHUNK = 1 << 15
"""Points of a call of PROJ."""
LATTICE = 41
"""Samples along each side of a box, whose transformed extent is that of the samples."""
MARGIN = 0.01
"""By which that extent is widened where a box must hold all its points: a share of its sides."""


@dataclass(frozen=True)
class Reprojection:
    """One operation, with which all coordinates are transformed.

    Attributes
    ----------
    source, target : str
        PROJJSON.
    operation : str
        Its name, as PROJ gives it.
    accuracy : float
        In metres, as its authority states it; 0 for conversions, which are exact.
    pipeline : str
        PROJ's text of it: x, y are easting, northing or longitude, latitude.
    pipeline_in_axis_order : str
        The same for the order of the axes of the systems, as GDAL wants it.
    moves_heights : bool
        Whether z takes part in it. If not, z is multiplied with `z_factor`.
    z_factor : float
        Units of the target's heights in one of the source's.
    note : str
        Which grids are missing, and what accuracy remains; empty where none is.
    """

    source: str
    target: str
    operation: str
    accuracy: float
    pipeline: str
    pipeline_in_axis_order: str
    moves_heights: bool
    z_factor: float
    note: str

    def __post_init__(self) -> None:
        for text in (self.pipeline, self.pipeline_in_axis_order):
            crs_text.require_no_file(text)

    def __call__(
        self,
        x: Floats,
        y: Floats,
        z: Floats,
        *,
        inverse: bool = False,
    ) -> tuple[Floats, Floats, Floats]:
        """Transform points, in several threads.

        Parameters
        ----------
        x, y, z : float64[n]
            They are not changed. A z of NaN stays NaN, and counts as 0 for x and y.
        inverse : bool
            From the target to the source.

        Returns
        -------
        x, y, z : float64[n]
            All three are NaN where the operation is not defined, or x or y is not finite.
        """
        x, y = np.array(x, np.float64), np.array(y, np.float64)
        heights = np.array(z, np.float64)
        unknown = np.isnan(heights)
        heights[unknown] = 0.0
        axes = (x, y, heights) if self.moves_heights else (x, y)

        def run(first: int, stop: int) -> None:
            _transformer(self.pipeline).transform(
                *(axis[first:stop] for axis in axes),
                inplace=True,
                direction="INVERSE" if inverse else "FORWARD",
            )

        runs = spans(x.size, -(-x.size // CHUNK))
        list(_threads(os.getpid()).map(run, *zip(*runs, strict=True)) if runs else ())
        if not self.moves_heights and self.z_factor != 1.0:
            heights *= 1 / self.z_factor if inverse else self.z_factor
        heights[unknown] = np.nan
        nowhere = ~np.isfinite(x) | ~np.isfinite(y) | np.isinf(heights)
        for axis in (x, y, heights):
            axis[nowhere] = np.nan
        return x, y, heights

    def extent(self, box: "Box", *, inverse: bool = False, margin: float = 0.0) -> "Box | None":
        """Transform a box; None where the operation is not defined in all of it.

        Parameters
        ----------
        box : Box
            With finite sides.
        inverse : bool
            From the target to the source.
        margin : float
            Share of its sides by which the result is widened.
        """
        sides = [np.linspace(box[k], box[k + 3], LATTICE) for k in (0, 1)]
        lattice = np.meshgrid(*sides, np.array([box[2], box[5]]))
        axes = self(*(axis.ravel() for axis in lattice), inverse=inverse)
        if any(np.isnan(axis).any() for axis in axes):
            return None
        low, high = [axis.min() for axis in axes], [axis.max() for axis in axes]
        wider = [margin * (high[k] - low[k]) for k in range(3)]
        low, high = np.subtract(low, wider).tolist(), np.add(high, wider).tolist()
        return (low[0], low[1], low[2], high[0], high[1], high[2])


@cache
def _threads(process: int) -> Pool:
    """Threads of our own, which stay: pyproj must not be used in those of DuckDB (`io.crs`)."""
    del process  # a fork has no threads
    return Pool(min(n_threads(), MOST_THREADS), thread_name_prefix="spatialq-proj")


_made = threading.local()


def _transformer(pipeline: str) -> Any:
    """Give the transformer of a pipeline of this thread: no two threads may use the same."""
    from pyproj import Transformer

    transformers: dict[str, Any] = _made.__dict__
    if pipeline not in transformers:
        transformers[pipeline] = Transformer.from_pipeline(pipeline)
    return transformers[pipeline]


@lru_cache(maxsize=256)
def area_of(crs: str, box: "Box") -> Area | None:
    """Give the extent of a box in degrees; None where it is not within the domain of its CRS."""
    return _area_of(crs, box) if np.isfinite([*box[:2], *box[3:5]]).all() else None


@in_proj_thread
def _area_of(crs: str, box: "Box") -> Area | None:
    import pyproj

    horizontal = _System.of(crs).horizontal
    geographic = horizontal.geodetic_crs
    if geographic is None:  # of a local engineering system
        return None
    to_degrees = pyproj.Transformer.from_crs(horizontal, geographic, always_xy=True)
    area = to_degrees.transform_bounds(box[0], box[1], box[3], box[4])
    return tuple(map(float, area)) if np.isfinite(area).all() else None  # type: ignore[return-value]


@lru_cache(maxsize=256)
def utm_zone(crs: str, box: "Box | None") -> str | None:
    """Give the code of the UTM zone of the middle of data in degrees, such as EPSG:32632.

    None where they are not in degrees, or the zone is not known, or heights would have no code.

    Parameters
    ----------
    crs : str
        PROJJSON.
    box : Box, optional
        Of the data.
    """
    if box is None or not np.isfinite([*box[:2], *box[3:5]]).all():
        return None
    area = area_of(crs, box) if crs_text.metres_per_unit(crs) is None else None
    return None if area is None else _utm_zone(crs, area)


@in_proj_thread
def _utm_zone(crs: str, area: Area) -> str | None:
    system = _System.of(crs)
    east, north = (area[0] + area[2]) / 2, (area[1] + area[3]) / 2
    number = int((east + 180) // 6) % 60 + 1
    own = system.horizontal.to_authority()
    code = (32600 if north >= 0 else 32700) + number
    if own == ("EPSG", "4258") and 28 <= number <= 38:
        code = 25800 + number  # of ETRS89
    elif own == ("EPSG", "4269") and north >= 0 and number <= 23:
        code = 26900 + number  # of NAD83
    if not system.has_heights:
        return f"EPSG:{code}"
    heights = system.heights and system.heights.to_authority()
    return f"EPSG:{code}+{heights[1]}" if heights and heights[0] == "EPSG" else None


@lru_cache(maxsize=256)
@in_proj_thread
def reprojection(reader: str, source: str, target: str, area: Area | None = None) -> Reprojection:
    """Choose the operation between two systems for an area.

    It is the first that PROJ proposes of those whose grids are installed.

    Parameters
    ----------
    reader : str
        The function that the user called, for messages.
    source, target : str
        PROJJSON.
    area : Area, optional
        Of the data; by default what the areas of use of the two systems have in common.

    Raises
    ------
    CrsError
        If there is no operation that keeps to the datum and the heights of both systems.
    """
    from pyproj.transformer import TransformerGroup

    def refuse(reason: str) -> CrsError:
        names = f"{crs_text.name(source)} to {crs_text.name(target)}"
        return CrsError(f"{reader}: cannot reproject {names}: {reason}")

    one, other = _System.of(source), _System.of(target)
    if len(one.whole.axis_info) < 2 or len(other.whole.axis_info) < 2:
        reason = "both must be systems of x and y"
        raise refuse(reason)
    if one.has_heights != other.has_heights:
        raise refuse(_one_sided(one, other))
    moves_heights = one.has_heights and not one.has_same_heights(other)
    pair = [s.whole if moves_heights else s.horizontal for s in (one, other)]
    where = _aoi(area or _common(one, other))

    def group(*, always_xy: bool) -> "tuple[TransformerGroup, list[Any]]":
        with warnings.catch_warnings():  # of missing grids, which are named below
            warnings.simplefilter("ignore", UserWarning)
            found = TransformerGroup(
                pair[0], pair[1], always_xy, area_of_interest=where, allow_ballpark=False
            )
        kept = [t for t in found.transformers if t.accuracy >= 0 and "allpark" not in t.description]
        return found, kept

    found, kept = group(always_xy=True)
    if not kept:
        missing = _missing(found, math.inf)
        raise refuse(
            f"it needs {missing}: see `pyproj sync`"
            if missing
            else "PROJ knows no operation that keeps to the datum and the heights of both"
            f"{_where(area)}"
        )
    chosen = kept[0]
    name = " + ".join(
        part for part in chosen.description.split(" + ") if not part.startswith("axis order")
    )
    accuracy = float(chosen.accuracy)
    missing = _missing(found, accuracy)
    note = (
        f"reprojected by '{name}', which is accurate to {accuracy:g} m; it would be better with "
        f"{missing}: see `pyproj sync`"
    )
    return Reprojection(
        source,
        target,
        name or "no operation",
        accuracy,
        chosen.definition,
        group(always_xy=False)[1][0].definition,
        moves_heights,
        one.metres_of_z / other.metres_of_z,
        note if missing else "",
    )


@dataclass(frozen=True)
class _System:
    """What a CRS is made of."""

    whole: Any
    horizontal: Any
    heights: Any
    """The vertical system, if it is one of its own with a datum that is known."""
    has_heights: bool
    metres_of_z: float

    @classmethod
    def of(cls, text: str) -> "_System":
        import pyproj

        crs_text.require_no_file(text)  # that of a table may come from anywhere
        whole = pyproj.CRS.from_json(text)
        horizontal, *upward = whole.sub_crs_list or [whole]
        axes = horizontal.axis_info
        across = axes[0].unit_conversion_factor if axes and not horizontal.is_geographic else 1.0
        if len(axes) == 3:
            up = axes[2].unit_conversion_factor
            return cls(whole, horizontal, None, has_heights=True, metres_of_z=up)
        if not upward:
            return cls(whole, horizontal, None, has_heights=False, metres_of_z=across)
        heights = _unbound(upward[0])
        unit = heights.axis_info[0].unit_conversion_factor
        # LAS files give the unit of heights without their datum
        is_known = not heights.datum.name.lower().startswith("unknown")
        kept = heights if is_known else None
        return cls(whole, horizontal, kept, has_heights=is_known, metres_of_z=unit)

    def has_same_heights(self, other: "_System") -> bool:
        """Whether heights differ in their unit at most."""
        if self.heights is None or other.heights is None:
            return False
        directions = {each.heights.axis_info[0].direction for each in (self, other)}
        return bool(self.heights.datum == other.heights.datum) and len(directions) == 1


def _unbound(system: Any) -> Any:
    return system.source_crs if system.is_bound else system


def _one_sided(source: _System, target: _System) -> str:
    """Say why heights on one side only are refused, and what to give instead."""
    if target.has_heights:
        code = target.horizontal.to_authority()
        instead = f", such as {':'.join(code)}" if code and target.heights is not None else ""
        return (
            "the former does not say what its heights refer to: give a target without heights"
            f"{instead}"
        )
    reason = "the former says what its heights refer to, the latter does not: give a target with "
    codes = [target.horizontal.to_authority(), source.heights and source.heights.to_authority()]
    if all(codes) and codes[0][0] == codes[1][0]:
        return f"{reason}heights, such as {codes[0][0]}:{codes[0][1]}+{codes[1][1]}"
    return f"{reason}heights"


def _where(area: Area | None) -> str:
    if area is None:
        return ""
    west, south, east, north = area
    return f" at longitude {west:.3f} to {east:.3f}, latitude {south:.3f} to {north:.3f}"


def _missing(found: "TransformerGroup", accuracy: float) -> str:
    """Name the grids that are not installed and would give a better accuracy."""
    named: dict[str, str] = {}
    for operation in found.unavailable_operations:
        if 0 <= operation.accuracy < accuracy:
            for grid in operation.grids:
                if not grid.available:
                    named.setdefault(grid.short_name, f"{operation.accuracy:g} m")
    if not named:
        return ""
    listed = [f"{name} ({metres})" for name, metres in named.items()]
    if len(listed) == 1:
        return f"the grid {listed[0]}, which is not installed"
    return f"one of the grids {', '.join(listed[:MOST_GRIDS])}, which are not installed"


def joined(one: Area | None, other: Area | None) -> Area | None:
    """Give what two areas cover together; of one where the other is not known."""
    if one is None or other is None:
        return other if one is None else one
    return (*map(min, one[:2], other[:2]), *map(max, one[2:], other[2:]))  # type: ignore[return-value]


def _common(one: _System, other: _System) -> Area | None:
    """Give what the areas of use of two systems have in common; of one where that is nothing."""
    areas = [s.horizontal.area_of_use for s in (one, other)]
    known = [tuple(map(float, a.bounds)) for a in areas if a is not None]
    known = [a for a in known if a[0] <= a[2]]  # not across the antimeridian
    if not known:
        return None
    west, south = (max(a[k] for a in known) for k in (0, 1))
    east, north = (min(a[k] for a in known) for k in (2, 3))
    return (west, south, east, north) if west < east and south < north else known[0]  # type: ignore[return-value]


def _aoi(area: Area | None) -> Any:
    from pyproj.transformer import AreaOfInterest

    return None if area is None else AreaOfInterest(*area)
