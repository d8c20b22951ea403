"""Terrain grids as tables: GeoTIFF, ESRI ASCII, SRTM .hgt, USGS DEM through GDAL, and .npy.

GDAL (as rasterio's wheel carries it) knows the formats, their compressions and their CRS, reads
windows and keeps decoded blocks; lighter readers know one or two of these.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.data.grid import Grid, heights
from spatialq.errors import CrsError, FileError, FileWarning
from spatialq.io import crs as crs_text
from spatialq.io.files import require_file
from spatialq.io.grid.gdal import is_masked, opened, require_plain, thinned_mask
from spatialq.io.source import ROW_GROUP, Box
from spatialq.io.storage import as_path
from spatialq.runtime.arrays import Array, Bools, Floats

READER = "read_grid"
SCHEMA = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("z", pa.float64())])
STRIP_CELLS = 4 * ROW_GROUP
"""Cells that are read together, more or less."""
USUAL_NODATA = (-9999.0, -32768.0)

Window = tuple[int, int, int, int]
"""Rows [first, second) and columns [third, fourth) of the grid."""


class GridSource:
    """A regular grid as x, y, z: one row per cell centre, from the first row of the file on.

    z is NULL where the file says that there is no value. x and y are in the units of the CRS.
    A .npy file has no georeference: its cells are 1 x 1, its first row is the northernmost and
    its lower left corner is at 0, 0.

    Parameters
    ----------
    path : path-like
    nodata : float, optional
        Value that means "no value", besides those that the file declares.
    band : int
        Which band of a file with several, from 1.
    crs : str, optional
        CRS of a file that does not name one.
    reader : str
        Whose errors and warnings they are.

    Raises
    ------
    FileError
        If the file cannot be read as a grid.
    CrsError
        If PROJ cannot read `crs`, or the file is in another one.
    ValueError
        If the file has no such band.
    """

    kind = "grid"
    schema = SCHEMA

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        nodata: float | None = None,
        band: int = 1,
        crs: str | None = None,
        reader: str = READER,
    ) -> None:
        self.path = as_path(path)
        self.options: dict[str, Any] = {
            "nodata": nodata, "band": band, "crs": crs, "reader": reader,
        }  # fmt: skip
        """With which it was opened."""
        self._reader = reader
        self.warnings: Sequence[str] = []
        self.crs: str | None = None
        self.bands = 1
        self.type = ""
        """Of the values in the file, as NumPy names it."""
        self.declared_nodata: float | None = None
        """The value that means "no value", as the file declares it."""
        self._nodata = nodata
        self._band = band
        require_file(self._reader, self.path)
        self._is_npy = self.path.suffix.lower() == ".npy"
        if self._is_npy:
            self._describe_npy()
        else:
            require_plain(self._reader, self.path)
            self._describe_raster()
        if crs is not None:
            self._take_crs(crs)
        self.rows = self._height * self._width
        self.box: Box | None = self._extent((0, self._height, 0, self._width))

    def _take_crs(self, crs: str) -> None:
        given = crs_text.from_argument(self._reader, crs)
        if self.crs is not None and not crs_text.same(self.crs, given):
            message = (
                f"{self._reader}: crs is {crs_text.name(given)}, but that of '{self.path}' is "
                f"{crs_text.name(self.crs)}: leave crs out, or correct that of the file"
            )
            raise CrsError(message)
        self.crs = given

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and rows."""
        return self._width, self._height

    @property
    def cell_size(self) -> tuple[float, float]:
        """Width and height of a cell, along its sides where the grid is rotated."""
        a, b, _, d, e, _ = self._transform
        return float(np.hypot(a, d)), float(np.hypot(b, e))

    def spans(self, hint: Box | None = None) -> list[Window]:
        """Divide the grid into windows for `read_span`, without those outside the hint.

        Windows keep to the blocks of the file, so that none is decoded twice.
        """
        height, width = self._block
        width = min(self._width, width * max(1, STRIP_CELLS // (height * width)))
        height = min(self._height, height * max(1, STRIP_CELLS // (height * width)))
        windows = [
            (r, min(r + height, self._height), c, min(c + width, self._width))
            for r in range(0, self._height, height)
            for c in range(0, self._width, width)
        ]
        return [w for w in windows if hint is None or _meet(self._extent(w), hint)]

    def batches(self, columns: Sequence[str], hint: Box | None = None) -> Iterator[pa.RecordBatch]:
        """Read the columns in batches of a multiple of `ROW_GROUP` rows, the last one shorter.

        Raises
        ------
        FileError
            If the data are damaged.
        """
        kept: list[pa.RecordBatch] = []
        for span in self.spans(hint):
            kept.append(self.read_span(span, columns))
            n = sum(batch.num_rows for batch in kept)
            if n >= ROW_GROUP:
                joined = pa.concat_batches(kept)
                whole = n - n % ROW_GROUP
                yield joined.slice(0, whole)
                kept = [joined.slice(whole)]
        if kept:
            yield pa.concat_batches(kept)

    def read_span(self, span: Window, columns: Sequence[str]) -> pa.RecordBatch:
        """Read a window of the grid; from any thread, since the file is opened for it.

        Raises
        ------
        FileError
            If the data are damaged.
        """
        top, bottom, left, right = span
        arrays = {}
        if "z" in columns:
            z, missing = self._read(span)
            self._look_for_undeclared(z[~missing])
            arrays["z"] = pa.array(z.ravel().astype(np.float64), mask=missing.ravel())
        if "x" in columns or "y" in columns:
            at = np.meshgrid(np.arange(left, right) + 0.5, np.arange(top, bottom) + 0.5)
            x, y = self._xy(*at)
            arrays["x"], arrays["y"] = pa.array(np.ravel(x)), pa.array(np.ravel(y))
        return pa.RecordBatch.from_arrays([arrays[name] for name in columns], names=list(columns))

    def grid(self, first: int, stop: int, columns: tuple[int, int] | None = None) -> Grid:
        """Read the rows [first, stop), counted from the south; from any thread.

        Parameters
        ----------
        first, stop : int
        columns : (int, int), optional
            First column and the one behind the last, counted from the west; by default all.

        Raises
        ------
        FileError
            If the data are damaged, or rows and columns do not run along x and y.
        """
        frame = self.frame
        a, _, _, _, e, _ = self._transform
        top, bottom = (first, stop) if e > 0 else (self._height - stop, self._height - first)
        west, east = columns or (0, self._width)
        left, right = (west, east) if a > 0 else (self._width - east, self._width - west)
        span = (top, bottom, left, right)
        values, missing = self._read(span)
        turned = np.s_[:: 1 if e > 0 else -1, :: 1 if a > 0 else -1]
        z = heights(values[turned], missing[turned])
        self._look_for_undeclared(z)
        return replace(frame, z=z, first_row=first, first_column=west)

    @property
    def frame(self) -> Grid:
        """The grid without a row: where its cells are and how many; nothing is read.

        Raises
        ------
        FileError
            If rows and columns do not run along x and y.
        """
        a, b, _, d, e, _ = self._transform
        if b or d:
            raise FileError.of(self._reader, self.path, "is rotated: its rows do not run along x")
        x0, y0 = self._xy(0.5 if a > 0 else self._width - 0.5, 0.5 if e > 0 else self._height - 0.5)
        nothing = np.empty((0, self._width), np.float32)
        all_cells = {"all_rows": self._height, "all_columns": self._width}
        return Grid(nothing, x0, y0, abs(a), abs(e), **all_cells)

    def overview(self, most: int) -> Floats:
        """Read every so many cells of every so many rows, at most so many of a side.

        Returns
        -------
        float64[rows, columns]
            Row 0 in the north, for files whose rows run along x; NaN where there is no value.

        Raises
        ------
        FileError
            If the data are damaged.
        """
        every = -(-max(self._height, self._width) // most)
        z, missing = self._read((0, self._height, 0, self._width), every)
        a, _, _, _, e, _ = self._transform
        there = np.where(missing, np.nan, z.astype(np.float64))
        return there[:: 1 if e < 0 else -1, :: 1 if a > 0 else -1]

    def _read(self, span: Window, every: int = 1) -> tuple[Array, Bools]:
        read = self._read_npy if self._is_npy else self._read_raster
        return read(span, every)

    def _xy(self, column: Any, row: Any) -> tuple[Any, Any]:
        a, b, c, d, e, f = self._transform
        return a * column + b * row + c, d * column + e * row + f

    def _extent(self, window: Window) -> Box:
        top, bottom, left, right = window
        corners = [self._xy(c, r) for c in (left, right) for r in (top, bottom)]
        xs, ys = zip(*corners, strict=True)
        return (min(xs), min(ys), -np.inf, max(xs), max(ys), np.inf)

    def _look_for_undeclared(self, z: Array) -> None:
        for value in USUAL_NODATA:
            if self._nodata is None and not self._declared and np.any(z == value):
                warnings.warn(
                    f"{self._reader}: '{self.path}': cells have the value {value:g}, which usually "
                    f"means no value, but the file does not declare it; read with "
                    f"nodata := {value:g} to get NULL",
                    FileWarning,
                    stacklevel=2,
                )

    def _load_npy(self) -> Array:
        try:
            grid = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise FileError.of(self._reader, self.path, f"is no .npy array: {error}") from error
        if grid.ndim != 2 or grid.dtype.kind not in "fiu" or grid.size == 0:
            reason = f"must hold numbers in two dimensions, got {grid.dtype} of shape {grid.shape}"
            raise FileError.of(self._reader, self.path, reason)
        array: Array = grid
        return array

    def _describe_npy(self) -> None:
        self._require_band(1)
        self._height, self._width = self._load_npy().shape
        self._block = (1, self._width)
        self._transform = (1.0, 0.0, 0.0, 0.0, -1.0, float(self._height))
        self._declared = False
        self.type = str(self._load_npy().dtype)

    def _read_npy(self, window: Window, every: int = 1) -> tuple[Array, Bools]:
        top, bottom, left, right = window
        values = np.asarray(self._load_npy()[top:bottom:every, left:right:every])
        return values, np.isnan(values) | self._is_nodata(values)

    def _dataset(self, *, overviews: bool = True) -> AbstractContextManager[Any]:
        return opened(self._reader, self.path, overviews=overviews)

    def _describe_raster(self) -> None:
        with self._dataset() as dataset:
            self._require_band(dataset.count)
            self._height, self._width = dataset.shape
            self._block = dataset.block_shapes[self._band - 1]
            self._transform = tuple(dataset.transform)[:6]
            self.declared_nodata = dataset.nodatavals[self._band - 1]
            self._declared = self.declared_nodata is not None
            self.bands = dataset.count
            self.type = kind = dataset.dtypes[self._band - 1]
            if kind.startswith("complex"):
                reason = f"must hold real numbers, got {kind}"
                raise FileError.of(self._reader, self.path, reason)
            a, b, _, d, e, _ = self._transform
            if not (np.isfinite(self._transform).all() and a * e != b * d):
                reason = f"has no usable georeference: {self._transform}"
                raise FileError.of(self._reader, self.path, reason)
            if dataset.transform.is_identity:
                self.warnings = ["has no georeference: x and y count cells"]
            if dataset.crs:
                # GDAL recognises systems that the file describes without naming them.
                code = dataset.crs.to_epsg()
                try:
                    self.crs = crs_text.from_text(f"EPSG:{code}" if code else dataset.crs.to_wkt())
                except CrsError as error:
                    self.warnings = [*self.warnings, str(error)]

    def _read_raster(self, window: Window, every: int = 1) -> tuple[Array, Bools]:
        top, bottom, left, right = window
        what: dict[str, Any] = {
            "window": ((top, bottom), (left, right)),
            "out_shape": (-(-(bottom - top) // every), -(-(right - left) // every)),
        }
        with self._dataset(overviews=every == 1) as dataset:
            values = dataset.read(self._band, **what)
            if every > 1 and is_masked(dataset, self._band):
                missing = thinned_mask(dataset, self._band, **what) == 0
            else:
                missing = dataset.read_masks(self._band, **what) == 0
            scale, offset = dataset.scales[self._band - 1], dataset.offsets[self._band - 1]
        missing |= np.isnan(values) | self._is_nodata(values)
        return values if (scale, offset) == (1.0, 0.0) else values * scale + offset, missing

    def _require_band(self, count: int) -> None:
        if not 1 <= self._band <= count:
            message = (
                f"{self._reader}: band must be 1 to {count} for '{self.path}', got {self._band}"
            )
            raise ValueError(message)

    def _is_nodata(self, values: Array) -> Bools:
        """Compare in the type of the values: -3.4e38 as a double is no single."""
        if self._nodata is None:
            return np.zeros(values.shape, np.bool_)
        value = self._nodata
        if values.dtype.kind == "f":
            with np.errstate(over="ignore"):
                value = values.dtype.type(value)
            if np.isinf(value) and not np.isinf(self._nodata):
                value = np.nan  # more than the type holds: no cell has it
        found: Bools = np.equal(values, value)
        return found


def _meet(a: Box, b: Box) -> bool:
    return all(a[k] <= b[k + 3] and b[k] <= a[k + 3] for k in range(3))
