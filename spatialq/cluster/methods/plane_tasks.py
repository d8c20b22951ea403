"""Tasks of `detect_planes` and `plane_points`: one reads the points of a core, others search.

The search itself sees no points. A task of it puts together what a pass has found in all cores, and
goes on until it needs another one, see `spatialq.udfs.detect_planes.passes`.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.arrays import read_all, read_arrays, write_arrays
from spatialq.cluster.methods.plane_files import cube_of, pass_of, values_of
from spatialq.cluster.points import is_own, open_cloud, read_points, write_rows
from spatialq.functions.catalogue import catalogue
from spatialq.udfs.detect_planes.detection import Detection
from spatialq.udfs.detect_planes.passes import (
    Naming,
    Passes,
    Pending,
    go_over,
    planes_of,
    put_together,
    search_with,
)

PLANES, OF_POINTS = "detect_planes", "plane_points"
AXES = ("x", "y", "z")


def read(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the points of a core, as the kernel takes them.

    Returns
    -------
    dict
        `points`.
    """
    points = read_points(data)
    own = is_own(data["own"], points)
    columns = {name: values[own] for name, values in points.items() if name in (*AXES, "point_id")}
    columns["z"] = columns["z"] * data["level"]
    write_arrays(path, columns)
    return {"points": int(own.sum())}


def go_on(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Go on with a search, and write the pass that it needs, or how points get their planes.

    Returns
    -------
    dict
        `pass`, the name of the pass, or None if the search has ended; `listed` and `kept`, the
        numbers of earlier passes that it needs, or `listed` and `settled`, those for points.
    """
    arrays: dict[str, Any] = {}
    results = _results(data["searches"])
    if data["searches"]:
        values, before = read_arrays(data["searches"][-1])
        last = put_together(pass_of(values, _named(before, "wanted")), read_all(data["pass"]))
        results.append(lambda: last)
        arrays |= {f"found.{name}": each for name, each in last.items()}
    passes = Passes(results)
    try:
        _search(data, passes)
    except Pending as pending:
        wanted = pending.wanted
        arrays |= {f"wanted.{name}": each for name, each in wanted.arrays.items()}
        write_arrays(path, arrays, values_of(wanted))
        return {"pass": wanted.name, "listed": wanted.listed, "kept": wanted.kept}
    naming, facts = passes.naming, {"pass": None, "listed": None, "settled": None}
    if naming is None:
        write_arrays(path, arrays)
        return facts
    facts |= {"listed": naming.listed, "settled": naming.settled}
    write_arrays(path, arrays | {"ids": naming.ids}, facts | {"step": naming.step})
    return facts


def _results(searches: list[str]) -> list[Callable[[], dict[str, Any]]]:
    """Give what each pass has found: the task of the search after it has put it together."""
    return [partial(_result, path) for path in searches[1:]]


def _result(path: str) -> dict[str, Any]:
    return _named(read_arrays(path)[1], "found")


def _named(arrays: dict[str, Any], group: str) -> dict[str, Any]:
    start = f"{group}."
    return {
        name.removeprefix(start): each for name, each in arrays.items() if name.startswith(start)
    }


def _search(data: dict[str, Any], passes: Passes) -> Detection:
    options = catalogue()[PLANES].choose(data["options"])
    return search_with(data["size"], cube_of(data["cube"]), options, passes, label=data["label"])


def do_pass(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Do a pass over the points of a core, and write what it finds."""
    wanted = pass_of(*_wanted(data["wanted"]))
    points = read_arrays(data["points"])[1]
    listed = None if data["listed"] is None else read_arrays(data["listed"])[1]["listed"]
    kept = None if data["kept"] is None else read_arrays(data["kept"])[1]
    write_arrays(path, go_over(wanted, [points[axis] for axis in AXES], listed, kept))
    return {}


def _wanted(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    values, arrays = read_arrays(path)
    return values, _named(arrays, "wanted")


def write_planes(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the planes.

    Returns
    -------
    dict
        `rows` written.
    """
    import pyarrow as pa

    from spatialq.database.transport.arrow import structs
    from spatialq.io.crs import with_one_unit
    from spatialq.workflows.tables import write_arrow

    found = _search(data, Passes(_results(data["searches"])))
    table = pa.Table.from_struct_array(structs(catalogue()[PLANES], found.columns))
    query = "SELECT * REPLACE (boundary::GEOMETRY AS boundary) FROM result"
    crs = data["crs"]
    write_arrow(table, path, query, crs=crs and with_one_unit(crs))
    return {"rows": table.num_rows}


def write_points(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the planes of the points of a core.

    Returns
    -------
    dict
        `rows` written.
    """
    points, plane_id, distance = _planes_of_points(data)
    rows = {
        **{name: points[name] for name in ("point_id", "x", "y")},
        "plane_id": np.ma.masked_equal(plane_id, 0),
        "distance": np.ma.masked_invalid(distance),
    }
    write_rows(rows, path, list(catalogue()[OF_POINTS].output.columns))
    return {"rows": plane_id.size}


def _planes_of_points(data: dict[str, Any]) -> tuple[dict[str, Any], Any, Any]:
    """Give the points of a core, their planes and the distances from these."""
    points = read_arrays(data["points"])[1]
    naming, settled, listed = None, {}, None
    if data["settled"] is not None:
        values, arrays = read_arrays(data["naming"])
        naming = Naming(values["settled"], values["listed"], arrays["ids"], values["step"])
        settled = read_arrays(data["settled"])[1]
    if data["listed"] is not None:
        listed = read_arrays(data["listed"])[1]["listed"]
    return points, *planes_of(points["x"].size, naming, settled, listed)


def write_cloud(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the points of a core as their files have them, with their planes.

    Returns
    -------
    dict
        `rows` written.
    """
    from spatialq.export.las import write_with_fields
    from spatialq.workflows.planes import fields_of

    clouds = [open_cloud(data["caller"], path, stamp) for path, _, *stamp in data["sources"]]
    files = [cloud.path for cloud in clouds]
    firsts = np.array([first for _, first, *_ in data["sources"]])
    rows = [cloud.rows for cloud in clouds]
    starts = np.concatenate([[0], np.cumsum(rows)])

    def positions(ids: Any) -> Any:
        file = np.searchsorted(firsts, ids, side="right") - 1
        return ids - firsts[file] + starts[file]

    n = int(starts[-1])
    points, of_points, distances = _planes_of_points(data)
    plane_id, distance = np.zeros(n, np.int32), np.full(n, np.nan, np.float32)
    at = positions(points["point_id"])
    plane_id[at], distance[at] = of_points, distances
    every = read_points(data)
    keep = np.zeros(n, np.bool_)
    keep[positions(every["point_id"][is_own(data["own"], every)])] = True
    fields = fields_of(plane_id, distance)
    return {"rows": write_with_fields(files, path, fields, keep, crs=data["crs"])}
