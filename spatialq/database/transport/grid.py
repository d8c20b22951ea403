"""From a table of cells, or from files of grids, to a kernel and back.

The query is written while it is bound, as for `read_grid`. A file is read band by band, without
one row per cell.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from spatialq.data.frame import Frame
from spatialq.data.grid import count_values
from spatialq.database.transport.arrow import (
    Columns,
    each_list,
    list_of_structs,
    structs,
)
from spatialq.database.transport.queries import call_of, lookups_of, names_of, request_of, table_of
from spatialq.database.transport.request import Request, Transport
from spatialq.execution.call import call
from spatialq.execution.units import announce
from spatialq.functions.catalogue import Function
from spatialq.functions.declaration import CoordinateParameters, Parameters
from spatialq.functions.sql_text import literal
from spatialq.io.files import find_files, is_pattern, warn_about
from spatialq.io.formats import means_file, reader_of
from spatialq.io.grid.grids import find_grids, plan_of, planned
from spatialq.io.grid.source import GridSource
from spatialq.io.reproject import utm_zone
from spatialq.io.storage import as_path


def of_lists(function: Function, *columns: pa.ChunkedArray) -> pa.ListArray:
    """Run the kernel once a row, on lists of x, y and z of cells in any order."""
    *cells_of_rows, requests = columns
    calls = zip(*map(each_list, cells_of_rows), requests.to_pylist(), strict=True)
    return list_of_structs([
        rows
        for *cells, text in calls
        for rows in answers(function, Request.of(text), [dict(zip("xyz", cells, strict=True))],
                            transport="lists")
    ])  # fmt: skip


def of_band(function: Function, *columns: pa.ChunkedArray) -> pa.StructArray:
    """Run the kernel on a band of rows of a file.

    The columns are the requests, the number of the band, and the valued cells before it.
    """
    calls = zip(*(column.to_pylist() for column in columns), strict=True)
    found = []
    for text, *at in calls:
        request = Request.of(text)
        found.append(_of_band(function, request, _open(request), *at, transport="lists"))
    rows, counts = zip(*found, strict=True)
    return pa.StructArray.from_arrays(
        [list_of_structs(list(rows)), pa.array(counts)], ["rows", "valued"]
    )


def answers(
    function: Function,
    request: Request,
    parts: Sequence[Columns],
    *,
    transport: Transport,
) -> Iterator[pa.StructArray]:
    """Run the kernel and give its result as Arrow arrays of structs: of a file one for each band.

    Parameters
    ----------
    function : Function
    request : Request
        Whose `source` may name a file to read instead.
    parts : sequence of mapping of str to Arrow array
        The cells of the one table.
    transport : 'native' or 'lists'
    """
    if "grid" not in request.source:
        yield _of_cells(function, request, parts[0], transport=transport)
        return
    source, valued = _open(request), 0
    for index in range(len(_bands(function, source, request.choose(function)[0]))):
        rows, valued = _of_band(function, request, source, index, valued, transport=transport)
        yield rows


def query(
    function: Function,
    transport: Transport,
    grid: str | None,
    nodata: float | None,
    band: int | None,
    to_crs: str | None,
    resolution: float | None,
    options: str,
) -> str:
    """Write the query that calls a function of grids; parameters travel as JSON."""
    if grid is None or band is None:
        message = f"{function.name}: {'grid' if grid is None else 'band'} must not be NULL"
        raise ValueError(message)
    chosen, _ = Request.of(options).choose(function)
    assert isinstance(chosen, CoordinateParameters)
    if not means_file(grid):
        if nodata is not None or band != 1 or to_crs is not None or resolution is not None:
            message = (
                f"{function.name}: nodata, band, to_crs and resolution are for files, got the "
                f"table {grid!r}"
            )
            raise ValueError(message)
        request = Request.new(options)
        table = table_of(function, grid, function.inputs.columns, request, argument="grid")
        columns = ", ".join(f"list({value}) AS {name}" for name, value in table.columns.items())
        given = f"(SELECT {columns} FROM {table.checked}) AS given"
        lists = (
            f"{lookups_of([table])}SELECT unnest(spatialq_{function.name}_udf("
            f"given.x, given.y, given.z, {request_of(request, [table])}), recursive := true) "
            f"FROM {', '.join([given, *names_of([table])])}"
        )
        return call_of(function, transport, request, [table], lists)
    if not is_pattern(grid):
        reader_of(function.name, as_path(grid), ["grid"])
    reader: dict[str, Any] = {
        "nodata": nodata,
        "band": band,
        "crs": chosen.crs,
        "to_crs": to_crs,
        "resolution": resolution,
    }
    files = find_files(function.name, grid)
    sources = [each for file in files for each in find_grids(function.name, [file], **reader)]
    in_file = replace(chosen, crs=None)  # the CRS is that of the sources now
    options = json.dumps({**json.loads(options), "crs": None})
    announce(function, in_file, map(frame_of, sources))
    queries = []
    for source in sources:
        warn_about(function.name, source)
        frame = asdict(frame_of(source, is_announced=True))
        request = Request.new(options, grid=plan_of(source), frame=frame)
        plan, count = literal(request.text), len(_bands(function, source, chosen))
        lists = (
            "(WITH RECURSIVE band(i, p) AS ("
            f"SELECT 0::BIGINT, spatialq_{function.name}_band({plan}, 0, 0) "
            f"UNION ALL SELECT i + 1, spatialq_{function.name}_band({plan}, i + 1, p.valued) "
            f"FROM band WHERE i + 1 < {count}) "
            "SELECT unnest(p.rows, recursive := true) FROM band)"
        )
        name = f", {literal(str(source.path))} AS file_name" if is_pattern(grid) else ""
        queries.append(f"SELECT *{name} FROM ({call_of(function, transport, request, [], lists)})")
    return " UNION ALL ".join(queries)


def _open(request: Request) -> GridSource:
    return planned(request.source["grid"])


def frame_of(source: GridSource, *, is_announced: bool = False) -> Frame:
    """Say what is known of the coordinates of a file."""
    subject, remedy = f"'{source.path}'", ""
    if source.crs is not None and (code := utm_zone(source.crs, source.box)):
        remedy = f"to_crs := '{code}' reprojects {subject} to its UTM zone"
    return Frame(subject, source.crs, remedy=remedy, is_announced=is_announced)


def _bands(function: Function, source: GridSource, options: Parameters) -> list[tuple[int, int]]:
    """Divide a file into bands of rows, each of which holds whole windows."""
    frame = source.frame
    found: list[tuple[int, int]] = function.output.windows(frame, options).bands(frame.columns)
    return found


def _of_band(
    function: Function,
    request: Request,
    source: GridSource,
    index: int,
    valued: int,
    *,
    transport: Transport,
) -> tuple[pa.StructArray, int]:
    """Run the kernel on a band; give its rows, and how many cells have a value up to here."""
    options, device = request.choose(function)
    bands = _bands(function, source, options)
    with request.within_memory(function.name):
        grid = source.grid(*bands[index])
        whose = f"{function.name}: '{source.path}'"
        valued += count_values(whose, grid)
        if not valued and index + 1 == len(bands):
            message = f"{whose}: the grid has no value: all cells of its examples are missing"
            raise ValueError(message)
        given = {"grid": grid}
        result, _ = call(function, given, options, device, transport="files", frame=request.frame)
    return structs(function, result, as_it_is=transport == "native"), valued


def _of_cells(
    function: Function, request: Request, cells: Columns, *, transport: Transport
) -> pa.StructArray:
    options, device = request.choose(function)
    if not len(cells["x"]):
        return structs(function, function.no_rows())
    for name in ("x", "y"):
        if nulls := cells[name].null_count:
            message = f"{function.name}: {name} must not be NULL, got {nulls} of them"
            raise ValueError(message)
    from spatialq.data.grid_cells import grid_of

    # NaN for NULL
    columns = [cells[name].to_numpy(zero_copy_only=False) for name in "xyz"]
    with request.within_memory(function.name):
        given = {"grid": grid_of(function.name, *columns)}
        result, _ = call(function, given, options, device, transport=transport, frame=request.frame)
    return structs(function, result, as_it_is=transport == "native")
