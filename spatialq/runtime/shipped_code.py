"""Compiled code that a wheel brings: machine code for a baseline that most processors include.

`.ci/compile.py` fills the folder before a wheel is built. A checkout has none, nor has a wheel that
is built without it, and then functions are compiled when they are called first.
"""

import functools
import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba.core import caching, config

FOLDER = Path(__file__).parents[1] / "compiled" / "cpu"
MANIFEST = "manifest.json"
"""Names the baseline, as Numba does, and has the digest of each file of the folder."""


def load(filename_base: str, stamp: bytes, key: tuple[Any, Any, Any]) -> Any:
    """Find what was compiled of a function.

    Parameters
    ----------
    filename_base : str
        The name of the function's files in a cache.
    stamp : bytes
        The digest of the sources from which it must have been made.
    key
        The key of the function in the cache of this machine: types, target and byte code.

    Returns
    -------
    tuple or None
        What Numba makes the function of; None if there is none for this processor, or if a file is
        not as it was built.
    """
    if (manifest := _manifest()) is None:
        return None
    types, (triple, *_), code = key
    with suppress(Exception):  # pickle raises many types of exceptions
        return _Files(str(FOLDER), filename_base, stamp).load(
            (types, (triple, manifest["cpu"], manifest["features"]), code)
        )
    return None


class _Files(caching.IndexDataCacheFile):  # type: ignore[misc]
    """The files of a function, which are read only if they have the digests of the manifest."""

    def _load_index(self) -> Any:
        _require_digest(Path(self._index_path))
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        _require_digest(Path(self._data_path(name)))
        return super()._load_data(name)


def _require_digest(path: Path) -> None:
    manifest = _manifest()
    if manifest is None or sha256(path.read_bytes()).hexdigest() != manifest["digests"][path.name]:
        msg = f"'{path}' is not the file that was built"
        raise ValueError(msg)


@functools.cache
def _manifest() -> dict[str, Any] | None:
    """Read the manifest; None if there is none for this processor.

    Who names a processor in the environment (`NUMBA_CPU_NAME`) wants code for that one.
    """
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return None
    try:
        manifest = json.loads((FOLDER / MANIFEST).read_bytes())
        needed = {feature[1:] for feature in manifest["features"].split(",") if feature}
        has = binding.get_host_cpu_features() if needed else {}
    except (OSError, ValueError, KeyError, RuntimeError):  # LLVM may not know the processor
        return None
    return manifest if all(has.get(feature) for feature in needed) else None
