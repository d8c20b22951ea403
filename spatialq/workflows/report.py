"""What a delivery of point clouds is like, and what is odd about it: figures, page, JSON."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import FileError, files_read_by
from spatialq.export.atomic import PREFIX, together, whole
from spatialq.export.page import write_page
from spatialq.geometry.connected import connected
from spatialq.io import crs as crs_text
from spatialq.io.formats import open_source, reader_of
from spatialq.io.las.source import LasSource
from spatialq.io.source import PointSource, Progress
from spatialq.runtime import budget
from spatialq.runtime.temporary import temporary_folder
from spatialq.workflows.outputs import Outputs, input_files, named, subject
from spatialq.workflows.report_odd import sentences
from spatialq.workflows.report_page import Map, content
from spatialq.workflows.survey import (
    CLASS,
    FLAGS,
    FLAT,
    RANGES,
    RETURN,
    RETURNS,
    SMOOTH,
    STRIP,
    TIME,
    Survey,
    double,
    fitted_sql,
)

if TYPE_CHECKING:
    from spatialq.export.raster import Raster

COMMAND = "report"
PAGE, JSON = (".html", ".htm"), (".json",)
ENCODING, ADJUSTED_TIME = 6, 1
"""The byte of a LAS header and its bit for GPS seconds since 1980, less a billion."""
MAX_SIDE = 1000
"""Cells of the longer side of maps."""
NARROW = 2
"""Cells of the shorter side of what two files have in common at the edge where they meet."""
LEAST_HOLE, MOST_HOLES = 4, 20
"""Cells of a map that a hole has, and holes that are listed."""

Row = dict[str, Any]


@together()
@files_read_by(COMMAND)
def write_report(
    source: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    crs: str | None = None,
    override_crs: bool = False,
    memory: str | float | None = None,
    progress: Progress | None = None,
) -> Row:
    """Report on the quality of a delivery of point clouds; each file is read once.

    Parameters
    ----------
    source : path or paths
        Point clouds of any format, patterns of them, or folders. They need not have one CRS:
        maps, overlaps and strips are those of the files in the CRS that most points are in.
    outputs : path or paths
        .html for a page in one file with tables and maps, .json for what is returned.
    crs : str, optional
        Of files that do not name one: PROJJSON, WKT, or a code such as EPSG:25832.
    override_crs : bool
        Whether `crs` also takes the place of one that a file names.
    memory : str or float, optional
        Main memory to use, such as '2GB'; a number is in GiB. What grows with the points is in
        files beside the first output where it is larger.
    progress : callable, optional
        Called with file, rows so far and rows in all.

    Returns
    -------
    dict
        What docs/report.md says: points, odd (sentences), density, ground, and as lists of dicts
        files, unreadable, crs, classes, returns, strips, strip_pairs and overlaps; outputs.

    Raises
    ------
    FileError
        If none of the files can be read, or an output cannot be written.
    CrsError
        If PROJ cannot read `crs`.
    ValueError
        If an argument is wrong, or the files have no points.
    """
    import duckdb

    paths = input_files(COMMAND, source)
    targets = Outputs.of(COMMAND, outputs)
    targets.check(paths, (*PAGE, *JSON))
    targets.require_outside(source, paths)
    if override_crs and crs is None:
        message = f"{COMMAND}: override_crs needs crs, which is what it puts in their place"
        raise ValueError(message)
    given = None if crs is None else crs_text.from_argument(COMMAND, crs)
    clouds: list[PointSource] = []
    boxes: list[list[float]] = []
    unread: list[FileError] = []
    for path in paths:
        try:
            cloud = open_source(COMMAND, path, ["points"])
            boxes.append(_claimed_box(cloud))
        except FileError as error:
            unread.append(error)
        else:
            clouds.append(cloud)
    systems = [
        cloud.crs if cloud.crs is not None and not override_crs else given for cloud in clouds
    ]
    if unread and not clouds:
        raise unread[0]
    if not any(cloud.rows for cloud in clouds):
        message = f"{COMMAND}: a report needs points, {subject(paths)} has none"
        raise ValueError(message)
    within_memory = budget.within(COMMAND, memory, targets.beside)
    with (
        within_memory,
        temporary_folder(PREFIX, budget.folder()) as folder,
        duckdb.connect(f"{folder}/report.duckdb") as con,
    ):
        con.execute(f"SET memory_limit = '{budget.current()}B'; SET enable_progress_bar = false")
        survey = Survey(con, clouds, boxes)
        survey.read(progress or (lambda *_: None))
        unread += survey.unread.values()
        if len(unread) == len(paths):
            raise unread[0]
        delivery = Delivery(survey, systems)
        found = {**delivery.report(), "unreadable": [_unreadable(error) for error in unread]}
        maps, outlines = delivery.maps(), delivery.boxes()
    odd = list(sentences(found, (delivery.units or (1.0, 1.0))[1]))
    report = {**found, "odd": odd, "outputs": targets.names}
    for target in targets.ending_in(*PAGE):
        write_page(target, f"Quality of {named(paths)}", content(report, maps, outlines))
    for target in targets.ending_in(*JSON):
        text = json.dumps(report, ensure_ascii=False, allow_nan=False, indent=1)
        with whole(target) as partial:
            partial.write_text(text, encoding="utf-8")
    return report


def _unreadable(error: FileError) -> Row:
    assert error.parts is not None  # which readers give
    _, path, reason = error.parts
    return {"file": str(path), "reason": reason}


def _claimed_box(cloud: PointSource) -> list[float]:
    """Give xmin, ymin, xmax, ymax as the header has it; where it has none, of the points."""
    if cloud.box is not None:
        return [cloud.box[k] for k in (0, 1, 3, 4)]
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for batch in cloud.batches(("x", "y")):
        for k, axis in enumerate("xy"):
            values = batch[axis].to_numpy()
            low[k], high[k] = values.min(initial=low[k]), values.max(initial=high[k])
    return [*low.tolist(), *high.tolist()]


class Delivery:
    """What a report says of points that were counted.

    Parameters
    ----------
    survey : Survey
    systems : sequence of str or None
        The CRS of each file, PROJJSON.
    """

    def __init__(self, survey: Survey, systems: Sequence[str | None]) -> None:
        self._survey, self._con, self._clouds = survey, survey.con, survey.clouds
        self._names = [str(cloud.path) for cloud in self._clouds]
        self._systems = systems
        counted = dict(
            self._con.sql("SELECT file, sum(points) FROM counted GROUP BY file").fetchall()
        )
        groups: list[list[int]] = []
        for number in survey.read_files:
            system = systems[number]
            for group in groups:
                if crs_text.same(systems[group[0]], system):
                    group.append(number)
                    break
            else:
                groups.append([number])
        points = [sum(int(counted.get(number, 0)) for number in group) for group in groups]
        ranked = sorted(zip(points, groups, strict=True), key=lambda each: (-each[0], each[1]))
        self._groups = [(group, count) for count, group in ranked]
        mapped = self._groups[0][0]
        self._crs = systems[mapped[0]]
        self.units = _units(self._crs)
        """Metres in a unit of x and y, and in one of z; None in degrees."""
        self._con.execute(
            "CREATE TABLE mapped AS SELECT unnest(?)::INTEGER AS file", [list(mapped)]
        )
        is_told = self._value(
            f"SELECT count(*) FROM counted WHERE {STRIP} <> 0 AND file IN (FROM mapped)"
        )
        self._key = "strip" if is_told else "file"
        self._places()

    def report(self) -> Row:
        """Give all figures, as lists of dicts with plain values."""
        files = self._files()
        strips, pairs = self._strips()
        return {
            "points": sum(each["points"] for each in files),
            "crs": [
                {
                    "crs": self._name(group[0]),
                    "points": points,
                    "files": [self._names[number] for number in group],
                }
                for group, points in self._groups
            ],
            "unit": crs_text.unit_name(self._crs),
            "unit_of_height": self._unit_of_height,
            "cell_size": self._survey.cell,
            "files": files,
            "classes": self._rows(f"""
                SELECT {CLASS} AS class, sum(points)::BIGINT AS points FROM counted
                WHERE {CLASS} IS NOT NULL GROUP BY ALL ORDER BY 1
            """),
            "returns": self._rows(f"""
                SELECT {RETURN} AS return, {RETURNS} AS of_returns, sum(points)::BIGINT AS points
                FROM counted WHERE {RETURN} IS NOT NULL GROUP BY ALL ORDER BY 2, 1
            """),
            "density": self._density(),
            "ground": self._ground(),
            "strips_are": "point_source_id" if self._key == "strip" else "files",
            "strips": strips,
            "strip_pairs": pairs,
            "overlaps": self._overlaps(),
        }

    def maps(self) -> "list[Map]":
        """Draw the density and, where strips overlap, how far they lie apart."""
        if self.units is None:
            return []
        across = self.units[0]
        density = self._raster("sum(n)")
        cells = self._raster("count(DISTINCT (cx, cy))")
        with np.errstate(invalid="ignore"):
            shown = density.z / (cells.z * (self._survey.cell * across) ** 2)
        square = "square unit" if self._crs is None else "square metre"
        caption = "Density of points; outlines are those of files. Grey: no points."
        maps = [Map("density", f"points per\n{square}", replace(density, z=shown), caption)]
        if self._value("SELECT count(*) FROM differences"):
            apart = self._raster("avg(abs(dz))", "differences")
            legend = f"height between\nstrips, {self._unit_of_height or 'units'}"
            caption = (
                "Differences of heights of strips, where their points are smooth and nearly level. "
                "Grey: no strips to compare."
            )
            maps.append(Map("strips", legend, apart, caption))
        return maps

    def boxes(self) -> list[tuple[float, float, float, float]]:
        """Give the extents of the points of the files that maps show."""
        found = self._con.sql("""
            SELECT min(x_low), min(y_low), max(x_high), max(y_high) FROM counted
            WHERE file IN (FROM mapped) GROUP BY file ORDER BY file
        """)
        return found.fetchall()

    def _name(self, number: int) -> str | None:
        """Name the CRS of a file."""
        crs = self._systems[number]
        return None if crs is None else crs_text.name(crs)

    @property
    def _unit_of_height(self) -> str | None:
        return crs_text.unit_name(self._crs, of_heights=True)

    def _files(self) -> list[Row]:
        ends = ", ".join(f"min({name}_low) AS {name}_low, max({name}_high) AS {name}_high"
                         for name in ("x", "y", "z", *RANGES))  # fmt: skip
        sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in ("points", "outside", *FLAGS))
        counted = {row["file"]: row for row in self._rows(f"""
            SELECT file, {sums}, {ends},
                list(DISTINCT {STRIP} ORDER BY {STRIP}) FILTER ({STRIP} IS NOT NULL) AS strips,
                list(DISTINCT {CLASS} ORDER BY {CLASS}) FILTER ({CLASS} IS NOT NULL) AS classes,
                sum(points) FILTER ({RETURN} = 0 OR {RETURNS} = 0 OR {RETURN} > {RETURNS})::BIGINT
                    AS wrong_returns,
                sum(points) FILTER (coalesce({RETURN}, 1) <= 1)::BIGINT AS pulses
            FROM counted GROUP BY file
        """)}  # fmt: skip
        repeated = dict(self._con.sql(
            "SELECT file, sum(n - 1)::BIGINT FROM repeated WHERE n > 1 GROUP BY file"
        ).fetchall())  # fmt: skip
        areas = dict(
            self._con.sql(
                "SELECT file, count(DISTINCT (cx, cy)) FROM cells GROUP BY file"
            ).fetchall()
        )
        found = []
        for number in self._survey.read_files:
            cloud = self._clouds[number]
            row = counted.get(number)
            area = self._area(areas.get(number, 0), self._systems[number])
            boxes = (
                {f"{axis}{end}": None if row is None else row[f"{axis}_{side}"]
                 for end, side in (("min", "low"), ("max", "high")) for axis in "xyz"}
            )  # fmt: skip
            ranges = {
                name: None if row is None or row[f"{name}_low"] is None
                else [row[f"{name}_low"], row[f"{name}_high"]]
                for name in RANGES
            }  # fmt: skip
            counts = ("points", "outside", *FLAGS, "strips", "classes", "wrong_returns")
            found.append({
                "file": self._names[number],
                "format": _format(cloud),
                "crs": self._name(number),
                **{name: 0 if row is None else row[name] or 0 for name in counts},
                **boxes,
                "header_box": None if cloud.box is None else list(cloud.box),
                "density": row["points"] / area if row and area else None,
                "duplicates": repeated.get(number, 0),
                "scale": None if cloud.layout is None else list(cloud.layout.scales),
                "offset": None if cloud.layout is None else list(cloud.layout.offsets),
                **ranges,
                "time": _time(cloud),
                "warnings": list(cloud.warnings),
            })  # fmt: skip
            for name in ("strips", "classes"):
                found[-1][name] = found[-1][name] or []
        return found

    def _area(self, cells: int, crs: str | None) -> float | None:
        """Square metres of cells, or square units without a CRS; None in degrees."""
        units = _units(crs)
        return None if units is None else cells * (self._survey.cell * units[0]) ** 2

    @property
    def _area_of_cell(self) -> float:
        area = self._area(1, self._crs)
        assert area is not None  # in degrees nobody asks
        return area

    def _density(self) -> Row | None:
        if self.units is None:
            return None
        area = double(self._area_of_cell)
        (row,) = self._rows(f"""
            SELECT sum(n) / (count(*) * {area}) AS mean,
                sum(pulses) / (count(*) * {area}) AS pulses,
                median(n) / {area} AS median, quantile_cont(n, 0.05) / {area} AS low,
                count(*) * {area} AS area
            FROM (SELECT cx, cy, sum(n) AS n, sum(pulses) AS pulses FROM cells
                  WHERE file IN (FROM mapped) GROUP BY ALL)
        """)
        counts = self._raster("sum(n)")
        count, largest = _holes(counts, self.units[0])
        return {**row, "hole_count": count, "holes": largest}

    def _ground(self) -> Row | None:
        if self.units is None or not self._value("SELECT sum(ground) FROM cells"):
            return None
        (row,) = self._rows(f"""
            SELECT sum(ground)::BIGINT AS points, sum(ground) / sum(n) AS share,
                sum(ground) / (count(*) * {double(self._area_of_cell)}) AS density,
                count(*) FILTER (ground = 0) / count(*) AS cells_without
            FROM (SELECT cx, cy, sum(n) AS n, sum(ground) AS ground FROM cells
                  WHERE file IN (FROM mapped) GROUP BY ALL)
        """)
        return row

    def _places(self) -> None:
        """Find points at one place and time, by the numbers that stand for these."""
        self._con.execute("""
            CREATE TABLE repeated AS
            SELECT place, file, count(*) AS n FROM places
            SEMI JOIN (SELECT place FROM places GROUP BY place HAVING count(*) > 1) USING (place)
            GROUP BY ALL;
            DROP TABLE places
        """)

    def _fitted(self, key: str, *, pairs: bool) -> str:
        assert self.units is not None
        across, up = self.units
        return fitted_sql(key, pairs=pairs, slope=FLAT * across / up, smooth=SMOOTH / up)

    def _strips(self) -> tuple[list[Row], list[Row]]:
        """Compare strips, or files where nothing else tells the strips apart."""
        if self.units is None:
            self._con.execute("CREATE TABLE differences AS SELECT 0 AS a, 0 AS b LIMIT 0")
            return [], []
        key = self._key
        self._con.execute(
            f"CREATE TABLE differences AS {self._fitted(key, pairs=True)};"
            f"CREATE TABLE planes AS {self._fitted(key, pairs=False)}"
        )
        pairs = self._rows("""
            SELECT a, b, count(*) AS cells, median(dz) AS median, sqrt(avg(dz * dz)) AS rms,
                quantile_cont(abs(dz), 0.95) AS within_95
            FROM differences GROUP BY ALL ORDER BY ALL
        """)
        of = STRIP if key == "strip" else "file"
        strips = self._rows(f"""
            SELECT key AS strip, points, files, first, last, cells, precision FROM (
                SELECT coalesce({of}, 0) AS key, sum(points)::BIGINT AS points,
                    count(DISTINCT file) AS files, min(gps_time_low) AS first,
                    max(gps_time_high) AS last
                FROM counted WHERE file IN (FROM mapped) GROUP BY ALL
            ) LEFT JOIN (
                SELECT a AS key, count(*) AS cells, median(sigma) AS precision
                FROM planes GROUP BY ALL
            ) USING (key) ORDER BY key
        """)
        offsets = _offsets([row["strip"] for row in strips], pairs)
        named = self._names.__getitem__ if key == "file" else int
        for row in strips:
            row["offset"] = offsets.get(row["strip"])
            row["strip"] = named(row["strip"])
        for row in pairs:
            row["a"], row["b"] = named(row["a"]), named(row["b"])
        return strips, pairs

    def _overlaps(self) -> list[Row]:
        """Compare the files that have more in common than the edge where they meet."""
        if self.units is None:
            return []
        twice = {(a, b): n for a, b, n in self._con.sql("""
            SELECT a.file, b.file, count(*) FROM repeated AS a JOIN repeated AS b USING (place)
            WHERE a.file < b.file AND a.file IN (FROM mapped) AND b.file IN (FROM mapped)
            GROUP BY ALL
        """).fetchall()}  # fmt: skip
        rows = self._rows(f"""
            WITH each AS (
                SELECT file, cx, cy, sum(n) AS n FROM cells WHERE file IN (FROM mapped) GROUP BY ALL
            ), shared AS (
                SELECT a.file AS a, b.file AS b, count(*) AS cells, sum(a.n)::BIGINT AS points_a,
                    sum(b.n)::BIGINT AS points_b, max(cx) - min(cx) + max(cy) - min(cy) + 2 AS sides
                FROM each AS a JOIN each AS b USING (cx, cy) WHERE a.file < b.file GROUP BY ALL
            ), apart AS (
                SELECT a, b, median(dz) AS median, sqrt(avg(dz * dz)) AS rms
                FROM ({self._fitted("file", pairs=True)}) GROUP BY ALL
            )
            SELECT a, b, cells * {double(self._area_of_cell)} AS area, points_a, points_b,
                cells > {NARROW} * sides AS is_wide, median, rms
            FROM shared LEFT JOIN apart USING (a, b) ORDER BY a, b
        """)
        found = []
        for row in rows:
            pair = row["a"], row["b"]
            if row.pop("is_wide") or pair in twice:
                names = {"a": self._names[pair[0]], "b": self._names[pair[1]]}
                found.append({**row, **names, "duplicates": twice.get(pair, 0)})
        return found

    def _raster(self, value: str, table: str = "cells") -> "Raster":
        """Give a value of squares of cells, NaN where there are none, as a map shows them."""
        from spatialq.export.raster import Raster

        west, south, east, north = self._con.sql("""
            SELECT min(cx), min(cy), max(cx), max(cy) FROM cells WHERE file IN (FROM mapped)
        """).fetchall()[0]
        coarser = -(-(max(east - west, north - south) + 1) // MAX_SIDE)
        rows, columns = (
            (high - low) // coarser + 1 for low, high in ((south, north), (west, east))
        )
        of_mapped = "WHERE file IN (FROM mapped)" if table == "cells" else ""
        found = self._con.sql(f"""
            SELECT (cx - {west}) // {coarser} AS i, (cy - {south}) // {coarser} AS j,
                ({value})::DOUBLE AS value
            FROM {table} {of_mapped} GROUP BY i, j
        """).fetchnumpy()
        z = np.full((rows, columns), np.nan)
        z[rows - 1 - found["j"].astype(np.int64), found["i"].astype(np.int64)] = found["value"]
        size = coarser * self._survey.cell
        low = (west * self._survey.cell, south * self._survey.cell)
        return Raster(z, low[0], low[1] + rows * size, size, self._crs)

    def _rows(self, query: str) -> list[Row]:
        relation = self._con.sql(query)
        return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]

    def _value(self, query: str) -> Any:
        ((value,),) = self._con.sql(query).fetchall()
        return value


def _units(crs: str | None) -> tuple[float, float] | None:
    return (1.0, 1.0) if crs is None else crs_text.metres_per_unit(crs)


def _format(cloud: PointSource) -> str:
    if not isinstance(cloud, LasSource):
        return reader_of(COMMAND, cloud.path).name
    about = cloud.about
    kind = "COPC" if "octree levels" in about else "LAZ" if about["compressed"] else "LAS"
    return f"{kind} {about['version']}, point format {about['point format']}"


def _time(cloud: PointSource) -> str | None:
    """Say from where times are counted: GPS week or, since 1980, a billion seconds later."""
    if not isinstance(cloud, LasSource) or TIME not in cloud.schema.names:
        return None
    return "adjusted" if cloud.header.raw[ENCODING] & ADJUSTED_TIME else "week"


def _offsets(strips: Sequence[int], pairs: Sequence[Row]) -> dict[int, float]:
    """Give how far each strip lies above most points of those that it is connected with.

    The offsets are those from which the medians of the pairs follow best, each weighted with its
    cells; in each group of strips that overlap, the median of the offsets is 0.
    """
    number = {strip: k for k, strip in enumerate(strips)}
    ends = np.array([[number[row[side]] for side in "ab"] for row in pairs], np.int64).reshape(
        -1, 2
    )
    root = connected(len(strips), ends[:, 0], ends[:, 1])
    weights = np.sqrt([row["cells"] for row in pairs])
    design = np.zeros((len(pairs), len(strips)))
    design[np.arange(len(pairs)), ends[:, 0]] = weights
    design[np.arange(len(pairs)), ends[:, 1]] = -weights
    found = np.linalg.lstsq(design, weights * [row["median"] for row in pairs])[0]
    offsets = {}
    for group in np.unique(root[ends]):
        members = np.flatnonzero(root == group)
        middle = np.sort(found[members])[(members.size - 1) // 2]
        offsets.update({strips[k]: float(found[k] - middle) for k in members.tolist()})
    return offsets


def _holes(counts: "Raster", metres: float) -> tuple[int, list[Row]]:
    """Count the areas without points that other cells surround; give the largest ones."""
    columns = counts.z.shape[1]
    is_empty = np.isnan(np.pad(counts.z, 1, constant_values=np.nan))
    number = np.arange(is_empty.size).reshape(is_empty.shape)
    across = is_empty[:, :-1] & is_empty[:, 1:]
    down = is_empty[:-1] & is_empty[1:]
    one = np.concatenate([number[:, :-1][across], number[:-1][down]])
    other = np.concatenate([number[:, 1:][across], number[1:][down]])
    root = connected(is_empty.size, one, other)
    inside = np.flatnonzero(is_empty.ravel() & (root != 0))
    _, which, cells = np.unique(root[inside], return_inverse=True, return_counts=True)
    row, column = np.divmod(inside, columns + 2)
    found = []
    for k in np.argsort(-cells, kind="stable")[:MOST_HOLES]:
        if cells[k] < LEAST_HOLE:
            break
        mine = which == k
        found.append({
            "area": float(cells[k]) * (counts.resolution * metres) ** 2,
            "x": counts.west + (float(column[mine].mean()) - 0.5) * counts.resolution,
            "y": counts.north - (float(row[mine].mean()) - 0.5) * counts.resolution,
        })  # fmt: skip
    return int(np.count_nonzero(cells >= LEAST_HOLE)), found
