"""One call of a kernel: plan it, run it, write the log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from spatialq.data.grid import Grid, heights, require_values
from spatialq.functions.declaration import NUMPY_TYPES, Device, Text, Udf, find, whole_numbers
from spatialq.planner import log
from spatialq.planner import plan as route
from spatialq.runtime import cuda
from spatialq.runtime.cuda import on_gpu


def run(
    function: str,
    x: Any,
    y: Any,
    z: Any,
    point_id: Any = None,
    *,
    elements: Any = None,
    device: str = "auto",
    **options: Any,
) -> dict[str, Any]:
    """Run a spatial function on arrays, without a database.

    Parameters
    ----------
    function : str
        Such as 'owm_ground', 'classify_ground' or 'detect_planes'; or one of grids, such as
        'pops_features', for cells in any order (`run_grid` takes heights as they lie).
    x, y, z : float64[n]
        NumPy arrays; or arrays of the GPU, of any library that has `__cuda_array_interface__` or
        DLPack, which stay there; not so cells. z of cells may be NaN or masked; without any cell
        the result has no rows.
    point_id : int64[n], optional
        Where the coordinates are; by default 0, 1, 2 ...
    elements : Meshes, or sequence of (vertices, faces), optional
        Of a function of points and elements, as for `run_elements`, in the memory of the host;
        `element` in the result is a position, -1 for none.
    device : 'auto', 'cpu' or 'gpu'
        Arrays of the GPU are worked on there.
    **options
        The function's named arguments; and what it carries, such as `red` (uint16[n]) of
        'build_lod', in the memory where the coordinates are, masked where there is no value.

    Returns
    -------
    dict of arrays
        The columns of the result, in the memory where the coordinates are; geometries are WKB
        in a NumPy array of bytes objects, texts an array of str ('' where SQL has NULL), wherever
        the coordinates are. Lists of structs are `Lists` of `spatialq.functions.declaration`; a
        table with some, as of 'build_lod', is in the memory of the host.

    Raises
    ------
    ValueError
        If there is no such function, an option is wrong, or a value is masked that must be there.

    Examples
    --------
    >>> seeds = spatialq.run("owm_ground", x, y, z, window_size=5.0)  # doctest: +SKIP
    """
    udf = find("run", function)
    if not udf.columns:
        message = f"run: {function} is a function of elements: use spatialq.run_elements"
        raise ValueError(message)
    if udf.takes_grid:
        if point_id is not None or elements is not None:
            message = f"run: {function} is a function of grids, it takes x, y and z alone"
            raise ValueError(message)
        return _run_cells(udf, {"x": x, "y": y, "z": z}, device, options)
    given = {}
    if udf.takes_elements:
        from spatialq.database.transport.elements import as_meshes

        if elements is None:
            message = f"run: {function} is a function of points and elements: give elements="
            raise ValueError(message)
        given["elements"] = as_meshes(f"{function}: elements", elements)
        if on_gpu(given["elements"].faces):
            message = f"{function}: elements must be in the memory of the host"
            raise ValueError(message)
    elif elements is not None:
        message = f"run: {function} is a function of points, it takes no elements"
        raise ValueError(message)
    columns = {"x": x, "y": y, "z": z, "point_id": point_id}
    columns |= {name: options.pop(name, None) for name in udf.carries}
    if not any(on_gpu(values) for values in columns.values()):
        return _run_points(udf, columns, given, device, np, options)
    gpu = cuda.device()
    with gpu.use():
        return _run_points(udf, columns, given, "gpu", gpu.xp, options)


def _run_points(
    udf: Udf,
    columns: dict[str, Any],
    elements: dict[str, Any],
    device: str,
    xp: Any,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Run a function of points on columns of any types; ids that are not given are xp's."""
    columns = dict(columns)
    for name in "xyz":
        _refuse_masked(udf, name, columns[name])
        columns[name] = _floats(udf, name, columns[name])
    n = columns["x"].size
    _refuse_masked(udf, "point_id", columns["point_id"])
    ids = _whole(udf, "point_id", columns["point_id"], "BIGINT")
    columns["point_id"] = xp.arange(n) if ids is None else _contiguous(ids)
    columns |= {name: _whole(udf, name, columns[name], kind) for name, kind in udf.carries.items()}
    shapes = {name: values.shape for name, values in columns.items() if values is not None}
    if set(shapes.values()) != {(n,)}:
        message = f"{udf.name}: the columns must be one-dimensional, of one length, got {shapes}"
        raise ValueError(message)
    return _with_texts(call(udf, {**columns, **elements}, udf.choose(options), device)[0])


