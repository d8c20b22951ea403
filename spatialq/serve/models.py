"""Models of the scene: their elements as a tile, in the coordinates of the clouds beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.errors import SpatialqError
from spatialq.export.tiles.elements import Elements, write_elements
from spatialq.export.tiles.place import place_of
from spatialq.io import crs as crs_text
from spatialq.runtime.arrays import Floats
from spatialq.runtime.temporary import temporary_folder
from spatialq.serve.cache import digest, is_there
from spatialq.serve.sources import SCENE, Opened, Table
from spatialq.workflows.tables import dicts
from spatialq.workflows.tiles_elements import (
    GREY,
    NOT_DRAWN,
    PROPERTIES,
    meshes_of_table,
    moved_to_map,
)

TILESET = "tileset.json"


@dataclass(frozen=True)
class Model:
    """A model of the scene.

    Attributes
    ----------
    number : int
    name, table : str
    box : list of float, optional
        None where no element has a mesh.
    rows : list of dict
        As `elements.json` has them.
    folder : Path
        With the tileset.
    moved : callable
        Moves places of the model, float64[n, 3], to where they are in the scene.
    """

    number: int
    name: str
    table: str
    box: list[float] | None
    rows: list[dict[str, Any]]
    folder: Path
    moved: Callable[["Floats"], "Floats"]
    is_on_map: bool
    path: str | None
    """Of its file, as the database says."""

    @property
    def ids(self) -> set[str]:
        """GlobalIds of its elements."""
        return {row["global_id"] for row in self.rows}

    def said(self) -> dict[str, Any]:
        """Say it as the page takes it."""
        uri = None if self.box is None else f"models/{self.number}/{TILESET}"
        return {
            "id": self.number, "name": self.name, "tileset": uri, "box": self.box,
            "table": self.table, "on_map": self.is_on_map,
        }  # fmt: skip


def read_models(opened: Opened, clouds: Sequence[list[float]], cache: Path) -> list[Model]:
    """Give the models of all tables of elements, with tiles that are made unless they are there.

    A model with a map conversion is drawn on the map where that is nearer to the clouds; else it
    stays in its own coordinates.
    """
    found: list[Model] = []
    for table in opened.elements:
        files: list[Any] = [None]
        if "file_name" in table.names:
            files = [
                name
                for (name,) in opened.con.execute(
                    f"SELECT DISTINCT file_name FROM {table.sql} ORDER BY ALL"
                ).fetchall()
            ]
        for file in files:
            found.append(_model(opened, len(found), table, file, clouds, cache))
    return found


def _model(
    opened: Opened,
    number: int,
    table: Table,
    file: str | None,
    clouds: Sequence[list[float]],
    cache: Path,
) -> Model:
    con = opened.con
    where, keys = ("file_name IS NOT DISTINCT FROM ?", [file]) if file else ("true", [])
    rows = con.sql(f"FROM {table.sql} WHERE {where}", params=keys or None).to_arrow_table()
    if "ifc_class" in rows.column_names:
        classes = rows["ifc_class"].to_pylist()
        rows = rows.take([k for k, each in enumerate(classes) if each not in NOT_DRAWN])
    meshes = meshes_of_table(rows)
    said = _georeference(opened, table, file)
    on_map = _to_map(said)
    moves = on_map is not None and _is_nearer(meshes.vertices, on_map, clouds)
    moved = on_map if moves and on_map is not None else lambda places: places
    meshes = Meshes(moved(meshes.vertices), meshes.faces, meshes.vertex_starts, meshes.face_starts)
    boxes = _boxes(meshes)
    known = [box for box in boxes if box is not None]
    box = None
    if known:
        corners = np.array(known)
        box = [*corners[:, :3].min(axis=0).tolist(), *corners[:, 3:].max(axis=0).tolist()]
    names = [name for name in PROPERTIES if name in rows.column_names]
    columns = {name: rows[name].to_pylist() for name in names}
    systems = _systems(opened, table)
    listed = [
        {
            "model": number,
            **{name: columns[name][k] if name in columns else None for name in PROPERTIES},
            "system": systems.get(columns["global_id"][k]),
            "box": boxes[k],
        }
        for k in range(rows.num_rows)
    ]
    folder = cache / f"model-{digest(table.stamp, table.name, file, moves)}"
    if box is not None and not is_there(folder):
        properties = {
            name: ["" if each is None else str(each) for each in values]
            for name, values in columns.items()
        }
        elements = Elements(meshes, _colours(rows, file), properties)
        low_x, low_y, low_z, high_x, high_y, high_z = box
        place = place_of("view", None, (low_x, low_y, low_z, high_x, high_y, high_z))
        with temporary_folder("model_", cache) as parts:
            new = parts / "new"
            new.mkdir()
            write_elements(new / TILESET, elements, place, {}, compress=True)
            if not folder.is_dir():
                new.rename(folder)
    title = table.name if file is None else Path(file).name
    return Model(number, title, table.name, box, listed, folder, moved, moves, file)


def _boxes(meshes: Meshes) -> list[list[float] | None]:
    found: list[list[float] | None] = []
    for first, stop in pairwise(meshes.vertex_starts):
        if first == stop:
            found.append(None)
            continue
        own = meshes.vertices[first:stop]
        found.append([*own.min(axis=0).tolist(), *own.max(axis=0).tolist()])
    return found


def _beside(opened: Opened, table: Table, name: str) -> Table | None:
    """Give a table that `load` made beside one of elements."""
    from spatialq.database.model_tables import beside_elements

    wanted = beside_elements(table.name, name), table.database
    return next((each for each in opened.tables if (each.name, each.database) == wanted), None)


def _systems(opened: Opened, table: Table) -> dict[str, str]:
    relations = _beside(opened, table, "relations")
    if relations is None:
        return {}
    rows = opened.con.execute(
        f"SELECT child, min(parent_name) FROM {relations.sql} "
        "WHERE kind = 'assigned_to_system' AND parent_name IS NOT NULL GROUP BY ALL"
    ).fetchall()
    return dict(rows)


def _georeference(opened: Opened, table: Table, file: str | None) -> dict[str, Any] | None:
    models = _beside(opened, table, "models")
    if models is None or table.database != SCENE:
        return None
    rows = dicts(
        opened.con.execute(
            f"FROM {models.sql} WHERE file_name IS NOT DISTINCT FROM ? AND eastings IS NOT NULL",
            [file],
        )
    )
    return rows[0] if rows else None


def _to_map(
    said: Mapping[str, Any] | None,
) -> Callable[[Floats], Floats] | None:
    """Give the function that moves places of a model to the map."""
    if said is None:
        return None
    crs = None
    if said["crs_name"]:
        try:
            crs = crs_text.from_text(said["crs_name"])
        except SpatialqError:
            crs = None  # metres, as where it has no CRS

    def to_map(places: Floats) -> Floats:
        none = np.empty((0, 3), np.int32)
        starts = np.array([0, len(places)])
        given = Meshes(places, none, starts, np.array([0, 0]))
        found: Floats = moved_to_map(given, said, crs, said["length_unit_metres"]).vertices
        return found

    return to_map


def _is_nearer(
    places: Floats,
    on_map: Callable[[Floats], Floats],
    clouds: Sequence[list[float]],
) -> bool:
    """Whether a model is nearer to the clouds on the map than in its own coordinates."""
    if not clouds or not len(places):
        return False
    boxes = np.array(clouds)
    low, high = boxes[:, :3].min(axis=0), boxes[:, 3:].max(axis=0)

    def gap(given: Floats) -> float:
        apart = np.maximum(low - given.max(axis=0), given.min(axis=0) - high)
        return float(np.linalg.norm(np.maximum(apart[:2], 0)))

    return gap(on_map(places)) < gap(places)


def _colours(rows: Any, file: str | None) -> Floats:
    """Give the colours of elements: those of their file, while it is there."""
    from spatialq.io.ifc.colours import read_colours

    has_steps = "step_id" in rows.column_names
    if file is None or not has_steps or not Path(file).is_file():
        return np.tile(GREY, (rows.num_rows, 1))
    known = read_colours(Path(file))
    own = [known.get(number, GREY) for number in rows["step_id"].to_pylist()]
    return np.array(own, np.float64).reshape(-1, 4)
