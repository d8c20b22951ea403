"""Clashes as BCF: one topic per pair of elements, or per group of pairs, that others open."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.partial_models import PAIR
from spatialq.export.atomic import WRITER, require_outputs
from spatialq.export.bcf import (
    AUTHOR,
    DATE,
    VERSIONS,
    Comment,
    Topic,
    View,
    cleaned,
    snapshots_in,
    write_archive,
)
from spatialq.export.clash_view import COLOURS
from spatialq.io.files import find_files
from spatialq.runtime.threads import workers
from spatialq.workflows.clash_elements import (
    Building,
    Clash,
    clashes_in,
    clashes_of,
    files_named,
    read_building,
)

if TYPE_CHECKING:
    from spatialq.database.writers import Result

BCF = "write_bcf"
SUFFIXES = (".bcf", ".bcfzip")
MEASURES = ("penetration", "thickness", "distance", "volume")
"""Columns that a description names where they are there."""
MOST_SAID = 20
"""Clashes of a group that are described."""
BATCH = 64
"""Topics whose pictures are drawn before they are written."""
FADED = "40C8C8C8"
"""AARRGGBB: what viewers know of it they show as glass."""


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
    clashes, files = clashes_of(result, path)
    return _write(WRITER, clashes, files, path, **result.options)


def write_bcf(
    rows: Sequence[Clash],
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
    clashes = clashes_in(BCF, rows, list(rows[0]) if rows else PAIR, path)
    files = files_named(clashes) if models is None else find_files(BCF, models)
    topics = _write(BCF, clashes, files, path, bcf_version=bcf_version, author=author)
    return {"topics": topics, "outputs": [output]}


def _write(
    caller: str,
    clashes: Sequence[Clash],
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
    building = read_building(caller, clashes, files, path)
    topics = () if building is None else _topics(clashes, building, path)
    return write_archive(
        path, topics, version=version, author=cleaned(author) or AUTHOR, date=date or DATE
    )


def key_of(a: str, b: str) -> str:
    """Name a clash: the same in either order, and in each revision that keeps the GlobalIds."""
    return "\n".join(("clash", *sorted((a, b))))


def _topics(clashes: Sequence[Clash], building: Building, path: Path) -> Iterator[Topic]:
    """Give the topics in the order of their first clashes.

    Pictures that the archive has which is about to be replaced are taken from there, as long as
    they are of the same.
    """
    groups: dict[str, list[Clash]] = {}
    for row in clashes:
        named = row.get("topic")
        key = key_of(row["a"], row["b"]) if named is None else f"topic\n{named}"
        groups.setdefault(key, []).append(row)
    of_element: dict[str, list[str]] = {}
    for key, rows in groups.items():
        for each in {row[side] for row in rows for side in PAIR}:
            of_element.setdefault(each, []).append(key)

    def topic(key: str) -> Topic:
        rows = groups[key]
        ids = {row[side]: None for row in rows for side in PAIR}
        others = {other: None for each in ids for other in of_element[each] if other != key}
        return _topic(key, rows, tuple(others)[:MOST_SAID], building, before(key))

    keys = list(groups)
    with snapshots_in(path) as before:
        for first in range(0, len(keys), BATCH):
            with workers() as pool:
                topics = pool.map(topic, keys[first : first + BATCH])
            yield from topics


def _topic(
    key: str,
    rows: Sequence[Clash],
    related: tuple[str, ...],
    building: Building,
    before: bytes | None,
) -> Topic:
    first = rows[0]
    pair = building.pair(first)
    elements = [building.said(row) for row in pair]
    said = [f"{each['ifc_class']} {each['name'] or ''}".strip() for each in elements]
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    storeys = dict.fromkeys(
        first.get(f"{side}_storey_unified") or each["storey"]
        for side, each in zip(PAIR, elements, strict=True)
    )
    given = {
        name: first[name]
        for name in ("status", "priority", "assigned_to")
        if cleaned(first.get(name))
    }
    return Topic(
        key,
        cleaned(first.get("title")) or f"{said[0]} / {said[1]}{more}",
        _view(first, rows, pair, building, before),
        labels=first.get("labels")
        or [*(first[each] for each in ("rule", "relation") if first.get(each)),
            *filter(None, storeys)],
        description=first.get("description") or "\n".join(map(_described, rows[:MOST_SAID])),
        models=tuple(dict.fromkeys(Path(each["file_name"]).name for each in elements)),
        comments=first.get("comments") or (Comment(_described(first)),),
        due=first.get("due"),
        related=related,
        **given,
    )  # fmt: skip


def _described(row: Clash) -> str:
    """Say in one line what clashes, and how."""
    measures = (
        f"{name} {row[name]:.4g} {'m³' if name == 'volume' else 'm'}"
        for name in MEASURES
        if isinstance(row.get(name), float)
    )
    how = ", ".join([str(row.get("relation") or "clash"), *measures])
    return f"{row['a']} / {row['b']}: {how}"


def _view(
    first: Clash,
    rows: Sequence[Clash],
    pair: list[int],
    building: Building,
    before: bytes | None,
) -> View:
    """See the first clash of a topic."""
    seen, others = building.see(first, pair, before)
    ids = building.table["global_id"]
    shown = dict.fromkeys(ids[row].as_py() for row in others)
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
        seen.png,
        seen.camera.target if seen.is_cut else None,
    )
