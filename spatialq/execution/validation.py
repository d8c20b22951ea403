"""What callers give, made into what kernels take: arrays of one type and length, whole meshes.

An error is one sentence that names the function, the argument, the value, and what would be right.
"""

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from spatialq.data.cloud import Cloud
from spatialq.data.columns import NUMBERS, NUMPY_TYPES, whole_numbers
from spatialq.data.meshes import Meshes
from spatialq.data.points import ascends, converted
from spatialq.data.polygons import Polygons
from spatialq.data.reach import FARTHEST, too_far
from spatialq.runtime import buffers, cuda
from spatialq.runtime.arrays import Ints
from spatialq.runtime.cuda import on_gpu

DENSE = 8
"""Up to so many possible values for each id are marked, instead of sorting the ids."""


def is_finite(value: object) -> bool:
    """Whether a value is a number, and finite."""
    return isinstance(value, Real) and isfinite(value)


def as_floats(function: str, name: str, values: object) -> Any:
    """Make contiguous float64 of numbers, where they are; NaN where they are masked.

    What is that already is given as it is; other numbers are converted in threads.
    """
    got: Any
    try:
        if on_gpu(values):
            array = cuda.device().view(values)
            if array.dtype.kind in "fiub":
                return cuda.device().xp.ascontiguousarray(array, np.float64)
        else:
            array = np.ma.asarray(values) if np.ma.isMaskedArray(values) else np.asarray(values)
            if array.dtype.kind in "fiub" and array.ndim == 1:
                return converted(array, np.float64)
            if array.dtype.kind in "fiubO":
                return np.ascontiguousarray(np.ma.filled(array.astype(np.float64), np.nan))
        got = array.dtype
    except (TypeError, ValueError) as error:
        got = error
    message = f"{function}: {name} must be numbers, got {got}"
    raise ValueError(message)


def as_numbers(function: str, name: str, values: object) -> Any:
    """Make an array of numbers or truth values, of their own type, where they are.

    Raises
    ------
    ValueError
        If they are others, or not in one row.
    """
    array = cuda.device().view(values) if on_gpu(values) else np.asanyarray(values)
    if array.dtype in NUMBERS and array.ndim == 1:
        return values if on_gpu(values) else array
    message = f"{function}: {name} must be numbers, got {array.dtype} of shape {array.shape}"
    raise ValueError(message)


def as_ids(function: str, values: object) -> Any:
    """Make contiguous int64 of point_ids, where they are; None if there are none.

    What is that already is given as it is; other integers are converted in threads.
    """
    if values is None:
        return None
    if on_gpu(values):
        view = cuda.device().view(values)
        return cuda.device().xp.ascontiguousarray(as_whole(function, "point_id", view, "BIGINT"))
    ids = np.ma.getdata(values) if np.ma.isMaskedArray(values) else np.asarray(values)
    if ids.ndim == 1 and ids.dtype.kind in "iu" and np.can_cast(ids.dtype, np.int64):
        return converted(ids, np.int64)
    return np.ascontiguousarray(as_whole(function, "point_id", ids, "BIGINT"))


def require_unique(function: str, ids: Ints | None) -> None:
    """Refuse point_ids that occur twice, for functions whose result names points by them.

    Parameters
    ----------
    function : str
    ids : int64[n] or None
        On the CPU or a GPU; None where they are the positions.

    Raises
    ------
    ValueError
        The sentence has one of them.
    """
    if ids is None or len(ids) < 2:
        return
    xp = cuda.device().xp if on_gpu(ids) else np
    arrays: Any = buffers if xp is np else xp
    ids = cuda.device().view(ids) if on_gpu(ids) else ids
    if ascends(ids) if xp is np else cuda.count(ids[1:] > ids[:-1]) == len(ids) - 1:
        return
    first, last = int(ids.min()), int(ids.max())
    if last - first < DENSE * len(ids):  # faster than sorting, also in any order
        seen = arrays.zeros(last - first + 1, np.bool_)
        for start in range(0, len(ids), buffers.CHUNK):
            seen[ids[start : start + buffers.CHUNK] - first] = True
        if cuda.count(seen) == len(ids):
            return
    ordered = arrays.empty(len(ids), np.int64)
    ordered[:] = ids
    ordered.sort()
    for start in range(0, len(ids), buffers.CHUNK):
        some = ordered[start : start + buffers.CHUNK + 1]
        again = some[1:][some[1:] == some[:-1]]
        if len(again):
            message = f"{function}: point_id must be unique, got {int(again[0])} more than once"
            raise ValueError(message)


