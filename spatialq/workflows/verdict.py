"""What of building models was built as modelled: behind `spatialq verdict`.

A scan is placed in the models, each element is judged by what the scan shows of it, and the result
is written as tables, coloured points, BCF topics, a picture or a model.
"""

import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.errors import CrsError, FileError, FileWarning, files_read_by
from spatialq.export.atomic import together
from spatialq.export.ifc import ENDINGS as MODEL
from spatialq.io.formats import Kind, files_of, reader_of
from spatialq.io.source import LAS, Progress
from spatialq.runtime import budget
from spatialq.runtime.arrays import Floats
from spatialq.workflows.clash_bcf import SUFFIXES as BCF
from spatialq.workflows.cloud_files import crs_of, open_clouds
from spatialq.workflows.cloud_points import read_points
from spatialq.workflows.lengths import with_numbers
from spatialq.workflows.outputs import PICTURE, TABLE, Outputs
from spatialq.workflows.tables import write_arrow
from spatialq.workflows.tiles_elements import NOT_DRAWN, meshes_of_table
from spatialq.workflows.verdict_outputs import (
    COMMAND,
    Verdict,
    write_model,
    write_picture,
    write_points,
    write_topics,
)

if TYPE_CHECKING:
    import pyarrow as pa


ENDINGS = (*TABLE, *LAS, *BCF, *MODEL, *PICTURE)
REGISTER = ("auto", "none")
KINDS: tuple[Kind, ...] = ("points", "ifc")
NEARLY = 1.0
"""Metres: of several placements the one that moves no corner of the scan farther is meant."""
OWN = ("scanner", "faces", "bounds", "unit", "crs")
"""Options of `coverage` that are not passed on: it gets metres, and gives a row per element."""
MATRIX = tuple(f"m{row}{column}" for row in range(1, 5) for column in range(1, 5))
"""Columns of `registration`."""
SAID = ("global_id", "name", "ifc_class", "storey")
"""Columns of an element that come before its verdict; the file comes after."""


