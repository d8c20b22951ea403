"""The scene of what one has, its rows and relations, views, and what programs ask."""

import base64
import gzip
import io
import json
import re
import shutil
from dataclasses import replace

import duckdb
import laspy
import numpy as np
import pyarrow as pa
import pyproj
import pytest
from starlette.testclient import TestClient

import spatialq
from spatialq.errors import FileError
from spatialq.export.bcf import Comment, Topic, View, write_archive
from spatialq.export.camera import Camera
from spatialq.serve.app import Server
from spatialq.serve.export import write_page
from spatialq.serve.scene import open_scene
from spatialq.serve.views import Views

from .conftest import BASE, PORT, TOKEN, client_of, make_database, plain_duckdb


def test_the_scene_of_a_house_and_its_scan(client, house):
    said = client.get("scene.json").json()
    (cloud,), (model,) = said["clouds"], said["models"]
    with spatialq.connect() as con:
        scan, walls = str(house / "house.laz"), str(house / "house.ifc")
        count, *box = con.execute(
            "SELECT count(*), min(x), min(y), min(z), max(x), max(y), max(z) FROM read_points(?)",
            [scan],
        ).fetchall()[0]
        true = con.execute(
            "SELECT global_id, ifc_class, name, storey, xmin, ymin, zmin, xmax, ymax, zmax "
            "FROM read_ifc(?) WHERE ifc_class NOT IN ('IfcOpeningElement', 'IfcSpace')",
            [walls],
        ).fetchall()
    assert (cloud["name"], cloud["points"], cloud["state"]) == ("house.laz", count, "ready")
    assert cloud["box"] == box
    assert (model["name"], model["on_map"]) == ("house.ifc", False)
    assert {"classification", "intensity", "gps_time"} <= {
        each["name"] for each in cloud["columns"]
    }
    assert {each["name"] for each in said["tables"]} >= {"points", "elements", "relations"}
    rows = client.get("elements.json").json()
    found = {row["global_id"]: row for row in rows}
    assert set(found) == {row[0] for row in true}
    for global_id, ifc_class, name, storey, *box in true:
        row = found[global_id]
        assert (row["ifc_class"], row["name"], row["storey"]) == (ifc_class, name, storey)
        assert row["box"] == pytest.approx(box, abs=1e-9)
    assert any(row["system"] for row in rows)
    tileset = client.get(model["tileset"]).json()
    low, high = np.array(said["box"]).reshape(2, 3)
    middle = np.array(tileset["root"]["transform"][12:15])
    assert (low <= middle + 1e-6).all()
    assert (middle <= high + 1e-6).all()
    content = tileset["root"]["content"]["uri"]
    assert client.get(f"models/0/{content}").content[:4] == b"glTF"


def test_rows_with_their_relations(client, scene):
    with plain_duckdb(scene.opened.databases["scene"]) as con:
        ((wall, name),) = con.execute(
            "SELECT global_id, name FROM elements WHERE ifc_class = 'IfcWall' ORDER BY ALL LIMIT 1"
        ).fetchall()
        properties = con.execute(
            "SELECT count(*) FROM properties WHERE global_id = ?", [wall]
        ).fetchall()[0][0]
        relations = con.execute(
            "SELECT count(*) FROM relations WHERE child = $1 OR parent = $1", [wall]
        ).fetchall()[0][0]
        ((x, y, z),) = con.execute("SELECT x, y, z FROM points WHERE point_id = 77").fetchall()
    found = client.get(f"row/elements/{wall}").json()
    assert found["row"]["name"] == name
    assert "mesh" not in found["row"]
    of = {each["name"]: each["rows"] for each in found["relations"]}
    assert len(of.get("properties", [])) == properties
    assert len(of["relations"]) == relations > 0
    point = client.get("row/points/0/77").json()["row"]
    assert (point["x"], point["y"], point["z"]) == (x, y, z)
    for path in ("row/points/0/999999999", "row/elements/nobody", "row/planes/1",
                 "row/points/7/1", "clouds/9/tileset.json", "models/9/tileset.json",
                 "clouds/0/ids/nothing", "column/0/99/r", "column/0/0/nothing",
                 "row/nothing/1"):  # fmt: skip
        answer = client.get(path)
        assert answer.status_code == 404
        assert set(answer.json()) == {"error"}


