"""The user's cache folder: `SPATIALQ_CACHE_DIR`, or where the operating system has caches."""

import os
import sys
from pathlib import Path


def folder() -> Path | None:
    """Give the folder, which is made if it is not there; None where it cannot be written."""
    given = os.environ.get("SPATIALQ_CACHE_DIR")
    try:
        path = Path(given) if given else _usual() / "spatialq"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # there may be no home folder
        return None
    return path if os.access(path, os.W_OK) else None


def _usual() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
