"""The kernel against the paper's plain steps and the truth of rooms; what must not matter."""

import numpy as np
import pytest
from spatialq.udfs import detect_planes
from spatialq.udfs.detect_planes import accumulator, cpu, cpu_cells, nodes, octree, votes

import spatialq
from spatialq.errors import StrayPointsWarning
from spatialq.functions.catalogue import catalogue
from spatialq.runtime.threads import workers

from ..conftest import real_file
from ..examples import thinned
from . import oracle
from .cases import CASES, rooms

FLOATS = ("nx", "ny", "nz", "d", "cx", "cy", "cz", "rmse", "area", "votes")


def run(x, y, z, function="detect_planes", **options):
    kernel = catalogue()[function].kernel("cpu")
    columns = (np.ascontiguousarray(values, np.float64) for values in (x, y, z))
    return kernel(*columns, np.arange(len(x)), detect_planes.Options(**options))


def of(scene, **options):
    return run(scene.x, scene.y, scene.z, **options)


def equations(found):
    return np.column_stack([found[name] for name in ("nx", "ny", "nz", "d")])


def points_of(scene):
    return np.column_stack([scene.x, scene.y, scene.z])


def matches(scene, found):
    """For each true plane the nearest found one within 3 degrees and 5 cm; and errors of these.

    Degrees, and metres at the middle of the true points.
    """
    points, planes = points_of(scene), equations(found)
    result = []
    for k, true in enumerate(scene.planes):
        middle = points[scene.plane == k].mean(axis=0)
        angles = np.degrees(np.arccos(np.minimum(1, np.abs(planes[:, :3] @ true[:3]))))
        offsets = np.abs(planes[:, :3] @ middle - planes[:, 3]) / scene.unit
        near = np.flatnonzero((angles < 3) & (offsets < 0.05))
        if near.size:
            best = near[np.argmin(offsets[near])]
            result.append((k, int(best), angles[best], offsets[best]))
    return result


def assert_all_found(scene, *, spurious=1, **options):
    found = of(scene, **options)
    matched = matches(scene, found)
    assert len({best for _, best, _, _ in matched}) == len(scene.planes)
    assert found["plane_id"].size <= len(scene.planes) + spurious
    return found, matched


# The truth.

MOVES = {
    "as it is": {},
    "turned": {"turn": rooms.turn(1)},
    "turned again": {"turn": rooms.turn(2)},
    "upside down": {"turn": [[1, 0, 0], [0, -1, 0], [0, 0, -1]]},
    "on its side": {"turn": [[0, 0, 1], [1, 0, 0], [0, 1, 0]]},
    "UTM": {"shift": (500_000.0, 5_000_000.0, 300.0)},
    "turned, UTM": {"turn": rooms.turn(3), "shift": (500_000.0, 5_000_000.0, 300.0)},
    "feet": {"scale": 1 / 0.3048},
    "mm": {"scale": 1000.0},
    "km": {"scale": 0.001},
}


@pytest.mark.slow
@pytest.mark.parametrize("move", MOVES)
def test_a_room_is_found_wherever_it_is(move):
    _, matched = assert_all_found(rooms.room(100_000).moved(**MOVES[move]))
    assert max(angle for _, _, angle, _ in matched) < 0.5
    assert max(offset for _, _, _, offset in matched) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("n", [100_000, 300_000, 1_000_000])
@pytest.mark.parametrize("seed", [2, 3])
def test_a_room_of_any_number_of_points_is_found(n, seed):
    assert_all_found(rooms.room(n, seed=seed).moved(turn=rooms.turn(seed)))


@pytest.mark.parametrize("n", [10_000, 20_000, 50_000])
@pytest.mark.parametrize("seed", [2, 3])
def test_planes_of_1000_points_are_found_in_any_room(n, seed):
    scene = rooms.room(n, seed=seed).moved(turn=rooms.turn(seed))
    large = set(np.flatnonzero(np.bincount(scene.plane[scene.plane >= 0]) >= 1000).tolist())
    found = of(scene)
    matched = matches(scene, found)
    assert large <= {k for k, *_ in matched}
    assert found["plane_id"].size <= len(matched) + 1


