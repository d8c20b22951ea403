"""Building models and tables of elements as 3D Tiles."""

import json
import math
import re
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyproj
import pytest
from scipy.spatial import cKDTree

import spatialq
from spatialq.errors import CrsError, FileError

from ..command_line import spatialq_command
from .test_tiles_points import SMALL, write_scene, xyz_of
from .tiles_reading import Glb, check

pytestmark = pytest.mark.slow  # as a whole

CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
FACES = [
    0, 1, 3, 0, 3, 2, 4, 6, 7, 4, 7, 5, 0, 4, 5, 0, 5, 1, 2, 3, 7, 2, 7, 6, 0, 2, 6, 0, 6, 4,
    1, 5, 7, 1, 7, 3,
]  # fmt: skip
MESH = pa.struct([("vertices", pa.list_(pa.float64())), ("faces", pa.list_(pa.int32()))])


def cube(*, at, side=1.0):
    return {"vertices": (CUBE * side + at).ravel().tolist(), "faces": FACES}


def table(meshes, **columns):
    return pa.table({"mesh": pa.array(meshes, MESH), **columns})


def content(target):
    (path,) = (path for path in target.parent.rglob("*.glb"))
    return Glb(path.read_bytes())


def texts(glb):
    """The property table: column -> texts, as EXT_structural_metadata lays them out."""
    metadata = glb.json["extensions"]["EXT_structural_metadata"]
    (found,) = metadata["propertyTables"]
    kinds = metadata["schema"]["classes"][found["class"]]["properties"]
    columns = {}
    for name, said in found["properties"].items():
        assert kinds[name]["type"] == "STRING"
        assert said["stringOffsetType"] == "UINT32"
        ends = np.frombuffer(glb.view(said["stringOffsets"]), "<u4")
        assert len(ends) == found["count"] + 1
        values = glb.view(said["values"])
        columns[kinds[name].get("name", name)] = [values[a:b].decode() for a, b in pairwise(ends)]
        for view in (said["values"], said["stringOffsets"]):
            assert glb.json["bufferViews"][view]["byteOffset"] % 8 == 0
    return columns


def triangles(glb):
    """Triangles of each feature: number -> corners[n, 3, 3], colour, whether it is blended."""
    found = {}
    (mesh,) = glb.json["meshes"]
    for primitive in mesh["primitives"]:
        (ids,) = primitive["extensions"]["EXT_mesh_features"]["featureIds"]
        assert (ids["attribute"], ids["propertyTable"]) == (0, 0)
        attributes = glb.attributes(primitive)
        feature = attributes["_FEATURE_ID_0"].astype(int)
        corners = glb.accessor(primitive["indices"]).reshape(-1, 3)
        positions = glb.positions(primitive)
        blended = glb.json["materials"][primitive["material"]].get("alphaMode") == "BLEND"
        for number in np.unique(feature):
            own = corners[feature[corners[:, 0]] == number]
            assert (feature[own] == number).all()
            (colour,) = np.unique(attributes["COLOR_0"][feature == number], axis=0)
            found[int(number)] = positions[own], colour, blended
    return found


def volume(corners):
    return np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6


@pytest.mark.parametrize("compress", [False, True])
def test_a_table_of_elements(tmp_path, compress):
    source = table(
        [cube(at=(10, 20, 5)), cube(at=(12, 20, 5), side=0.5), None, cube(at=(0, 0, 0), side=2)],
        name=["wall", "Fenster — groß", "nothing", None],
        colour=[None, "#ff8000", None, "#80c0ff40"],
        **{"fire rating": [1.5, None, None, 2.0]},
    )
    target = tmp_path / "house" / "tileset.json"
    row = spatialq.write_tiles(source, target, compress=compress)
    assert (row["elements"], row["triangles"], row["outputs"]) == (4, 36, [str(target)])
    found = check(target)
    assert found.faults == []
    glb = content(target)
    assert texts(glb) == {
        "name": ["wall", "Fenster — groß", "nothing", ""],
        "fire rating": ["1.5", "", "", "2"],
    }
    parts = triangles(glb)
    assert sorted(parts) == [0, 1, 3]
    moved = np.array(found.transform).reshape(4, 4)[3, :3]
    for number, side, low in ((0, 1, (10, 20, 5)), (1, 0.5, (12, 20, 5)), (3, 2, (0, 0, 0))):
        corners, _, _ = parts[number]
        assert volume(corners) == pytest.approx(side**3, rel=2e-3)  # outwards, as it was
        assert np.allclose(corners.reshape(-1, 3).min(axis=0) + moved, low, atol=1e-3)
    assert [parts[k][2] for k in (0, 1, 3)] == [False, False, True]
    orange, glass = parts[1][1], parts[3][1]
    assert np.allclose(orange, [1, ((128 / 255 + 0.055) / 1.055) ** 2.4, 0], atol=1e-4)
    assert glass[3] == pytest.approx(64 / 255, abs=1e-4)


