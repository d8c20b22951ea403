"""`spatialq.io.reproject` against published coordinates, formulas, and GDAL's own PROJ."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rasterio.warp import transform as gdal_transform

from spatialq.errors import CrsError
from spatialq.io.crs import from_text
from spatialq.io.reproject import Reprojection, area_of, reprojection, utm_zone

GERMANY = (9.0, 50.0, 9.5, 50.5)
FT_US = 1200 / 3937


def degrees(d: float, m: float = 0.0, s: float = 0.0) -> float:
    return math.copysign(abs(d) + m / 60 + s / 3600, d)


# IOGP Publication 373-7-2, "Coordinate Conversions and Transformations including Formulas": the
# example of each method. Longitude, latitude, and easting, northing as printed.
PUBLISHED = {
    "EPSG:4277 EPSG:27700": (0.5, 50.5, 577274.99, 69740.50),  # Transverse Mercator
    "EPSG:4242 EPSG:24200": (  # Lambert Conic Conformal (1SP)
        degrees(-76, 56, 37.26), degrees(17, 55, 55.80), 255966.58, 142493.51),
    "EPSG:4267 EPSG:32040": (-96.0, 28.5, 2963503.91, 254759.80),  # the same (2SP), US survey feet
    "EPSG:4156 EPSG:5514": (  # Krovak
        degrees(16, 50, 59.179), degrees(50, 12, 32.442), -568990.997, -1050538.643),
    "EPSG:4298 EPSG:29873": (  # Hotine Oblique Mercator (variant B)
        degrees(115, 48, 19.8196), degrees(5, 23, 14.1129), 679245.73, 596562.78),
    "EPSG:4302 EPSG:30200": (-62.0, 10.0, 66644.94, 82536.22),  # Cassini-Soldner, Clarke's links
    "EPSG:4289 EPSG:28992": (6.0, 53.0, 196105.283, 557057.739),  # Oblique Stereographic
    "EPSG:4258 EPSG:3035": (5.0, 50.0, 3962799.45, 2999718.85),  # Lambert Azimuthal Equal Area
    "EPSG:4257 EPSG:3002": (120.0, -3.0, 5009726.58, 569150.82),  # Mercator (variant A)
    "EPSG:4284 EPSG:3388": (53.0, 53.0, 165704.29, 5171848.07),  # Mercator (variant B)
    "EPSG:4326 EPSG:5041": (44.0, 73.0, 3320416.75, 632668.43),  # Polar Stereographic (variant A)
    "EPSG:4326 EPSG:3857": (  # Popular Visualisation Pseudo Mercator
        degrees(-100, 20), degrees(24, 22, 54.433), -11169055.58, 2800000.00),
}  # fmt: skip

# Transformations of the EPSG dataset without a grid: metres, arc seconds, parts per million, of the
# position vector method; ellipsoids: semi-major axis, inverse flattening.
BESSEL, AIRY = (6377397.155, 299.1528128), (6377563.396, 299.3249646)
INTERNATIONAL, GRS80 = (6378388.0, 297.0), (6378137.0, 298.257222101)
WGS84 = (6378137.0, 298.257223563)
SHIFTS = {
    "EPSG:4314 EPSG:4258": (  # EPSG:1776, DHDN to ETRS89 (2)
        GERMANY, BESSEL, GRS80, (598.1, 73.7, 418.2, 0.202, 0.045, -2.455, 6.7)),
    "EPSG:4277 EPSG:4326": (  # EPSG:1314, OSGB36 to WGS 84 (6)
        (-2.0, 51.0, -1.0, 52.0), AIRY, WGS84,
        (446.448, -125.157, 542.06, 0.15, 0.247, 0.842, -20.489)),
    "EPSG:4272 EPSG:4167": (  # EPSG:1564, NZGD49 to NZGD2000 (2)
        (174.0, -40.0, 175.0, -39.0), INTERNATIONAL, GRS80,
        (59.47, -5.04, 187.44, 0.47, -0.1, 1.024, -4.5993)),
}  # fmt: skip


def reproject(pair: str, area: tuple[float, ...] | None = None) -> Reprojection:
    source, target = pair.split()
    return reprojection("f", from_text(source), from_text(target), area)


def points(area: tuple[float, ...], n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.uniform(area[0], area[2], n), rng.uniform(area[1], area[3], n)


@pytest.mark.parametrize("pair", PUBLISHED)
def test_published_coordinates(pair):
    longitude, latitude, easting, northing = PUBLISHED[pair]
    there = reproject(pair)
    x, y, z = there(np.array([longitude]), np.array([latitude]), np.array([math.nan]))
    assert (x[0], y[0]) == pytest.approx((easting, northing), abs=0.015)  # 0.0005 arc seconds
    assert math.isnan(z[0])
    assert there.accuracy == 0
    back = reproject(" ".join(reversed(pair.split())))
    assert np.hstack(back(x, y, z)[:2]) == pytest.approx([longitude, latitude], abs=1e-8)
    assert np.hstack(there(x, y, z, inverse=True)[:2]) == pytest.approx([longitude, latitude])


def to_geocentric(longitude, latitude, ellipsoid):
    a, f = ellipsoid[0], 1 / ellipsoid[1]
    e2, phi, lam = f * (2 - f), np.radians(latitude), np.radians(longitude)
    n = a / np.sqrt(1 - e2 * np.sin(phi) ** 2)
    return np.array(
        [n * np.cos(phi) * np.cos(lam), n * np.cos(phi) * np.sin(lam), n * (1 - e2) * np.sin(phi)]
    )


def to_geographic(xyz, ellipsoid):
    a, f = ellipsoid[0], 1 / ellipsoid[1]
    e2, p = f * (2 - f), np.hypot(xyz[0], xyz[1])
    phi = np.arctan2(xyz[2], p * (1 - e2))
    for _ in range(10):
        n = a / np.sqrt(1 - e2 * np.sin(phi) ** 2)
        phi = np.arctan2(xyz[2] + e2 * n * np.sin(phi), p)
    return np.degrees(np.arctan2(xyz[1], xyz[0])), np.degrees(phi)


@pytest.mark.parametrize("pair", SHIFTS)
def test_one_shift_of_the_datum_for_all_points(pair):
    """By the formula of seven parameters; PROJ's own choice, point by point, has seams."""
    area, one, other, (dx, dy, dz, rx, ry, rz, ds) = SHIFTS[pair]
    rx, ry, rz = np.radians(np.array([rx, ry, rz]) / 3600)
    turn = np.array([[1, -rz, ry], [rz, 1, -rx], [-ry, rx, 1]])
    longitude, latitude = points(area)
    moved = np.array([[dx], [dy], [dz]]) + (1 + ds * 1e-6) * turn @ to_geocentric(
        longitude, latitude, one
    )
    expected = to_geographic(moved, other)
    found = reproject(pair, area)(longitude, latitude, np.zeros(1000))
    np.testing.assert_allclose(found[:2], expected, rtol=0, atol=1e-10)  # 0.01 mm
    assert np.all(found[2] == 0)


