"""Reads one IFC model: elements with meshes, relations, properties, and what went wrong."""

import os
import threading
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spatialq.errors import FileError
from spatialq.io.ifc import columns, shapes
from spatialq.io.ifc import tables as ifc_tables
from spatialq.io.ifc.columns import Geometry
from spatialq.io.ifc.guard import READER, StepFile, checked
from spatialq.io.ifc.process import MAX_SECONDS, Progress, Run, Session, WorkerError
from spatialq.io.ifc.property_table import property_table, property_texts
from spatialq.io.storage import as_path

PRODUCT_SECONDS = 60.0
MIN_PARSED = 0.5
"""A file of which a smaller share of the entities could be parsed is rejected."""

ALIGNED = ("IfcAlignment", "IfcReferent")
"""Beginnings of the classes of which alignments are made: what such a model is about."""
DRAWN = ("IfcAnnotation", "IfcGrid", "IfcVirtual", "IfcPort", *ALIGNED)
"""Beginnings of the classes that are drawn as curves by their nature."""


@dataclass(frozen=True)
class IfcModel:
    """One IFC file as tables.

    Parameters
    ----------
    path : Path
    geometry : 'auto', 'exact' or 'none'
        How the meshes were made.
    schema : str
        IFC2X3, IFC4 or IFC4X3_ADD2.
    length_unit : str or None
        The unit of lengths in the file, such as ``millimetre``. Meshes are in metres anyway.
    length_unit_metres : float or None
        Its length in metres.
    georeference : dict or None
        Where the model's origin lies on the map: ``eastings northings orthogonal_height
        x_axis_abscissa x_axis_ordinate scale crs_name map_unit``, as the file says it. It is not
        applied: meshes stay in the model's own coordinates, so they have no CRS.
    tables : dict from str to pyarrow.Table
        The tables of `spatialq.io.ifc.columns.TABLES` by name; `elements`, one row per product
        that has a mesh, only if geometry was asked for.
    curve_only : int
        How many products have only curves, points or a bounding box, so no mesh and no row.
    warnings : tuple of str
        What is odd about the file, a sentence each.
    is_repeatable : bool
        Whether the file would give the same again: no process was lost, which may depend on how
        busy the machine was.
    """

    path: Path
    geometry: Geometry
    schema: str
    length_unit: str | None
    length_unit_metres: float | None
    georeference: dict[str, Any] | None
    tables: dict[str, pa.Table]
    curve_only: int
    warnings: tuple[str, ...]
    is_repeatable: bool

    def without_meshes(self) -> "IfcModel":
        """Leave out the elements and the errors of their meshes."""
        tables = {name: table for name, table in self.tables.items() if name != "elements"}
        errors = tables["load_errors"]
        tables["load_errors"] = errors.filter(pc.not_equal(errors["stage"], "geometry"))
        return replace(self, geometry="none", tables=tables)

    @property
    def nbytes(self) -> int:
        """Memory of the tables, in bytes."""
        return sum(table.nbytes for table in self.tables.values())


def read_model(
    path: str | os.PathLike[str],
    *,
    geometry: Geometry = "auto",
    product_seconds: float = PRODUCT_SECONDS,
    workers: int | None = None,
    cancel: threading.Event | None = None,
    progress: Progress | None = None,
) -> IfcModel:
    """Read an IFC file (`.ifc`, `.ifczip`; IFC2x3, IFC4, IFC4x3).

    The libraries that make meshes run in processes of their own: a product that crashes
    IfcOpenShell or takes too long becomes a row of `load_errors`, and the others are read.

    Parameters
    ----------
    path : path
    geometry : 'auto', 'exact' or 'none'
        'auto' takes the meshes of `ifclite-geom` where they are as good as those of IfcOpenShell,
        10 to 200 times faster; 'exact' takes IfcOpenShell for all; 'none' reads no meshes, and
        there is no table `elements`.
    product_seconds : float, > 0, <= 1,000,000
        How long one product's mesh may take; parsing may take ten times as long.
    workers : int, optional
        How many processes may share the work; the number of cores when left out.
    cancel : threading.Event, optional
        Another thread may set it to end the reading.
    progress : callable, optional
        Called in this thread, several times a second, with the number of meshes that are done, of
        all (0 while that is not known), and the name of the stage.

    Raises
    ------
    FileError
        If the file is missing, empty, cut off, no IFC in STEP text, of a schema that IfcOpenShell
        does not know, or if less than half of its entities can be parsed.
    ValueError
        If `geometry` is something else, or `product_seconds` or `workers` is out of range.
    concurrent.futures.CancelledError
        If `cancel` was set.

    Examples
    --------
    >>> model = read_model("house.ifc")  # doctest: +SKIP
    >>> model.tables["elements"].num_rows  # doctest: +SKIP
    107
    """
    if geometry not in columns.GEOMETRIES:
        message = f"{READER}: geometry must be 'auto', 'exact' or 'none', got {geometry!r}"
        raise ValueError(message)
    if not 0 < product_seconds <= MAX_SECONDS:
        message = (
            f"{READER}: product_seconds must be > 0 and <= {MAX_SECONDS:,}, got {product_seconds}"
        )
        raise ValueError(message)
    if workers is not None and workers < 1:
        message = f"{READER}: workers must be at least 1, got {workers}"
        raise ValueError(message)
    path = as_path(path)
    with checked(path) as step:
        session = Session(
            step.path,
            product_seconds,
            workers or os.cpu_count() or 1,
            cancel or threading.Event(),
            progress,
        )
        try:
            run = session.read(geometry)
        except WorkerError as error:
            raise FileError.of(READER, path, str(error)) from error
    return assemble(path, step, run, geometry=geometry)


