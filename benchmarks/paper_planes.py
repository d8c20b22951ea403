"""Planes: times by scene and stage, as tables 5.1 and 5.2, and how many planes are found.

The scenes are those of rooms.py, since the thesis' six clouds are not here, in the sizes of its
small clouds and of Box; Bremen's 20 million points are those of the first scene. Times are
processor milliseconds of all threads, the best of so many rounds. What is found is compared with
the truth as in plane_quality.py: precision and recall at 80 % overlap, which the thesis lacks.
"""

import time

import numpy as np
from detect_planes import STAGES
from measure import kernel, stages
from plane_quality import against_truth, detect_planes_alone
from rooms import SCENES
from spatialq.udfs.detect_planes import Options

SMALL, SIZES, LARGE = (100_000,), (100_000, 1_000_000), 20_000_000
THESIS = ("octree", "votes and peaks")
"""The stages that the thesis measures: subdivision, table 5.1, and voting, table 5.2."""


def add_arguments(parser):
    parser.add_argument("--points", type=int, help="of each scene, instead of all sizes")
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), choices=SCENES)


def figures(chosen):
    """Measure each scene in each size."""
    sizes = (chosen.points,) if chosen.points else SMALL if chosen.small else SIZES
    cases = [(name, n) for n in sizes for name in chosen.scenes]
    if not (chosen.points or chosen.small):
        cases.append((chosen.scenes[0], LARGE))
    measured(SCENES[chosen.scenes[0]](min(sizes)), 1)  # compiles
    rows = []
    for name, n in cases:
        scene = SCENES[name](n)
        row = {"scene": name, "points": scene.x.size, **measured(scene, chosen.repeat)}
        print(*(f"{key}={value}" for key, value in row.items()), flush=True)
        rows.append(row)
    return {"rows": rows}


def measured(scene, repeat):
    """All figures of a scene."""
    cloud = (scene.x, scene.y, scene.z)
    of_planes, ids, options = kernel("detect_planes", "cpu"), np.arange(scene.x.size), Options()
    runs = []
    for _ in range(repeat):
        with stages(STAGES, time.process_time) as spent:
            started = time.process_time()
            of_planes(*cloud, ids, options)
            runs.append((time.process_time() - started, spent))
    whole, spent = min(runs, key=lambda run: run[0])
    planes, label, _ = detect_planes_alone(cloud, None, 0)
    truth = against_truth(scene, planes, label)
    return {
        "processor_ms": round(1e3 * whole, 1),
        "stages_ms": {name: round(1e3 * seconds, 1) for name, seconds in spent.items()},
        "thesis_share": round(sum(spent[name] for name in THESIS) / whole, 3),
        "planes": len(planes),
        "true_planes": truth["of"],
        "found": truth["found"],
        "precision_percent": round(float(truth["P"]), 1),
        "recall_percent": round(float(truth["R"]), 1),
        "largest_angle_degrees": round(float(truth["angle"]), 3),
        "largest_offset_mm": round(float(truth["offset"]), 2),
    }