def as_attribute(function: str, name: str, values: object, kind: str) -> Any:
    """Make numbers of a SQL type of what is given, if anything is; masked where that is."""
    if kind != "DOUBLE" or values is None:
        return as_whole(function, name, values, kind)
    numbers = as_numbers(function, name, values)
    array = cuda.device().view(numbers) if on_gpu(numbers) else numbers
    return numbers if array.dtype == np.float64 else array.astype(np.float64)


def as_whole(function: str, name: str, values: object, kind: str) -> Any:
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
        if not cuda.count(wrong):
            return array.astype(wanted)
        got = array[wrong.argmax()]
    elif not array.size:  # NumPy takes [] for numbers with fractions
        return array.astype(wanted)
    message = f"{function}: {name} must be {whole_numbers(kind)}, got {got}"
    raise ValueError(message)


def require_unmasked(function: str, name: str, values: Any) -> None:
    """Reject masked values, which NumPy would give as what is under the mask."""
    if n := np.count_nonzero(np.ma.getmask(values)):
        message = f"{function}: {name} must have all its values, got {n} masked"
        raise ValueError(message)


def require_one_length(function: str, columns: dict[str, Any]) -> None:
    """Reject columns of several lengths, or of more than one dimension."""
    given = {name: values for name, values in columns.items() if values is not None}
    shapes = {name: values.shape for name, values in given.items()}
    if set(shapes.values()) != {(next(iter(given.values())).size,)}:
        message = f"{function}: the columns must be one-dimensional, of one length, got {shapes}"
        raise ValueError(message)


def as_meshes(place: str, given: Any) -> Meshes:
    """Take what a caller gives as meshes.

    Parameters
    ----------
    place : str
        How an error begins.
    given : Meshes, or sequence of (vertices, faces)

    Raises
    ------
    ValueError
        If arrays have another shape or type or are in different memories, or a mesh is broken.
    """
    if isinstance(given, Meshes):
        there = [on_gpu(array) for array in given.arrays]
        if any(there) and not all(there):
            message = f"{place}: all arrays of the meshes must be in one memory"
            raise ValueError(message)
        view = cuda.device().view if any(there) else np.asarray
        given = Meshes(*(view(array) for array in given.arrays))
    else:
        is_one = isinstance(given, str | bytes) or not np.iterable(given)
        pairs = []
        for k, each in enumerate([given] if is_one else given):
            if not isinstance(each, tuple | list) or len(each) != 2:
                message = (
                    f"{place} must be Meshes or a list of pairs, vertices and faces, got "
                    f"{type(each).__name__} at position {k}"
                )
                raise ValueError(message)
            pair = np.asarray(each[0]), np.asarray(each[1])
            pairs.append(pair)
            _require_shapes(f"{place}: mesh {k}", *pair)
        given = Meshes.of([(vertices, narrowed(faces)) for vertices, faces in pairs])
    _require_shapes(place, given.vertices, given.faces)
    if len(given.vertex_starts) != len(given.face_starts):
        message = f"{place}: vertex_starts and face_starts must have one length"
        raise ValueError(message)
    meshes = Meshes(
        given.vertices.astype(np.float64, order="C", copy=False),
        narrowed(given.faces),
        given.vertex_starts.astype(np.int64, order="C", copy=False),
        given.face_starts.astype(np.int64, order="C", copy=False),
    )
    for name, starts, values in (
        ("vertex_starts", meshes.vertex_starts, meshes.vertices),
        ("face_starts", meshes.face_starts, meshes.faces),
    ):
        if not (len(starts) and starts[0] == 0 and starts[-1] == len(values)
                and (np.diff(starts) >= 0).all()):  # fmt: skip
            message = f"{place}: {name} must grow from 0 to {len(values)}, the number of rows"
            raise ValueError(message)
    require_whole_meshes(place, meshes)
    return meshes


def as_cloud(place: str, given: object) -> Cloud:
    """Take what a caller gives as another cloud: x, y and z.

    Raises
    ------
    ValueError
        If it is something else, or the arrays are of different lengths.
    """
    if isinstance(given, Cloud):
        return given
    if isinstance(given, Mapping):
        given = [given.get(axis) for axis in "xyz"]
    if not isinstance(given, list | tuple) or len(given) != 3:
        message = f"{place} must be three arrays x, y and z, got {type(given).__name__}"
        raise ValueError(message)
    arrays = dict(zip("xyz", given, strict=True))
    for axis, values in arrays.items():
        require_unmasked(place, axis, values)
        arrays[axis] = as_floats(place, axis, values)
    require_one_length(place, arrays)
    return Cloud(**arrays)


