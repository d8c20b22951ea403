"""What the points of many files are, in one pass: counts, cells of a grid, and repeated points.

All that grows with the points is in tables of DuckDB, which go to files where they are larger than
memory.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from spatialq.errors import FileError
from spatialq.functions.sql_text import identifier
from spatialq.runtime import progress as running
from spatialq.workflows.cloud_points import AXES, NOISE

if TYPE_CHECKING:
    import duckdb

    from spatialq.io.source import PointSource, Progress

STRIP, CLASS, RETURN, RETURNS = (
    "point_source_id", "classification", "return_number", "number_of_returns",
)  # fmt: skip
RANGES = ("intensity", "gps_time", "red", "green", "blue")
"""Columns of which the least and the greatest value are kept."""
FLAGS = ("withheld", "overlap", "synthetic")
TIME = "gps_time"
ROWS = 1_000_000
"""Points of one query, at least."""
SPACINGS = 4
"""Sides of a cell in distances of points: 16 points, so that an empty one is a hole."""
MIN_POINTS = 4
"""Of a strip in a cell."""
FLAT = math.tan(math.radians(10))
"""The steepest slope of cells that are compared, as the Lidar Base Specification of the USGS has
it for differences of swaths."""
SMOOTH = 0.1
"""Metres that points of a cell may lie off their plane, as a root mean square: vegetation does."""


@dataclass
class Survey:
    """Files of points as they are counted.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
        Gets the tables `counted`, `cells` and `places`.
    clouds : sequence of PointSource
    boxes : sequence of four of float
        xmin, ymin, xmax, ymax of each file, which it may claim.
    """

    con: "duckdb.DuckDBPyConnection"
    clouds: "Sequence[PointSource]"
    boxes: Sequence[Sequence[float]]
    cell: float = field(init=False)
    """Side of the cells, in the unit of x and y."""
    step: float = field(init=False)
    """Points nearer than half of it are at one place."""
    height: float = field(init=False, default=0.0)
    """From which heights are summed, so that the sums are exact."""
    unread: dict[int, FileError] = field(init=False, default_factory=dict)
    """Why files could not be read to their end, by their number; nothing of them is counted."""

    @property
    def read_files(self) -> list[int]:
        """The numbers of the files that were read."""
        return [number for number in range(len(self.clouds)) if number not in self.unread]

    def __post_init__(self) -> None:
        """Choose the side of the cells."""
        spacings = sorted(
            math.sqrt((box[2] - box[0]) * (box[3] - box[1]) / cloud.rows)
            for cloud, box in zip(self.clouds, self.boxes, strict=True)
            if cloud.rows and box[2] > box[0] and box[3] > box[1]
        )
        self.cell = _round_up(SPACINGS * spacings[len(spacings) // 2]) if spacings else 1.0
        layouts = [cloud.layout.scales for cloud in self.clouds if cloud.layout is not None]
        self.step = min((abs(scale) for scales in layouts for scale in scales), default=1e-6)
        heights = [cloud.box[2] for cloud in self.clouds if cloud.box is not None]
        self.height = heights[0] if heights else 0.0

    def read(self, tick: "Progress") -> None:
        """Read the points of all files, file by file; what is damaged becomes `unread`."""
        for number, cloud in enumerate(self.clouds):
            done = 0
            try:
                for points in _parts(cloud):
                    running.check()
                    self._add(number, cloud, points)
                    done += points.num_rows
                    tick(cloud.path, done, cloud.rows)
            except FileError as error:
                self.unread[number] = error
                for (table,) in self.con.execute(TABLES).fetchall():
                    self.con.execute(f"DELETE FROM {table} WHERE file = {number}")
        if not self.read_files:
            return
        sums = ", ".join(f"sum({name})::DOUBLE AS {name}" for name in SUMS)
        self.con.execute(f"""
            CREATE TABLE cells AS
            SELECT file, strip, cx, cy, {sums} FROM parts GROUP BY ALL;
            DROP TABLE parts
        """)

    def _add(self, number: int, cloud: "PointSource", points: pa.Table) -> None:
        """Count some points."""
        con, there = self.con, set(cloud.schema.names)
        con.register("points", points)

        def column(name: str, kind: str, absent: str = "NULL") -> str:
            # files of other formats may have text, fractions and NaN in a column of the name
            value = f"TRY_CAST({identifier(name)} AS {kind})" if name in there else "NULL"
            return f"coalesce({value}, {absent})::{kind}"

        known = {name: column(name, "DOUBLE") for name in (*AXES, *RANGES)}
        ends = ", ".join(
            f"{end}({value}) FILTER (isfinite({value})) AS {name}_{side}"
            for name, value in known.items()
            for end, side in (("min", "low"), ("max", "high"))
        )
        flags = ", ".join(
            f"count(*) FILTER ({column(name, 'BOOLEAN', 'false')}) AS {name}" for name in FLAGS
        )
        groups = ", ".join(
            f"{column(name, 'INTEGER')} AS {name}" for name in (CLASS, RETURN, RETURNS, STRIP)
        )
        self._keep("counted", f"""
            SELECT {number} AS file, {groups}, count(*) AS points,
                count(*) FILTER ({_outside(cloud)}) AS outside, {flags}, {ends}
            FROM points GROUP BY ALL
        """)  # fmt: skip
        cell, middle = double(self.cell), double(0.5)
        of_class = column(CLASS, "INTEGER", "0")
        single = (
            f"{column(RETURNS, 'INTEGER', '1')} <= 1 AND {of_class} NOT IN {NOISE} "
            f"AND NOT {column('withheld', 'BOOLEAN', 'false')}"
        )
        sums = ", ".join(f"sum({product}) FILTER (single) AS {name}" for name, product in
                         PRODUCTS.items())  # fmt: skip
        self._keep("parts", f"""
            WITH placed AS (
                SELECT *, floor(x / {cell})::BIGINT AS cx, floor(y / {cell})::BIGINT AS cy,
                    {column(STRIP, "INTEGER", "0")} AS strip,
                    {column(RETURN, "INTEGER", "1")} <= 1 AS is_first,
                    {of_class} = 2 AS is_ground, {single} AS single
                FROM points
            ), local AS (
                SELECT *, x - (cx + {middle}) * {cell} AS u, y - (cy + {middle}) * {cell} AS v,
                    z - {double(self.height)} AS w
                FROM placed
            )
            SELECT {number} AS file, strip, cx, cy, count(*) AS n,
                count(*) FILTER (is_first) AS pulses, count(*) FILTER (is_ground) AS ground,
                count(*) FILTER (single) AS m, {sums}
            FROM local GROUP BY ALL
        """)  # fmt: skip
        whole = ", ".join(f"round({axis} / {double(self.step)}) + 0.0" for axis in AXES)
        self._keep(
            "places",
            f"""
            SELECT {number} AS file, hash({whole}, {column(TIME, "DOUBLE", "0")}) AS place
            FROM points
        """,
        )
        con.unregister("points")

    def _keep(self, table: str, query: str) -> None:
        """Add rows to a table, which the first ones make."""
        known = {name for (name,) in self.con.execute(TABLES).fetchall()}
        verb = f"INSERT INTO {table}" if table in known else f"CREATE TABLE {table} AS"
        self.con.execute(f"{verb} {query}")


TABLES = "SELECT table_name FROM duckdb_tables()"
PRODUCTS = {
    "sx": "u", "sy": "v", "sz": "w", "sxx": "u * u", "sxy": "u * v", "syy": "v * v",
    "sxz": "u * w", "syz": "v * w", "szz": "w * w",
}  # fmt: skip
SUMS = ("n", "pulses", "ground", "m", *PRODUCTS)
"""Columns of cells that are sums: all points, first returns, those of the ground, and of the single
returns that are no noise their number and their moments about the middle of the cell."""
MOMENTS = {
    "xx": "{0}.sxx - {0}.sx * {0}.sx / {0}.m", "xy": "{0}.sxy - {0}.sx * {0}.sy / {0}.m",
    "yy": "{0}.syy - {0}.sy * {0}.sy / {0}.m", "xz": "{0}.sxz - {0}.sx * {0}.sz / {0}.m",
    "yz": "{0}.syz - {0}.sy * {0}.sz / {0}.m", "zz": "{0}.szz - {0}.sz * {0}.sz / {0}.m",
}  # fmt: skip
"""The same about the mean of the points."""


def double(value: float) -> str:
    """Write a number in SQL, where 0.5 alone is a decimal number with limits of its own."""
    return f"{value!r}::DOUBLE"


def fitted_sql(key: str, *, pairs: bool, slope: float, smooth: float) -> str:
    """Write a query for planes of cells: one for each strip, or a common slope of each two.

    The two planes of a pair have one slope, found by least squares from the points of both about
    their own means, and differ in height by `dz`. So neither slopes nor where the points of a cell
    lie are taken for a difference.

    Parameters
    ----------
    key : str
        The column of `cells` that tells what is compared: strip or file.
    pairs : bool
        Whether two are compared, of which the first is `a`.
    slope : float
        Units of height in a unit of x and y, times the slope that is the steepest.
    smooth : float
        The greatest root mean square off the plane, in units of height.

    Returns
    -------
    str
        Rows a, b, cx, cy, dz and sigma, the root mean square off the plane.
    """
    sums = ", ".join(f"sum({name})::DOUBLE AS {name}" for name in SUMS)
    each = (
        f"SELECT {key} AS key, cx, cy, {sums} FROM cells WHERE file IN (FROM mapped) "
        f"GROUP BY ALL HAVING sum(m) >= {MIN_POINTS}"
    )
    if pairs:
        moments = ", ".join(f"{of.format('a')} + {of.format('b')} AS {name}"
                            for name, of in MOMENTS.items())  # fmt: skip
        means = ", ".join(f"a.s{axis} / a.m - b.s{axis} / b.m AS d{axis}" for axis in AXES)
        joined = (
            f"SELECT a.key AS a, b.key AS b, cx, cy, a.m + b.m - 4 AS free, {moments}, {means} "
            "FROM each AS a JOIN each AS b USING (cx, cy) WHERE a.key < b.key"
        )
    else:
        moments = ", ".join(f"{of.format('a')} AS {name}" for name, of in MOMENTS.items())
        joined = (
            f"SELECT a.key AS a, a.key AS b, cx, cy, a.m - 3 AS free, {moments}, "
            "0 AS dx, 0 AS dy, 0 AS dz FROM each AS a"
        )
    return f"""
        WITH each AS ({each}), joined AS ({joined}), fit AS (
            SELECT *, xx * yy - xy * xy AS det FROM joined
            WHERE free >= {MIN_POINTS} AND xx * yy - xy * xy > 0.01 * (xx + yy) * (xx + yy)
        ), plane AS (
            SELECT *, (xz * yy - yz * xy) / det AS p, (yz * xx - xz * xy) / det AS q FROM fit
        ), said AS (
            SELECT a, b, cx, cy, dz - p * dx - q * dy AS dz, sqrt(p * p + q * q) AS slope,
                sqrt(greatest(zz - p * xz - q * yz, 0) / free) AS sigma
            FROM plane
        )
        SELECT a, b, cx, cy, dz, sigma FROM said WHERE slope <= {double(slope)}
            AND sigma <= {double(smooth)}
    """


def _parts(cloud: "PointSource") -> "Iterator[pa.Table]":
    """Read the columns that are counted, many points at a time."""
    wanted = (*AXES, CLASS, RETURN, RETURNS, STRIP, *RANGES, *FLAGS)
    names = [name for name in wanted if name in cloud.schema.names]
    kept: list[pa.RecordBatch] = []
    for batch in cloud.batches(names):
        kept.append(batch)
        if sum(each.num_rows for each in kept) >= ROWS:
            yield pa.Table.from_batches(kept)
            kept = []
    if kept:
        yield pa.Table.from_batches(kept)


def _outside(cloud: "PointSource") -> str:
    """Write the condition that a point is outside of the box that the header claims."""
    if cloud.box is None:
        return "false"
    scales = (0.0,) * 3 if cloud.layout is None else cloud.layout.scales
    sides = [
        f"{axis} < {double(cloud.box[i] - abs(scale))} OR "
        f"{axis} > {double(cloud.box[i + 3] + abs(scale))}"
        for i, (axis, scale) in enumerate(zip(AXES, scales, strict=True))
    ]
    return " OR ".join(sides)


def _round_up(value: float) -> float:
    """Give the least of 1, 2, 5 times a power of ten that is not below a length."""
    power = 10.0 ** math.floor(math.log10(value))
    return float(
        f"{next(k * power for k in (1, 2, 5, 10) if k * power >= value * (1 - 1e-9)):.12g}"
    )
