"""A simulated terrestrial laser scan of a building model, with its truth.

Beams leave the stations of a scanner at equal steps of both angles and end on the first surface of
the building as it was built: the model with some elements moved, turned or missing, doors open and
boxes of clutter between. Ranges and angles have noise, and a beam that meets an edge may give a
point between the two surfaces. Everything follows from the arguments and the seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.geometry import boxes
from spatialq.geometry.rays import TriangleTree
from spatialq.runtime.arrays import Bools, Floats, Ints

BOX_CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], np.float64)
BOX_FACES = np.array([
    (0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1),
    (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
])  # fmt: skip
EYE = 1.6
"""Metres of a station above the floor."""
ROOM = 0.5
"""Metres around a station without a surface."""
LOWEST, HIGHEST = np.radians(-60.0), np.radians(90.0)
"""Of a beam, from the horizon."""
EDGE = 0.05
"""Metres between the ranges of neighbouring beams where the edge of an element is."""
CANDIDATES = 400
"""Places of which stations are chosen."""
PROBES = 1000
"""Beams that say how much is seen from a place."""
VOXEL = 0.5
"""Metres: what is seen from a place is counted in cubes."""


@dataclass(frozen=True)
class Change:
    """What was done to an element: it is missing, or turned about the vertical and then moved.

    Parameters
    ----------
    shift : (float, float, float)
        Metres.
    turn : float
        Degrees about the vertical, counter-clockwise seen from above.
    pivot : (float, float), optional
        The place about which it is turned: by default the middle of its bounding box.
    is_missing : bool
    """

    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: float = 0.0
    pivot: tuple[float, float] | None = None
    is_missing: bool = False


@dataclass(frozen=True)
class Scan:
    """A scan and its truth.

    Parameters
    ----------
    x, y, z : float64[n], metres
    element : int64[n]
        The element that the beam met; -1 for clutter.
    is_mixed : bool[n]
        Whether the point is between two surfaces.
    station : int64[n]
        The row of `stations` from which the point was seen.
    stations : float64[k, 3], metres
    expected : int64[m]
        Of each element the beams that would have met it if those that are missing were there.
    """

    x: Floats
    y: Floats
    z: Floats
    element: Ints
    is_mixed: Bools
    station: Ints
    stations: Floats
    expected: Ints


def box(low: Any, high: Any) -> tuple[Floats, Ints]:
    """Make the mesh of a box along the axes, in metres."""
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return low + BOX_CORNERS * (high - low), BOX_FACES


def built(meshes: Meshes, changes: Mapping[int, Change]) -> Meshes:
    """Change elements, by row; a missing one has no triangles."""
    limits, made = boxes.of(meshes), []
    for row in range(len(meshes)):
        vertices = meshes.vertices[meshes.vertex_starts[row] : meshes.vertex_starts[row + 1]]
        faces = meshes.faces[meshes.face_starts[row] : meshes.face_starts[row + 1]]
        change = changes.get(row)
        if change is not None:
            faces = faces[:0] if change.is_missing else faces
            vertices = _moved(vertices, change, limits[row])
        made.append((vertices, faces))
    return Meshes.of(made)


def opened(meshes: Meshes, row: int, degrees: float) -> Change:
    """Turn a door about the vertical at one end of the longer side of its box."""
    low, high = boxes.of(meshes.take(np.array([row])))[0].reshape(2, 3)
    longer = int(high[1] - low[1] > high[0] - low[0])
    hinge = (low + high)[:2] / 2
    hinge[longer] = low[longer]
    return Change(turn=degrees, pivot=(float(hinge[0]), float(hinge[1])))


def clutter(meshes: Meshes, places: Floats, count: int, *, seed: int = 1) -> Meshes:
    """Put boxes of 0.2 to 1.2 m on what is below some of the places.

    Parameters
    ----------
    meshes : Meshes
    places : float64[n, 3], metres
        In the free space, such as `places_in` gives.
    count : int
    seed : int
    """
    rng = np.random.default_rng(seed)
    at = places[rng.integers(0, len(places), count)] + rng.uniform(-1.0, 1.0, (count, 3)) * [
        1,
        1,
        0,
    ]
    down, _ = TriangleTree.of(meshes).first_hits(at, np.tile([0.0, 0.0, -1.0], (count, 1)))
    size = rng.uniform(0.2, 1.2, (count, 3))
    made = []
    for middle, depth, edges in zip(at, down, size, strict=True):
        if not np.isfinite(depth):
            continue
        low = np.array([*(middle[:2] - edges[:2] / 2), middle[2] - depth])
        made.append(box(low, low + edges))
    return Meshes.of(made)


def places_in(meshes: Meshes, *, seed: int = 1) -> Floats:
    """Find places in the building where a scanner can stand: float64[n, 3], metres.

    `EYE` above a surface, below another one, and `ROOM` from all.
    """
    rng = np.random.default_rng(seed)
    low, high = meshes.vertices.min(axis=0), meshes.vertices.max(axis=0)
    tree = TriangleTree.of(meshes)
    tries = low + rng.random((4 * CANDIDATES, 3)) * (high - low)
    down, _ = tree.first_hits(tries, np.tile([0.0, 0.0, -1.0], (len(tries), 1)))
    tries = tries[np.isfinite(down)]
    tries[:, 2] += EYE - down[np.isfinite(down)]
    ways = _sphere(200)
    distance, _ = tree.first_hits(
        np.repeat(tries, len(ways), axis=0), np.tile(ways, (len(tries), 1))
    )
    distance = distance.reshape(len(tries), -1)
    up, _ = tree.first_hits(tries, np.tile([0.0, 0.0, 1.0], (len(tries), 1)))
    floor, _ = tree.first_hits(tries, np.tile([0.0, 0.0, -1.0], (len(tries), 1)))
    is_free = (distance.min(axis=1) > ROOM) & np.isfinite(up) & (np.abs(floor - EYE) < 0.2)
    found: Floats = tries[is_free][:CANDIDATES]
    return found


def stations_in(meshes: Meshes, count: int, *, seed: int = 1) -> Floats:
    """Choose places from which most is seen together, one after the other: float64[k, 3], metres.

    There are fewer where no other place in the building shows anything more.
    """
    places = places_in(meshes, seed=seed)
    ways = _sphere(PROBES)
    tree = TriangleTree.of(meshes)
    seen = []
    for place in places:
        distance, row = tree.first_hits(np.tile(place, (len(ways), 1)), ways, 30.0)
        hit = row >= 0
        cubes = np.floor((place + distance[hit, None] * ways[hit]) / VOXEL).astype(np.int64)
        seen.append({*map(tuple, cubes.tolist())})
    chosen: list[int] = []
    known: set[tuple[int, ...]] = set()
    while len(chosen) < count and seen:
        best = max(range(len(seen)), key=lambda k: len(seen[k] - known))
        if not seen[best] - known:
            break
        known |= seen[best]
        chosen.append(best)
    stations: Floats = places[chosen]
    return stations


def scan(
    meshes: Meshes,
    stations: Any,
    *,
    changes: Mapping[int, Change] | None = None,
    others: Meshes | None = None,
    beams: int = 200_000,
    range_noise: float = 0.003,
    angle_noise: float = 1e-4,
    mixed: float = 0.1,
    reach: float = 60.0,
    seed: int = 1,
) -> Scan:
    """Scan a building as it was built.

    Parameters
    ----------
    meshes : Meshes
        The model.
    stations : float64[k, 3], metres
    changes : mapping, optional
        What was done to elements, by row.
    others : Meshes, optional
        Clutter: things that the model does not have.
    beams : int
        Of each station.
    range_noise, angle_noise : float
        Standard deviations, in metres and radians.
    mixed : float
        Share of the beams at an edge that give a point between the two surfaces.
    reach : float
        Metres; what is farther away gives no point.
    seed : int

    Returns
    -------
    Scan
    """
    stations = np.asarray(stations, np.float64).reshape(-1, 3)
    changes = changes or {}
    others = Meshes.of([]) if others is None else others
    whole, owner = _world(built(meshes, changes), others)
    complete, complete_owner = whole, owner
    there = {row: each for row, each in changes.items() if not each.is_missing}
    missing = len(there) < len(changes)
    if missing:
        complete, complete_owner = _world(built(meshes, there), others)
    expected = np.zeros(len(meshes), np.int64)
    parts: list[tuple[Any, ...]] = []
    for number, station in enumerate(stations):
        rng = np.random.default_rng([seed, number])
        ways, per_line = _beams(beams)
        ways = _turned(ways, rng.normal(0.0, angle_noise, ways.shape))
        origins = np.tile(station, (len(ways), 1))
        distance, row = whole.first_hits(origins, ways, reach)
        _, met = complete.first_hits(origins, ways, reach) if missing else (None, row)
        met = complete_owner[met[met >= 0]]
        expected += np.bincount(met[met >= 0], minlength=len(meshes))
        element = np.where(row >= 0, owner[row], -1) if len(owner) else row
        is_mixed = _at_edges(distance, element, per_line) & (rng.random(len(ways)) < mixed)
        share, between = rng.random(len(ways)), np.flatnonzero(is_mixed)
        distance[between] += share[between] * (distance[between + 1] - distance[between])
        distance += rng.normal(0.0, range_noise, len(ways))
        hit = row >= 0
        points = station + distance[hit, None] * ways[hit]
        parts.append((points, element[hit], is_mixed[hit], np.full(hit.sum(), number)))
    if not parts:
        parts = [(np.empty((0, 3)), np.empty(0, int), np.empty(0, bool), np.empty(0, int))]
    points, element, is_mixed, station = map(np.concatenate, zip(*parts, strict=True))
    x, y, z = np.ascontiguousarray(points.T)
    return Scan(x, y, z, element, is_mixed, station, stations, expected)


def _world(real: Meshes, others: Meshes) -> tuple[TriangleTree, Ints]:
    """Make the tree of all triangles, and say which element each belongs to; -1 for others."""
    owner = np.concatenate([real.face_mesh, np.full(len(others.faces), -1)])
    return TriangleTree.of(real.followed_by(others)), owner


def _moved(vertices: Floats, change: Change, limits: Floats) -> Floats:
    angle = np.radians(change.turn)
    c, s = np.cos(angle), np.sin(angle)
    middle = np.zeros(3)
    middle[:2] = (limits[:2] + limits[3:5]) / 2 if change.pivot is None else change.pivot
    turning = np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])
    moved: Floats = (vertices - middle) @ turning.T + middle + np.asarray(change.shift)
    return moved


def _beams(count: int) -> tuple[Floats, int]:
    """Make the directions of the beams, line by line from below; and how many a line has."""
    per_line = max(1, round(np.sqrt(count * (HIGHEST - LOWEST) / (2 * np.pi))))
    lines = max(1, count // per_line)
    height = LOWEST + (np.arange(per_line) + 0.5) / per_line * (HIGHEST - LOWEST)
    around = 2 * np.pi * np.arange(lines) / lines
    up, turn = np.tile(height, lines), np.repeat(around, per_line)
    ways = np.stack([np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)], axis=1)
    return ways, per_line


def _turned(ways: Floats, by: Floats) -> Floats:
    """Turn directions by small angles, radians."""
    turned: Floats = ways + by
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    return turned


def _at_edges(distance: Floats, element: Ints, per_line: int) -> Bools:
    """Say which beams end nearer or farther than the next of their line, on another element."""
    after = np.roll(distance, -1)
    is_edge: Bools
    with np.errstate(invalid="ignore"):
        is_edge = (np.abs(after - distance) > EDGE) & (np.roll(element, -1) != element)
    is_edge &= np.isfinite(distance) & np.isfinite(after)
    is_edge[per_line - 1 :: per_line] = False
    return is_edge


def _sphere(count: int) -> Floats:
    """Spread directions evenly (Fibonacci)."""
    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(turn), r * np.sin(turn), z], axis=1)


def rooms(columns: int, rows: int, storeys: int = 1) -> tuple[Meshes, Sequence[str]]:
    """Make a building of rooms: its elements, and what each is called.

    Each room of 5 x 4 m has a column, flooring on its slab and a suspended ceiling with a duct
    above it, which nobody sees; walls of 0.2 m have a gap for a door, and the first row of rooms a
    covering of 20 mm on their walls.

    Returns
    -------
    Meshes
    names : list of str
        Such as 'wall 0 1 2 along x': what it is, storey, column and row.
    """
    a, b, height, t = 5.0, 4.0, 3.2, 0.2
    made: list[tuple[Floats, Ints]] = []
    names: list[str] = []

    def add(name: str, *parts: tuple[Any, Any]) -> None:
        meshes = Meshes.of([box(*part) for part in parts])
        made.append((meshes.vertices, meshes.global_faces))
        names.append(name)

    for storey in range(storeys):
        z = storey * height
        top = z + height - t
        for i in range(columns):
            for j in range(rows):
                x, y, which = i * a, j * b, f"{storey} {i} {j}"
                add(f"slab {which}", ((x, y, top), (x + a, y + b, top + t)))
                if storey == 0:
                    add(f"base {i} {j}", ((x, y, z - t), (x + a, y + b, z)))
                add(f"flooring {which}", ((x + t, y + t, z), (x + a, y + b, z + 0.03)))
                add(f"ceiling {which}", ((x + t, y + t, z + 2.6), (x + a, y + b, z + 2.62)))
                add(f"duct {which}", ((x + 1.5, y + t, z + 2.68), (x + 1.8, y + b, z + 2.88)))
                add(f"column {which}", ((x + 3.5, y + 2.5, z), (x + 3.8, y + 2.8, z + 2.6)))
                if j == 0:
                    add(
                        f"covering {which}",
                        ((x + t, y + t, z + 0.03), (x + a, y + t + 0.02, z + 2.6)),
                    )
        for i in range(columns + 1):
            for j in range(rows):
                x, y = i * a, j * b + t
                door = (x, y + 1.0, z), (x + t, y + 1.9, z)
                parts = [((x, y, z), (x + t, y + b - t, top))]
                if 0 < i < columns:
                    parts = [
                        ((x, y, z), (x + t, y + 1.0, top)),
                        ((x, y + 1.9, z), (x + t, y + b - t, top)),
                        ((x, y + 1.0, z + 2.1), (x + t, y + 1.9, top)),
                    ]
                    add(f"door {storey} {i} {j}", (
                        (door[0][0] + 0.08, door[0][1], z), (x + 0.12, y + 1.9, z + 2.1)
                    ))  # fmt: skip
                add(f"wall {storey} {i} {j} along y", *parts)
        for i in range(columns):
            for j in range(rows + 1):
                x, y = i * a + t, j * b
                parts = [((x, y, z), (x + a - t, y + t, top))]
                if 0 < j < rows:
                    parts = [
                        ((x, y, z), (x + 1.0, y + t, top)),
                        ((x + 1.9, y, z), (x + a - t, y + t, top)),
                        ((x + 1.0, y, z + 2.1), (x + 1.9, y + t, top)),
                    ]
                add(f"wall {storey} {i} {j} along x", *parts)
    return Meshes.of(made), names
