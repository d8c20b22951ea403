"""Tiles of a table of points: each point in one tile, and which ones a tile has, in its order.

A folder of a cloud has `tileset.json` with the tiles, `ids.npy` with the point_ids in the order of
the tiles, and `nodes.json` with where those of each tile begin.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.export.tiles.options import TileOptions
from spatialq.export.tiles.place import place_of
from spatialq.export.tiles.points import Node, Style, order_of, point_tile, tones
from spatialq.export.tiles.tileset import Tile, Tree, cell_of, to_json
from spatialq.functions.sql_text import identifier
from spatialq.runtime.arrays import Floats, Ints, Uint16s
from spatialq.runtime.threads import workers
from spatialq.workflows.lod_nodes import CloudStatistics

if TYPE_CHECKING:
    import duckdb

    from spatialq.data.octree import Octree

TILESET, IDS, NODES = "tileset.json", "ids.npy", "nodes.json"
CHANNELS = ("red", "green", "blue", "intensity")
PREVIEW, PREVIEW_POINTS = "preview", 50_000
"""The one tile that is shown while the others are made, and how many points it has."""
FUNCTION = "build_lod"
AT_ONCE = 64
"""Tiles that are made by the threads at a time."""
FINITE = "isfinite(x) AND isfinite(y) AND isfinite(z)"

Tick = Callable[[float], object]


@dataclass(frozen=True)
class Tiles:
    """The tiles of a cloud in a folder.

    Parameters
    ----------
    folder : Path
    """

    folder: Path

    @cached_property
    def about(self) -> dict[str, Any]:
        """What `nodes.json` says: names, first, box, points."""
        said: dict[str, Any] = json.loads((self.folder / NODES).read_text(encoding="utf-8"))
        return said

    @cached_property
    def ids(self) -> Ints:
        """The point_ids of all tiles, one after the other, mapped into memory."""
        mapped: Ints = np.load(self.folder / IDS, mmap_mode="r")
        return mapped

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.about["names"])}

    def ids_of(self, node: str) -> Ints | None:
        """Give the point_ids of a tile in the order of its points; None where there is no such."""
        k = self._numbers.get(node)
        if k is None:
            return None
        first = self.about["first"]
        return self.ids[first[k] : first[k + 1]]


@dataclass
class _Points:
    """What tiles are made of, in the order in which the table gave it."""

    xyz: list[Floats]
    ids: Ints
    rgb: Uint16s
    seen: CloudStatistics
    has_colours: bool

    def samples(self, rows: Any) -> dict[str, Any]:
        """Give some of them as `point_tile` takes them."""
        places = {axis: values[rows] for axis, values in zip("xyz", self.xyz, strict=True)}
        colours = zip(("red", "green", "blue"), self.rgb[rows].T, strict=True)
        return {**places, **{name: np.ascontiguousarray(each) for name, each in colours}}

    def style(self) -> Style:
        """Say what their tiles have in common: they lie in the coordinates of the table."""
        cloud = self.seen.cloud()
        colours = tones(cloud.brightest, cloud.full, 16) if self.has_colours else None
        return Style(place_of("view", None, cloud.box), TileOptions(), colours)


def write_preview(con: "duckdb.DuckDBPyConnection", table: str, rows: int, folder: Path) -> Tiles:
    """Write a tileset of one tile with every so many points of a table.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    table : str
        As SQL.
    rows : int
        Of the table.
    folder : Path
        Empty.
    """
    every = -(-rows // PREVIEW_POINTS)
    points = _read(con, f"(FROM {table} WHERE point_id % {every} = 0)", rows, lambda _: None)
    style, size = points.style(), _side(points)
    node = Node(PREVIEW, np.array(points.seen.low), size, 0.0)
    order = order_of(node, points.samples(slice(None)), style.place)
    content, tile = point_tile(node, points.samples(order), style, folder / TILESET)
    (folder / "tiles").mkdir()
    (folder / "tiles" / f"{PREVIEW}.glb").write_bytes(content)
    tree = Tree(folder, "tiles", style.place, is_implicit=False)
    tree.tiles["r"] = Tile("r", tile.low, tile.high, 0.0)
    said = tree.close((tile.low, size), {})
    said["root"]["content"]["uri"] = f"tiles/{PREVIEW}.glb"
    (folder / TILESET).write_text(to_json(said), encoding="utf-8")
    np.save(folder / IDS, points.ids[order])
    _write_nodes(folder, [PREVIEW], [0, len(order)], points)
    return Tiles(folder)


def write_tiles(
    con: "duckdb.DuckDBPyConnection", table: str, rows: int, folder: Path, tick: Tick
) -> Tiles:
    """Write the tiles of all points of a table whose coordinates are finite.

    Parameters
    ----------
    con : duckdb.DuckDBPyConnection
    table : str
        As SQL, with columns point_id, x, y and z, none of them NULL.
    rows : int
        Of the table.
    folder : Path
        Empty.
    tick : callable
        Called with the share that is done.

    Raises
    ------
    ValueError
        If the table has no point.
    """
    points = _read(con, table, rows, lambda share: tick(0.4 * share))
    octree = _octree(points)
    tick(0.6)
    style = points.style()
    tree = Tree(folder / "tiles", "tiles", style.place, is_implicit=False, refine="ADD")
    ids = np.lib.format.open_memmap(folder / IDS, "w+", np.int64, (len(points.ids),))
    has_children = {name[:-1] for name in octree.names}

    def one(k: int) -> Tile:
        name, (first, stop) = octree.names[k], octree.first[k : k + 2]
        is_leaf = name not in has_children
        spacing = 0.0 if is_leaf else octree.spacing / 2 ** (len(name) - 1)
        if first == stop:
            nowhere = np.full(3, np.inf), np.full(3, -np.inf)
            return Tile(name, *nowhere, spacing * style.options.error_factor, is_empty=True)
        size = octree.size / 2 ** (len(name) - 1)
        low = np.array(octree.low) + size * np.array(cell_of(name), np.float64)
        node = Node(name, low, size, spacing)
        rows_of = np.asarray(octree.order[first:stop])
        rows_of = rows_of[order_of(node, points.samples(rows_of), style.place)]
        content, tile = point_tile(node, points.samples(rows_of), style, folder / TILESET)
        tree.content(name, is_leaf=is_leaf).write_bytes(content)
        ids[first:stop] = points.ids[rows_of]
        return tile

    count = len(octree.names)
    for begin in range(0, count, AT_ONCE):
        with workers() as pool:
            done = pool.map(one, range(begin, min(begin + AT_ONCE, count)))
        tree.tiles.update((tile.name, tile) for tile in done)
        tick(0.6 + 0.4 * min(begin + AT_ONCE, count) / count)
    ids.flush()
    said = tree.close((np.array(octree.low), octree.size), {"points": len(points.ids)})
    (folder / TILESET).write_text(to_json(said), encoding="utf-8")
    _write_nodes(folder, octree.names, octree.first.tolist(), points)
    return Tiles(folder)


def _write_nodes(folder: Path, names: list[str], first: list[int], points: _Points) -> None:
    said = {
        "names": names, "first": first, "points": len(points.ids),
        "box": [*points.seen.low.tolist(), *points.seen.high.tolist()],
    }  # fmt: skip
    (folder / NODES).write_text(json.dumps(said), encoding="utf-8")


def _side(points: _Points) -> float:
    return float((points.seen.high - points.seen.low).max()) or 1.0


def _read(con: "duckdb.DuckDBPyConnection", table: str, rows: int, tick: Tick) -> _Points:
    """Read places, ids and colours; points without colours are grey by their intensity."""
    from spatialq.udfs.build_lod.colours import colours

    there = {each[0].lower() for each in con.execute(f"DESCRIBE FROM {table}").fetchall()}
    channels = [name for name in CHANNELS if name in there]
    if not {"red", "green", "blue"} <= there:
        channels = [name for name in channels if name == "intensity"]
    wanted = [f"{axis}::DOUBLE AS {axis}" for axis in "xyz"]
    wanted += [
        f"coalesce(TRY_CAST({identifier(name)} AS USMALLINT), 0) AS {name}" for name in channels
    ]
    query = f"SELECT point_id::BIGINT AS point_id, {', '.join(wanted)} FROM {table} WHERE {FINITE}"
    seen = CloudStatistics("view", None, None)
    parts: list[tuple[Any, ...]] = []
    done = 0
    for batch in con.sql(query).to_arrow_reader(1 << 18):
        given: Mapping[str, Any] = {
            name: batch[name].to_numpy(zero_copy_only=False) for name in batch.schema.names
        }
        n = batch.num_rows
        rgb = colours(*(given.get(name) for name in CHANNELS), n)[:, :3]
        seen.add({**dict.fromkeys(CHANNELS), **given})
        parts.append((given["x"], given["y"], given["z"], given["point_id"], rgb))
        done += n
        tick(done / max(rows, 1))
    if not done:
        message = f"view: table {table} has no point with finite coordinates"
        raise ValueError(message)
    x, y, z, ids, rgb = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _Points([x, y, z], ids, rgb, seen, has_colours=bool(channels))


def _octree(points: _Points) -> "Octree":
    """Build the octree that has each point once, in the coarsest node where it stands for more."""
    from spatialq.execution.call import planned
    from spatialq.functions.catalogue import catalogue
    from spatialq.functions.declaration import Size
    from spatialq.runtime.progress import Task, current, running
    from spatialq.udfs.build_lod.additive import Additive
    from spatialq.udfs.build_lod.external_partitioning import rows_in_memory
    from spatialq.udfs.build_lod.validation import validate

    n = len(points.ids)
    options: Any = catalogue()[FUNCTION].choose({"strategy": "first"})
    collected = Additive(n)
    plan = planned([catalogue()[FUNCTION]], Size(n), options, "auto", transport="files")
    with running(current() or Task()), plan as execution:
        cloud = validate(*points.xyz, *[None] * 6)
        for nodes in rows_in_memory(cloud, options, execution, n, only_ids=True):
            collected.add(nodes)
    octree: Octree = collected.octree(options.grid_size, n)
    return octree
