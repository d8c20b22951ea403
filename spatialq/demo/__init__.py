"""The generated world of the demo: a village as a laser scan, one of its houses as a model.

That house has scans of its own, as it was built and while it is built, in the coordinates of the
model.
"""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from spatialq.demo.house import write_house
from spatialq.demo.house_plan import HouseTruth, house_truth
from spatialq.demo.house_scan import write_scan
from spatialq.demo.house_site import write_site
from spatialq.demo.scene import build_scene
from spatialq.demo.village import VillageTruth, write_village
from spatialq.runtime.extras import require

__all__ = ["HouseTruth", "VillageTruth", "World", "write_house", "write_village", "write_world"]

VERSION = 3  # of the generator: a higher one writes existing files anew

Truth = TypeVar("Truth")


class World(NamedTuple):
    """The files of the demo world and the truth about them."""

    las: Path
    ifc: Path
    scan: Path
    site: Path
    village: VillageTruth
    house: HouseTruth


def write_world(folder: str | Path, *, n_points: int = 2_500_000, seed: int = 7) -> World:
    """Write the village, the house and two scans of it unless they are there already.

    These are ``village.laz``, ``house.ifc``, ``house.laz`` and ``site.laz``.

    A file ``world.json`` beside them says what they were made with; where it does not fit, they
    are written anew. Each file appears whole or not at all.

    Parameters
    ----------
    folder
        Made where it does not exist.
    n_points, seed
        See `write_village`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = "village.laz", "house.ifc", "house.laz", "site.laz"
    las, ifc, scan, site = (folder / name for name in names)
    stamp = folder / "world.json"
    recipe = {"version": VERSION, "n_points": n_points, "seed": seed}
    require("ifc", "demo", ifc)
    is_whole = all(path.exists() for path in (las, ifc, scan, site))
    if is_whole and (made := _read(stamp)).get("recipe") == recipe:
        points = {int(code): count for code, count in made["points"].items()}
        return World(las, ifc, scan, site, VillageTruth(points, build_scene(seed)), house_truth())
    stamp.unlink(missing_ok=True)
    village = _replace(las, lambda path: write_village(path, n_points=n_points, seed=seed))
    house = _replace(ifc, write_house)
    _replace(scan, write_scan)
    _replace(site, lambda path: write_site(path, ifc))
    text = json.dumps({"recipe": recipe, "points": village.points}, indent=1)
    _replace(stamp, lambda path: path.write_text(text, encoding="utf-8"))
    return World(las, ifc, scan, site, village, house)


def _read(stamp: Path) -> dict[str, dict[str, int]]:
    try:
        content: dict[str, dict[str, int]] = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content


def _replace(path: Path, write: Callable[[Path], Truth]) -> Truth:
    """Write a file under another name and move it to its place when it is complete."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    os.close(handle)
    partial = Path(name)
    try:
        truth = write(partial)
        partial.chmod(0o644)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return truth