@pytest.mark.parametrize(
    ("pair", "area"),
    [
        ("EPSG:25832 EPSG:25833", (9.0, 50.0, 12.0, 54.0)),
        ("EPSG:25832 EPSG:3035", (9.0, 50.0, 12.0, 54.0)),
        ("EPSG:2154 EPSG:4171", (1.0, 44.0, 5.0, 48.0)),
        ("EPSG:2056 EPSG:4150", (6.5, 46.0, 9.5, 47.5)),
        ("EPSG:26911 EPSG:2230", (-117.5, 32.6, -116.0, 33.4)),
    ],
)
def test_the_proj_of_gdal(pair, area):
    """Which is another build, in rasterio's wheel."""
    source, target = pair.split()
    geographic = "EPSG:4269" if source == "EPSG:26911" else "EPSG:4258"
    at = gdal_transform(geographic, source, *points(area))
    expected = gdal_transform(source, target, *at)
    x, y, _ = reproject(pair, area)(*map(np.array, at), np.zeros(1000))
    np.testing.assert_allclose((x, y), expected, rtol=0, atol=1e-6)


def test_missing_grids_are_named_with_the_accuracy_that_remains():
    found = reproject("EPSG:31467 EPSG:25832", GERMANY)
    if found.accuracy < 1:
        pytest.skip("the grids are installed here")
    assert "DHDN to ETRS89 (2)" in found.operation
    assert found.accuracy == 3
    assert "accurate to 3 m; it would be better with one of the grids" in found.note
    assert "de_adv_BETA2007.tif (0.9 m)" in found.note
    assert "de_hvbg_hessen_HeTA2010.tif (0.1 m)" in found.note
    # another area, other grids
    assert "HeTA" not in reproject("EPSG:31467 EPSG:25832", (10.0, 53.0, 10.5, 53.5)).note


