"""Columns of LAZ files, decoded on a GPU and left there."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spatialq.io.las.laz import ITEM_SIZES, ITEMS, LAYERS
from spatialq.io.las.source import LasSource
from spatialq.io.source import PointSource
from spatialq.runtime import cuda
from spatialq.runtime.arrays import DType, Int32s, Ints

SOURCE = Path(__file__).parents[1] / "laz.cu"
FORMATS = {0: 0, 1: 1, 2: 2, 3: 3, 6: 0, 7: 0, 8: 0}
"""The point formats that are decoded; of those without layers, a bit each for time and colours."""
GOOD, CHANNELS, MODELS = 0, 3, 4
"""Errors of laz.cuh: none, more scanner channels than expected, or more models."""
LITTLE, ENOUGH = (1, 64), (4, 3 * 256)
"""Scanner channels and models of byte values of a chunk: at first, and at most."""
FEW = 8192
"""Chunks up to which a warp has less than 32, so that there are more warps."""
BYTES_PER_POINT = 36
"""Of GPU memory: three integers, and three coordinates."""
ATTRIBUTES: dict[str, tuple[DType, int]] = {
    "classification": (np.dtype(np.uint8), 1),
    "intensity": (np.dtype(np.uint16), 2),
    "red": (np.dtype(np.uint16), 4),
    "green": (np.dtype(np.uint16), 4),
    "blue": (np.dtype(np.uint16), 4),
}
"""What can be decoded beside coordinates: type, and bit of laz.cuh's attribute."""


@dataclass(frozen=True)
class _Kind:
    """What chunks have in common that one launch decodes."""

    layered: bool
    first: int
    """Bytes of a record of formats with layers; of the others which items they have."""
    second: int
    """Number of layers; of the others, of extra bytes."""


def why_not(cloud: PointSource) -> str:
    """Say why a file cannot be decoded on a GPU; nothing where it can."""
    if not isinstance(cloud, LasSource) or cloud.laz is None:
        return "it is no LAZ file that is read whole"
    laszip, _ = cloud.laz
    if laszip.header.point_format not in FORMATS:
        return f"its point format is {laszip.header.point_format}"
    versions = {version for (version,) in struct.iter_unpack("<4xH", laszip.vlr[34:])}
    if versions != {3 if laszip.layered else 2}:
        return f"its LASzip items have version {min(versions)}"
    return ""


def compressed_bytes(cloud: LasSource) -> int:
    """Count the bytes of all chunks of a file."""
    assert cloud.laz is not None
    return sum(chunk.size for chunk in cloud.laz[1])


def bytes_per_point(attributes: Sequence[str]) -> int:
    """Count the bytes of GPU memory for a point and its attributes."""
    note = 1 if attributes else 0
    return BYTES_PER_POINT + note + sum(ATTRIBUTES[name][0].itemsize for name in attributes)


