"""The scene: clouds with their tiles, models, planes and lists, as `scene.json` tells the page."""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.functions.sql_text import identifier
from spatialq.io import crs as crs_text
from spatialq.runtime.temporary import temporary_folder
from spatialq.serve import cloud_tiles
from spatialq.serve.box import Box
from spatialq.serve.cache import cache_folder, digest, is_there
from spatialq.serve.cloud_tiles import Tiles
from spatialq.serve.limits import Limits
from spatialq.serve.models import Model, read_models
from spatialq.serve.pool import Pool
from spatialq.serve.queries import Target, cell, column
from spatialq.serve.selection import Selection
from spatialq.serve.sources import (
    COMMAND,
    MODELS,
    Opened,
    Table,
    open_sources,
)
from spatialq.serve.views import Views
from spatialq.workflows.tables import dicts

if TYPE_CHECKING:
    import duckdb

    from spatialq.io.source import Progress

MOST_LISTED = 10_000
MOST_RELATED = 200
MOST_TEXTS = 255
"""Distinct values of a column of text that can be coloured."""
COLUMNS = "columns.json"
ENDS = (0.02, 0.98)
"""Quantiles of a column between which its scale begins: what is beyond may be noise."""
SAMPLE = 100_000
"""Points of which the quantiles are taken."""
NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*")
KINDS = {"BOOLEAN": "boolean", "VARCHAR": "text"}


@dataclass
class Cloud:
    """A cloud of the scene.

    Attributes
    ----------
    number : int
    table : Table
    target : Target
    box : list of float
        xmin, ymin, zmin, xmax, ymax, zmax.
    state : 'building', 'ready' or 'failed'
    """

    number: int
    table: Table
    target: Target
    box: list[float]
    state: str = "building"
    progress: float = 0.0
    message: str | None = None
    preview: Tiles | None = None
    tiles: Tiles | None = None
    columns: list[dict[str, Any]] = field(default_factory=list)
    _selections: dict[int, Selection] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ids_of(self, node: str) -> Any:
        """Give the point_ids of a tile, int64[n]; None where there is none."""
        tiles = self.preview if node == cloud_tiles.PREVIEW else self.tiles
        return None if tiles is None else tiles.ids_of(node)

    def said(self) -> dict[str, Any]:
        """Say it as the page takes it."""
        uri = None
        if self.tiles is not None:
            uri = f"clouds/{self.number}/{cloud_tiles.TILESET}"
        elif self.preview is not None:
            uri = f"clouds/{self.number}/{cloud_tiles.PREVIEW}/{cloud_tiles.TILESET}"
        return {
            "id": self.number, "name": self.table.title, "points": self.target.points,
            "tileset": uri, "state": self.state, "progress": round(self.progress, 3),
            "message": self.message, "box": self.box, "table": self.table.name,
            "columns": self.columns,
        }  # fmt: skip

    def values(self, con: "duckdb.DuckDBPyConnection", place: int, ids: Any) -> bytes:
        """Give the column at a place of `columns` for points: float32, NaN for NULL."""
        with self._lock:  # of several tiles that ask for it, the first reads it, and it is kept
            if place not in self._selections:
                while len(self._selections) >= 4:
                    del self._selections[next(iter(self._selections))]
                name, texts = self.columns[place]["name"], self.columns[place].get("values") or ()
                self._selections[place] = column(con, self.table.sql, name, self.target, texts)
            selection = self._selections[place]
        return selection.of(ids)


