"""`deviation`, `plane_elements` and `point_elements` of a survey and of building models."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.cluster.arguments import files_of_job
from spatialq.cluster.arrays import read_arrays, write_arrays
from spatialq.cluster.folder import CALLER
from spatialq.cluster.job import Job
from spatialq.cluster.method import open_points
from spatialq.cluster.models import MODELS, connected, read_model, read_models
from spatialq.cluster.points import CorePart
from spatialq.cluster.staged import Make, StagedWork, method_of, write_found, write_table
from spatialq.data.columns import Text
from spatialq.data.meshes import Meshes
from spatialq.errors import FileWarning
from spatialq.execution.placement import warn_of_placement
from spatialq.execution.units import Fitted
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import Parameters
from spatialq.functions.stages import Columns, OfCores, Part, TaskResult
from spatialq.io.files import require_file
from spatialq.udfs.plane_elements.macros import RANKED
from spatialq.udfs.registration import misplaced
from spatialq.udfs.registration.surfels import Surfels

ELEMENTS, PLACEMENT = "elements", "placement"
"""The stages that join those of all models, and that find where the points lie beside them."""
LOOKED_AT = 4
"""Cores that this stage reads at most."""
MORE = {"elements": None, "geometry": "auto"}
BODIES = """
SELECT global_id, mesh, is_no_body(ifc_class) AS is_no_body, len(mesh.faces) > 0 AS has_faces
FROM elements
"""


def check(more: Mapping[str, Any], *_: Any) -> None:
    """Refuse options of elements that cannot be used.

    Raises
    ------
    ValueError
        If there is one.
    """
    from spatialq.io.ifc.model import require_meshes

    if more["elements"] is None:
        message = f"{CALLER}: elements must be the path of a building model or several, got None"
        raise ValueError(message)
    require_meshes(CALLER, more["geometry"])


def open_points_and_elements(
    function: Function, paths: Sequence[str], options: Parameters, more: dict[str, Any]
) -> tuple[Fitted, str | None]:
    """Find the models; give the parameters as the kernel takes them, and the CRS of the points.

    Raises
    ------
    FileError
        If there is no such model, and as `open_points`.
    """
    models = files_of_job(more["elements"], "ifc", "elements")
    for path in models:
        require_file(CALLER, path)
    more["elements"] = list(map(str, models))
    return open_points(function, paths, options, more)


class ElementWork(StagedWork):
    """The stages of a job, a `PointAndElementWork`."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        caller, paths = job.call.function, job.call.more["elements"]
        found = read_models(job, caller, paths, write_elements, "{:07}".format)
        # as of `spatial_elements`: where nothing is a body, all elements are considered
        has_bodies = any(facts["has_bodies"] for facts in found)
        self.elements = self.once(ELEMENTS, join, caller, OfCores(MODELS), has_bodies)
        self.shared[ELEMENTS] = job.path(ELEMENTS, ELEMENTS)
        self._check_placement()
        self.write = self.write_all = write_named

    def _check_placement(self) -> None:
        """Compare some of the cores that are near the elements with these, and warn."""
        metres, box = self.options.metres, self.elements.facts["box"]
        if box is None or not self.cloud.size:
            return
        cores = [core for core in self.layout.cores() if _is_in(core.box, box, metres)]
        cores = cores[:: max(1, len(cores) // LOOKED_AT)][:LOOKED_AT]
        given = metres, self.elements, len(cores)
        tasks = (self.task(core.name, write_found, sample_core, given, core) for core in cores)
        for _ in self.job.files(PLACEMENT, tasks, len(cores)):
            pass
        ends = self.cloud.low, self.cloud.high
        samples = OfCores(PLACEMENT) if cores else None
        self.once("placed", tell, self.job.call.function, metres, ends, samples, self.elements)


class PlaneElementWork(ElementWork):
    """The same, of which each plane has its elements in order."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.write_all = write_ranked


def write_elements(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Read a model, and write those of its elements that have triangles.

    Returns
    -------
    dict
        Those of `read_model`; `has_bodies`, whether an element is one, with triangles or not.

    Raises
    ------
    FileError
        If the model cannot be read.
    ValueError
        If a mesh is broken.
    """
    from spatialq.database.transport.elements import meshes_of

    model, facts = read_model(data)
    with connected() as con:
        con.register("elements", model.tables["elements"])
        rows = con.sql(BODIES).to_arrow_table().combine_chunks()
    bodies = ~rows["is_no_body"].to_numpy()
    there = rows.filter(rows["has_faces"])
    place = f"{data['caller']}: elements"
    meshes = meshes_of(place, there["mesh"].combine_chunks())
    names = there["global_id"]
    arrays = {
        **vars(meshes),
        "global_id": np.array(names.fill_null("").to_pylist(), np.str_),
        "has_id": names.is_valid().to_numpy(),
        "is_no_body": there["is_no_body"].to_numpy(),
    }
    write_arrays(path, arrays)
    return facts | {"has_bodies": bool(bodies.any())}


def join(caller: str, models: Iterator[TaskResult], has_bodies: bool) -> TaskResult:  # noqa: FBT001
    """Put the elements of all models one after the other, those that are considered.

    Warns
    -----
    FileWarning
        If there is none.
    """
    meshes, names, has_id = [], [], []
    for each in models:
        rows = np.flatnonzero(~(each.arrays["is_no_body"] & has_bodies))
        meshes.append(Meshes.named(each.arrays).take(rows))
        names.append(each.arrays["global_id"][rows])
        has_id.append(each.arrays["has_id"][rows])
    everything = Meshes.joined(meshes)
    if not len(everything):
        message = f"{caller}: no element of the models has a mesh"
        warnings.warn(message, FileWarning, stacklevel=2)
    named = {"global_id": np.concatenate(names), "has_id": np.concatenate(has_id)}
    box = misplaced.box_around(everything, 1.0)
    return TaskResult(vars(everything) | named, {"box": None if box is None else box.tolist()})


def _is_in(core: Sequence[float], box: Any, metres: float) -> bool:
    """Whether a core may have points in a box; one of which nothing is known may."""
    (west, south, _), (east, north, _) = box
    xmin, ymin, xmax, ymax = (metres * each for each in core)
    return not (xmin > east or ymin > north or xmax < west or ymax < south)


def sample_core(part: Part, metres: float, elements: TaskResult, count: int) -> Columns:
    """Give the surfels of one of so many cores."""
    points = part.own(part.points())
    xyz = [points[axis] for axis in "xyz"]
    box = misplaced.box_around(Meshes.named(elements.arrays), metres)
    found: Columns = vars(misplaced.sample(*xyz, metres, box, count * len(xyz[0])))
    return found


def tell(
    caller: str,
    metres: float,
    ends: tuple[Sequence[float], Sequence[float]],
    samples: Iterator[TaskResult] | None,
    elements: TaskResult,
) -> Columns:
    """Warn of points that lie beside the elements.

    Warns
    -----
    PlacementWarning
    """
    parts = [each.arrays for each in samples or ()]
    scan = Surfels(*(np.concatenate([each[name] for each in parts])
                     for name in ("places", "normals", "area"))) if parts else None  # fmt: skip
    meshes, corners = Meshes.named(elements.arrays), np.array(ends, np.float64).T
    warn_of_placement(caller, misplaced.of_sample(scan, corners, metres, meshes))
    return {}


def write_named(
    part: CorePart, make: Make, path: Path, query: str = "FROM {rows}"
) -> dict[str, Any]:
    """Write rows with the GlobalIds of their elements; give their number."""
    _, arrays = read_arrays(part.data[ELEMENTS])
    names = arrays["global_id"].astype(object)
    names[~arrays["has_id"]] = None

    def named(part: CorePart) -> dict[str, Any]:
        rows = make(part)
        return {**rows, "global_id": Text(rows["element"], names.tolist())}

    return write_table(part, named, path, query)


def write_ranked(part: CorePart, make: Make, path: Path) -> dict[str, Any]:
    """Write planes and their elements, the best of each plane first; give the number of rows."""
    return write_named(part, make, path, RANKED)


SHARED: dict[str, Any] = {"open": open_points_and_elements, "more": MORE, "check": check}
METHODS = (
    method_of("deviation", {"parquet": ElementWork}, **SHARED),
    method_of("plane_elements", {"parquet": PlaneElementWork}, devices=("auto", "cpu"), **SHARED),
    method_of("point_elements", {"parquet": ElementWork}, **SHARED),
)
