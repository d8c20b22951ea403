"""`ground_surface` as a job: the cells of one call on all files, to the bit."""

import pytest

import spatialq
from spatialq import cluster
from tests.cluster import surveys
from tests.conftest import made_once
from tests.examples import combinations

CASES = {
    "seeds": {},
    "narrow windows": {"window_size": 6.0, "resolution": 2.5},
    "extrapolated": {"extrapolate": True},
    "of points": {"source": "points", "resolution": 0.7},
    "of nearest points": {"source": "points", "method": "idw", "neighbours": 3},
    "of thin points": {"source": "points", "thin": True, "resolution": 3.0},
    "bounds": {"bounds": (1012.0, 5007.5, 1071.25, 5048.0)},
}


@pytest.fixture(scope="module")
def tiles(tmp_path_factory):
    return made_once(
        tmp_path_factory, "six_tiles", lambda path: surveys.make(path, columns=3, rows=2)
    )


@pytest.mark.parametrize(("name", "tile_size"), combinations(CASES, [None, 17.0]))
def test_cells_are_those_of_one_call(at_once, tiles, tmp_path, name, tile_size):
    options = surveys.QUIET | CASES[name]
    source, out = f"{tiles}/*.laz", tmp_path / "out"
    made = cluster.run("ground_surface", source, out, tile_size=tile_size, **options)
    given = "".join(
        f", {key} := {list(value) if isinstance(value, tuple) else repr(value)}"
        for key, value in options.items()
    )
    with spatialq.connect() as con:
        con.execute(f"CREATE TABLE expected AS FROM ground_surface('{source}'{given})")
        found = cluster.table(con, out, "found")
        expected = con.sql("FROM expected")
        assert (found.columns, found.types) == (expected.columns, expected.types)
        for one, other in (("expected", "found"), ("found", "expected")):
            ((left,),) = con.sql(
                f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})"
            ).fetchall()
            assert left == 0
        ((cells, heights),) = con.sql("SELECT count(*), count(z) FROM found").fetchall()
    assert made["rows"] == cells > heights > 300 or options.get("extrapolate")
    assert made["parts"] == 1


def test_no_point_gives_no_cell(at_once, tiles, tmp_path):
    with pytest.warns(spatialq.errors.FileWarning, match="no point is within the bounds") as found:
        made = cluster.run(
            "ground_surface", f"{tiles}/*.laz", tmp_path / "out", bounds=(0.0, 0.0, 1.0, 1.0),
            **surveys.QUIET,
        )  # fmt: skip
    assert (made["rows"], made["parts"]) == (0, 0)
    assert [each.filename for each in found] == [__file__]
