"""One call of a kernel: plan it, run it, write the log."""

import time
from datetime import UTC, datetime
from typing import Any

import numpy as np

from spatialq import cuda
from spatialq.cuda import on_gpu
from spatialq.planner import log, route
from spatialq.udf import Device, Udf, find


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
        Such as 'owm_ground', 'classify_ground' or 'detect_planes'.
    x, y, z : float64[n]
        NumPy arrays; or arrays of the GPU, of any library that has `__cuda_array_interface__` or
        DLPack, which stay there.
    point_id : int64[n], optional
        Where the coordinates are; by default 0, 1, 2 ...
    elements : Meshes, or sequence of (vertices, faces), optional
        Of a function of points and elements, as for `run_elements`, in the memory of the host;
        `element` in the result is a position, -1 for none.
    device : 'auto', 'cpu' or 'gpu'
        Arrays of the GPU are worked on there.
    **options
        The function's named arguments.

    Returns
    -------
    dict of arrays
        The columns of the result, in the memory where the coordinates are; geometries are WKB
        in a NumPy array of bytes objects, wherever the coordinates are.

    Raises
    ------
    ValueError
        If there is no such function, or an option is wrong.

    Examples
    --------
    >>> seeds = spatialq.run("owm_ground", x, y, z, window_size=5.0)  # doctest: +SKIP
    """
    udf = find("run", function)
    if not udf.columns:
        message = f"run: {function} is a function of elements: use spatialq.run_elements"
        raise ValueError(message)
    given = {}
    if udf.takes_elements:
        from spatialq.bridge_elements import as_meshes

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
    if any(on_gpu(values) for values in columns.values()):
        gpu = cuda.device()
        with gpu.use():
            if point_id is None:
                columns["point_id"] = gpu.xp.arange(x.shape[0])
            return call(udf, {**columns, **given}, options, "gpu")[0]
    for name in "xyz":
        columns[name] = np.asarray(columns[name], np.float64)
    n = columns["x"].size
    columns["point_id"] = np.arange(n) if point_id is None else np.asarray(point_id, np.int64)
    shapes = {name: values.shape for name, values in columns.items()}
    if set(shapes.values()) != {(n,)}:
        message = f"{function}: the columns must be one-dimensional, of one length, got {shapes}"
        raise ValueError(message)
    return call(udf, {**columns, **given}, options, device)[0]


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
    from spatialq.bridge_elements import as_meshes

    udf = find("run_elements", function)
    if udf.columns:
        message = f"run_elements: {function} is a function of points: use spatialq.run"
        raise ValueError(message)
    sets = {
        "a": as_meshes(f"{function}: a", a),
        "b": None if b is None else as_meshes(f"{function}: b", b),
    }
    there = [on_gpu(meshes.faces) for meshes in sets.values() if meshes is not None]
    if any(there):
        if not all(there):
            message = f"{function}: a and b must be in one memory"
            raise ValueError(message)
        with cuda.device().use():
            return call(udf, sets, options, "gpu")[0]
    return call(udf, sets, options, device)[0]


def call(
    udf: Udf, arguments: dict[str, Any], options: dict[str, Any], wish: str
) -> tuple[dict[str, Any], Device]:
    """Plan and run a kernel, and write the log.

    Parameters
    ----------
    udf : Udf
    arguments : dict
        What the kernel gets, by name: `point_id` and the columns of the function, the `grid`, or
        the meshes `a` and `b`.
    options : dict
        Its options, by name.
    wish : 'auto', 'cpu' or 'gpu'

    Returns
    -------
    columns : dict of arrays
    device : 'cpu' or 'gpu'
        Where it ran. With 'auto', what does not fit into the GPU's memory after all runs on the
        CPU.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    chosen = udf.choose(options)
    rows = _rows(udf, arguments)
    plan = route.plan(udf, rows, chosen, wish)
    device, reason, error = plan.device, plan.reason, None
    try:
        try:
            return udf.kernel(device)(**arguments, options=chosen), device
        except MemoryError as full:
            if device == "cpu" or wish == "gpu":
                raise
            device, reason = "cpu", f"the GPU ran out of memory: {full}"
            return udf.kernel(device)(**arguments, options=chosen), device
    except BaseException as failure:
        error = str(failure) or type(failure).__name__
        raise
    finally:
        log.add(
            log.Entry(
                at=started,
                function=udf.name,
                rows=rows,
                device=device,
                reason=reason,
                estimated_seconds=plan.seconds,
                seconds=time.perf_counter() - clock,
                error=error,
            )
        )


def _rows(udf: Udf, arguments: dict[str, Any]) -> int:
    """How much a call gets: points, cells of a grid, or triangles of all elements."""
    if udf.takes_grid:
        return int(arguments["grid"].z.size)
    if udf.columns:
        return len(arguments["point_id"])
    return sum(len(meshes.faces) for meshes in arguments.values() if meshes is not None)
