"""`detect_planes` on the GPU gives the bits of the CPU; without one its source runs on the host."""

from types import SimpleNamespace

import numpy as np
import pytest
from spatialq.udfs.detect_planes.cells import MOMENTS
from spatialq.udfs.detect_planes.cpu import CpuCloud
from spatialq.udfs.detect_planes.gpu import GpuCloud
from spatialq.udfs.detect_planes.octree import Cube
from spatialq.udfs.detect_planes.surfaces import Rasters, lay_surfaces

from spatialq.runtime import cuda
from spatialq.runtime.threads import workers

from ..kernels import assert_same, run_both
from .cases import rooms

N = 20_000


def columns_of(order):
    """A room's points at random, or in vertical lines as a scanner in the centre sees them."""
    scene = rooms.room(N)
    x, y, z = scene.x - 5, scene.y - 4, scene.z - 1.5
    lines = np.lexsort((np.arctan2(z, np.hypot(x, y)), np.floor(np.arctan2(y, x) / 0.02)))
    chosen = lines if order == "scanned" else slice(None)
    columns = {"x": scene.x[chosen], "y": scene.y[chosen], "z": scene.z[chosen]}
    return {**columns, "point_id": np.arange(N)}


@pytest.mark.slow
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("order", ["random", "scanned"])
@pytest.mark.parametrize(
    ("function", "options"),
    [
        ("detect_planes", {"split": True}),
        ("detect_planes", {"kernel": "paper"}),
        ("plane_points", {}),
    ],
)
def test_a_room_is_as_on_the_cpu(function, options, order):
    found, expected = run_both(function, columns_of(order), **options)
    assert_same(found, expected)
    assert expected["plane_id"].max() >= 7


def scattered(share):
    """Three rasters, their outermost pixels without points: some surfaces hang by a corner."""
    shapes = np.array([[40, 25], [3, 3], [17, 70]])
    starts = np.concatenate([[0], np.cumsum(shapes.prod(1))])
    rng, rasters = np.random.default_rng(3), []
    for rows, columns in shapes:
        covered = np.zeros((rows, columns), np.uint8)
        covered[1:-1, 1:-1] = rng.random((rows - 2, columns - 2)) < share
        rasters.append(covered.ravel())
    columns = np.column_stack([starts[:-1], shapes[:, 1], shapes.max(1)])
    return Rasters(np.empty((3, 9)), columns, shapes), np.concatenate(rasters)


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.45, 0.8, 1.0])
def test_surfaces_are_as_on_the_cpu(device, share, split, edges):
    rasters, covered = scattered(share)
    points, cube = [np.zeros(1)] * 3, Cube((0.0, 0.0, 0.0), 1.0)
    there = [device.upload_small(values) for values in points]
    gpu = GpuCloud(cuda.device(), there, cube)
    counts, min_points = np.array([500, 10, 900]), np.array([20.0, 10.0, 9.0])
    given = {"split": split, "edges": edges}
    found = lay_surfaces(gpu, rasters, device.upload_small(covered), counts, min_points, **given)
    with workers(1) as pool:
        cpu = CpuCloud(pool, points, cube)
        expected = lay_surfaces(cpu, rasters, covered, counts, min_points, **given)
    np.testing.assert_array_equal(found.plane, expected.plane)
    np.testing.assert_array_equal(found.parts, expected.parts)
    np.testing.assert_array_equal(device.download(found.labels), expected.labels)
    assert expected.plane.size == 0 if share == 0 else expected.plane.size > 0


@pytest.mark.parametrize("n_first", [1, 24])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_summaries_are_as_on_the_cpu(device, n_first, share):
    levels = range(3, 6)
    size = n_first * (1 + 8 + 64)
    rng = np.random.default_rng(5)
    moments = np.zeros((size, MOMENTS))
    moments[:, 0] = rng.choice([0, 0, 1, 5, 6, 7, 1000, 70_000], size)
    moments[[0, n_first, 9 * n_first], 0] = 2  # each level has points
    values = np.sort(rng.choice([0.0, 1e-14, 3e-9, 2e-8, 1e-3], (size, 3)), axis=1)
    planar = np.where(rng.random(size) < share, rng.integers(1, 10, size), 0).astype(np.uint8)
    arrays = {"moments": moments, "values": values, "planar": planar}
    grid = SimpleNamespace(levels=levels, n_first=n_first, size=size, **arrays)
    there = {name: device.upload_small(each) for name, each in arrays.items()}
    cube, points = Cube((0.0, 0.0, 0.0), 1.0), [np.zeros(1)] * 3
    gpu = GpuCloud(cuda.device(), [device.upload_small(each) for each in points], cube)
    with workers(1) as pool:
        expected = CpuCloud(pool, points, cube).summarize(grid)
    assert gpu.summarize(SimpleNamespace(**vars(grid) | there)) == expected
    assert share == 0 or sum(each.planar_points for each in expected) > 0
