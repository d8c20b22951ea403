"""Checks models by an IDS: a row for each specification, requirement and object."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.arrow import arrow_type
from spatialq.errors import FileWarning
from spatialq.io.ids.columns import CHECKS, SPECIFICATIONS
from spatialq.io.ids.evaluate import Checked, Model
from spatialq.io.ids.facts import Facts, needs_of, read_facts
from spatialq.io.ids.reader import READER, Facet, Ids, Specification

SCHEMA, SPECIFICATIONS_SCHEMA = (
    pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    for columns in (CHECKS, SPECIFICATIONS)
)
PASSED, FAILED, NOT_APPLICABLE = "passed", "failed", "not applicable"
NONE_THERE = (
    "the model has no object that the specification applies to, and at least one is required"
)


def check(ids: Ids, paths: Sequence[Path], reader: str = READER) -> Iterator[pa.Table]:
    """Check some models; give the rows of each.

    Raises
    ------
    FileError
        If one of them cannot be read.

    Warns
    -----
    FileWarning
        For what is odd about a file, such as entities that cannot be parsed.
    """
    needs = needs_of(ids.specifications)
    for path, facts in zip(paths, read_facts(paths, needs, reader), strict=True):
        for warning in facts.warnings:
            warnings.warn(f"{reader}: '{path}': {warning}", FileWarning, stacklevel=2)
        yield _rows(ids, facts, str(path))


def specifications(ids: Ids) -> pa.Table:
    """List the specifications of a file."""
    rows = [
        {
            "specification_number": each.number,
            "specification": each.name,
            "cardinality": each.cardinality,
            "ifc_versions": list(each.versions),
            "applicability": [str(facet) for facet in each.applicability],
            "requirements": [said(facet) for facet in each.requirements],
            "identifier": each.identifier,
            "description": each.description,
            "instructions": each.instructions,
            "title": ids.title,
            "file_name": str(ids.path),
        }
        for each in ids.specifications
    ]
    return pa.Table.from_pylist(rows, SPECIFICATIONS_SCHEMA)


def said(facet: Facet) -> str:
    """Say a requirement, with its cardinality if that is not required."""
    return str(facet) if facet.cardinality == "required" else f"{facet.cardinality}: {facet}"


def _rows(ids: Ids, facts: Facts, file_name: str) -> pa.Table:
    model = Model(facts)
    classes = pa.array(facts.texts, pa.string()).take(pa.array(facts.objects["class"]))
    objects = {
        "ifc_class": classes,
        "name": pa.array(facts.objects["name"], pa.string()),
        "global_id": pa.array(facts.objects["global_id"], pa.string()),
        "step_id": pa.array(facts.objects["step_id"], pa.int64()),
    }
    tables = [SCHEMA.empty_table()]
    for specification in ids.specifications:
        parts = list(model.check(specification))
        for number, part in enumerate(parts, 1):
            if part.objects.size:
                tables.append(_of_part(specification, part, number, objects, file_name))
        if not parts[0].objects.size:
            tables.append(_of_model(specification, file_name))
    return pa.concat_tables(tables)


def _of_part(
    specification: Specification,
    part: Checked,
    number: int,
    objects: dict[str, pa.Array],
    file_name: str,
) -> pa.Table:
    size = part.objects.size
    facet = part.requirement
    reasons: list[str | None] = [None] * size
    for at in np.flatnonzero(~part.passed):
        reasons[at] = part.reason(int(part.objects[at]))
    same = {
        "specification": specification.name,
        "specification_number": specification.number,
        "requirement": None if facet is None else said(facet),
        "requirement_number": None if facet is None else number,
        "facet": None if facet is None else facet.kind,
        "file_name": file_name,
    }
    rows = pa.array(part.objects)
    columns: dict[str, Any] = {
        name: pa.repeat(pa.scalar(value, SCHEMA.field(name).type), size)
        for name, value in same.items()
    }
    columns |= {name: column.take(rows) for name, column in objects.items()}
    columns["status"] = pa.array(np.where(part.passed, PASSED, FAILED), pa.string())
    columns["reason"] = pa.array(reasons, pa.string())
    return pa.Table.from_arrays([columns[name] for name in CHECKS], schema=SCHEMA)


def _of_model(specification: Specification, file_name: str) -> pa.Table:
    """Say what it means that a specification applies to no object."""
    is_required = specification.cardinality == "required"
    is_right = specification.cardinality == "prohibited"
    row = {
        "specification": specification.name,
        "specification_number": specification.number,
        "status": FAILED if is_required else PASSED if is_right else NOT_APPLICABLE,
        "reason": NONE_THERE if is_required else None,
        "file_name": file_name,
    }
    return pa.Table.from_pylist([row], SCHEMA)
