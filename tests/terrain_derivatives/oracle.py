"""Brute force of `terrain_derivatives`: published formulas on whole arrays. Nothing of ours.

Slope, aspect and shade: Horn (1981), Burrough & McDonnell (1998), as gdaldem has them; curvatures:
Zevenbergen & Thorne (1987) with the signs of ArcGIS; tpi, tri, roughness: Wilson et al. (2007),
Riley et al. (1999).
"""

import numpy as np

NEIGHBOURS = {
    "a": (1, -1), "b": (1, 0), "c": (1, 1), "d": (0, -1), "e": (0, 0), "f": (0, 1),
    "g": (-1, -1), "h": (-1, 0), "i": (-1, 1),
}  # fmt: skip
"""Rows north and columns east of the cell e."""


def shifted(z, north, east):
    """The heights of a neighbour, NaN beyond the grid; row 0 is the southernmost."""
    rows, columns = z.shape
    found = np.full(z.shape, np.nan)
    for r in range(rows):
        for c in range(columns):
            if 0 <= r + north < rows and 0 <= c + east < columns:
                found[r, c] = z[r + north, c + east]
    return found


def derivatives(
    z, dx, dy, *, gradient="horn", slope_unit="degrees", azimuth=315, altitude=45, z_factor=1,
    ruggedness="riley", edges=False,
):  # fmt: skip
    """A dict of arrays of the shape of z."""
    z = np.asarray(z, np.float64)
    near = {name: shifted(z, *at) for name, at in NEIGHBOURS.items()}
    if edges:
        near = {name: np.where(np.isnan(each), z, each) for name, each in near.items()}
    a, b, c, d, e, f, g, h, i = near.values()
    missing = np.isnan(sum(near.values()))
    with np.errstate(all="ignore"):
        if gradient == "horn":
            p = z_factor * ((c + 2 * f + i) - (a + 2 * d + g)) / (8 * dx)
            q = z_factor * ((a + 2 * b + c) - (g + 2 * h + i)) / (8 * dy)
        else:
            p, q = z_factor * (f - d) / (2 * dx), z_factor * (b - h) / (2 * dy)
        rise = np.hypot(p, q)
        slope = 100 * rise if slope_unit == "percent" else np.degrees(np.arctan(rise))
        aspect = np.where(rise > 0, np.mod(np.degrees(np.arctan2(-p, -q)), 360), np.nan)
        # gdaldem: cos of the zenith, of the slope, and of the angle between azimuth and aspect
        zenith, tilt = np.radians(90 - altitude), np.arctan(rise)
        turned = np.where(rise > 0, np.cos(np.radians(azimuth - aspect)), 0)
        lit = np.cos(zenith) * np.cos(tilt) + np.sin(zenith) * np.sin(tilt) * turned
        shade = np.where(lit <= 0, 1, 1 + 254 * lit)
        # Zevenbergen & Thorne (1987), with D to H
        D, E = z_factor * ((d + f) / 2 - e) / dx**2, z_factor * ((b + h) / 2 - e) / dy**2
        F = z_factor * (-a + c + g - i) / (4 * dx * dy)
        G, H = z_factor * (-d + f) / (2 * dx), z_factor * (b - h) / (2 * dy)
        profile = 2 * (D * G**2 + E * H**2 + F * G * H) / (G**2 + H**2)
        plan = -2 * (D * H**2 + E * G**2 - F * G * H) / (G**2 + H**2)
        level = (G == 0) & (H == 0)
        apart = np.stack([near[name] - e for name in NEIGHBOURS if name != "e"])
        if ruggedness == "riley":
            tri = np.sqrt((apart**2).sum(axis=0))
        else:
            tri = np.abs(apart).mean(axis=0)
        everything = np.stack(list(near.values()))
        found = {
            "slope": slope,
            "aspect": aspect,
            "hillshade": shade,
            "profile_curvature": np.where(level, np.nan, profile),
            "plan_curvature": np.where(level, np.nan, plan),
            "tpi": e - (a + b + c + d + f + g + h + i) / 8,
            "tri": tri,
            "roughness": everything.max(axis=0) - everything.min(axis=0),
        }
    return {name: np.where(missing, np.nan, values) for name, values in found.items()}
