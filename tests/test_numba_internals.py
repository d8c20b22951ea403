"""Numba has the internals that our cache derives from; a new release may not."""

import re
import tomllib
from inspect import signature
from pathlib import Path

import numba
from numba.core import caching, config

ROOT = Path(__file__).parents[1]
NUMBA_IS_OTHER = (
    "Numba {version} is not as spatialq/runtime/compile_cache.py needs it: {what}; adapt that "
    "module, then raise the upper bound of numba in pyproject.toml"
)


def require(condition, what):
    assert condition, NUMBA_IS_OTHER.format(version=numba.__version__, what=what)


def test_numba_has_the_internals_that_the_cache_derives_from(tmp_path, monkeypatch):
    """Without an import of compile_cache, which itself fails where a class is gone."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    require(hasattr(caching, "NullCache"), "numba.core.caching.NullCache is gone")
    asked = {"cache_path", "load_overload", "save_overload", "enable", "disable", "flush"}
    found = set(vars(caching.NullCache))
    require(asked <= found, f"a cache has no {sorted(asked - found)}")
    dispatcher = numba.njit(cache=True)(require)
    require(isinstance(dispatcher._cache, caching.FunctionCache), "a dispatcher's _cache is gone")
    require(hasattr(dispatcher._cache, "cache_path"), "FunctionCache.cache_path is gone")
    parameters = [*signature(caching.FunctionCache.load_overload).parameters]
    require(parameters == ["self", "sig", "target_context"], f"load_overload takes {parameters}")
    parameters = [*signature(caching.FunctionCache.save_overload).parameters]
    require(parameters == ["self", "sig", "data"], f"save_overload takes {parameters}")
    parts = dispatcher.targetctx.codegen().magic_tuple()
    require(len(parts) == 3, f"magic_tuple gives {parts}")
    double = numba.njit(lambda value: 2 * value)
    require(double(3) == 6, "a function gives another result")
    (result,) = double.overloads.values()
    for name in ("lifted", "library", "target_context", "_reduce", "_rebuild"):
        require(hasattr(result, name), f"a compiled function has no {name}")
    require(hasattr(result.library, "has_dynamic_globals"), "has_dynamic_globals is gone")


def test_the_next_release_of_numba_is_excluded():
    """Its internals may be others, and a user would get a trace instead of a result."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (requirement,) = (each for each in project["dependencies"] if each.startswith("numba"))
    assert re.fullmatch(r"numba>=0\.(\d+),<0\.(\d+)", requirement), requirement
    assert numba.__version__.startswith(re.search(r">=(0\.\d+),", requirement)[1] + ".")
