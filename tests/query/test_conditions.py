"""Whatever is written as a condition is one, or is refused: it never becomes another statement."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spatialq as sq

pytestmark = pytest.mark.slow

PIECES = [
    "z", "x", '"where"', "hight", "> 1", "= 1", "AND", "OR", "NOT", "(", ")", "--", "/*", "*/", ";",
    "'", '"', "\n", "FROM t", "WHERE z = 1", "GROUP BY ALL", "LIMIT 1", "UNION", "SELECT 1", "*",
    "DROP TABLE t", "AS a", ",", "[", "]", "{", "NULL", "IN (1)", "BETWEEN 1", "CASE", "END", "$1",
    "?", "DELETE FROM t", "ORDER BY z", "'a'", "\0", "é", "::", "INT", "lambda x: x", "e'\\''",
    "$$", "#1",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map(" ".join) | st.text()
EVERY = [(i, i % 3) for i in range(9)]


@pytest.fixture(scope="module")
def rows():
    with sq.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i AS x, i % 3 AS z FROM range(9) AS r(i)")
        yield sq.table(con, "t")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS)
def test_a_text_is_a_condition_or_refused(rows, text):
    try:
        found = rows.where(text, "x < 8")
        kept = found.fetchall()
    except sq.QueryError:
        kept = []
    assert set(kept) <= set(EVERY[:8])
    assert rows.fetchall() == EVERY


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS)
def test_a_text_is_an_expression_or_refused(rows, text):
    for make in (
        lambda: rows.with_columns(new=text),
        lambda: rows.order(text),
        lambda: rows.select(text, "x AS last"),
        lambda: rows.aggregate("count(*) AS n", group=text),
    ):
        try:
            found = make()
            found.fetchall()
        except sq.QueryError:
            continue
        assert found.columns[-1] in ("new", "z", "last", "n")
    assert rows.fetchall() == EVERY
