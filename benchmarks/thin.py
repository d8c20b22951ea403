"""How fast clouds are thinned, against NumPy in the same run.

    python benchmarks/thin.py [--points 1000000] [--repeat 3]

Clouds and figures as of `neighbours.py`. The rival of voxels is `np.unique` of their numbers, which
takes the first point of each; that of Poisson disks SciPy's k-d tree, from which each point that is
kept takes its neighbours, in Python.
"""

import numpy as np
from neighbours import call, main
from scipy.spatial import cKDTree

EDGE = 0.5


def voxels_of_numpy(points):
    """Give how many points are kept: one of each voxel."""
    return len(np.unique(np.floor(points / EDGE), axis=0, return_index=True)[1])


def disks_of_scipy(points):
    """Keep points in their order, unless one that was kept is near."""
    tree, is_near, kept = cKDTree(points), np.zeros(len(points), bool), 0
    for i in range(len(points)):
        if not is_near[i]:
            is_near[tree.query_ball_point(points[i], EDGE)] = True
            kept += 1


def works_of(points):
    """Say what is compared; which points are kept depends on their order in the rivals."""
    voxel, poisson = (call("thin", points, method=each) for each in ("voxel", "poisson"))

    def run():
        poisson()

    return {
        "voxel": (lambda: len(voxel()["point_id"]), lambda: voxels_of_numpy(points)),
        "poisson": (run, lambda: disks_of_scipy(points)),
    }


if __name__ == "__main__":
    main(__doc__, works_of)
