"""What changed from one state of a model to another, object by object: `model_changes` in SQL."""

import json
import math
import reprlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.arrow import arrow_fields
from spatialq.database.element_matching import State, match
from spatialq.database.readers.files import given
from spatialq.database.readers.ifc_models import warn_about_model
from spatialq.errors import files_read_by
from spatialq.geometry.motion import Motion, is_in_place, motion
from spatialq.io.files import require_file
from spatialq.io.ifc.cache import read_models
from spatialq.io.ifc.columns import CHANGES, STATE
from spatialq.io.storage import as_path

FUNCTION, OF_TABLES = "model_changes", "revision_changes"
TYPE = ("ifc_class", "predefined_type", "type_id")
REFERENCES = ("type_id", "storey_id", "container_id", "parent_id")
"""Columns with GlobalIds, which may be new where the object is the same."""
TEXTS = ("description", "object_type", "tag", "long_name", "material")
KNOWN = {
    "Name", "Description", "ObjectType", "Tag", "LongName", "PredefinedType", "HasPropertySets",
}  # fmt: skip
"""Attributes that are columns, or tables, of their own."""
DIGITS = 1e-9
"""By which part of them numbers may differ that are the same."""

ROWS = pa.list_(pa.struct(arrow_fields(CHANGES)))
Detail = dict[str, str | None]


def model_changes(
    olds: pa.ChunkedArray,
    news: pa.ChunkedArray,
    unchanged: pa.ChunkedArray,
    tolerances: pa.ChunkedArray,
) -> pa.Array:
    """List what changed from each old file to the new one beside it.

    Raises
    ------
    FileError
        If a file cannot be read.
    ValueError
        If an argument is NULL or out of range.
    """
    paths = (given(FUNCTION, olds, "old"), given(FUNCTION, news, "new"))
    rows = zip(*paths, _options(FUNCTION, unchanged, tolerances), strict=True)
    found = []
    for old, new, options in rows:
        pair = [as_path(old), as_path(new)]
        for path in pair:
            require_file(FUNCTION, path)
        with files_read_by(FUNCTION):
            models = read_models(pair, geometry="auto")
        for model in models:
            warn_about_model(FUNCTION, model, stacklevel=3)
        one, other = (
            State.of_model(model.tables["objects"], model.tables["elements"]) for model in models
        )
        found.append(_listed(one, other, options))
    return pa.array(found, ROWS)


def revision_changes(
    olds: pa.ChunkedArray,
    news: pa.ChunkedArray,
    unchanged: pa.ChunkedArray,
    tolerances: pa.ChunkedArray,
) -> pa.Array:
    """List what changed from each old state to the new one beside it, lists of rows of `STATE`.

    Raises
    ------
    ValueError
        If an option is NULL or out of range.
    """
    options = _options(OF_TABLES, unchanged, tolerances)
    return pa.array(
        [
            _listed(_state(old), _state(new), each)
            for old, new, each in zip(olds, news, options, strict=True)
        ],
        ROWS,
    )


def _options(
    function: str, unchanged: pa.ChunkedArray, tolerances: pa.ChunkedArray
) -> list[tuple[bool, float]]:
    """Give whether unchanged objects are listed, and the tolerance, of each call."""
    given = list(zip(unchanged.to_pylist(), tolerances.to_pylist(), strict=True))
    for all_of_them, tolerance in given:
        if all_of_them is None:
            message = f"{function}: unchanged must be true or false, got NULL"
            raise ValueError(message)
        if tolerance is None or not 0 <= tolerance < math.inf:
            got = "NULL" if tolerance is None else tolerance
            message = f"{function}: tolerance must be metres >= 0, got {got}"
            raise ValueError(message)
    return given


def _state(rows: pa.ListScalar) -> State:
    """Take the rows of one state; None are those of empty tables."""
    given = rows.values if rows.is_valid else pa.array([], pa.struct(arrow_fields(STATE)))
    objects = pa.Table.from_struct_array(given)
    has_mesh = objects["mesh"].is_valid()
    elements = objects.select(["mesh"]).filter(has_mesh)
    mesh_of = np.where(has_mesh.to_numpy(), np.cumsum(has_mesh.to_numpy()) - 1, -1)
    return State(objects.drop_columns(["mesh"]), State.of_elements(elements).meshes, mesh_of)


def _listed(old: State, new: State, options: tuple[bool, float]) -> list[dict[str, Any]]:
    all_of_them, tolerance = options
    rows = changes(old, new, tolerance=tolerance)
    return [row for row in rows if all_of_them or row["status"] != "unchanged"]