def test_what_ignores_the_datum_is_refused():
    """NAD27 in the United States: without grids PROJ takes the coordinates as they are."""
    with pytest.raises(CrsError, match=r"^f: cannot reproject NAD27 .*us_noaa_conus"):
        reproject("EPSG:4267 EPSG:4269", (-100.0, 35.0, -99.0, 36.0))
    with pytest.raises(CrsError, match="PROJ knows no operation that keeps to the datum"):
        reproject("EPSG:4267 EPSG:31467")


def test_heights_that_need_a_geoid_are_refused():
    """PROJ would leave z as it is: of DHHN92 without a word about a grid."""
    with pytest.raises(CrsError, match=r"it needs the grid de_bkg_gcg2016.tif \(1.1 m\)"):
        reproject("EPSG:25832+7837 EPSG:4979", GERMANY)
    with pytest.raises(CrsError, match="no operation that keeps to the datum and the heights"):
        reproject("EPSG:5555 EPSG:4979", GERMANY)


def test_heights_on_one_side_only_are_refused():
    with pytest.raises(CrsError, match=r"target with heights, such as EPSG:25833\+7837$"):
        reproject("EPSG:25832+7837 EPSG:25833")
    with pytest.raises(CrsError, match=r"give a target without heights, such as EPSG:25833$"):
        reproject("EPSG:25832 EPSG:25833+7837")
    with pytest.raises(CrsError, match=r"give a target with heights$"):
        reproject("EPSG:4979 EPSG:25832")


@pytest.mark.parametrize(
    ("pair", "factor"),
    [
        ("EPSG:2230 EPSG:26911", FT_US),  # without a system of heights they have the unit of x, y
        ("EPSG:26911 EPSG:2230", 1 / FT_US),
        ("EPSG:2230 EPSG:4269", FT_US),
        ("EPSG:2230+6360 EPSG:26911+5703", FT_US),
        ("EPSG:2223+8228 EPSG:26912+5703", 0.3048),
        ("EPSG:2230+6360 EPSG:2223+8228", FT_US / 0.3048),
        ("EPSG:25832+7837 EPSG:4258+7837", 1.0),
    ],
)
def test_units_of_heights_are_exact(pair, factor):
    area = GERMANY if "25832" in pair else (-114.0, 32.6, -113.0, 33.4)
    geographic = "EPSG:4258" if "25832" in pair else "EPSG:4269"
    x, y = map(np.array, gdal_transform(geographic, pair.split()[0].split("+")[0], *points(area)))
    z = np.linspace(-500.0, 9000.0, x.size)
    found = reproject(pair, area)
    moved = found(x, y, z)
    np.testing.assert_allclose(moved[2], z * factor, rtol=1e-15, atol=0)
    np.testing.assert_allclose(found(*moved, inverse=True)[2], z, rtol=1e-15, atol=0)


def test_other_heights_are_transformed():
    """DHHN92 to DHHN2016 through EVRF2007, whose offset on the average is 0.01 m."""
    found = reproject("EPSG:5555 EPSG:25832+7837", GERMANY)
    x, y, z = np.array([500000.0]), np.array([5600000.0]), np.array([100.0])
    moved = found(x, y, z)
    assert found.moves_heights
    assert 0 < abs(moved[2][0] - 100) < 0.1
    assert (moved[0][0], moved[1][0]) == pytest.approx((500000, 5600000), abs=1e-3)