def test_the_room_of_the_reference_is_found_and_its_points():
    points = np.fromfile(real_file("golden/planes/room_100000.f32"), np.float32).reshape(-1, 3)
    label = np.fromfile(real_file("golden/planes/room_100000.lab"), np.int32)
    truth = np.load(real_file("golden/planes/room_truth.npy"))
    columns = points.astype(np.float64).T
    scene = rooms.Scene(*columns, label, label, truth)
    found, matched = assert_all_found(scene)
    own = np.full(len(truth), -1)
    for k, best, _, _ in matched:
        own[k] = found["plane_id"][best]
    plane_id = run(*columns, function="plane_points")["plane_id"]
    right = (label >= 0) & (plane_id == own[label])
    assert right.sum() > 0.98 * (label >= 0).sum()  # the C++ reference: 0.950
    assert right.sum() > 0.953 * (plane_id > 0).sum()  # 0.941


@pytest.mark.slow
@pytest.mark.parametrize("move", ["as it is", "turned", "UTM"])
@pytest.mark.parametrize(
    "make", [rooms.box, rooms.flat, rooms.crossing, rooms.partitions, rooms.thin_wall, rooms.tables]
)
def test_other_scenes_are_found(make, move):
    assert_all_found(make(100_000).moved(**MOVES[move]), spurious=0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100_000, 400_000])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_building_of_thin_walls_is_found(n, seed):
    assert_all_found(rooms.building(n, seed=seed), spurious=0)


@pytest.mark.parametrize("seed", range(4))
def test_planes_through_the_centroid_are_two(seed):
    assert_all_found(rooms.crossing(40_000, seed=seed).moved(turn=rooms.turn(seed)), spurious=0)


def sheet(n, height, *, noise, seed=1):
    """Points above the unit square at a height that depends on x and y."""
    rng = np.random.default_rng(seed)
    x, y = rng.random((2, n))
    return x, y, height(x, y) + rng.normal(0, noise, n)


@pytest.mark.parametrize("move", ["turned", "mm"])
def test_a_sheet_with_waves_of_three_times_its_noise_is_one_plane(move):
    """Such as a side of a carton before a depth camera."""
    turn, scale = MOVES[move].get("turn", np.eye(3)), MOVES[move].get("scale", 1.0)
    points = sheet(40_000, lambda x, y: 0.01 * np.sin(7 * x) * np.cos(6 * y), noise=0.0033)
    x, y, z = scale * (turn @ np.array(points))
    own = run(x, y, z, function="plane_points")["plane_id"]
    assert (own == 1).mean() > 0.9


def test_planes_of_terrain_do_not_grow_over_hills():
    points = sheet(200_000, lambda x, y: 0.1 * np.sin(7 * x) * np.cos(6 * y), noise=0.0003)
    found = run(*points)
    assert found["plane_id"].size > 10
    assert found["rmse"].max() < 10 * 0.0003


def test_two_tables_are_one_plane_or_split_into_two():
    scene = rooms.tables(60_000)
    tables = [
        (of(scene, split=split)["cz"] > 0.7) & (of(scene, split=split)["cz"] < 0.8)
        for split in (False, True)
    ]
    assert [int(each.sum()) for each in tables] == [1, 2]


@pytest.mark.parametrize("case", ["clutter", "a ball", "an oblique line", "all the same", "empty"])
def test_nothing_is_found_where_there_is_no_plane(case):
    points, options = CASES[case]
    columns = np.array([rest for _, *rest in points]).reshape(-1, 3).T
    assert run(*columns, **options)["plane_id"].size == 0


