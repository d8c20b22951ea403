"""Grids in another coordinate reference system than that of their file, by GDAL's warper.

What GDAL gets is a virtual dataset, written here: it names the one operation to use, which GDAL
would choose by itself otherwise, for each cell; and it fixes the ratio of cell sizes, so that a
value does not depend on the window that is read.
"""

import math
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from spatialq.errors import FileError
from spatialq.io import crs as crs_text
from spatialq.io.grid.gdal import is_masked, local_file, opened
from spatialq.io.grid.source import READER, GridSource
from spatialq.io.reproject import Reprojection
from spatialq.io.source import Box

BLOCK = 512
"""Cells along the sides of what is warped at once."""
MOST_CELLS = 10**10
Transform = tuple[float, float, float, float, float, float]
"""a, b, c, d, e, f: x is a * column + b * row + c, y is d * column + e * row + f."""


class WarpedGrid(GridSource):
    """A grid of square cells in another CRS, whose values are interpolated between those of a file.

    Its corners are at multiples of the resolution, so that grids of one resolution fit together.
    Where the file has no value, or does not reach, there is none.

    Parameters
    ----------
    path : path-like
    operation : Reprojection
    resolution : float, optional
        Side of a cell in units of the target's x and y; by default such that a cell is as large as
        one in the middle of the file, rounded to two digits.
    nodata, band, reader
        As for `GridSource`.

    Raises
    ------
    FileError
        If the file cannot be read, reaches outside the domain of the operation, or marks missing
        cells by a mask.
    ValueError
        If the resolution is not > 0 or gives too many cells, or `nodata` is not the value that the
        file declares.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        operation: Reprojection,
        resolution: float | None = None,
        nodata: float | None = None,
        band: int = 1,
        crs: str | None = None,
        reader: str = READER,
    ) -> None:
        self._virtual: str | None = None
        super().__init__(path, nodata=nodata, band=band, crs=crs, reader=reader)
        self.options |= {"operation": operation, "resolution": resolution}
        if self._is_npy:
            raise FileError.of(reader, path, "a .npy file cannot be reprojected: write a GeoTIFF")
        self._require_plain_nodata()
        assert self.box is not None
        box = operation.extent((*self.box[:2], 0.0, *self.box[3:5], 0.0))
        if box is None:
            reason = f"reaches outside the domain of '{operation.operation}': cut it first"
            raise FileError.of(reader, path, reason)
        side = self._side(operation) if resolution is None else resolution
        self._virtual = self._write(operation, box, self._checked(side, box))
        self._describe_raster()
        self.crs = operation.target
        self.rows = self._height * self._width
        self.box = self._extent((0, self._height, 0, self._width))
        self._nodata = None  # GDAL has seen to it

    def _dataset(self, *, overviews: bool = True) -> AbstractContextManager[Any]:
        if self._virtual is None:
            return super()._dataset(overviews=overviews)
        return opened(self._reader, self.path, virtual=self._virtual, overviews=overviews)

    def _require_plain_nodata(self) -> None:
        with self._dataset() as dataset:
            has_mask = is_masked(dataset, self._band)
        if has_mask:
            reason = (
                "marks missing cells by a mask, which reprojecting would lose: give it a nodata"
            )
            raise FileError.of(self._reader, self.path, f"{reason} value first")
        given, own = self._nodata, self.declared_nodata
        if given is not None and own is not None and not math.isnan(own) and given != own:
            message = (
                f"{self._reader}: nodata must be {own:g}, which '{self.path}' declares, where it "
                f"is reprojected, got {given:g}"
            )
            raise ValueError(message)

    def _side(self, operation: Reprojection) -> float:
        """Give the side of a square as large as a cell in the middle of the file."""
        column, row = self._width / 2, self._height / 2
        at = np.array([self._xy(column + i, row + j) for i, j in ((0, 0), (1, 0), (0, 1))])
        x, y, _ = operation(at[:, 0], at[:, 1], np.zeros(3))
        area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
        return float(f"{math.sqrt(abs(area)):.2g}")

    def _checked(self, side: float, box: Box) -> float:
        if not (math.isfinite(side) and side > 0):
            message = f"{self._reader}: resolution must be > 0, got {side}"
            raise ValueError(message)
        cells = (box[3] - box[0]) / side * ((box[4] - box[1]) / side)
        if cells > MOST_CELLS:
            message = (
                f"{self._reader}: resolution must be larger, as {side:g} makes {cells:.1g} cells "
                f"of '{self.path}'; it is in the unit of to_crs"
            )
            raise ValueError(message)
        return side

    def _write(self, operation: Reprojection, box: Box, side: float) -> str:
        """Write the virtual dataset."""
        west, north = math.floor(box[0] / side) * side, math.ceil(box[4] / side) * side
        width = max(1, math.ceil((box[3] - west) / side))
        height = max(1, math.ceil((north - box[1]) / side))
        to: Transform = (side, 0.0, west, 0.0, -side, north)
        with self._dataset() as dataset:
            scale, offset = (v[self._band - 1] for v in (dataset.scales, dataset.offsets))
            driver = dataset.driver
        kind = (
            "Float64"
            if self.type in ("float64", "int32", "uint32", "int64", "uint64")
            else "Float32"
        )
        nodata = self._nodata if self._nodata is not None else self.declared_nodata
        if nodata is None and self.type.startswith("float"):
            nodata = math.nan
        own = "" if nodata is None else f"<SrcNoDataReal>{nodata!r}</SrcNoDataReal>"
        across, along = self._ratios(operation, box, side)
        # threads are those of GDAL_NUM_THREADS: a fork, which keeps this text, has other ones
        options = {
            "INIT_DEST": "NO_DATA",
            "XSCALE": across,
            "YSCALE": along,
        }
        named = "".join(f'<Option name="{k}">{v}</Option>' for k, v in options.items())
        factor = 1.0 if operation.moves_heights else operation.z_factor
        return f"""<VRTDataset rasterXSize="{width}" rasterYSize="{height}"
 subClass="VRTWarpedDataset"><GeoTransform>{_gdal(to)}</GeoTransform>