def test_elements_of_a_result_are_selected_and_coloured(client, scene):
    text = "SELECT global_id, area FROM elements WHERE ifc_class = 'IfcWall'"
    select = client.post("query", json={"text": text}).json()["select"]
    with plain_duckdb(scene.opened.databases["scene"]) as con:
        true = dict(con.execute(text).fetchall())
    elements = select["elements"]
    assert set(elements["global_ids"]) == set(true)
    low, high = elements["legend"]["min"], elements["legend"]["max"]
    for key, value in zip(elements["global_ids"], elements["values"], strict=True):
        assert abs(low + (value - 1) * (high - low) / 254 - true[key]) <= (high - low) / 254
    pairs = (
        "SELECT a.global_id AS a_global_id, b.global_id AS b_global_id FROM elements a, "
        "elements b WHERE a.ifc_class = 'IfcDoor' AND b.ifc_class = 'IfcWindow'"
    )
    select = client.post("query", json={"text": pairs}).json()["select"]
    with plain_duckdb(scene.opened.databases["scene"]) as con:
        both = con.execute(
            "SELECT global_id FROM elements WHERE ifc_class IN ('IfcDoor', 'IfcWindow')"
        ).fetchall()
    assert sorted(select["elements"]["global_ids"]) == sorted(each for (each,) in both)
    assert select["elements"]["values"] is None


def test_functions_of_elements_run_in_the_box(patient, house):
    text = (
        "WITH walls AS (FROM elements WHERE ifc_class = 'IfcWall'), "
        "slabs AS (FROM elements WHERE ifc_class = 'IfcSlab') "
        "SELECT a AS a_global_id, b AS b_global_id FROM touches(walls, slabs) ORDER BY ALL"
    )
    answer = patient.post("query", json={"text": text})
    assert answer.status_code == 200, answer.text
    with spatialq.connect() as con:
        spatialq.load(con, house / "house.ifc")
        true = con.execute(text).fetchall()
    assert [tuple(row) for row in answer.json()["rows"]] == true
    assert true


@pytest.mark.slow
def test_scripts_of_ql4bim(patient, scene, house):
    text = "walls = TypeFilter(model is IfcWall)"
    answer = patient.post("query", json={"text": text, "language": "ql4bim"})
    assert answer.status_code == 200, answer.text
    with plain_duckdb(scene.opened.databases["scene"]) as con:
        true = con.execute("SELECT global_id FROM elements WHERE ifc_class = 'IfcWall'").fetchall()
    assert sorted(answer.json()["select"]["elements"]["global_ids"]) == sorted(k for (k,) in true)
    for wrong, said in (
        ("walls = TypeFilter(model is IfcWal)", "IfcWal"),
        (f'm = ImportModel("{house / "other.ifc"}")  w = TypeFilter(m is IfcWall)', ""),
        ('m = ImportModel("/etc/passwd")  w = TypeFilter(m is IfcWall)', ""),
        (f'ExportModel(model, "{house / "out.ifc"}")', ""),
    ):
        answer = patient.post("query", json={"text": wrong, "language": "ql4bim"})
        assert answer.status_code == 400, answer.text
        assert said in answer.json()["error"]
    assert not (house / "out.ifc").exists()


def test_programs_ask_with_the_token_in_a_header(scene):
    arrow = "application/vnd.apache.arrow.stream"
    bearer = {"authorization": f"Bearer {TOKEN}"}
    text = "SELECT point_id, z FROM points WHERE z > ? ORDER BY point_id"
    body = {"sql": text, "parameters": [2.5]}
    with plain_duckdb(scene.opened.databases["scene"]) as con:
        true = con.execute(text, [2.5]).fetchall()
    with TestClient(Server(scene).app(TOKEN, PORT), base_url=BASE) as client:
        answer = client.post("/sql", json=body, headers={**bearer, "accept": arrow})
        assert answer.headers["content-type"] == arrow
        table = pa.ipc.open_stream(answer.content).read_all()
        assert list(zip(*(each.to_pylist() for each in table.columns), strict=True)) == true
        answer = client.post("/sql", json=body, headers=bearer).json()
        assert answer["rows"] == [list(row) for row in true[: scene.limits.rows]]
        assert set(answer) == {"columns", "rows", "count", "truncated", "seconds"}
        for wrong in ("Bearer x", f"Basic {TOKEN}", TOKEN, "Bearer "):
            refused = client.post("/sql", json=body, headers={"authorization": wrong})
            assert refused.status_code == 404
        assert client.get("/scene.json", headers=bearer).status_code == 404


