"""Calls on files of points: their requests, and their points as a kernel takes them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from spatialq.data.frame import Frame
from spatialq.data.points import ids_of
from spatialq.database.transport.cloud_columns import common_attributes, numbers_in, read_clouds
from spatialq.database.transport.columns import points_of
from spatialq.database.transport.request import Request
from spatialq.errors import FileError, files_read_by
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import BOUNDS
from spatialq.functions.sql_text import identifier, literal
from spatialq.io.clouds import open_cloud, what_reprojects
from spatialq.io.crs import require_same
from spatialq.io.files import warn_about
from spatialq.io.formats import find_sources, means_files, open_source
from spatialq.io.las import on_gpu as laz_on_gpu
from spatialq.io.source import PointSource
from spatialq.io.storage import as_path
from spatialq.planner.decoding import gpu_for
from spatialq.runtime import cuda
from spatialq.runtime.arrays import Bools, Floats


def given_points(function: Function, text: str | None) -> str | list[str]:
    """Read what a function is given as points: the name of a table or file, or a list of files.

    Parameters
    ----------
    function : Function
    text : str or None
        JSON, as `spatialq_tables` writes it.

    Raises
    ------
    ValueError
        If it names nothing.
    """
    given: str | list[str | None] | None = None if text is None else json.loads(text)
    named = [each for each in given if each] if isinstance(given, list) else given
    if not named or len(named) != len(given or ""):
        shown = "NULL" if given is None else repr(given).replace("None", "NULL")
        message = (
            f"{function.name}: points must be the name of a table or a file, or a list of files, "
            f"got {shown}"
        )
        raise ValueError(message)
    return named


def request_of_files(function: Function, text: str, given: str | list[str]) -> Request | None:
    """Make the request of a call on files, of which only the headers are read; None for a table.

    Raises
    ------
    FileError
        If a file cannot be read whole or is no point cloud, or is named twice, or there is none.
    CrsError
        If the files have different coordinate reference systems.
    ValueError
        If an option is wrong.
    """
    if not means_files(given):
        return None
    Request.new(text).choose(function)  # wrong options are rejected first
    clouds = [
        open_cloud(function.name, file) for file in find_sources(function.name, given, "points")
    ]
    require_same(function.name, ((cloud.path, cloud.crs) for cloud in clouds))
    for cloud in clouds:
        warn_about(function.name, cloud)
    is_one = isinstance(given, str) or len(clouds) == 1
    name = given if isinstance(given, str) else str(clouds[0].path)
    subject = repr(name) if is_one else f"{len(clouds)} files"
    frame = Frame(subject, clouds[0].crs, remedy=what_reprojects(name) if is_one else "")
    files = [[str(cloud.path), *cloud.stamp] for cloud in clouds]
    return Request.new(text, files=files, frame=asdict(frame))


def rows_of_files(function: Function, request: Request, more: Sequence[str]) -> str:
    """Write what reads columns of the files of a request, with the ids that run on.

    Raises
    ------
    ValueError
        If the files have no numbers of such a name.
    """
    paths = [as_path(path) for path, *_ in request.source["files"]]
    clouds = [open_source(function.name, path, ["points"]) for path in paths]
    numbers_in(function.name, clouds, more)
    firsts = np.cumsum([0, *(cloud.rows for cloud in clouds)]).tolist()
    parts = []
    for cloud, first in zip(clouds, firsts, strict=False):
        there = [identifier(name) for name in more if name in cloud.schema.names]
        columns = ", ".join([f"point_id + {first} AS point_id", *there])
        parts.append(f"SELECT {columns} FROM read_points({literal(str(cloud.path))})")
    return f"({' UNION ALL BY NAME '.join(parts)})"


def of_files(function: Function, request: Request) -> dict[str, Any]:
    """Read the points of the files that a request names, whose ids run on from file to file.

    Raises
    ------
    FileError
        If one was changed since the query was bound, or its points are damaged.
    """
    options, _ = request.choose(function)
    with files_read_by(function.name):
        clouds = _opened(function, request)
        return read_clouds(function, clouds, bounds=getattr(options, BOUNDS, None))


def on_gpu(function: Function, request: Request) -> tuple[dict[str, Any], int, str] | None:
    """Decode the points of the files that a request names on a GPU, if that is sooner.

    Returns
    -------
    columns : dict
        As from `of_files`, in the memory of a GPU.
    number : int
        Of that GPU.
    note : str
        What was decoded where, for the log.

    Raises
    ------
    FileError
        As `of_files`.
    """
    options, device = request.choose(function)
    if getattr(options, BOUNDS, None) or request.options.get("memory"):
        return None
    with files_read_by(function.name):
        clouds = _opened(function, request)
        attributes = common_attributes(function, clouds)
        if attributes is None or not laz_on_gpu.ATTRIBUTES.keys() >= set(attributes):
            return None
        number = gpu_for(function, clouds, attributes, options, device)
        if number is None:
            return None
        try:
            with cuda.on(number):
                columns, others = laz_on_gpu.read_columns(clouds, attributes)
        except MemoryError:  # less was free than the driver said
            return None
    note = "; ".join([f"decoded on gpu:{number}", *others])
    return {**dict.fromkeys(points_of(function)), **columns}, number, note


def each_near(function: Function, request: Request, boxes: Floats) -> Iterator[dict[str, Any]]:
    """Read the points of each file that may have some in boxes, one file after the other.

    What the header of a file, or of a part of it, says to be elsewhere is not decoded; without any
    file near a box there are no points.

    Parameters
    ----------
    function, request
        As for `of_files`.
    boxes : float64[k, 4]
        xmin, ymin, xmax, ymax of each; NaN of one that is empty.

    Raises
    ------
    FileError
        As `of_files`.
    """
    options, _ = request.choose(function)
    reach, first, is_none = getattr(options, BOUNDS, None), 0, True
    for cloud in _opened(function, request):
        rows = np.flatnonzero(_near(boxes, _box_of(cloud)) & _near(boxes, reach))
        if rows.size:
            around = [*boxes[rows, :2].min(axis=0), *boxes[rows, 2:].max(axis=0)]
            if reach is not None:
                around = [*np.maximum(around[:2], reach[:2]), *np.minimum(around[2:], reach[2:])]
            with files_read_by(function.name):
                found = read_clouds(function, [cloud], bounds=_within(around, _box_of(cloud)))
            found["point_id"] = ids_of(found["point_id"], len(found["x"])) + first
            yield found
            is_none = False
        first += cloud.rows
    if is_none:
        columns = dict.fromkeys(function.inputs.columns, np.empty(0))
        yield {**columns, "point_id": None}


def _box_of(cloud: PointSource) -> Sequence[float] | None:
    """Give xmin, ymin, xmax and ymax of a file, None where it does not say them."""
    box = cloud.box
    return None if box is None or not np.isfinite(box).all() else [*box[:2], *box[3:5]]


def _near(boxes: Floats, box: Sequence[float] | None) -> Bools:
    """Say which boxes meet another one, in a point at least; all but NaN do where there is none."""
    xmin, ymin, xmax, ymax = boxes.T
    if box is None:
        return np.asarray(np.isfinite(xmin), np.bool_)
    meets = (xmin <= box[2]) & (xmax >= box[0]) & (ymin <= box[3]) & (ymax >= box[1])
    return np.asarray(meets, np.bool_)


def _within(around: Sequence[float], box: Sequence[float] | None) -> list[float] | None:
    """Give the bounds by which to read a file: None where all of it is in them."""
    west, south, east, north = map(float, around)
    if box and west <= box[0] and south <= box[1] and east >= box[2] and north >= box[3]:
        return None
    return [west, south, east, north]


def _opened(function: Function, request: Request) -> list[PointSource]:
    """Open the files of a request."""
    clouds = []
    for path, *stamp in request.source["files"]:
        clouds.append(open_source(function.name, as_path(path), ["points"]))
        if list(clouds[-1].stamp) != stamp:
            raise FileError.of(function.name, path, "was changed while the query ran")
    return clouds
