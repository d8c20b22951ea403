"""How fast `classify_ground` is: points a second and core, and against `owm_ground` in one run.

python benchmarks/classify_ground.py [--points N] [--samples FOLDER] [--repeat N]

On a generated tile of about 10 points a square metre, on a sparse one, and, where there are any,
on the ISPRS samples one after the other. Times are processor times of all threads together, so
that figures are per core whatever else the machine does; ratios are of wall times.
"""

import argparse
import os
from pathlib import Path

import measure
import numpy as np
from clouds import make_cloud

from spatialq.runtime.threads import n_threads

DATA = Path(os.environ.get("SPATIALQ_TEST_DATA", Path(__file__).parents[2] / "shared"))
SPARSE = 2_000_000  # at most, for the sparse tile: about 0.75 a square metre


def read_samples(folder):
    import laspy

    for path in sorted(folder.glob("isprs_samp??.laz")):
        file = laspy.read(path)
        yield [np.array(values, np.float64) for values in (file.x, file.y, file.z)]


def dense(n_points):
    """Cut from the dense cloud what has 10 points a square metre."""
    x, y, z = make_cloud("dense", n=min(n_points, 4_000_000))
    copies = -(-n_points // x.size)
    width = x.max() - x.min() + 1.0
    x = np.concatenate([x + k * width for k in range(copies)])[:n_points]
    return [x, np.tile(y, copies)[:n_points], np.tile(z, copies)[:n_points]]


def compare(name, clouds, repeat):
    """Best processor and wall time of each function over all clouds."""

    def over_all_clouds(name):
        kernel, options = measure.kernel(name, "cpu"), measure.options_of(name)

        def work():
            for cloud in clouds:
                kernel(*cloud, np.arange(cloud[0].size), options)

        return work

    names = "owm_ground", "classify_ground"
    timed = measure.in_turns({each: over_all_clouds(each) for each in names}, repeat)
    n_points = sum(cloud[0].size for cloud in clouds)
    ours, simple = timed["classify_ground"], timed["owm_ground"]
    wall, processor = ours.best, ours.best_processor
    print(
        f"{name:16} {n_points:>10} points  {n_points / processor / 1e6:6.2f} M points/s a core  "
        f"{n_points / wall / 1e6:6.2f} on {n_threads()} threads  "
        f"{wall / simple.best:6.1f} x the time of owm_ground",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000, help="of the dense tile")
    parser.add_argument("--samples", type=Path, default=DATA / "data" / "lidar")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    samples = list(read_samples(arguments.samples))
    if samples:
        compare("ISPRS samples", samples, arguments.repeat)
    clouds = {
        "sparse": make_cloud("sparse", n=min(arguments.points, SPARSE)),
        "dense": dense(arguments.points),
    }
    for name, cloud in clouds.items():
        compare(name, [cloud], arguments.repeat)


if __name__ == "__main__":
    main()
