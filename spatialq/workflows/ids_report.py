"""Checks of models by an IDS and of their quality, and what is written of them."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spatialq.export.atomic import require_outputs, whole
from spatialq.export.bcf import Topic, View, cleaned, write_archive
from spatialq.export.page import Cell, Html, table, tag, write_page
from spatialq.functions.sql_text import literal
from spatialq.io.files import find_files, require_file
from spatialq.io.formats import reader_of
from spatialq.io.ids import checks
from spatialq.io.ids.files import read_ids
from spatialq.io.ids.reader import Ids, Specification
from spatialq.io.storage import as_path
from spatialq.workflows import model_quality

COMMAND = "check"
PAGE, ISSUES, JSON = (".html", ".htm"), (".bcf", ".bcfzip"), (".json",)
TABLES = (".xlsx", ".csv", ".parquet")
ENDINGS = (*PAGE, *TABLES, *ISSUES, *JSON)
MOST_ROWS = 10_000
"""Failed rows that a page lists."""
MOST_SAID = 20
"""Objects that the description of an issue names."""
MOST_SELECTED = 5000
"""Objects that an issue selects."""


@dataclass(frozen=True)
class Report:
    """What came of the checks of some models.

    Parameters
    ----------
    ids : Ids
    models : list of str
    rows : pyarrow.Table
        As `spatialq.io.ids.columns.CHECKS` says.
    """

    ids: Ids
    models: list[str]
    rows: pa.Table

    @property
    def has_passed(self) -> bool:
        """Whether no row failed."""
        return checks.FAILED not in pc.unique(self.rows["status"]).to_pylist()

    @property
    def failed(self) -> pa.Table:
        """The rows that failed."""
        return self.rows.filter(pc.equal(self.rows["status"], checks.FAILED))

    def summary(self) -> list[dict[str, Any]]:
        """Give each specification with its status and how many objects passed and failed.

        An object has failed if one requirement has; a specification has, if one object has.
        """
        keys = ["specification_number", "file_name", "step_id"]
        is_failed = pc.cast(pc.equal(self.rows["status"], checks.FAILED), pa.int8())
        is_none = pc.cast(pc.equal(self.rows["status"], checks.NOT_APPLICABLE), pa.int8())
        objects = self.rows.select(keys).append_column("failed", is_failed)
        objects = objects.append_column("none", is_none)
        objects = objects.group_by(keys).aggregate([("failed", "max"), ("none", "max")])
        found: dict[int, dict[str, Any]] = {
            each.number: {
                "specification": each.name,
                "cardinality": each.cardinality,
                "status": checks.PASSED,
                "objects": 0,
                "passed": 0,
                "failed": 0,
            }
            for each in self.ids.specifications
        }
        skipped: dict[int, int] = {}
        for row in objects.to_pylist():
            said = found[row["specification_number"]]
            skipped[row["specification_number"]] = (
                skipped.get(row["specification_number"], 0) + row["none_max"]
            )
            if row["failed_max"]:
                said["status"] = checks.FAILED
            if row["step_id"] is not None:
                said["objects"] += 1
                said["failed" if row["failed_max"] else "passed"] += 1
        for number, said in found.items():
            if not said["objects"] and skipped.get(number) == len(self.models):
                said["status"] = checks.NOT_APPLICABLE
        return list(found.values())


def check_models(models: Sequence[str], rules: str | None, *, quality: bool = False) -> Report:
    """Check models by an IDS, by the rules of quality, or by both.

    Parameters
    ----------
    models : sequence of str
        Files or glob patterns.
    rules : str, optional
        An IDS file.
    quality : bool
        Whether models are checked by the rules of `model_quality` as well: specifications that
        follow those of the IDS, of which the objects that break them are listed.

    Raises
    ------
    FileError
        If one of them cannot be read, or the IDS is invalid.
    """
    ids = Ids(Path(), "Model quality", (), {})
    if rules is not None:
        ids = read_ids(as_path(rules), COMMAND)
    files = list(dict.fromkeys(file for each in models for file in find_files(COMMAND, each)))
    for file in files:
        require_file(COMMAND, file)
        if quality:  # load takes clouds and grids, too
            reader_of(COMMAND, file, ["ifc"])
    rows = [checks.SCHEMA.empty_table()]
    if rules is not None:
        rows += checks.check(ids, files, COMMAND)
    if quality:
        first = len(ids.specifications)
        rows.append(_findings(files, first))
        ids = replace(ids, specifications=(*ids.specifications, *_quality_rules(first)))
    return Report(ids, [str(file) for file in files], pa.concat_tables(rows))


def _quality_rules(first: int) -> Iterator[Specification]:
    """Give the rules of quality as specifications, numbered behind the first ones."""
    for number, rule in enumerate(model_quality.RULES, start=first + 1):
        yield Specification(
            number, 0, rule.name, "required", (), (), (), description=rule.requirement
        )


def _findings(files: Sequence[Path], first: int) -> pa.Table:
    """Load models, and give what breaks the rules of quality as rows that failed."""
    from spatialq.database.connection import connect_quietly
    from spatialq.database.loading import load

    with connect_quietly() as con:
        load(con, files)
        found = con.sql(f"""
            SELECT rule AS specification, {first} + rule_number AS specification_number,
                requirement, 1 AS requirement_number, 'quality' AS facet,
                {literal(checks.FAILED)} AS status, * EXCLUDE (rule, rule_number, requirement)
            FROM model_quality()
        """)
        return found.to_arrow_table().select(checks.SCHEMA.names).cast(checks.SCHEMA)


def require_report(inputs: Sequence[str], output: Path) -> None:
    """Reject an output that cannot be written, before models are read.

    Raises
    ------
    FileError, ValueError
    """
    require_outputs(COMMAND, [as_path(each) for each in inputs], [output], ENDINGS)


def write(report: Report, path: Path) -> None:
    """Write a report; the ending of the path tells the form.

    Raises
    ------
    FileError
        If it cannot be written, or needs an extra that is not installed.
    """
    ending = path.suffix.lower()
    if ending in PAGE:
        write_page(path, f"Checks of {_names(report)}", _page(report))
    elif ending in ISSUES:
        write_archive(path, _topics(report))
    elif ending in JSON:
        found = {
            "title": report.ids.title,
            "models": report.models,
            "passed": report.has_passed,
            "specifications": report.summary(),
            "checks": report.rows.to_pylist(),
        }
        with whole(path) as partial:
            text = json.dumps(found, ensure_ascii=False, indent=1)
            partial.write_text(text + "\n", encoding="utf-8", errors="replace")
    else:
        from spatialq.database.connection import connect_quietly
        from spatialq.database.table_files import write_table

        with connect_quietly() as con:
            con.register("checks", report.rows)
            write_table(con, "FROM checks", path)


def _names(report: Report) -> str:
    names = [os.path.basename(each) for each in report.models]  # noqa: PTH119 (of URLs as well)
    more = f" and {len(names) - 3} more models" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _page(report: Report) -> Iterator[Html]:
    summary = report.summary()
    counts = [sum(each["status"] == status for each in summary) for status in
              (checks.PASSED, checks.FAILED, checks.NOT_APPLICABLE)]  # fmt: skip
    yield tag(
        "p",
        f"{report.ids.title}: {len(summary):,} specifications, {counts[0]:,} passed, "
        f"{counts[1]:,} failed, {counts[2]:,} not applicable.",
    )
    yield tag("h2", "Specifications")
    columns = ("no.", "specification", "applies to", "requirements", "status", "objects", "passed",
               "failed")  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            each.number,
            each.name,
            f"{each.cardinality}: {'; '.join(map(str, each.applicability)) or 'the model'}",
            "; ".join(map(checks.said, each.requirements)) or each.description,
            said["status"],
            said["objects"],
            said["passed"],
            said["failed"],
        )
        for each, said in zip(report.ids.specifications, summary, strict=True)
    ]
    yield table("Objects to which each applies", columns, rows)
    failed = report.failed
    yield tag("h2", "What failed")
    if not failed.num_rows:
        yield tag("p", "Nothing.")
        return
    if failed.num_rows > MOST_ROWS:
        yield tag("p", f"The first {MOST_ROWS:,} of {failed.num_rows:,} rows.")
    words = tag("input", id="words", type="search", placeholder="such as wall FireRating")
    count = tag("span", id="shown", role="status", data_of="rows")
    yield tag("div", tag("label", "Rows with the words", words), count, class_="controls")
    names = ["specification", "requirement", "reason", "ifc_class", "name", "global_id", "step_id"]
    if len(report.models) > 1:
        names.append("file_name")
    listed = failed.select(names).slice(0, MOST_ROWS)
    yield table(
        "A row for each requirement and object",
        [each.replace("_", " ") for each in names],
        zip(*(column.to_pylist() for column in listed.columns), strict=True),
        id_="clashes",
    )


def _object(row: dict[str, Any]) -> str:
    """Name what a row is about."""
    if row["ifc_class"] is None:
        return "the model"
    return " ".join(filter(None, (row["ifc_class"], row["name"], row["global_id"])))


def _topics(report: Report) -> Iterator[Topic]:
    """Give an issue for each requirement and model that failed, with its objects selected."""
    keys = ["specification_number", "requirement_number", "file_name"]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in report.failed.to_pylist():
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    for (number, *_), rows in groups.items():
        specification = report.ids.specifications[number - 1]
        first = rows[0]
        wanted = first["requirement"] or f"{specification.cardinality} objects"
        said = [f"{_object(row)}: {row['reason']}" for row in rows[:MOST_SAID]]
        if len(rows) > MOST_SAID:
            said.append(f"and {len(rows) - MOST_SAID:,} more objects")
        ids = dict.fromkeys(row["global_id"] for row in rows if row["global_id"])
        model = os.path.basename(first["file_name"])  # noqa: PTH119
        yield Topic(
            "\n".join(("ids", specification.name, wanted, model)),
            f"{specification.name}: {wanted}",
            View(None, tuple(ids)[:MOST_SELECTED], {}, None, None),
            topic_type="IDS",
            description=cleaned("\n".join(said)),
            models=[model],
            labels=[specification.name],
        )
