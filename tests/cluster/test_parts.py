"""Parts are GeoParquet, which other programs open."""

import json
import struct

import numpy as np
import pyarrow.parquet as pq
import pytest

import spatialq
from spatialq.cluster import points
from spatialq.cluster.points import write_rows
from spatialq.io.crs import from_text

CRS = from_text("EPSG:25832")


def rows_of(n, *axes):
    rng = np.random.default_rng(2)
    return {"point_id": rng.permutation(n)} | {axis: rng.uniform(-9, 9, n) for axis in axes}


@pytest.mark.parametrize("axes", ["xyz", "xy"])
@pytest.mark.parametrize("n", [0, 1, 5000])
@pytest.mark.parametrize("crs", [None, CRS])
def test_a_part_is_geoparquet(tmp_path, monkeypatch, axes, n, crs):
    monkeypatch.setattr(points, "ROW_GROUP", 1000)
    rows = rows_of(n, *axes)
    write_rows(rows, tmp_path / "part.parquet", crs=crs)
    file = pq.ParquetFile(tmp_path / "part.parquet")
    geo = json.loads(file.metadata.metadata[b"geo"])
    assert geo["version"] == "1.1.0"
    assert geo["primary_column"] == "geometry"
    about = geo["columns"]["geometry"]
    assert about["encoding"] == "WKB"
    assert about["crs"] == (None if crs is None else json.loads(crs))
    assert about["geometry_types"] == [{"xyz": "Point Z", "xy": "Point"}[axes]]
    found = file.read()
    ends = [getattr(rows[axis], end)() for end in ("min", "max") for axis in axes if n]
    assert about.get("bbox") == (ends or None)
    layout = "<BI" + "d" * len(axes)
    code = {"xyz": 1001, "xy": 1}[axes]
    places = np.column_stack([found[axis] for axis in axes]).tolist()
    expected = [struct.pack(layout, 1, code, *place) for place in places]
    assert found["geometry"].to_pylist() == expected
    names = ("xmin", "ymin", "xmax", "ymax")
    boxes = [dict(zip(names, 2 * place[:2], strict=True)) for place in places]
    assert found["bbox"].to_pylist() == boxes
    order = np.argsort(found["point_id"].to_numpy())
    ids = np.argsort(rows["point_id"])
    for axis in axes:
        assert np.array_equal(found[axis].to_numpy()[order], rows[axis][ids])
    covering = about["covering"]["bbox"]
    assert covering == {name: ["bbox", name] for name in names}


def test_boxes_of_row_groups_are_small(tmp_path, monkeypatch):
    """So that a reader with a box leaves most of them out."""
    monkeypatch.setattr(points, "ROW_GROUP", 1000)
    write_rows(rows_of(50_000, *"xyz"), tmp_path / "part.parquet")
    metadata = pq.read_metadata(tmp_path / "part.parquet")
    names = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
    areas = []
    for k in range(metadata.num_row_groups):
        group = metadata.row_group(k)
        ends = {name: group.column(names.index(f"bbox.{name}")).statistics
                for name in ("xmin", "ymin", "xmax", "ymax")}  # fmt: skip
        areas.append((ends["xmax"].max - ends["xmin"].min) * (ends["ymax"].max - ends["ymin"].min))
    assert metadata.num_row_groups == 50
    assert max(areas) < 0.2 * 18 * 18


def test_duckdb_knows_geometry_and_crs(tmp_path):
    write_rows(rows_of(10, *"xyz"), tmp_path / "part.parquet", crs=CRS)
    with spatialq.connect() as con:
        rows = con.sql(f"SELECT geometry FROM '{tmp_path}/part.parquet'")
        assert str(rows.types[0]).startswith("GEOMETRY(")
