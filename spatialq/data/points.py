"""What the kernels of point clouds share: checks and copies of x, y, z and point_id."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from spatialq.runtime import buffers, cuda
from spatialq.runtime.compile_cache import njit
from spatialq.runtime.threads import n_threads, workers

Result = TypeVar("Result")
IDS_PER_THREAD = 100_000
"""With fewer ids per thread, starting another thread costs more than it saves."""
BLOCK = 4096
"""Ids that are compared without a branch, so that the comparison vectorises."""


def read_only(values: Any) -> Any:
    """Give a contiguous, read-only view of a NumPy array, or the array itself if it is that.

    All of them have one Numba type, so that a kernel is compiled once, wherever its arrays came
    from.
    """
    values = np.ascontiguousarray(values)
    if not values.flags.writeable:
        return values
    view = values.view()
    view.flags.writeable = False
    return view


def normals_of(nx: Any, ny: Any, nz: Any) -> tuple[Any, Any, Any]:
    """Give the normals of points as numbers: NaN where masked, empty if there are none."""
    if any(each is None for each in (nx, ny, nz)):
        nothing = read_only(np.empty(0))
        return nothing, nothing, nothing
    x, y, z = (read_only(np.ma.filled(each, np.nan)) for each in (nx, ny, nz))
    return x, y, z


def normals_to_device(device: cuda.Device, nx: Any, ny: Any, nz: Any) -> tuple[Any, ...]:
    """Bring normals of points, each in either memory, to the device as those of `normals_of`.

    Returns
    -------
    tuple of three float64[n], or ()
        Contiguous; nothing if there are none.
    """
    if any(each is None for each in (nx, ny, nz)):
        return ()
    return tuple(
        device.xp.ascontiguousarray(device.view(each))
        if device.is_here(each)
        else device.upload([read_only(np.ma.filled(each, np.nan))])[0]
        for each in (nx, ny, nz)
    )


def all_finite(*arrays: Any) -> bool:
    """Whether arrays of NumPy or CuPy have neither NaN nor infinity."""
    return all(_is_finite(values) for values in arrays)


def _is_finite(values: Any) -> bool:
    if not isinstance(values, np.ndarray):
        return cuda.count(np.isfinite(values)) == int(values.size)
    view = read_only(values)
    return all(in_parts(lambda first, stop: _finite(view, first, stop), view.size))


def not_finite(function: str, x: Any, y: Any, z: Any, point_id: Any) -> str:
    """Give the error sentence about coordinates that are not finite.

    Parameters
    ----------
    function : str
        The function that was called.
    x, y, z : float64[n]
        Arrays of NumPy or CuPy; at least one value is not finite. z may be None.
    point_id : int64[n] or None
        None means that the ids are the positions.
    """
    bad = ~(np.isfinite(x) & np.isfinite(y))
    if z is not None:
        bad |= ~np.isfinite(z)
    first = int(np.argmax(bad))
    axes = "x and y" if z is None else "x, y and z"
    return (
        f"{function}: {axes} must be finite, got {int(np.count_nonzero(bad))} points with NaN "
        f"or infinity, the first with point_id {first if point_id is None else point_id[first]}"
    )


def ids_of(point_id: Any, n: int, xp: Any = np) -> Any:
    """Give the ids of n points: those given, or for None the positions, as arrays of xp."""
    if point_id is not None:
        return point_id
    if xp is not np:
        return xp.arange(n, dtype=np.int64)
    ids = buffers.empty(n, np.int64)
    in_parts(lambda first, stop: _count(ids, first, stop), n)
    return ids


def in_parts(work: Callable[[int, int], Result], n: int) -> list[Result]:
    """Call work with parts of range(n), a thread for each; for few, without another thread."""
    if n < 2 * IDS_PER_THREAD:
        return [work(0, n)]
    with workers(min(n_threads(), n // IDS_PER_THREAD)) as pool:
        return pool.map(lambda part: work(*part), pool.spans(n))


def converted(values: Any, dtype: Any) -> Any:
    """Give a contiguous array of numbers of one type: the same, or one copy made in threads.

    Parameters
    ----------
    values : NumPy array[n]
        Of numbers of any type and byte order, strided or not. What is masked becomes NaN, so that
        `dtype` must be float64 then.
    dtype : NumPy type
    """
    array, missing = np.ma.getdata(values), np.ma.getmask(values)
    is_masked = bool(np.any(missing))
    lies_right = array.flags.c_contiguous and array.flags.aligned
    if array.dtype == dtype and lies_right and not is_masked:
        return array
    result = buffers.empty(array.size, dtype)

    def convert(first: int, stop: int) -> None:
        np.copyto(result[first:stop], array[first:stop], casting="unsafe")
        if is_masked:
            result[first:stop][missing[first:stop]] = np.nan

    in_parts(convert, array.size)
    return result


def to_host(device: cuda.Device, array: Any) -> Any:
    """Copy an array of the device into page-locked memory of the pool, if it is large."""
    return device.download(array, buffers.empty(array.shape, array.dtype, page_locked=True))


def where_they_are(
    device: cuda.Device, point_id: Any, n: int, columns: Mapping[str, Any], *, here: bool
) -> dict[str, Any]:
    """Give columns of the device and the ids of their n points, in the memory of the points.

    Parameters
    ----------
    device : Device
    point_id : int64[n] or None
        Where the points are; None for the positions.
    n : int
    columns : mapping of str to array
    here : bool
        Whether the points are on the device.
    """
    if here:
        ids = None if point_id is None else device.view(point_id)
        return {"point_id": ids_of(ids, n, device.xp), **columns}
    found = {name: to_host(device, values) for name, values in columns.items()}
    return {"point_id": ids_of(point_id, n), **found}


def ascends(point_id: Any) -> bool:
    """Whether each id of a NumPy array is greater than the one before."""
    point_id = read_only(point_id)
    return all(in_parts(lambda first, stop: _ascends(point_id, first, stop), point_id.size))


def in_one_memory(device: cuda.Device, function: str, cloud: tuple[Any, ...]) -> bool:
    """Whether x, y, z and point_id (or None) are on the device.

    Raises
    ------
    ValueError
        If only some of them are.
    """
    here = {device.is_here(values) for values in cloud if values is not None}
    if len(here) > 1:
        message = (
            f"{function}: x, y, z and point_id must be in one memory, got some on the GPU only"
        )
        raise ValueError(message)
    return here == {True}


def to_device(
    device: cuda.Device, function: str, cloud: tuple[Any, ...]
) -> tuple[tuple[Any, ...], bool]:
    """Bring x, y, z and point_id (or None) to the device, contiguous.

    Ids in main memory that ascend stay there, and None takes their place: comparing them gives the
    same order as comparing positions.

    Parameters
    ----------
    device : Device
    function : str
        The function that was called, for the error sentence.
    cloud : tuple of arrays
        x, y, z and point_id, all in main memory or all on the device.

    Returns
    -------
    cloud : tuple of device arrays
    was_there : bool
        Whether the arrays were on the device before.

    Raises
    ------
    ValueError
        If only some of the arrays are on the device.
    """
    if in_one_memory(device, function, cloud):
        return tuple(None if each is None else device.view(each) for each in cloud), True
    *coordinates, point_id = cloud
    uploaded = [np.ascontiguousarray(values, np.float64) for values in coordinates]
    if point_id is not None and not ascends(point_id):
        uploaded.append(np.ascontiguousarray(point_id))
    return (*device.upload(uploaded), None)[:4], False


@njit(cache=True, nogil=True)
def _finite(values: Any, first: int, stop: int) -> bool:
    bad = 0
    for i in range(first, stop):
        bad += values[i] - values[i] != 0  # infinity and NaN give NaN
    return bad == 0


@njit(cache=True, nogil=True)
def _count(ids: Any, first: int, stop: int) -> None:
    for i in range(first, stop):
        ids[i] = i


@njit(cache=True, nogil=True)
def _ascends(point_id: Any, first: int, stop: int) -> bool:
    for start in range(max(first, 1), stop, BLOCK):
        so_far = True
        for i in range(start, min(start + BLOCK, stop)):
            so_far &= point_id[i] > point_id[i - 1]
        if not so_far:
            return False
    return True
