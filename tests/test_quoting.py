"""What is written into the text of a query is what DuckDB reads out of it."""

import math

import duckdb
import pytest

from spatialq.functions.sql_text import identifier, literal


@pytest.mark.parametrize(
    "value", [None, "it's", "", "a\\n'';--", 0.1, 1e-300, -3, True, ["a'b", None], (1.5, math.inf)]
)
def test_a_value(value):
    (found,) = duckdb.connect().sql(f"SELECT {literal(value)}").fetchall()[0]
    if isinstance(value, float):
        found = float(found)  # DuckDB takes 0.1 for a decimal
    assert found == (list(value) if isinstance(value, tuple) else value)


def test_not_a_number():
    (found,) = duckdb.connect().sql(f"SELECT {literal(math.nan)}").fetchall()[0]
    assert math.isnan(found)


@pytest.mark.parametrize("name", ["plain", "two words", 'a "quoted" one', "Upper.dot"])
def test_a_name(name):
    assert duckdb.connect().sql(f"SELECT 1 AS {identifier(name)}").columns == [name]
