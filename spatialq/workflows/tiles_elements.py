"""Elements of 3D Tiles: from building models, which are put on the map, and from tables."""

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.errors import CrsError, CrsWarning
from spatialq.export.tiles.elements import Elements, write_elements
from spatialq.export.tiles.options import TileOptions
from spatialq.export.tiles.place import place_of
from spatialq.io import crs as crs_text
from spatialq.runtime.arrays import Floats
from spatialq.workflows.given_crs import GivenCrs

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.io.ifc.model import IfcModel
    from spatialq.io.source import Progress

COMMAND = "tiles"
NOT_DRAWN = ("IfcOpeningElement", "IfcSpace", "IfcVirtualElement")
PROPERTIES = ("global_id", "ifc_class", "name", "storey")
GREY = (0.8, 0.8, 0.8, 1.0)
"""Of an element without a colour."""
NEARLY_ONE = 0.01
"""How much the scale of a map conversion may differ from 1 and still be one of the map."""


def elements_of_models(
    paths: Sequence[Path], given: GivenCrs, progress: "Progress | None"
) -> tuple[Elements, str | None]:
    """Read models, without openings and spaces; give their elements on the map, and its CRS."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from spatialq.database.readers.ifc_models import warn_about_model
    from spatialq.io import georeference
    from spatialq.io.ifc.cache import read_models
    from spatialq.io.ifc.colours import read_colours

    models = read_models(paths, geometry="auto", progress=progress)
    for model in models:
        warn_about_model(COMMAND, model, stacklevel=4)
    georeference.require_same(COMMAND, [(f"'{m.path}'", m.georeference) for m in models])
    tables, colours = [], []
    for model in models:
        table = model.tables["elements"]
        is_drawn = pc.invert(pc.is_in(table["ifc_class"], pa.array(NOT_DRAWN)))
        table = table.filter(is_drawn)
        known = read_colours(model.path)
        colours += [known.get(number, GREY) for number in table["step_id"].to_pylist()]
        tables.append(table)
    table = pa.concat_tables(tables)
    names = (*PROPERTIES, *(("file_name",) if len(models) > 1 else ()))
    properties = {name: _texts(table[name]) for name in names}
    meshes = meshes_of_table(table)
    placed, own = _on_map(meshes, models[0], given)
    return Elements(placed, np.array(colours).reshape(-1, 4), properties), own


def _on_map(meshes: Meshes, model: "IfcModel", given: GivenCrs) -> tuple[Meshes, str | None]:
    """Move meshes to where the map conversion says, in units of the map; and give its CRS."""
    said, own = model.georeference, None
    if said is not None and said["crs_name"]:
        try:
            own = crs_text.from_text(said["crs_name"])
        except CrsError as error:
            if given.crs is None:
                message = f"{COMMAND}: '{model.path}': {error}"
                warnings.warn(message, CrsWarning, stacklevel=3)
    own = given.for_source(model.path, own)
    if said is None:
        return meshes, own
    return moved_to_map(meshes, said, own, model.length_unit_metres), own


def moved_to_map(
    meshes: Meshes, said: Mapping[str, Any], crs: str | None, length_unit_metres: float | None
) -> Meshes:
    """Move meshes to where a map conversion says, in units of the map.

    Parameters
    ----------
    meshes : Meshes
        In metres.
    said : mapping
        scale, x_axis_abscissa, x_axis_ordinate, eastings, northings, orthogonal_height; None where
        the model does not say.
    crs : str, optional
        PROJJSON of the map.
    length_unit_metres : float, optional
        Of the model's own unit.
    """
    units = None if crs is None else crs_text.metres_per_unit(crs)
    metres = units[0] if units else 1.0
    factor = (said["scale"] or 0.0) * metres / (length_unit_metres or 1.0)
    if abs(factor - 1) > NEARLY_ONE:
        factor = 1.0  # not said, or forgotten: many programs write 1 whatever the units are
    x, y = said["x_axis_abscissa"], said["x_axis_ordinate"]
    angle = math.atan2(y, x) if x is not None and y is not None else 0.0
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    moved = np.empty_like(meshes.vertices)
    moved[:, :2] = meshes.vertices[:, :2] @ turn.T * (factor / metres)
    moved[:, 2] = meshes.vertices[:, 2] / metres
    moved += [said["eastings"] or 0.0, said["northings"] or 0.0, said["orthogonal_height"] or 0.0]
    return Meshes(moved, meshes.faces, meshes.vertex_starts, meshes.face_starts)


def elements_of_table(table: "pa.Table") -> Elements:
    """Give the elements of a table.

    Raises
    ------
    ValueError
        If there is no mesh, or a colour cannot be read.
    """
    import pyarrow.types as types

    if "mesh" not in table.column_names or not types.is_struct(table.schema.field("mesh").type):
        message = (
            f"{COMMAND}: source must have a column mesh as read_ifc gives it, got the columns "
            f"{', '.join(table.column_names)}"
        )
        raise ValueError(message)
    left = [
        field.name
        for field in table.schema
        if field.name not in ("mesh", "colour") and not types.is_nested(field.type)
    ]
    colours = np.tile(GREY, (table.num_rows, 1))
    if "colour" in table.column_names:
        for k, text in enumerate(table["colour"].to_pylist()):
            if text is not None:
                colours[k] = _colour(text)
    return Elements(meshes_of_table(table), colours, {name: _texts(table[name]) for name in left})


def _colour(text: Any) -> Floats:
    try:
        channels = bytes.fromhex(text.removeprefix("#"))
        if len(channels) not in (3, 4) or not text.startswith("#"):
            raise ValueError
    except (ValueError, AttributeError):
        message = f"{COMMAND}: colour must be like '#c04040' or '#80c0ff40', got {text!r}"
        raise ValueError(message) from None
    return np.array([*channels, 255][:4]) / 255


def _texts(column: "pa.ChunkedArray") -> list[str]:
    import pyarrow as pa

    return ["" if each is None else each for each in column.cast(pa.string()).to_pylist()]


def meshes_of_table(table: "pa.Table") -> Meshes:
    """Give the meshes of a table, empty ones for NULL."""
    from spatialq.database.transport.elements import meshes_of

    return meshes_of(f"{COMMAND}: mesh", table["mesh"].combine_chunks())


def write_tiles_of_elements(
    elements: Elements, target: Path, crs: str | None, tiles: TileOptions, began: float
) -> dict[str, Any]:
    """Write elements and say what was written, as `write_tiles` does."""
    vertices = elements.meshes.vertices
    low, high = (
        (vertices.min(axis=0).tolist(), vertices.max(axis=0).tolist())
        if len(vertices)
        else ([0.0] * 3, [0.0] * 3)
    )
    place = place_of(COMMAND, crs, (low[0], low[1], low[2], high[0], high[1], high[2]))
    extras = {
        "elements": len(elements.meshes),
        "crs": crs_text.compact(crs),
        "lies_in": place.lies_in,
    }
    write_elements(target, elements, place, extras, compress=tiles.compress)
    return {
        "elements": len(elements.meshes),
        "triangles": len(elements.meshes.faces),
        "seconds": time.perf_counter() - began,
        "outputs": [str(target)],
    }
