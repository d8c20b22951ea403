"""The distance of two triangles against exact fractions, with the points it is measured at."""

import math
import random

import pytest

from spatialq.geometry.triangles import squared_distance, squared_distance_point_triangle

from ..distance.oracle import square_to, triangle_distance

ROUNDING = 1e-14  # of what is measured and of how far the corners are apart


def measure(a, b):
    square, *points = squared_distance(*(x for corner in (*a, *b) for x in corner))
    return math.sqrt(square), points[:3], points[3:]


def size(a, b):
    return max(math.dist(p, q) for p in (*a, *b) for q in (*a, *b))


def check(a, b):
    distance, on_a, on_b = measure(a, b)
    exact = triangle_distance(tuple(a), tuple(b))
    slack = ROUNDING * size(a, b)
    far = 2 * max(math.ulp(x) for corner in (*a, *b) for x in map(abs, corner))
    assert distance == pytest.approx(exact, rel=1e-14, abs=slack)
    assert math.dist(on_a, on_b) == pytest.approx(distance, rel=1e-14, abs=slack + 2 * far)
    assert triangle_distance((tuple(on_a),), tuple(a)) <= slack + far
    assert triangle_distance((tuple(on_b),), tuple(b)) <= slack + far
    return distance


def triangles(draw, make, offset=0.0):
    return [tuple(make(draw) + offset for _ in range(3)) for _ in range(3)]


MAKERS = {
    "anywhere": lambda draw: draw.uniform(-1, 1),
    "on a lattice": lambda draw: draw.randrange(3),
    "on a lattice that floats cannot hit": lambda draw: draw.randrange(4) * 0.1,
    "slivers": lambda draw: draw.choice([draw.uniform(0, 10), draw.uniform(0, 1e-9)]),
    "needles": lambda draw: draw.choice([0.0, 1e-300, 1e-12, 1e-6, 1.0, 100.0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", MAKERS)
def test_random_triangles(name, seed):
    draw = random.Random(f"{name} {seed}")
    offset = draw.choice([0.0, 0.0, 0.5, 2.0, 5e5])
    for _ in range(4):
        a, b = triangles(draw, MAKERS[name]), triangles(draw, MAKERS[name], offset)
        if offset == 5e5:
            a = [tuple(x + offset for x in corner) for corner in a]
        check(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_triangles_in_one_slanted_plane(seed):
    draw = random.Random(seed)
    u, v = ([draw.uniform(-1, 1) for _ in range(3)] for _ in range(2))

    def corner():
        s, t = draw.randrange(4), draw.randrange(4)
        return tuple(s * x + t * y for x, y in zip(u, v, strict=True))

    check([corner() for _ in range(3)], [corner() for _ in range(3)])


@pytest.mark.slow
@pytest.mark.parametrize("angle", [0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-7, 1e-4])
@pytest.mark.parametrize("gap", [0.0, 1e-9, 0.001])
def test_edges_that_are_nearly_parallel(angle, gap):
    a = [(-5.0, 0.0, 0.0), (5.0, 0.0, 0.0), (0.0, 0.0, -1.0)]
    b = [(-4.0, -4 * angle + 1e-10, gap), (6.0, 6 * angle, gap), (0.0, 0.0, gap + 1.0)]
    check(a, b)


def test_triangles_that_cross_have_a_common_point():
    draw = random.Random(1)
    crossing = 0
    for _ in range(2000):
        a, b = (triangles(draw, MAKERS["anywhere"]) for _ in range(2))
        distance, on_a, on_b = measure(a, b)
        if distance < 1e-9:
            crossing += 1
            assert distance == 0.0
            assert on_a == on_b
    assert crossing > 300


def test_crossing_beams_are_as_near_as_their_edges():
    a = [(0.0, 0.0, 0.0), (10.0, 0.0, 0.0), (5.0, 0.0, -1.0)]
    b = [(5.0, -5.0, 0.1), (5.0, 5.0, 0.1), (5.0, 0.0, 1.0)]
    assert measure(a, b) == (0.1, [5.0, 0.0, 0.0], [5.0, 0.0, 0.1])


def test_a_corner_above_a_face():
    a = [(0.0, 0.0, 0.0), (10.0, 0.0, 0.0), (0.0, 10.0, 0.0)]
    b = [(2.0, 2.0, 0.5), (2.0, 3.0, 5.0), (3.0, 2.0, 5.0)]
    assert measure(a, b) == (0.5, [2.0, 2.0, 0.0], [2.0, 2.0, 0.5])
    assert measure(b, a) == (0.5, [2.0, 2.0, 0.5], [2.0, 2.0, 0.0])


@pytest.mark.parametrize("seed", range(20))
def test_a_point_and_a_triangle(seed):
    draw = random.Random(seed)
    make = MAKERS[draw.choice(list(MAKERS))]
    point, *corners = (tuple(make(draw) for _ in range(3)) for _ in range(4))
    square, *nearest = squared_distance_point_triangle(*point, *(x for c in corners for x in c))
    slack = ROUNDING * size([point], corners)
    exact = triangle_distance((point,), tuple(corners))
    assert math.sqrt(square) == pytest.approx(exact, rel=1e-14, abs=slack)
    assert math.dist(point, nearest) == pytest.approx(exact, rel=1e-14, abs=2 * slack)


def test_the_oracle_measures_to_corner_edge_face_and_inside():
    assert square_to([(3, 4, 0)]) == 25
    assert square_to([(1, -1, 1), (1, 1, 1)]) == 2
    assert square_to([(-1, -1, 2), (3, -1, 2), (-1, 3, 2)]) == 4
    assert square_to([(-1, -1, -1), (4, -1, -1), (-1, 4, -1), (-1, -1, 4)]) == 0
    assert square_to([(1, 1, 1), (2, 1, 1)]) is None
