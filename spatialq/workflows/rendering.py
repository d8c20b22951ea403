"""A picture of building models and point clouds, file to file: behind `spatialq render`."""

import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.errors import FileError, FileWarning, files_read_by
from spatialq.export.atomic import require_outputs, whole
from spatialq.export.camera import DEFAULT_FOV, Camera
from spatialq.export.clash_view import COLOURS, FADED
from spatialq.export.rasteriser import render
from spatialq.io.crs import require_same
from spatialq.io.files import require_file
from spatialq.io.formats import files_of, open_source, reader_of
from spatialq.io.source import PointSource, Progress
from spatialq.runtime.arrays import Bytes, Floats
from spatialq.workflows.given_crs import GivenCrs
from spatialq.workflows.tiles_elements import elements_of_models
from spatialq.workflows.within import clipped

COMMAND = "render"
VIEWER = (-0.45, -0.75, 0.5)
"""Direction to the viewer, unless there is an eye: south, a little west, above."""
MARGIN = 1.05
FAR = 1000.0
"""Metres between models and clouds that are hardly in the same coordinates."""
SIZE = (1200, 900)
CLASHES = ".parquet"
BRIGHT = 99.0
"""Percentile of the colours of a cloud that is shown as white: files use 8 or 16 bits."""


@files_read_by(COMMAND)
def write_picture(
    files: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    eye: Sequence[float] | None = None,
    target: Sequence[float] | None = None,
    up: Sequence[float] = (0.0, 0.0, 1.0),
    fov: float | None = None,
    view_height: float | None = None,
    size: tuple[int, int] = SIZE,
    point_size: float = 2.0,
    within: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Draw building models and point clouds together as a PNG.

    Parameters
    ----------
    files : sequence of path
        Models and clouds, or patterns or folders of them, in the same coordinates; or a .parquet
        of `spatialq clash`: its models are drawn, faded but for elements that clash.
    output : path
        A .png.
    eye, target : sequence of float, optional
        Where the camera stands, and a point in the middle of the picture; by default it looks at
        all that there is from the south-west above.
    up, fov, view_height
        As in `Camera`.
    size : tuple of int
        Pixels: width and height.
    point_size : float
        Side of a point, pixels.
    within : path, optional
        A file of polygons: of clouds, which have one CRS then, only the points in them are drawn.
    progress : callable, optional

    Returns
    -------
    dict
        output, elements, triangles, points, and the camera: eye, target, fov.

    Raises
    ------
    FileError
        If a file cannot be read or written, or the polygons touch none of the clouds.
    CrsError
        If clouds and polygons are not in one CRS.
    ValueError
        If there is nothing to draw, or the camera is none.

    Warns
    -----
    FileWarning
        If models and clouds are far from each other.
    """
    target_file = Path(output)
    named_files = (path for each in files for path in files_of(COMMAND, each))
    # each once, however it is named
    found = list({path.resolve(): path for path in named_files}.values())
    require_outputs(COMMAND, found, [target_file], (".png",))
    clashes = [path for path in found if path.suffix.lower() == CLASHES]
    pairs = [pair for path in clashes for pair in _pairs(path)]
    named = {Path(file) for *_, a_file, b_file in pairs for file in (a_file, b_file)}
    found = [*(path for path in found if path not in clashes), *sorted(named)]
    kinds = [(path, reader_of(COMMAND, path, ("points", "ifc")).kind) for path in found]
    models = [path for path, kind in kinds if kind == "ifc"]
    meshes, colours = Meshes.of([]), np.empty((0, 3), np.uint8)
    if models:
        elements, _ = elements_of_models(
            models, GivenCrs(COMMAND, None, is_override=False), progress
        )
        meshes = elements.meshes
        colours = np.round(255 * elements.colours[:, :3]).astype(np.uint8)
    clashing = np.empty(0, np.int64)
    if clashes:
        ids = np.array(elements.properties["global_id"] if models else [], object)
        a, b = (np.isin(ids, [pair[side] for pair in pairs]) for side in (0, 1))
        colours = np.where(a[:, None], COLOURS[0], np.where(b[:, None], COLOURS[1], FADED))
        clashing = np.flatnonzero(a | b)
    sources = [open_source(COMMAND, path, ("points",)) for path, kind in kinds if kind == "points"]
    if within is not None:
        crs = require_same(COMMAND, ((source.path, source.crs) for source in sources))
        sources = clipped(COMMAND, sources, within, crs)
    clouds = list(map(_cloud, sources))
    points = np.concatenate([np.empty((0, 3)), *(each for each, _ in clouds)])
    point_colours = np.concatenate([np.empty((0, 3), np.uint8), *(each for _, each in clouds)])
    places = np.concatenate([meshes.vertices, points])
    if not len(places):
        message = f"{COMMAND}: files must have elements or points to draw, got none"
        raise ValueError(message)
    _warn_if_far_apart(meshes.vertices, points)
    camera = overview(
        COMMAND, places, eye, target, up=list(up), fov=fov, view_height=view_height, size=size
    )
    picture = render(camera, meshes, colours, points, point_colours, point_size=point_size)
    if clashing.size:  # in front of what hides them
        front = render(camera, meshes.take(clashing), colours[clashing])
        picture.pixels[front.item >= 0] = front.pixels[front.item >= 0]
    with whole(target_file) as partial:
        partial.write_bytes(picture.png())
    return {
        "output": str(target_file),
        "elements": len(meshes),
        "triangles": len(meshes.faces),
        "points": len(points),
        "eye": list(camera.eye),
        "target": list(camera.target),
        "fov": camera.fov,
    }


def _pairs(path: Path) -> list[tuple[str, str, str, str]]:
    """Read the pairs of a file of clashes, with the files of their models."""
    from spatialq.database.connection import connect_quietly

    require_file(COMMAND, path)
    with connect_quietly() as con:
        rows = con.read_parquet(os.fspath(path))
        if missing := {"a", "b", "a_file", "b_file"} - set(rows.columns):
            reason = f"has no clashes, as column {sorted(missing)[0]} is missing"
            raise FileError.of(COMMAND, path, reason)
        return rows.project("a, b, a_file, b_file").fetchall()


def _warn_if_far_apart(models: Floats, clouds: Floats) -> None:
    """Warn of models and clouds of which a picture of both shows dots at most."""
    if not (len(models) and len(clouds)):
        return
    gap = max((models.min(axis=0) - clouds.max(axis=0)).max(),
              (clouds.min(axis=0) - models.max(axis=0)).max())  # fmt: skip
    if gap > FAR:
        message = (
            f"{COMMAND}: models and clouds are {gap / 1000:,.1f} km apart: models are drawn where "
            "their map conversion places them, and the clouds have other coordinates"
        )
        warnings.warn(message, FileWarning, stacklevel=4)


def overview(
    command: str,
    places: Floats,
    eye: Sequence[float] | None = None,
    target: Sequence[float] | None = None,
    *,
    size: tuple[int, int] = SIZE,
    fov: float | None = None,
    **options: Any,
) -> Camera:
    """Look at a point, by default the middle, so that all is in the picture.

    Parameters
    ----------
    command : str
        Whose errors they are.
    places : float64[n, 3]
        All that is drawn.
    eye, target : sequence of float, optional
    size : tuple of int
    fov, **options
        As in `Camera`.
    """
    low, high = places.min(axis=0), places.max(axis=0)
    middle = (low + high) / 2 if target is None else np.array(target, np.float64)
    width, height = size
    if eye is None:
        axes = Camera(eye=VIEWER, target=(0.0, 0.0, 0.0)).axes()
        right, above, away = axes @ (places - middle).T
        half = math.tan(math.radians(fov or DEFAULT_FOV) / 2)
        reach = np.maximum(np.abs(above), np.abs(right) * height / width) / half - away
        eye = middle - MARGIN * (reach.max() or 1.0) * axes[2]
    given = {
        "eye": [float(each) for each in eye], "target": [float(each) for each in middle],
        "width": float(width), "height": float(height), "fov": fov, **options,
    }  # fmt: skip
    return Camera.of(command, given)


def _cloud(source: PointSource) -> tuple[Floats, Bytes]:
    """Read the points of a cloud and their colours: its own, or grey by intensity or height."""
    import pyarrow as pa

    names = set(source.schema.names)
    rgb = ("red", "green", "blue")
    shown = rgb if names.issuperset(rgb) else ("intensity",) if "intensity" in names else ("z",)
    columns = dict.fromkeys((*"xyz", *shown))
    table = pa.Table.from_batches(list(source.batches(tuple(columns))))
    values = {name: table[name].to_numpy().astype(np.float64) for name in columns}
    places = np.stack([values[axis] for axis in "xyz"], axis=1)
    channels = np.stack([values[name] for name in shown], axis=1)
    if not channels.size:
        return places, np.empty((0, 3), np.uint8)
    low = float(channels.min()) if shown == ("z",) else 0.0
    bright = float(np.percentile(channels, BRIGHT))
    scaled = np.clip((channels - low) / ((bright - low) or 1.0), 0, 1)
    return places, np.broadcast_to(np.round(30 + 200 * scaled), places.shape).astype(np.uint8)
