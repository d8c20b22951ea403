"""Seeded changes of models, their simulated scans, and which statuses are right."""

from dataclasses import dataclass

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.demo import scanner
from spatialq.demo.scanner import Change
from spatialq.geometry import boxes
from spatialq.udfs.coverage import STATUSES

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


def thin_way(meshes, row):
    """Give the normal of the most area of an element, horizontal or vertical as it is."""
    one = meshes.take(np.array([row]))
    corners = one.vertices[one.global_faces]
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(across, axis=1)
    normal = across[np.argmax(area)] / area.max()
    same = np.abs(across @ normal) > 0.99 * area
    return normal, area[same].sum() / 2


def case(meshes, seed, *, changes=20, stations=8, beams=200_000, clutter=10, places=None):
    """Change some of the elements that can be seen, and scan.

    Each in turn is moved along its main normal by 10 to 300 mm, or missing. What is changed is at
    least a hand's breadth from what was changed before.
    """
    rng = np.random.default_rng(seed)
    if places is None:
        places = scanner.stations_in(meshes, stations, seed=seed)
    others = scanner.clutter(meshes, scanner.places_in(meshes, seed=seed), clutter, seed=seed)
    plain = scanner.scan(meshes, places, others=others, beams=20_000, seed=seed)
    seen = np.bincount(plain.element[plain.element >= 0], minlength=len(meshes))
    limits, chosen, made = boxes.of(meshes), [], {}
    for row in rng.permutation(np.flatnonzero(seen > 100)):
        if len(made) == changes:
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
        normal, _ = thin_way(meshes, row)
        length = 0.01 * 30 ** rng.random()
        made[int(row)] = Change(shift=tuple(float(k) for k in rng.choice([-1, 1]) * length * normal))
    return Case(
        meshes,
        scanner.scan(meshes, places, others=others, changes=made, beams=beams, seed=seed),
        made,
    )


def judge(found, case):
    """Judge each row: of changes and of others, what is right, wrong, or not asked.

    Returns
    -------
    list of (row, kind, is_right, status)
        Kinds: missing, moved, installed, hidden.
    """
    scan, rows = case.scan, []
    points = np.bincount(scan.element[scan.element >= 0], minlength=len(case.meshes))
    for row in range(len(case.meshes)):
        status = STATUSES[found["status"][row]]
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
            is_right = status == "displaced" and off < 0.003 + 0.05 * np.linalg.norm(change.shift)
            rows.append((row, "moved", is_right, status))
    return rows
