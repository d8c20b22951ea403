"""Points in degrees: what is advised can be done with a table."""

import duckdb
import pytest

import spatialq


def test_a_table_in_degrees_is_told_what_reprojects_it():
    with spatialq.connect() as con:
        con.execute("""
            CREATE TABLE degrees AS SELECT 0 AS point_id, 10.0 AS x, 53.5 AS y, 1.0 AS z;
            COMMENT ON TABLE degrees IS '{"crs": "EPSG:4326"}'
        """)
        with pytest.raises(duckdb.Error) as caught:
            con.sql("FROM thin('degrees')").fetchall()
        assert "thin: the CRS of 'degrees'" in str(caught.value)
        assert "reproject 'degrees' by spatialq_transform, or read its file" in str(caught.value)
        con.execute("""
            CREATE TABLE metres AS SELECT point_id, unnest(
                spatialq_transform(x, y, z, 'EPSG:4326', 'EPSG:25832')
            ) FROM degrees
        """)
        assert con.sql("FROM thin('metres', unit := 1)").fetchall() == [(0,)]