@pytest.mark.parametrize("options", [{}, {"s_ms": 4}, {"s_ps": 0.01}, {"min_points": 12}], ids=str)
def test_a_cloud_of_a_few_points_is_left_out_only_if_a_search_finds_nothing(options):
    """The nodes are of a whole search, whose planes are those of a call that may leave it out."""
    names, counts = ["detect_planes", "plane_points"], []
    for n in (1, 4, 11, 12, 17, 18, 29, 30, 60, 1000):
        rng = np.random.default_rng(n)
        x, y = rng.random((2, n))
        points = x, y, 0.1 * x + 0.001 * rng.standard_normal(n)
        found = spatialq.run(names, *points, device="cpu", **options)
        searched = spatialq.run([*names, "plane_nodes"], *points, device="cpu", **options)
        for name in names:
            for column, values in found[name].items():
                assert values.dtype == searched[name][column].dtype
                np.testing.assert_array_equal(values, searched[name][column])
        counts.append(len(found["detect_planes"]["plane_id"]))
    assert counts[0] == 0 < counts[-1]


def test_a_plane_is_that_of_its_true_points():
    """Against the singular vectors of the labelled points."""
    scene = rooms.room(100_000).moved(turn=rooms.turn(9))
    found, matched = assert_all_found(scene)
    planes = equations(found)
    for k, best, _, _ in matched:
        own = points_of(scene)[scene.plane == k]
        middle = own.mean(axis=0)
        normal = np.linalg.svd(own - middle, full_matrices=False)[2][-1]
        assert abs(planes[best, :3] @ normal) > np.cos(np.radians(0.3))
        assert abs(planes[best, :3] @ middle - planes[best, 3]) < 0.004


# What a plane and a point of it are.


@pytest.mark.slow
@pytest.mark.parametrize("case", thinned(CASES))
def test_planes_and_their_points_agree(case):
    points, options = CASES[case]
    ids = np.array([p[0] for p in points], np.int64)
    x, y, z = np.array([p[1:] for p in points], np.float64).reshape(-1, 3).T.copy()
    found = catalogue()["detect_planes"].kernel("cpu")(
        x, y, z, ids, detect_planes.Options(**options)
    )
    own = catalogue()["plane_points"].kernel("cpu")(x, y, z, ids, detect_planes.Options(**options))
    n = found["plane_id"].size
    assert found["plane_id"].tolist() == list(range(1, n + 1))
    assert own["point_id"].tolist() == ids.tolist()
    assert own["plane_id"].min(initial=0) >= 0
    counts = np.bincount(own["plane_id"], minlength=n + 1)[1:]
    assert counts.tolist() == found["point_count"].tolist()
    has = own["plane_id"] > 0
    assert np.isnan(own["distance"][~has]).all()

    planes = equations(found)
    np.testing.assert_allclose(np.linalg.norm(planes[:, :3], axis=1), 1, rtol=1e-12)
    greatest = np.abs(planes[:, :3]).argmax(axis=1)
    assert (planes[np.arange(n), greatest] > 0).all()
    # sums are whole numbers: of 1/256 of a step for places, of 2^-15 of what is near for distances
    size = np.abs([x, y, z]).max(initial=0)
    step = max((np.ptp(v) for v in (x, y, z) if n), default=0) / 2**21
    near = np.abs(own["distance"][has]).max(initial=0)
    whole = step / 64 + near / 2**15 + 1e-15 * size
    each = planes[own["plane_id"][has] - 1]
    off = each[:, 0] * x[has] + each[:, 1] * y[has] + each[:, 2] * z[has] - each[:, 3]
    np.testing.assert_allclose(own["distance"][has], off, rtol=0, atol=whole)
    for k in range(n):
        of_it = own["plane_id"] == k + 1
        middle = [values[of_it].mean() for values in (x, y, z)]
        np.testing.assert_allclose(
            [found[name][k] for name in ("cx", "cy", "cz")], middle,
            rtol=0, atol=step / 256 + 1e-15 * size,
        )  # fmt: skip
        rmse = np.sqrt(np.mean(own["distance"][of_it] ** 2))
        np.testing.assert_allclose(found["rmse"][k], rmse, rtol=0, atol=whole)


