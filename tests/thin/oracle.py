"""`thin` by brute force: a dictionary of voxels, and points that take their turns."""

from collections import defaultdict

import numpy as np


def rows_of(given):
    return list(zip(given["point_id"].tolist(), *(given[a].tolist() for a in "xyz"), strict=True))


def voxels_of(given, edge):
    """Points by voxel, ascending by id."""
    voxels = defaultdict(list)
    for row in sorted(rows_of(given)):
        voxels[tuple(np.floor(np.array(row[1:]) / edge))].append(row)
    return voxels


def mixed(number):
    """SplitMix64 of a number."""
    number = (number + 0x9E3779B97F4A7C15) % 2**64
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB % 2**64
    return number ^ (number >> 31)


def poisson(given, distance):
    """Ids of the points that are kept, each in its turn."""
    kept = []
    for row in sorted(rows_of(given), key=lambda row: mixed(row[0] % 2**64)):
        squared = (sum((a - b) ** 2 for a, b in zip(row[1:], k[1:], strict=True)) for k in kept)
        if all(each >= distance**2 for each in squared):
            kept.append(row)
    return [row[0] for row in kept]