VIEW = {
    "title": "The door", "components": ["282AKIQhnOafYf2txl3$Dp"], "query": "FROM points",
    "camera": {"eye": [1.0, 2.0, 3.0], "target": [4.0, 6.0, 3.0], "up": [0, 0, 1], "fov": 50.0},
}  # fmt: skip


def of_views(scene, path=None):
    return Server(replace(scene, views=Views(path)))


def test_views_go_out_as_bcf_and_come_back(scene):
    with client_of(of_views(scene)) as client:
        assert client.get("views").json() == []
        assert client.post("views", json=VIEW).json() == [{"id": 0, **VIEW}]
        archive = client.get("views.bcf").content
    with client_of(of_views(scene)) as client:
        assert client.post("views.bcf", content=archive).status_code == 200
        (found,) = client.get("views").json()
    for name in ("title", "components", "query"):
        assert found[name] == VIEW[name]
    camera = found["camera"]
    assert camera["eye"] == VIEW["camera"]["eye"]
    assert camera["fov"] == 50
    given = np.subtract(VIEW["camera"]["target"], VIEW["camera"]["eye"])
    towards = np.subtract(camera["target"], camera["eye"])
    assert towards / np.linalg.norm(towards) == pytest.approx(given / np.linalg.norm(given))


def test_views_go_to_other_programs(scene, tmp_path):
    bcf = pytest.importorskip("bcf.bcfxml")
    with client_of(of_views(scene)) as client:
        client.post("views", json=VIEW)
        path = tmp_path / "views.bcf"
        path.write_bytes(client.get("views.bcf").content)
    with bcf.load(path) as archive:
        (topic,) = archive.topics.values()
        assert topic.topic.title == VIEW["title"]
        (view,) = topic.viewpoints.values()
        camera = view.visualization_info.perspective_camera
        place = camera.camera_view_point
        assert [place.x, place.y, place.z] == VIEW["camera"]["eye"]
        selected = view.visualization_info.components.selection.component
        assert [each.ifc_guid for each in selected] == VIEW["components"]


def test_views_of_a_file_are_there_the_next_time_in_their_order(scene, tmp_path):
    path = tmp_path / "views.bcf"
    titles = [f"view <{k}> & 'ü'" for k in range(12)]
    with client_of(of_views(scene, path)) as client:
        assert client.get("scene.json").json()["views"] == str(path)
        for title in titles[:6]:
            given = client.post("views", json=VIEW | {"title": title, "query": f"FROM\n{title}"})
            assert given.status_code == 200
    with client_of(of_views(scene, path)) as client:
        for title in titles[6:]:
            client.post("views", json=VIEW | {"title": title, "query": None, "components": []})
        assert client.get("views.bcf").content == path.read_bytes()
    with client_of(of_views(scene, path)) as client:
        found = client.get("views").json()
    assert list(tmp_path.iterdir()) == [path]
    assert [each["title"] for each in found] == titles
    assert [each["query"] for each in found] == [f"FROM\n{each}" for each in titles[:6]] + 6 * [
        None
    ]
    assert [each["components"] for each in found] == 6 * [VIEW["components"]] + 6 * [[]]
    for each in found:
        camera = {name: np.array(each["camera"][name]) for name in ("eye", "target", "up")}
        assert camera["eye"].tolist() == VIEW["camera"]["eye"]
        assert each["camera"]["fov"] == VIEW["camera"]["fov"]
        towards = camera["target"] - camera["eye"]
        assert towards / np.linalg.norm(towards) == pytest.approx([0.6, 0.8, 0])