def test_a_large_model_keeps_its_precision(tmp_path):
    source = table([cube(at=(0, 0, 0)), cube(at=(5000, 0, 0))], name=["a", "b"])
    target = tmp_path / "tileset.json"
    spatialq.write_tiles(source, target)
    corners, _, _ = triangles(content(target))[1]
    assert volume(corners - corners.mean(axis=(0, 1))) == pytest.approx(1, rel=1e-2)
    assert content(target).json.get("extensionsRequired") == ["EXT_meshopt_compression"]


def test_a_query_and_a_parquet_file_of_elements(tmp_path):
    source = table([cube(at=(k, 0, 0)) for k in range(3)], global_id=["a", "b", "c"])
    duckdb.from_arrow(source).write_parquet(str(tmp_path / "elements.parquet"))
    spatialq.write_tiles(tmp_path / "elements.parquet", tmp_path / "one" / "tileset.json")
    with spatialq.connect() as con:
        con.register("elements", source)
        asked = spatialq.from_sql(con, "FROM elements WHERE global_id <> 'b'")
        spatialq.write_tiles(asked, tmp_path / "two" / "tileset.json")
    found = [texts(content(tmp_path / name / "tileset.json")) for name in ("one", "two")]
    assert found == [{"global_id": ["a", "b", "c"]}, {"global_id": ["a", "c"]}]


def test_the_command_on_a_model(tmp_path, world):
    target = tmp_path / "house" / "tileset.json"
    result = spatialq_command("tiles", world.ifc, "-o", target, "--json")
    assert result.returncode == 0, result.stderr
    ((row,),) = (json.loads(result.stdout),)
    with spatialq.connect() as con:
        expected = con.sql(
            f"SELECT global_id, ifc_class, name, coalesce(storey, '') AS storey, volume "
            f"FROM read_ifc('{world.ifc}') "
            "WHERE ifc_class NOT IN ('IfcOpeningElement', 'IfcSpace')"
        ).to_arrow_table()
    assert row["elements"] == expected.num_rows
    glb = content(target)
    columns = texts(glb)
    for name in ("global_id", "ifc_class", "name", "storey"):
        assert columns[name] == expected[name].to_pylist()
    parts = triangles(glb)
    for number, wanted in enumerate(expected["volume"].to_pylist()):
        if wanted and wanted > 0.5:
            corners = parts[number][0]
            assert volume(corners - corners.mean(axis=(0, 1))) == pytest.approx(wanted, rel=0.02)
    assert check(target).faults == []


def test_a_model_stands_where_its_map_conversion_says(tmp_path, world):
    """Every corner, by way of PROJ; heights count as ellipsoidal ones."""
    target = tmp_path / "tileset.json"
    spatialq.write_tiles(world.ifc, target)
    with spatialq.connect() as con:
        ((vertices,),) = con.sql(
            f"SELECT flatten(list(mesh.vertices)) FROM read_ifc('{world.ifc}') "
            "WHERE ifc_class NOT IN ('IfcOpeningElement', 'IfcSpace')"
        ).fetchall()
    x, y, z = np.array(vertices).reshape(-1, 3).T
    turn = math.radians(world.house.angle)
    east = world.house.eastings + x * math.cos(turn) - y * math.sin(turn)
    north = world.house.northings + x * math.sin(turn) + y * math.cos(turn)
    to_degrees = pyproj.Transformer.from_crs("EPSG:25832", "EPSG:4326", always_xy=True)
    to_earth = pyproj.Transformer.from_crs("EPSG:4979", "EPSG:4978", always_xy=True)
    up = world.house.height + z
    expected = np.stack(to_earth.transform(*to_degrees.transform(east, north), up), axis=1)
    corners = [part[0].reshape(-1, 3) for part in triangles(content(target)).values()]
    matrix = np.array(json.loads(target.read_text())["root"]["transform"]).reshape(4, 4)
    got = np.concatenate(corners) @ matrix[:3, :3] + matrix[3, :3]
    for one, other in ((got, expected), (expected, got)):
        assert cKDTree(one).query(other)[0].max() < 2e-3


def test_a_table_of_levels_of_detail(tmp_path):
    """The same tiles as straight from the file."""
    source = write_scene(tmp_path / "a.laz")
    straight, nodes = tmp_path / "one" / "tileset.json", tmp_path / "nodes.parquet"
    made = spatialq.write_lod(source, [straight, nodes], **SMALL)
    other = tmp_path / "two" / "tileset.json"
    row = spatialq.write_tiles(nodes, other)
    for name in ("points", "nodes", "voxels", "brightest"):
        assert row[name] == made[name]
    for path in straight.parent.rglob("*"):
        if path.is_file():
            again = other.parent / path.relative_to(straight.parent)
            assert path.read_bytes() == again.read_bytes(), path.name


