"""Clashing elements of all models as one coordinated file, IFC or glTF, coloured."""

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import FileWarning
from spatialq.export.atomic import WRITER, require_outputs
from spatialq.export.coordinated import Element
from spatialq.export.coordinated_glb import write_coordinated_glb
from spatialq.export.coordinated_ifc import guid_of, write_coordinated_ifc
from spatialq.export.ifc import ENDINGS
from spatialq.workflows.clash_elements import (
    Building,
    Clash,
    Painted,
    clashes_of,
    coloured,
    read_building,
)

if TYPE_CHECKING:
    from spatialq.database.writers import Result

GLB = ".glb"
PROPERTY_SET = "Clash"
MOST_PARTNERS = 40
"""Elements that a clashing one names."""


def write(result: "Result", path: Path) -> int:
    """Write the elements of clashes as a model; see `docs/clash_outputs.md`.

    Returns
    -------
    int
        Elements written.

    Raises
    ------
    FileError
        If a model cannot be read, or the file cannot be written.
    ValueError
        If elements are not in the models.

    Warns
    -----
    FileWarning
        If a GlobalId is of several elements, which IFC cannot have: all but the first get a new
        one.
    """
    clashes, files = clashes_of(result, path)
    require_outputs(WRITER, files, [path], (*ENDINGS, GLB))
    building = read_building(WRITER, clashes, files, path)
    is_glb = path.suffix.lower() == GLB
    if building is None:  # a model of nothing, as an empty list of clashes is a list
        if is_glb:
            write_coordinated_glb(path, [])
        else:
            write_coordinated_ifc(path, [], "Clashes")
        return 0
    painted = coloured(clashes, building)
    if is_glb:
        ids = {row: building.table["global_id"][row].as_py() for row in painted}
        write_coordinated_glb(path, list(_elements(clashes, building, painted, ids)))
    else:
        ids = _unique(painted, building, path)
        write_coordinated_ifc(path, _elements(clashes, building, painted, ids), "Clashes")
    return len(painted)


def _unique(painted: dict[int, Painted], building: Building, path: Path) -> dict[int, str]:
    """Give each element a GlobalId of its own: its own one, if none before has it."""
    table = building.table
    ids: dict[int, str] = {}
    taken: set[str] = set()
    repeated = []
    for row in painted:
        own = table["global_id"][row].as_py()
        if own in taken:
            repeated.append(own)
            place = (table[name][row].as_py() for name in ("file_name", "step_id"))
            own = guid_of("element", own, *map(str, place))
        taken.add(own)
        ids[row] = own
    if repeated:
        message = (
            f"{WRITER}: '{path}': {len(repeated):,} GlobalIds are of several elements, such as "
            f"'{repeated[0]}': all but the first get a new one, and keep theirs as a property"
        )
        warnings.warn(message, FileWarning, stacklevel=6)
    return ids


def _elements(
    clashes: Sequence[Clash], building: Building, painted: dict[int, Painted], ids: dict[int, str]
) -> Iterator[Element]:
    partners: dict[int, list[str]] = {}
    deepest: dict[int, float] = {}
    for clash in clashes:
        pair = building.pair(clash)
        for row, other in (pair, pair[::-1]):
            partners.setdefault(row, []).append(ids[other])
            deepest[row] = max(deepest.get(row, 0.0), clash.get("penetration") or 0.0)
    meshes = building.meshes.take(list(painted))
    for k, (row, paint) in enumerate(painted.items()):
        said = {name: building.table[name][row].as_py() for name in building.table.column_names
                if name != "mesh"}  # fmt: skip
        vertices = slice(*meshes.vertex_starts[k : k + 2])
        faces = slice(*meshes.face_starts[k : k + 2])
        own: dict[str, Any] = json.loads(said["properties"] or "{}")
        clash_set = {
            "ShownAs": paint.label,
            "Clashes": len(partners[row]),
            "Deepest": deepest[row],
            "With": " ".join(partners[row][:MOST_PARTNERS]),
            "GlobalId": said["global_id"],
            "Model": said["file_name"],
        }
        yield Element(
            ids[row], said["ifc_class"], said["name"], said["description"], said["storey"],
            building.names[said["file_name"]], meshes.vertices[vertices], meshes.faces[faces],
            said["is_closed"], paint.colour, paint.label, {**own, PROPERTY_SET: clash_set},
        )  # fmt: skip
