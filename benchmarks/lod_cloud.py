"""A coloured cloud for `build_lod`: hash-based, so any part of it is made alone, on any device.

A cube of side 1024: nine tenths are an aerial scan of rolling ground with roofs, facades and
trees, 64 flight strips one after the other or in random order; a tenth is a dense spot in the
middle, as a terrestrial scanner leaves it. Coordinates are multiples of 2^-10, so float32 has
them exactly. Colours are those of the surface with a texture and noise.
"""

import numpy as np

SIDE = 1024.0
STRIPS = 64
PLOT = 32.0  # each square of this side has a house, a tree or neither
TURN = 2000  # points of a scan line to and fro
DENSE = 10  # one point of so many is in the dense spot
PART = 4_000_000  # points made at once
GOLDEN, OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
EARTH, ROOF, FACADE, TREE = range(4)
COLOURS = np.array([[90, 90, 60], [150, 90, 60], [90, 90, 140], [40, 120, 60]], np.uint32)


def hashed(values):
    """32 bits of 64."""
    values = values ^ values >> np.uint64(33)
    values = values * np.uint64(0xFF51AFD7ED558CCD)
    values = values ^ values >> np.uint64(33)
    values = values * np.uint64(0xC4CEB9FE1A85EC53)
    return (values ^ values >> np.uint64(33)).astype(np.uint32)


def ground(x, y, xp):
    hills = xp.float32(15) * xp.sin(x / xp.float32(150)) * xp.cos(y / xp.float32(130))
    bumps = xp.sin(x / xp.float32(37) + xp.float32(1)) * xp.sin(y / xp.float32(41))
    return xp.float32(40) + hills + xp.float32(5) * bumps


class Draws:
    """Numbers in [0, 1), several for each point."""

    def __init__(self, index):
        self.index = index * GOLDEN

    def __getitem__(self, k):
        bits = hashed(self.index + np.uint64(k * int(OTHER) % 2**64)) >> np.uint32(8)
        return bits.astype(np.float32) * np.float32(2.0**-24)


def aerial(index, n, order, xp):
    """Places and kinds of points from the air."""
    u = Draws(index)
    if order == "random":
        x, y = xp.float32(SIDE) * u[1], xp.float32(SIDE) * u[2]
    else:
        a_strip = np.uint64(-(-n // STRIPS))
        strip, k = index // a_strip, index % a_strip
        along = (k.astype(np.float64) / float(a_strip)).astype(np.float32)
        across = (k % np.uint64(TURN)).astype(np.float32) / np.float32(TURN // 2)
        across = xp.where(across > 1, 2 - across, across)
        x = (strip.astype(np.float32) + across) * np.float32(SIDE / STRIPS)
        y = xp.where(strip % np.uint64(2) == 1, 1 - along, along) * np.float32(1023.9)
        x, y = x + np.float32(0.05) * u[1], y + np.float32(0.05) * u[2]
    z = earth = ground(x, y, xp)
    kind = xp.full(x.shape, EARTH, np.int32)
    column, row = (xp.floor(each / np.float32(PLOT)) for each in (x, y))
    of_plot = hashed(
        column.astype(np.uint64) * np.uint64(7919) + row.astype(np.uint64) * np.uint64(104729)
        + np.uint64(17)
    )  # fmt: skip
    west, south = column * np.float32(PLOT), row * np.float32(PLOT)
    lx, ly = x - west, y - south

    house = (of_plot & np.uint32(3) == 0) & (lx > 6) & (lx < 26) & (ly > 6) & (ly < 24)
    height = (np.uint32(6) + (of_plot >> np.uint32(8) & np.uint32(15))).astype(np.float32)
    eaves = ground(west + 16, south + 15, xp) + height
    z = xp.where(house, eaves + np.float32(0.25) * xp.abs(lx - 16), z)
    kind = xp.where(house, ROOF, kind)
    edge = (lx < 6.4) | (lx > 25.6) | (ly < 6.4) | (ly > 23.6)
    facade = house & edge & (u[3] < 0.6)
    z = xp.where(facade, earth + (eaves - earth) * u[4], z)
    kind = xp.where(facade, FACADE, kind)

    radius = xp.sqrt((lx - 16) ** 2 + (ly - 16) ** 2)
    tree = (of_plot & np.uint32(3) == 1) & (radius < 12) & (u[3] < 0.8)
    crown = earth + (12 - radius) * (np.float32(0.3) + np.float32(0.7) * u[4])
    z = xp.where(tree, crown, z) + np.float32(0.02) * (u[5] + u[6] - 1)
    return x, y, z, xp.where(tree, TREE, kind)


def dense(index, xp):
    """Places of points of the spot, denser towards its middle, with a wall around it."""
    u = Draws(index)
    angle = np.float32(2 * np.pi) * u[2]
    wall = u[3] < 0.3
    radius = xp.where(wall, np.float32(30), np.float32(30) * u[1] * u[1] + np.float32(0.5))
    x, y = (np.float32(SIDE / 2) + radius * turn(angle) for turn in (xp.cos, xp.sin))
    above = xp.where(wall, np.float32(20) * u[4], np.float32(0.01) * u[5])
    return x, y, ground(x, y, xp) + above, xp.full(x.shape, EARTH, np.int32)


def part(first, last, n, order, xp):
    """Records of points first to last - 1 of n."""
    index = xp.arange(first, last, dtype=np.uint64)
    from_air = n - n // DENSE
    several = [
        aerial(index[index < from_air], from_air, order, xp),
        dense(index[index >= from_air], xp),
    ]
    x, y, z, kind = (xp.concatenate(pair) for pair in zip(*several, strict=True))
    x, y = (xp.clip(each, 0, np.float32(1023.99)) for each in (x, y))
    z = xp.clip(z, 0, np.float32(255.99))
    x, y, z = (xp.floor(each * 1024) / np.float32(1024) for each in (x, y, z))
    salts = (73856093, 19349663, 83492791)
    i, j, k = (
        xp.floor(each * 2).astype(np.uint64) * np.uint64(salt)
        for each, salt in zip((x, y, z), salts, strict=True)
    )
    texture = hashed(i ^ j ^ k) & np.uint32(63)
    noise = hashed(index) & np.uint32(31)
    red, green, blue = xp.asarray(COLOURS)[kind].T + texture
    red, blue = red + noise, blue + noise // np.uint32(2)
    records = xp.empty((len(index), 4), np.uint32)
    for axis, values in enumerate((x, y, z)):
        records[:, axis] = values.view(np.uint32)
    opaque = np.uint32(255 << 24)
    records[:, 3] = red | green << np.uint32(8) | blue << np.uint32(16) | opaque
    return records


def cloud(n, order="strips", xp=np):
    """Make n points as packed records: uint32[n, 4], float32 x, y, z and 8 bits of R, G, B, A.

    Parameters
    ----------
    n : int
    order : 'strips' or 'random'
    xp : module
        numpy, or cupy for an array on the device.
    """
    records = xp.empty((n, 4), np.uint32)
    for first in range(0, n, PART):
        last = min(first + PART, n)
        records[first:last] = part(first, last, n, order, xp)
    return records