def test_geocentric_coordinates():
    longitude, latitude = points((-180.0, -80.0, 180.0, 80.0))
    found = reproject("EPSG:4979 EPSG:4978")(longitude, latitude, np.zeros(1000))
    np.testing.assert_allclose(found, to_geocentric(longitude, latitude, WGS84), rtol=0, atol=1e-6)


def test_what_has_no_place_is_nan_in_all_axes():
    x, y = np.array([565000.0, 1e9, math.nan, math.inf]), np.full(4, 5934000.0)
    found = reproject("EPSG:25832 EPSG:4326")(x, y, np.array([1.0, 2.0, 3.0, 4.0]))
    assert np.isnan(found).tolist() == [[False, True, True, True]] * 3
    assert x[1] == 1e9  # the arguments are as they were


def test_a_height_that_is_not_known():
    x, y, z = np.full(2, 500000.0), np.full(2, 5600000.0), np.array([math.nan, 0.0])
    found = reproject("EPSG:5555 EPSG:25832+7837", GERMANY)(x, y, z)
    assert found[0][0] == found[0][1]
    assert np.isnan(found[2]).tolist() == [True, False]


def test_threads_give_what_one_gives():
    """Also from threads that come and go, as those of DuckDB do."""
    move = reproject("EPSG:25832 EPSG:4326", GERMANY)
    x, y = np.linspace(4e5, 6e5, 300_000), np.linspace(5.5e6, 5.6e6, 300_000)
    expected = move(x, y, x)
    parts = [slice(first, first + 10_000) for first in range(0, 300_000, 10_000)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: move(x[part], y[part], x[part]), parts))
    np.testing.assert_array_equal(np.concatenate(found, axis=1), expected)


def test_a_box_holds_its_points():
    move = reproject("EPSG:25832 EPSG:4326", GERMANY)
    box = (4e5, 5.5e6, 0.0, 6e5, 5.7e6, 10.0)
    found = move.extent(box, margin=0.01)
    rng = np.random.default_rng(2)
    x, y, z = move(rng.uniform(4e5, 6e5, 1000), rng.uniform(5.5e6, 5.7e6, 1000), np.zeros(1000))
    assert found[0] < x.min() < x.max() < found[3]
    assert found[1] < y.min() < y.max() < found[4]
    assert found[2] <= z.min() <= z.max() < found[5]
    assert move.extent((4e5, 5.5e6, 0.0, 1e9, 5.7e6, 1.0)) is None


def test_area_of_a_box():
    area = area_of(from_text("EPSG:25832"), (5e5, 5.6e6, 0.0, 5.1e5, 5.61e6, 0.0))
    expected = gdal_transform("EPSG:25832", "EPSG:4258", [5e5, 5.1e5], [5.6e6, 5.61e6])
    assert area == pytest.approx((*(v[0] for v in expected), *(v[1] for v in expected)), abs=1e-3)


@pytest.mark.parametrize(
    ("crs", "at", "code"),
    [
        ("EPSG:4326", (8.1, 50.0), "EPSG:32632"),
        ("EPSG:4326", (-70.1, -33.0), "EPSG:32719"),
        ("EPSG:4258", (8.1, 50.0), "EPSG:25832"),
        ("EPSG:4269", (-120.5, 40.0), "EPSG:26910"),
        ("EPSG:4326+5773", (8.1, 50.0), "EPSG:32632+5773"),
        ("EPSG:4979", (8.1, 50.0), None),
        ("EPSG:25832", (5e5, 5.6e6), None),
    ],
)
def test_utm_zone(crs, at, code):
    x, y = at
    assert utm_zone(from_text(crs), (x, y, -math.inf, x + 0.5, y + 0.5, math.inf)) == code


def test_what_is_no_system_of_points():
    with pytest.raises(CrsError, match="both must be systems of x and y"):
        reproject("EPSG:7837 EPSG:25832")
