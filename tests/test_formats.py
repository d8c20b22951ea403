"""The registries of formats, and the names of files as tables."""

import json
import subprocess
import sys
import warnings
from collections import Counter

import laspy
import pytest

import spatialq
from spatialq.database import frames
from spatialq.database.native import loading
from spatialq.database.writers import writers
from spatialq.errors import CrsWarning
from spatialq.io.formats import readers
from spatialq.io.source import Layout

from .command_line import spatialq_command
from .io.las_files import write

NATIVE = pytest.mark.skipif(bool(loading.problem()), reason=f"extension: {loading.problem()}")


@pytest.mark.parametrize("registry", [readers, writers])
def test_an_ending_means_one_format(registry):
    counts = Counter(suffix for each in registry() for suffix in each.suffixes)
    assert set(counts.values()) == {1}
    names = {"ept.json", "metadata.json", "tileset.json"}  # of files that stand for their folder
    assert all(suffix == suffix.lower() for suffix in counts)
    assert all(suffix.startswith(".") for suffix in counts.keys() - names)
    assert all(each.keeps for each in registry())


def test_a_reader_needs_no_heavy_library_before_a_file_is_opened():
    code = (
        "import sys; from spatialq.io.formats import readers; readers(); "
        "print(set(sys.modules) & {'numba', 'laspy', 'pye57', 'rasterio', 'pyogrio', 'pyproj'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_command_lists_all(tmp_path):
    listed = json.loads(spatialq_command("formats", "--json", cwd=tmp_path).stdout)
    named = [(row["format"], row["use"].partition(":")[0]) for row in listed]
    assert named == [(each.name, "read") for each in readers()] + [
        (each.name, "write") for each in writers()
    ]
    shown = spatialq_command("formats", cwd=tmp_path).stdout
    assert all(suffix in shown for each in (*readers(), *writers()) for suffix in each.suffixes)


@NATIVE
def test_the_name_of_a_file_is_a_table(tmp_path):
    path = write(tmp_path / "A CLOUD.LAZ", 7, 500, crs="EPSG:25832")
    with spatialq.connect() as con:
        named, read = (con.sql(f"FROM {source} ORDER BY point_id").fetchall()
                       for source in (f"'{path}'", f"read_points('{path}')"))  # fmt: skip
        assert len(named) == 500
        assert named == read
        assert len(con.sql(f"FROM '{tmp_path}/*.LAZ'").fetchall()) == 500
        ((subject, crs),) = frames.systems(con, f"FROM '{path}'")
        assert (subject, json.loads(crs)["id"]["code"]) == (str(path), 25832)
        with pytest.raises(Exception, match="there is no such file"):
            con.sql(f"FROM '{tmp_path}/none.laz'")


def test_a_function_takes_the_name_of_a_file(tmp_path, monkeypatch):
    write(tmp_path / "cloud.laz", 7, 2000, crs="EPSG:25832")
    monkeypatch.chdir(tmp_path)
    with spatialq.connect() as con:
        con.execute("CREATE SCHEMA survey; CREATE TABLE survey.las AS FROM read_las('cloud.laz')")
        expected = con.sql("FROM owm_ground('survey.las', unit := 1) ORDER BY ALL").fetchall()
        assert 0 < len(expected) < 2000
        for name in ("cloud.laz", "./cloud.laz", f"{tmp_path}/cl*.laz"):
            with warnings.catch_warnings(action="error", category=CrsWarning):
                found = con.sql(f"FROM owm_ground('{name}') ORDER BY ALL").fetchall()
            assert found == expected


@pytest.mark.parametrize(
    "query", ["FROM '{}'", "FROM read_las('{}')", "SELECT x FROM seen", "FROM t JOIN u USING (x)"]
)
def test_scale_and_offset_are_those_of_the_files(tmp_path, query):
    path = write(tmp_path / "a.las", 7, 50)
    with spatialq.connect() as con:
        spatialq.load(con, path, "t")
        con.execute(f"CREATE VIEW seen AS FROM read_points('{path}'); CREATE TABLE u (x DOUBLE)")
        layout = frames.layout(con, query.format(path))
        assert layout == Layout((0.001,) * 3, (500_000.0, 5_000_000.0, 100.0))


def test_files_of_different_scales_have_none_in_common(tmp_path):
    other = tmp_path / "b.las"
    header = laspy.LasHeader(point_format=7, version="1.4")
    header.scales = [0.5] * 3
    laspy.LasData(header).write(other)
    with spatialq.connect() as con:
        for files in ([write(tmp_path / "a.las", 7, 50), other], [other, tmp_path / "a.las"]):
            spatialq.load(con, files[0], "t", mode="replace")
            assert frames.layout(con, "FROM t") is not None
            spatialq.load(con, files[1], "t")
            assert frames.layout(con, "FROM t") is None
