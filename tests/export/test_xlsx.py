"""Sheets of Excel, read back by openpyxl."""

import datetime as dt
import math

import openpyxl
import pytest

import spatialq
from spatialq.database.table_files import write_table
from spatialq.export import xlsx


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        yield con


def sheet_of(path):
    (sheet,) = openpyxl.load_workbook(path).worksheets
    return sheet


def test_values_are_what_they_were(con, tmp_path):
    query = """
        SELECT '=1+1' AS formula, 'http://example.org' AS url, '007' AS digits, ' ' AS blank,
            ['a_open', 'b_open'] AS flags, [1, NULL, 3] AS numbers, [['x']] AS nested,
            {'a': 1} AS struct, '00000000-0000-0000-0000-00000000002a'::UUID AS id,
            'nan'::DOUBLE AS nan, '-inf'::FLOAT AS infinite, 0.1 AS decimal, 1e-300 AS small,
            9007199254740992 AS exact, 9007199254740993 AS large, 3::UTINYINT AS byte,
            true AS truth, NULL AS missing, 'POINT (1 2)'::GEOMETRY AS place,
            DATE '2024-02-29' AS day, TIMESTAMP '2026-11-23 06:30:15' AS moment,
            TIMESTAMPTZ '2026-11-23 06:30:15+02' AS zoned, DATE '1900-02-28' AS old,
            TIMESTAMP 'infinity' AS never, TIME '01:02:03' AS clock, '\\xAA\\x01'::BLOB AS bytes
    """
    path = tmp_path / "values.xlsx"
    assert write_table(con, query, path) == 1
    names, cells = sheet_of(path).iter_rows()
    found = {name.value: cell.value for name, cell in zip(names, cells, strict=True)}
    moment = dt.datetime(2026, 11, 23, 6, 30, 15)
    assert found == {
        "formula": "=1+1", "url": "http://example.org", "digits": "007", "blank": " ",
        "flags": "a_open, b_open", "numbers": "1, 3", "nested": '[["x"]]', "struct": '{"a":1}',
        "id": "00000000-0000-0000-0000-00000000002a", "nan": "nan", "infinite": "-inf",
        "decimal": 0.1, "small": 1e-300, "exact": 2**53, "large": "9007199254740993", "byte": 3,
        "truth": True, "missing": None, "place": "POINT (1 2)",
        "day": dt.datetime(2024, 2, 29), "moment": moment,
        "zoned": moment - dt.timedelta(hours=2), "old": "1900-02-28", "never": "infinity",
        "clock": "01:02:03", "bytes": "AA01",
    }  # fmt: skip
    assert {cell.data_type for cell in cells} <= {"s", "n", "b", "d"}  # "f" would be a formula


@pytest.mark.slow
def test_the_header_is_bold_stays_and_filters(con, tmp_path):
    path = tmp_path / "many.xlsx"
    query = "SELECT i, 'text ' || i AS text, i / 7 AS part FROM range(25_000) AS t(i)"
    assert write_table(con, query, path) == 25_000
    sheet = sheet_of(path)
    assert all(cell.font.b for cell in sheet[1])
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:C25001"
    rows = sheet.iter_rows(min_row=2, values_only=True)
    for k, (i, text, part) in enumerate(rows):
        assert (i, text) == (k, f"text {k}")
        assert math.isclose(part, k / 7, rel_tol=1e-15)
    assert k == 24_999


def test_no_rows_are_a_header(con, tmp_path):
    path = tmp_path / "none.xlsx"
    assert write_table(con, "SELECT 1 AS a, 'b' AS b LIMIT 0", path) == 0
    sheet = sheet_of(path)
    assert list(sheet.values) == [("a", "b")]
    assert sheet.auto_filter.ref == "A1:B1"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "SELECT 1 AS i, repeat('x', 32_768) AS long",
            "32,767 characters, got 32,768 in column 'long' of row 1",
        ),
        ("SELECT repeat('😀', 16_384) AS long", "32,767 characters, got 32,768"),
        (
            f"SELECT {', '.join(f'{k} AS c{k}' for k in range(16_385))}",
            "can have 16,384 columns, got 16,385",
        ),
        ("SELECT i FROM range(101) AS t(i)", "can have 100 rows, got more; write .parquet"),
    ],
)
def test_what_no_sheet_can_hold_is_refused(con, tmp_path, monkeypatch, query, sentence):
    monkeypatch.setattr(xlsx, "MAX_ROWS", 101)  # a million take a minute
    path = tmp_path / "full.xlsx"
    with pytest.raises(ValueError, match=sentence):
        write_table(con, query, path)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_text_and_the_last_row_fit(con, tmp_path, monkeypatch):
    monkeypatch.setattr(xlsx, "MAX_ROWS", 4)
    path = tmp_path / "full.xlsx"
    assert write_table(con, "SELECT repeat('x', 32_767) AS t FROM range(3)", path) == 3
    assert [len(text) for (text,) in sheet_of(path).iter_rows(min_row=2, values_only=True)] == [
        32_767
    ] * 3


def test_other_queries_are_sheets_of_their_own(con, tmp_path):
    path = tmp_path / "two.xlsx"
    others = {
        "sums": "SELECT sum(i) AS total FROM range(4) AS t(i)",
        "none": "SELECT 1 AS a LIMIT 0",
    }
    assert write_table(con, "SELECT i FROM range(4) AS t(i)", path, sheets=others) == 4
    found = {sheet.title: list(sheet.values) for sheet in openpyxl.load_workbook(path)}
    assert found == {"rows": [("i",), (0,), (1,), (2,), (3,)], "sums": [("total",), (6,)],
                     "none": [("a",)]}  # fmt: skip


@pytest.mark.parametrize(
    ("sheets", "name", "reason"),
    [
        ({"a/b": "SELECT 1"}, "a.xlsx", "Invalid Excel character"),
        ({"rows": "SELECT 1; SELECT 2"}, "a.xlsx", "one statement"),
        ("SELECT 1", "a.xlsx", "sheets must be queries by the names of their sheets"),
        ({"x": "SELECT 1"}, "a.csv", "sheets is for .xlsx"),
    ],
)
def test_sheets_that_cannot_be_are_refused_and_leave_nothing(con, tmp_path, sheets, name, reason):
    with pytest.raises(ValueError, match=reason):
        write_table(con, "SELECT 1 AS a", tmp_path / name, sheets=sheets)
    assert list(tmp_path.iterdir()) == []
