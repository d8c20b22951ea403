"""Optional packages: which extra of spatialq installs them, and the error where one is missing.

They are imported where they are used, behind `require` or `missing`.
"""

from importlib.util import find_spec

from spatialq.errors import FileError

EXTRAS = {
    "e57": ("E57 files need", "pye57"),
    "ifc": ("building models need", "ifcopenshell", "ifclite_geom"),
    "mcp": ("the server of an assistant needs", "mcp"),
    "notebook": ("the page in a notebook needs", "anywidget", "starlette", "uvicorn"),
    "raster": ("this format of grids needs", "rasterio"),
    "ray": ("executor 'ray' needs", "ray"),
    "s3": ("URLs of object storage need", "obstore", "fsspec"),
    "vector": ("this format of geometries needs", "pyogrio"),
    "view": ("the page needs", "starlette", "uvicorn"),
    "volume": ("volumes of common parts need", "manifold3d"),
    "xlsx": ("sheets of Excel need", "xlsxwriter"),
}
"""Of each extra what is for it, and the packages by the names under which they are imported."""


def missing(extra: str) -> str:
    """Say which package an extra would install and how; empty if all are there."""
    needs, *packages = EXTRAS[extra]
    absent = [package for package in packages if find_spec(package) is None]
    return f"{needs} {absent[0]}: pip install 'spatialq[{extra}]'" if absent else ""


def require(extra: str, caller: str, path: object) -> None:
    """Reject a file that needs an extra which is not installed; '' stands for none.

    Raises
    ------
    FileError
    """
    if extra and (reason := missing(extra)):
        raise FileError.of(caller, path, reason)
