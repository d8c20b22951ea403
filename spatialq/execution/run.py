"""Functions on arrays, without a database: `run`, `run_grid` and `run_elements`."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from spatialq.data.columns import Text
from spatialq.data.grid import Grid, heights, require_values
from spatialq.execution.call import call_outputs
from spatialq.execution.validation import (
    as_attribute,
    as_cloud,
    as_floats,
    as_ids,
    as_meshes,
    as_numbers,
    as_polygons,
    is_finite,
    require_one_length,
    require_unmasked,
)
from spatialq.functions.catalogue import Function, find
from spatialq.functions.declaration import (
    ElementsInput,
    GridInput,
    PointsAndElementsInput,
    PointsAndOtherInput,
    PointsAndTableInput,
    PointsInput,
)
from spatialq.runtime import budget, cuda
from spatialq.runtime.cuda import on_gpu
from spatialq.runtime.progress import Listener


def run(
    function: str | Sequence[str],
    x: Any,
    y: Any,
    z: Any,
    point_id: Any = None,
    *,
    elements: Any = None,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Listener | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a spatial function on arrays, without a database.

    Parameters
    ----------
    function : str, or sequence of str
        Such as 'owm_ground', 'classify_ground' or 'detect_planes'; or one of grids, such as
        'pops_features', for cells in any order (`run_grid` takes heights as they lie). Several
        outputs of one function, such as ['detect_planes', 'plane_points'], come from one search.
    x, y, z : float64[n]
        NumPy arrays, which are copied only if they are not contiguous or of another type; or arrays
        of the GPU, of any library that has `__cuda_array_interface__` or DLPack, which stay there;
        not so cells. z of cells may be NaN or masked; without any cell the result has no rows.
    point_id : int64[n], optional
        Where the coordinates are; by default 0, 1, 2 ...
    elements : Meshes, or sequence of (vertices, faces), optional
        Of a function of points and elements, as for `run_elements`, in the memory of the host;
        `element` in the result is a position, -1 for none. Of points and polygons these are given
        as `polygons`, WKB (ISO, little-endian) in bytes or None each; `polygon_id` is a position.
        Of points and another cloud, x, y and z of that one are given as `reference`;
        `reference_id` is a position.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
        Arrays of the GPU are worked on there.
    memory : str or number, optional
        Main memory that the call may take, such as '2GB', or in GiB; by default `SPATIALQ_MEMORY`,
        or half of what is free.
    progress : callable, optional
        Called with the fraction of the kernel's work that is done, from 0 to 1 and never less than
        before, and with what it does now, such as ``progress(0.25, "seeds")``: in this thread, ten
        times a second at most, and at the end with 1. What it raises stops the call.
    **options
        The function's parameters, which `spatialq.describe(function)` lists; and its attributes,
        such as `red` (uint16[n]) of 'build_lod', in the memory where the coordinates are, masked
        where there is no value. So are the columns that 'build_lod' is told to keep:
        ``attributes=["gps_time"], gps_time=times``.

    Returns
    -------
    dict of arrays
        The columns of the result, in the memory where the coordinates are; geometries are WKB
        in a NumPy array of bytes objects, texts an array of str ('' where SQL has NULL), wherever
        the coordinates are. Lists of structs are `spatialq.data.columns.Lists`; a table with some,
        as of 'build_lod', is in the memory of the host. For a sequence of functions, a dict of
        these by name.

    Raises
    ------
    ValueError
        If there is no such function, an option is wrong, or a value is masked that must be there.

    Warns
    -----
    StrayPointsWarning
        If a few points are far from all others and are left out: `spatialq.data.strays`.
    PlacementWarning
        If the points lie beside the elements that they are compared with.

    Examples
    --------
    >>> seeds = spatialq.run("owm_ground", x, y, z, window_size=5.0)  # doctest: +SKIP
    """
    functions = _functions("run", function)
    first, inputs = functions[0], functions[0].inputs
    with budget.within(first.name, memory):
        if isinstance(inputs, ElementsInput):
            message = f"run: {first.name} is a function of elements: use spatialq.run_elements"
            raise ValueError(message)
        if isinstance(inputs, GridInput):
            if point_id is not None or elements is not None:
                message = f"run: {first.name} is a function of grids, it takes x, y and z alone"
                raise ValueError(message)
            found = _run_cells(functions, {"x": x, "y": y, "z": z}, device, progress, options)
        else:
            given, options = _other(first, elements, options)
            columns = {"x": x, "y": y, "z": z, "point_id": point_id}
            chosen, arrays = _divided(first, options)
            columns |= arrays
            there = any(on_gpu(values) for values in columns.values())
            with cuda.beside(first.name, *columns.values()) if there else nullcontext():
                found = _run_points(functions, columns, given, device, progress, chosen)
    return found[first.name] if isinstance(function, str) else found


