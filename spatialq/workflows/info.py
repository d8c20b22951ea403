"""What a file holds: counts, extent, CRS, and what is particular to its kind."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.errors import files_read_by
from spatialq.io import crs
from spatialq.io.bcf import read_bcf
from spatialq.io.files import require_file
from spatialq.io.formats import open_source, reader_of
from spatialq.io.las.copc import octree_said
from spatialq.io.potree import read_potree
from spatialq.io.source import PointSource, Progress
from spatialq.io.tileset import TILESET, read_tileset
from spatialq.runtime.arrays import Floats

if TYPE_CHECKING:
    from spatialq.io.grid.source import GridSource
    from spatialq.io.ifc.model import IfcModel

COMMAND = "info"
COUNTED = {"classification": "classes", "return_number": "returns"}
"""Columns of which the values are counted, and what the counts are called."""


def describe(path: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Describe a point cloud, grid, building model or tiles; clouds and grids are read once.

    Parameters
    ----------
    path : Path
    progress : callable, optional
        Called with file, rows so far and rows in all.

    Returns
    -------
    dict
        For people and JSON alike: path, kind, format and warnings. Of clouds and grids rows, crs,
        extent and z range of the values, and columns; of clouds the density in points per square
        metre (per square unit without a CRS, None in degrees), how many points each class and each
        return number has, and of LAS files the version, point format and scale; of grids size, cell
        size, bands, data type and value of "no value". Of models schema, unit of length, extent and
        storeys in metres, georeference, how many objects, relations and properties there are, and
        the products with geometry by class. Of 3D Tiles and Potree levels, tiles, points and
        attributes; what does not go together is in warnings. Of BCF archives how many topics,
        comments, viewpoints and components they have.

    Raises
    ------
    FileError
        If the file cannot be read.
    """
    describe_viewed = VIEWED.get(path.name.lower())
    if describe_viewed is not None:
        require_file(COMMAND, path)
        return {"path": str(path), "kind": "tiles", **describe_viewed(path)}
    reader = reader_of(COMMAND, path, others=VIEWED)
    known = {"path": str(path), "kind": reader.kind, "format": reader.name}
    if reader.kind == "ifc":
        from spatialq.io.ifc.cache import read_models

        (model,) = read_models([path], geometry="auto")
        return {**known, **_of_model(model)}
    if reader.kind == "bcf":
        return {**known, **_of_bcf(path)}
    source: Any = open_source(COMMAND, path)
    describe_rows = _of_cloud if reader.kind == "points" else _of_grid
    found = describe_rows(source, progress)
    return {
        **known,
        "rows": source.rows,
        "crs": crs.name(source.crs),
        **found,
        "columns": ", ".join(source.schema.names),
        "warnings": "; ".join(source.warnings) or None,
    }


def _of_tiles(path: Path) -> dict[str, Any]:
    found = read_tileset(COMMAND, path)
    extras = found.about.get("extras")
    said = extras if isinstance(extras, dict) else {}
    return {
        "format": f"3D Tiles {found.about['asset'].get('version')}",
        "tiles": found.tiles,
        "levels": found.levels,
        "points of leaves": found.leaf_points,
        "points of all tiles": found.points,
        "triangles": found.triangles,
        "elements": said.get("elements"),
        "crs": said.get("crs"),
        "lies in": said.get("lies_in"),
        "geometric error": found.about.get("geometricError"),
        "bytes": found.bytes,
        "attributes": ", ".join(found.attributes),
        "warnings": "; ".join(found.faults) or None,
    }


def _of_potree(path: Path) -> dict[str, Any]:
    found = read_potree(COMMAND, path)
    return {
        "format": f"Potree {found.about['version']}",
        "rows": found.about["points"],
        "crs": found.crs,
        "xmin ymin xmax ymax": [found.range(axis)[end] for end in (0, 1) for axis in (0, 1)],
        "zmin zmax": found.range(2),
        **octree_said(found.nodes, found.about["spacing"], found.points),
        "encoding": found.about["encoding"],
        "bytes": found.bytes,
        "columns": ", ".join(each["name"] for each in found.about["attributes"]),
        "warnings": "; ".join(found.faults) or None,
    }


VIEWED = {TILESET: _of_tiles, "metadata.json": _of_potree}
"""What describes a file that stands for its folder, which viewers show."""


