"""`volume_between` and `canopy_height` of tables of cells, against arrays in NumPy.

python benchmarks/two_grids.py [--side CELLS] [--repeat N]

The rivals have the two grids as arrays of one shape in memory, as a script that reads two rasters
has them: one subtracts and sums, the other also takes medians of eight neighbours. Ours joins the
cells of two tables of DuckDB by their places, in whatever order they come.
"""

import argparse

import numpy as np
from measure import in_turns

import spatialq
from spatialq.runtime.threads import n_threads

LEVEL, PIT = 0.1, 1.0


def volume_by_numpy(before, after):
    """Cut and fill above the level of detection, for cells of 1 m."""
    change = after - before
    return -change[change < -LEVEL].sum(), change[change > LEVEL].sum()


def canopy_by_numpy(surface, terrain):
    """Heights above the terrain; cells far below the median of their neighbours get that."""
    z = np.maximum(surface - terrain, 0)
    padded = np.pad(z, 1, constant_values=np.nan)
    rows, columns = z.shape
    around = np.stack([padded[r : r + rows, k : k + columns]
                       for r in range(3) for k in range(3) if (r, k) != (1, 1)])  # fmt: skip
    middle = np.nanmedian(around, axis=0)
    is_enough = np.isfinite(around).sum(axis=0) >= 5
    return np.where(is_enough & (z < middle - PIT), middle, z)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=1500, help="of the grids, in cells")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    rng, n = np.random.default_rng(1), arguments.side
    y, x = np.mgrid[:n, :n] + 0.5
    terrain = 20 * np.sin(x / 90) * np.cos(y / 80)
    surface = terrain + np.where(rng.random(x.shape) < 0.3, 0, rng.uniform(0, 20, x.shape))
    later = terrain + rng.normal(0, 0.2, x.shape)
    with spatialq.connect() as con:
        for name, z in (("terrain", terrain), ("later", later), ("surface", surface)):
            cells = {"x": x.ravel(), "y": y.ravel(), "z": z.ravel()}
            con.register("cells", cells)
            con.execute(f"CREATE TABLE {name} AS FROM cells")
        volume = f"FROM volume_between('terrain', 'later', level_of_detection := {LEVEL})"
        canopy = f"SELECT z FROM canopy_height('surface', 'terrain', pit_depth := {PIT})"
        ((cut, fill),) = con.sql(f"SELECT cut, fill {volume}").fetchall()
        np.testing.assert_allclose((cut, fill), volume_by_numpy(terrain, later), rtol=1e-9)
        ordered = (
            f"SELECT z FROM canopy_height('surface', 'terrain', pit_depth := {PIT}) ORDER BY y, x"
        )
        found = con.sql(ordered).fetchnumpy()["z"].reshape(n, n)
        np.testing.assert_allclose(found, canopy_by_numpy(surface, terrain), atol=1e-9)
        works = {
            "volume_between": lambda: con.sql(volume).fetchall(),
            "volume in NumPy": lambda: volume_by_numpy(terrain, later),
            "canopy_height": lambda: con.sql(canopy).to_arrow_table(),
            "canopy in NumPy": lambda: canopy_by_numpy(surface, terrain),
        }
        timed = in_turns(works, arguments.repeat)
    print(f"{n} x {n} cells, {n_threads()} threads")
    for name, each in timed.items():
        print(
            f"{name:16} {each.best:7.3f} s, {1e9 * each.best_processor / n**2:6.0f} processor ns "
            "a cell"
        )


if __name__ == "__main__":
    main()
