"""A laser scan of the ground floor of the model house while it is built, with its truth."""

from pathlib import Path

import numpy as np

from spatialq.demo import scanner
from spatialq.demo.house_scan import write_las
from spatialq.demo.scanner import Change

MOVED, MISSING, HIDDEN = "wall east 0", "column", "conduit"
"""What was built off its place, what was not built, and what nobody sees, since it is in a wall."""
MOVEMENT = (0.03, 0.0, 0.0)
PALLET = (6.2, 1.0, 0.0), (7.0, 1.6, 0.9)
"""Metres: lower and upper corner of a thing that stands there and is in no model."""
STATIONS = ((2.0, 1.2, 1.6), (3.5, 5.8, 1.6), (7.4, 2.6, 1.6), (7.4, 6.0, 1.6))
"""Metres: where the scanner stood."""
BEAMS = 40_000


def write_site(path: str | Path, model: str | Path, *, seed: int = 7) -> None:
    """Simulate the scan, and write it as LAS 1.4 in metres, in the model's coordinates.

    Parameters
    ----------
    path
        File to write, ``.laz``, or ``.las`` for an uncompressed one.
    model
        The house, as `write_house` writes it.
    seed
        Of the noise.
    """
    from spatialq.data.meshes import Meshes
    from spatialq.io.ifc.cache import read_models
    from spatialq.workflows.tiles_elements import NOT_DRAWN, meshes_of_table

    elements = read_models([Path(model)], geometry="auto")[0].tables["elements"]
    names = elements["name"].to_pylist()
    is_built = [kind not in NOT_DRAWN for kind in elements["ifc_class"].to_pylist()]
    elements = elements.filter(is_built)
    names = [name for name, each in zip(names, is_built, strict=True) if each]
    changes = {names.index(MOVED): Change(MOVEMENT), names.index(MISSING): Change(is_missing=True)}
    scan = scanner.scan(
        meshes_of_table(elements), STATIONS, changes=changes, beams=BEAMS, seed=seed,
        others=Meshes.of([scanner.box(*PALLET)]),
    )  # fmt: skip
    write_las(path, np.stack([scan.x, scan.y, scan.z], axis=1))
