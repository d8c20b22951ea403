"""Results in a Parquet file of DuckDB's, for writers that must know them before they write."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from spatialq.database.writers import Result
from spatialq.functions.sql_text import literal


@dataclass(frozen=True)
class Staged:
    """The rows of a result, in a file."""

    file: Path
    rows: int
    geometries: Mapping[str, Any]
    """What DuckDB found of each column of type GEOMETRY, as GeoParquet has it: their types in
    `geometry_types`, and the `bbox` of all. A column without a geometry is missing."""

    @property
    def source(self) -> str:
        """The rows as SQL has them after FROM."""
        return source_of(self.file)

    def box(self, column: str) -> list[float] | None:
        """Give xmin, ymin, xmax, ymax of the geometries of a column."""
        found = self.geometries.get(column, {}).get("bbox")
        return found and [*found[:2], *found[len(found) // 2 :][:2]]


def source_of(file: Path) -> str:
    """Write the rows of a Parquet file as SQL has them after FROM."""
    return f"read_parquet({literal(escape(str(file)))}, hive_partitioning = false)"


@contextmanager
def staged(result: Result, path: Path) -> Iterator[Staged]:
    """Run a query and keep its rows in a file beside `path` while the block runs."""
    import pyarrow.parquet as pq

    file = path.with_name(f"{path.name}.staged")
    try:
        copy = f"COPY ({result.query}\n) TO {literal(str(file))} (FORMAT PARQUET)"
        ((rows,),) = result.con.execute(copy).fetchall()
        metadata = pq.read_metadata(file).metadata or {}
        found = json.loads(metadata.get(b"geo", b'{"columns": {}}'))["columns"]
        yield Staged(file, int(rows), found)
    finally:
        file.unlink(missing_ok=True)
