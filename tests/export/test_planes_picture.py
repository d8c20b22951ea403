"""The picture of the planes of a cloud."""

import struct

import numpy as np
import pytest
from PIL import Image, ImageDraw

import spatialq
from spatialq.export.planes_picture import OTHER, PAPER, write_planes_picture

from ..plane_points.cases import CEILING, FLOOR, ROOF, ROOM, WALLS, surfaces

pytestmark = pytest.mark.slow  # as a whole

WEST, EAST = WALLS[2:]


def polygon(*rings):
    """WKB of a POLYGON Z."""
    head = struct.pack("<BII", 1, 1003, len(rings))
    return head + b"".join(struct.pack("<I", len(ring)) + ring.tobytes() for ring in rings)


def plane(plane_id, corner, a, b):
    """What `detect_planes` says about a parallelogram."""
    normal = np.cross(a, b) / np.linalg.norm(np.cross(a, b))
    corners = np.add(corner, [(0, 0, 0), a, np.add(a, b), b, (0, 0, 0)]).astype("<f8")
    flat, steep = abs(normal[2]) > 0.99, abs(normal[2]) < 0.01
    return {
        "plane_id": plane_id,
        **dict(zip(("nx", "ny", "nz"), normal.tolist(), strict=True)),
        "orientation": "horizontal" if flat else "vertical" if steep else "oblique",
        "area": float(np.linalg.norm(np.cross(a, b))),
        "point_count": 1500,
        "boundary": polygon(corners),
    }


def draw(path, *patches, clutter=0, up="z", boundaries=None, unit=None):
    points = np.array(surfaces(1, *patches, clutter=clutter))[:, 1:]
    owner = np.repeat([*range(1, len(patches) + 1), 0], [*[1500] * len(patches), clutter])
    planes = [plane(k + 1, *patch) for k, patch in enumerate(patches)]
    for k, boundary in (boundaries or {}).items():
        planes[k]["boundary"] = boundary
    if up == "y":  # the same scene, its coordinates in another order
        points = points[:, [1, 2, 0]]
        for each in planes:
            each["nx"], each["ny"], each["nz"] = each["ny"], each["nz"], each["nx"]
            ring = np.frombuffer(each["boundary"], offset=13).reshape(-1, 3)[:, [1, 2, 0]]
            each["boundary"] = polygon(ring)
    write_planes_picture(path, list(points.T), owner, planes, "Planes", up, unit)
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def swatches(pixels, *patches):
    """Colours in the legend, one per patch, and whether the plane was cut away."""
    areas = [plane(0, *patch)["area"] for patch in patches]
    lines = np.argsort(np.argsort(np.negative(areas), kind="stable"))
    colours = [tuple(pixels[121 + 22 * k, 943].tolist()) for k in lines]
    return [(colour, colour == PAPER) for colour in colours]


def share(pixels, colour):
    view = pixels[80:, :900]
    return (np.abs(view.astype(int) - colour).max(axis=-1) <= 3).mean()


def test_a_ceiling_and_near_walls_are_cut_away(tmp_path):
    room = FLOOR, CEILING, *WALLS
    found = swatches(draw(tmp_path / "room.png", *room), *room)
    assert [cut for _, cut in found[:2]] == [False, True]
    # of two walls that face each other one is near and one is far
    assert sorted(cut for _, cut in found[2:4]) == [False, True]
    assert sorted(cut for _, cut in found[4:6]) == [False, True]


def test_all_rings_of_what_is_cut_away_are_drawn(tmp_path):
    outer = np.array([(0, 0, 3), (6, 0, 3), (6, 5, 3), (0, 5, 3), (0, 0, 3)], "<f8")
    middle = np.array([3, 2.5, 3])
    hole, island = (middle + share * (outer - middle) for share in (0.6, 0.3))
    boundaries = (
        polygon(outer), polygon(outer, hole),
        struct.pack("<BII", 1, 1006, 2) + polygon(outer, hole) + polygon(island),
    )  # fmt: skip
    room = FLOOR, CEILING, *WALLS
    pictures = [draw(tmp_path / "a.png", *room, boundaries={1: each}) for each in boundaries]
    drawn = [(pictures[0] != each).any(axis=2).sum() for each in pictures]
    assert drawn[0] < drawn[1] < drawn[2]


