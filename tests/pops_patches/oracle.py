"""The patches of the brute force of `pops_features`, each a row."""

from itertools import product

from ..pops_features.oracle import METHODS, examples


def rows(grid, options):
    """Yield example_id, method, scale, px, py, feature, value; NaN where there is none."""
    place = grid.x0, grid.y0, grid.dx, grid.dy
    for example in examples(grid.z, *place, **options):
        for (method, scale), values in example.features.items():
            for px, py, k in product(*map(range, values.shape)):
                feature = METHODS[method][1][k]
                yield example.example_id, method, scale, px, py, feature, values[px, py, k]
