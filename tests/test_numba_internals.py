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
    for name in ("_CacheLocator", "CompileResultCacheImpl", "FunctionCache"):
        require(hasattr(caching, name), f"numba.core.caching.{name} is gone")
    abstract = {"get_cache_path", "get_source_stamp", "get_disambiguator"}
    found = set(caching._CacheLocator.__abstractmethods__)
    require(found == abstract, f"a cache locator must define {sorted(found)}")
    cache = caching.FunctionCache
    for name in ("load_overload", "save_overload", "flush", "cache_path"):
        require(hasattr(cache, name), f"FunctionCache.{name} is gone")
    require(issubclass(cache._impl_class, caching.CompileResultCacheImpl), "_impl_class is another")
    for name in ("_load_index", "_load_data", "_data_path", "load"):
        require(hasattr(caching.IndexDataCacheFile, name), f"IndexDataCacheFile.{name} is gone")
    parameters = [*signature(caching.IndexDataCacheFile).parameters]
    expected = ["cache_path", "filename_base", "source_stamp"]
    require(parameters == expected, f"IndexDataCacheFile takes {parameters}")
    parameters = [*signature(caching.CompileResultCacheImpl.get_filename_base).parameters]
    require(parameters == ["self", "fullname", "abiflags"], f"get_filename_base takes {parameters}")
    dispatcher = numba.njit(cache=True)(require)
    require(isinstance(dispatcher._cache, cache), "a dispatcher has no FunctionCache as _cache")
    attributes = set(vars(dispatcher._cache._impl))
    expected = {"_lineno", "_locator", "_filename_base"}
    require(attributes == expected, f"a cache implementation has the attributes {attributes}")
    codegen = dispatcher.targetctx.codegen()
    key = dispatcher._cache._index_key((), codegen)
    require(len(key) == len(key[1]) == 3 and key[1] == codegen.magic_tuple(), "keys are others")
    require(dispatcher._cache._py_func is require, "a cache has no _py_func")


def test_the_next_release_of_numba_is_excluded():
    """Its internals may be others, and a user would get a trace instead of a result."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (requirement,) = (each for each in project["dependencies"] if each.startswith("numba"))
    assert re.fullmatch(r"numba>=0\.(\d+),<0\.(\d+)", requirement), requirement
    assert numba.__version__.startswith(re.search(r">=(0\.\d+),", requirement)[1] + ".")