def test_a_point_has_the_nearest_of_its_planes():
    scene = rooms.room(50_000)
    planes = equations(of(scene, max_distance=0.05))
    own = of(scene, function="plane_points", max_distance=0.05)
    off = np.abs(points_of(scene) @ planes[:, :3].T - planes[:, 3])
    has = own["plane_id"] > 0
    assert np.abs(own["distance"][has]).max() <= 0.05
    # of what has another plane nearer, that one has no support there: at most the rims
    nearer = off[has].min(axis=1) < np.abs(own["distance"][has]) - 1e-5
    assert nearer.mean() < 0.02


@pytest.mark.parametrize(
    ("tolerance", "expected"), [(5.0, "oblique"), (35.0, "horizontal"), (45.0, "horizontal")]
)
def test_orientations_have_their_tolerance(tolerance, expected):
    c, s = np.cos(np.radians(30)), np.sin(np.radians(30))
    scene = rooms.flat(5000).moved(turn=[[c, 0, s], [0, 1, 0], [-s, 0, c]])
    found = of(scene, orientation_tolerance=tolerance)
    assert [detect_planes.ORIENTATIONS[k] for k in found["orientation"]] == [expected]


def test_orientations_of_a_room():
    scene = rooms.room(100_000)
    found, matched = assert_all_found(scene)
    for k, best, _, _ in matched:
        upright = abs(scene.planes[k, 2])
        expected = "horizontal" if upright > 0.99 else "vertical" if upright < 0.01 else "oblique"
        assert detect_planes.ORIENTATIONS[found["orientation"][best]] == expected


def test_areas_are_those_of_the_rectangles():
    scene = rooms.room(200_000)
    found, matched = assert_all_found(scene)
    true = {2.0: 0, 3.0: 0}
    for k, best, _, _ in matched:
        own = points_of(scene)[scene.plane == k]
        u, v = np.linalg.svd(own - own.mean(axis=0), full_matrices=False)[2][:2]
        area = np.ptp(own @ u) * np.ptp(own @ v)
        if abs(scene.planes[k, :3]).max() > 0.999:  # along the axes
            area = np.prod(np.sort(np.ptp(own, axis=0))[1:])
        true[k] = area
        if area > 10:
            assert found["area"][best] == pytest.approx(area, rel=0.04)


def ring(boundary):
    """Vertices of a WKB POLYGON Z of one ring, little endian."""
    head = np.frombuffer(boundary[:13], np.dtype("<u1, <u4, <u4, <u4"))[0].tolist()
    assert head[:3] == (1, 1003, 1)
    vertices = np.frombuffer(boundary[13:], "<f8").reshape(-1, 3)
    assert len(vertices) == head[3] >= 4
    assert vertices[0].tolist() == vertices[-1].tolist()
    return vertices


@pytest.mark.parametrize("move", ["as it is", "turned", "UTM"])
def test_convex_boundaries_are_hulls_in_the_plane(move):
    scene = rooms.room(30_000).moved(**MOVES[move])
    found = of(scene, outline="convex")
    plane_id = of(scene, function="plane_points")["plane_id"]
    points = points_of(scene)
    size = np.abs(points).max()
    for k, (*normal, d) in enumerate(equations(found)):
        vertices = ring(found["boundary"][k])
        np.testing.assert_allclose(vertices @ normal, d, rtol=0, atol=2e-15 * size)
        own = points[plane_id == k + 1]
        edges = np.diff(vertices, axis=0)
        orientation = np.cross(edges, np.roll(edges, -1, axis=0)) @ normal
        assert (orientation > 0).all() or (orientation < 0).all()  # convex
        outward = np.cross(edges, normal) * np.sign(orientation[0])
        outward /= np.linalg.norm(outward, axis=1, keepdims=True)
        beyond = np.max((own - vertices[0]) @ outward.T, axis=0)
        beyond -= np.einsum("ij,ij->i", vertices[:-1] - vertices[0], outward)
        # its corners are the farthest points in 32 directions: 11.25 degrees between two
        most = np.linalg.norm(edges, axis=1) / 2 * np.tan(np.radians(11.25))
        extent = np.ptp(vertices, axis=0).max()
        assert (beyond <= most + 1e-5 * extent).all()
        apart = np.linalg.norm(own[:, None] - vertices[:-1], axis=2).min(axis=0)
        assert apart.max() <= np.abs((own - vertices[0]) @ normal).max() + 1e-5 * extent