def test_a_file_of_views_that_somebody_else_changed_is_not_overwritten(scene, tmp_path):
    path = tmp_path / "views.bcf"
    with client_of(of_views(scene, path)) as client:
        client.post("views", json=VIEW)
        path.write_bytes(b"changed")
        for answer in (
            client.post("views", json=VIEW),
            client.post("views.bcf", content=client.get("views.bcf").content),
        ):
            assert answer.status_code == 400
            assert "was changed by another program" in answer.json()["error"]
        assert path.read_bytes() == b"changed"
        assert len(client.get("views").json()) == 1
        path.unlink()
        assert client.post("views", json=VIEW).status_code == 200
        path.unlink()
        path.mkdir()
        assert client.post("views", json=VIEW).status_code == 400
    with pytest.raises(FileError, match="is a folder"):
        Views(path)


def test_a_file_that_is_none_of_views_is_refused(tmp_path):
    seen = View(Camera(eye=(0.0, 0.0, 0.0), target=(0.0, 1.0, 0.0)), (), {}, None, None)
    path = tmp_path / "a.bcf"
    for topic in (
        Topic("a", "a", seen),
        Topic("a", "a", replace(seen, snapshot=b"x"), topic_type="View"),
        Topic("a", "a", replace(seen, camera=None), topic_type="View"),
        Topic("a", "a", seen, topic_type="View", comments=[Comment("x")]),
    ):
        write_archive(path, [topic])
        before = path.read_bytes()
        with pytest.raises(FileError, match="has more than views that this page saved"):
            Views(path)
        assert path.read_bytes() == before
    write_archive(path, [Topic("a", "a", seen, topic_type="View")], author="somebody")
    with pytest.raises(FileError, match="has more than views that this page saved"):
        Views(path)
    path.write_bytes(b"x")
    with pytest.raises(FileError, match=r"^view: .*zip cannot be unpacked"):
        Views(path)
    with pytest.raises(FileError, match="there is no folder"):
        Views(tmp_path / "nofolder" / "views.bcf")
    with pytest.raises(ValueError, match=r"views must be a file that ends in \.bcf"):
        Views(tmp_path / "views.zip")


@pytest.mark.parametrize(
    "change",
    [
        {"title": ""}, {"title": 1}, {"title": "x" * 201}, {"camera": None}, {"camera": {}},
        {"camera": {"eye": [0, 0, 0], "target": [0, 0, 0]}},
        {"camera": {"eye": [0, 0], "target": [0, 0, 1]}},
        {"camera": {"eye": ["x", 0, 0], "target": [0, 0, 1]}},
        {"components": "x"}, {"components": [1]}, {"query": 1},
    ],
)  # fmt: skip
def test_wrong_views_are_refused(client, change):
    answer = client.post("views", json=VIEW | change)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("view: ")


def test_what_is_no_bcf_is_refused(client):
    for data in (b"", b"PK\x03\x04 nothing", b"<xml/>"):
        answer = client.post("views.bcf", content=data)
        assert answer.status_code == 400
        assert set(answer.json()) == {"error"}


@pytest.mark.slow
def test_numbers_of_planes_are_json_whatever_their_types(tmp_path, in_cache):
    """DECIMAL as literals are, NaN, and a plane without an outline."""
    path = tmp_path / "planes.duckdb"
    with spatialq.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE planes AS SELECT 7::UTINYINT AS plane_id, 0.0 AS nx, 0.0 AS ny, 1.0 AS "
            "nz, 'nan'::DOUBLE AS d"
        )
    with open_scene([str(path)]) as scene, client_of(Server(scene)) as client:
        plane = {"plane_id": 7, "nx": 0.0, "ny": 0.0, "nz": 1.0, "d": None, "points": None}
        assert client.get("planes.json").json() == [{**plane, "outline": []}]


