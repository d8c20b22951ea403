"""The points of a node's cell and their plane, in plain steps; nothing of spatialq's."""

import numpy as np

OUTLIER = 10  # a point farther from the plane of a node than its side by this is not of it


def fitted(points):
    """Mean, normal, and standard deviation across, of points."""
    mean = points.mean(axis=0)
    variances, axes = np.linalg.eigh((points - mean).T @ (points - mean) / len(points))
    return mean, axes[:, 0], np.sqrt(max(variances[0], 0.0))


def described(points, low, size, place):
    """Describe the node in whose cell a place is.

    Parameters
    ----------
    points : float64[n, 3]
        Of the whole cloud.
    low : float64[3]
        Minimum corner of the root.
    size : float
        Side of the cell.
    place : float64[3]

    Returns
    -------
    inside, own : bool[n], bool[n]
        The points in the cell, and those that are no outliers.
    mean, normal, thickness
        Of the latter.
    """
    inside = (np.floor((points - low) / size) == np.floor((place - low) / size)).all(axis=1)
    mean, normal, _ = fitted(points[inside])
    own = inside & (np.abs((points - mean) @ normal) <= size / OUTLIER)
    return inside, own, *fitted(points[own])
