"""A small valid file of each format that can be read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from .io.bcf_files import write as write_bcf
from .io.formats.cloud_files import cloud, e57, lines, pcd, ply
from .io.formats.test_ept import write_ept
from .io.ifc_models import Builder
from .io.las_files import write as write_las

POINTS = 60_000
"""More than one part of a LAZ file, so that several threads decode it."""


def sample(name: str, folder: Path) -> Path:
    """Write a file of the format of a reader; one without a sample is a KeyError."""
    return SAMPLES[name](folder)


def _written(name: str, content: Callable[[], bytes]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content())
        return path

    return write


def _e57(folder: Path) -> Path:
    points = cloud(1000)
    fields = {f"cartesian{axis.upper()}": ("Float", points[axis]) for axis in "xyz"}
    return e57(folder / "a.e57", {"fields": fields})


def _raster(folder: Path) -> Path:
    import rasterio

    path = folder / "a.tif"
    heights = np.add.outer(np.arange(300.0), np.arange(400.0)).astype("f4")
    shape = {"height": 300, "width": 400, "count": 1, "dtype": "float32", "crs": "EPSG:25832"}
    place = rasterio.Affine(0.5, 0, 652_000, 0, -0.5, 5_606_000)
    tiled = {"tiled": True, "blockxsize": 128, "blockysize": 128, "compress": "deflate"}
    with rasterio.open(path, "w", driver="GTiff", transform=place, **shape, **tiled) as file:
        file.write(heights, 1)
    return path


def _ifc(folder: Path) -> Path:
    house = Builder()
    house.boxes(3)
    return house.write(folder / "a.ifc")


def _ptx() -> bytes:
    head = "50\n20\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 0 0 0\n0 1 0 0\n0 0 1 0\n5 6 7 1\n"
    points = cloud(1000)
    few = {name: points[name] for name in "xyz"} | {"i": points["curvature"]}
    return (head + lines(few)).encode()


def _xyz(columns: str = "xyz") -> dict[str, np.ndarray]:
    return {name: values for name, values in cloud(1000).items() if name in columns}


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "BCF": lambda folder: write_bcf(folder / "a.bcf"),
    "E57": _e57,
    "EPT": lambda folder: write_ept(folder / "ept", "laszip")[0],
    "IFC": _ifc,
    "LAS": lambda folder: write_las(folder / "a.laz", 7, POINTS, crs="EPSG:25832"),
    "PCD": _written("a.pcd", lambda: pcd(cloud(1000), "binary")),
    "PLY": _written("a.ply", lambda: ply(cloud(1000), "<")),
    "PTS": _written("a.pts", lambda: b"1000\n" + lines(_xyz()).encode()),
    "PTX": _written("a.ptx", _ptx),
    "Raster": _raster,
    "text": _written("a.xyz", lambda: lines(_xyz()).encode()),
}
