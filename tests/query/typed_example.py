"""Code as users write it, which mypy --strict accepts: each variable has the type that it says."""

from typing import TYPE_CHECKING

import duckdb

import spatialq as sq

if TYPE_CHECKING:
    import geopandas
    import polars as pl
    import pyarrow as pa


def ground(con: duckdb.DuckDBPyConnection) -> sq.Points:
    points = sq.read_las(con, "tile.laz").within((0, 0, 100, 100))
    return points.classify_ground(object_width=40).where("height > 2").order("height").limit(10)


def outputs(con: duckdb.DuckDBPyConnection) -> tuple[object, ...]:
    high = ground(con).aggregate("max(height) AS top", group=["classification"])
    table: pa.Table = high.to_arrow()
    frame: pl.DataFrame = high.to_polars()
    shapes: geopandas.GeoDataFrame = ground(con).to_geopandas()
    text: str = high.sql() + high.explain()
    count: int = high.count()
    return table, frame, shapes, text, count


def clash(con: duckdb.DuckDBPyConnection) -> sq.Pairs:
    house: sq.Elements = sq.read_ifc(con, "house.ifc", geometry="exact")
    beams = house.is_a("IfcBeam").storey("upper floor").elements_where("IfcBeam, material=oak")
    pairs: sq.Pairs = beams.intersects_with("ducts", tolerance=0.002).with_names()
    walls: sq.Elements = beams.touches(house.is_a("IfcWall")).elements("b")
    return walls.nearest(house, k=2).join(pairs, "a", how="anti")


def others(con: duckdb.DuckDBPyConnection) -> tuple[sq.Query, ...]:
    nodes: sq.Nodes = ground(con).build_lod(strategy="random")
    nodes.lod_select({"eye": [0, 0, 9], "target": [0, 0, 0]}, pixels=2)
    features: sq.Query = sq.read_grid(con, "hill.tif").pops_features(scales=[300.0])
    chosen: sq.Grid = features.select("x", "y", "mean AS z").as_kind(sq.Grid)
    objects: sq.Objects = sq.read_ifc_objects(con, "house.ifc").objects_where("IfcWall")
    planes: sq.Query = ground(con).pin("cpu").plane_elements("elements")
    return chosen, objects, planes, sq.table(con, "t").union(sq.from_sql(con, "SELECT 1"))