def run_grid(
    function: str | Sequence[str],
    z: Any,
    *,
    dx: float,
    dy: float | None = None,
    x0: float = 0.0,
    y0: float = 0.0,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Listener | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a spatial function of grids on an array of heights, without a database.

    Parameters
    ----------
    function : str, or sequence of str
        Such as 'pops_features' or 'pops_patches'; both come from one pass.
    z : numbers [rows, columns]
        Heights; row 0 is the southernmost, column 0 the westernmost, so that an array whose first
        row is the northern one is given as ``z[::-1]``. NaN, or masked, where there is no value.
        A NumPy array; or one of the GPU, of any library that has `__cuda_array_interface__` or
        DLPack, which stays there.
    dx, dy : float, > 0
        Width and height of a cell, in the unit of all lengths; by default cells are squares.
    x0, y0 : float
        Centre of the south-western cell.
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
        Arrays of the GPU are worked on there.
    memory : str or number, optional
        Main memory that the call may take, such as '2GB', or in GiB; by default `SPATIALQ_MEMORY`,
        or half of what is free.
    progress : callable, optional
        Called with the fraction of the kernel's work that is done, from 0 to 1 and never less than
        before, and with what it does now, such as ``progress(0.25, "seeds")``: in this thread, ten
        times a second at most, and at the end with 1. What it raises stops the call.
    **options
        The function's parameters, lists as sequences or NumPy arrays.

    Returns
    -------
    dict of arrays
        The columns of the result, in the memory where the heights are; texts always as NumPy
        arrays of str. For a sequence of functions, a dict of these by name.

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
    functions = _functions("run_grid", function)
    name = functions[0].name
    if not isinstance(functions[0].inputs, GridInput):
        message = f"run_grid: {name} is no function of grids: use spatialq.run or run_elements"
        raise ValueError(message)
    limited = budget.within(name, memory)
    dy = dx if dy is None else dy
    for argument, value in {"x0": x0, "y0": y0, "dx": dx, "dy": dy}.items():
        must = "> 0" if argument.startswith("d") else "finite"
        if not (is_finite(value) and (value > 0 or must == "finite")):
            message = f"{name}: {argument} must be {must}, got {value!r}"
            raise ValueError(message)
    frame = x0, y0, dx, dy
    with cuda.beside(name, z) if on_gpu(z) else nullcontext(), limited:
        heights = cuda.device().view(z) if on_gpu(z) else np.asanyarray(z)
        found = _run_heights(functions, heights, frame, device, progress, options)
    return found[name] if isinstance(function, str) else found


def run_elements(
    function: str | Sequence[str],
    a: Any,
    b: Any = None,
    *,
    device: str = "auto",
    memory: str | float | None = None,
    progress: Listener | None = None,
    **options: Any,
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
    device : 'auto', 'cpu', 'gpu' or one GPU such as 'gpu:1'
        Arrays of the GPU are worked on there.
    memory : str or number, optional
        Main memory that the call may take, such as '2GB', or in GiB; by default `SPATIALQ_MEMORY`,
        or half of what is free.
    progress : callable, optional
        Called with the fraction of the kernel's work that is done, from 0 to 1 and never less than
        before, and with what it does now, such as ``progress(0.25, "seeds")``: in this thread, ten
        times a second at most, and at the end with 1. What it raises stops the call.
    **options
        The function's parameters.

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
    functions = _functions("run_elements", function)
    name = functions[0].name
    if not isinstance(functions[0].inputs, ElementsInput):
        message = f"run_elements: {name} is a function of points: use spatialq.run"
        raise ValueError(message)
    sets = {
        "a": as_meshes(f"{name}: a", a),
        "b": None if b is None else as_meshes(f"{name}: b", b),
    }
    chosen = functions[0].choose(options)
    there = [on_gpu(meshes.faces) for meshes in sets.values() if meshes is not None]
    if any(there) and not all(there):
        message = f"{name}: a and b must be in one memory"
        raise ValueError(message)
    limited = budget.within(name, memory)
    faces = [meshes.faces for meshes in sets.values() if meshes is not None]
    with cuda.beside(name, *faces) if any(there) else nullcontext(), limited:
        found, _ = call_outputs(functions, sets, chosen, device, progress)
    return found[name] if isinstance(function, str) else found


def _functions(caller: str, names: str | Sequence[str]) -> list[Function]:
    """Look up functions, which must be outputs of one."""
    several = isinstance(names, list | tuple) and all(isinstance(each, str) for each in names)
    if not (several or isinstance(names, str)):
        message = f"{caller}: function must be a name or a list of names, got {names!r}"
        raise ValueError(message)
    functions = [find(caller, name) for name in ([names] if isinstance(names, str) else names)]
    folders = {each.folder for each in functions}
    if len(folders) != 1 or len({each.name for each in functions}) < len(functions):
        given = ", ".join(map(repr, names)) or "none"
        message = f"{caller}: functions must be different outputs of one search, got {given}"
        raise ValueError(message)
    return functions


def _attributes(function: Function) -> Mapping[str, str]:
    inputs = function.inputs
    return inputs.attributes if isinstance(inputs, PointsInput | PointsAndOtherInput) else {}


def _divided(function: Function, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Divide what is given by name into parameters, made and checked, and columns of the points."""
    known = {each.name for each in function.parameters}
    chosen = function.choose({name: each for name, each in options.items() if name in known})
    more = getattr(chosen, "more_columns", ())
    columns = {name: options.get(name) for name in (*_attributes(function), *more)}
    for name in more:
        if columns[name] is None:
            message = (
                f"{function.name}: attributes must be columns that are given, such as "
                f"{name}=values, got none for {name!r}"
            )
            raise ValueError(message)
    if unknown := options.keys() - known - columns.keys():
        function.choose(dict.fromkeys(unknown))  # which says what there is
    return chosen, columns


def _other(
    function: Function, elements: Any, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make the other table that a function of two gets, and give the options that are left."""
    inputs, left = function.inputs, dict(options)
    if elements is not None and not isinstance(inputs, PointsAndElementsInput):
        message = f"run: {function.name} is a function of points, it takes no elements"
        raise ValueError(message)
    if not isinstance(inputs, PointsAndOtherInput):
        return {}, left
    other = inputs.other
    given = left.pop(other, None) if isinstance(inputs, PointsAndTableInput) else elements
    if given is None:
        message = f"run: {function.name} is a function of points and {other}: give {other}="
        raise ValueError(message)
    if isinstance(inputs, PointsAndTableInput):
        read = as_cloud if inputs.kind == "cloud" else as_polygons
        return {other: read(f"{function.name}: {other}", given)}, left
    meshes = as_meshes(f"{function.name}: {other}", given)
    if on_gpu(meshes.faces):
        message = f"{function.name}: {other} must be in the memory of the host"
        raise ValueError(message)
    return {other: meshes}, left


def _run_points(
    functions: list[Function],
    columns: dict[str, Any],
    elements: dict[str, Any],
    device: str,
    progress: Listener | None,
    chosen: Any,
) -> dict[str, dict[str, Any]]:
    """Run functions of points on columns of any types."""
    name, axes = functions[0].name, functions[0].inputs.columns
    columns = {key: each for key, each in columns.items() if key not in "xyz" or key in axes}
    for axis in axes:
        require_unmasked(name, axis, columns[axis])
        columns[axis] = as_floats(name, axis, columns[axis])
    require_unmasked(name, "point_id", columns["point_id"])
    columns["point_id"] = as_ids(name, columns["point_id"])
    for attribute, kind in _attributes(functions[0]).items():
        columns[attribute] = as_attribute(name, attribute, columns[attribute], kind)
    for more in getattr(chosen, "more_columns", ()):
        columns[more] = as_numbers(name, more, columns[more])
    require_one_length(name, columns)
    given = {**columns, **elements}
    return _with_texts(call_outputs(functions, given, chosen, device, progress)[0])


def _run_cells(
    functions: list[Function],
    cells: dict[str, Any],
    device: str,
    progress: Listener | None,
    options: dict[str, Any],
) -> dict[str, dict[str, Any]]:
    """Run functions of grids on cells in any order."""
    name = functions[0].name
    if any(map(on_gpu, cells.values())):
        message = f"{name}: cells must be in the memory of the host; spatialq.run_grid takes grids"
        raise ValueError(message)
    from spatialq.data.grid_cells import grid_of  # Numba, which takes a while to import

    for axis in "xy":
        require_unmasked(name, axis, cells[axis])
    columns = {axis: as_floats(name, axis, values) for axis, values in cells.items()}
    require_one_length(name, columns)
    chosen = functions[0].choose(options)
    if not columns["x"].size:
        return {each.name: each.no_rows() for each in functions}
    grid = grid_of(name, **columns)
    found, _ = call_outputs(functions, {"grid": grid}, chosen, device, progress)
    return _with_texts(found)


def _run_heights(
    functions: list[Function],
    z: Any,
    frame: tuple[float, float, float, float],
    device: str,
    progress: Listener | None,
    options: dict[str, Any],
) -> dict[str, dict[str, Any]]:
    name = functions[0].name
    if z.ndim != 2 or z.dtype.kind not in "fiu":
        message = f"{name}: z must be numbers [rows, columns], got {z.dtype} of shape {z.shape}"
        raise ValueError(message)
    missing = np.ma.getmaskarray(z) if np.ma.isMaskedArray(z) else None
    grid = Grid(heights(z, missing), *frame)
    require_values(name, grid)
    chosen = functions[0].choose(options)
    return _with_texts(call_outputs(functions, {"grid": grid}, chosen, device, progress)[0])


def _with_texts(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Write out the columns of text that a kernel gives as codes."""
    return {
        name: {
            column: np.array([*values.names, ""])[values.codes]
            if isinstance(values, Text)
            else values
            for column, values in columns.items()
        }
        for name, columns in found.items()
    }
