"""Builds the extension of DuckDB; everything else is in pyproject.toml.

The extension is a shared library with a footer that DuckDB reads before it loads it. It is
optional: without a C compiler the package is built without it, and works with lists instead.
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

FOLDER = Path("spatialq/database/native")
NAME = "spatialq.database.native.spatialq"
COMPILED = Path("spatialq/compiled/cpu")
API_VERSION = "v1.2.0"  # of DuckDB's stable C interface, as in duckdb_api.h
MAGIC = b"\x00\x93\x04\x10duckdb_signature\x80\x04"
OPTIMISED = ["/O2"] if sys.platform == "win32" else ["-O3", "-fvisibility=hidden"]


def platform_name() -> str:
    """Name this platform as DuckDB does in `PRAGMA platform`."""
    system = {"darwin": "osx", "win32": "windows"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    return f"{system}_{'arm64' if machine in ('arm64', 'aarch64') else 'amd64'}"


def footer() -> bytes:
    """Write what says to DuckDB which interface, version and platform the library is made for."""
    fields = ["", "", "", "C_STRUCT", "1", API_VERSION, platform_name(), "4"]
    return MAGIC + b"".join(field.encode().ljust(32, b"\0") for field in fields) + bytes(256)


class BuildExtension(build_ext):
    """Build the library under the name that DuckDB wants, with its footer."""

    def get_ext_filename(self, fullname: str) -> str:
        """Name the file; DuckDB finds the function to call by it."""
        return str(Path(*fullname.split(".")).with_suffix(".duckdb_extension"))

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """Export what the sources say, no module of Python."""
        return []

    def build_extension(self, ext: Extension) -> None:
        """Build, and append the footer."""
        super().build_extension(ext)
        path = Path(self.get_ext_fullpath(ext.name))
        library = path.read_bytes()
        if MAGIC not in library[-600:]:
            path.write_bytes(library + footer())


class PlatformWheel(bdist_wheel):
    """A wheel for a platform and any Python 3: the library does not use Python's interface.

    With compiled code of `.ci/kernels.py`, it is for the minor version of Python that made that.
    """

    def get_tag(self) -> tuple[str, str, str]:
        """Name what the wheel is for."""
        python, _, platform_tag = super().get_tag()
        return (python if COMPILED.exists() else "py3", "none", platform_tag)


setup(
    ext_modules=[
        Extension(
            NAME,
            sources=[str(FOLDER / name) for name in ("collect.c", "results.c", "extension.c")],
            depends=[str(path) for path in FOLDER.glob("*.h")],
            extra_compile_args=OPTIMISED,
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildExtension, "bdist_wheel": PlatformWheel},
)