def _run_cells(
    udf: Udf, cells: dict[str, Any], device: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Run a function of grids on cells in any order."""
    if any(map(on_gpu, cells.values())):
        message = (
            f"{udf.name}: cells must be in the memory of the host; spatialq.run_grid takes grids"
        )
        raise ValueError(message)
    from spatialq.data.grid_cells import grid_of

    for name in "xy":
        _refuse_masked(udf, name, cells[name])
    columns = {name: _floats(udf, name, values) for name, values in cells.items()}
    shapes = {name: values.shape for name, values in columns.items()}
    if set(shapes.values()) != {(columns["x"].size,)}:
        message = f"{udf.name}: the columns must be one-dimensional, of one length, got {shapes}"
        raise ValueError(message)
    chosen = udf.choose(options)
    if not columns["x"].size:
        return udf.no_rows()
    result, _ = call(udf, {"grid": grid_of(udf.name, **columns)}, chosen, device)
    return _with_texts(result)


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and isfinite(value)


def _contiguous(values: Any) -> Any:
    """Make values lie one after the other, where they are."""
    if on_gpu(values):
        return cuda.device().xp.ascontiguousarray(cuda.device().view(values))
    return np.ascontiguousarray(values)


def _floats(udf: Udf, name: str, values: Any) -> Any:
    """Make contiguous float64 of numbers, where they are; NaN where they are masked."""
    got: Any
    try:
        if on_gpu(values):
            array = cuda.device().view(values)
            if array.dtype.kind in "fiub":
                return cuda.device().xp.ascontiguousarray(array, np.float64)
        else:
            array = np.ma.asarray(values) if np.ma.isMaskedArray(values) else np.asarray(values)
            if array.dtype.kind in "fiubO":
                return np.ascontiguousarray(np.ma.filled(array.astype(np.float64), np.nan))
        got = array.dtype
    except (TypeError, ValueError) as error:
        got = error
    message = f"{udf.name}: {name} must be numbers, got {got}"
    raise ValueError(message)


def _whole(udf: Udf, name: str, values: Any, kind: str) -> Any:
    """Make whole numbers of a SQL type of what is given, if anything is; masked where that is."""
    if values is None:
        return None
    wanted, limits = np.dtype(NUMPY_TYPES[kind]), np.iinfo(NUMPY_TYPES[kind])
    array = cuda.device().view(values) if on_gpu(values) else np.asanyarray(values)
    got = array.dtype
    if got == wanted:
        return values if on_gpu(values) else array
    if got.kind in "iu":
        wrong = (array < limits.min) | (array > limits.max)
        if not wrong.any():
            return array.astype(wanted)
        got = array[wrong.argmax()]
    elif not array.size:  # NumPy takes [] for numbers with fractions
        return array.astype(wanted)
    message = f"{udf.name}: {name} must be {whole_numbers(kind)}, got {got}"
    raise ValueError(message)


def _refuse_masked(udf: Udf, name: str, values: Any) -> None:
    """Refuse masked values, which NumPy would give as what is under the mask."""
    if n := np.count_nonzero(np.ma.getmask(values)):
        message = f"{udf.name}: {name} must have all its values, got {n} masked"
        raise ValueError(message)


def run_grid(
    function: str,
    z: Any,
    *,
    dx: float,
    dy: float | None = None,
    x0: float = 0.0,
    y0: float = 0.0,
    device: str = "auto",
    **options: Any,
) -> dict[str, Any]:
    """Run a spatial function of grids on an array of heights, without a database.

    Parameters
    ----------
    function : str
        Such as 'pops_features' or 'pops_patches'.
    z : numbers [rows, columns]
        Heights; row 0 is the southernmost, column 0 the westernmost, so that an array whose first
        row is the northern one is given as ``z[::-1]``. NaN, or masked, where there is no value.
        A NumPy array; or one of the GPU, of any library that has `__cuda_array_interface__` or
        DLPack, which stays there.
    dx, dy : float, > 0
        Width and height of a cell, in the unit of all lengths; by default cells are squares.
    x0, y0 : float
        Centre of the south-western cell.
    device : 'auto', 'cpu' or 'gpu'
        Arrays of the GPU are worked on there.
    **options
        The function's named arguments, lists as sequences or NumPy arrays.

    Returns
    -------
    dict of arrays
        The columns of the result, in the memory where the heights are; texts always as NumPy
        arrays of str.

    Raises
    ------
    ValueError
        If there is no such function, an option or a size is wrong, a height is infinite or all
        are missing.

    Examples
    --------
    >>> features = spatialq.run_grid(
    ...     "pops_features", z, dx=60.0, scales=[300, 400]
    ... )  # doctest: +SKIP
    """
    udf = find("run_grid", function)
    if not udf.takes_grid:
        message = f"run_grid: {function} is no function of grids: use spatialq.run or run_elements"
        raise ValueError(message)
    dy = dx if dy is None else dy
    for name, value in {"x0": x0, "y0": y0, "dx": dx, "dy": dy}.items():
        must = "> 0" if name.startswith("d") else "finite"
        if not (_is_finite(value) and (value > 0 or must == "finite")):
            message = f"{function}: {name} must be {must}, got {value!r}"
            raise ValueError(message)
    if on_gpu(z):
        gpu = cuda.device()
        with gpu.use():
            return _run_heights(udf, gpu.view(z), (x0, y0, dx, dy), "gpu", options)
    return _run_heights(udf, np.asanyarray(z), (x0, y0, dx, dy), device, options)


def _run_heights(
    udf: Udf,
    z: Any,
    places: tuple[float, float, float, float],
    device: str,
    options: dict[str, Any],
) -> dict[str, Any]:
    if z.ndim != 2 or z.dtype.kind not in "fiu":
        message = f"{udf.name}: z must be numbers [rows, columns], got {z.dtype} of shape {z.shape}"
        raise ValueError(message)
    missing = np.ma.getmaskarray(z) if np.ma.isMaskedArray(z) else None
    grid = Grid(heights(z, missing), *places)
    require_values(udf.name, grid)
    return _with_texts(call(udf, {"grid": grid}, udf.choose(options), device)[0])


def _with_texts(result: dict[str, Any]) -> dict[str, Any]:
    """Write out the columns of text that a kernel gives as codes."""
    return {
        name: np.array([*values.names, ""])[values.codes] if isinstance(values, Text) else values
        for name, values in result.items()
    }


def run_elements(
    function: str, a: Any, b: Any = None, *, device: str = "auto", **options: Any
) -> dict[str, Any]:
    """Run a spatial function of elements on meshes, without a database.

    Parameters
    ----------
    function : str
        Such as 'intersects_with', 'distance' or 'direction'.
    a, b : Meshes, or sequence of (vertices, faces)
        Vertices float64[n, 3] in metres, faces int[m, 3], counter-clockwise seen from outside.
        Without `b` all pairs within `a`. A `spatialq.Meshes` may hold arrays of the GPU, of any
        library that has `__cuda_array_interface__` or DLPack, which stay there.
    device : 'auto', 'cpu' or 'gpu'
        Arrays of the GPU are worked on there.
    **options
        The function's named arguments.

    Returns
    -------
    dict of arrays
        The columns of the result, in the memory where the meshes are; `a` and `b` are positions,
        `relation` is a code: 0 disjoint, 1 touch, 2 overlap, 3 contains, 4 inside, 5 covers,
        6 covered_by, 7 equals.

    Raises
    ------
    ValueError
        If there is no such function, or an option or a mesh is wrong.

    Examples
    --------
    >>> pairs = spatialq.run_elements("intersects_with", ducts, beams)  # doctest: +SKIP
    """
    from spatialq.database.transport.elements import as_meshes

    udf = find("run_elements", function)
    if udf.columns:
        message = f"run_elements: {function} is a function of points: use spatialq.run"
        raise ValueError(message)
    sets = {
        "a": as_meshes(f"{function}: a", a),
        "b": None if b is None else as_meshes(f"{function}: b", b),
    }
    chosen = udf.choose(options)
    there = [on_gpu(meshes.faces) for meshes in sets.values() if meshes is not None]
    if any(there):
        if not all(there):
            message = f"{function}: a and b must be in one memory"
            raise ValueError(message)
        with cuda.device().use():
            return call(udf, sets, chosen, "gpu")[0]
    return call(udf, sets, chosen, device)[0]


def call(
    udf: Udf, arguments: dict[str, Any], options: Any, wish: str
) -> tuple[dict[str, Any], Device]:
    """Plan and run a kernel, and write the log.

    Parameters
    ----------
    udf : Udf
    arguments : dict
        What the kernel gets, by name: `point_id` and the columns of the function, the `grid`, or
        the meshes `a` and `b`.
    options : object
        Its options, as `Udf.choose` makes them.
    wish : 'auto', 'cpu' or 'gpu'

    Returns
    -------
    columns : dict of arrays
    device : 'cpu' or 'gpu'
        Where it ran. With 'auto', what does not fit into the GPU's memory after all runs on the
        CPU.
    """
    rows = _rows(udf, arguments)
    with planned(udf, rows, options, wish, lambda: _for_rows(udf, arguments, options)) as course:
        try:
            return udf.kernel(course.device)(**arguments, options=options), course.device
        except MemoryError as full:
            course.fall_back(full)
            return udf.kernel(course.device)(**arguments, options=options), course.device


@dataclass
class Course:
    """Where a call runs, and why."""

    device: Device
    reason: str
    is_open: bool
    """Whether it may go to the other device."""

    def fall_back(self, full: MemoryError) -> None:
        """Go on on the CPU, after an error of the GPU; raise it if that may not be."""
        if self.device == "cpu" or not self.is_open:
            raise full
        self.device, self.reason = "cpu", f"the GPU ran out of memory: {full}"


@contextmanager
def planned(
    udf: Udf, rows: int, options: Any, wish: str, purpose: Callable[[], str] = str
) -> Iterator[Course]:
    """Plan a call that is made in the block, and write the log when it ends.

    Parameters
    ----------
    udf, options, wish
        As for `call`.
    rows : int
        How much it gets.
    purpose : callable
        Says what memory was not enough for.

    Raises
    ------
    MemoryError
        If memory was not enough, in a sentence.
    """
    started, clock, error = datetime.now(UTC), time.perf_counter(), None
    plan = route.plan(udf, rows, options, wish)
    course = Course(plan.device, plan.reason, wish == "auto")
    try:
        yield course
    except MemoryError as full:
        error = f"{udf.name}: not enough memory{purpose()}: {full}"
        raise MemoryError(error) from full
    except KeyboardInterrupt as stop:  # DuckDB says no more of it than its text
        error = f"{udf.name}: interrupted"
        raise KeyboardInterrupt(error) from stop
    except BaseException as failure:
        error = str(failure) or type(failure).__name__
        raise
    finally:
        log.add(
            log.Entry(
                at=started,
                function=udf.name,
                rows=rows,
                device=course.device,
                reason=course.reason,
                estimated_seconds=plan.seconds,
                seconds=time.perf_counter() - clock,
                error=error,
            )
        )


def _for_rows(udf: Udf, arguments: dict[str, Any], options: Any) -> str:
    """Say how much the result of a function of grids is."""
    if not udf.takes_grid:
        return ""
    windows = udf.windows(arguments["grid"], options)
    return f" for a result of {windows.count * windows.results} rows"


def _rows(udf: Udf, arguments: dict[str, Any]) -> int:
    """How much a call gets: points, cells of a grid, or triangles of all elements."""
    if udf.takes_grid:
        return int(arguments["grid"].z.size)
    if udf.columns:
        return len(arguments["point_id"])
    return sum(len(meshes.faces) for meshes in arguments.values() if meshes is not None)