def test_a_compact_table_of_levels_of_detail_is_refused_as_such(tmp_path):
    nodes = tmp_path / "nodes.parquet"
    spatialq.write_lod(write_scene(tmp_path / "a.laz"), nodes, compact=True, **SMALL)
    with pytest.raises(FileError, match=r"nodes\.parquet': has compact samples, of which no tiles"):
        spatialq.write_tiles(nodes, tmp_path / "tiles" / "tileset.json")


def test_other_columns_of_samples_are_attributes(tmp_path):
    source, nodes = write_scene(tmp_path / "a.laz"), tmp_path / "nodes.parquet"
    with spatialq.connect() as con:
        con.sql(
            f"""SELECT * REPLACE (list_transform(samples, lambda s: {{
                x: s.x, y: s.y, z: s.z, red: s.red, green: s.green, blue: s.blue,
                "height above ground": (s.z - 100)::FLOAT,
                plane_id: CASE WHEN s.classification > 9 THEN s.point_id END
            }}) AS samples) FROM build_lod('{source}', max_points := 300, grid_size := 8)"""
        ).write_parquet(str(nodes))
    target = tmp_path / "tiles" / "tileset.json"
    spatialq.write_tiles(nodes, target, crs="EPSG:25832", implicit=True)
    found = check(target)
    assert found.faults == []
    heights = found.values("_HEIGHT_ABOVE_GROUND")
    above = np.concatenate([leaf.positions[:, 2] for leaf in found.leaves])
    assert np.ptp(heights - above) < 3e-3
    planes = found.values("_PLANE_ID")
    lowest = np.finfo(np.float32).min
    assert 0 < (planes == lowest).sum() < planes.size
    assert planes[planes != lowest].max() < 4000
    (one, *_) = sorted(target.parent.rglob("*.glb"))
    metadata = Glb(one.read_bytes()).json["extensions"]["EXT_structural_metadata"]
    (properties,) = (each["properties"] for each in metadata["schema"]["classes"].values())
    assert properties["height_above_ground"]["name"] == "height above ground"
    assert properties["plane_id"]["noData"] == lowest


SAMPLES = {
    "samples have no blue": "{x: s.x, y: s.y, z: s.z, red: s.red, green: s.green}",
    "column 'red' of samples must be whole numbers": "struct_update(s, red := s.red / 2)",
    "column 'green' of samples has NULL": "struct_update(s, green := NULL::USMALLINT)",
    "column 'kind' of samples is string": "struct_insert(s, kind := 'tree')",
}


@pytest.mark.parametrize("message", SAMPLES)
def test_samples_that_cannot_be_shown_are_said(tmp_path, message):
    source, nodes = write_scene(tmp_path / "a.laz", 500), tmp_path / "nodes.parquet"
    with spatialq.connect() as con:
        con.sql(
            f"SELECT * REPLACE (list_transform(samples, lambda s: {SAMPLES[message]}) AS samples) "
            f"FROM build_lod('{source}')"
        ).write_parquet(str(nodes))
    with pytest.raises(FileError, match=rf"^tiles: '.*nodes\.parquet': {re.escape(message)}"):
        spatialq.write_tiles(nodes, tmp_path / "tiles" / "tileset.json")


def test_point_clouds_get_the_options(tmp_path):
    source = write_scene(tmp_path / "a.laz")
    options = {"implicit": True, "compress": False, "colour_bits": 8, "error_factor": 4.0}
    spatialq.write_tiles(source, tmp_path / "tileset.json", **options, **SMALL)
    found = check(tmp_path / "tileset.json")
    assert found.faults == []
    root = json.loads((tmp_path / "tileset.json").read_text())["root"]
    side = 2 * max(root["boundingVolume"]["box"][3:])
    assert root["geometricError"] == pytest.approx(4 * side / 8)
    assert found.points().shape == (4000, 3)


