"""`spatialq_refuse` and `spatialq_checked`, which fail as `error` of DuckDB does.

`error` is volatile: in a correlated subquery DuckDB evaluates what depends on it for each outer
row, so that a kernel would run as often.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from spatialq.data.columns import whole_numbers
from spatialq.database import frames
from spatialq.functions.sql_text import literal
from spatialq.io.formats import MACROS, find_reader, means_file, means_no_rows

WHOLE = r"U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?"
NUMBER = rf"{WHOLE}|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|BIGNUM"
"""The types of whole numbers, and of all, in Python's and DuckDB's regular expressions."""
TEXT = r'VARCHAR|"NULL"|JSON|ENUM\(.*\)'
"""The types of texts, and of NULL without a type."""
FIELD = "spatialq column"
"""Begins the names of fields of the struct by whose type `checked` knows columns."""
FIELDS = re.compile(rf'"{FIELD} \d+" ')


def told(absent: Sequence[str], columns: Sequence[str] = (), **names: str) -> str:
    """Write what `checked` is told of a table, the same for all of its rows.

    Parameters
    ----------
    absent : sequence of str
        Sentences about columns that the table lacks, in the order of the struct.
    columns : sequence of str
        Those that must have numbers, the first of the struct; then `names` has the `caller` and,
        as `place`, what a sentence about one of them begins with.
    """
    known = {"absent": absent, "columns": columns, **names}
    return literal(json.dumps(known, ensure_ascii=False))


def checked(
    marks: pa.ChunkedArray,
    sentences: pa.ChunkedArray,
    kinds: pa.ChunkedArray,
    values: pa.ChunkedArray,
) -> pa.Array:
    """Give true for rows of a table that a function can use, or fail with a sentence.

    The words are put together here: each expression of a statement takes DuckDB time to bind.

    Parameters
    ----------
    marks : array of str
        NULL but in the one row that is not of the table.
    sentences : array of str
        As `told` writes them.
    kinds : array of str
        The type of a struct of the columns in their order, which have the type "NULL" if absent.
    values : array of list of str
        Of the columns that must have numbers.
    """
    known, (_, *parts) = json.loads(sentences[0].as_py()), FIELDS.split(kinds[0].as_py())
    for kind, sentence in zip(parts, known["absent"], strict=True):
        if kind.startswith('"NULL"'):
            raise ValueError(sentence)
    columns = sorted(enumerate(known["columns"]), key=lambda each: each[1] != "point_id")
    for mark, row in zip(marks.to_pylist(), values.to_pylist(), strict=True):
        for k, name in columns if mark is None else ():
            _require_number(known, name, _type_in(parts[k]), row[k])
    return pa.array([True] * len(kinds))


def _type_in(part: str) -> str:
    """Give the type of a field, behind which the struct goes on or ends."""
    return part.removesuffix(", ") if part.endswith(", ") else part.removesuffix(")")


def _require_number(known: Mapping[str, str], name: str, kind: str, value: str | None) -> None:
    """Reject the value of a column that must have numbers, of ids whole ones."""
    if name != "point_id":
        if not re.fullmatch(NUMBER, kind):
            shown = "" if value is None else f", such as {value[:40]}"
            place = known["place"]
            message = f"{place} must have a column {name} of numbers, got one of type {kind}{shown}"
            raise ValueError(message)
        return
    is_whole = re.fullmatch(WHOLE, kind) is not None
    if value is not None and not (is_whole and -(2**63) <= int(value) < 2**63):
        got = "got" if is_whole else "of a type such as BIGINT, got"
        whole = whole_numbers("BIGINT")
        message = f"{known['caller']}: {name} must be {whole}, {got} {value} of type {kind}"
        raise ValueError(message)


def refuse(sentences: pa.ChunkedArray, values: pa.ChunkedArray) -> NoReturn:
    """Fail with the first sentence, and with its value if the sentence ends in a space."""
    sentence, value = sentences[0].as_py(), values[0].as_py()
    message = f"{sentence}{value}" if sentence.endswith(" ") else sentence
    raise ValueError(message)


def refuse_column(
    sentences: pa.ChunkedArray, kinds: pa.ChunkedArray, values: pa.ChunkedArray
) -> NoReturn:
    """Fail with the first sentence, and with the type and a value of the column of a wrong type.

    The words are put together here: each expression of a statement takes DuckDB time to bind.

    Parameters
    ----------
    sentences : array of str
        They end in "got ", or in the name of a table and a space.
    kinds : array of str
        The type of the column, which is "NULL" where there is none.
    values : array of str
    """
    sentence, kind, value = (each[0].as_py() for each in (sentences, kinds, values))
    lacking, other = ("none", "one") if sentence.endswith("got ") else ("without it", "with one")
    got = lacking if kind == '"NULL"' else f"{other} of type {kind}"
    shown = "" if value is None else f", such as {value[:40]}"
    message = f"{sentence}{got}{shown}"
    raise ValueError(message)


def shown(kind: str, value: str | None) -> str:
    """Say what a value is, at most 80 characters of it, and its type.

    It is not SQL, since each expression of a macro takes DuckDB time to bind, also where the value
    is right.
    """
    text = f"'{(value or '')[:80]}'" if kind == "VARCHAR" else (value or "NULL")[:80]
    name = kind.replace('"', "")
    return f"{text} of type {name}"


def tables(
    sentence: str, kind: str, value: str | None, several: list[str | None] | None
) -> str | None:
    """Give what names a table or a file, or lists files, as JSON; None for NULL.

    Parameters
    ----------
    sentence : str
        The error about a value of another type; it ends in "got ".
    kind : str
        The type of the value.
    value : str, optional
        The value as text.
    several : list of str, optional
        The texts of a list.
    """
    if re.fullmatch(TEXT, kind):
        return None if value is None else json.dumps(value)
    if re.fullmatch(rf"({TEXT})\[\d*\]", kind):
        return None if several is None else json.dumps(several)
    message = f"{sentence}{shown(kind, value)}"
    raise ValueError(message)


def table_name(sentence: str, name: str) -> str:
    """Give the name of a table as it is; see `require_table`."""
    require_table(sentence, name)
    return name


def require_table(sentence: str, name: str) -> None:
    """Reject the name of a file that spatialq reads where a table must be; DuckDB's own may be.

    Raises
    ------
    ValueError
        If it is one, or a path at which there is nothing to read. The sentence ends in "got ".
    """
    reader = find_reader(name)
    if reader is not None and means_file(name):
        file = literal(name)
        made = f"CREATE TABLE t AS FROM {MACROS[reader.kind]}({file}) makes a table of it"
        message = f"{sentence}the file {file}: {made}"
        raise ValueError(message)
    require_rows(sentence, name)


def require_rows(sentence: str, name: str) -> None:
    """Reject a path at which DuckDB finds nothing to read, and that names no table.

    Raises
    ------
    ValueError
        The sentence ends in "got ".
    """
    what = means_no_rows(name)
    if what and not frames.is_there(name):
        message = f"{sentence}{what}"
        raise ValueError(message)


def refusal(sentence: str, value: str = "NULL") -> str:
    """Write an expression of any type of numbers that fails with a sentence.

    Parameters
    ----------
    sentence : str
        Ends in "got ", or the like, if a value follows.
    value : str
        An expression in SQL that gives it as text.
    """
    return f"spatialq_refuse({literal(sentence)}, {value})"