def as_polygons(place: str, given: Any) -> Polygons:
    """Take what a caller gives as polygons: `Polygons`, or WKB in bytes, None without one.

    Raises
    ------
    ValueError
        If it is something else; what the bytes are, the kernel looks at.
    """
    if isinstance(given, Polygons):
        return given
    is_one = isinstance(given, str | bytes) or not np.iterable(given)
    shapes: list[Any] = [given] if is_one else list(given)
    for k, each in enumerate(shapes):
        if isinstance(given, str | bytes) or not (each is None or isinstance(each, bytes)):
            message = (
                f"{place} must be a list of bytes, WKB of POLYGON or MULTIPOLYGON, or None each, "
                f"got {type(each).__name__} at position {k}"
            )
            raise ValueError(message)
    return Polygons.of(shapes)


def narrowed(faces: Any) -> Any:
    """Make int32 of indices; those it has no room for stay wrong, to be rejected."""
    if faces.size and faces.dtype.itemsize >= 4 and faces.dtype != np.int32:
        faces = faces.clip(-1 if faces.dtype.kind == "i" else 0, 2**31 - 1)
    return faces.reshape(-1, 3).astype(np.int32, order="C", copy=False)


def _require_shapes(place: str, vertices: Any, faces: Any) -> None:
    for name, array, kinds, right in (
        ("vertices", vertices, "fiu", "numbers [n, 3]"),
        ("faces", faces, "iu", "integers [m, 3]"),
    ):
        is_empty = 0 in array.shape
        if (array.dtype.kind not in kinds and not is_empty) or (
            array.shape[1:] != (3,) and array.shape != (0,)
        ):
            message = f"{place}: {name} must be {right}, got {array.dtype}{list(array.shape)}"
            raise ValueError(message)


def require_whole_meshes(place: str, meshes: Meshes, global_id: Any = None) -> None:
    """Reject meshes that no kernel may get.

    Raises
    ------
    ValueError
        If coordinates are not finite or too far away, or faces name vertices that are not there.
    """
    is_finite = np.isfinite(meshes.vertices)
    if not is_finite.all():
        bad = meshes_with(meshes.vertex_starts, ~is_finite.all(axis=1))
        reject_meshes(place, bad, "with vertices that are not finite", global_id)
    room = np.diff(meshes.vertex_starts)[_owners(meshes.face_starts, len(meshes.faces))][:, None]
    beyond = (meshes.faces < 0) | (meshes.faces >= room)
    if beyond.any():
        bad = meshes_with(meshes.face_starts, beyond.any(axis=1))
        reject_meshes(place, bad, "whose faces name vertices that are not there", global_id)
    if meshes.vertices.size and _farthest(meshes.vertices) > FARTHEST:
        _require_reach(place, meshes, global_id)


def _farthest(values: Any) -> float:
    """Find how far from 0 values reach, without a copy of them."""
    return max(-float(values.min()), float(values.max()))


def _require_reach(place: str, meshes: Meshes, global_id: Any) -> None:
    """Reject meshes that are too far away; vertices that no face uses do not count."""
    first = meshes.vertex_starts[_owners(meshes.face_starts, len(meshes.faces))][:, None]
    corners = meshes.vertices[first + meshes.faces]
    is_far = abs(corners) > FARTHEST
    if not is_far.any():
        return
    face = int(is_far.any(axis=(1, 2)).argmax())
    corner, axis = divmod(int(is_far[face].reshape(-1).argmax()), 3)
    mesh = int((meshes.face_starts[1:] <= face).sum())
    caller, _, argument = place.partition(": ")
    name = f"at position {mesh}" if global_id is None else f"of global_id {global_id[mesh]}"
    where = f" in the mesh {name} of {argument}"
    raise ValueError(too_far(caller, "xyz"[axis], float(corners[face, corner, axis]), where=where))


def _owners(starts: Any, n: int) -> Any:
    """Give int64[n], the mesh that each of n values belongs to; in the memory of starts."""
    return np.cumsum(np.bincount(starts[1:-1], minlength=n + 1)[:n])


def meshes_with(starts: Any, is_bad: Any) -> Any:
    """Give bool[k], the meshes that have one of the bad values."""
    bad = np.zeros(len(starts) - 1, bool)
    bad[_owners(starts, len(is_bad))[is_bad].tolist()] = True
    return bad


def reject_meshes(place: str, is_bad: Any, what: str, global_id: Any) -> None:
    """Raise the sentence about bad meshes, if there are any."""
    count = np.count_nonzero(is_bad)
    if not count:
        return
    first = int(np.argmax(is_bad))
    name = f"at position {first}" if global_id is None else f"global_id {global_id[first]}"
    plural = "mesh" if count == 1 else "meshes"
    message = f"{place} has {count} {plural} {what}, the first is {name}"
    raise ValueError(message)