def test_a_roof_stays_where_nothing_is_below(tmp_path):
    pixels = draw(tmp_path / "roof.png", *ROOF, FLOOR)
    assert [cut for _, cut in swatches(pixels, *ROOF)] == [False, False]


def test_planes_have_the_colours_of_the_legend(tmp_path):
    pixels = draw(tmp_path / "a.png", FLOOR, WEST, clutter=200)
    (floor, _), (wall, _) = swatches(pixels, FLOOR, WEST)
    assert floor != wall
    assert share(pixels, floor) > 0.05
    assert share(pixels, OTHER) > 0.0003


def test_the_axis_that_points_up_turns_the_view(tmp_path):
    upright = draw(tmp_path / "a.png", *ROOM)
    lying = draw(tmp_path / "b.png", *ROOM, up="y")
    np.testing.assert_array_equal(upright, lying)


class Said:
    """What is written into pictures, in its order, and where."""

    def __init__(self, monkeypatch):
        self.texts = []
        write = ImageDraw.ImageDraw.text

        def text(draw, at, words, *arguments, **options):
            self.texts.append((words, at))
            return write(draw, at, words, *arguments, **options)

        monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)

    def __contains__(self, words):
        return words in dict(self.texts)


def test_planes_are_listed_by_area_with_their_unit(tmp_path, monkeypatch):
    said = Said(monkeypatch)
    draw(tmp_path / "a.png", WEST, FLOOR, CEILING, unit="ftUS")
    assert "Planes, by area" in said
    legend = [words for words, _ in said.texts if words.endswith(" sq ftUS")]
    areas = [float(words.split()[2]) for words in legend]
    assert areas == sorted(areas, reverse=True)
    assert [words.split()[0] for words in legend] == ["2", "3", "1"]
    assert legend[2].split()[1] == "vertical"


def test_without_a_unit_none_is_claimed(tmp_path, monkeypatch):
    said = Said(monkeypatch)
    draw(tmp_path / "a.png", WEST, FLOOR)
    assert "areas in the unit of the file" in said
    assert not any(" sq " in words for words, _ in said.texts)


def test_the_numbers_of_planes_are_on_them(tmp_path, monkeypatch):
    colours = swatches(draw(tmp_path / "without.png", WEST, FLOOR, EAST), WEST, FLOOR, EAST)
    said = Said(monkeypatch)
    numbered = np.zeros((3, 2), int)
    draw(tmp_path / "a.png", WEST, FLOOR, EAST)
    for words, at in said.texts:
        if words in ("1", "2", "3"):
            numbered[int(words) - 1] = at
    monkeypatch.setattr("spatialq.export.planes_picture._number", lambda *_: None)
    pixels = draw(tmp_path / "plain.png", WEST, FLOOR, EAST)
    for (x, y), (colour, is_cut) in zip(numbered, colours, strict=True):
        if is_cut:
            assert (x, y) == (0, 0)  # an outline has no midst
        else:
            around = pixels[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3).astype(int)
            assert (np.abs(around - colour).max(axis=1) <= 3).any()
    assert (numbered > 0).any(axis=1).sum() >= 2


def test_numbers_do_not_cover_each_other(tmp_path, monkeypatch):
    said = Said(monkeypatch)
    strips = [((0, k / 8, 0), (6, 0, 0), (0, 1 / 8, 0)) for k in range(40)]
    draw(tmp_path / "a.png", *strips)
    at = np.array([at for words, at in said.texts if words.isdecimal()])
    assert 5 < len(at) < 40
    apart = np.abs(at[:, None] - at).astype(float) + np.where(np.eye(len(at)), 99, 0)[..., None]
    assert ((apart[..., 0] > 6) | (apart[..., 1] > 8)).all()


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_a_cloud_without_planes_gives_a_picture(tmp_path, n):
    path = tmp_path / "none.png"
    line = [5e6 + np.arange(float(n))] * 3
    write_planes_picture(path, line, np.zeros(n, np.int64), [], "Nothing")
    with Image.open(path) as picture:
        assert picture.width == 1200


def test_it_cannot_be_written(tmp_path):
    with pytest.raises(spatialq.FileError, match=r"output: '.*': there is no folder"):
        write_planes_picture(tmp_path / "no" / "p.png", [np.zeros(0)] * 3, np.zeros(0, int), [], "")