<VRTRasterBand dataType="{kind}" band="1" subClass="VRTWarpedRasterBand">
<NoDataValue>nan</NoDataValue><Scale>{scale * factor!r}</Scale><Offset>{offset * factor!r}</Offset>
</VRTRasterBand><BlockXSize>{BLOCK}</BlockXSize><BlockYSize>{BLOCK}</BlockYSize>
<GDALWarpOptions><ResampleAlg>Bilinear</ResampleAlg><WorkingDataType>{kind}</WorkingDataType>{named}
<SourceDataset relativeToVRT="0">{escape(self._named(driver))}</SourceDataset>
<Transformer><GenImgProjTransformer>
<SrcGeoTransform>{_gdal(self._transform)}</SrcGeoTransform>
<SrcInvGeoTransform>{_gdal(_inverse(self._transform))}</SrcInvGeoTransform>
<DstGeoTransform>{_gdal(to)}</DstGeoTransform>
<DstInvGeoTransform>{_gdal(_inverse(to))}</DstInvGeoTransform>
<ReprojectTransformer><ReprojectionTransformer>
<SourceSRS>{escape(crs_text.to_wkt(operation.source))}</SourceSRS>
<TargetSRS>{escape(crs_text.to_wkt(operation.target))}</TargetSRS>
<Options>
<Option key="COORDINATE_OPERATION">{escape(operation.pipeline_in_axis_order)}</Option></Options>
</ReprojectionTransformer></ReprojectTransformer></GenImgProjTransformer></Transformer>
<BandList><BandMapping src="{self._band}" dst="1">{own}<DstNoDataReal>nan</DstNoDataReal>
</BandMapping></BandList></GDALWarpOptions></VRTDataset>"""

    def _named(self, driver: str) -> str:
        """Name the file so that the driver reads it that was found for it, and no other one."""
        file = str(local_file(self._reader, self.path))
        if driver == "GTiff":
            return file  # its first bytes are those of no other
        if "?" in file:
            reason = "cannot be reprojected while there is a ? in its name: rename it"
            raise FileError.of(self._reader, self.path, reason)
        return f"vrt://{file}?if={driver}"

    def _ratios(self, operation: Reprojection, box: Box, side: float) -> tuple[float, float]:
        """Give how many new cells are as wide, and as high, as one of the file, in its middle.

        Of coarser cells GDAL averages as many of the file's as they cover.
        """
        middle = (box[0] + box[3]) / 2, (box[1] + box[4]) / 2
        at = np.add(middle, np.array([[0, 0], [side, 0], [0, side]]))
        x, y, _ = operation(at[:, 0], at[:, 1], np.zeros(3), inverse=True)
        a, b, c, d, e, f = _inverse(self._transform)
        column, row = a * x + b * y + c, d * x + e * y + f
        return tuple(  # type: ignore[return-value]
            1 / float(np.hypot(v[1] - v[0], v[2] - v[0])) for v in (column, row)
        )


def _inverse(transform: Sequence[float]) -> Transform:
    a, b, c, d, e, f = transform
    n = a * e - b * d
    return e / n, -b / n, (b * f - c * e) / n, -d / n, a / n, (c * d - a * f) / n


def _gdal(transform: Sequence[float]) -> str:
    """Write a transformation as GDAL orders its numbers."""
    a, b, c, d, e, f = transform
    return ", ".join(repr(float(value)) for value in (c, a, b, f, d, e))
