"""How fast features of neighbourhoods are computed, against NumPy in the same run.

    python benchmarks/point_features.py [--points 1000000] [--repeat 3]

Clouds and figures as of `neighbours.py`, 8 neighbours. The rival takes those that SciPy's k-d tree
finds, and computes covariance matrices and their eigenvalues and vectors only.
"""

import numpy as np
from neighbours import K, call, main
from scipy.spatial import cKDTree


def eigen_of_numpy(points):
    """Compute eigenvalues and eigenvectors of the neighbourhoods."""
    around = points[cKDTree(points).query(points, K)[1]] - points[:, None]
    around -= around.mean(axis=1, keepdims=True)
    np.linalg.eigh(np.einsum("nki,nkj->nij", around, around) / (K - 1))


def works_of(points):
    """Say what is compared."""
    ours = call("point_features", points, k=K - 1)

    def run():
        ours()

    return {"8 neighbours": (run, lambda: eigen_of_numpy(points))}


if __name__ == "__main__":
    main(__doc__, works_of)
