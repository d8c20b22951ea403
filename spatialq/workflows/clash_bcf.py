"""Clashes as BCF: one topic per pair of elements, or per group of pairs, that others open."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spatialq.data.meshes import Meshes
from spatialq.database.partial_models import PAIR, files_of
from spatialq.database.sources import tables_read
from spatialq.errors import files_read_by
from spatialq.export.atomic import WRITER, require_outputs
from spatialq.export.bcf import AUTHOR, DATE, VERSIONS, Comment, Topic, View, cleaned, write_archive
from spatialq.export.clash_view import COLOURS, radius_of, see
from spatialq.io.files import find_files
from spatialq.runtime.threads import workers
from spatialq.workflows.tables import dicts
from spatialq.workflows.tiles_elements import NOT_DRAWN, meshes_of_table

if TYPE_CHECKING:
    import pyarrow as pa

    from spatialq.database.writers import Result

    FloatArray = np.ndarray[Any, np.dtype[np.float64]]

BCF = "write_bcf"
SUFFIXES = (".bcf", ".bcfzip")
MEASURES = ("penetration", "thickness", "distance", "volume")
"""Columns that a description names where they are there."""
MOST_OTHERS, MOST_SAID = 40, 20
"""Elements around a clash that are shown with it; clashes of a group that are described."""
BATCH = 64
"""Topics whose pictures are drawn before they are written."""
FADED = "40C8C8C8"
"""AARRGGBB: what viewers know of it they show as glass."""
BOX = ("xmin", "ymin", "zmin", "xmax", "ymax", "zmax")


@dataclass(frozen=True)
class Building:
    """The elements of some models.

    Parameters
    ----------
    table : pyarrow.Table
        Of `read_ifc`.
    meshes : Meshes
    low, high : float64[n, 3]
        Corners of their boxes.
    is_drawn : bool[n]
        False of spaces and openings, which hide what is in them.
    """

    table: "pa.Table"
    meshes: Meshes
    low: "FloatArray"
    high: "FloatArray"
    is_drawn: "np.ndarray[Any, np.dtype[np.bool_]]"

    @classmethod
    def of(cls, files: Sequence[Path]) -> "Building":
        """Read models."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from spatialq.io.ifc.cache import read_models

        models = read_models(files, geometry="auto")
        table = pa.concat_tables([model.tables["elements"] for model in models])
        box = np.stack([table[name].to_numpy() for name in BOX], axis=1).reshape(-1, 6)
        is_drawn = pc.invert(pc.is_in(table["ifc_class"], pa.array(NOT_DRAWN))).to_numpy()
        return cls(table, meshes_of_table(table), box[:, :3], box[:, 3:], is_drawn)

    def rows(self) -> dict[str, list[int]]:
        """Give the rows of each GlobalId."""
        found: dict[str, list[int]] = {}
        for row, each in enumerate(self.table["global_id"].to_pylist()):
            found.setdefault(each, []).append(row)
        return found

    def around(self, point: "FloatArray", radius: float, pair: Sequence[int]) -> list[int]:
        """Give the elements nearest to a place, without a pair of them."""
        apart = np.maximum(np.maximum(self.low - point, point - self.high), 0).max(axis=1)
        apart[~self.is_drawn] = np.inf
        apart[list(pair)] = np.inf
        order = np.argsort(apart, kind="stable")[:MOST_OTHERS]
        return [int(row) for row in order if apart[row] <= radius]


def write(result: "Result", path: Path) -> int:
    """Write rows of clashes as a BCF archive; see `docs/write_bcf.md`.

    Returns
    -------
    int
        Topics written.

    Raises
    ------
    FileError
        If a model cannot be read, or the archive cannot be written.
    ValueError
        If rows have no `a` and `b`, these are not in the models, or an option is wrong.
    """
    clashes = _clashes(WRITER, dicts(result.relation), list(result.columns), path)
    files = _named(clashes)
    if clashes and not files:
        ids = {row[side] for row in clashes for side in PAIR}
        read = tables_read(result.con, result.statement)
        files = [Path(name) for name in files_of(result.con, result.statement, read, ids)]
    return _write(WRITER, clashes, files, path, **result.options)


