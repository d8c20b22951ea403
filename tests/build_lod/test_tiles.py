"""Clouds built tile by tile are as those built at once."""

import pytest
from spatialq.udfs.build_lod import UDF, Options, cpu, tiles
from spatialq.udfs.build_lod.door import enter

from spatialq.udf import Lists, Text

from .cases import CASES
from .test_oracle import STRATEGIES

CARRIED = ("red", "green", "blue", "intensity", "classification")


def rows(table):
    """Rows of a table by the names of their nodes, in which nothing is left of the order."""
    n = len(table["level"])
    plain = {}
    for name, column in table.items():
        if isinstance(column, Text):
            plain[name] = [None if code < 0 else column.names[code] for code in column.codes]
        elif isinstance(column, Lists):
            parts = zip(column.offsets[:-1], column.offsets[1:], strict=True)
            plain[name] = [
                {field: values[a:b].tolist() for field, values in column.columns.items()}
                for a, b in parts
            ]
        else:
            plain[name] = column.tolist()
        assert len(plain[name]) == n
    found = {plain["node"][k]: {name: plain[name][k] for name in plain} for k in range(n)}
    assert len(found) == n
    return found


def tiled(columns, options, budget):
    cloud = enter(*(columns[name] for name in (*"xyz", "point_id", *CARRIED)))
    return tiles.run(cloud, options, cpu.build, budget)


def assert_same_rows(found, expected):
    found, expected = rows(found), rows(expected)
    assert found.keys() == expected.keys()
    for name, row in expected.items():
        assert found[name] == row, name


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("case", CASES)
def test_tiles_are_joined_to_the_tree_of_one_build(case, strategy):
    columns, chosen = CASES[case]
    options = Options(strategy=strategy, **chosen)
    whole = UDF.kernel("cpu")(**columns, options=options)
    kinds = [each.dtype for each in whole["samples"].columns.values()]
    for budget in (1, 7, 100, 5000):
        found = tiled(columns, options, budget)
        assert_same_rows(found, whole)
        assert [each.dtype for each in found["samples"].columns.values()] == kinds
