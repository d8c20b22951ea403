"""Clashes as BCF, from the command line and from SQL, on the house of the demo."""

import io
import zipfile

import duckdb
import numpy as np
import pytest
from PIL import Image

import spatialq
from spatialq.demo.house import write_house
from spatialq.export.bcf import guid
from spatialq.export.camera import Camera
from spatialq.workflows.clash_bcf import key_of

from .command_line import rows, spatialq_command
from .conftest import made_once
from .export.ray_casting import cast

WIDE, TALL = 200, 150


def write_archives(folder):
    write_house(folder / "house.ifc")
    for name in ("a.bcf", "b.bcf"):
        rows("clash", folder / "house.ifc", "-o", folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_once(tmp_path_factory, "clash_bcf", write_archives)


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        yield con


def fetched(con, query):
    found = con.sql(query)
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def test_each_clash_is_a_topic_with_both_elements(con, folder):
    clashes = rows("clash", folder / "house.ifc")["clashes"]
    topics = fetched(con, f"FROM read_bcf('{folder}/a.bcf')")
    assert {row["topic"] for row in topics} == {guid(key_of(row["a"], row["b"])) for row in clashes}
    assert guid(key_of("x", "y")) == guid(key_of("y", "x"))
    chosen = fetched(con, f"FROM read_bcf_components('{folder}/a.bcf') WHERE role = 'selection'")
    for row in clashes:
        topic = guid(key_of(row["a"], row["b"]))
        assert {e["global_id"] for e in chosen if e["topic"] == topic} == {row["a"], row["b"]}
    for topic in topics:
        assert (topic["topic_type"], topic["status"], topic["models"]) == (
            "Clash", "Open", ["house.ifc"],
        )  # fmt: skip


def test_the_bytes_are_the_same_each_time(folder):
    assert (folder / "a.bcf").read_bytes() == (folder / "b.bcf").read_bytes()


@pytest.mark.slow
def test_both_elements_are_seen(con, folder):
    """Rays through the camera of each viewpoint, against what it says is visible."""
    meshes = {
        row["global_id"]: np.reshape(row["mesh"]["vertices"], (-1, 3))[
            np.reshape(row["mesh"]["faces"], (-1, 3))
        ]
        for row in fetched(con, f"SELECT global_id, mesh FROM read_ifc('{folder}/house.ifc')")
    }
    components = fetched(con, f"FROM read_bcf_components('{folder}/a.bcf')")
    ways = set()
    for view in fetched(con, f"FROM read_bcf_viewpoints('{folder}/a.bcf')"):
        own = [row for row in components if row["viewpoint"] == view["viewpoint"]]
        shown = [row["global_id"] for row in own if row["role"] == "visibility"]
        pair = [row["global_id"] for row in own if row["role"] == "selection"]
        veils = {row["global_id"] for row in own if len(row["color"] or "") == 8}
        ways.add("veil" if veils & set(pair) else "plain")
        target = np.add(view["eye"], view["view_direction"])
        camera = Camera(eye=tuple(view["eye"]), target=tuple(target), up=tuple(view["up"]),
                        fov=view["fov"], width=WIDE, height=TALL)  # fmt: skip
        seen = seen_by(camera, {each: meshes[each] for each in shown})
        # behind what is transparent there is the other one
        seen |= seen_by(camera, {each: meshes[each] for each in shown if each not in veils})
        assert set(pair) <= seen
        assert not set(pair) <= veils
    assert ways == {"veil", "plain"}


def seen_by(camera, meshes):
    owner = np.repeat(np.arange(len(meshes)), [len(each) for each in meshes.values()])
    item, _, _ = cast(camera, np.concatenate(list(meshes.values())), WIDE, TALL)
    return {list(meshes)[k] for k in np.unique(owner[item[item >= 0]])}


def test_the_snapshot_shows_both_in_their_colours(folder):
    with zipfile.ZipFile(folder / "a.bcf") as archive:
        names = [name for name in archive.namelist() if name.endswith("snapshot.png")]
        pictures = [Image.open(io.BytesIO(archive.read(name))) for name in names]
    assert len(names) == 5
    for picture in pictures:
        assert picture.size == (800, 600)
        red, green, blue = np.moveaxis(np.asarray(picture).astype(int), 2, 0)
        assert ((red > 2 * blue) & (red > 2 * green)).sum() > 500
        # of a conduit in a wall as well, and of columns that are equal
        assert ((blue > 2 * red) & (blue > green)).sum() > 500


def test_sql_writes_it_with_what_its_columns_say(con, folder, tmp_path):
    spatialq.load(con, folder / "house.ifc")
    query = (
        "SELECT *, 'pipes' AS topic, 'High' AS priority, 'd@e.f' AS assigned_to, "
        "'Services' AS title, ['x'] AS labels, ['Move it'] AS comments "
        "FROM intersects_with('elements') ORDER BY a, b"
    )
    for version in ("2.1", "3.0"):
        path = tmp_path / f"{version}.bcf"
        assert spatialq.write(con.sql(query), path, bcf_version=version, author="me") == 1
        (topic,) = fetched(con, f"FROM read_bcf('{path}')")
        assert topic["bcf_version"] == version
        named = ("title", "priority", "assigned_to", "labels", "author")
        assert [topic[name] for name in named] == ["Services", "High", "d@e.f", ["x"], "me"]
        assert topic["description"].count("\n") == 4
        (comment,) = fetched(con, f"FROM read_bcf_comments('{path}')")
        assert comment["comment"] == "Move it"


def test_a_macro_writes_the_same_bytes(con, folder, tmp_path):
    """Of the same rows, whether these name the models or an argument does."""
    table = tmp_path / "clashes.parquet"
    rows("clash", folder / "house.ifc", "-o", table)
    con.execute(f"CREATE OR REPLACE TEMP TABLE clashes AS FROM '{table}'")
    con.execute(
        "CREATE OR REPLACE TEMP VIEW unnamed AS SELECT * EXCLUDE (a_file, b_file) FROM clashes"
    )
    for call in ("'clashes', '{}'", f"'unnamed', '{{}}', models := '{folder}/*.ifc'"):
        path = tmp_path / f"{len(call)}.bcf"
        found = con.sql(f"FROM write_bcf({call.format(path)})").fetchall()
        assert found == [(5, [str(path)])]
        assert path.read_bytes() == (folder / "a.bcf").read_bytes()
    with pytest.raises(duckdb.Error, match=r"write_bcf: rows of '.*' must say .*, or models must"):
        con.sql(f"FROM write_bcf('unnamed', '{tmp_path}/c.bcf')").fetchall()


def test_a_macro_takes_times_and_comments(con, folder, tmp_path):
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE said AS SELECT min(global_id) AS a, max(global_id) AS b, "
        "DATE '2026-01-02' AS due, 'two' AS topic, [{text: 'Move it', author: 'g@h.i', "
        "date: TIMESTAMP '2026-01-03 04:05:06'}] AS comments, NULL::DOUBLE AS x, 1.0 AS y "
        f"FROM read_ifc('{folder}/house.ifc') WHERE ifc_class = 'IfcWall'"
    )
    path = tmp_path / "a.bcf"
    query = f"FROM write_bcf('said', '{path}', models := '{folder}/house.ifc', author := 'j@k.l')"
    assert con.sql(query).fetchall() == [(1, [str(path)])]
    (topic,) = fetched(con, f"FROM read_bcf('{path}')")
    assert (str(topic["due"]), topic["author"]) == ("2026-01-02 00:00:00", "j@k.l")
    (said,) = fetched(con, f"FROM read_bcf_comments('{path}')")
    assert (said["comment"], said["author"]) == ("Move it", "g@h.i")
    assert str(said["created"]) == "2026-01-03 04:05:06"