@pytest.mark.slow
def test_lists_planes_and_a_model_on_the_map(house, tmp_path, in_cache):
    """A database with a cloud at the place on the map where the model says that it is."""
    path = tmp_path / "site.duckdb"
    with spatialq.connect(str(path)) as con:
        spatialq.load(con, house / "house.ifc")
        con.execute(
            "CREATE TABLE points AS SELECT range AS point_id, 652228.0 + range % 12 AS x, "
            "5606232.0 + range // 12 AS y, 413.0 AS z FROM range(120)"
        )
        con.execute("CREATE TABLE planes AS FROM detect_planes(points)")
        ids = [k for (k,) in con.execute("SELECT global_id FROM elements LIMIT 2").fetchall()]
        con.execute(
            "CREATE TABLE clashes AS SELECT ? AS a, ? AS b, 1.0 AS x, 2.0 AS y, 0.5 AS z", ids
        )
        con.execute(
            "CREATE TABLE judged AS SELECT global_id, 'installed' AS status FROM elements LIMIT 3"
        )
    with open_scene([str(path)]) as scene, client_of(Server(scene)) as client:
        scene.build()
        said = client.get("scene.json").json()
        planes = client.get("planes.json").json()
        row = client.get(f"row/elements/{ids[0]}").json()
    (model,) = said["models"]
    assert model["on_map"]
    # IfcMapConversion: the x axis of the model is turned, its origin lies at eastings, northings
    assert np.allclose(model["box"][:3], [652228, 5606232, 412], atol=12)
    lists = {each["name"]: each["rows"] for each in said["lists"]}
    assert set(lists) == {"clashes", "judged"}
    (clash,) = lists["clashes"]
    assert clash["elements"] == ids
    c, s = 0.9205048534524404, 0.39073112848927377
    wanted = [652228.96 + c * 1 - s * 2, 5606232.36 + s * 1 + c * 2, 413.15 + 0.5]
    assert clash["centre"] == pytest.approx(wanted, abs=1e-6)
    assert [each["status"] for each in lists["judged"]] == ["installed"] * 3
    assert said["planes"] == {"table": "planes", "rows": "planes.json"}
    assert planes[0]["points"] == 120
    assert len(planes[0]["outline"]) >= 4
    assert {each["name"] for each in row["relations"]} >= {"clashes", "judged"}


@pytest.mark.slow
def test_tables_about_a_row_are_named_as_queries_find_them(tmp_path, in_cache):
    """Two databases have a table of one name, and another one has a name of SQL."""
    path, file = tmp_path / "site.duckdb", tmp_path / "plane_points.parquet"
    with spatialq.connect(str(path)) as con:
        con.execute("CREATE TABLE points AS SELECT range AS point_id, range AS x, 0 AS y, 0 AS z "
                    "FROM range(300)")  # fmt: skip
        con.execute(
            "CREATE TABLE planes AS SELECT 4 AS plane_id, 0 AS nx, 0 AS ny, 1 AS nz, 0 AS d"
        )
        for name, least in (("plane_points", 0), ('"order"', 290)):
            con.execute(f"CREATE TABLE {name} AS SELECT point_id, 4 AS plane_id FROM points "
                        f"WHERE point_id >= {least}")  # fmt: skip
        con.execute(f"COPY (SELECT 7 AS point_id, 4 AS plane_id) TO '{file}'")
    with open_scene([str(path), str(file)]) as scene, client_of(Server(scene)) as client:
        found = client.get("row/planes/4").json()["relations"]
        counts = {}
        for each in found:
            text = f"SELECT point_id FROM {each['table']} WHERE plane_id = 4"
            answer = client.post("query", json={"text": text}).json()
            counts[each["table"]] = answer["count"], len(each["rows"]), each["is_cut"]
    assert counts == {
        'scene.main."plane_points"': (300, 200, True),
        'scene.main."order"': (10, 10, False),
        'own.main."plane_points"': (1, 1, False),
    }


