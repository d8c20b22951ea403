"""Seeded changes of a model with their simulated scan, and which rows of `coverage` are right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.demo import scanner
from spatialq.demo.scanner import Change
from spatialq.geometry import boxes

MANY = 400
"""Points of the scan: of an element with less than MANY nothing is asked unless it has none and is
hidden, nor of one that is seen only since another is missing."""
UNSEEN = ("occluded", "no data", "not enough data", "not applicable")


@dataclass(frozen=True)
class Case:
    """A model, a scan of what was built, and what was done to it."""

    meshes: Meshes
    scan: scanner.Scan
    changes: dict[int, Change]


def main_normal(meshes: Meshes, row: int) -> Any:
    """Give the normal of the largest triangle of an element."""
    one = meshes.take(np.array([row]))
    corners = one.vertices[one.global_faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1)
    return across[np.argmax(area)] / area.max()


def changed(
    meshes: Meshes, plain: scanner.Scan, count: int, rng: np.random.Generator
) -> dict[int, Change]:
    """Change so many of the elements that a scan with few beams shows.

    Each in turn is moved along its main normal by 10 to 300 mm, or missing. What is changed is at
    least a hand's breadth from what was changed before.
    """
    seen = np.bincount(plain.element[plain.element >= 0], minlength=len(meshes))
    limits = boxes.of(meshes)
    chosen: list[int] = []
    made: dict[int, Change] = {}
    for row in rng.permutation(np.flatnonzero(seen > 100)):
        if len(made) == count:
            break
        gap = [
            np.maximum(limits[row, :3] - limits[k, 3:], limits[k, :3] - limits[row, 3:]).max()
            for k in chosen
        ]
        if gap and min(gap) < 0.1:
            continue
        chosen.append(row)
        if len(made) % 2:
            made[int(row)] = Change(is_missing=True)
            continue
        length = rng.choice([-1, 1]) * 0.01 * 30 ** rng.random()
        x, y, z = (length * main_normal(meshes, row)).tolist()
        made[int(row)] = Change(shift=(x, y, z))
    return made


def case(
    meshes: Meshes,
    seed: int,
    *,
    changes: int = 20,
    stations: int = 8,
    beams: int = 200_000,
    clutter: int = 10,
) -> Case:
    """Change some of the elements that can be seen, see `changed`, and scan."""
    rng = np.random.default_rng(seed)
    places = scanner.stations_in(meshes, stations, seed=seed)
    others = scanner.clutter(meshes, scanner.places_in(meshes, seed=seed), clutter, seed=seed)
    plain = scanner.scan(meshes, places, others=others, beams=20_000, seed=seed)
    made = changed(meshes, plain, changes, rng)
    return Case(
        meshes,
        scanner.scan(meshes, places, others=others, changes=made, beams=beams, seed=seed),
        made,
    )


def judge(
    found: Mapping[str, Any], case: Case, statuses: Sequence[str]
) -> list[tuple[int, str, bool, str]]:
    """Judge the rows of `coverage`: of changes and of others, what is right; some are not asked.

    Parameters
    ----------
    found : mapping
        Its columns.
    case : Case
    statuses : sequence of str
        The names of its statuses.

    Returns
    -------
    list of (row, kind, is_right, status)
        Kinds: missing, moved, installed, hidden.
    """
    scan = case.scan
    rows: list[tuple[int, str, bool, str]] = []
    points = np.bincount(scan.element[scan.element >= 0], minlength=len(case.meshes))
    for row in range(len(case.meshes)):
        status = statuses[found["status"][row]]
        change = case.changes.get(row)
        if change is None:
            if min(points[row], scan.expected[row]) >= MANY:
                rows.append((row, "installed", status == "installed", status))
            elif points[row] == 0 and scan.expected[row] == 0:
                rows.append((row, "hidden", status in UNSEEN, status))
        elif change.is_missing:
            if scan.expected[row] >= MANY:
                rows.append((row, "missing", status == "not found", status))
        elif points[row] >= MANY:
            moved = np.array([found[name][row] for name in ("dx", "dy", "dz")])
            off = np.linalg.norm(moved - change.shift)
            limit = 0.003 + 0.05 * np.linalg.norm(change.shift)
            rows.append((row, "moved", bool(status == "displaced" and off < limit), status))
    return rows