def read_columns(
    clouds: Sequence[PointSource], attributes: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Read columns of files, one after the other, into memory of the GPU of this thread.

    What the GPU does not decode, or finds damaged, is read by the CPU, to the same bits.

    Parameters
    ----------
    clouds : sequence of PointSource
    attributes : sequence of str
        Of `ATTRIBUTES`, which all files have.

    Returns
    -------
    columns : dict of str to array[n]
        x, y and z, and the attributes, of the device.
    reasons : list of str
        Of each file that the CPU read, why.

    Raises
    ------
    FileError
        If points are damaged.
    MemoryError
        If the memory of the GPU is not enough.
    """
    device = cuda.device()
    firsts = np.cumsum([0, *(cloud.rows for cloud in clouds)]).tolist()
    with device.use():
        integers = [device.xp.empty(firsts[-1], np.int32) for _ in range(3)]
        of_attributes = {
            name: device.xp.empty(firsts[-1], ATTRIBUTES[name][0]) for name in attributes
        }
        reasons = {k: why for k, cloud in enumerate(clouds) if (why := why_not(cloud))}
        for k in _damaged(device, clouds, firsts, integers, of_attributes, reasons):
            reasons[k] = "the GPU found its points damaged"
        columns = {axis: device.xp.empty(firsts[-1], np.float64) for axis in "xyz"} | of_attributes
        for k, cloud in enumerate(clouds):
            part = slice(firsts[k], firsts[k + 1])
            there = {name: values[part] for name, values in columns.items()}
            if k in reasons:
                found = {name: np.empty(cloud.rows, values.dtype) for name, values in there.items()}
                cloud.read_into(found)
                for values, read in zip(
                    there.values(), device.upload([*found.values()]), strict=True
                ):
                    values[...] = read
            else:
                assert isinstance(cloud, LasSource)
                _scale(device, cloud, [values[part] for values in integers], there)
    return columns, [f"'{clouds[k].path}' by the CPU: {why}" for k, why in sorted(reasons.items())]


def _damaged(
    device: cuda.Device,
    clouds: Sequence[PointSource],
    firsts: Sequence[int],
    integers: Sequence[Any],
    attributes: Mapping[str, Any],
    reasons: Mapping[int, str],
) -> list[int]:
    """Decode files into integers; give the numbers of those that the GPU could not decode."""
    kinds: dict[_Kind, list[Ints]] = {}
    kept = []  # the compressed bytes, until they are decoded
    bad = set()
    for k, cloud in enumerate(clouds):
        if k in reasons or cloud.rows == 0:
            continue
        assert isinstance(cloud, LasSource)
        assert cloud.laz is not None
        laszip, chunks = cloud.laz
        begin = min(chunk.offset for chunk in chunks)
        size = max(chunk.offset + chunk.size for chunk in chunks) - begin
        try:
            kept.append(device.upload_file(cloud.path, begin, size))
        except EOFError:  # the reader on the CPU says so
            bad.add(k)
            continue
        start = device.address(kept[-1]) - begin
        rows = [(start + c.offset, c.size, firsts[k] + c.first, c.rows, k) for c in chunks]
        kinds.setdefault(_kind_of(laszip.header), []).append(np.array(rows, np.int64))
    for kind, tables in kinds.items():
        table = np.concatenate(tables)
        errors = _decode(device, kind, table[:, :4], integers, attributes, *LITTLE)
        again = np.isin(errors, (CHANNELS, MODELS))
        if again.any():
            errors[again] = _decode(device, kind, table[again, :4], integers, attributes, *ENOUGH)
        bad.update(table[errors != GOOD, 4].tolist())
    return sorted(bad)


def _kind_of(header: Any) -> _Kind:
    items = ITEMS[header.point_format]
    extra = header.record_length - sum(ITEM_SIZES[kind] for kind in items)
    if header.point_format >= 6:
        layers = sum(LAYERS[kind] for kind in items) + extra
        return _Kind(layered=True, first=header.record_length, second=layers)
    return _Kind(layered=False, first=FORMATS[header.point_format], second=extra)


def _decode(
    device: cuda.Device,
    kind: _Kind,
    table: Ints,
    integers: Sequence[Any],
    attributes: Mapping[str, Any],
    channels: int,
    models: int,
) -> Int32s:
    """Decode chunks, as many at a time as there is memory for; give their errors."""
    sizes = device.filled(0, 40).view(np.int64)
    extra = 0 if kind.layered else kind.second
    device.launch(SOURCE, "laz_sizes", (1,), 1, channels, extra, models, sizes)
    of_layers, of_points, *of_attribute = device.download(sizes).tolist()
    wanted = 0
    for name in attributes:
        wanted |= ATTRIBUTES[name][1]
    more = [size for bit, size in enumerate(of_attribute) if wanted >> bit & 1]
    words = of_layers + sum(more) if kind.layered else of_points
    room = len(integers[0]) if wanted and kind.layered else 0
    notes = device.xp.empty(max(room, 1), np.uint8)
    unused = device.filled(0, 8)
    outputs = [attributes.get(name, unused) for name in ATTRIBUTES]
    wave = max(1, min(len(table), device.free_bytes() // (4 * words)))
    errors = []
    for begin in range(0, len(table), wave):
        chunks = device.upload_small(np.ascontiguousarray(table[begin : begin + wave]))
        n = len(chunks)
        work = device.filled(0, 2 * n * words).view(np.uint16)
        failed = device.filled(0, 4 * n).view(np.int32)
        lanes = 32 if n > FEW else 8
        blocks = -(-n // lanes)
        if kind.layered:
            device.launch(
                SOURCE, "laz_layers", (blocks,), 64, chunks, n, kind.first, kind.second, work,
                channels, lanes, *integers, wanted, notes, failed,
            )  # fmt: skip
            if wanted:
                device.launch(
                    SOURCE, "laz_attributes", (blocks, len(more)), 32, chunks, n, kind.first,
                    kind.second, work[n * of_layers :], channels, lanes, notes, wanted, *outputs,
                    failed,
                )  # fmt: skip
        else:
            device.launch(
                SOURCE, "laz_points", (blocks,), 32, chunks, n, kind.first, kind.second, work,
                models, lanes, *integers, wanted, *outputs, failed,
            )  # fmt: skip
        errors.append(device.download(failed))
        del work
    return np.concatenate(errors)


def _scale(
    device: cuda.Device, cloud: LasSource, integers: Sequence[Any], columns: Mapping[str, Any]
) -> None:
    """Make coordinates of the integers of a file, and warn where they leave its box."""
    header, ranges = cloud.header, {}
    start = np.array([np.iinfo(np.int32).max, np.iinfo(np.int32).min], np.int32)
    for axis, values, scale, offset in zip(
        "xyz", integers, header.scales, header.offsets, strict=True
    ):
        ends = device.upload_small(start)
        blocks = max(1, min(-(-cloud.rows // 256), 32 * device.multiprocessors))
        device.launch(
            SOURCE, "laz_coordinates", (blocks,), 256, values, cloud.rows,
            np.float64(scale), np.float64(offset), columns[axis], ends,
        )  # fmt: skip
        found = device.download(ends) * np.float64(scale) + np.float64(offset)
        ranges[axis] = (float(found.min()), float(found.max()))
    if cloud.rows:
        cloud.check_extent(ranges)
