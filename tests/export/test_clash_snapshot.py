"""Pictures of clashes are drawn again when what they show has changed, and only then."""

import io

import numpy as np
import pytest
from PIL import Image

from spatialq.data.meshes import Meshes
from spatialq.export import clash_snapshot
from spatialq.export.clash_snapshot import snapshot
from spatialq.export.clash_view import see

from .test_clash_view import CASES, box

FLOOR = Meshes.of([box((-9, -9, -2), (9, 9, -1.9)), box((-3, -3, -1), (4, 4, 2))])


@pytest.fixture
def drawn(monkeypatch):
    """How often something was drawn."""
    calls = []
    monkeypatch.setattr(clash_snapshot, "see", lambda *args: calls.append(args) or see(*args))
    return calls


def same(one, other):
    return (one.camera, one.others.tolist(), one.is_cut, one.veil, one.png) == (
        other.camera, other.others.tolist(), other.is_cut, other.veil, other.png,
    )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_was_drawn_is_taken_as_it_was(name, drawn):
    *pair, point, _ = CASES[name]
    arguments = np.array(point, float), Meshes.of(pair), FLOOR
    first, view = snapshot(*arguments), see(*arguments)
    assert same(snapshot(*arguments, first.png), first)
    assert len(drawn) == 1
    assert (first.camera, first.is_cut, first.veil) == (view.camera, view.is_cut, view.veil)
    with Image.open(io.BytesIO(first.png)) as picture:
        np.testing.assert_array_equal(np.asarray(picture), view.picture.pixels)


POINT = np.array((0.2, 0.5, 0.5))
PAIR = Meshes.of(CASES["through each other"][:2])
CHANGED = {
    "point": (np.nextafter(POINT, 1), PAIR, FLOOR),
    "order": (POINT, PAIR.take([1, 0]), FLOOR),
    "a vertex": (POINT, Meshes(np.add(PAIR.vertices, 1e-15), *PAIR.arrays[1:]), FLOOR),
    "a face": (POINT, Meshes(PAIR.vertices, np.roll(PAIR.faces, 1, 0), *PAIR.arrays[2:]), FLOOR),
    "one less around": (POINT, PAIR, FLOOR.take([0])),
    "another side": (POINT, PAIR.take([0]), PAIR.take([1]).followed_by(FLOOR)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_what_shows_something_else_is_drawn(name, drawn):
    before = snapshot(POINT, PAIR, FLOOR).png
    found = snapshot(*CHANGED[name], before)
    assert len(drawn) == 2
    assert same(found, snapshot(*CHANGED[name]))


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"drawn": 1}'])
def test_what_another_version_drew_is_drawn(drawn, monkeypatch, text):
    """Also where its text says something else."""
    with monkeypatch.context() as version:
        version.setattr(clash_snapshot, "_drawing", lambda: b"another")
        if text is not None:
            version.setattr(clash_snapshot.json, "dumps", lambda _: text)
        before = snapshot(POINT, PAIR, FLOOR).png
    assert same(snapshot(POINT, PAIR, FLOOR, before), snapshot(POINT, PAIR, FLOOR))
    assert len(drawn) == 3


def test_what_was_changed_since_is_drawn(drawn):
    """Whichever byte is another one, and whatever else is said to be a picture."""
    before = snapshot(POINT, PAIR, FLOOR)
    other = snapshot(*CHANGED["one less around"]).png
    places = np.random.default_rng(1).integers(0, len(before.png), 60)
    texts = [before.png[:place] + bytes([before.png[place] ^ 1]) + before.png[place + 1 :]
             for place in [*range(60), *places]]  # fmt: skip
    # the text of one picture in another one
    swapped = (
        other[:33]
        + before.png[33 : 33 + 12 + before.png[36] + 256 * before.png[35]]
        + (other[33 + 12 + other[36] + 256 * other[35] :])
    )
    odd = [b"", b"PNG", before.png[:40], before.png[:-1], before.png + b" ", swapped,
           see(POINT, PAIR, FLOOR).picture.png()]  # fmt: skip
    drawn.clear()
    for number, text in enumerate([*texts[::6], *odd], 1):
        assert same(snapshot(POINT, PAIR, FLOOR, text), before)
        assert len(drawn) == number