def write_bcf(
    rows: Sequence[Mapping[str, Any]],
    output: str,
    *,
    models: str | None = None,
    bcf_version: str = VERSIONS[0],
    author: str = AUTHOR,
) -> dict[str, Any]:
    """Write rows of clashes as a BCF archive: behind `write_bcf` in SQL.

    Parameters
    ----------
    rows : sequence of mapping
        As JSON has them.
    output : str
    models : str, optional
        File or pattern of the models; by default those that the rows name.
    bcf_version, author : str

    Returns
    -------
    dict
        topics and outputs.

    Raises
    ------
    FileError, ValueError
        As `write`.
    """
    path = Path(output)
    require_outputs(BCF, [], [path], SUFFIXES)
    clashes = _clashes(BCF, rows, list(rows[0]) if rows else PAIR, path)
    files = _named(clashes) if models is None else find_files(BCF, models)
    topics = _write(BCF, clashes, files, path, bcf_version=bcf_version, author=author)
    return {"topics": topics, "outputs": [output]}


def _clashes(
    caller: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], path: Path
) -> list[Mapping[str, Any]]:
    """Take the rows that name two elements."""
    if missing := set(PAIR) - set(columns):
        message = (
            f"{caller}: rows of '{path}' must be clashes with the GlobalIds a and b, got "
            f"{', '.join(columns)}, without {', '.join(sorted(missing))}"
        )
        raise ValueError(message)
    return [row for row in rows if row["a"] and row["b"]]


