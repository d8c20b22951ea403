"""Run kernels on their cases and on any device, and compare what they give."""

import importlib
from dataclasses import fields, replace

import numpy as np
import shapely

from spatialq.data.cloud import Cloud
from spatialq.data.columns import Lists, Text
from spatialq.data.grid import Grid
from spatialq.data.meshes import Meshes
from spatialq.data.polygons import Polygons
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndElementsInput, PointsAndTableInput

from .host.device import HostDevice, OnDevice

WITH_ELEMENTS = [
    name for name, each in catalogue().items() if isinstance(each.inputs, PointsAndElementsInput)
]
"""Functions that take elements beside points."""
WITH_TABLE = {
    name: each.inputs for name, each in catalogue().items()
    if isinstance(each.inputs, PointsAndTableInput)
}  # fmt: skip
"""Those that take another table, with what it is."""
TABLES = {"polygons": "plots", "cloud": "before"}
"""Tables of each kind, as `put_others` makes them."""


def beside(name, elements="elements"):
    """Write the other table of a call in SQL, of which the table of points is written."""
    if name in WITH_ELEMENTS:
        return f", '{elements}'"
    return f", '{TABLES[WITH_TABLE[name].kind]}'" if name in WITH_TABLE else ""


def other_of(name, *box):
    """Give the other table of a call in Python, by its argument: a polygon or the corners of it."""
    if name not in WITH_TABLE:
        return {}
    west, south, east, north = map(float, box)
    corners = [west, east, east, west], [south, south, north, north], [0.0] * 4
    given = {"polygons": [polygon(*box)], "cloud": corners}
    return {WITH_TABLE[name].other: given[WITH_TABLE[name].kind]}


def polygon(*box):
    """Make the WKB of a box."""
    return shapely.to_wkb(shapely.box(*box), byte_order=1, flavor="iso")


def put_others(con, *box):
    """Make the tables of each kind: of one polygon, a box, and of its corners."""
    west, south, east, north = box
    con.execute(
        "CREATE TABLE before AS SELECT range AS point_id, 0.0::DOUBLE AS z, "
        f"if(range % 2 = 0, {west}, {east})::DOUBLE AS x, "
        f"if(range < 2, {south}, {north})::DOUBLE AS y FROM range(4)"
    )
    wkt = shapely.box(*box).wkt
    con.execute(f"CREATE TABLE plots AS SELECT 'box' AS polygon_id, '{wkt}'::GEOMETRY AS geometry")


def cases_of(function):
    """Import the module of a function's cases."""
    return importlib.import_module(f".{function}.cases", __package__)


def arguments_of(function, case):
    """Look up a case: what its kernel takes beside the options, and these as a mapping.

    Cases of points are pairs of points and options; the module of other cases has a function
    `arguments` that makes this of a case's name.
    """
    module = cases_of(function)
    if hasattr(module, "arguments"):
        return module.arguments(case)
    points, options = module.CASES[case]
    return columns_of(points), options


def columns_of(points):
    """Make columns of rows of point_id, x, y and z; columns stay as they are."""
    if isinstance(points, dict):
        return points
    ids, *coordinates = (np.array([p[k] for p in points]) for k in range(4))
    columns = {name: v.astype(np.float64) for name, v in zip("xyz", coordinates, strict=True)}
    return {**columns, "point_id": ids.astype(np.int64)}


def run(function, kind, arguments, **options):
    """Run the kernel of a kind; columns that a table may lack are None unless they are given."""
    declared = catalogue()[function]
    arguments = {**dict.fromkeys(getattr(declared.inputs, "attributes", {})), **arguments}
    return declared.kernel(kind)(**arguments, options=declared.choose(options))


def run_both(function, arguments, **options):
    """Run both kernels, that of the GPU first."""
    return [run(function, kind, arguments, **options) for kind in ("gpu", "cpu")]


def arrays_in(result):
    """All arrays of a result, those of texts and lists of structs under names of their own."""
    found = {}
    for name, values in result.items():
        if isinstance(values, Text):
            found |= {name: values.codes, f"names of {name}": np.array(values.names)}
        elif isinstance(values, Lists):
            found[name] = values.offsets
            found |= {f"{name}, {field}": each for field, each in values.columns.items()}
        else:
            found[name] = values
    return found


def assert_same(found, expected):
    """Compare results to the bit: columns, their order and types, and values."""
    found, expected = arrays_in(found), arrays_in(expected)
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def on_device(device, value):
    """Copy an array, a grid or meshes to the memory of a device; polygons and a reference stay."""
    if isinstance(value, Grid):
        return replace(value, z=on_device(device, value.z))
    if isinstance(value, Meshes):
        return Meshes(*(on_device(device, getattr(value, each.name)) for each in fields(value)))
    if value is None or isinstance(value, Polygons | Cloud):  # which kernels get on the host
        return value
    array = device.upload_small(np.ascontiguousarray(value))
    return array.view(OnDevice) if isinstance(device, HostDevice) else array


def on_host(device, result):
    """Copy the arrays of a result, whatever they are in, from the memory of a device."""
    return {name: device.download(values) for name, values in arrays_in(result).items()}
