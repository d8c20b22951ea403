"""Outlines of planes against shapely, on rasters, on generated walls and on real scans."""

import laspy
import numpy as np
import pytest
import shapely
from scipy import ndimage
from spatialq.udfs.detect_planes import Options, boundary

from spatialq.functions.catalogue import catalogue

from ..conftest import real_file
from .cases import rooms

ALL, SIDES = np.ones((3, 3)), ndimage.generate_binary_structure(2, 1)


def outlines(*masks):
    """The outlines of rasters, each part of each one a surface of its own; positions in pixels."""
    shapes = np.array([mask.shape for mask in masks])
    starts = np.concatenate([[0], np.cumsum(shapes.prod(1))])[:-1]
    covered = np.concatenate([mask.ravel() for mask in masks]).astype(np.uint8)
    n_parts = sum(ndimage.label(mask, ALL)[1] for mask in masks)
    rings = boundary.Rings.traced(covered, np.column_stack([starts, shapes]), np.arange(n_parts))
    assert np.unique(rings.part).tolist() == list(range(n_parts))
    flat = np.column_stack([rings.vertices, np.zeros(len(rings.vertices))])
    found = shapely.from_wkb(list(rings.written(flat).values()))
    areas = shapely.area(found)
    np.testing.assert_allclose(rings.areas(n_parts), areas, rtol=1e-12, atol=1e-9)
    return found


def with_margin(mask):
    return np.pad(np.asarray(mask, bool), 1)


def random_masks():
    rng = np.random.default_rng(7)
    for share in (0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 0.99):
        yield with_margin(rng.random((40, 60)) < share)  # many touch at corners
    for share in (0.35, 0.5, 0.65):
        smooth = ndimage.gaussian_filter(rng.random((90, 70)), 2.5)
        yield with_margin(smooth < np.quantile(smooth, share))
    yield with_margin(np.ones((1, 300)))
    yield with_margin(np.eye(30))
    yield with_margin(np.indices((20, 20)).sum(0) % 2)
    yield with_margin(np.ones((1, 1)))


def assert_outlines_follow(mask, found):
    """One polygon per part; few centres of pixels are on its wrong side, and never far.

    A ring is less than 1/9 pixel away from centres before vertices are left out, which moves it by
    up to one pixel.
    """
    assert shapely.is_valid(found).all()
    assert (shapely.get_type_id(found) == shapely.GeometryType.POLYGON).all()
    _, n_parts = ndimage.label(mask, ALL)
    assert len(found) == n_parts
    for part in found:
        assert part.exterior.is_ccw
        assert not any(hole.is_ccw for hole in part.interiors)
    union = shapely.MultiPolygon(list(found))
    assert union.is_valid  # parts do not overlap, one in a hole of another included
    empty, n_gaps = ndimage.label(~mask, SIDES)
    sizes = np.bincount(empty.ravel(), minlength=n_gaps + 1)
    # the largest hole that is none is two pixels; the first gap is what is around all parts
    holes = np.flatnonzero(sizes[2:] >= 3) + 2
    assert sum(len(part.interiors) for part in found) == holes.size
    rows, columns = np.nonzero(mask)
    centres = shapely.points(columns + 0.5, rows + 0.5)
    assert shapely.distance(union, centres).max() <= 1 + 1 / 9
    rows, columns = np.nonzero(np.isin(empty, [1, *holes]))
    beyond = shapely.points(columns + 0.5, rows + 0.5)
    inside = beyond[shapely.contains_properly(union, beyond)]
    assert shapely.distance(union.boundary, inside).max(initial=0) <= 1.0


@pytest.mark.parametrize("mask", list(random_masks()))
def test_outlines_follow_the_pixels(mask):
    assert_outlines_follow(mask, outlines(mask))


def test_outlines_of_several_rasters_are_those_of_each():
    masks = list(random_masks())
    expected = [polygon for mask in masks for polygon in outlines(mask)]
    assert outlines(*masks).tolist() == expected


def test_parts_in_holes_of_parts_are_parts():
    mask = np.zeros((60, 60), bool)
    for k in range(1, 30, 6):
        mask[k : 60 - k, k : 60 - k] = True
        mask[k + 3 : 57 - k, k + 3 : 57 - k] = False
    found = outlines(mask)
    assert_outlines_follow(mask, found)
    assert [len(part.interiors) for part in found] == [1] * 5
    assert max(shapely.get_num_coordinates(part) for part in found) <= 18  # 8 corners, cut, closed


def test_a_straight_border_has_no_steps():
    """Rectangles at all angles, filled where a pixel's centre is inside."""
    places = np.indices((220, 220))[::-1] - 110.0
    for degrees in np.arange(0, 90, 3.7):
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        u, v = c * places[0] + s * places[1], c * places[1] - s * places[0]
        mask = (np.abs(u) < 90) & (np.abs(v) < 40) & ~((np.abs(u - 30) < 12) & (np.abs(v) < 10))
        (found,) = outlines(mask)
        # of eight corners some are cut by pixels; a ring has its first one twice
        assert shapely.get_num_coordinates(found) <= 16


