"""`point_features` by SciPy's neighbours, NumPy's eigenvalues, and the published formulas."""

import numpy as np
from scipy.spatial import cKDTree


def neighbourhoods(points, *, k=10, radius=None, **_):
    """Rows of each point's neighbourhood, itself included, by SciPy."""
    if not len(points):
        return []
    tree = cKDTree(points)
    if radius is not None:
        return tree.query_ball_point(points, radius)
    return tree.query(points, range(1, min(k + 1, len(points)) + 1))[1]


def features_of(around, point, *, radius=None, mode="sqrt"):
    """By name, of a neighbourhood of at least three places."""
    values, vectors = np.linalg.eigh(np.cov(around.T))
    c, b, a = np.maximum(values, 0)
    total = a + b + c
    shares = np.array([a, b, c]) / total
    normal = vectors[:, 0] * (-1 if vectors[2, 0] < 0 else 1)
    reach = radius or np.linalg.norm(around - point, axis=1).max()
    if mode == "sqrt":
        a, b, c = np.sqrt([a, b, c])
    elif mode == "normalized":
        a, b, c = shares
    unary = np.abs(vectors[:, ::-1]) @ [a, b, c]
    return {
        **dict(zip(("nx", "ny", "nz"), normal, strict=True)),
        "linearity": (a - b) / a, "planarity": (b - c) / a, "scattering": c / a,
        "verticality": unary[2] / np.linalg.norm(unary),
        "demantke_verticality": 1 - abs(normal[2]),
        "omnivariance": np.cbrt(a * b * c), "anisotropy": (a - c) / a,
        "eigenentropy": -sum(e * np.log(e) for e in shares if e > 0), "eigenvalue_sum": total,
        "surface_variation": shares[2], "density": len(around) / (4 / 3 * np.pi * reach**3),
    }  # fmt: skip
