"""Two kinds of made terrain for planets.py: eroded by rivers, and hit by meteorites.

Both begin as the same kind of rough surface and end with slopes of the same distribution, so that
not how steep they are tells them apart, but in what shapes.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numba
import numpy as np

from spatialq.export.raster import Raster, write_terrain

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    Heights = NDArray[np.float64]

CELL = 60.0
"""Metres, as the grids of the paper."""
MARGIN = 24
"""Cells that are cut off, where the border was held."""


def make_grids(folder: Path, count: int, cells: int) -> dict[str, list[str]]:
    """Write GeoTIFFs of both kinds; the same every time.

    Parameters
    ----------
    folder : path
    count : int
        Grids of each kind.
    cells : int
        Along each side.

    Returns
    -------
    dict
        Files of each kind.
    """
    grids: dict[str, list[str]] = {}
    for kind, shape in (("eroded", eroded), ("cratered", cratered)):
        for k in range(count):
            rng = np.random.default_rng([k, len(grids)])
            z = shape(rng, rough(rng, cells + 2 * MARGIN))[MARGIN:-MARGIN, MARGIN:-MARGIN]
            slope = np.sqrt(np.mean(np.diff(z) ** 2)) / CELL
            z = z * rng.uniform(0.06, 0.2) / slope + rng.normal(0.0, 0.5, z.shape)
            path = folder / f"{kind}_{k}.tif"
            write_terrain(path, Raster(z, 0.0, cells * CELL, CELL))
            grids.setdefault(kind, []).append(str(path))
    return grids


def rough(rng: "Generator", cells: int) -> "Heights":
    """Make a surface whose power falls with the frequency, as that of real terrain does."""
    frequency = np.hypot.outer(np.fft.fftfreq(2 * cells), np.fft.rfftfreq(2 * cells))
    frequency[0, 0] = np.inf
    spectrum = np.fft.rfft2(rng.normal(size=(2 * cells, 2 * cells)))
    surface = np.fft.irfft2(spectrum * frequency ** -rng.uniform(1.6, 2.1))
    z = surface[:cells, :cells]  # of twice the size: edges shall not go on at the other side
    return np.asarray((z - z.mean()) / z.std() * rng.uniform(30.0, 90.0))


def eroded(rng: "Generator", z: "Heights") -> "Heights":
    """Lift a surface, let rivers cut into it and slopes creep, for 1.5 million years."""
    incise(z, 25, 60_000.0, rng.uniform(2e-4, 6e-4), rng.uniform(5e-6, 2e-5), 0.01)
    return z


@numba.njit(cache=True)
def fill(z: "Heights") -> None:
    """Raise pits until each cell has a way down to the border (Planchon, Darboux 2002).

    doi:10.1016/S0341-8162(01)00164-3
    """
    rows, columns = z.shape
    level = z.copy()
    level[1:-1, 1:-1] = np.inf
    sinking = True
    while sinking:
        sinking = False
        for k in range(2 * z.size):  # to and fro
            i, j = divmod(min(k, 2 * z.size - 1 - k), columns)
            if 0 < i < rows - 1 and 0 < j < columns - 1 and level[i, j] > z[i, j]:
                low = min(level[i - 1, j], level[i + 1, j], level[i, j - 1], level[i, j + 1])
                new = max(z[i, j], low + 1e-3)
                if new < level[i, j]:
                    level[i, j], sinking = new, True
    z[:] = level


@numba.njit(cache=True)
def incise(
    z: "Heights", steps: int, years: float, uplift: float, erodibility: float, creep: float
) -> None:
    """Change heights by uplift, dz/dt = U - K sqrt(A) S + D lap z, with the border held.

    A is the area that drains through a cell, S the steepest slope down; implicit along the rivers
    (Braun, Willett 2013, doi:10.1016/j.geomorph.2012.10.008).
    """
    rows, columns = z.shape
    flat = z.reshape(-1)
    area, below, far = np.empty(z.size), np.empty(z.size, np.int64), np.empty(z.size)
    for _ in range(steps):
        old = z.copy()
        for i in range(1, rows - 1):
            for j in range(1, columns - 1):
                around = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
                bend = (around - 4 * old[i, j]) / CELL**2
                z[i, j] += years * (uplift + creep * bend)
        fill(z)
        area[:] = CELL**2
        for i in range(rows):
            for j in range(columns):
                here = i * columns + j
                below[here], far[here], steepest = here, 1.0, 0.0
                if 0 < i < rows - 1 and 0 < j < columns - 1:
                    for down in range(-1, 2):
                        for right in range(-1, 2):
                            way = CELL * np.sqrt(max(1, down * down + right * right))
                            slope = (z[i, j] - z[i + down, j + right]) / way
                            if slope > steepest:
                                steepest, far[here] = slope, way
                                below[here] = here + down * columns + right
        order = np.argsort(flat)
        for here in order[::-1]:
            if below[here] != here:
                area[below[here]] += area[here]
        for here in order:
            if below[here] != here:
                cut = erodibility * years * np.sqrt(area[here]) / far[here]
                flat[here] = (flat[here] + cut * flat[below[here]]) / (1 + cut)


def cratered(rng: "Generator", z: "Heights") -> "Heights":
    """Hit a surface: bowls a fifth as deep as wide with a rim, fresh and worn down.

    Those wider than D are as many as D^-2, from 300 m to 6 km.
    """
    cells = len(z)
    for _ in range(round(cells**2 * rng.uniform(0.006, 0.02))):
        radius = min(300.0 * rng.random() ** -0.5, 6000.0) / 2 / CELL
        fresh = rng.uniform(0.1, 1.0) * 2 * radius * CELL
        at = rng.uniform(-radius, cells + radius, 2)
        low = np.clip((at - 4 * radius).astype(int), 0, cells)
        high = np.clip((at + 4 * radius).astype(int) + 1, 0, cells)
        y, x = np.ogrid[low[0] : high[0], low[1] : high[1]]
        r = np.hypot(y - at[0], x - at[1]) / radius
        bowl, rim = 0.2 * (r**2 - 1), 0.036
        z[low[0] : high[0], low[1] : high[1]] += fresh * np.where(
            r < 1, bowl + rim, rim / np.maximum(r, 1) ** 3
        )
    return z
