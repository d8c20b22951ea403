"""How the CPU kernels scale with the number of threads; a JSON file.

    python benchmarks/threads.py [function ...] [--out FOLDER] [--commit HASH] [--repeat N]
        [--scale SHARE]

Every function runs on 1, 2, 4, ... threads, in turns, up to the number that the process may use.
Amdahl's law, ``serial + parallel / threads``, is fitted to its best times by least squares of the
relative errors; `serial_share` is the share of the serial part in the time on one thread.
"""

import argparse
import os
import platform
from datetime import UTC, datetime
from functools import partial

import measure
import numpy as np
from build_lod import generated
from clouds import make_cloud
from direction import building
from plane_elements import scan, walls
from pops_features import terrain
from rooms import room

from spatialq.data.meshes import Meshes
from spatialq.runtime.threads import n_threads


def columns(x, y, z):
    return {"x": x, "y": y, "z": z, "point_id": np.arange(x.size)}


def aerial(scale):
    return columns(*make_cloud("small", n=int(4_000_000 * scale)))


def indoor(scale):
    scene = room(int(10_000_000 * scale))
    return columns(scene.x, scene.y, scene.z)


def scanned_walls(scale):
    elements = walls(4, 3, 2)
    (x, y, z), _ = scan(elements, int(5_000_000 * scale), np.random.default_rng(1))
    return columns(x, y, z) | {"elements": elements}


def coloured(scale):
    points = generated(int(5_000_000 * scale))
    names = "red", "green", "blue", "intensity"
    colours = dict(zip(names, points.colour.T.copy(), strict=True))
    return columns(points.x, points.y, points.z) | colours | {"classification": None}


def elements(scale):
    return {"a": Meshes.of(building(int(4000 * scale)))}


def grid(side, scale):
    cells = int(side * np.sqrt(scale))
    return {"grid": terrain(cells, cells)}


INPUTS = {
    "build_lod": coloured,
    "classify_ground": aerial,
    "detect_planes": indoor,
    "direction": elements,
    "distance": elements,
    "ground_surface": aerial,
    "intersects_with": elements,
    "owm_ground": aerial,
    "plane_elements": scanned_walls,
    "plane_points": indoor,
    "pops_features": partial(grid, 4000),
    "pops_patches": partial(grid, 2000),
}
CHOSEN = {"distance": {"max_distance": 0.05}}
"""Options that are not the defaults."""


def serial_share(seconds):
    """Fit Amdahl's law to the times by numbers of threads."""
    threads, times = np.array(list(seconds)), np.array(list(seconds.values()))
    factors = np.column_stack([np.ones(len(threads)), 1 / threads]) / times[:, None]
    serial, parallel = np.linalg.lstsq(factors, np.ones(len(threads)), rcond=None)[0]
    return float(np.clip(serial / (serial + parallel), 0, 1))


def figures(function, scale, repeat):
    kernel = measure.kernel(function, "cpu")
    options = measure.options_of(function, **CHOSEN.get(function, {}))
    inputs = INPUTS[function](scale)

    def on(threads):
        def work():
            os.environ["SPATIALQ_THREADS"] = str(threads)
            kernel(**inputs, options=options)

        return work

    most = n_threads()
    counts = sorted({most, *(2**k for k in range(most.bit_length()))})
    timed = measure.in_turns({threads: on(threads) for threads in counts}, repeat)
    os.environ["SPATIALQ_THREADS"] = str(most)
    seconds = {threads: each.best for threads, each in timed.items()}
    return measure.show({
        "name": function,
        "ms": {threads: 1e3 * each for threads, each in seconds.items()},
        "serial_share": serial_share(seconds),
    })  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", default=list(INPUTS))
    measure.add_arguments(parser)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual sizes")
    arguments = parser.parse_args()
    report = {
        "device": platform.processor() or platform.machine(),
        "commit": arguments.commit,
        "date": datetime.now(UTC).date().isoformat(),
        "cpu_threads": n_threads(),
        "functions": [
            figures(function, arguments.scale, arguments.repeat) for function in arguments.functions
        ],
    }
    measure.write(arguments.out, "threads", report)


if __name__ == "__main__":
    main()