def written(con, folder, path, columns):
    """Write the walls of the house as a topic with more columns."""
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE odd AS SELECT min(global_id) AS a, max(global_id) AS b, "
        f"{columns} FROM read_ifc('{folder}/house.ifc') WHERE ifc_class = 'IfcWall'"
    )
    con.sql(f"FROM write_bcf('odd', '{path}', models := '{folder}/house.ifc')").fetchall()
    (topic,) = fetched(con, f"FROM read_bcf('{path}')")
    said = con.sql(f"SELECT comment FROM read_bcf_comments('{path}') ORDER BY comment").fetchall()
    return topic, [comment for (comment,) in said]


@pytest.mark.parametrize(
    ("columns", "labels", "comments"),
    [
        ("'urgent' AS labels, 'Move it' AS comments", ["urgent"], ["Move it"]),
        ("[NULL, 'x'] AS labels, [NULL, 'y', 'z'] AS comments", ["x"], ["y", "z"]),
        ("[1, 2] AS labels, 3 AS comments", ["1", "2"], ["3"]),
        ("['x'] AS labels, [{text: 'y', author: NULL}] AS comments", ["x"], ["y"]),
    ],
)
def test_one_label_or_comment_is_a_list_of_one(con, folder, tmp_path, columns, labels, comments):
    topic, said = written(con, folder, tmp_path / "a.bcf", columns)
    assert (topic["labels"], said) == (labels, comments)


