"""Inputs on which the planner's rates are measured, and others on which they are judged.

`FITTED` and `REPORTED` give, for a function and a size, the inputs by name: clouds of other kinds,
buildings and grids, so that what was chosen on the first is not reported on the same.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from math import ceil, sqrt
from typing import Any

import clouds
import numpy as np
import rooms
from build_lod import generated
from direction import building, prism
from plane_elements import scan, walls
from pops_features import terrain

import spatialq
from spatialq.data.grid import Grid
from spatialq.data.meshes import Meshes
from spatialq.execution.call import call
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndElementsInput, PointsAndTableInput
from spatialq.planner import log
from spatialq.planner.statistics import size_of
from spatialq.runtime.threads import n_threads
from spatialq.workflows import calibration
from spatialq.workflows.calibration_inputs import make

PLANES = ("detect_planes", "plane_points")
ELEMENTS = ("direction", "distance", "intersects_with")
GRIDS = ("contours", "pops_features", "pops_patches", "terrain_derivatives")
FUNCTIONS = tuple(catalogue())
ROWS_TO_COMPILE = 60_000
"""Above the points of a leaf of build_lod, so that all of its code is compiled."""
CHOSEN = {"distance": {"max_distance": 0.05}}
"""Options that are not the defaults."""


@dataclass(frozen=True)
class Input:
    """One call: a function, and what it gets."""

    function: str
    name: str
    arguments: dict[str, Any]
    """Of the kernel."""

    @property
    def options(self):
        return CHOSEN.get(self.function, {})

    @property
    def size(self):
        return size_of(catalogue()[self.function].inputs, self.arguments)

    @property
    def work(self):
        function = catalogue()[self.function]
        return function.output.work(self.size, function.choose(self.options))

    def kernel(self, device):
        """Run the kernel by the planner; give the entry of the log."""
        function = catalogue()[self.function]
        call(function, self.arguments, function.choose(self.options), device)
        return log.entries()[-1]

    def run(self, device):
        """Run by `spatialq.run` or one of its relatives; give the entry of the log."""
        given, options = dict(self.arguments), {"device": device, **self.options}
        if self.function in GRIDS:
            grid = given["grid"]
            spatialq.run_grid(self.function, grid.z, dx=grid.dx, dy=grid.dy, **options)
        elif self.function in ELEMENTS:
            spatialq.run_elements(self.function, **given, **options)
        else:
            spatialq.run(self.function, **given, **options)
        return log.entries()[-1]


def compile_all(functions, wanted):
    """Compile what is not in the caches, each function in a process of its own, at once."""
    folders = {catalogue()[name].folder: name for name in functions}
    tasks = [
        (device, [name], 600.0, ROWS_TO_COMPILE) for device in wanted for name in folders.values()
    ]
    with ThreadPoolExecutor(max(1, n_threads() // 2)) as pool:
        list(pool.map(lambda task: calibration.in_new_process(*task), tasks))


def columns(x, y, z):
    return {"x": x, "y": y, "z": z, "point_id": np.arange(x.size)}


@cache
def survey(n, kind="small", seed=1):
    """A cloud of a fixed extent: how dense it is depends on the number of points."""
    return clouds.make_cloud(kind, n=n, seed=seed)


@cache
def corner(n, density, seed=1):
    """A cloud of a fixed density: how wide it is depends on the number of points."""
    side = max(sqrt(n / density), 2.0)
    clouds.KINDS["corner"] = clouds.Kind(n, side, side, 500_000.0, 4_700_000.0, 0.001)
    return clouds.make_cloud("corner", seed=seed)


@cache
def scene(kind, n):
    found = rooms.SCENES[kind](n)
    return found.x, found.y, found.z


@cache
def coloured(n):
    points = generated(n)
    names = "red", "green", "blue", "intensity"
    colours = dict(zip(names, points.colour.T.copy(), strict=True))
    return columns(points.x, points.y, points.z) | colours | {"classification": None}


@cache
def prisms(n):
    return Meshes.of(building(max(n // 92, 2)))


@cache
def spread(n):
    """Elements that seldom lie above each other."""
    rng = np.random.default_rng(2)
    count = max(n // 92, 2)
    low = rng.uniform(0, (3.0 * sqrt(count), 3.0 * sqrt(count), 4), (count, 3))
    return Meshes.of([prism(each, each + rng.uniform(0.2, 3, 3), rng) for each in low])


@cache
def walled(n):
    side = max(1, round(sqrt(n / 12 / 3 / 5)))
    return walls(side, side, 5)


@cache
def scanned(function, n, bays):
    elements = walls(bays, bays, 2)
    (x, y, z), _ = scan(elements, n, np.random.default_rng(1))
    none = dict.fromkeys(catalogue()[function].inputs.attributes)
    return columns(x, y, z) | none | {"elements": elements}


@cache
def grid(n, spacing, seed):
    side = max(ceil(sqrt(n)), 80)
    return Grid(terrain(side, side, seed).z, dx=spacing, dy=spacing)


def fitted(function, n):
    """Inputs from which rates are made."""
    if function in GRIDS:
        return [Input(function, "60 m", {"grid": grid(n, 60.0, 1)})]
    if function in ELEMENTS:
        return [
            Input(function, "prisms", {"a": prisms(n), "b": None}),
            Input(function, "walls", {"a": walled(n), "b": None}),
            Input(function, "few storeys", {"a": spread(n), "b": None}),
        ]
    if isinstance(catalogue()[function].inputs, PointsAndElementsInput):
        return [Input(function, f"{bays} bays", scanned(function, n, bays)) for bays in (3, 11)]
    if isinstance(catalogue()[function].inputs, PointsAndTableInput):
        return [Input(function, "plots", make(catalogue()[function], n))]
    if function == "build_lod":
        plain = columns(*survey(n)) | dict.fromkeys(catalogue()[function].inputs.attributes)
        return [Input(function, "coloured", coloured(n)), Input(function, "survey", plain)]
    found = [
        Input(function, "survey", columns(*survey(n))),
        Input(function, "8 a square metre", columns(*corner(n, 8.0))),
    ]
    if function in PLANES:
        found.append(Input(function, "room", columns(*scene("room", n))))
    return found


def reported(function, n):
    """Inputs on which estimates and choices are judged."""
    if function in GRIDS:
        return [Input(function, "45 m", {"grid": grid(n, 45.0, 7)})]
    if function in ELEMENTS:
        mixed = Meshes.of(mixed_building(n))
        # its SQL takes two tables
        other = mixed if function in ("direction", "distance") else None
        return [Input(function, "mixed", {"a": mixed, "b": other})]
    if isinstance(catalogue()[function].inputs, PointsAndElementsInput):
        return [Input(function, "7 bays", scanned(function, n, 7))]
    if isinstance(catalogue()[function].inputs, PointsAndTableInput):
        return [Input(function, "plots", make(catalogue()[function], n + 1))]
    attributes = catalogue()[function].inputs.attributes
    found = [Input(function, "20 a square metre", columns(*corner(n, 20.0, 5)))]
    if function in PLANES:
        found.append(Input(function, "building", columns(*scene("building", n))))
    else:
        found.append(Input(function, "forest", columns(*survey(n, "forest", 3))))
    for each in found:
        each.arguments.update(dict.fromkeys(attributes))
    return found


def mixed_building(n):
    """Boxes and prisms of a building that is less crowded than `direction.building`."""
    rng = np.random.default_rng(3)
    count = max(n // 92, 2)
    side = 6.0 * sqrt(count / 15)
    low = rng.uniform(0, (side, side, 30), (count, 3))
    return [prism(each, each + rng.uniform(0.1, 2, 3), rng) for each in low]