BAD = {
    "output must be a file tileset.json": {"output": "tiles.json"},
    "colour_bits must be 8 or 16, got 7": {"colour_bits": 7},
    "error_factor must be a number > 0 and finite, got 0": {"error_factor": 0},
    "error_factor must be a number > 0 and finite, got inf": {"error_factor": float("inf")},
    "implicit must be true or false, got 1": {"implicit": 1},
    "colour must be like '#c04040' or '#80c0ff40', got 'red'": {"colour": ["red"]},
    "max_points is for point clouds, got a table": {"max_points": 3},
    "memory is for point clouds, got a table": {"memory": "2GB"},
    "bounds is for point clouds, got a table": {"bounds": (0, 0, 1, 1)},
    "override_crs needs crs": {"override_crs": True},
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said(tmp_path, message):
    given = dict(BAD[message])
    columns = {name: given.pop(name) for name in ("colour",) if name in given}
    target = tmp_path / given.pop("output", "tileset.json")
    with pytest.raises(ValueError, match=f"^tiles: .*{re.escape(message)}"):
        spatialq.write_tiles(table([cube(at=(0, 0, 0))], **columns), target, **given)
    assert list(tmp_path.iterdir()) == []


def test_a_crs_takes_the_place_of_another_only_where_that_is_said(tmp_path, world):
    """Of a model and of a table of levels of detail, as of a cloud."""
    nodes = tmp_path / "nodes.parquet"
    cloud = write_scene(tmp_path / "a.laz")
    spatialq.write_lod(cloud, nodes, **SMALL)
    for source, command in ((world.ifc, "tiles"), (nodes, "tiles"), (cloud, "lod")):
        target = tmp_path / source.stem / "tileset.json"
        message = rf"^{command}: '{source}' is in .*25832.*, but crs is .*25833"
        with pytest.raises(CrsError, match=message):
            spatialq.write_tiles(source, target, crs="EPSG:25833")
        assert not target.exists()
        spatialq.write_tiles(source, target, crs="EPSG:25833", override_crs=True)
        assert json.loads(target.read_text())["extras"]["crs"] == "EPSG:25833"


def test_the_command_on_a_cloud(tmp_path):
    """With the options of `spatialq lod`."""
    source = write_scene(tmp_path / "a.laz")
    target = tmp_path / "tiles" / "tileset.json"
    x, y = xyz_of(source)[:, :2].T
    bounds = [float(np.quantile(each, part)) for part in (0.25, 0.75) for each in (x, y)]
    flags = ("--bounds", ",".join(map(repr, bounds)), "--memory", "2GB", "--device", "cpu")
    result = spatialq_command(
        "tiles", source, "-o", target, *flags, "--max-points", 300, "--grid-size", 8, "--json"
    )
    assert result.returncode == 0, result.stderr
    inside = (x >= bounds[0]) & (y >= bounds[1]) & (x <= bounds[2]) & (y <= bounds[3])
    found = check(target)
    assert found.faults == []
    assert 0 < len(found.points()) == np.count_nonzero(inside) < 4000


def test_sql_writes_the_same_tiles(tmp_path, world):
    cloud = write_scene(tmp_path / "a.laz")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    for source, options in ((world.ifc, {}), (cloud, {**SMALL, "implicit": True})):
        one, two = (tmp_path / name / source.stem / "tileset.json" for name in ("one", "two"))
        expected = spatialq.write_tiles(source, one, **options)
        given = "".join(f", {name} := {value}" for name, value in options.items())
        with spatialq.connect() as con:
            rows = con.sql(f"FROM write_tiles('{source}', '{two}'{given})")
            ((*numbers, outputs),) = rows.fetchall()
            *names, last = rows.columns
        assert (last, outputs) == ("outputs", [str(two)])
        assert numbers == [expected.get(name) for name in names]
        files = sorted(path.relative_to(one.parent) for path in one.parent.rglob("*.*"))
        for path in files:
            assert (one.parent / path).read_bytes() == (two.parent / path).read_bytes()


def test_tables_that_are_none_of_elements(tmp_path):
    target = tmp_path / "tileset.json"
    with pytest.raises(ValueError, match=r"source must have a column mesh .* got the columns a"):
        spatialq.write_tiles(pa.table({"a": [1]}), target)
    with pytest.raises(FileError, match="tiles need at least one element with a mesh"):
        spatialq.write_tiles(table([None]), target)
    broken = tmp_path / "a.parquet"
    broken.write_text("no Parquet")
    with pytest.raises(FileError, match=r"a\.parquet': is no Parquet file"):
        spatialq.write_tiles(broken, target)
    assert not target.exists()


def test_files_that_do_not_go_together_are_named(tmp_path):
    target = tmp_path / "tileset.json"
    for name in ("none.ifc", "none.laz", "none.parquet"):
        with pytest.raises(FileError, match=f"tiles: '{name}': there is no such file"):
            spatialq.write_tiles(name, target)
    sources = [tmp_path / name for name in ("a.laz", "b.laz", "c.laz", "d.laz", "house.ifc")]
    for source in sources:
        source.touch()
    with pytest.raises(ValueError, match=r"got '[^,]*a\.laz', '[^,]*house\.ifc'$"):
        spatialq.write_tiles(sources, target)
