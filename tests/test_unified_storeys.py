"""Storeys of several models under one name: by their elevations, or where elements are."""

import pytest

import spatialq

from .io.ifc_models import Builder


def model(tmp_path, name, unit, storeys):
    """Write a model with a wall of 2.5 m in each storey, at its height above it."""
    builder = Builder(unit=unit)
    for storey, elevation, height in storeys:
        builder.storey_at(storey, elevation)
        builder.add("IfcWall", f"{name} {storey}", [builder.box((0, 0, height), (4, 0.2, 2.5))])
    return builder.write(tmp_path / f"{name}.ifc")


@pytest.mark.slow
def test_storeys_of_several_models_are_those_of_most(tmp_path):
    paths = [
        model(tmp_path, "a", "metre", [("EG", 0.0, 0.0), ("OG", 3.0, 3.0)]),
        model(tmp_path, "b", "millimetre", [("EG", 0.0, 0.0), ("OG", 2.82, 2.82)]),
        model(tmp_path, "c", "metre", [("Level 0", 0.1, 0.1), ("Level 1", 3.0, 3.1)]),
        # of no elevation that is true, and of all heights
        model(tmp_path, "d", "metre", [("STE1", 0.0, 3.0)]),
        model(tmp_path, "e", "metre", [("Undefined", 0.0, 5.9)]),
    ]
    with spatialq.connect() as con:
        for path in paths:
            spatialq.load(con, path)
        query = """
            SELECT parse_filename(file_name)[:1], storey, storey_unified, round(elevation, 2)
            FROM unified_storeys('elements', 'objects') ORDER BY ALL
        """
        assert con.sql(query).fetchall() == [
            ("a", "EG", "EG", 0.0),
            ("a", "OG", "OG", 3.0),
            ("b", "EG", "EG", 0.0),
            ("b", "OG", "OG", 3.0),
            ("c", "Level 0", "EG", 0.0),
            ("c", "Level 1", "OG", 3.0),
            ("d", "STE1", "OG", 3.0),
            ("e", "Undefined", "OG", 3.0),
        ]
