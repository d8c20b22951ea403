"""Imports point downwards only: the order of the layers, and what may import what."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path

from spatialq.database.sql_functions import sql_functions
from spatialq.database.writers import writers
from spatialq.functions.catalogue import catalogue, folders
from spatialq.functions.implementations import call, registered

ROOT = Path(__file__).parents[1]

LAYERS = (
    "cli",
    "serve",
    "demo",
    "cluster",
    "workflows",
    "ql4bim",
    "query",
    "database",
    "execution",
    "planner",
    "export",
    "io",
    "functions",
    "geometry",
    "data",
    "runtime",
)
"""From top to bottom. A module may import from its own layer and from those below.

`spatialq/__init__.py` and `__main__.py` are above all of them, `errors.py` is below.
"""
TOP, BOTTOM = ("spatialq", "spatialq.__init__", "spatialq.__main__"), ("spatialq.errors",)
KERNELS_USE = ("functions", "data", "geometry", "runtime")
"""The layers that the folders of `udfs` may import."""
COMPOSED_OF = {
    name: set(module.DECLARATION.uses if hasattr(module, "DECLARATION") else module.USES)
    for name, module in folders().items()
    if hasattr(module, "DECLARATION") or hasattr(module, "USES")
}
"""Functions that are compositions, as declared: their folder -> the folders that it may import."""
MAY_NAME_FUNCTIONS = ("cli", "serve", "demo", "cluster", "workflows", "ql4bim", "query")
"""The layers that may name single functions; those below treat all of them alike."""


def files() -> dict[str, Path]:
    """Name every module, `spatialq.udfs` included, and say where it is."""
    found = {}
    for top, prefix in (("spatialq", "spatialq"), ("udfs", "spatialq.udfs")):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join([prefix, *parts])] = path
    return found


FILES = files()


@cache
def tree(module: str) -> ast.Module:
    """Parse a module: in tests, as processes that run others collect these, too."""
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def imports(module: str) -> Iterator[tuple[str, int]]:
    """Give the modules of ours that a module imports, anywhere in it, with the line."""
    is_package = FILES[module].name == "__init__.py"
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            # of `from package import module` the module counts, and not the package
            wanted = [
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in FILES else base
                for alias in node.names
            ]
        else:
            continue
        for name in wanted:
            while name and name not in FILES:
                name = name.rpartition(".")[0]
            if name and name != module:
                yield name, node.lineno


@cache
def imported(module: str) -> list[tuple[str, int]]:
    """List what a module imports."""
    return sorted(set(imports(module)))


def named(module: str) -> Iterator[tuple[str, int]]:
    """Give the modules of ours that strings name, such as "spatialq.io.files:find", with the line.

    Docstrings and comments are exempt.
    """
    documentation = set(docstrings(tree(module)))
    for node in ast.walk(tree(module)):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        found = re.fullmatch(r"(spatialq(?:\.\w+)+)\.?(?::\w*)?", node.value)
        if found and node not in documentation:
            name = found[1]
            while name not in FILES:
                name = name.rpartition(".")[0]
            if name not in TOP and name != module:
                yield name, node.lineno


def all_named(module: str) -> list[tuple[str, int]]:
    """Give what a module imports, and what it has imported later by a string."""
    return [*imported(module), *named(module)]


def height(module: str) -> int:
    """Height of a module that is no kernel: 0 is the bottom."""
    if module in TOP:
        return len(LAYERS) + 1
    if module in BOTTOM:
        return 0
    return len(LAYERS) - LAYERS.index(module.split(".")[1])


def folder(module: str) -> str | None:
    """Name the function whose folder a module is in; '' for `spatialq.udfs` itself."""
    parts = module.split(".")
    return (parts[2] if len(parts) > 2 else "") if parts[1:2] == ["udfs"] else None


def place(module: str, line: int) -> str:
    return f"{FILES[module].relative_to(ROOT)}:{line}"


def test_every_module_is_in_a_layer():
    modules = [name for name in FILES if folder(name) is None and name not in (*TOP, *BOTTOM)]
    outside = [name for name in modules if name.split(".")[1] not in LAYERS]
    assert not outside
    assert {name.split(".")[1] for name in modules} == set(LAYERS)


def test_imports_point_downwards():
    """Those within functions and for type checkers, too, and those that strings name.

    Kernels are imported by name from the workflows upwards; what is below reaches them through the
    catalogue.
    """
    wrong = []
    for module in FILES:
        if folder(module) is not None:
            continue
        for name, line in all_named(module):
            if folder(name):
                is_wrong = height(module) < height(f"spatialq.{MAY_NAME_FUNCTIONS[-1]}")
            else:
                is_wrong = folder(name) is None and height(name) > height(module)
            if is_wrong:
                wrong.append(f"{place(module, line)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_kernels_import_only_the_lower_layers():
    wrong = [
        f"{place(module, line)} imports {name}"
        for module in FILES
        if folder(module) is not None
        for name, line in all_named(module)
        if folder(name) is None
        and name not in BOTTOM
        and (name in TOP or name.split(".")[1] not in KERNELS_USE)
    ]
    assert not wrong, "\n".join(wrong)


def test_kernels_import_other_kernels_only_where_they_are_composed_of_them():
    wrong, used = [], set()
    for module in FILES:
        own = folder(module)
        for name, line in all_named(module) if own is not None else ():
            other = folder(name)
            if not other or other == own:
                continue
            if other in COMPOSED_OF.get(own, ()):
                used.add((own, other))
            else:
                wrong.append(f"{place(module, line)} imports {name}")
    assert not wrong, "\n".join(wrong)
    declared = {(one, other) for one, others in COMPOSED_OF.items() for other in others}
    assert used == declared, f"declared, but not imported: {sorted(declared - used)}"


def test_what_is_called_by_a_text_is_there():
    functions = sql_functions("lists") + sql_functions("native")
    called = {each.implementation for each in functions}
    called |= {each.bound[0].name for each in functions if each.implementation == "write_files"}
    writes = [each.write for each in writers() if isinstance(each.write, partial)]
    called |= {each.args[0] for each in writes if each.func is call}
    called |= {"misplaced"}  # by spatialq.execution.placement
    called |= {"query_to_view"}  # by spatialq.query.outputs
    assert {each for each in called if ":" not in each} == set(registered)
    for each in called:
        module, _, attribute = registered.get(each, each).partition(":")
        assert callable(getattr(import_module(module), attribute)), each


def test_there_are_no_import_cycles():
    """Between modules, wherever in them the import stands."""
    graph = {module: {name for name, _ in imported(module)} for module in FILES}
    found = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1][::-1]
            found.append(" -> ".join(cycle))
            graph[cycle[0]] = graph[cycle[0]] - {cycle[1]}
        else:
            break
    assert not found, "\n".join(found)


def test_nothing_below_the_workflows_names_a_function():
    """Neither by a string nor by an import; comments and docstrings are exempt."""
    names = set(catalogue()) | {function.folder for function in catalogue().values()}
    ordinary = {name for name in names if "_" not in name}  # words that a sentence may have

    def named_in(text: str) -> set[str]:
        return (names - ordinary) & set(words(text)) | ordinary & {text}

    wrong = []
    for module in FILES:
        if folder(module) is not None or module in TOP or module in BOTTOM:
            continue
        if module.split(".")[1] in MAY_NAME_FUNCTIONS:
            continue
        for name, line in imported(module):
            if folder(name):
                wrong.append(f"{place(module, line)} imports {name}")
        documentation = set(docstrings(tree(module)))
        for node in ast.walk(tree(module)):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if node not in documentation and (named := named_in(node.value)):
                wrong.append(f"{place(module, node.lineno)} names {', '.join(sorted(named))}")
    assert not wrong, "\n".join(wrong)


def docstrings(parsed: ast.AST) -> Iterator[ast.AST]:
    """Give the strings that are statements: docstrings, and those behind a constant."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def words(text: str) -> list[str]:
    return "".join(sign if sign.isalnum() or sign == "_" else " " for sign in text).split()


