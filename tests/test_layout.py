"""The layout is a promise: one name, one glob."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import spatialq
from spatialq.database.connection import macros, sql_functions
from spatialq.functions.catalogue import catalogue

ROOT = Path(__file__).parents[1]


def test_every_function_has_all_its_places():
    assert "owm_ground" in catalogue()
    for name, function in catalogue().items():
        assert function.name == name
        for place in (
            f"udfs/{function.folder}/cpu.py",
            f"udfs/{function.folder}/README.md",
            f"sql/{name}.sql",
            f"tests/{name}/cases.py",
            f"tests/{name}/oracle.py",
            f"benchmarks/{name}.py",
            f"docs/{name}.md",
        ):
            assert (ROOT / place).exists(), place


def test_every_package_is_in_the_wheel():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {path.parent.relative_to(ROOT) for top in ("spatialq", "sql", "udfs")
               for path in (ROOT / top).rglob("*.py")}  # fmt: skip
    dotted = {".".join(folder.parts) for folder in folders}
    expected = {name if name.startswith("spatialq") else f"spatialq.{name}" for name in dotted}
    assert set(settings["packages"]) == expected


def test_every_macro_is_found_and_documented():
    statements = sum(
        path.read_text().count("CREATE OR REPLACE MACRO") for path in (ROOT / "sql").glob("*.sql")
    )
    assert len(macros("lists")) == statements > 8
    for macro in macros("lists"):
        assert "example: " in macro.comment, macro.name


def test_every_function_is_registered_once():
    names = [function.name for function in sql_functions("native")]
    assert len(names) == len(set(names))


def test_the_public_names_exist():
    for name in spatialq.__all__:
        # a module of the same name would take the function's place once it is imported
        assert not isinstance(getattr(spatialq, name), ModuleType), name
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        spatialq.conect  # noqa: B018


@pytest.mark.parametrize("statement", ["import spatialq", "import spatialq.cli.main"])
def test_importing_is_light(statement):
    """Nothing heavy before it is needed, and no GPU library at all."""
    heavy = "{'cupy', 'numba', 'pyarrow', 'duckdb', 'ifcopenshell', 'laspy', 'rasterio', 'pyproj'}"
    code = f"import sys; {statement}; print({heavy} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "set()", result.stdout + result.stderr


def test_a_query_of_tables_imports_no_readers_libraries():
    """A new process of `spatialq sql` answers in half the time without them."""
    code = (
        "import sys\n"
        "sys.argv = ['spatialq', 'sql', 'SELECT 1']\n"
        "from spatialq.cli.main import main\n"
        "main()\n"
        "heavy = {'pandas', 'pyarrow.dataset', 'pyarrow.compute', 'numba'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.splitlines()[-1:] == ["[]"], result.stdout + result.stderr


def test_nothing_of_ours_is_imported_under_other_peoples_names():
    assert not {"udfs", "sql"} & set(sys.modules)


def test_the_readme_gives_the_two_commands_and_the_demos_queries():
    from spatialq.demo.run import queries

    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme
    shown = [query for _, query in queries() if query.strip() in readme]
    assert len(shown) >= 3, "the README shows queries that the demo runs"


def test_the_changelog_has_a_section_for_each_version():
    changes = (ROOT / "CHANGES.md").read_text(encoding="utf-8")
    first, *released = re.findall("^## (.*)$", changes, re.MULTILINE)
    assert first == "[Unreleased]"
    for heading in released:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading), heading
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall("^### (.*)$", changes, re.MULTILINE)) <= kinds