# What must not matter.


def assert_alike(found, expected, *, scale=1.0, rtol=1e-9):
    assert found["plane_id"].size == expected["plane_id"].size
    assert found["point_count"].tolist() == expected["point_count"].tolist()
    assert found["orientation"].tolist() == expected["orientation"].tolist()
    size = np.abs([expected[name] for name in ("cx", "cy", "cz", "d")]).max(initial=1e-300)
    for name, factor, atol in (
        ("nx", 1, rtol), ("ny", 1, rtol), ("nz", 1, rtol), ("d", scale, rtol * scale * size),
        ("cx", scale, rtol * scale * size), ("cy", scale, rtol * scale * size),
        ("cz", scale, rtol * scale * size), ("rmse", scale, rtol * scale * size),
        ("area", scale**2, 1e-9 * scale**2), ("votes", 1, 1e-6),
    ):  # fmt: skip
        np.testing.assert_allclose(
            found[name], factor * expected[name], rtol=rtol, atol=atol, err_msg=name
        )


@pytest.mark.parametrize("distance", [10.0, 1e3, 1e7])
@pytest.mark.parametrize("scene", ["room", "building"])
def test_a_stray_point_does_not_matter(scene, distance):
    points = points_of(rooms.SCENES[scene](50_000))
    far = points.mean(axis=0) + distance * np.ptp(points, axis=0)
    functions = ["detect_planes", "plane_points"]
    found = spatialq.run(functions, *points.T)
    with pytest.warns(StrayPointsWarning):
        again = spatialq.run(functions, *np.vstack([far, points]).T)
    for name, values in found["detect_planes"].items():
        np.testing.assert_array_equal(again["detect_planes"][name], values, err_msg=name)
    own, again = found["plane_points"], again["plane_points"]
    assert again["plane_id"].tolist() == [0, *own["plane_id"].tolist()]
    np.testing.assert_array_equal(again["distance"][1:], own["distance"])
    assert np.isnan(again["distance"][0])


@pytest.mark.parametrize("case", ["a room", "a room, UTM", "roofs", "two tables, split"])
def test_the_order_of_the_points_does_not_matter(case):
    points, options = CASES[case]
    columns = np.array([rest for _, *rest in points]).T
    order = np.lexsort(columns)
    planes, again = run(*columns, **options), run(*columns[:, order], **options)
    for name, values in planes.items():
        np.testing.assert_array_equal(again[name], values, err_msg=name)
    points = run(*columns, function="plane_points", **options)
    again = run(*columns[:, order], function="plane_points", **options)
    for name in ("plane_id", "distance"):
        np.testing.assert_array_equal(again[name], points[name][order], err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_threads_do_not_matter(case, monkeypatch):
    points, options = CASES[case]
    columns = np.array([rest for _, *rest in points]).reshape(-1, 3).T
    monkeypatch.setattr(cpu, "POINTS_PER_THREAD", 97)  # so that small clouds are divided
    monkeypatch.setattr(cpu_cells, "CELLS_PER_THREAD", 13)
    results = []
    for threads in ("1", "5"):
        monkeypatch.setenv("SPATIALQ_THREADS", threads)
        functions = "detect_planes", "plane_points"
        results.append([run(*columns, function=each, **options) for each in functions])
    for one, many in zip(*results, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], many[name], err_msg=name)