def test_all_modules_are_looked_at():
    listed = subprocess.run(
        ["git", "ls-files", "spatialq/*.py", "udfs/*.py"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    tracked = {ROOT / path for path in listed if (ROOT / path).exists()}
    assert len(tracked) > 200
    assert set(FILES.values()) >= tracked


FORMS = """
import numpy
import spatialq.errors
from spatialq.data import grid, meshes
from spatialq.data.units import metres
from typing import TYPE_CHECKING
from . import Options, view
from .cpu import search
from ..distance import gpu

if TYPE_CHECKING:
    from spatialq.runtime.threads import n_threads

def late():
    from spatialq.planner import rates
"""


def test_all_forms_of_imports_are_seen(monkeypatch, tmp_path):
    module, path = "spatialq.udfs.direction.made_up", tmp_path / "made_up.py"
    path.write_text(FORMS)
    monkeypatch.setitem(FILES, module, path)
    assert {name for name, _ in imports(module)} == {
        "spatialq.data.grid",
        "spatialq.data.meshes",
        "spatialq.data.units",
        "spatialq.errors",
        "spatialq.planner.rates",
        "spatialq.runtime.threads",
        "spatialq.udfs.direction",
        "spatialq.udfs.direction.cpu",
        "spatialq.udfs.direction.view",
        "spatialq.udfs.distance.gpu",
    }
