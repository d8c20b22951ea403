"""The rows of `model_alignment`, as they come from DuckDB's columns and go there."""

import math
from collections.abc import Mapping
from itertools import combinations
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.arrow import arrow_type
from spatialq.data.meshes import Meshes

from . import ROWS
from .facets import turning
from .federation import FITTING, Model, Move, groups_of, models_of, unmoved
from .search import Match, match

CALLER = "model_alignment"
DIRECTIONS = (("east", "west"), ("north", "south"), ("above", "below"))
LEAST = 5e-4
"""Metres: less is not said."""


def alignments(elements: Any) -> pa.Array:
    """Compare the models of lists of elements: of each row a list of rows."""
    return pa.array([_rows(each) for each in elements.combine_chunks()], arrow_type(f"{ROWS}[]"))


def _rows(elements: Any) -> list[dict[str, Any]] | None:
    if not elements.is_valid:
        return None
    rows = elements.values
    codes = rows.field("file_name").dictionary_encode()
    numbers = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = codes.dictionary.to_pylist()
    found = {
        name: _meshes(rows.field("mesh").filter(pa.array(numbers == k)))
        for k, name in sorted(enumerate(names), key=lambda each: each[1])
    }
    return compare(found)


def _meshes(column: Any) -> Meshes:
    """Check meshes, and take them as they are stored.

    Raises
    ------
    ValueError
        If their lists are no vertices and faces.
    """
    vertices, faces = column.field("vertices"), column.field("faces")
    starts = [each.offsets.to_numpy().astype(np.int64) for each in (vertices, faces)]
    points = vertices.values.to_numpy(zero_copy_only=False)[starts[0][0] : starts[0][-1]]
    corners = faces.values.to_numpy(zero_copy_only=False)[starts[1][0] : starts[1][-1]]
    counts = [np.diff(each) for each in starts]
    limits = np.repeat(counts[0] // 3, counts[1])
    is_right = (
        not any((each % 3).any() for each in counts)
        and np.isfinite(points).all()
        and ((corners >= 0) & (corners < limits)).all()
    )
    if not is_right:
        message = (
            f"{CALLER}: meshes must have finite vertices, x y z each, and faces of three of them, "
            "got others"
        )
        raise ValueError(message)
    return Meshes(
        np.asarray(points, np.float64).reshape(-1, 3),
        np.asarray(corners, np.int32).reshape(-1, 3),
        *((each - each[0]) // 3 for each in starts),
    )


def compare(named: Mapping[str, Meshes]) -> list[dict[str, Any]]:
    """Compare each pair of models, by name, which have meshes each."""
    models = models_of(named)
    pairs = [*combinations(range(len(models)), 2)]
    matches = {(i, j): unmoved(models[i], models[j]) for i, j in pairs}
    groups, moves = groups_of(models, matches)
    group_of = {k: number for number, group in enumerate(groups) for k in group}
    after = {number: _after(models, groups, number, move) for number, move in moves.items()}
    rows = []
    for i, j in pairs:
        a, b, lost = models[i], models[j], max(group_of[i], group_of[j])
        before = sum(matches[i, j].elements)
        row = {
            "a_file": a.name,
            "b_file": b.name,
            "verdict": "unknown",
            "a_elements": a.elements,
            "b_elements": b.elements,
            "agreeing": before,
            "agreeing_unmoved": before,
            "a_extent": [*a.low.tolist(), *a.high.tolist()],
            "b_extent": [*b.low.tolist(), *b.high.tolist()],
        }
        if group_of[i] == group_of[j]:
            row |= {"verdict": "fits", "dx": 0.0, "dy": 0.0, "dz": 0.0, "turn": 0.0}
        elif lost in moves and 0 in (group_of[i], group_of[j]):
            k, other = (j, i) if group_of[j] == lost else (i, j)
            if k in after[lost]:
                agreeing = sum(after[lost][k][other].elements)
                row |= _misplaced(models, groups, moves[lost], (i, j), k) | {"agreeing": agreeing}
        rows.append(row)
    return rows


def _after(
    models: list[Model], groups: list[list[int]], lost: int, move: Move
) -> dict[int, dict[int, Match]]:
    """Count what the models of a group have in common with those of the first when it is moved.

    Left out are those that have nothing themselves: they may be in the group by chance.
    """
    found = {}
    for k in groups[lost]:
        facets = models[k].facets.turned(move.quarters)
        found[k] = {
            other: match(facets, models[other].facets, move.along_walls, copies=True)
            for other in groups[0]
        }
    own = {
        k: each
        for k, each in found.items()
        if any(min(there.planes[:2]) >= FITTING for there in each.values())
    }
    return own or found


def _misplaced(
    models: list[Model], groups: list[list[int]], move: Move, pair: tuple[int, int], k: int
) -> dict[str, Any]:
    """Say what moves the second model of a pair to where it fits the first, if k is to be moved."""
    angle, shift = move.angle, move.shift
    if k == pair[0]:
        angle, shift = -angle, -turning(-angle) @ shift
    dx, dy, dz = shift.tolist()
    return {
        "verdict": "misplaced",
        "dx": dx,
        "dy": dy,
        "dz": dz,
        "turn": math.degrees(angle),
        "sentence": _sentence(models[k], move, [models[each] for each in groups[0]]),
    }


def _sentence(lost: Model, move: Move, others: list[Model]) -> str:
    """Say where a model lies."""
    middle = (lost.low + lost.high) / 2
    off = middle - (turning(move.angle) @ middle + move.shift)
    said = [
        f"{_length(abs(metres))} {names[0] if metres > 0 else names[1]}"
        for metres, names in zip(off, DIRECTIONS, strict=True)
        if abs(metres) >= LEAST
    ]
    whose = "the others" if len(others) > 1 else PurePath(others[0].name).stem
    before = " of" if said and not said[-1].endswith(DIRECTIONS[2]) else ""
    parts = [f"lies {_joined(said)}{before} {whose}"] if said else []
    if move.angle:
        way = "clockwise" if move.angle > 0 else "counter-clockwise"
        turned = f"is turned {abs(math.degrees(move.angle)):.4g}° {way}"
        parts.insert(0, turned if said else f"{turned} to {whose}")
    return f"{PurePath(lost.name).stem} {' and '.join(parts)}"


def _joined(parts: list[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _length(metres: float) -> str:
    return f"{metres:.1f} m" if metres >= 1 else f"{1000 * metres:.0f} mm"
