"""Reads several IFC files at once, and remembers the models read last, in memory and on disk."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spatialq.errors import FileError
from spatialq.io.files import require_file
from spatialq.io.ifc import disk_cache
from spatialq.io.ifc.columns import Geometry
from spatialq.io.ifc.guard import READER
from spatialq.io.ifc.model import PRODUCT_SECONDS, IfcModel, read_model
from spatialq.io.source import Progress
from spatialq.runtime import forks
from spatialq.runtime.extras import require
from spatialq.runtime.threads import Pool, n_threads


def read_models(
    paths: Sequence[Path],
    *,
    geometry: Geometry,
    product_seconds: float = PRODUCT_SECONDS,
    progress: Progress | None = None,
) -> list[IfcModel]:
    """Read several files at once, each as `read_model` does, from the caches where they have them.

    Parameters
    ----------
    paths : sequence of Path
    geometry, product_seconds
        See `read_model`.
    progress : callable, optional
        Called with a file, the meshes that are done, and all (0 while that is not known); from
        several threads if there are several files.

    Raises
    ------
    FileError
        If one of them cannot be read.
    """
    cores = n_threads()
    share = max(1, cores // len(paths)) if paths else 1
    cancel = threading.Event()

    def one(path: Path) -> IfcModel:
        def report(done: int, total: int, _: str) -> None:
            if progress is not None:
                progress(path, done, total)

        return CACHE.read(
            path,
            geometry=geometry,
            product_seconds=product_seconds,
            workers=share,
            cancel=cancel,
            progress=report,
        )

    if len(paths) == 1:
        return [one(paths[0])]
    with Pool(cores, thread_name_prefix="spatialq-ifc-file") as pool:
        try:
            return list(pool.map(one, paths))
        except BaseException:  # a bad file, or Ctrl-C: do not finish the others first
            cancel.set()
            raise


@dataclass
class Cache:
    """The models read last, so that several queries of one file run its geometry once.

    Parameters
    ----------
    max_bytes : int
        The oldest go when the models take more memory.
    """

    max_bytes: int = 1 << 30
    _models: OrderedDict[tuple[Any, ...], IfcModel] = field(default_factory=OrderedDict)
    _locks: dict[tuple[Any, ...], threading.Lock] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=forks.lock)

    def read(
        self, path: Path, *, geometry: Geometry, product_seconds: float, **options: Any
    ) -> IfcModel:
        """Give the model of a file; a file that has changed is read again.

        In memory a file is known by its path, size and date, on disk by its content.

        Raises
        ------
        FileError
            If it cannot be read, changes meanwhile, or needs an extra that is not installed.
        """
        require_file(READER, path)
        require("ifc", READER, path)
        state = state_of(path)
        key = (str(path), str(path.absolute()), state, product_seconds)
        with self._guard:
            lock = self._locks.setdefault(key, forks.lock())
        with lock:  # a second caller for the same file waits and finds the result
            with self._guard:
                model = self._models.get(key)
                if model is not None and geometry in (model.geometry, "none"):
                    self._models.move_to_end(key)
                    return model if geometry == model.geometry else model.without_meshes()
            digest = disk_cache.digest_of(path)
            model = None if digest is None else disk_cache.get(digest, path, geometry)
            if model is None:
                model = read_model(
                    path, geometry=geometry, product_seconds=product_seconds, **options
                )
                # Several processes read the file: what they saw may not be the same.
                if state_of(path) != state:
                    raise FileError.of(READER, path, "changed while it was read; read it again")
                if digest is not None:
                    disk_cache.put(digest, model)
            self._keep(key, model)
            return model

    def _keep(self, key: tuple[Any, ...], model: IfcModel) -> None:
        with self._guard:
            self._models[key] = model
            self._models.move_to_end(key)
            total = sum(kept.nbytes for kept in self._models.values())
            while total > self.max_bytes and len(self._models) > 1:
                old, dropped = self._models.popitem(last=False)
                self._locks.pop(old, None)
                total -= dropped.nbytes

    def clear(self) -> None:
        """Forget all models."""
        with self._guard:
            self._models.clear()
            self._locks.clear()


def state_of(path: Path) -> tuple[int, ...] | None:
    """Give what is different when a file has changed; None if it is gone."""
    try:
        now = path.stat()
    except OSError:
        return None
    return now.st_ino, now.st_mtime_ns, now.st_size


CACHE = Cache()
