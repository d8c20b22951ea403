"""The command line: `spatialq info | load | sql | ground | planes | lod | clash | ...`."""

import json
import logging
import math
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from spatialq.errors import FileWarning, SpatialqError
from spatialq.functions.sql_text import identifier

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Point clouds, terrain grids and building models in SQL.",
)

Database = Annotated[
    str, typer.Option("--database", "-d", help="DuckDB file; without it one in memory.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
MEMORY = ":memory:"
NESTED = ("list", "array", "struct", "map", "union")
SHOWN_ELEMENTS = 8
SHOWN_CHARACTERS = 40
"""Of a nested value in a table."""
NO_WIDTH = 1 << 20


@app.command()
def info(
    files: Annotated[list[Path], typer.Argument(help="Point clouds, grids or models.")],
    *,
    as_json: Json = False,
) -> None:
    """Say what a file holds: rows, extent, CRS, columns, and what is odd about it."""
    from spatialq.workflows.info import describe

    for file in files:
        _show([describe(file)], as_json=as_json, upright=True)


@app.command()
def load(
    files: Annotated[list[str], typer.Argument(help="Files or patterns.")],
    database: Annotated[str, typer.Option("--database", "-d", help="DuckDB file to load into.")],
    table: Annotated[
        str | None, typer.Option("--table", "-t", help="Default: points, grid or elements.")
    ] = None,
    crs: Annotated[
        str | None, typer.Option(help="CRS of files that do not say, such as EPSG:25832.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Load files into tables, one transaction a file."""
    import spatialq
    from spatialq.database.connection import connect_quietly

    con = connect_quietly(database)
    with _progress() as update:
        records = spatialq.load(con, list(files), table, crs=crs, progress=update)
    con.close()
    rows = [
        {"table": record.table, "rows": record.rows, "kind": record.kind, "path": record.path}
        for record in records
    ]
    _show(rows, as_json=as_json)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="SQL; macros such as read_las('f.laz') work.")],
    database: Database = MEMORY,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=".parquet, .csv or .json file; a grid: .tif, .png."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Rows to print at most.")] = 100,
    *,
    as_json: Json = False,
) -> None:
    """Run SQL with all functions of spatialq, and print or write what comes out."""
    from spatialq.database.connection import connect_quietly
    from spatialq.database.sources import require_one_crs
    from spatialq.database.table_files import without_semicolon, write_table

    con = connect_quietly(database)
    statements = con.extract_statements(query)
    if not statements:
        message = "sql: the query is empty"
        raise ValueError(message)
    require_one_crs(con, query)
    if output is not None:
        written = write_table(con, query, output)
        _show([{"output": str(output), "rows": written}], as_json=as_json)
        return
    for statement in statements[:-1]:
        con.execute(statement)
    relation = con.sql(without_semicolon(statements[-1].query))
    relation = relation.project("*")  # tells columns of equal name apart: a, a_1
    write = _as_json if as_json else _as_text
    cells = [write(*column) for column in zip(relation.columns, relation.types, strict=True)]
    result = relation.limit(limit + 1).project(", ".join(cells))
    fetched = [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]
    _show(fetched[:limit], as_json=as_json)
    if len(fetched) > limit:
        _note(f"only the first {limit} rows are shown (--limit)")


@app.command()
def ground(
    file: Annotated[Path, typer.Argument(help="LAS, LAZ or COPC file in a projected CRS.")],
    output: Annotated[
        list[Path],
        typer.Option(
            "--output",
            "-o",
            help="May be given several times: .laz or .las for the points with their classes, .tif "
            "for the terrain, .png for its relief, .parquet, .csv or .json for a table.",
        ),
    ],
    resolution: Annotated[float, typer.Option(help="Of the terrain, units of the CRS.")] = 1.0,
    method: Annotated[str, typer.Option(help="Of the terrain: tin or idw.")] = "tin",
    object_width: Annotated[
        float, typer.Option(help="Widest building that is no terrain, metres.")
    ] = 60.0,
    max_distance: Annotated[
        float, typer.Option(help="Of a ground point from level terrain, metres.")
    ] = 0.4,
    crs: Annotated[
        str | None, typer.Option(help="CRS of a file that does not say, such as EPSG:25832.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    *,
    ground_only: Annotated[
        bool, typer.Option("--ground-only", help="Only ground points to .laz and .las.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Classify the ground of a point cloud: a new cloud, a terrain model, a relief, a table."""
    from spatialq.workflows.ground import write_ground

    with _progress() as update:
        row = write_ground(
            file,
            output,
            resolution=resolution,
            method=method,
            ground_only=ground_only,
            crs=crs,
            device=device,
            progress=update,
            object_width=object_width,
            max_distance=max_distance,
        )
    outputs = row["outputs"] if as_json else ", ".join(row["outputs"])
    _show([{**row, "outputs": outputs}], as_json=as_json, upright=True)


@app.command()
def planes(
    file: Annotated[Path, typer.Argument(help="LAS, LAZ or COPC file, not in degrees.")],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="May be given several times: .laz or .las for the points with their plane, "
            ".parquet, .csv or .json for a table, .png for a picture.",
        ),
    ] = None,
    max_distance: Annotated[
        float | None, typer.Option(help="Of a point from its plane, in the unit of the file.")
    ] = None,
    min_points: Annotated[int | None, typer.Option(help="That a plane must have.")] = None,
    kernel: Annotated[str, typer.Option(help="tangent, or paper as published.")] = "tangent",
    phi_num: Annotated[int, typer.Option(help="Steps of the accumulator, pole to pole.")] = 30,
    rho_num: Annotated[int | None, typer.Option(help="Its steps of the distance.")] = None,
    s_level: Annotated[
        int | None, typer.Option(help="First level of the octree that may be planar.")
    ] = None,
    s_ms: Annotated[int | None, typer.Option(help="Points that a node must have.")] = None,
    s_ps: Annotated[float | None, typer.Option(help="The same as a share of all.")] = None,
    max_thickness: Annotated[
        float, typer.Option(help="Of a planar node: least by middle variance.")
    ] = 1 / 25,
    min_isotropy: Annotated[
        float, typer.Option(help="Of a planar node: middle by greatest variance.")
    ] = 1 / 6,
    orientation_tolerance: Annotated[
        float, typer.Option(help="Degrees that a horizontal or vertical plane may be off.")
    ] = 5.0,
    up: Annotated[str, typer.Option(help="The axis that points up: x, y or z.")] = "z",
    crs: Annotated[
        str | None, typer.Option(help="CRS of a file that does not say, such as EPSG:25832.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    limit: Annotated[int, typer.Option(min=0, help="Planes to print at most.")] = 20,
    *,
    split: Annotated[
        bool, typer.Option("--split", help="Parts that are not connected are planes of their own.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the planes of a point cloud: a table, each point's plane, a picture."""
    from spatialq.workflows.planes import write_planes

    with _progress() as update:
        row = write_planes(
            file,
            output or (),
            crs=crs,
            up=up,
            device=device,
            progress=update,
            kernel=kernel,
            phi_num=phi_num,
            rho_num=rho_num,
            s_level=s_level,
            s_ms=s_ms,
            s_ps=s_ps,
            max_thickness=max_thickness,
            min_isotropy=min_isotropy,
            max_distance=max_distance,
            min_points=min_points,
            split=split,
            orientation_tolerance=orientation_tolerance,
        )
    found = row["planes"]
    if as_json:
        kept = [{name: v for name, v in each.items() if name != "boundary"} for each in found]
        _show([{**row, "planes": kept}], as_json=True)
    elif output:
        outputs = ", ".join(row["outputs"])
        _show([{**row, "planes": len(found), "outputs": outputs}], as_json=False, upright=True)
    else:
        brief = ("plane_id", "orientation", "area", "point_count", "rmse")
        shown = [
            {name: _rounded(each[name]) for name in brief}
            | {"normal": "{nx:.3f} {ny:.3f} {nz:.3f}".format_map(each)}
            for each in found[:limit]
        ]
        _show(shown, as_json=False)
        if len(found) > limit:
            _note(f"only the first {limit} planes are shown (--limit); -o writes all")


@app.command()
def clash(
    models: Annotated[list[str], typer.Argument(help="IFC files or patterns.")],
    a: Annotated[
        str | None, typer.Option("--a", help="SQL, such as \"ifc_class = 'IfcBeam'\".")
    ] = None,
    b: Annotated[
        str | None, typer.Option("--b", help="SQL; without it all pairs within a.")
    ] = None,
    tolerance: Annotated[
        str, typer.Option(help="Length: what overlaps less only touches.")
    ] = "1mm",
    closer_than: Annotated[
        str | None, typer.Option(help="Length, such as 50mm: also pairs that are that near.")
    ] = None,
    method: Annotated[str, typer.Option(help="exact or pairmesh.")] = "exact",
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=".parquet, .csv or .json file.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Pairs to print at most.")] = 20,
    *,
    exclude_related: Annotated[
        bool, typer.Option("--exclude-related", help="Leave out what belongs together.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find what clashes in building models: common interiors, or distances below a limit."""
    from spatialq.data.units import metres
    from spatialq.database.table_files import require_table, write_table
    from spatialq.workflows.clash import counts, find_clashes

    if output is not None:
        require_table(output)
    con = find_clashes(
        models,
        a=a,
        b=b,
        tolerance=metres("clash", "tolerance", tolerance),
        closer_than=None if closer_than is None else metres("clash", "closer_than", closer_than),
        exclude_related=exclude_related,
        method=method,
        device=device,
    )
    if output is not None:
        rows = write_table(con, "FROM clashes", output)
        _show([{"output": str(output), "rows": rows}], as_json=as_json)
        return
    result = con.execute("FROM clashes")
    names = [column[0] for column in result.description or []]
    shown = [dict(zip(names, row, strict=True)) for row in result.fetchmany(limit)]
    more = result.fetchone() is not None
    summary = counts(con)
    if as_json:
        typer.echo(json.dumps(_for_json({"counts": summary, "clashes": shown}), allow_nan=False))
    else:
        _show(summary, as_json=False)
        if shown:
            brief = ("a_class", "a_name", "b_class", "b_name", "relation", "depth", "distance")
            _show([{name: _rounded(row[name]) for name in brief} for row in shown], as_json=False)
    if more:
        _note(f"only the first {limit} pairs are shown (--limit); -o writes all")


@app.command()
def features(
    grids: Annotated[
        list[str],
        typer.Argument(help="Files or patterns: GeoTIFF, ESRI ASCII, .hgt, .dem or .npy."),
    ],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="May be given several times: .parquet, .csv or .json for a table; of one file, "
            ".png for a picture, .tif for a raster of examples.",
        ),
    ] = None,
    scales: Annotated[
        str, typer.Option(help="Sides of the patches, in the unit of the file.")
    ] = "300,400,500",
    steps: Annotated[
        str | None, typer.Option(help="From a patch to the next, for each scale; half of it.")
    ] = None,
    example_scale: Annotated[float, typer.Option(help="Side of the examples.")] = 2000.0,
    example_step: Annotated[
        float | None, typer.Option(help="From an example to the next; as far as one reaches.")
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="pca: shares of the principal components; stat: mean, quartiles and so on of z; "
            "pca_ternary and stat_centred: both as the paper's published code has them; and those "
            "of --define."
        ),
    ] = "pca,stat",
    define: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Python file with methods of yours (pops_method)."
        ),
    ] = None,
    min_valid: Annotated[
        float, typer.Option(help="Share of the cells of a patch that must have a value.")
    ] = 0.5,
    min_points: Annotated[int, typer.Option(help="Cells of a patch that must have a value.")] = 3,
    min_patches: Annotated[
        int, typer.Option(help="Patches of an example that must have features.")
    ] = 1,
    quantiles: Annotated[
        str, typer.Option(help="median_unbiased, or linear as NumPy and DuckDB.")
    ] = "median_unbiased",
    show: Annotated[
        str | None,
        typer.Option(help="Features in picture and raster, such as pca1,stat.kurtosis."),
    ] = None,
    nodata: Annotated[float | None, typer.Option(help='A value that means "no value".')] = None,
    band: Annotated[int, typer.Option(help="Of a file with several.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    *,
    as_json: Json = False,
) -> None:
    """Take features of terrain grids at several scales (POPS): a table, a picture, a raster."""
    from spatialq.workflows.features import run_definitions, write_features

    if define is not None:
        run_definitions(define)
    with _progress() as update:
        row = write_features(
            grids,
            output or (),
            scales=_numbers("scales", scales),
            steps=None if steps is None else _numbers("steps", steps),
            example_scale=example_scale,
            example_step=example_step,
            methods=_names(methods),
            min_valid=min_valid,
            min_points=min_points,
            min_patches=min_patches,
            quantiles=quantiles,
            show=_names(show) if show else (),
            nodata=nodata,
            band=band,
            device=device,
            progress=update,
        )
    if as_json:
        _show([row], as_json=True)
    elif output:
        outputs = ", ".join(row["outputs"])
        brief = {**row, "features": len(row["features"]), "outputs": outputs}
        _show([brief], as_json=False, upright=True)
    else:
        _show(
            [{name: _rounded(v) for name, v in each.items()} for each in row["features"]],
            as_json=False,
        )


@app.command()
def lod(
    files: Annotated[
        list[str], typer.Argument(help="LAS, LAZ or COPC files or patterns: together one cloud.")
    ],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="May be given several times: .parquet for the nodes of the tree with their "
            "samples, .png for a picture of three levels.",
        ),
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="Colour of a voxel: weighted, average, random or first.")
    ] = "weighted",
    max_points: Annotated[int, typer.Option(help="Of a leaf.")] = 50_000,
    grid_size: Annotated[int, typer.Option(help="Voxels along each side of a node.")] = 128,
    seed: Annotated[int, typer.Option(help="Of the strategy random.")] = 0,
    crs: Annotated[
        str | None, typer.Option(help="CRS of files that do not say, such as EPSG:25832.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    memory: Annotated[
        float | None,
        typer.Option(
            help="GiB to use, half of the machine's by default; larger clouds are built tile by "
            "tile, through files beside the first output."
        ),
    ] = None,
    *,
    full_precision: Annotated[
        bool, typer.Option("--full-precision", help="Voxels lie where one of their points lies.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build levels of detail of a cloud, an octree of voxels and points: a table, a picture."""
    from spatialq.workflows.lod import write_lod

    with _progress() as update:
        row = write_lod(
            files,
            output or (),
            crs=crs,
            device=device,
            memory=memory,
            progress=update,
            strategy=strategy,
            max_points=max_points,
            grid_size=grid_size,
            full_precision=full_precision,
            seed=seed,
        )
    if as_json:
        _show([row], as_json=True)
    else:
        brief = {**row, "seconds": round(row["seconds"], 2), "outputs": ", ".join(row["outputs"])}
        _show([brief], as_json=False, upright=True)


@app.command()
def demo(
    las: Annotated[Path | None, typer.Argument(help="A point cloud of yours.")] = None,
    ifc: Annotated[Path | None, typer.Argument(help="A building model of yours.")] = None,
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("demo"),
) -> None:
    """Show what spatialq does, on a generated village or on two files of yours."""
    from spatialq.demo import write_world
    from spatialq.demo.run import run

    if (las is None) != (ifc is None):
        message = "demo: give a point cloud and a building model, or neither"
        raise ValueError(message)
    if las is None or ifc is None:
        _note(f"writing a small world to {folder}/ ...")
        las, ifc, *_ = write_world(folder)

    def show(title: str, query: str, rows: list[dict[str, Any]], seconds: float) -> None:
        typer.secho(f"\n{title}  ({seconds:.2f} s)", bold=True)
        typer.echo(query)
        _show(rows, as_json=False)

    with _progress() as update:
        pictures = run(las, ifc, folder, show, update)
    typer.echo("")
    for picture in pictures:
        typer.echo(f"picture: {picture}")
    typer.echo(f"database: {folder / 'demo.duckdb'}")


@app.command()
def devices(*, as_json: Json = False) -> None:
    """Say what there is to compute with."""
    from spatialq.database.connection import connect_quietly

    result = connect_quietly().sql("FROM spatialq_devices()")
    _show(
        [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()], as_json=as_json
    )


def main() -> None:
    """Run the command line; errors of the user's making are one line and exit status 1.

    SIGTERM ends it as Ctrl-C does: after what is under way, such as a part of a kernel's work. The
    second one does not wait for that.
    """
    import duckdb

    from spatialq.runtime.threads import STOPPED

    warnings.showwarning = _show_warning
    warnings.simplefilter("always", FileWarning)
    compiler = logging.getLogger("spatialq.runtime.compile_cache")
    compiler.setLevel(logging.INFO)
    compiler.addHandler(COMPILING)
    stopped_by = signal.SIGINT

    def end(number: int, _: Any) -> None:
        nonlocal stopped_by
        stopped_by = signal.Signals(number)
        STOPPED.set()
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    def interrupted() -> NoReturn:
        _note("interrupted: nothing was half written")
        sys.exit(128 + stopped_by)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        # typer gives the status of a Ctrl-C back instead of raising it
        if app(standalone_mode=False):
            interrupted()
    except typer.Abort:
        interrupted()
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except typer.TyperException as wrong:  # a wrong option or argument
        _note(f"error: {getattr(wrong, 'format_message', wrong.__str__)()}; see --help")
        sys.exit(2)
    except BaseException as error:
        if _is_interrupt(error):
            interrupted()
        if not isinstance(error, SpatialqError | ValueError | OSError | duckdb.Error):
            raise  # a mistake of ours
        _note(f"error: {plain(error)}")
        sys.exit(1)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    """Read numbers with commas between them."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        message = f"features: {name} must be numbers such as 300,400,500, got {text!r}"
        raise ValueError(message) from None


def _names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(name.strip() for name in text.split(","))


def _as_json(name: str, kind: Any) -> str:
    """Write a column in SQL as JSON has it: geometries, which come as WKB, as text."""
    column = identifier(name)
    return f"{column}::VARCHAR AS {column}" if kind.id == "geometry" else column


def _as_text(name: str, kind: Any) -> str:
    """Write a column in SQL as a table shows it: of nested values, which may be long, the start.

    Only elements that are shown are ever made into text, let alone into Python's objects.
    """
    if kind.id not in NESTED:
        return _as_json(name, kind)
    column = identifier(name)
    if kind.id not in ("list", "array"):
        return f"{_start(f'{column}::VARCHAR')} AS {column}"
    shown = _start(f"{column}[:{SHOWN_ELEMENTS}]::VARCHAR")
    all_shown = f"coalesce(len({column}), 0) <= {SHOWN_ELEMENTS}"
    more = f"""{shown} || ' (' || len({column}) || ' in all)'"""
    return f"CASE WHEN {all_shown} THEN {shown} ELSE {more} END AS {column}"


def _start(text: str) -> str:
    """Write the start of a text in SQL."""
    cut = f"left({text}, {SHOWN_CHARACTERS - 1}) || '…'"
    return f"CASE WHEN length({text}) > {SHOWN_CHARACTERS} THEN {cut} ELSE {text} END"


def _is_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C is behind an error: DuckDB has a form of its own for each place it hits."""
    import duckdb

    return (
        isinstance(error, KeyboardInterrupt | duckdb.InterruptException)
        or str(error) == "Query interrupted"
        or "KeyboardInterrupt" in str(error)
    )


def plain(error: BaseException) -> str:
    """Take our own sentence out of the words that DuckDB puts around an error of a function."""
    text = str(error).strip()
    ours = re.search(r"(?:\w+Error|Invalid): (\w+: .*)", text)
    return ours[1].split(". Detail: Python exception")[0] if ours else text


def _show(rows: list[dict[str, Any]], *, as_json: bool, upright: bool = False) -> None:
    if as_json:
        typer.echo(json.dumps(_for_json(rows), default=str, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table

    if not rows:
        typer.echo("(no rows)")
        return
    table = Table(show_header=not upright)
    if upright:
        for name, value in rows[0].items():
            table.add_row(name, _text(value))
    else:
        for name, value in rows[0].items():
            right = isinstance(value, int | float) and not isinstance(value, bool)
            table.add_column(name, justify="right" if right else "left")
        for row in rows:
            table.add_row(*map(_text, row.values()))
    console = Console()
    if not console.is_terminal:  # it has no width: nothing is cut off
        console.width = NO_WIDTH
    console.print(table)


def _for_json(value: Any) -> Any:
    """Make null of what JSON has no number for, and text of keys: MAPs may have any."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _for_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(each) for each in value]
    return value


def _rounded(value: Any) -> Any:
    """Cut lengths in metres off at a tenth of a millimetre, to be read."""
    return round(value, 4) if isinstance(value, float) else value


def _text(value: Any) -> str:
    from rich.markup import escape

    return "" if value is None else escape(str(value))


def _note(text: str) -> None:
    typer.echo(text, err=True)


class _CompilingNote(logging.Handler):
    """Say once why nothing happens for a while."""

    told = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.told:
            self.told = True
            _note("compiling functions, which takes a while (first use; kept for later) ...")


COMPILING = _CompilingNote()


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _note(f"warning: {message}")


@contextmanager
def _progress() -> Iterator[Any]:
    """Rows, rate and time left, on standard error; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        tasks: dict[Path, Any] = {}

        def update(file: Path, done: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file.name, total=total or None, rate="")
            speed = bar.tasks[tasks[file]].speed
            rate = f"{speed / 1e6:.1f} M rows/s" if speed else ""
            bar.update(tasks[file], completed=done, rate=rate)

        yield update
