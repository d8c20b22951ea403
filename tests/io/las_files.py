"""LAS, LAZ and COPC files made by the tests, and the slow truth that is compared with."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

REPOSITORY = Path(__file__).parents[2]
SCAN_ANGLE_STEP = 0.006


def write(
    path: Path,
    point_format: int,
    n_points: int,
    *,
    version: str = "1.4",
    extra: Sequence[Any] = (),
    crs: str | None = None,
    seed: int = 1,
    offsets: Sequence[float] = (500_000, 5_000_000, 100),
) -> Path:
    """Write a cloud with a value in each field, on a grid of 1 mm, far from the origin."""
    import laspy

    random = np.random.default_rng(seed)
    header = laspy.LasHeader(point_format=point_format, version=version)
    header.scales, header.offsets = [0.001] * 3, list(offsets)
    if crs:
        import pyproj

        header.add_crs(pyproj.CRS(crs))
    for parameters in extra:
        header.add_extra_dim(parameters)
    cloud = laspy.LasData(header)
    points = laspy.ScaleAwarePointRecord.zeros(n_points, header=header)
    for name in points.array.dtype.names:
        field = points.array[name]
        if field.dtype.base.kind == "f":
            field[:] = random.normal(0, 1e5, field.shape)
        elif name in "XYZ":
            field[:] = random.integers(-100_000, 100_000, field.shape)
        else:
            limits = np.iinfo(field.dtype.base)
            field[:] = random.integers(
                limits.min, limits.max, field.shape, field.dtype.base, endpoint=True
            )
    cloud.points = points
    cloud.write(path)
    return path


def truth(path: Path, name: str) -> np.ndarray:
    """Read one column with laspy, all values of a row side by side."""
    import laspy

    values = np.asarray(laspy.read(path)[name])
    return (values * SCAN_ANGLE_STEP).astype(np.float32) if name == "scan_angle" else values


def as_numpy(column: Any) -> np.ndarray:
    """Turn an Arrow column into the array that laspy has for it."""
    array = column.combine_chunks()
    if hasattr(array.type, "list_size"):
        return array.flatten().to_numpy().reshape(-1, array.type.list_size)
    return array.to_numpy(zero_copy_only=False)


def write_copc(path: Path, clouds: Sequence[tuple[tuple[int, int, int, int], np.ndarray]]) -> Path:
    """Write a COPC file of point format 6 whose deepest level has a hierarchy page of its own.

    `clouds` are keys (level, x, y, z) with int32[n, 3] grid coordinates; the cube is 0 to 1000
    on each axis, the scale 1.
    """
    import laspy
    import lazrs

    header = laspy.LasHeader(point_format=6, version="1.4")
    header.scales, header.offsets = [1.0] * 3, [0.0] * 3
    vlr = lazrs.LazVlr.new_for_compression(6, 0, use_variable_size_chunks=True)
    header.vlrs.append(laspy.VLR("copc", 1, "COPC info", bytes(160)))
    header.vlrs.append(laspy.VLR("laszip encoded", 22204, "", bytes(vlr.record_data())))
    with laspy.open(path, "w", header=header, do_compress=False):
        pass
    begin = struct.unpack_from("<I", path.read_bytes(), 96)[0]
    records = []
    for _, grid in clouds:
        points = np.zeros(len(grid), laspy.PointFormat(6).dtype())
        points["X"], points["Y"], points["Z"] = grid.T
        points["intensity"] = np.arange(len(grid))
        points["bit_fields"] = 0x11
        records.append(points.view(np.uint8))
    with path.open("r+b") as file:
        file.truncate(begin)
        file.seek(begin)
        compressor = lazrs.LasZipCompressor(file, vlr)
        compressor.compress_chunks(records)
        compressor.done()
    with path.open("r+b") as file:
        table = struct.unpack("<q", file.read()[begin : begin + 8])[0]
        file.seek(table)
        chunks = lazrs.read_chunk_table_only(file, vlr)
        offsets = np.cumsum([begin + 8, *(size for _, size in chunks)])
        deepest = max(key[0] for key, _ in clouds)
        pages: list[list[bytes]] = [[], []]
        for (key, grid), offset, (_, size) in zip(clouds, offsets, chunks, strict=False):
            entry = struct.pack("<4iQii", *key, offset, size, len(grid))
            pages[key[0] == deepest].append(entry)
        keys = {key for key, _ in clouds}
        for level, *cell in list(keys):  # a node must have those above it, if without points
            for up in range(1, level + 1):
                above = (level - up, *(k >> up for k in cell))
                if above not in keys:
                    keys.add(above)
                    pages[0].append(struct.pack("<4iQii", *above, 0, 0, 0))
        file.seek(0, 2)
        evlr = file.tell()
        second = evlr + 60 + 32 * (len(pages[0]) + 1)
        link = struct.pack("<4iQii", deepest, 0, 0, 0, second, 32 * len(pages[1]), -1)
        hierarchy = b"".join([*pages[0], link, *pages[1]])
        file.write(struct.pack("<2x16sHQ32x", b"copc", 1000, len(hierarchy)) + hierarchy)
        grids = np.concatenate([grid for _, grid in clouds])
        low, high = grids.min(axis=0), grids.max(axis=0)
        file.seek(104)
        file.write(bytes([6 | 0x80]))
        file.seek(179)
        file.write(struct.pack("<6d", high[0], low[0], high[1], low[1], high[2], low[2]))
        file.seek(235)
        file.write(struct.pack("<QIQ", evlr, 1, len(grids)))
        file.seek(375 + 54)
        info = struct.pack(
            "<5d2Q2d", 500, 500, 500, 500, 10, evlr + 60, 32 * (len(pages[0]) + 1), 0, 0
        )
        file.write(info)
    return path


def assert_same_rows(got: Any, expected: Any) -> None:
    """Compare two tables as sets of rows, NaN equal to itself."""
    assert got.schema.names == expected.schema.names
    first, second = (table.sort_by("point_id").combine_chunks() for table in (got, expected))
    assert first.num_rows == second.num_rows
    for name in first.column_names:
        a, b = as_numpy(first[name]), as_numpy(second[name])
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"column {name}"