def test_numbers_are_texts_and_a_place_that_is_nowhere_is_that_of_the_box(con, folder, tmp_path):
    columns = "5 AS title, 7 AS status, 3 AS priority, 'x' AS comments, 0.0 AS y, 0.0 AS z"
    path = tmp_path / "a.bcf"
    topic, _ = written(con, folder, path, f"{columns}, 'nan'::DOUBLE AS x")
    assert (topic["title"], topic["status"], topic["priority"]) == ("5", "7", "3")
    (seen,) = fetched(con, f"SELECT eye FROM read_bcf_viewpoints('{path}')")
    written(con, folder, tmp_path / "b.bcf", "NULL AS x, 'x' AS comments")
    (box,) = fetched(con, f"SELECT eye FROM read_bcf_viewpoints('{tmp_path}/b.bcf')")
    assert seen == box


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("'left' AS x", "x of '.*a.bcf' must be metres, got 'left'"),
        ("'deep' AS penetration", "penetration of '.*a.bcf' must be metres, got 'deep'"),
        ("'soon' AS due", "due of '.*a.bcf' must be a date or time such as .*, got 'soon'"),
        ("5 AS due", "due of '.*a.bcf' must be a date or time such as .*, got 5"),
        ("[{text: 'x', mood: 'y'}] AS comments", "comments of '.*' must be texts, or structs of"),
        ("[{text: 'x', date: 'soon'}] AS comments", "comments of '.*' must be texts, or structs"),
        ("1 AS b_file, * REPLACE (1 AS a)", "element '1' is in none of the models"),
    ],
)
def test_values_that_mean_nothing_are_one_sentence(con, folder, tmp_path, columns, reason):
    con.execute(
        "CREATE OR REPLACE TEMP TABLE wrong AS "
        f"SELECT {columns if '*' in columns else '*, ' + columns} FROM (SELECT 'x' AS a, 'y' AS b)"
    )
    with pytest.raises(duckdb.Error, match=f"ValueError: write_bcf: .*{reason}"):
        con.sql(
            f"FROM write_bcf('wrong', '{tmp_path}/a.bcf', models := '{folder}/house.ifc')"
        ).fetchall()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT 1 AS a", "must be clashes with the GlobalIds a and b, got a, without b"),
        ("SELECT 'x' AS a, 'y' AS b", "must say in columns a_file and b_file of which models"),
    ],
)
def test_rows_that_are_no_clashes_are_refused(tmp_path, query, reason):
    result = spatialq_command("sql", query, "-o", tmp_path / "a.bcf")
    assert result.returncode == 1
    assert reason in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_elements_and_versions_that_are_not_there(con, folder, tmp_path):
    rows = con.sql(f"SELECT 'x' AS a, 'y' AS b, '{folder}/house.ifc' AS a_file")
    with pytest.raises(ValueError, match="element 'x' is in none of the models"):
        spatialq.write(rows, tmp_path / "a.bcf")
    with pytest.raises(ValueError, match=r"bcf_version must be '2.1' or '3.0', got '2.0'"):
        spatialq.write(rows, tmp_path / "a.bcf", bcf_version="2.0")


def edited(path, target, **changes):
    """Write an archive anew, as if somebody had edited its first topic; give its GUID."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        (first, *_) = sorted(name for name in old.namelist() if name.endswith("markup.bcf"))
        for name in old.namelist():
            text = old.read(name)
            if name == first:
                for before, after in changes["texts"]:
                    assert before in text
                    text = text.replace(before, after)
            new.writestr(name, text)
    return first.partition("/")[0]


@pytest.mark.parametrize("has_own_guid", [True, False])
def test_what_others_said_comes_back(con, folder, tmp_path, has_own_guid):
    """Also from a program that gives topics GUIDs of its own: then by the selected elements."""
    other = b"00000000-0000-4000-8000-000000000000"
    texts = [
        (b'TopicStatus="Open"', b'TopicStatus="Resolved"'),
        (b"<CreationAuthor>spatialq</CreationAuthor>",
         b"<CreationAuthor>spatialq</CreationAuthor><AssignedTo>d@e.f</AssignedTo>"),
        (b"  <Viewpoints", b'  <Comment Guid="' + other + b'"><Date>2026-01-02T03:04:05Z</Date>'
         b"<Author>g@h.i</Author><Comment>Moved</Comment></Comment>\n  <Viewpoints"),
    ]  # fmt: skip
    if not has_own_guid:
        with zipfile.ZipFile(folder / "a.bcf") as archive:
            names = sorted(each for each in archive.namelist() if each.endswith("markup.bcf"))
        texts.append(
            (b'<Topic Guid="' + names[0].partition("/")[0].encode(), b'<Topic Guid="' + other)
        )
    topic = edited(folder / "a.bcf", tmp_path / "back.bcf", texts=texts)
    result = spatialq_command(
        "clash", folder / "house.ifc", "--bcf-in", tmp_path / "back.bcf", "-o", tmp_path / "c.bcf"
    )
    assert result.returncode == 0, result.stderr
    assert "5 clashes are in" in result.stderr
    (row,) = fetched(con, f"FROM read_bcf('{tmp_path}/c.bcf') WHERE status = 'Resolved'")
    assert (row["topic"], row["assigned_to"]) == (topic, "d@e.f")
    said = fetched(con, f"FROM read_bcf_comments('{tmp_path}/c.bcf') WHERE topic = '{topic}'")
    assert [(each["comment"], each["author"]) for each in said][1:] == [("Moved", "g@h.i")]
    assert str(said[1]["created"]) == "2026-01-02 03:04:05"


def test_clashes_keep_their_order_and_get_columns(folder):
    before = rows("clash", folder / "house.ifc")["clashes"]
    after = rows("clash", folder / "house.ifc", "--bcf-in", folder / "*.bcf")["clashes"]
    assert [(row["a"], row["b"]) for row in after] == [(row["a"], row["b"]) for row in before]
    assert {row["status"] for row in after} == {"Open"}