@dataclass
class Scene:
    """All that the server tells of.

    Parameters
    ----------
    opened : Opened
    cache : Path
    limits : Limits
    clouds : list of Cloud
    models : list of Model
    pool : Pool
    previews : Path
        A folder for first pictures.
    views : Views
    """

    opened: Opened
    cache: Path
    limits: Limits
    clouds: list[Cloud]
    models: list[Model]
    pool: Pool
    previews: Path
    views: Views

    def cloud(self, number: int) -> Cloud | None:
        """Give a cloud; None where there is none."""
        return self.clouds[number] if 0 <= number < len(self.clouds) else None

    @property
    def targets(self) -> list[Target]:
        """The clouds that rows may select."""
        return [each.target for each in self.clouds]

    @cached_property
    def box(self) -> list[float]:
        """Around all that there is."""
        boxes = [each.box for each in self.clouds]
        boxes += [each.box for each in self.models if each.box is not None]
        if not boxes:
            return [0.0] * 6
        found = np.array(boxes)
        return [*found[:, :3].min(axis=0).tolist(), *found[:, 3:].max(axis=0).tolist()]

    def said(self) -> dict[str, Any]:
        """Give `scene.json`."""
        box = self.box
        middle = [(box[0] + box[3]) / 2, (box[1] + box[4]) / 2, box[2]]
        return {
            "title": self.opened.title,
            "origin": [float(round(each)) for each in middle],
            "box": box,
            "crs": None if self.opened.crs is None else crs_text.name(self.opened.crs),
            "units": units_of(self.opened.crs),
            "clouds": [each.said() for each in self.clouds],
            "models": [each.said() for each in self.models],
            "elements": "elements.json",
            "planes": {"table": self.opened.planes[0].name, "rows": "planes.json"}
            if self.opened.planes
            else None,
            "lists": self.lists,
            "tables": [
                {
                    "name": each.name,
                    "columns": [{"name": name, "type": kind} for name, kind in each.columns],
                }
                for each in self.opened.tables
            ],
            "views": None if self.views.path is None else str(self.views.path),
            "limits": self.limits.said(),
        }

    @cached_property
    def elements(self) -> list[dict[str, Any]]:
        """Rows of all models, as `elements.json` has them."""
        return [row for model in self.models for row in model.rows]

    @cached_property
    def planes(self) -> list[dict[str, Any]]:
        """Rows of planes with their outlines, as `planes.json` has them."""
        if not self.opened.planes:
            return []
        table = self.opened.planes[0]
        points = "point_count" if "point_count" in table.names else "NULL"
        outline = "ST_AsText(boundary::GEOMETRY)" if "boundary" in table.names else "NULL"
        with self.opened.con.cursor() as con:
            numbers = ", ".join(f"{each}::DOUBLE" for each in ("nx", "ny", "nz", "d"))
            rows = con.execute(
                f"SELECT plane_id::BIGINT, {numbers}, {points}::BIGINT, {outline} FROM {table.sql}"
            ).fetchall()
        names = ("plane_id", "nx", "ny", "nz", "d", "points")
        return [
            {**dict(zip(names, map(cell, row[:-1]), strict=True)), "outline": _outline(row[-1])}
            for row in rows
        ]

    @cached_property
    def lists(self) -> list[dict[str, Any]]:
        """Clashes and verdicts: rows with their elements and where they are."""
        with self.opened.con.cursor() as con:
            return [self._list(con, table) for table in self.opened.lists]

    def _list(self, con: "duckdb.DuckDBPyConnection", table: Table) -> dict[str, Any]:
        names = [
            name
            for name, kind in table.columns
            if not kind.startswith(("STRUCT", "BLOB", "GEOMETRY")) and not kind.endswith("[]")
        ]
        chosen = ", ".join(map(identifier, names))
        rows = dicts(con.execute(f"SELECT {chosen} FROM {table.sql} LIMIT {MOST_LISTED}"))
        boxes = {row["global_id"]: row["box"] for row in self.elements}
        found = []
        for row in rows:
            plain = {name: cell(value) for name, value in row.items()}
            known = {name.lower(): value for name, value in row.items()}
            sides = ("a_global_id", "b_global_id") if "a_global_id" in known else ("a", "b")
            keys = sides if sides[0] in known else ("global_id",)
            ids = [str(known[key]) for key in keys if known.get(key) is not None]
            around = [boxes[each] for each in ids if boxes.get(each) is not None]
            centre = self._centre(known, ids)
            box = None
            if around:
                corners = np.array(around)
                box = [*corners[:, :3].min(axis=0), *corners[:, 3:].max(axis=0)]
                centre = centre or [(box[k] + box[k + 3]) / 2 for k in range(3)]
            about = {
                "elements": ids, "centre": centre, "box": box,
                "group": known.get("group") or known.get("rule") or known.get("a_storey")
                or known.get("storey") or known.get("ifc_class"),
                "status": known.get("status"),
            }  # fmt: skip
            found.append(plain | {name: _plain(value) for name, value in about.items()})
        return {"name": table.name, "columns": names, "rows": found}

    def _centre(self, row: Mapping[str, Any], ids: Sequence[str]) -> list[float] | None:
        """Give the place of a row in the scene: models may have been moved to the map."""
        place = [row.get(axis) for axis in "xyz"]
        if any(each is None for each in place):
            return None
        model = next((each for each in self.models if set(ids) & each.ids), None)
        given = np.array([place], np.float64)
        moved = given if model is None else model.moved(given)
        return [float(each) for each in moved[0]]

    def build(self) -> None:
        """Make the tiles of all clouds, one after the other; the scene says how far they are."""
        for cloud in self.clouds:
            try:
                with self.opened.con.cursor() as con:
                    self._build(con, cloud)
            except Exception as error:
                cloud.state, cloud.message = "failed", str(error)

    def _build(self, con: "duckdb.DuckDBPyConnection", cloud: Cloud) -> None:
        folder = self.cache / f"cloud-{digest(cloud.table.stamp, cloud.table.name)}"
        if not is_there(folder):
            with temporary_folder("cloud_", self.cache) as parts:
                new, preview = parts / "new", self.previews / str(cloud.number)
                new.mkdir()
                preview.mkdir()
                rows = cloud.target.points
                cloud.preview = cloud_tiles.write_preview(con, cloud.table.sql, rows, preview)

                def tick(share: float) -> None:
                    cloud.progress = share

                cloud_tiles.write_tiles(con, cloud.table.sql, rows, new, tick)
                about = json.dumps(_columns(con, cloud.table, rows))
                (new / COLUMNS).write_text(about, encoding="utf-8")
                if not folder.is_dir():
                    new.rename(folder)
        cloud.columns = json.loads((folder / COLUMNS).read_text(encoding="utf-8"))
        cloud.tiles = Tiles(folder)
        cloud.state, cloud.progress = "ready", 1.0

    def row(
        self,
        con: "duckdb.DuckDBPyConnection",
        kind: str,
        key: Any,
        cloud: Cloud | None = None,
    ) -> dict[str, Any] | None:
        """Give a row and what other tables say of it; None where there is none.

        Parameters
        ----------
        con : duckdb.DuckDBPyConnection
        kind : 'points', 'elements' or 'planes'
        key : int or str
            point_id, global_id or plane_id.
        cloud : Cloud, optional
            Of points.
        """
        name = {"points": "point_id", "elements": "global_id", "planes": "plane_id"}[kind]
        own = {
            "points": [] if cloud is None else [cloud.table],
            "elements": self.opened.elements,
            "planes": self.opened.planes,
        }[kind]
        found = None
        for table in own:
            rows = _rows(con, table, f"{identifier(name)} = ?", [key], 1)
            if rows:
                found = rows[0]
                break
        if found is None:
            return None
        relations = []
        known = {each.sql for each in [*own, *self.opened.clouds]}
        for table in self.opened.tables:
            if table.sql in known:
                continue
            keys = [
                each
                for each in (name, *(("child", "parent") if kind == "elements" else ()))
                if each in table.names
            ]
            if kind == "elements" and table in self.opened.lists:
                pair = ("a_global_id", "b_global_id", "a", "b")
                keys += [each for each in pair if each in table.names]
            if not keys:
                continue
            where = " OR ".join(f"{identifier(each)} = ?" for each in keys)
            rows = _rows(con, table, where, [key] * len(keys), MOST_RELATED)
            if rows:
                is_cut = len(rows) == MOST_RELATED
                about = {"name": table.name, "table": table.sql, "is_cut": is_cut}
                relations.append({**about, "rows": rows})
        return {"row": found, "relations": relations}