def require_meshes(reader: str, geometry: Geometry) -> None:
    """Reject a reading without meshes where they are what is read for.

    Raises
    ------
    ValueError
        If `geometry` is 'none', or no geometry.
    """
    if geometry not in ("auto", "exact"):
        message = f"{reader}: geometry must be 'auto' or 'exact', got {geometry!r}"
        raise ValueError(message)


def assemble(path: Path, step: StepFile, run: Run, *, geometry: Geometry) -> IfcModel:
    """Make the tables of what the workers gave.

    Raises
    ------
    FileError
        If less than half of the entities were parsed.
    """
    facts = run.facts
    notes = [*step.warnings, *run.notes, *file_warnings(path, step, run)]
    name = str(path)
    texts = property_texts(facts["properties"])
    for products in (facts["products"], facts["tables"]["objects"]):
        products["properties"] = [texts.get(step_id, "{}") for step_id in products["step_id"]]
    tables = {"properties": property_table(facts["properties"], name)}
    failures = dict(run.failures)
    if geometry != "none":
        exact, unusable = shapes.measured(run.meshes, shapes.EXACT)
        failures |= unusable
        (true_north,) = facts["tables"]["models"]["true_north"]
        of_model = {"true_north": true_north, "ifc_schema": facts["schema"], "file_name": name}
        tables["elements"] = ifc_tables.elements(
            facts["products"], run.shapes.followed_by(exact), of_model
        )
    for table, lists in facts["tables"].items():
        tables[table] = ifc_tables.table(table, lists, name)
    tables["load_errors"] = ifc_tables.load_errors(facts["products"], failures, notes, name)
    return IfcModel(
        path=path,
        geometry=geometry,
        schema=facts["schema"],
        length_unit=facts["length_unit"],
        length_unit_metres=facts["length_unit_metres"],
        georeference=facts["georeference"],
        tables=tables,
        curve_only=len(run.curve_only),
        warnings=tuple(notes),
        is_repeatable=run.is_repeatable,
    )


def file_warnings(path: Path, step: StepFile, run: Run) -> list[str]:
    """Say what is odd about a file that was parsed.

    Raises
    ------
    FileError
        If less than half of the entities were parsed.
    """
    facts = run.facts
    notes = []
    parsed = facts["entities"]
    if parsed < step.entities:
        lost = f"{parsed:,} of {step.entities:,} entities could be parsed"
        if parsed < MIN_PARSED * step.entities:
            raise FileError.of(READER, path, f"only {lost}: the file is damaged")
        notes.append(f"only {lost}: the others are damaged or have the number of another one")
    if facts["parse_errors"]:
        notes.append("IfcOpenShell while parsing: " + " | ".join(facts["parse_errors"]))
    if facts["length_unit"] is None:
        notes.append("the file does not say its unit of length; metres are assumed")
    names = facts["products"]["global_id"]
    if len(set(names)) < len(names):
        notes.append(f"{len(names) - len(set(names))} products repeat a GlobalId of another one")
    classes = dict(zip(facts["products"]["step_id"], facts["products"]["ifc_class"], strict=True))
    curves = [classes[step_id] for step_id in run.curve_only]
    unusual = [each for each in curves if not each.startswith(DRAWN)]
    if unusual:
        notes.append(
            f"{len(unusual)} products have only curves, points or a bounding box: no mesh, no row"
        )
    # nearly every model has grids and annotations: they are news where there is nothing else
    is_empty = not (run.meshes or run.failures or len(run.shapes.step_ids))
    counts = Counter(each for each in curves if each.startswith(DRAWN if is_empty else ALIGNED))
    if counts:
        listed = ", ".join(f"{count} {ifc_class}" for ifc_class, count in sorted(counts.items()))
        verb = "has" if counts.total() == 1 else "have"
        notes.append(f"{listed} {verb} curves and no faces: left out of the elements")
    return notes