def _of_model(model: "IfcModel") -> dict[str, Any]:
    import duckdb
    import pyarrow.compute as pc

    from spatialq.workflows.places import EXTENT, places

    objects = model.tables["objects"]
    with duckdb.connect() as con:
        for name in ("elements", "objects", "models"):
            con.register(name, model.tables[name])
        (place,) = places(con)
    classes = objects.filter(objects["has_geometry"])["ifc_class"].value_counts().to_pylist()
    return {
        "schema": model.schema,
        "length unit": model.length_unit,
        **{name: place[name] for name in (*EXTENT, "storeys", "georeference")},
        "objects": objects.num_rows,
        "products with geometry": pc.sum(objects["has_geometry"]).as_py() or 0,
        "products by class": {each["values"]: each["counts"] for each in _most_first(classes)},
        "relations": model.tables["relations"].num_rows,
        "properties": model.tables["properties"].num_rows,
        "warnings": "; ".join(model.warnings) or None,
    }


def _of_bcf(path: Path) -> dict[str, Any]:
    with files_read_by(COMMAND):
        found = read_bcf(path)
    topics = found.rows["topics"]
    components = Counter(each["role"] for each in found.rows["components"])
    return {
        "version": found.version,
        "project": next((each["project"] for each in topics), None),
        "topics": len(topics),
        "topics by status": dict(Counter(str(each["status"]) for each in topics).most_common()),
        "comments": len(found.rows["comments"]),
        "viewpoints": len(found.rows["viewpoints"]),
        "components by role": dict(sorted(components.items())),
        "warnings": "; ".join(found.warnings) or None,
    }


def _most_first(counts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(counts, key=lambda each: (-each["counts"], each["values"]))


def _of_cloud(cloud: PointSource, progress: Progress | None) -> dict[str, Any]:
    box = _Box()
    there = [name for name in COUNTED if name in cloud.schema.names]
    counts: dict[str, Counter[Any]] = {name: Counter() for name in there}
    rows = 0
    for batch in cloud.batches(("x", "y", "z", *counts)):
        box.add(*(batch[axis].to_numpy() for axis in "xyz"))
        for name, counted in counts.items():
            # of any type: a file may have fractions, text and NULL in them
            for each in batch[name].value_counts().to_pylist():
                counted[each["values"]] += each["counts"]
        rows += batch.num_rows
        if progress is not None:
            progress(cloud.path, rows, cloud.rows)
    values = {name: _there(counts[column]) for column, name in COUNTED.items() if column in counts}
    return {
        "rows": rows,
        **box.said,
        "density": _density(cloud, rows, box),
        **cloud.about,
        **values,
    }


def _there(counts: Mapping[Any, int]) -> Mapping[str, int]:
    known = sorted(value for value in counts if value is not None)
    missing = {"NULL": counts[None]} if None in counts else {}
    return {**{str(value): counts[value] for value in known}, **missing}


def _density(cloud: PointSource, rows: int, box: "_Box") -> float | None:
    """Points per square metre of the extent; per square unit where the unit is not known."""
    units = (1.0, 1.0) if cloud.crs is None else crs.metres_per_unit(cloud.crs)
    width, depth, _ = box.high - box.low
    if units is None or not rows or width * depth == 0:
        return None
    return float(rows / (width * depth * units[0] ** 2))


def _of_grid(grid: "GridSource", progress: Progress | None) -> dict[str, Any]:
    heights, rows, valued = _Box(), 0, 0
    for batch in grid.batches(("z",)):
        z = batch["z"].drop_null().to_numpy()
        heights.add(z)
        rows, valued = rows + batch.num_rows, valued + z.size
        if progress is not None:
            progress(grid.path, rows, grid.rows)
    assert grid.box is not None  # that of a cloud may be unknown
    return {
        "xmin ymin xmax ymax": [grid.box[k] for k in (0, 1, 3, 4)],
        "zmin zmax": heights.range(0),
        "columns x rows": list(grid.shape),
        "cell size": list(grid.cell_size),
        "cells with a value": valued,
        "bands": grid.bands,
        "type": grid.type,
        "nodata": grid.declared_nodata,
    }


class _Box:
    """The running minimum and maximum of coordinates."""

    def __init__(self) -> None:
        self.low, self.high = np.full(3, np.inf), np.full(3, -np.inf)

    def add(self, *axes: Floats) -> None:
        for k, values in enumerate(axes):
            self.low[k] = values.min(initial=self.low[k])
            self.high[k] = values.max(initial=self.high[k])

    def range(self, k: int) -> list[float] | None:
        """Minimum and maximum along an axis; None where there was no value."""
        low, high = float(self.low[k]), float(self.high[k])
        return [low, high] if low <= high else None

    @property
    def said(self) -> dict[str, Any]:
        """Extent and range of heights."""
        x, y, z = (self.range(k) for k in range(3))
        across = None if x is None or y is None else [x[0], y[0], x[1], y[1]]
        return {"xmin ymin xmax ymax": across, "zmin zmax": z}
