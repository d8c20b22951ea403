"""What is kept for a database instance ends with it, and is nobody else's."""

import gc
import sys
from datetime import UTC, datetime

import duckdb
import pytest

import spatialq
from spatialq.database import instances
from spatialq.database.native import loading
from spatialq.io.access import Access, asked_by
from spatialq.io.formats import open_source
from spatialq.io.source import ROW_GROUP
from spatialq.planner import log

from ..open_files import open_files


def native():
    if loading.problem():
        pytest.skip(f"extension: {loading.problem()}")
    return spatialq.connect()


def lists():
    con = duckdb.connect()
    spatialq.install(con)
    return con


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("make", [native, lists])
def test_a_file_of_which_some_rows_were_read_is_closed_with_the_database(make, tmp_path):
    path = tmp_path / "cloud.xyz"
    path.write_text("x y z\n" + f"{1:.50f} 2 3\n" * 2 * ROW_GROUP)
    con, other = make(), make()
    for each in (con, other):
        with asked_by(Access, instances.of(each).number):  # as DuckDB has a part read
            assert open_source("test", path).read_span(0, ["x"]).num_rows == ROW_GROUP
    con.close()
    del con, each
    gc.collect()
    make().close()
    assert path in open_files()
    other.close()
    del other
    gc.collect()
    make().close()
    assert path not in open_files()


def test_calls_of_before_a_database_was_opened_are_not_in_its_log(tmp_path):
    def short(name):
        return log.Entry(datetime.now(UTC), name, 9, "cpu", "asked for", None, 1e-3, None)

    with spatialq.connect(tmp_path / "one.duckdb") as con:
        log.add(short("first"))
        log.add(short("second"))  # within a second: it is not yet written
    with spatialq.connect(tmp_path / "other.duckdb") as con:
        log.add(log.Entry(datetime.now(UTC), "third", 9, "cpu", "asked for", None, 1.0, None))
        assert con.sql("SELECT function FROM spatialq_calls").fetchall() == [("third",)]