@together()
@files_read_by(COMMAND)
def write_verdict(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    outputs: str | Path | Sequence[str | Path] = (),
    *,
    register: str | Sequence[float] = "auto",
    scanners: Sequence[Sequence[float]] = (),
    crs: str | None = None,
    override_crs: bool = False,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Compare a scan with building models, and write what was built as modelled.

    Parameters
    ----------
    files : path or paths
        Point clouds, which together are one scan, and IFC files in the same coordinates; or
        patterns or folders of them.
    outputs : path or paths
        By their endings: .parquet, .csv, .json, .xlsx a row per element, and on a second sheet of
        .xlsx things of the scan that are in no element; .las, .laz the points in
        the coordinates of the models, coloured by their `deviation`, which is a field; .bcf a topic
        for each element that is displaced or not found; .ifc a model of the elements coloured by
        status, with a property set of the verdict; .png a picture of these.
    register : 'auto', 'none' or 16 numbers
        How the scan is placed: by `registration`; where its coordinates say, in their unit; or by
        a matrix, row by row, from them in metres to the models.
    scanners : sequence of float[3], optional
        Where the scanner stood, in the coordinates of the clouds.
    crs : str, optional
        Of clouds that do not name one: PROJJSON, WKT, or a code such as EPSG:25832.
    override_crs : bool
        Whether `crs` also takes the place of one that a cloud names.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
    memory : str or float, optional
        Main memory to use, such as '2GB'; a number is in GiB. By default half of what is free.
    progress : callable, optional
        Called with file, rows so far and rows in all.
    **options
        Options of `coverage`, but for those of the coordinates, and `faces`.

    Returns
    -------
    dict
        points, elements, matrix (16 numbers, row by row: from coordinates of the clouds to metres
        of the models), sentence (how that was found), `statuses` (how many elements have each),
        `verdicts` (the rows), `unmodelled` (those of `unmodelled`, in the coordinates of the
        models), outputs.

    Raises
    ------
    FileError
        If a file cannot be read or written, or the scan has no place in the models or several.
    ValueError
        If clouds or models are missing, or an option or the ending of an output is wrong.
    """
    from spatialq.functions.catalogue import catalogue

    tick = progress or (lambda *_: None)
    files = [files] if isinstance(files, str | os.PathLike) else files
    targets = Outputs.of(COMMAND, outputs)
    matrix = _matrix_of(register)
    positions = _positions_of(scanners)
    cloud_files, models = _sorted_by_kind(files)
    clouds = open_clouds(cloud_files, cloud_files, targets, ENDINGS)
    targets.check(models, ENDINGS)
    targets.require_outside([os.fspath(each) for each in files], cloud_files, KINDS)
    crs = crs_of(COMMAND, clouds, crs, override=override_crs)
    unit = None if crs is None else _metres_per_unit(crs, cloud_files[0])
    parameters = [each for each in catalogue()["coverage"].parameters if each.name not in OWN]
    _require_options(options, [each.name for each in parameters])
    options = with_numbers(
        COMMAND, options, parameters, cloud_files[0], crs, is_sought=matrix is None
    )
    with budget.within(COMMAND, memory, targets.beside):
        elements, meshes = _read_models(models, tick)
        read = read_points(clouds, None, tick)
        xyz = np.stack(read.xyz)
        sentence = ""
        if matrix is None:
            matrix, sentence = _register(xyz, meshes, unit, device)
        elif unit is not None:
            matrix = matrix @ _scaling(unit)
        points = apply(matrix, xyz)
        stations = apply(matrix, positions.T).T
        _warn_of_far_scanners(positions, stations, points)
        rows = _judge(points, elements, meshes, stations.ravel(), device, options)
        things = _unmodelled(points, meshes, device)
        found = Verdict(rows, elements, meshes, clouds, points, read.point_id)
        _write(found, things, targets, device, tick)
    return {
        "points": points.shape[1],
        "elements": len(rows),
        "matrix": matrix.ravel().tolist(),
        "sentence": sentence,
        "statuses": dict(Counter(row["status"] for row in rows).most_common()),
        "verdicts": rows,
        "unmodelled": things.to_pylist(),
        "outputs": targets.names,
    }


def _matrix_of(register: Any) -> Floats | None:
    """Give the matrix of an argument `register`; None for 'auto'."""
    if isinstance(register, str) and register in REGISTER:
        return None if register == "auto" else np.eye(4)
    try:
        matrix = np.array(register, np.float64).reshape(4, 4)
        turn = matrix[:3, :3]
        is_rigid = np.allclose(turn @ turn.T, np.eye(3), atol=1e-6) and np.linalg.det(turn) > 0
    except (TypeError, ValueError):
        is_rigid = False
    if not is_rigid or not np.allclose(matrix[3], [0, 0, 0, 1]) or not np.isfinite(matrix).all():
        message = (
            f"{COMMAND}: register must be 'auto', 'none' or the 16 numbers of a rigid movement, "
            f"row by row, got {register!r}"
        )
        raise ValueError(message)
    return matrix


def _require_options(options: Mapping[str, Any], names: Sequence[str]) -> None:
    """Reject options that there are not."""
    for name in options:
        if name not in names:
            message = f"{COMMAND}: no option '{name}'; there is {', '.join(sorted(names))}"
            raise ValueError(message)


def _positions_of(scanners: Any) -> Floats:
    """Give the positions of an argument `scanners`, float64[n, 3]."""
    try:
        positions = np.array(list(scanners), np.float64)
        is_right = not positions.size or (positions.ndim == 2 and positions.shape[1] == 3)
    except (TypeError, ValueError):
        is_right = False
    if not is_right or not np.isfinite(positions).all():
        message = (
            f"{COMMAND}: scanners must be positions of three finite numbers each, x, y and z in "
            f"the coordinates of the clouds, got {scanners!r}"
        )
        raise ValueError(message)
    return positions.reshape(-1, 3)


def _warn_of_far_scanners(positions: Floats, stations: Floats, points: Floats) -> None:
    """Warn of a scanner that is farther from the points than they are from each other."""
    if not points.size:
        return
    low, high = points.min(axis=1), points.max(axis=1)
    apart = np.linalg.norm(np.maximum(np.maximum(low - stations, stations - high), 0), axis=1)
    for k in np.flatnonzero(apart > np.linalg.norm(high - low))[:1]:
        message = (
            f"{COMMAND}: the scanner at {', '.join(f'{each:.15g}' for each in positions[k])} is "
            f"{apart[k]:,.0f} m from the points: positions must be in the coordinates of the clouds"
        )
        warnings.warn(message, FileWarning, stacklevel=6)


def _sorted_by_kind(files: Sequence[str | os.PathLike[str]]) -> tuple[list[Path], list[Path]]:
    """Find the files, and tell clouds from models."""
    named = (path for each in files for path in files_of(COMMAND, os.fspath(each), KINDS))
    # each once, however it is named
    found = list({path.resolve(): path for path in named}.values())
    kinds = {path: reader_of(COMMAND, path, KINDS).kind for path in found}
    clouds, models = ([p for p in found if kinds[p] == kind] for kind in KINDS)
    for what, there in (("a point cloud", clouds), ("an IFC file", models)):
        if not there:
            names = ", ".join(f"'{path}'" for path in found) or "none"
            message = f"{COMMAND}: files must be clouds and models, {what} among them, got {names}"
            raise ValueError(message)
    return clouds, models


def _metres_per_unit(crs: str, path: Path) -> Floats:
    """Say how long the units of x, y and z are.

    Raises
    ------
    CrsError
        If x and y are degrees.
    """
    from spatialq.io import crs as crs_text

    known = crs_text.metres_per_unit(crs)
    if known is None:
        message = (
            f"{COMMAND}: '{path}' is in {crs_text.name(crs)}, which is not projected, so its "
            "points cannot be compared with models in metres; reproject it first, or correct its "
            "CRS with --crs and --override-crs"
        )
        raise CrsError(message)
    across, up = known
    return np.array([across, across, up])


def _scaling(unit: Floats) -> Floats:
    """Give the matrix that makes metres of coordinates."""
    return np.diag([*unit, 1.0])


def _read_models(models: Sequence[Path], tick: Progress) -> "tuple[pa.Table, Meshes]":
    """Read the elements of models, without openings and spaces."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from spatialq.database.readers.ifc_models import warn_about_model
    from spatialq.io import georeference
    from spatialq.io.ifc.cache import read_models

    read = read_models(models, geometry="auto", progress=tick)
    for model in read:
        warn_about_model(COMMAND, model, stacklevel=6)
    georeference.require_same(COMMAND, [(f"'{m.path}'", m.georeference) for m in read])
    table = pa.concat_tables([model.tables["elements"] for model in read])
    table = table.filter(pc.invert(pc.is_in(table["ifc_class"], pa.array(NOT_DRAWN))))
    if not table.num_rows:
        raise FileError.of(COMMAND, models[0], "has no elements with a mesh")
    return table, meshes_of_table(table)


def apply(matrix: Floats, points: Floats) -> Floats:
    """Move points, float64[3, n]."""
    moved: Floats = matrix[:3, :3] @ points + matrix[:3, 3:]
    return moved


def _register(xyz: Floats, meshes: Meshes, unit: Floats | None, device: str) -> tuple[Floats, str]:
    """Find where a scan was made, and say how sure that is.

    Raises
    ------
    FileError
        If there is no place, or several.

    Warns
    -----
    FileWarning
        If there is none, and the scan is used where it lies.
    """
    from spatialq.execution.run import run

    scaling = np.eye(4) if unit is None else _scaling(unit)
    metric = xyz if unit is None else apply(scaling, xyz)
    known = None if unit is None else 1.0
    found = run("registration", *metric, elements=meshes, unit=known, device=device)
    statuses = _named("registration", "status", found) or ["not found"]
    matrices = np.stack([found[name] for name in MATRIX], axis=1).reshape(-1, 4, 4)
    sentence = str(found["sentence"][0]) if len(matrices) else "the scan has no points"
    if statuses[0] == "found":
        return matrices[0] @ scaling, sentence
    if statuses[0] == "ambiguous":
        # of several places the scan's own coordinates may mean one
        near = zip(matrices, found["unit"], strict=True)
        own = [k for k, (each, length) in enumerate(near) if _is_near(each, metric, length)]
        if len(own) == 1:
            return matrices[
                own[0]
            ] @ scaling, f"the placement nearest to its coordinates; {sentence}"
        message = (
            f"{COMMAND}: {sentence}; choose one of the matrices of registration as register, or "
            "'none' to use the scan where it lies"
        )
        raise ValueError(message)
    taken = ", and its coordinates are taken for metres" if unit is None else ""
    message = f"{COMMAND}: {sentence}: the scan is used where it lies{taken}"
    warnings.warn(message, FileWarning, stacklevel=6)
    return scaling, sentence


def _named(function: str, column: str, found: Mapping[str, Any]) -> list[str]:
    """Give the names behind the codes of a column."""
    from spatialq.functions.catalogue import catalogue

    names = catalogue()[function].output.codes[column]
    return [names[code] for code in found[column]]


def _is_near(matrix: Floats, xyz: Floats, unit: float) -> bool:
    """Whether a movement, from coordinates of a unit to metres, leaves a scan nearly in place."""
    corners = np.stack([xyz.min(axis=1), xyz.max(axis=1)], axis=1)
    return bool(np.abs(apply(matrix, corners) - unit * corners).max(initial=0.0) < NEARLY)


def _judge(
    points: Floats,
    elements: "pa.Table",
    meshes: Meshes,
    stations: Floats,
    device: str,
    options: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Give a row for each element."""
    from spatialq.execution.run import run

    scanner = tuple(map(float, stations)) or None
    found = run("coverage", *points, elements=meshes, scanner=scanner, device=device, **options)
    of_element = {int(row): k for k, row in enumerate(found["element"])}
    measured = {
        name: values.tolist() for name, values in found.items() if name not in ("element", "face")
    } | {"status": _named("coverage", "status", found)}
    said = {name: elements[name].to_pylist() for name in (*SAID, "file_name")}
    return [
        {name: said[name][row] for name in SAID}
        | {name: _known(values[of_element[row]]) for name, values in measured.items()}
        | {"file_name": said["file_name"][row]}
        for row in range(len(meshes))
    ]


def _known(value: object) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def _unmodelled(points: Floats, meshes: Meshes, device: str) -> "pa.Table":
    """Give the things in the scan that are in no element."""
    import pyarrow as pa

    from spatialq.functions.catalogue import catalogue

    found = _compared("unmodelled", points, meshes, device)
    columns = catalogue()["unmodelled"].output.columns
    return pa.table({name: pa.array(found[name], from_pandas=True) for name in columns})


def _compared(function: str, points: Floats, meshes: Meshes, device: str) -> Mapping[str, Any]:
    """Compare all points with the elements; how they lie `coverage` has said already."""
    from spatialq.execution.call import call_as_given
    from spatialq.functions.catalogue import catalogue

    known = catalogue()[function]
    arguments = {**dict(zip("xyz", points, strict=True)), "point_id": None, "elements": meshes}
    return call_as_given(known, arguments, known.choose({}), device)[0]


def _write(
    verdict: Verdict, things: "pa.Table", targets: Outputs, device: str, tick: Progress
) -> None:
    """Write all outputs."""
    import pyarrow as pa

    for target in targets.ending_in(*TABLE):
        sheets = {"unmodelled": things} if target.suffix.lower() == ".xlsx" else None
        write_arrow(pa.Table.from_pylist(verdict.rows), target, sheets=sheets)
    for target in targets.ending_in(*BCF):
        write_topics(verdict, target)
    for target in targets.ending_in(*MODEL):
        write_model(verdict, target)
    for target in targets.ending_in(*PICTURE):
        write_picture(verdict, target)
    if targets.ending_in(*LAS):
        deviation = _deviations(verdict, device)
        for target in targets.ending_in(*LAS):
            write_points(verdict, deviation, target, tick)


def _deviations(verdict: Verdict, device: str) -> Floats:
    """Give the signed distance of each point from the elements, metres; NaN if that is far."""
    found = _compared("deviation", verdict.points, verdict.meshes, device)
    distance: Floats = np.full(verdict.points.shape[1], np.nan)
    distance[found["point_id"]] = found["distance"]
    return distance