@pytest.mark.slow
def test_parquet_queries_and_tables(house, tmp_path, in_cache):
    path = tmp_path / "site.duckdb"
    with spatialq.connect(str(path)) as con:
        con.execute("CREATE TABLE points AS SELECT range AS point_id, range AS x, 0 AS y, 0 AS z "
                    "FROM range(10)")  # fmt: skip
        con.execute("CREATE TABLE others AS SELECT point_id, x, y, z + 1 AS z FROM points")
        con.execute(f"COPY (SELECT 'p' AS a, 'q' AS b) TO '{tmp_path}/clashes.parquet'")
    with open_scene(["others"], str(path)) as scene:
        assert [each.table.name for each in scene.clouds] == ["others"]
    with open_scene(["FROM points WHERE x > 5"], str(path)) as scene, \
            client_of(Server(scene)) as client:  # fmt: skip
        scene.build()
        assert [each.target.points for each in scene.clouds if each.table.name == "query"] == [4]
        answer = client.post("query", json={"text": "SELECT point_id FROM query"}).json()
        number = next(k for k, each in enumerate(scene.clouds) if each.table.name == "query")
        assert answer["select"]["points"][str(number)]["count"] == 4
    with open_scene([str(tmp_path / "clashes.parquet"), str(house / "house.ifc")]) as scene:
        (found,) = scene.said()["lists"]
        assert found["rows"][0]["elements"] == ["p", "q"]
    with duckdb.connect(str(path), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM points").fetchall() == [(10,)]


@pytest.mark.slow
def test_two_clouds_select_their_own_points(house, tmp_path, in_cache):
    shutil.copy(house / "house.laz", tmp_path / "again.laz")
    with open_scene([str(house / "house.laz"), str(tmp_path / "again.laz")]) as scene, \
            client_of(Server(scene)) as client:  # fmt: skip
        scene.build()
        for table, number in (("points", "0"), ("points_2", "1")):
            text = f"SELECT point_id FROM {table} WHERE z > 3"
            assert list(client.post("query", json={"text": text}).json()["select"]["points"]) == [
                number
            ]


@pytest.mark.slow
@pytest.mark.parametrize("source", ["", "*.laz"], ids=["folder", "pattern"])
def test_the_files_of_a_folder_are_one_cloud(house, tmp_path, in_cache, source):
    """Of which a query selects points of all; a file that was named before is left out."""
    for name in ("a.laz", "b.laz"):
        shutil.copy(house / "house.laz", tmp_path / name)
    with open_scene([str(tmp_path / source)]) as scene, client_of(Server(scene)) as client:
        scene.build()
        (cloud,) = client.get("scene.json").json()["clouds"]
        assert (cloud["name"], cloud["table"]) == ("points, 2 files", "points")
        text = "SELECT count(*), count(DISTINCT point_id) FROM points"
        ((points, ids),) = client.post("query", json={"text": text}).json()["rows"]
        assert points == ids == cloud["points"]
    with open_scene([str(tmp_path / "b.laz"), str(tmp_path / source)]) as scene:
        said = [(each["name"], each["points"]) for each in scene.said()["clouds"]]
    assert said == [("b.laz", points // 2), ("a.laz", points // 2)]


def test_files_of_a_folder_with_other_columns_are_a_cloud_of_their_own(tmp_path, in_cache):
    """A column of bytes does not hold the numbers of others."""
    kinds = {"a": "uchar", "b": "float", "c": "int", "d": "uchar"}
    for number, (name, kind) in enumerate(kinds.items()):
        columns = [f"property {each}" for each in ("double x", "double y", "double z")]
        lines = ["ply", "format ascii 1.0", "element vertex 2", *columns,
                 f"property {kind} quality", "end_header",
                 f"{number} 0 0 7", f"{number} 1 0 9"]  # fmt: skip
        (tmp_path / f"{name}.ply").write_text("\n".join(lines) + "\n")
    with open_scene([str(tmp_path)]) as scene:
        said = [(each["name"], each["points"]) for each in scene.said()["clouds"]]
        qualities = [dict(cloud.table.columns)["quality"] for cloud in scene.clouds]
    assert said == [("points, 2 files", 4), ("b.ply", 2), ("c.ply", 2)]
    assert qualities == ["UTINYINT", "FLOAT", "INTEGER"]


@pytest.mark.parametrize(
    ("crs", "name", "scale"),
    [
        (None, "m", [1, 1]), ("EPSG:25832", "m", [1, 1]), ("EPSG:2230", "ftUS", [1, 1]),
        ("EPSG:2992", "ft", [1, 1]), ("EPSG:2230+5703", "ftUS", [1, 3937 / 1200]),
        ("EPSG:25832+6360", "m", [1, 1200 / 3937]), ("EPSG:4326", None, [1, 1]),
        # of Clarke's feet, which have no short name
        ("EPSG:2314", "m", [0.3047972654, 0.3047972654]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("source", ["points", "FROM points WHERE z > 0"])
def test_units_are_those_of_the_table(tmp_path, in_cache, source, crs, name, scale):
    path = tmp_path / "made.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE points AS SELECT 0 AS point_id, 1.5 AS x, 2.0 AS y, 3.0 AS z")
        if crs is not None:
            con.execute(f"COMMENT ON TABLE points IS '{json.dumps({'crs': crs})}'")
    with open_scene([source], str(path)) as scene:
        said = scene.said()
        assert said["units"] == {"name": name, "scale": pytest.approx(scale)}
        assert (said["crs"] is None) == (crs is None)


def test_units_of_a_file_in_feet(tmp_path, in_cache):
    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales = [0.01] * 3
    header.add_crs(pyproj.CRS("EPSG:2230"))
    las = laspy.LasData(header)
    las.x, las.y, las.z = np.array([[6e6, 6e6 + 9], [2e6, 2e6 + 9], [10, 20]])
    las.write(tmp_path / "feet.laz")
    with open_scene([str(tmp_path / "feet.laz")]) as scene:
        said = scene.said()
    assert said["units"] == {"name": "ftUS", "scale": [1, 1]}
    assert said["crs"].endswith("(EPSG:2230)")


@pytest.mark.slow
def test_what_is_kept_is_taken_the_next_time_and_made_anew_for_another_file(
    house, tmp_path, in_cache, monkeypatch
):
    from spatialq.serve import cloud_tiles

    scan = tmp_path / "scan.laz"
    shutil.copy(house / "house.laz", scan)
    for _ in range(2):
        with open_scene([str(scan)]) as scene:
            scene.build()
            assert scene.clouds[0].state == "ready"
        monkeypatch.setattr(cloud_tiles, "write_tiles", None)
    scan.write_bytes(scan.read_bytes() + b" ")
    with open_scene([str(scan)]) as scene:
        scene.build()
        assert scene.clouds[0].state == "failed"
        assert "not callable" in scene.said()["clouds"][0]["message"]


@pytest.mark.parametrize(
    ("sources", "database", "said"),
    [
        (["nothing.laz"], None, "there is no such file"),
        (["nothing.duckdb"], None, "there is no such file"),
        (["a.duckdb", "b.duckdb"], None, "sources must have one database at most"),
        (["nobody"], "made", "has no table 'nobody'; there are points"),
        (["FROM points SELECT x"], "made", "a query must have columns x, y and z of points, got x"),
        (["FROM points; SELECT 1"], "made", "the query must be one statement, got 2"),
    ],
)  # fmt: skip
def test_sources_that_are_wrong(tmp_path, in_cache, monkeypatch, sources, database, said):
    monkeypatch.chdir(tmp_path)
    if database is not None:
        database = str(tmp_path / "made.duckdb")
        with duckdb.connect(database) as con:
            con.execute("CREATE TABLE points AS SELECT 0 AS point_id, 0 AS x, 0 AS y, 0 AS z")
    with pytest.raises((ValueError, OSError), match=said), open_scene(sources, database):
        pass


def test_the_page_is_served_and_said_to_be_missing(scene, tmp_path):
    server = Server(scene, tmp_path)
    with client_of(server) as client:
        answer = client.get("")
        assert answer.status_code == 503
        assert "make page" in answer.text
        (tmp_path / "index.html").write_text("<!doctype html>")
        (tmp_path / "app.js").write_text("1")
        (tmp_path / "secret.key").write_text("1")
        answer = client.get("")
        assert (answer.text, answer.status_code) == ("<!doctype html>", 200)
        assert client.get("app.js").headers["content-type"].startswith("text/javascript")
        assert client.get("app.js", headers={"range": "bytes=0-0"}).status_code == 206
        assert client.get("secret.key").status_code == 404


def test_arrow_is_one_stream(client):
    headers = {"accept": "application/vnd.apache.arrow.stream"}
    answer = client.post("sql", json={"sql": "SELECT 1 AS one"}, headers=headers)
    assert pa.ipc.open_stream(io.BytesIO(answer.content)).read_all().to_pydict() == {"one": [1]}


@pytest.mark.slow
def test_the_page_as_files_has_what_the_server_gives(scene, client, tmp_path):
    page, target = tmp_path / "page", tmp_path / "exported"
    page.mkdir()
    with pytest.raises(FileError, match="make page builds it"):
        write_page(scene, target, page)
    make_page(page)
    files = written(scene, client, target, page)
    assert {name.split("/")[0] for name in files} == {
        "app.js", "index.html", "clouds", "elements.json.js", "models", "planes.json.js",
        "scene.json.js",
    }  # fmt: skip
    with pytest.raises(FileError, match="must be a new or empty folder"):
        write_page(scene, target, page)


def written(scene, client, target, page):
    """Write the page; give its files, each of which has what the server gives."""
    said = write_page(scene, target, page)
    files = {str(path.relative_to(target)): path.read_bytes()
             for path in target.rglob("*") if path.is_file()}  # fmt: skip
    assert said["bytes"] == sum(map(len, files.values()))
    assert files["app.js"] == b"1"
    assert b"<head>\n  <meta http-equiv" in files["index.html"]
    for script in files.keys() - {"app.js", "index.html"}:
        text = re.fullmatch(rb'spatialqFile\("(.+)"\)\n', files[script])[1]
        name, data = script.removesuffix(".js"), gzip.decompress(base64.b64decode(text))
        answer = client.get(name)
        assert answer.status_code == 200
        is_json = name.endswith(".json")
        if name == "scene.json":  # a page of files has no process that learns what is selected
            assert {**json.loads(data), "is_shared": False} == answer.json()
        else:
            assert json.loads(data) == answer.json() if is_json else data == answer.content, name
    return files


@pytest.mark.slow
def test_a_page_as_files_has_the_columns_to_colour_by(tmp_path, in_cache):
    page = tmp_path / "page"
    page.mkdir()
    make_page(page)
    path = make_database(tmp_path, 3000)
    with duckdb.connect(path) as con:
        con.execute("""ALTER TABLE points ADD COLUMN ".." INTEGER DEFAULT 1""")
        con.execute("""ALTER TABLE points ADD COLUMN "a/b" INTEGER""")
        con.execute("""UPDATE points SET "a/b" = point_id""")
    with open_scene([str(path)]) as scene, client_of(Server(scene)) as client:
        scene.build()
        files = written(scene, client, tmp_path / "exported", page)
        columns = [each["name"] for each in scene.clouds[0].columns]
    there = {columns[int(each.split("/")[2])] for each in files if each.startswith("column/0/")}
    assert there == {"classification", "is_high", "kind", "deviation", "a/b"}


def make_page(folder):
    (folder / "index.html").write_text("<!doctype html><head></head>")
    (folder / "app.js").write_text("1")


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "disk full"), ValueError()])
def test_of_a_page_that_is_not_finished_nothing_stays(scene, tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    page, target = tmp_path / "page", tmp_path / "exported"
    page.mkdir()
    make_page(page)
    monkeypatch.setattr("spatialq.serve.export._write_cloud", fail)
    with pytest.raises((type(error), FileError), match=r"disk full|^$"):
        write_page(scene, target, page)
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.slow
def test_a_page_needs_the_folder_above_it(scene, tmp_path):
    page = tmp_path / "page"
    page.mkdir()
    make_page(page)
    with pytest.raises(FileError, match=r"output: '.*x': there is no folder '.*/nofolder'"):
        write_page(scene, tmp_path / "nofolder" / "x", page)
    assert list(tmp_path.iterdir()) == [page]
    (tmp_path / "empty").mkdir()
    assert write_page(scene, tmp_path / "empty", page)["points"] == scene.clouds[0].target.points
    assert (tmp_path / "empty" / "scene.json.js").is_file()
