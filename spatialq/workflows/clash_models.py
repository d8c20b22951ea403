"""The models that clashes are searched in: their tables, and what is odd about their places."""

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from spatialq.errors import FileWarning

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from spatialq.io.ifc.columns import Geometry
    from spatialq.io.source import Progress

COMMAND = "clash"
MAX_GAP = 1000.0
"""Metres between the boxes of two models that hardly belong together."""
Extent = tuple[str, list[float], list[float]]
"""The path of a model, and the low and high corners of the box around its elements, metres."""
ELEMENTS = """
CREATE TABLE elements AS
SELECT *, count(*) OVER (PARTITION BY file_name, global_id) > 1 AS is_duplicate
FROM clash_elements ORDER BY row
"""

UNIFIED = """
CREATE TABLE unified AS
SELECT e.row, u.storey_unified
FROM elements AS e
JOIN unified_storeys('elements', 'objects') AS u USING (file_name, step_id)
"""

MISPLACED = """
SELECT DISTINCT sentence FROM model_alignment('elements')
WHERE verdict = 'misplaced' ORDER BY sentence
"""

COPIES = """
SELECT a.file_name, b.file_name, count(*), any_value(n.elements)
FROM elements AS a JOIN elements AS b USING (global_id, xmin, ymin, zmin, xmax, ymax, zmax)
JOIN (SELECT file_name, count(*) AS elements FROM elements GROUP BY file_name) AS n
    ON n.file_name = b.file_name
WHERE a.file_name < b.file_name
GROUP BY a.file_name, b.file_name HAVING count(*) > any_value(n.elements) / 2
ORDER BY a.file_name, b.file_name
"""
"""Pairs of files of which the second has most of its elements in the first, at the same place."""


def read(
    con: "duckdb.DuckDBPyConnection",
    paths: Sequence[str | os.PathLike[str]],
    geometry: "Geometry",
    progress: "Progress | None",
) -> None:
    """Read the models and make their tables."""
    from spatialq.database.readers.ifc_models import warn_about_model
    from spatialq.io import georeference
    from spatialq.io.files import find_files
    from spatialq.io.ifc.cache import read_models
    from spatialq.io.ifc.model import require_meshes

    if not paths:
        message = f"{COMMAND}: models must be files or patterns, got none"
        raise ValueError(message)
    found = (file for path in paths for file in find_files(COMMAND, path))
    # each once, however it is named
    files = list({file.resolve(): file for file in found}.values())
    require_meshes(COMMAND, geometry)
    models = read_models(files, geometry=geometry, progress=progress)
    for model in models:
        warn_about_model(COMMAND, model, stacklevel=4)
    georeference.require_same(COMMAND, [(f"'{m.path}'", m.georeference) for m in models])
    extents = (extent_of(model.path, model.tables["elements"]) for model in models)
    warn_if_far_apart([each for each in extents if each is not None], stacklevel=4)
    make_tables(con, [model.tables for model in models])
    unify_storeys(con)
    if len(models) > 1:
        warn_if_misplaced(con, stacklevel=4)
        warn_of_copies(con, stacklevel=4)


def warn_if_misplaced(con: "duckdb.DuckDBPyConnection", *, stacklevel: int) -> None:
    """Warn of models that do not lie where the others do.

    Warns
    -----
    FileWarning
        `stacklevel` is as in `warnings.warn`.
    """
    for (sentence,) in con.execute(MISPLACED).fetchall():
        warnings.warn(f"{COMMAND}: {sentence}", FileWarning, stacklevel=stacklevel + 1)


def warn_of_copies(con: "duckdb.DuckDBPyConnection", *, stacklevel: int) -> None:
    """Warn of models that are the same as another one, or a revision of it.

    Warns
    -----
    FileWarning
        `stacklevel` is as in `warnings.warn`.
    """
    for first, second, same, of in con.execute(COPIES).fetchall():
        message = (
            f"{COMMAND}: {same} of the {of} elements of '{second}' are in '{first}', too, at the "
            "same place under the same GlobalIds: it seems to be a copy or a revision of it"
        )
        warnings.warn(message, FileWarning, stacklevel=stacklevel)


def make_tables(
    con: "duckdb.DuckDBPyConnection", models: "Sequence[Mapping[str, pa.Table]]"
) -> None:
    """Make the tables of models, one below the other.

    `elements` gets `row`, its number, and `is_duplicate`: its file has the GlobalId once more.
    """
    import pyarrow as pa

    rows = pa.concat_tables([tables["elements"] for tables in models])
    con.register("clash_elements", rows.append_column("row", pa.array(range(rows.num_rows))))
    con.execute(ELEMENTS)
    con.unregister("clash_elements")
    for name in models[0].keys() - {"elements"}:
        con.register(name, pa.concat_tables([tables[name] for tables in models]))


def unify_storeys(con: "duckdb.DuckDBPyConnection") -> None:
    """Make the table `unified`: what the floor of each element is called in all models alike."""
    con.execute(UNIFIED)


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Name each file without its folder where no other one has that name."""
    given = {*paths}
    often = Counter(Path(path).name for path in given)
    return {path: path if often[Path(path).name] > 1 else Path(path).name for path in given}


def extent_of(path: Path, elements: "pa.Table") -> Extent | None:
    """Give the box around the elements of a model; None if it has none."""
    import pyarrow.compute as pc

    if elements.num_rows == 0:
        return None
    low = [pc.min(elements[name]).as_py() for name in ("xmin", "ymin", "zmin")]
    high = [pc.max(elements[name]).as_py() for name in ("xmax", "ymax", "zmax")]
    return str(path), low, high


def warn_if_far_apart(extents: Sequence[Extent], *, stacklevel: int) -> None:
    """Warn of models, one after the other, that are far from each other.

    Warns
    -----
    FileWarning
        `stacklevel` is as in `warnings.warn`.
    """
    for (path, low, high), (other, low2, high2) in pairwise(extents):
        gap = max(max(q - h, p - k) for p, h, q, k in zip(low, high, low2, high2, strict=True))
        if gap > MAX_GAP:
            message = (
                f"{COMMAND}: '{path}' and '{other}' are {gap / 1000:.1f} km apart: they seem to "
                "have different origins"
            )
            warnings.warn(message, FileWarning, stacklevel=stacklevel)