def changes(one: State, other: State, *, tolerance: float) -> Iterator[dict[str, Any]]:
    """Give a row for each object of two states: those of the new one, then those removed.

    Parameters
    ----------
    one, other : State
        The old and the new one.
    tolerance : float
        Metres: what moved less did not move.
    """
    before, after = one.objects.to_pylist(), other.objects.to_pylist()
    matches = match(one, other, tolerance)
    new_id = {before[i]["global_id"]: after[j]["global_id"] for i, j, _ in matches}
    named = {row["global_id"]: (row["ifc_class"], row["name"]) for row in (*before, *after)}
    old_of = {j: (i, by) for i, j, by in matches}
    for j, row in enumerate(after):
        if j not in old_of:
            yield {**_row(row), "status": "added", "changes": ["added"]}
            continue
        i, by = old_of[j]
        geometry, moved = _of_geometry(one, other, i, j, tolerance)
        details = list(_details(before[i], row, new_id, named))
        kinds = {_kind(str(each["property"])) for each in details}
        found = geometry + [each for each in ("renamed", "retyped", "property") if each in kinds]
        yield {
            **_row(row),
            "status": "changed" if found else "unchanged",
            "changes": found,
            **moved,
            "details": details,
            "matched_by": by,
            "old_global_id": before[i]["global_id"],
            "old_step_id": before[i]["step_id"],
        }
    kept = {i for i, *_ in matches}
    for i, row in enumerate(before):
        if i not in kept:
            removed = {**_row(row), "old_global_id": row["global_id"], "step_id": None}
            yield {
                **removed, "status": "removed", "changes": ["removed"],
                "old_step_id": row["step_id"],
            }  # fmt: skip


def _row(row: dict[str, Any]) -> dict[str, Any]:
    there = {name: row[name] for name in CHANGES if name in row}
    return {**dict.fromkeys(CHANGES), "details": [], **there}


def _of_geometry(
    old: State, new: State, i: int, j: int, tolerance: float
) -> tuple[list[str], dict[str, Any]]:
    """Say what became of the mesh of an object: its change, and how it moved."""
    a, b = old.shape(i), new.shape(j)
    if a is None or b is None:
        return ([] if a is b else ["reshaped"]), {}
    if is_in_place(a, b, tolerance):
        return [], {}
    found = motion(a, b, tolerance)
    return (["reshaped"], {}) if found is None else (["moved"], _moved(found))


def _moved(found: Motion) -> dict[str, Any]:
    # rounded to the micrometre and to what that is in degrees of a building
    dx, dy, dz = (np.round(found.shift, 6) + 0.0).tolist()  # -0.0 is 0
    axis = None if found.axis is None else np.round(found.axis, 9).tolist()
    return {"dx": dx, "dy": dy, "dz": dz, "turn": round(found.turn, 6), "axis": axis}


def _kind(changed: str) -> str:
    return {"name": "renamed", **dict.fromkeys(TYPE, "retyped")}.get(changed, "property")


def _details(
    old: dict[str, Any],
    new: dict[str, Any],
    new_id: dict[str, str],
    named: dict[str, tuple[str, str | None]],
) -> Iterator[Detail]:
    """Give each attribute and property that is not the same, with both values."""
    for name in ("name", *TYPE[:2], *TEXTS):
        if old[name] != new[name]:
            yield {"property": name, "old": old[name], "new": new[name]}
    for name in REFERENCES:
        a, b = old[name], new[name]
        # of one that was replaced by another of the same name nothing is to be seen
        if new_id.get(a, a) != b and (a in new_id or a is None or named[a] != named.get(b)):
            said = (None if each is None else named[each][1] or each for each in (a, b))
            yield dict(zip(("property", "old", "new"), (name, *said), strict=True))
    for column in ("attributes", "properties"):
        if old[column] != new[column]:
            one, other = (dict(_flat(_object(column, row))) for row in (old, new))
            yield from _of_json(one, other, new_id)


def _object(column: str, row: dict[str, Any]) -> dict[str, Any]:
    """Understand a column of JSON, which users may have written themselves.

    Raises
    ------
    ValueError
        If it is no JSON object.
    """
    given: str = row[column] or "{}"
    with suppress(ValueError):
        found = json.loads(given)
        if isinstance(found, dict):
            return found
    message = (
        f"{OF_TABLES}: {column} of '{row['global_id']}' in '{row['file_name']}' must be a JSON "
        f"object, got {reprlib.repr(given)}"
    )
    raise ValueError(message)


def _flat(values: dict[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Give the values of a JSON object by their paths, such as Pset_WallCommon.FireRating."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{place}{name}.")
        elif place or name not in KNOWN:
            yield f"{place}{name}", value


def _of_json(old: dict[str, Any], new: dict[str, Any], new_id: dict[str, str]) -> Iterator[Detail]:
    for name in dict.fromkeys((*old, *new)):
        a, b = old.get(name), new.get(name)
        if not _is_same(a, b, new_id):
            yield {"property": name, "old": _text(a), "new": _text(b)}


def _is_same(a: Any, b: Any, new_id: dict[str, str]) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(
            _is_same(one, other, new_id) for one, other in zip(a, b, strict=True)
        )
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=DIGITS)
    return bool(a == b or (isinstance(a, str) and new_id.get(a, a) == b))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
