"""How often the place of a scan in a building model is found, and how well.

    python benchmarks/registration.py [MODEL.ifc ...] [--poses 20] [--first 0] [--beams 60000]
        [--changes 0] [--copies 1] [--out results]

Simulated scans of about 30 % of each model, with 10 mm of noise and boxes of clutter, are turned
about the vertical and shifted by up to 100 m. "found" must be within 10 mm, at the middle of the
scan, and 0.1 degrees; else it is "wrong". "ambiguous" counts where the true place is among those
that are listed, else it is "wrong", too. "other" is how many of the scans are found in the next
model, where they do not belong. With `--changes` so many elements of each scan were moved by 10 to
300 mm or are missing; with `--copies` each point is there so often, with 5 mm of noise between, as
in a denser scan. Without a model, the demo's house is taken. Each pose is a case of
the results; what is not "found" is printed.
"""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from buildings import elements
from measure import add_arguments, add_cases
from scan_changes import changed
from spatialq.udfs.registration import MATRIX, STATUSES, Options
from spatialq.udfs.registration.cpu import run

from spatialq.demo import scanner

SHARE = 0.3
BETWEEN = 0.005
"""Metres: standard deviation of copies of a point."""
STATIONS = 12
"""From which all of a model is seen; a scan has a share of them."""


def scan(meshes, seed, beams, changes=0, copies=1):
    """Scan the surroundings of one place; return points and the movement to the model."""
    rng = np.random.default_rng(seed)
    places = scanner.stations_in(meshes, STATIONS, seed=seed)
    first = places[rng.integers(len(places))]
    near = np.argsort(np.linalg.norm((places - first) * [1, 1, 3], axis=1))
    chosen = places[near[: max(2, round(SHARE * len(places)))]]
    others = scanner.clutter(meshes, scanner.places_in(meshes, seed=seed), 40, seed=seed)
    done = {}
    if changes:
        plain = scanner.scan(meshes, chosen, others=others, beams=20_000, seed=seed, reach=30.0)
        done = changed(meshes, plain, changes, np.random.default_rng([seed, changes]))
    made = scanner.scan(
        meshes, chosen, changes=done, others=others, beams=beams, range_noise=0.010, seed=seed,
        reach=30.0,
    )  # fmt: skip
    angle, shift = rng.uniform(0, 2 * np.pi), rng.uniform(-100, 100, 3)
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([(c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)])
    points = np.stack([made.x, made.y, made.z], axis=1) @ turn.T + shift
    others = [points + rng.normal(0.0, BETWEEN, points.shape) for _ in range(copies - 1)]
    points = np.concatenate([points, *others])
    return points, turn.T, -turn.T @ shift


def errors(rows, points, turn, shift):
    """Metres at the middle of the scan, and degrees, of each candidate."""
    matrices = np.stack([rows[name] for name in MATRIX], axis=1).reshape(-1, 4, 4)
    middle = points.mean(axis=0)
    off = matrices[:, :3, :3] @ middle + matrices[:, :3, 3] - (turn @ middle + shift)
    cosine = (np.trace(matrices[:, :3, :3] @ turn.T, axis1=1, axis2=2) - 1) / 2
    return np.linalg.norm(off, axis=1), np.degrees(np.arccos(np.clip(cosine, -1, 1)))


def verdict(rows, points, turn, shift):
    off, angle = errors(rows, points, turn, shift)
    status = np.array(STATUSES)[rows["status"]]
    right = (off < 0.010) & (angle < 0.1)
    if status[0] == "not found":
        return "not found", off[0], angle[0]
    claimed = status == status[0]
    return (str(status[0]) if right[claimed].any() else "wrong"), off[0], angle[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--poses", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--beams", type=int, default=60_000)
    parser.add_argument("--changes", type=int, default=0)
    parser.add_argument("--copies", type=int, default=1)
    add_arguments(parser)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not chosen.models:
            from spatialq.demo.house import write_house

            chosen.models = [Path(folder) / "house.ifc"]
            write_house(chosen.models[0])
        models = {each.stem: elements(each) for each in chosen.models}
    print(
        f"{'':32} {'poses':>5} {'found':>5} {'ambiguous':>9} {'not found':>9} {'wrong':>5} "
        f"{'other':>5} {'mm':>5} {'degrees':>7} {'cpu s':>6}"
    )
    names = list(models)
    for k, name in enumerate(names):
        counts, worst, spent, other = Counter(), np.zeros(2), 0.0, 0
        for seed in range(chosen.first, chosen.first + chosen.poses):
            points, *truth = scan(models[name], seed, chosen.beams, chosen.changes, chosen.copies)
            x, y, z = np.ascontiguousarray(points.T)
            started = time.process_time()
            rows = run(x, y, z, None, models[name], Options(unit=1.0))
            seconds = time.process_time() - started
            spent += seconds
            said, *off = verdict(rows, points, *truth)
            counts[said] += 1
            case = {
                "model": name, "seed": seed, "changes": chosen.changes, "points": len(x),
                "said": said, "mm": round(1000 * float(off[0]), 2),
                "degrees": round(float(off[1]), 4), "processor_seconds": round(seconds, 1),
            }  # fmt: skip
            add_cases(chosen.out, "registration", chosen.commit, [case])
            if said != "found":
                print(" ", case, flush=True)
            if said == "found":
                worst = np.maximum(worst, off)
            if len(names) > 1:
                beside = models[names[(k + 1) % len(names)]]
                rows = run(x, y, z, None, beside, Options(unit=1.0))
                other += STATUSES[rows["status"][0]] == "found"
        print(
            f"{name:32} {chosen.poses:5} {counts['found']:5} {counts['ambiguous']:9} "
            f"{counts['not found']:9} {counts['wrong']:5} {other:5} {1000 * worst[0]:5.1f} "
            f"{worst[1]:7.3f} {spent / max(1, chosen.poses):6.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
