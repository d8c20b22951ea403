"""The figures that `spatialq calibrate` measured, in a file of the user's cache folder.

There is one for each machine (processor, cores, GPU) and version of spatialq, so that a folder that
several machines share has one for each.
"""

import json
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TypeVar

from spatialq.errors import FileError, FileWarning
from spatialq.planner import devices
from spatialq.runtime import user_cache

T = TypeVar("T")
CALLER = "calibrate"


def machine() -> dict[str, Any]:
    """Say what the figures are of."""
    gpu = devices.gpu()
    return {
        "spatialq": version("spatialq"),
        "cpu": devices.cpu_name(),
        "cores": os.cpu_count() or 1,
        "gpu": gpu.name if not gpu.problem else "none",
    }


def path() -> Path | None:
    """Name the file of this machine; None where there is no folder to write to."""
    folder = user_cache.folder()
    if folder is None:
        return None
    key = sha256(json.dumps(machine(), sort_keys=True).encode()).hexdigest()[:16]
    return folder / f"rates-{key}.json"


def load(read: Callable[[Mapping[str, Any]], T]) -> T | None:
    """Read the figures of this machine; None where there are none, or, with a warning, no use.

    Parameters
    ----------
    read : callable
        Makes figures of what is in the file, or raises.
    """
    place = path()
    if place is None or not place.exists():
        return None
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        if found["machine"] != machine():
            reason = "are of another machine or version"
        else:
            return read(found["rates"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"cannot be read ({type(error).__name__}: {error})"
    message = (
        f"{CALLER}: the figures in '{place}' {reason}: those of the package are used; "
        "`spatialq calibrate` measures again"
    )
    warnings.warn(message, FileWarning, stacklevel=2)
    return None


def save(figures: Mapping[str, Any]) -> Path:
    """Write the figures of this machine, so that the file is there as a whole or not at all.

    Raises
    ------
    FileError
        If there is no folder to write to, or it is full.
    """
    place = path()
    if place is None:
        folder = os.environ.get("SPATIALQ_CACHE_DIR", "the user's cache")
        raise FileError.of(CALLER, folder, "is no folder that can be written to")
    text = json.dumps({"machine": machine(), "rates": figures}, indent=1)
    partial = None
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=place.parent, prefix=".rates-", delete=False
        ) as file:
            partial = Path(file.name)
            file.write(text)
        partial.replace(place)
    except OSError as error:
        if partial is not None:
            with suppress(OSError):
                partial.unlink()
        raise FileError.of(CALLER, place, f"cannot be written: {error.strerror}") from error
    return place