@pytest.mark.parametrize("shift", [(5e6, 0, 0), (-4096.0, 5e6, 512.0)])
def test_a_shift_changes_nothing_but_places(shift):
    # on a lattice of 1/1024 m, where no coordinate is rounded by the shift
    scene = rooms.room(20_000)
    here = np.round(points_of(scene).T * 1024) / 1024
    there = here + np.array(shift)[:, None]
    found, expected = run(*there), run(*here)
    for name, by in zip(("cx", "cy", "cz"), shift, strict=True):
        np.testing.assert_allclose(found[name] - by, expected[name], rtol=0, atol=1e-7)
    np.testing.assert_allclose(
        equations(found)[:, :3], equations(expected)[:, :3], rtol=0, atol=1e-9
    )
    # an offset is measured from the origin: at 5e6 m a rotation of 1e-12 changes it by 5e-6
    centres = np.column_stack([expected[name] for name in ("cx", "cy", "cz")])
    off = (equations(found)[:, :3] * (centres + shift)).sum(axis=1) - found["d"]
    expected_off = (equations(expected)[:, :3] * centres).sum(axis=1) - expected["d"]
    np.testing.assert_allclose(off, expected_off, rtol=0, atol=5e-8)
    assert found["point_count"].tolist() == expected["point_count"].tolist()


@pytest.mark.parametrize("scale", [1 / 1024, 1024.0, 0.001, 1000.0])
@pytest.mark.parametrize("kernel", ["tangent"])
def test_the_unit_does_not_matter(scale, kernel):
    scene = rooms.room(20_000)
    expected = of(scene, kernel=kernel)
    assert_alike(of(scene.moved(scale=scale), kernel=kernel), expected, scale=scale)


# The steps, each against its plain form.


def around_the_centroid(points):
    """The root cube of the paper: the kernel's own is around the box of the points."""
    middle = points.mean(axis=0)
    half = np.abs(points - middle).max()
    return octree.Cube(tuple(middle - half), 2 * half)


def kernel_nodes(points, cube, **options):
    """Rows of level, middle, size, points, normal, eigenvalues: lengths in the cloud's unit."""
    with workers(2) as pool:
        cloud = cpu.CpuCloud(pool, list(np.ascontiguousarray(points.T)), cube)
        found = octree.planar_nodes(cloud, detect_planes.Options(**options), 0, len(points))
    found = found.join(found.parts < nodes.LAYERS)
    place = np.zeros((len(found), 3))
    for bit in range(13):
        for axis in range(3):
            place[:, axis] += (found.code >> (3 * bit + 2 - axis) & 1) << bit
    size = cube.side / 2.0**found.level
    middles = (place + 0.5) * size[:, None] - cube.half
    values = found.values * cube.half**2
    return np.column_stack([
        found.level, middles, size, found.count, found.vectors[:, 0], values
    ])  # fmt: skip


def oracle_nodes(points, cube, **options):
    return np.array([
        [node.level, *node.middle, node.size, node.n, *node.normal, *node.values]
        for node in oracle.octree(points, np.array(cube.low) + cube.half, cube.half, **options)
    ]).reshape(-1, 12)  # fmt: skip


def by_place(nodes):
    places = np.round(2 * nodes[:, 1:4] / nodes[:, 4:5])  # odd numbers
    return nodes[np.lexsort([*places.T, nodes[:, 0]])]


def assert_nodes_equal(found, expected, atol):
    """Up to the sign of normals; eigenvalues to a share of the greatest, atol."""
    found, expected = (by_place(rows) for rows in (found, expected))
    assert found.shape == expected.shape
    assert found[:, 0].tolist() == expected[:, 0].tolist()
    np.testing.assert_allclose(found[:, 1:5], expected[:, 1:5], atol=1e-6 * expected[0, 4])
    assert found[:, 5].tolist() == expected[:, 5].tolist()
    cosines = np.abs(np.einsum("ij,ij->i", found[:, 6:9], expected[:, 6:9]))
    assert cosines.min() > 1 - 1e-6
    share = expected[:, 11:].max()
    np.testing.assert_allclose(found[:, 9:] / share, expected[:, 9:] / share, rtol=0, atol=atol)


@pytest.fixture(scope="module")
def reference():
    """Points of the reference's room and its nodes for s_level 3, s_ps 0.002."""
    points = np.fromfile(real_file("golden/planes/room_100000.f32"), np.float32)
    return points.reshape(-1, 3).astype(np.float64), np.loadtxt(
        real_file("golden/planes/room_100000.nodes")
    )


