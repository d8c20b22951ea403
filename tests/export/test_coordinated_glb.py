"""A glTF file of clashes, as trimesh reads it, and its JSON."""

import json
import struct

import numpy as np
import pytest
import trimesh

import spatialq
from spatialq.export.clash_view import COLOURS

from ..command_line import rows
from ..conftest import made_once
from ..io.ifc_models import Builder

FAR = (630_000, 850_000, 40)
"""Where single precision has steps of 6 cm."""


def write_models(folder):
    walls, beams = Builder("IFC2X3", "foot"), Builder("IFC4", "millimetre")
    walls.add("IfcWall", "Wand \u00fc", [walls.box((0, 0, 0), (4, 0.2, 3))], at=FAR)
    for name, x in (("beam", 1.001), ("other beam", 3)):
        at = (FAR[0] + x, FAR[1] - 1, FAR[2] + 1)
        beams.add("IfcBeam", name, [beams.box((0, 0, 0), (0.2, 2, 0.3))], at=at)
    walls.write(folder / "walls.ifc")
    beams.write(folder / "beams.ifc")
    models = (folder / "walls.ifc", folder / "beams.ifc")
    for name, arguments in {"a.glb": (), "b.glb": (), "g.glb": ("--group", "element")}.items():
        rows("clash", *models, *arguments, "-o", folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "coordinated_glb", write_models)


def content(path):
    """The JSON of a file, whose lengths are checked."""
    data = path.read_bytes()
    magic, version, total = struct.unpack_from("<4sII", data)
    assert (magic, version, total) == (b"glTF", 2, len(data))
    length, kind = struct.unpack_from("<I4s", data, 12)
    assert kind == b"JSON"
    binary, kind = struct.unpack_from("<I4s", data, 20 + length)
    assert kind == b"BIN\0"
    assert 28 + length + binary == total
    return json.loads(data[20 : 20 + length])


def elements(folder):
    with spatialq.connect() as con:
        found = con.sql(
            f"SELECT global_id, ifc_class, name, storey, mesh FROM read_ifc('{folder}/walls.ifc') "
            "UNION ALL SELECT global_id, ifc_class, name, storey, mesh "
            f"FROM read_ifc('{folder}/beams.ifc')"
        ).fetchall()
    return {global_id: said for global_id, *said in found}


def test_each_element_is_a_node_with_its_name(folder):
    found = content(folder / "a.glb")
    nodes = {node["name"]: node["extras"] for node in found["nodes"]}
    expected = elements(folder)
    assert nodes.keys() == expected.keys()
    assert found["scenes"] == [{"nodes": [0, 1, 2]}]
    for global_id, (ifc_class, name, storey, _) in expected.items():
        said = nodes[global_id]
        assert (said["ifc_class"], said["name"], said["storey"]) == (ifc_class, name, storey)
        assert said["file"] == ("walls.ifc" if ifc_class == "IfcWall" else "beams.ifc")


def test_meshes_are_where_they_are_also_far_from_the_origin(folder):
    scene = trimesh.load(folder / "a.glb")
    origin = content(folder / "a.glb")["asset"]["extras"]["origin"]
    for global_id, (*_, mesh) in elements(folder).items():
        vertices, faces = (np.reshape(mesh[name], (-1, 3)) for name in ("vertices", "faces"))
        transform, name = scene.graph[global_id]
        found = scene.geometry[name]
        assert found.is_watertight
        x, y, z = trimesh.transform_points(found.vertices, transform).T
        corners = np.stack([x, -z, y], axis=1) + origin  # glTF has y upwards
        expected = trimesh.Trimesh(vertices, faces)
        np.testing.assert_allclose(
            np.sort(corners[found.faces].mean(axis=1), axis=0),
            np.sort(expected.triangles_center, axis=0), rtol=0, atol=1e-5,
        )  # fmt: skip
        assert found.volume == pytest.approx(expected.volume, rel=1e-5)
        assert found.volume > 0


def test_colours_are_those_of_sides_or_groups(folder):
    clashes = rows("clash", folder / "walls.ifc", folder / "beams.ifc")["clashes"]
    found = content(folder / "a.glb")
    sides = [{row[side] for row in clashes} for side in "ab"]
    for node in found["nodes"]:
        (primitive,) = found["meshes"][node["mesh"]]["primitives"]
        material = found["materials"][primitive["material"]]
        side = 0 if node["name"] in sides[0] else 1
        assert node["extras"]["shown_as"] == material["name"] == "ab"[side]
        linear = np.array(material["pbrMetallicRoughness"]["baseColorFactor"])
        srgb = 1.055 * linear[:3] ** (1 / 2.4) - 0.055
        np.testing.assert_allclose(srgb, np.array(COLOURS[side]) / 255, atol=2e-3)
    assert {each["name"] for each in content(folder / "g.glb")["materials"]} == {"group 1"}


def test_the_bytes_are_the_same_each_time(folder):
    assert (folder / "a.glb").read_bytes() == (folder / "b.glb").read_bytes()


def test_no_clashes_are_a_scene_of_nothing(tmp_path):
    with spatialq.connect() as con:
        none = con.sql("SELECT 'x' AS a, 'y' AS b, 'f' AS a_file LIMIT 0")
        assert spatialq.write(none, tmp_path / "none.glb") == 0
        # by the schema of glTF nodes, buffers and the length of a buffer must not be empty or 0
        data = (tmp_path / "none.glb").read_bytes()
        assert struct.unpack_from("<4sII", data) == (b"glTF", 2, len(data))
        (length, kind), rest = struct.unpack_from("<I4s", data, 12), data[20:]
        assert (length, kind) == (len(rest), b"JSON")
        found = json.loads(rest)
        assert found.keys() == {"asset", "scene", "scenes"}
        assert (found["scene"], found["scenes"]) == (0, [{}])
        with pytest.raises(ValueError, match="must be clashes with the GlobalIds a and b"):
            spatialq.write(con.sql("SELECT 1 AS a"), tmp_path / "wrong.glb")
    assert [each.name for each in tmp_path.iterdir()] == ["none.glb"]