def _named(clashes: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Give the models that rows name."""
    named = {row.get(name) for row in clashes for name in ("a_file", "b_file", "file_name")}
    return [Path(name) for name in named if name]


def _write(
    caller: str,
    clashes: Sequence[Mapping[str, Any]],
    files: Sequence[Path],
    path: Path,
    *,
    bcf_version: str | None = None,
    author: str | None = None,
    date: datetime | None = None,
) -> int:
    """Write the archive of clashes of elements in some files."""
    version = bcf_version or VERSIONS[0]
    if version not in VERSIONS:
        message = f"{caller}: bcf_version must be '2.1' or '3.0', got {version!r}"
        raise ValueError(message)
    if clashes and not files:
        other = "come from tables with a column file_name" if caller == WRITER else "models must"
        message = (
            f"{caller}: rows of '{path}' must say in columns a_file and b_file of which models "
            f"their elements are, or {other}"
        )
        raise ValueError(message)
    with files_read_by(caller):
        building = Building.of(sorted(files)) if clashes else None
    topics = () if building is None else _topics(caller, clashes, building, path)
    return write_archive(
        path, topics, version=version, author=cleaned(author) or AUTHOR, date=date or DATE
    )


def key_of(a: str, b: str) -> str:
    """Name a clash: the same in either order, and in each revision that keeps the GlobalIds."""
    return "\n".join(("clash", *sorted((a, b))))


def _topics(
    caller: str, clashes: Sequence[Mapping[str, Any]], building: Building, path: Path
) -> Iterator[Topic]:
    """Give the topics in the order of their first clashes."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in clashes:
        named = row.get("topic")
        key = key_of(row["a"], row["b"]) if named is None else f"topic\n{named}"
        groups.setdefault(key, []).append(row)
    of_element: dict[str, list[str]] = {}
    for key, rows in groups.items():
        for each in {row[side] for row in rows for side in PAIR}:
            of_element.setdefault(each, []).append(key)
    places = building.rows()

    def topic(key: str) -> Topic:
        rows = groups[key]
        ids = {row[side]: None for row in rows for side in PAIR}
        if unknown := [each for each in ids if each not in places]:
            message = f"{caller}: '{path}': element '{unknown[0]}' is in none of the models"
            raise ValueError(message)
        others = {other: None for each in ids for other in of_element[each] if other != key}
        return _topic(key, rows, tuple(others)[:MOST_SAID], building, places)

    keys = list(groups)
    for first in range(0, len(keys), BATCH):
        with workers() as pool:
            topics = pool.map(topic, keys[first : first + BATCH])
        yield from topics


def _topic(
    key: str,
    rows: Sequence[Mapping[str, Any]],
    related: tuple[str, ...],
    building: Building,
    places: Mapping[str, list[int]],
) -> Topic:
    first = rows[0]
    pair = [_row_of(first, side, building, places) for side in PAIR]
    elements = [{name: building.table[name][row].as_py() for name in
                 ("name", "ifc_class", "storey", "file_name")} for row in pair]  # fmt: skip
    said = [f"{each['ifc_class']} {each['name'] or ''}".strip() for each in elements]
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    storeys = dict.fromkeys(each["storey"] for each in elements if each["storey"])
    comments = [
        Comment(each)
        if isinstance(each, str)
        else Comment(**{**each, "date": _time(each.get("date"))})
        for each in first.get("comments") or ()
    ]
    given = {
        name: first[name]
        for name in ("status", "priority", "assigned_to")
        if cleaned(first.get(name))
    }
    return Topic(
        key,
        cleaned(first.get("title")) or f"{said[0]} / {said[1]}{more}",
        _view(first, rows, pair, building),
        labels=first.get("labels")
        or [*(first[each] for each in ("rule", "relation") if first.get(each)), *storeys],
        description=first.get("description") or "\n".join(map(_described, rows[:MOST_SAID])),
        models=tuple(dict.fromkeys(Path(each["file_name"]).name for each in elements)),
        comments=comments or (Comment(_described(first)),),
        due=_time(first.get("due")),
        related=related,
        **given,
    )  # fmt: skip


def _row_of(
    row: Mapping[str, Any], side: str, building: Building, places: Mapping[str, list[int]]
) -> int:
    """Find an element, of several with its GlobalId the one in the file that the row names."""
    found = places[row[side]]
    files = building.table["file_name"]
    named = [each for each in found if files[each].as_py() == row.get(f"{side}_file")]
    return (named or found)[0]


def _time(value: Any) -> datetime | None:
    """Understand a time, or what JSON has of it; a date is its midnight."""
    return datetime.fromisoformat(str(value)) if value else None


def _described(row: Mapping[str, Any]) -> str:
    """Say in one line what clashes, and how."""
    measures = (
        f"{name} {row[name]:.4g} {'m³' if name == 'volume' else 'm'}"
        for name in MEASURES
        if isinstance(row.get(name), float)
    )
    how = ", ".join([str(row.get("relation") or "clash"), *measures])
    return f"{row['a']} / {row['b']}: {how}"


def _view(
    first: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    pair: list[int],
    building: Building,
) -> View:
    """See the first clash of a topic."""
    given = [first.get(axis) for axis in "xyz"]
    low = building.low[pair].max(axis=0)
    middle = (low + building.high[pair].min(axis=0)) / 2
    point = middle if None in given else np.array(given, np.float64)
    meshes = building.meshes.take(pair)
    around = building.around(point, radius_of(point, meshes), pair)
    seen = see(point, meshes, building.meshes.take(around))
    ids = building.table["global_id"]
    shown = dict.fromkeys(ids[around[k]].as_py() for k in seen.others)
    a, b = (list(dict.fromkeys(row[side] for row in rows)) for side in PAIR)
    b = [each for each in b if each not in a]
    selected = (*a, *b)
    colours = [f"{'80' * (seen.veil == k)}{r:02X}{g:02X}{b:02X}"
               for k, (r, g, b) in enumerate(COLOURS)]  # fmt: skip
    coloured = dict(zip(colours, (a, b), strict=True))
    faded = [each for each in shown if each not in selected]
    return View(
        seen.camera,
        selected,
        {colour: names for colour, names in {**coloured, FADED: faded}.items() if names},
        (*selected, *faded),
        seen.picture.png(),
        seen.camera.target if seen.is_cut else None,
    )
