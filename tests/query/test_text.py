"""The SQL of queries is what a person would write, and gives the rows of it."""

import pytest

from .golden import GOLDEN

pytestmark = pytest.mark.slow

BY_HAND = {
    "ground": """
        FROM (FROM read_las('tile.laz') WHERE x BETWEEN 650010 AND 650030
              AND y BETWEEN 5600010 AND 5600030) AS p
        JOIN (WITH part AS (FROM read_las('tile.laz') WHERE x BETWEEN 650010 AND 650030
              AND y BETWEEN 5600010 AND 5600030)
              FROM classify_ground('part', object_width := 40)) USING (point_id)
        WHERE height > 2""",
    "ground_and_planes": """
        SELECT p.*, g.height, g.is_ground, g.margin, q.plane_id, q.distance
        FROM points AS p JOIN classify_ground('points') AS g USING (point_id)
        JOIN plane_points('points', phi_num := 45) AS q USING (point_id)""",
    "ground_twice": """
        FROM points JOIN classify_ground('points', cell_size := 0) USING (point_id)""",
    "heights": """
        SELECT is_ground, count(*), max(height) FROM classify_ground('points') GROUP BY 1""",
    "external": """
        FROM elements_where('IfcWall, Pset_WallCommon.IsExternal=TRUE, material=/.*block/')
        WHERE volume > 1""",
    "several_conditions": "FROM points WHERE (z > 101 OR x < 1) AND y > 0 AND z <= 200",
    "columns_made": "SELECT point_id, x, y, 2 * z AS z, true AS high FROM points WHERE z > 100",
    "walls_that_touch": """
        SELECT name FROM elements WHERE is_a(ifc_class, 'IfcWall') AND global_id IN (
            SELECT r.a FROM spatial_relations('elements', 'elements') AS r
            JOIN elements AS s ON s.global_id = r.b
            WHERE r.relation = 'touch' AND is_a(s.ifc_class, 'IfcSlab'))""",
    "near_doors": """
        SELECT p.* FROM closer_than('elements', 'elements', 0.5) AS p
        JOIN elements AS e ON e.global_id = p.a WHERE e.ifc_class = 'IfcDoor'""",
    "features": "FROM pops_features('hill.tif', scales := [20], steps := [4], example_scale := 20)",
}


@pytest.mark.parametrize("chain", GOLDEN, ids=lambda chain: chain.__name__)
def test_the_text_is_that_of_a_person(site, chain):
    assert chain(site).sql() == GOLDEN[chain]


def sorted_rows(relation):
    return sorted(map(str, relation.fetchall()))


@pytest.mark.parametrize("chain", GOLDEN, ids=lambda chain: chain.__name__)
def test_the_rows_are_those_of_the_text(site, chain):
    assert sorted_rows(chain(site)) == sorted_rows(site.sql(GOLDEN[chain]))


@pytest.mark.parametrize("name", BY_HAND)
def test_the_rows_are_those_of_other_sql(site, name):
    chain = next(each for each in GOLDEN if each.__name__ == name)
    query = chain(site)
    expected = site.sql(BY_HAND[name])
    assert query.count() > 0
    assert sorted(query.columns) == sorted(expected.columns) or name == "heights"
    if name != "heights":  # names of files are those of their readers
        columns = ", ".join(f'"{each}"' for each in query.columns if each != "file_name")
        query, expected = query.select(columns), expected.select(columns)
    assert sorted_rows(query) == sorted_rows(expected)
