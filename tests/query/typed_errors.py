"""What mypy answers: each line with `# error` is one, and no other is."""

import duckdb

import spatialq as sq


def wrong(con: duckdb.DuckDBPyConnection) -> None:
    points = sq.read_las(con, "tile.laz")
    points.classify_ground(objectwidth=3)  # error
    points.classify_ground(overlap="wide")  # error
    points.classify_ground(device=1)  # error
    points.intersects_with()  # error
    points.wher("z > 2")  # error
    points.where(3)  # error
    points.select("x").classify_ground()  # error
    points.join("t", "x", how="outer")  # error
    house = sq.read_ifc(con, "house.ifc", geometry="none")  # error
    house.intersects_with(points)  # error
    house.touches()  # error
    house.touches("t").elements("c")  # error
    sq.read_las("tile.laz")  # error