def test_the_oracle_has_the_nodes_of_the_reference(reference):
    points, expected = reference
    assert len(expected) == 128
    assert_nodes_equal(
        oracle_nodes(points, around_the_centroid(points), s_level=3, s_ms=200), expected, 1e-8
    )


def test_the_octree_has_the_nodes_of_the_reference(reference):
    points, expected = reference
    cube = around_the_centroid(points)
    # the kernel's coordinates are whole steps, 2^-20 of half the cube
    assert_nodes_equal(kernel_nodes(points, cube, s_level=3, s_ps=0.002), expected, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("s_level", "s_ms"), [(0, 100), (2, 30), (3, 30), (4, 12), (6, 5)])
@pytest.mark.parametrize("scene", ["room", "roofs", "thin_wall"])
def test_the_octree_has_the_nodes_of_recursion(scene, s_level, s_ms):
    points = points_of(rooms.SCENES[scene](20_000))
    cube = around_the_centroid(points)
    # on the lattice of the kernel's steps, a quarter of a step off the cells' borders
    points = (np.floor((points - cube.low) * cube.scale) + 0.25) / cube.scale + cube.low
    found = kernel_nodes(points, cube, s_level=s_level, s_ms=s_ms)
    assert len(found) > 0
    # places of outliers are whole numbers, of 2^-16 of the node's side
    assert_nodes_equal(found, oracle_nodes(points, cube, s_level=s_level, s_ms=s_ms), 4e-6)


def test_the_octree_has_the_nodes_of_recursion_in_the_depth():
    """Of a scan that is a thousand times as dense near the scanner."""
    rng = np.random.default_rng(5)
    far, near = points_of(rooms.room(5000)), rng.random((20_000, 3)) * [0.1, 0.1, 0.0002]
    points = np.concatenate([far, np.add(near, [3.1, 2.2, 0.9])])
    cube = around_the_centroid(points)
    points = (np.floor((points - cube.low) * cube.scale) + 0.25) / cube.scale + cube.low
    found = kernel_nodes(points, cube, s_level=7, s_ms=20)
    assert found[:, 0].max() >= 8
    assert_nodes_equal(found, oracle_nodes(points, cube, s_level=7, s_ms=20), 4e-6)


@pytest.mark.parametrize("phi_num", [4, 9, 30, 61])
def test_the_ball_is_laid_out_as_in_the_paper(phi_num):
    ball = accumulator.ball(phi_num)
    rows, phi, theta = oracle.directions(phi_num)
    np.testing.assert_array_equal(np.diff(ball.rows), np.bincount(rows))
    np.testing.assert_allclose(ball.directions, oracle.unit(phi, theta), rtol=0, atol=1e-15)


def some_nodes(n, seed=1):
    """Planar nodes at all angles and distances, some of them at poles or through the origin."""
    rng = np.random.default_rng(seed)
    nodes = []
    for k in range(n):
        vectors = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        if k % 4 == 1:
            vectors = np.roll(np.eye(3), 1, axis=1)  # the normal is that of a pole
        mean = rng.uniform(-0.6, 0.6, 3)
        if k % 4 == 2:
            mean -= (mean @ vectors[:, 0]) * vectors[:, 0]
        wide = rng.uniform(0.001, 0.02)
        values = np.array([wide * rng.choice([0.0, 1e-4, 0.04]), wide, wide * rng.uniform(1, 6)])
        nodes.append(oracle.Node(3, mean, 0.2, 50, mean, vectors[:, 0], values, vectors))
    return nodes


