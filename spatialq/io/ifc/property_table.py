"""Properties as a table and as JSON texts, out of what the worker process packed."""

import json
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from spatialq.io.ifc.tables import SCHEMAS
from spatialq.runtime.arrays import Ints

Packed = dict[str, dict[str, list[Any]]]
"""See `spatialq.io.ifc.properties.PropertyReader.packed`."""

SOURCES = {"own": "instance", "inherited": "type"}


def property_table(packed: Packed, file_name: str) -> pa.Table:
    """Make the table of properties: one row per property of an object."""
    owners, groups, sets, values = (packed[name] for name in ("owners", "groups", "sets", "values"))
    group = np.array(owners["group"], np.int64)
    parts = [expanded(groups[name], group) for name in SOURCES]
    owner, set_at = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    source = np.repeat(np.arange(len(parts)), [len(of_owner) for of_owner, _ in parts])
    order = np.argsort(owner, kind="stable")
    pair, value_at = expanded(sets["values"], set_at[order])
    pair = order[pair]

    def taken(texts: list[Any], at: Any) -> pa.Array:
        return pa.array(texts, pa.string()).take(pa.array(at))

    units = packed["units"]
    unit_at = np.array([-1 if at is None else at for at in values["unit"]], np.int64)
    # The last unit stands for none: -1 finds it.
    names = pa.array([*units["name"], None], pa.string())
    factor, offset = (floats([*units[name], None])[unit_at] for name in ("factor", "offset"))
    number = floats(map(as_number, values["value"]))
    with np.errstate(over="ignore"):
        number_si = factor * number + offset
    columns = {
        "global_id": taken(owners["global_id"], owner[pair]),
        "pset": taken(sets["pset"], set_at[pair]),
        "property": taken(values["property"], value_at),
        "value": taken(list(map(as_text, values["value"])), value_at),
        "number": nullable(number[value_at]),
        "unit": names.take(pa.array(unit_at % len(names))).take(pa.array(value_at)),
        "unit_si": nullable(np.where(offset == 0, factor, np.nan)[value_at]),
        "number_si": nullable(number_si[value_at]),
        "source": taken(list(SOURCES.values()), source[pair]),
        "file_name": pa.repeat(pa.scalar(file_name, pa.string()), len(pair)),
    }
    schema = SCHEMAS["properties"]
    return pa.table([columns[name] for name in schema.names], schema=schema)


def property_texts(packed: Packed) -> dict[int, str]:
    """Give the properties of each object as JSON, by step id: property set, property, value."""
    groups, sets, values = (packed[name] for name in ("groups", "sets", "values"))
    members = [
        f"{as_json(name)}: {as_json(value)}"
        for name, value in zip(values["property"], values["value"], strict=True)
    ]
    bodies = [", ".join([members[at] for at in each]) for each in sets["values"]]
    heads = {name: f"{as_json(name)}: " for name in set(sets["pset"])}
    names = sets["pset"]
    texts = []
    for each in zip(groups["inherited"], groups["own"], strict=True):
        parts: dict[str, str] = {}
        for at in chain(*each):
            name, body = names[at], bodies[at]
            above = parts.get(name)
            parts[name] = f"{above}, {body}" if above and body else above or body
        texts.append("{" + ", ".join([f"{heads[name]}{{{parts[name]}}}" for name in parts]) + "}")
    owners = packed["owners"]
    return {
        step_id: texts[group]
        for step_id, group in zip(owners["step_id"], owners["group"], strict=True)
    }


def expanded(lists: list[list[int]], at: Ints) -> tuple[Any, Any]:
    """Give the members of lists.

    Parameters
    ----------
    lists : list of list of int
    at : int64[n]
        The lists that are wanted, one after the other.

    Returns
    -------
    of : int64[k]
        Which of `at` a member belongs to, ascending.
    member : int64[k]
    """
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    flat = np.fromiter(chain.from_iterable(lists), np.int64, int(lengths.sum()))
    counts = lengths[at]
    of = np.repeat(np.arange(len(at)), counts)
    start = (np.cumsum(lengths) - lengths)[at] - (np.cumsum(counts) - counts)
    return of, flat[np.arange(len(of)) + start[of]]


def floats(values: Any) -> Any:
    """Make an array of numbers, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], np.float64)


def nullable(values: Any) -> pa.Array:
    """Make a column of numbers, NULL where they are not finite."""
    return pa.array(values, mask=~np.isfinite(values))


def as_json(value: object) -> str:
    """Write a value as JSON."""
    return json.dumps(value, ensure_ascii=False)


def as_text(value: object) -> str | None:
    """Give a JSON value as the text of a VARCHAR column: strings as they are."""
    return value if value is None or isinstance(value, str) else as_json(value)


def as_number(value: Any) -> float | None:
    """Give a JSON value as a number, where it is one."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None
