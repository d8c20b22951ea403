"""What a person names to look at: files, a database, its tables, queries; opened as tables."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import FileError
from spatialq.functions.sql_text import identifier, literal
from spatialq.runtime.temporary import temporary_folder
from spatialq.serve.box import FUNCTIONS, attach
from spatialq.serve.cache import digest, is_there

if TYPE_CHECKING:
    import duckdb

    from spatialq.io.source import Progress

COMMAND = "view"
SCENE = "scene"
"""What the database of the files is called, or the one that was named."""
OWN = "own"
"""The database of what is made here: rows of queries and of Parquet files."""
DATABASES = (".duckdb", ".ddb", ".db")
PARQUET = ".parquet"
MODELS = (".ifc", ".ifczip")
QUERY = re.compile(r"\s*(SELECT|FROM|WITH)\s", re.IGNORECASE)
POINTS = {"point_id", "x", "y", "z"}
CLASHES = ({"a", "b"}, {"a_global_id", "b_global_id"})
VERDICT = {"global_id", "status"}
PLANES = {"plane_id", "nx", "ny", "nz", "d"}
ELEMENTS = {"global_id", "mesh"}


@dataclass(frozen=True)
class Table:
    """A table of the scene.

    Parameters
    ----------
    name : str
        As the box knows it.
    database : str
    columns : tuple of (str, str)
        Names and types.
    title : str
        What a person calls it.
    stamp : str
        Other contents have another one.
    """

    name: str
    database: str
    columns: tuple[tuple[str, str], ...]
    title: str
    stamp: str

    @property
    def sql(self) -> str:
        """The table in a query, wherever that looks for names."""
        return f"{self.database}.main.{identifier(self.name)}"

    @property
    def names(self) -> set[str]:
        """The names of its columns, in lower case."""
        return {name.lower() for name, _ in self.columns}


@dataclass
class Opened:
    """The tables of a scene on one connection.

    Attributes
    ----------
    con : duckdb.DuckDBPyConnection
    clouds, elements, planes, lists : list of Table
    tables : list of Table
        All of them, others too.
    """

    con: "duckdb.DuckDBPyConnection"
    title: str
    tables: list[Table] = field(default_factory=list)
    clouds: list[Table] = field(default_factory=list)
    elements: list[Table] = field(default_factory=list)
    planes: list[Table] = field(default_factory=list)
    lists: list[Table] = field(default_factory=list)
    crs: str | None = None
    """PROJJSON of the first cloud whose coordinate reference system is known."""
    databases: dict[str, str] = field(default_factory=dict)
    """Names and paths of the databases that have the tables."""


@contextmanager
def open_sources(
    sources: Sequence[str], database: str | None, cache: Path, progress: "Progress | None" = None
) -> Iterator[Opened]:
    """Open what was named.

    Parameters
    ----------
    sources : sequence of str
        Files, patterns or folders of clouds and models, Parquet files of clashes, planes or
        points, one database, names of its tables, and queries.
    database : str, optional
        A database of which tables or queries are named.
    cache : Path
        Where the tables of files are kept.
    progress : callable, optional

    Raises
    ------
    FileError
        If a file cannot be read.
    ValueError
        If sources do not go together, or there is nothing to see.
    """
    from spatialq.database.connection import connect_quietly
    from spatialq.io.files import require_file
    from spatialq.io.formats import files_of

    queries = [each for each in sources if QUERY.match(each)]
    others = [each for each in sources if each not in queries]
    named = [] if database is None else [database]
    named += [each for each in others if each.lower().endswith(DATABASES)]
    parquet = [Path(each) for each in others if each.lower().endswith(PARQUET)]
    rest = [each for each in others if not each.lower().endswith((*DATABASES, PARQUET))]
    if len(named) > 1:
        message = f"{COMMAND}: sources must have one database at most, got {', '.join(named)}"
        raise ValueError(message)
    wanted: list[str] | None = None
    if named:
        require_file(COMMAND, Path(named[0]))
        if any(Path(each).exists() for each in rest):
            message = (
                f"{COMMAND}: sources must be files or one database, got both: load the files into "
                f"a copy of '{named[0]}' with spatialq load"
            )
            raise ValueError(message)
        wanted = rest or None
        path = Path(named[0]).resolve()
    else:
        found = [files_of(COMMAND, each, ("points", "ifc")) for each in rest]
        path = _loaded(_once(found), cache, progress)
    for each in parquet:
        require_file(COMMAND, each)
    title = ", ".join(Path(each).name for each in [*named, *rest, *map(str, parquet)][:3])
    with temporary_folder("spatialq_queries_") as folder, connect_quietly() as con:
        attach(con, SCENE, path)
        opened = Opened(con, title or "Query", databases={SCENE: str(path)})
        stamp = digest(str(path), _stamp(path)) if named else path.parent.name
        if queries or parquet:
            own = folder / f"{OWN}.duckdb"
            con.execute(f"ATTACH {literal(str(own))} AS {OWN}")
            for number, query in enumerate(queries, 1):
                _add_query(con, f"query_{number}" if number > 1 else "query", query)
            for each in parquet:
                name = re.sub(r"\W", "_", each.stem)
                rows = f"read_parquet({literal(str(each))})"
                _add_query(con, name, f"FROM {rows}", is_cloud=False)
            # other processes read it, too
            con.execute(f"CHECKPOINT {OWN}")
            con.execute(f"DETACH {OWN}")
            attach(con, OWN, own)
            opened.databases[OWN] = str(own)
        _describe(opened, stamp, [digest(queries, [_stamp(each) for each in parquet]), stamp])
        _choose(opened, wanted, Path(named[0]) if named else None)
        yield opened


def _stamp(path: Path) -> list[Any]:
    said = path.stat()
    return [str(path.resolve()), said.st_mtime_ns, said.st_size]


def _once(groups: Sequence[Sequence[Path]]) -> list[list[Path]]:
    """Leave a file to the first source that names it."""
    seen: set[Path] = set()
    found = []
    for group in groups:
        found.append([each for each in dict.fromkeys(group) if each not in seen])
        seen.update(group)
    return found


def _loaded(groups: Sequence[Sequence[Path]], cache: Path, progress: "Progress | None") -> Path:
    """Give the database with the tables of files, which is made unless it is there.

    Of the clouds of a source, which may be a pattern or a folder, those of one CRS with the same
    columns are one table.
    """
    from spatialq.database.connection import connect_quietly
    from spatialq.database.loading import load
    from spatialq.io.formats import open_source, reader_of

    files = [file for group in groups for file in group]
    stamps = [[_stamp(file) if file.is_file() else str(file) for file in group] for group in groups]
    folder = cache / f"files-{digest(stamps)}"
    path = folder / "scene.duckdb"
    if is_there(folder):
        return path
    kinds = {file: reader_of(COMMAND, file, ("points", "ifc")).kind for file in files}
    with temporary_folder("files_", cache) as parts:
        new = parts / "new"
        new.mkdir()
        with connect_quietly(str(new / path.name)) as con:
            first_crs: str | None = None
            clouds: list[tuple[list[Path], str | None]] = []
            for group in groups:
                alike: dict[tuple[str | None, frozenset[tuple[str, str]]], list[Path]] = {}
                for file in group:
                    if kinds[file] == "points":
                        source = open_source(COMMAND, file, ("points",))
                        columns = frozenset((each.name, str(each.type)) for each in source.schema)
                        alike.setdefault((source.crs, columns), []).append(file)
                clouds += [(of_cloud, own) for (own, _), of_cloud in alike.items()]
            for number, (of_cloud, own) in enumerate(clouds, 1):
                first_crs = first_crs or own
                moves = own is not None and own != first_crs
                load(
                    con, of_cloud, "points" if number == 1 else f"points_{number}",
                    to_crs=first_crs if moves else None, progress=progress,
                )  # fmt: skip
            for file in files:
                if kinds[file] == "ifc":
                    load(con, file, progress=progress)
            con.execute("CHECKPOINT")
        if not path.exists():
            _appear(new, folder)
    return path


def _appear(made: Path, folder: Path) -> None:
    """Let a folder appear whole, unless another process was faster."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def _add_query(
    con: "duckdb.DuckDBPyConnection", name: str, query: str, *, is_cloud: bool = True
) -> None:
    """Make a table of the rows of a query, with a point_id where places have none."""
    from spatialq.database.frames import crs_statements
    from spatialq.database.statements import one_statement

    text = one_statement(COMMAND, con, query)
    con.execute(f"USE {SCENE}")
    try:
        names = {each.lower() for each in con.sql(text).columns}
        is_places = {"x", "y", "z"} <= names
        if is_cloud and not is_places:
            message = (
                f"{COMMAND}: a query must have columns x, y and z of points, got "
                f"{', '.join(sorted(names))}"
            )
            raise ValueError(message)
        is_numbered = is_places and "point_id" not in names and not names & {"a", "plane_id"}
        numbered = "row_number() OVER () - 1 AS point_id, " if is_numbered else ""
        target = f"{OWN}.main.{identifier(name)}"
        con.execute(f"CREATE TABLE {target} AS SELECT {numbered}* FROM ({text})")
        if is_places:
            for noting in crs_statements(con, target, text):
                con.execute(noting)
    finally:
        con.execute(f"USE {FUNCTIONS}")


