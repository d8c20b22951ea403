"""The property sets of buildingSMART as selectors name them, by text or regular expression."""

from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from spatialq.database.selectors.comparison import pattern
from spatialq.database.selectors.grammar import Name, Regex
from spatialq.io.ifc import schemas


@cache
def properties() -> pa.Table:
    """Give all standard properties: ``pset prop``."""
    rows = [(pset, prop) for pset, props in schemas.property_sets().items() for prop in props]
    psets, props = zip(*rows, strict=True)
    return pa.table({"pset": psets, "prop": props})


def has_property(pset: Name, prop: Name) -> bool:
    """Say whether a standard set has such a property."""
    known = properties()
    both = pc.and_(_is(known["pset"], pset), _is(known["prop"], prop))
    return bool(pc.any(both).as_py())


def sets_with(prop: str) -> list[str]:
    """Give the names of the standard sets that have a property of this name."""
    return [pset for pset, props in schemas.property_sets().items() if prop in props]


def _is(names: pa.ChunkedArray, name: Name) -> pa.ChunkedArray:
    if isinstance(name, Regex):  # by RE2, as in DuckDB: no text makes it slow
        return pc.match_substring_regex(names, pattern(name))
    return pc.equal(names, name)
