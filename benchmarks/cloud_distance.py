"""How fast two clouds are compared, against SciPy and NumPy in the same run.

    python benchmarks/cloud_distance.py [--points 1000000] [--repeat 3]

Clouds and figures as of `neighbours.py`; the reference is another draw of each. The rival of
"nearest" is SciPy's k-d tree. That of "m3c2" makes the two trees and counts the points of both
clouds in the spheres that hold a cylinder, and those around which a normal would be fitted: it
neither fits nor measures.
"""

import numpy as np
from neighbours import main
from scipy.spatial import cKDTree

from spatialq.data.cloud import Cloud
from spatialq.functions.catalogue import catalogue

RADIUS, LENGTH, NORMAL = 0.3, 0.5, 0.5


def works_of(points):
    """Say what is compared."""
    rng = np.random.default_rng(7)
    others = points[rng.permutation(len(points))] + rng.normal(0, 0.02, points.shape)
    declared = catalogue()["cloud_distance"]
    columns = [np.ascontiguousarray(each) for each in points.T]
    reference = Cloud(*(np.ascontiguousarray(each) for each in others.T))

    def call(**options):
        return declared.kernel("cpu")(*columns, None, reference, declared.choose(options))

    def spheres():
        trees = cKDTree(points), cKDTree(others)
        around = np.hypot(RADIUS, LENGTH)
        for tree, radius in ((trees[0], NORMAL), (trees[0], around), (trees[1], around)):
            tree.query_ball_point(points, radius, return_length=True)

    return {
        "nearest": (lambda: call()["distance"], lambda: cKDTree(others).query(points)[0]),
        "m3c2": (
            lambda: none(
                call(method="m3c2", radius=RADIUS, max_distance=LENGTH, normal_radius=NORMAL)
            ),
            spheres,
        ),
    }


def none(_):
    """Drop what there is nothing to compare with."""


if __name__ == "__main__":
    main(__doc__, works_of)
