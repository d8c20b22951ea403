"""How fast noise is found, against NumPy with SciPy's k-d tree in the same run.

    python benchmarks/classify_noise.py [--points 1000000] [--repeat 3]

Clouds and figures as of `neighbours.py`. The rival marks what exceeds the limit of the statistical
method, without telling low from high; both must find the same points.
"""

from neighbours import K, call, main
from scipy.spatial import cKDTree


def noise_of_numpy(points):
    """Mark the points whose mean distance from their neighbours is large."""
    mean = cKDTree(points).query(points, K)[0][:, 1:].mean(axis=1)
    return mean > mean.mean() + 2 * mean.std(ddof=1)


def works_of(points):
    """Say what is compared."""
    ours = call("classify_noise", points)
    return {
        "statistical": (lambda: ours()["classification"] > 0, lambda: noise_of_numpy(points)),
    }


if __name__ == "__main__":
    main(__doc__, works_of)
