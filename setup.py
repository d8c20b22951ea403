"""Builds the extension of DuckDB; everything else is in pyproject.toml.

The extension is a shared library with a footer that DuckDB reads before it loads it. It is
optional: without a C compiler the package is built without it, and works with lists instead.
"""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FOLDER = Path("spatialq/database/native")
NAME = "spatialq.database.native.spatialq"
COMPILED = Path("spatialq/compiled/cpu")
PAGE = Path("spatialq/serve/page/app.js")
PAGE_SOURCES = Path("page")  # absent from an sdist, which has the page itself if it was built
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


def build_page() -> None:
    """Bundle the page of `spatialq view`, where npm is there and the page is not or is old.

    The package is complete without it but for that command, which says what is missing.
    """
    npm = shutil.which("npm")
    sources = [*PAGE_SOURCES.glob("*.*"), *PAGE_SOURCES.glob("src/*")]
    if npm is None or not sources:
        return
    if PAGE.exists() and PAGE.stat().st_mtime >= max(each.stat().st_mtime for each in sources):
        return
    command = [npm, "run", "--silent", "--prefix", str(PAGE_SOURCES), "page"]
    if subprocess.run(command, check=False).returncode:
        sys.stderr.write("the page of `spatialq view` was not built: npm failed\n")


class BuildPython(build_py):
    """Copy the modules and their data, with the page."""

    def run(self) -> None:
        """Build the page before its files are looked for."""
        build_page()
        self.__dict__.pop("data_files", None)  # egg_info may have listed them before
        super().run()


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
    cmdclass={
        "build_ext": BuildExtension,
        "build_py": BuildPython,
        "bdist_wheel": PlatformWheel,
    },
)
