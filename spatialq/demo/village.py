"""The village as an airborne laser scan: one LAZ tile and the truth about it."""

import datetime as dt
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.demo import terrain
from spatialq.demo.houses import House, RoofPlane
from spatialq.demo.points import SCALE, Points, make_points
from spatialq.demo.scan import RANGE_NOISE, STRIPS, Pulses, fly
from spatialq.demo.scene import Scene, build_scene
from spatialq.runtime.arrays import Floats, Ints

# points of a scan with a pulse every metre: with it the spacing for a wanted number is known
_POINTS_AT_ONE_METRE = 300_000.0
_TAKE_OFF = 4.2e8  # adjusted standard GPS time: gps seconds - 1e9


@dataclass(frozen=True)
class VillageTruth:
    """What is true about a village tile.

    Attributes
    ----------
    points
        Number of points by class code (ASPRS).
    scene
        What stands there; ``scene.houses[0]`` is the house of the building model.
    range_noise
        Standard deviation of the measured ranges in metres; heights are rounded to 0.01 m.
    """

    points: dict[int, int]
    scene: Scene
    range_noise: float = RANGE_NOISE

    @property
    def crs(self) -> str:
        """Compound coordinate reference system of the tile."""
        return terrain.CRS

    @property
    def house(self) -> House:
        """The house of the building model."""
        return self.scene.houses[0]

    @property
    def roofs(self) -> list[RoofPlane]:
        """All roof faces, in the CRS of the tile."""
        return self.scene.roofs()

    def ground(self, x: Any, y: Any) -> Floats:
        """Give the true height of the ground, see `spatialq.demo.terrain.ground`."""
        return terrain.ground(x, y)


def write_village(path: str | Path, *, n_points: int = 2_500_000, seed: int = 7) -> VillageTruth:
    """Write a village tile of 400 x 400 m as LAS 1.4, point format 7, compressed.

    Points lie in flight order: five overlapping strips, each from one scan line to the next. The
    same arguments give the same bytes.

    Parameters
    ----------
    path
        File to write, ``.laz``, or ``.las`` for an uncompressed one.
    n_points
        Exact number of points, > 0.
    seed
        Of the places of the houses and trees and of all noise.

    Returns
    -------
    VillageTruth

    Raises
    ------
    ValueError
        If `n_points` is not positive.
    """
    if n_points <= 0:
        message = f"write_village: n_points must be > 0, got {n_points}"
        raise ValueError(message)
    scene = build_scene(seed)
    pulses, used = _fly_for(scene, n_points, seed)
    points = make_points(scene, pulses, used, seed)
    _write(Path(path), pulses, points)
    codes, counts = np.unique(points.classification, return_counts=True)
    return VillageTruth(dict(zip(codes.tolist(), counts.tolist(), strict=True)), scene)


def _fly_for(scene: Scene, n_points: int, seed: int) -> tuple[Pulses, Ints]:
    """Fly densely enough, then leave out single pulses until the number is exact."""
    spacing = (_POINTS_AT_ONE_METRE / n_points) ** 0.5
    while True:
        pulses = fly(scene, spacing, seed)
        surplus = int(pulses.returns.sum()) - n_points
        single = np.flatnonzero(pulses.returns == 1)
        if 0 <= surplus < single.size:
            break
        spacing *= 0.98
    keep = pulses.returns > 0
    rng = np.random.default_rng(seed)
    keep[rng.choice(single, surplus, replace=False)] = False
    return pulses, np.flatnonzero(keep)


def _write(path: Path, pulses: Pulses, points: Points) -> None:
    import laspy
    import pyproj
    from laspy.vlrs.known import WktCoordinateSystemVlr

    header = laspy.LasHeader(version="1.4", point_format=7)
    header.offsets = np.array([*terrain.ORIGIN, 0.0])
    header.scales = np.full(3, SCALE)
    header.creation_date = dt.date(2026, 4, 14)
    header.generating_software = "spatialq demo"
    header.system_identifier = "generated, not measured"
    header.uuid = uuid.UUID(int=0)
    header.global_encoding.gps_time_type = laspy.header.GpsTimeType.STANDARD
    # LAS 1.4 asks for the first version of WKT
    wkt = pyproj.CRS(terrain.CRS).to_wkt("WKT1_GDAL")
    header.vlrs.append(WktCoordinateSystemVlr(wkt))
    header.global_encoding.wkt = True

    las = laspy.LasData(header)
    pulse = points.pulse
    record = laspy.ScaleAwarePointRecord.zeros(pulse.size, header=header)
    record.array["X"], record.array["Y"], record.array["Z"] = points.xyz.T
    record["return_number"] = points.number
    record["number_of_returns"] = pulses.returns[pulse]
    record["classification"] = points.classification
    record["intensity"] = points.intensity
    record["red"], record["green"], record["blue"] = points.colour.T
    record["gps_time"] = _TAKE_OFF + pulses.time[pulse]
    record["point_source_id"] = pulses.strip[pulse] + 101
    record["edge_of_flight_line"] = pulses.line_end[pulse]
    record["scan_direction_flag"] = pulses.rightward[pulse]
    record["scan_angle"] = np.round(_scan_angles(pulses)[pulse] / 0.006).astype(np.int16)
    las.points = record
    las.write(str(path), do_compress=path.suffix.lower() != ".las")


def _scan_angles(pulses: Pulses) -> Floats:
    """Angle of each pulse from the vertical in degrees, negative to the left of the flight."""
    headings = np.radians(np.array(STRIPS)[pulses.strip, 0])
    rightward = pulses.lean[:, 1] * np.cos(headings) - pulses.lean[:, 0] * np.sin(headings)
    angles: Floats = np.degrees(np.arctan(rightward))
    return angles