def units_of(crs: str | None) -> dict[str, Any]:
    """Say in what lengths are told, and by what differences of x and y, and of z, are multiplied.

    Coordinates of which the CRS is not known are taken for metres, as functions do. Lengths in
    degrees have no name.
    """
    if crs is None:
        return {"name": "m", "scale": [1.0, 1.0]}
    metres = crs_text.metres_per_unit(crs)
    if metres is None:
        return {"name": None, "scale": [1.0, 1.0]}
    name = crs_text.unit_name(crs)
    one = metres[0] if name else 1.0
    return {"name": name or "m", "scale": [metres[0] / one, metres[1] / one]}


def _rows(
    con: "duckdb.DuckDBPyConnection", table: Table, where: str, keys: list[Any], most: int
) -> list[dict[str, Any]]:
    """Give rows as JSON has them, without geometry."""
    names = [
        identifier(name)
        for name, kind in table.columns
        if not kind.startswith(("STRUCT", "BLOB", "GEOMETRY"))
    ]
    query = f"SELECT {', '.join(names)} FROM {table.sql} WHERE {where} LIMIT {most}"
    rows = dicts(con.execute(query, keys))
    return [{name: cell(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [float(each) if isinstance(each, np.floating) else each for each in value]
    return cell(value)


def _outline(text: str | None) -> list[list[float]]:
    """Give the outer ring of a polygon in WKT."""
    ring = re.search(r"\(([^()]+)\)", text or "")
    if ring is None:
        return []
    return [[float(each) for each in place.split()] for place in ring[1].split(",")]


def _columns(con: "duckdb.DuckDBPyConnection", table: Table, rows: int) -> list[dict[str, Any]]:
    """Say by which columns points can be coloured, with their ranges or values."""
    found = []
    for name, kind in table.columns:
        if name.lower() == "point_id":
            continue
        quoted = identifier(name)
        if NUMBERS.fullmatch(kind) or kind == "BOOLEAN":
            as_number = f"{quoted}::DOUBLE"
            if kind in ("FLOAT", "DOUBLE"):
                as_number = f"CASE WHEN isfinite({quoted}) THEN {as_number} END"
            some = f"FILTER (hash(point_id) % {max(rows // SAMPLE, 1)} = 0)"
            least, most, ends = con.execute(
                f"SELECT min({as_number}), max({as_number}), "
                f"quantile_cont({as_number}, {list(ENDS)}) {some} FROM {table.sql}"
            ).fetchall()[0]
            low, high = ends if ends and ends[0] < ends[1] else (least, most)
            whole = "integer" if "INT" in kind else "number"
            about = {"min": least, "max": most, "low": low, "high": high}
            found.append({"name": name, "type": KINDS.get(kind, whole), **about})
        elif kind == "VARCHAR":
            values = con.execute(
                f"SELECT DISTINCT {quoted} FROM {table.sql} WHERE {quoted} IS NOT NULL "
                f"ORDER BY ALL LIMIT {MOST_TEXTS + 1}"
            ).fetchall()
            if len(values) <= MOST_TEXTS:
                texts = [value for (value,) in values]
                about = {"min": 0, "max": max(len(texts) - 1, 0), "values": texts}
                found.append({"name": name, "type": "text", **about})
    return found


def _clouds(opened: Opened) -> list[Cloud]:
    found = []
    for number, table in enumerate(opened.clouds):
        sides = ", ".join(f"{end}({axis})::DOUBLE" for end in ("min", "max") for axis in "xyz")
        points, least, greatest, *box = opened.con.execute(
            f"SELECT count(*), min(point_id), max(point_id), {sides} FROM {table.sql} "
            f"WHERE {cloud_tiles.FINITE} AND point_id IS NOT NULL"
        ).fetchall()[0]
        if not points:
            message = f"{COMMAND}: table {table.name} has no points"
            raise ValueError(message)
        if least < 0:
            message = f"{COMMAND}: point_id of table {table.name} must be >= 0, got {least}"
            raise ValueError(message)
        target = Target(number, table.name.lower(), points, greatest)
        found.append(Cloud(number, table, target, box))
    return found


@contextmanager
def open_scene(
    sources: Sequence[str],
    database: str | None = None,
    *,
    limits: Limits | None = None,
    views: Path | None = None,
    cache: Path | None = None,
    progress: "Progress | None" = None,
) -> Iterator[Scene]:
    """Open a scene; `build` then makes its tiles.

    Parameters
    ----------
    sources : sequence of str
        See `open_sources`.
    database : str, optional
    limits : Limits, optional
    views : Path, optional
        The file of saved views.
    cache : Path, optional
        A folder for tables and tiles; by default one of the user's, which keeps them.
    progress : callable, optional
        Called with file, rows so far and rows in all, while files are loaded.
    """
    limits, saved = limits or Limits(), Views(views)
    with ExitStack() as stack:
        cache = cache or stack.enter_context(cache_folder())
        opened = stack.enter_context(open_sources(sources, database, cache, progress))
        clouds = _clouds(opened)
        models = read_models(opened, [each.box for each in clouds], cache)
        paths = [each.path for each in models if each.path]
        paths = [path for path in paths if path.lower().endswith(MODELS)]
        box = Box(opened.databases, paths, limits, [each.target for each in clouds])
        box.lock(opened.con)
        pool = stack.enter_context(closing(Pool(box)))
        previews = stack.enter_context(temporary_folder("spatialq_preview_"))
        yield Scene(opened, cache, limits, clouds, models, pool, previews, saved)
