"""Building models in a row, and jobs on them."""

import ifcopenshell

import spatialq
from spatialq import cluster
from spatialq.demo.house import write_house
from spatialq.workflows.clash import find_clashes
from tests.io.ifc_models import Builder

HOUSES = 19
STEP = 6.3
"""Metres from house to house, which is less than a house is long: the walls of neighbours cross."""


def moved(source, target, shift):
    """Write a copy of a model in millimetres that is moved along x, in metres."""
    model = ifcopenshell.open(source)
    for placement in model.by_type("IfcLocalPlacement"):
        if placement.PlacementRelTo is None:
            was = placement.RelativePlacement
            x, y, z = was.Location.Coordinates
            at = model.create_entity("IfcCartesianPoint", (x + 1000 * shift, y, z))
            placement.RelativePlacement = model.create_entity(
                "IfcAxis2Placement3D", at, was.Axis, was.RefDirection
            )
    model.write(str(target))


def make(folder):
    """Write a row of houses, with the same GlobalIds, and a model of a pipe through all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    write_house(folder / "house_00.ifc")
    for k in range(1, HOUSES):
        moved(folder / "house_00.ifc", folder / f"house_{k:02}.ifc", k * STEP)
    builder = Builder()
    pipe = builder.add(
        "IfcPipeSegment", "pipe", [builder.box((-5.0, 3.0, 1.0), (HOUSES * STEP + 10.0, 0.1, 0.1))]
    )
    twin = builder.add("IfcPipeSegment", "twin", [builder.box((2.0, 2.5, 1.0), (0.2, 2.0, 0.2))])
    twin.GlobalId = pipe.GlobalId
    builder.write(folder / "pipes.ifc")
    return folder


def rows_of(con, query):
    """Give all rows as text, sorted: of flags and NULL, too, and of numbers every digit."""
    return sorted(map(repr, con.sql(f"FROM ({query})").fetchall()))


def of_job(folder):
    """Give the rows of a job's parts, sorted."""
    with spatialq.connect() as con:
        return rows_of(con, cluster.table(con, folder).sql_query())


def in_one_piece(paths, **options):
    """Give the rows of one call on all models, sorted."""
    with find_clashes(paths, **{"exclude": "none"} | options) as con:
        return rows_of(con, "FROM clashes")