def _describe(opened: Opened, stamp: str, own_stamp: Any) -> None:
    rows = opened.con.execute(
        "SELECT database_name, table_name, list(column_name ORDER BY column_index), "
        "list(data_type ORDER BY column_index) FROM duckdb_columns() "
        "WHERE database_name IN (?, ?) AND schema_name = 'main' AND NOT internal "
        "AND NOT starts_with(table_name, 'spatialq_') GROUP BY ALL ORDER BY 1 DESC, 2",
        [SCENE, OWN],
    ).fetchall()
    for database, name, columns, types in rows:
        said = stamp if database == SCENE else digest(own_stamp)
        opened.tables.append(
            Table(name, database, tuple(zip(columns, types, strict=True)), name, said)
        )


def _choose(opened: Opened, wanted: list[str] | None, database: Path | None) -> None:
    """Say what of the tables is drawn and listed, and in which CRS."""
    from spatialq.database.frames import systems

    if wanted is not None:
        known = {each.name for each in opened.tables}
        if missing := [each for each in wanted if each not in known]:
            reason = f"has no table '{missing[0]}'; there are {', '.join(sorted(known)) or 'none'}"
            if database is None or "/" in missing[0] or "." in missing[0]:
                raise FileError.of(COMMAND, missing[0], "there is no such file")
            raise FileError.of(COMMAND, database, reason)
    shown = [
        each
        for each in opened.tables
        if wanted is None or each.name in wanted or each.database == OWN
    ]
    loaded = _files(opened)
    clouds = [each for each in shown if each.names >= POINTS and not each.names & {"plane_id", "a"}]
    of_files = [each for each in clouds if each.name in loaded or each.database == OWN]
    if wanted is None and of_files:
        clouds = of_files
    for each in clouds:
        paths = loaded.get(each.name, []) if each.database == SCENE else []
        several = f"{each.name}, {len(paths)} files" if paths else each.name
        title = Path(paths[0]).name if len(paths) == 1 else several
        opened.clouds.append(Table(each.name, each.database, each.columns, title, each.stamp))
    read = [systems(opened.con, f"FROM {each.sql}") for each in opened.clouds]
    opened.crs = next((crs for found in read for _, crs in found), None)
    opened.elements = [each for each in shown if each.names >= ELEMENTS]
    opened.planes = [each for each in shown if each.names >= PLANES]
    opened.lists = [
        each
        for each in shown
        if any(pair <= each.names for pair in CLASHES)
        or (each.names >= VERDICT and "mesh" not in each.names)
    ]
    if not (opened.clouds or opened.elements or opened.planes or opened.lists):
        message = (
            f"{COMMAND}: there is nothing to see: name point clouds, IFC files, Parquet files of "
            "clashes or planes, or a database with such tables"
        )
        raise ValueError(message)


def _files(opened: Opened) -> dict[str, list[str]]:
    """Say which files are in which table."""
    try:
        rows = opened.con.execute(
            f"SELECT files.table_name, path FROM {SCENE}.main.spatialq_files "
            "AS files WHERE table_name IN (SELECT table_name FROM duckdb_tables() "
            "WHERE database_name = ?)",
            [SCENE],
        ).fetchall()
    except Exception:
        return {}
    found: dict[str, list[str]] = {}
    for table, path in rows:
        found.setdefault(table, []).append(path)
    return found