@pytest.mark.parametrize(("phi_num", "rho_num"), [(30, 300), (12, 50), (47, 120)])
def test_votes_are_those_of_all_nodes_for_all_cells(phi_num, rho_num):
    ball, nodes = accumulator.ball(phi_num), some_nodes(40)
    weights = np.random.default_rng(2).uniform(0.01, 1, len(nodes))
    rho_step = 1.1 / rho_num
    rhos = (np.arange(rho_num) - accumulator.BEYOND) * rho_step
    found = np.zeros((len(ball.directions), rho_num), np.int64)
    votes.vote(
        *(np.array([getattr(node, name) for node in nodes]) for name in ("mean", "values")),
        np.array([node.vectors.T for node in nodes]), weights, ball.directions, ball.rows,
        ball.step, rho_step, rho_num, found, 0, len(nodes),
    )  # fmt: skip
    expected = sum(
        oracle.tangent_votes(node, phi_num, rhos, rho_step, weight)
        for node, weight in zip(nodes, weights, strict=True)
    )
    assert (expected > 0).any(axis=1).sum() > 40
    np.testing.assert_allclose(found / votes.ONE, expected, rtol=1e-8, atol=40 / votes.ONE)


def is_far_from_poles(node):
    """Whether a node votes beyond neither the poles nor the origin, by the paper's kernel."""
    if node.values[0] == 0 or abs(node.normal[2]) > 0.99:
        return False
    normal, rho = oracle.outward(node)
    phi = np.arccos(normal[2])
    return (
        rho > 0.1 and 2 * oracle.paper_covariance(node)[1, 1] ** 0.5 < min(phi, np.pi - phi) - 0.05
    )


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1.0, 5.3])
@pytest.mark.parametrize(("phi_num", "rho_num"), [(30, 300), (47, 120)])
def test_votes_of_the_papers_kernel_are_those_of_all_nodes_for_all_cells(phi_num, rho_num, unit):
    ball = accumulator.ball(phi_num)
    nodes = [node for node in some_nodes(100, seed=3) if is_far_from_poles(node)]
    assert len(nodes) > 10
    rho_step = 1.1 / rho_num
    rhos = unit * (np.arange(rho_num) - accumulator.BEYOND) * rho_step
    i, j = np.triu_indices(3)
    spreads = [(node.vectors @ np.diag(node.values) @ node.vectors.T)[i, j] for node in nodes]
    for node, spread in zip(nodes, spreads, strict=True):
        found = np.zeros((len(ball.directions), rho_num), np.int64)
        votes.vote_as_paper(
            node.mean[None], spread[None], node.vectors.T[None].copy(), np.array([0.3]), ball.phi,
            ball.theta, ball.rows, ball.step, rho_step, unit, rho_num, found, 0, 1,
        )  # fmt: skip
        there = node._replace(mean=unit * node.mean, values=unit**2 * node.values)
        expected = oracle.paper_votes(there, phi_num, rhos, 0.3)
        np.testing.assert_allclose(
            found / votes.PAPER_ONE, expected, rtol=1e-7, atol=1 / votes.PAPER_ONE
        )


@pytest.mark.parametrize("phi_num", [4, 8, 13])
@pytest.mark.parametrize("most", [3, 50, 10**9])
def test_peaks_are_those_of_marking(phi_num, most):
    ball, n_rho = accumulator.ball(phi_num), 25
    n = len(ball.directions)
    rng = np.random.default_rng(most)
    cells = rng.integers(0, most, (n, n_rho)) * (rng.random((n, n_rho)) < 0.3)
    close = ball.directions @ ball.directions.T >= np.cos((accumulator.RADIUS + 0.5) * ball.step)

    def near(cell):
        direction, r = divmod(cell, n_rho)
        rhos = np.arange(max(0, r - accumulator.RADIUS), min(n_rho - 1, r + accumulator.RADIUS) + 1)
        return (np.flatnonzero(close[direction])[:, None] * n_rho + rhos).ravel()

    is_peak = np.zeros((n, n_rho), bool)
    votes.peaks(cells, ball.near, ball.near_starts, accumulator.RADIUS, is_peak, 0, n)
    expected = [
        peak for peak in oracle.marked_peaks(cells.ravel(), near)
        if peak % n_rho >= accumulator.BEYOND
    ]  # fmt: skip
    assert len(expected) > 0
    assert np.flatnonzero(is_peak).tolist() == sorted(expected)
