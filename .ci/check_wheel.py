"""Build the wheel, look at what is in it, and use it in a clean environment elsewhere."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMPILED = ROOT / "spatialq" / "compiled"
PAGE = ROOT / "spatialq" / "serve" / "page"
MOST_BYTES = 12_000_000  # of the wheel, with compiled code for the processor and for GPUs
MOST_INSTALLED_BYTES = 650_000_000  # with all that it needs, without extras

USE = """
import logging, sys
from pathlib import Path
import spatialq
compiled = []
cache = logging.getLogger("spatialq.runtime.compile_cache")
cache.setLevel(logging.INFO)
cache.addFilter(lambda record: compiled.append(record.getMessage()))
assert "site-packages" in spatialq.__file__, spatialq.__file__
con = spatialq.connect()
con.execute("CREATE TABLE p AS SELECT range AS point_id, range % 97 * 1.0 AS x, "
            "range % 89 * 1.0 AS y, range % 7 * 1.0 AS z FROM range(9000)")
assert con.sql("FROM owm_ground('p')").fetchall()
rows = "function_name = 'spatialq_owm_ground_rows'"
assert con.sql(f"FROM duckdb_functions() WHERE {rows}").fetchall(), "the extension is not loaded"
assert not {"udfs", "sql", "tests"} & set(sys.modules)
Path("house.ifc").write_text("ISO-10303-21;")
try:
    con.execute("FROM read_ifc('house.ifc')")
except Exception as error:
    assert "pip install 'spatialq[ifc]'" in str(error), error
else:
    raise AssertionError("an extra is installed")
if (Path(spatialq.__file__).parent / "compiled" / "cpu").exists():
    assert not compiled, f"the wheel lacks compiled code: {compiled}"
print("the wheel works:", spatialq.__version__)
"""


def tracked() -> set[str]:
    """List the files of the repository that the wheel must have, under their names in it.

    Whatever is under version control in the packages' folders belongs to the wheel, but for the
    READMEs, which are for readers of the repository, and the C sources of the extension, which is
    in the wheel itself. It also has what `make wheel` has compiled, and the page where npm has
    bundled it.
    """
    command = ["git", "ls-files", "spatialq", "sql", "udfs"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    sources = {
        name if name.startswith("spatialq/") else f"spatialq/{name}"
        for name in listed.splitlines()
        if not name.endswith((".md", ".c", ".h"))
    }
    made = {path.relative_to(ROOT).as_posix() for path in [*COMPILED.glob("*/*"), *PAGE.glob("*")]}
    return {*sources, *made, "spatialq/database/native/spatialq.duckdb_extension"}


def main() -> None:
    """Run all checks; an AssertionError or a failing command says what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", default=ROOT, help="what to build: the checkout, or an sdist")
    parser.add_argument("--keep", type=Path, help="a folder for the wheel")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip"]
        build = [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(given.source)]
        subprocess.run(build, check=True)
        (wheel,) = Path(folder).glob("spatialq-*.whl")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
        assert wheel.stat().st_size <= MOST_BYTES, f"more than {MOST_BYTES / 1e6:.0f} MB"
        with zipfile.ZipFile(wheel) as archive:
            names = {name for name in archive.namelist() if ".dist-info/" not in name}
        outside = {name for name in names if not name.startswith("spatialq/")}
        assert not outside, f"the wheel puts more than spatialq into site-packages: {outside}"
        wanted = tracked()
        assert names == wanted, (
            f"the wheel lacks {wanted - names}, and has {names - wanted} besides"
        )

        clean = Path(folder) / "clean"
        venv.create(clean, with_pip=True)
        python = clean / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        constraints = ["--constraint", str(ROOT / "constraints.txt")]
        install = [python, "-m", "pip", "install", "--quiet", *constraints, str(wheel)]
        subprocess.run(install, check=True)
        files = (path for path in clean.rglob("*") if "__pycache__" not in path.parts)
        size = sum(path.lstat().st_size for path in files if path.is_file())
        print(f"installed without extras: {size / 1e6:.0f} MB")
        assert size <= MOST_INSTALLED_BYTES, f"more than {MOST_INSTALLED_BYTES / 1e6:.0f} MB"
        empty = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "cache")}
        subprocess.run([python, "-c", USE], check=True, cwd=folder, env=empty)
        subprocess.run([clean / python.parent.name / "spatialq", "devices"], check=True, cwd=folder)
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(wheel, given.keep)


if __name__ == "__main__":
    main()