def wall(n, seed=0):
    """A wall of 8 x 3 m with a door and two windows, and its true outline in its plane."""
    true = shapely.box(0, 0, 8, 3)
    for opening in ((1, 0, 2, 2.1), (3, 0.9, 4.4, 2.2), (5.5, 0.9, 7, 2.2)):
        true = true.difference(shapely.box(*opening))
    rng = np.random.default_rng(seed)
    u, v = rng.random((2, 2 * n)) * [[8], [3]]
    on_it = shapely.contains_xy(true, u, v)
    u, v = u[on_it][:n], v[on_it][:n]
    return rooms.Scene(
        u, rng.normal(0, 0.004, u.size), v, np.zeros(u.size, np.int32), np.zeros(u.size, np.int32),
        np.array([[0.0, -1.0, 0.0, 0.0]]),
    ), true  # fmt: skip


def detect(scene, **options):
    columns = (np.ascontiguousarray(values) for values in (scene.x, scene.y, scene.z))
    return catalogue()["detect_planes"].kernel("cpu")(*columns, None, Options(**options))


@pytest.mark.parametrize("n", [20_000, 100_000])
@pytest.mark.parametrize("move", ["as it is", "turned", "UTM"])
def test_the_outline_of_a_wall_is_the_true_one(n, move):
    scene, true = wall(n)
    turn = np.array(rooms.turn(5)) if move == "turned" else np.eye(3)
    shift = np.array((500_000.0, 5_000_000.0, 300.0)) if move == "UTM" else np.zeros(3)
    found = detect(scene.moved(turn=turn, shift=shift))
    assert found["plane_id"].size == 1
    (outline,) = shapely.from_wkb(found["boundary"])
    (normal,) = np.column_stack([found[name] for name in ("nx", "ny", "nz")])
    corners = shapely.get_coordinates(outline, include_z=True)
    assert np.abs(corners @ normal - found["d"]).max() <= 2e-15 * np.abs(corners).max()
    back = (corners - shift) @ turn  # the wall's own x and z, at true size: the tilt is tiny
    flat = shapely.set_coordinates(shapely.force_2d(outline), back[:, [0, 2]])
    pixel = 3 * np.sqrt(true.area / n)
    assert flat.is_valid
    assert flat.exterior.is_ccw == (normal @ turn @ [0, -1, 0] > 0)  # about the normal
    assert len(flat.interiors) == 2
    assert shapely.get_num_coordinates(flat) <= 40
    assert flat.hausdorff_distance(true) <= 2 * pixel
    assert flat.symmetric_difference(true).area <= 0.4 * pixel * true.length
    assert found["area"] == pytest.approx(flat.area, rel=1e-6)
    assert found["area"] == pytest.approx(true.area, rel=0.03)


def test_a_convex_outline_has_the_same_area():
    scene, _ = wall(20_000)
    concave, convex = (detect(scene, outline=each) for each in ("concave", "convex"))
    for name, values in concave.items():
        if name != "boundary":
            np.testing.assert_array_equal(convex[name], values, err_msg=name)
    (polygon,) = shapely.from_wkb(convex["boundary"])
    corners = shapely.get_coordinates(polygon, include_z=True)[:, [0, 2]]
    assert shapely.Polygon(corners).area == pytest.approx(24, rel=0.01)


def test_a_plane_of_several_parts_is_a_multipolygon():
    scene = rooms.tables(60_000)
    for split, kinds in ((False, ["MultiPolygon"]), (True, ["Polygon", "Polygon"])):
        found = detect(scene, split=split)
        tops = (found["cz"] > 0.7) & (found["cz"] < 0.8)
        polygons = shapely.from_wkb(found["boundary"][tops])
        assert [each.geom_type for each in polygons] == kinds
        assert shapely.get_num_geometries(polygons).sum() == 2
        assert shapely.area(polygons).sum() == pytest.approx(6, rel=0.05)


SCANS = (
    "3dtk_scan000", "3dtk_scan001", "caixa", "caixa3", "caixa5", "indoor", "pcl_capture0001",
    "pcl_office1", "pcl_region_growing_tutorial", "pcl_room_scan1",
    "pcl_table_scene_mug_stereo_textured", "redkitchen_000",
)  # fmt: skip


def flattened(found, k):
    """The boundary of a plane in two dimensions, anticlockwise about its normal."""
    normal = np.array([found[name][k] for name in ("nx", "ny", "nz")])
    along = np.linalg.svd(normal[None])[2][1]
    axes = np.column_stack([along, np.cross(normal, along)])
    outline = shapely.from_wkb(found["boundary"][k])
    corners = shapely.get_coordinates(outline, include_z=True) @ axes
    return shapely.set_coordinates(shapely.force_2d(outline), corners)


@pytest.mark.slow
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", SCANS)
def test_outlines_of_real_scans_are_valid(name, split):
    scan = laspy.read(real_file(f"indoor/{name}.laz"))
    columns = (np.ascontiguousarray(values, float) for values in (scan.x, scan.y, scan.z))
    found = catalogue()["detect_planes"].kernel("cpu")(*columns, None, Options(split=split))
    flat = [flattened(found, k) for k in range(found["plane_id"].size)]
    assert shapely.is_valid(flat).all()
    np.testing.assert_allclose(shapely.area(flat), found["area"], rtol=1e-9)
    if split:
        assert {each.geom_type for each in flat} == {"Polygon"}
