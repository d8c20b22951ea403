"""What specifications ask about a model: read from its file by a process of its own."""

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.errors import FileError, files_read_by
from spatialq.io.ids.reader import READER, Facet, Specification
from spatialq.io.ids.schemas import known
from spatialq.io.ids.values import Value
from spatialq.io.ifc.guard import checked
from spatialq.io.ifc.model import MIN_PARSED
from spatialq.io.ifc.process import MARGIN, Process, WorkerError
from spatialq.runtime.extras import require
from spatialq.runtime.threads import Pool, n_threads

SECONDS = 600.0
"""How long the reading of one file may take without an answer."""


@dataclass(frozen=True)
class Needs:
    """What is read of a model.

    Parameters
    ----------
    classes : list of str
        Of which all entities are read, without those of subtypes.
    objects : bool
        Whether all objects, types, materials and profiles are read as well.
    attributes : list of str
    properties, classifications, materials, parts : bool
    sets, names : list of str, optional
        The property sets, and the properties, that are asked about; all if None.
    """

    classes: list[str]
    objects: bool
    attributes: list[str]
    properties: bool
    classifications: bool
    materials: bool
    parts: bool
    sets: list[str] | None
    names: list[str] | None


def needs_of(specifications: Sequence[Specification]) -> Needs:
    """Say what some specifications ask about."""
    classes: set[str] = set()
    objects = False
    facets: list[Facet] = []
    for each in specifications:
        facets += [*each.applicability, *each.requirements]
        kinds = {facet.kind: facet for facet in each.applicability}
        if "entity" in kinds:
            classes |= classes_of(kinds["entity"].values["name"])
        elif "attribute" in kinds:
            classes |= classes_with(attributes_of([kinds["attribute"]]))
        else:
            objects = True
    by_kind = {kind: [facet for facet in facets if facet.kind == kind] for kind in
               ("attribute", "property", "classification", "material", "partOf")}  # fmt: skip
    return Needs(
        sorted(classes),
        objects,
        sorted(attributes_of(by_kind["attribute"])),
        bool(by_kind["property"]),
        bool(by_kind["classification"]),
        bool(by_kind["material"]),
        bool(by_kind["partOf"]),
        _given([facet.values["propertySet"] for facet in by_kind["property"]]),
        _given([facet.values["baseName"] for facet in by_kind["property"]]),
    )


def classes_of(name: Value) -> set[str]:
    """Give the classes of all schemas that a value allows."""
    names = {upper: each for schema in known().values() for upper, each in schema.classes.items()}
    uppers = list(names)
    return {names[uppers[i]] for i in name.of_texts(uppers).nonzero()[0]}


def attributes_of(facets: Sequence[Facet]) -> set[str]:
    """Give the attributes of all schemas that some facets allow."""
    names = sorted({name for schema in known().values() for name in schema.attribute_names})
    return {names[i] for facet in facets for i in facet.values["name"].of_texts(names).nonzero()[0]}


def classes_with(names: set[str]) -> set[str]:
    """Give the classes of all schemas that have one of some attributes."""
    return {
        each
        for schema in known().values()
        for each in schema.classes.values()
        if names & schema.attributes(each).keys()
    }


def _given(values: Sequence[Value]) -> list[str] | None:
    """List the names that values allow; None if one of them does not name them."""
    if any(value.simple is None and not value.enumeration for value in values):
        return None
    return sorted({name for value in values for name in value.given})


Table = dict[str, np.ndarray]


@dataclass(frozen=True)
class Facts:
    """The tables that were read of one model: arrays by column, see `worker`.

    Parameters
    ----------
    schema : str
    objects : dict
        ``step_id class as_class global_id name kinds``.
    tables : dict from str to Table
    texts : list of str
        What columns of names number.
    kinds : list of list of str
        What the predefined type of an object may be called.
    values : list of (int, object)
        What it is, and the value.
    sets : numpy.ndarray
        The name of each property set.
    warnings : tuple of str
        What is odd about the file, a sentence each.
    """

    schema: str
    objects: dict[str, Any]
    tables: dict[str, Table]
    texts: list[str]
    kinds: list[list[str]]
    values: list[list[Any]]
    sets: np.ndarray
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many objects there are."""
        return len(self.objects["step_id"])

    def table(self, name: str, *columns: str) -> tuple[np.ndarray, ...]:
        """Give columns of a table; without rows if it was not read."""
        table = self.tables.get(name, {})
        return tuple(table.get(column, np.empty(0, np.int64)) for column in columns)


TABLES = (
    "attributes", "set_owners", "properties", "property_values", "reference_owners", "references",
    "material_owners", "material_names", "parts",
)  # fmt: skip


def read_facts(paths: Sequence[Path], needs: Needs, reader: str = READER) -> Iterator[Facts]:
    """Read what is needed of several files, several at once, in their order.

    Raises
    ------
    FileError
        If one of them cannot be read, or the extra `ifc` is not installed.
    """
    stop = threading.Event()

    def one(path: Path) -> Facts:
        require("ifc", reader, path)
        with files_read_by(reader):
            return _read(path, needs, stop, reader)

    if len(paths) == 1:
        yield one(paths[0])
        return
    with Pool(n_threads(), thread_name_prefix="spatialq-ids") as pool:
        try:
            yield from pool.map(one, paths)
        except BaseException:
            stop.set()
            raise


def _read(path: Path, needs: Needs, stop: threading.Event, reader: str) -> Facts:
    with checked(path) as step:
        arguments = [sys.executable, "-P", "-m", "spatialq.io.ids.worker", str(step.path)]
        process = Process(arguments, SECONDS)
        try:
            with _watched(process, stop):
                process.open()
                process.ask(asdict(needs))
                answer = process.answer()
                if answer is None:
                    message = f"IfcOpenShell {process.ending()} while the file was read"
                    raise WorkerError(message)
                found = json.loads(answer[1])
        except WorkerError as error:
            raise FileError.of(reader, path, str(error)) from error
        finally:
            process.close()
    if "error" in found:
        raise FileError.of(reader, path, found["error"])
    notes = list(step.warnings)
    if found["entities"] < step.entities:
        lost = f"only {found['entities']:,} of {step.entities:,} entities could be parsed"
        if found["entities"] < MIN_PARSED * step.entities:
            raise FileError.of(reader, path, f"{lost}: the file is damaged")
        notes.append(f"{lost}: the others are damaged or have the number of another one")
    return replace(facts_of(found), warnings=tuple(notes))


def facts_of(found: dict[str, Any]) -> Facts:
    """Make arrays of what a process gave."""
    objects = found["objects"]
    for name in ("step_id", "class", "as_class", "kinds"):
        objects[name] = np.array(objects[name], np.int64)
    return Facts(
        found["schema"],
        objects,
        {
            name: {column: np.array(each, np.int64) for column, each in found[name].items()}
            for name in TABLES
            if name in found
        },
        found["texts"],
        found["kinds"],
        found["values"],
        np.array(found.get("sets", []), np.int64),
    )


@contextmanager
def _watched(process: Process, stop: threading.Event) -> Iterator[None]:
    """End a process that takes too long, or that nobody waits for any more."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(MARGIN):
            process.check()
            if stop.is_set():
                process.popen.kill()

    thread = threading.Thread(target=watch, name="spatialq-ids-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
