"""buildingSMART's test cases: the name of each begins with what is right."""

import pytest

from spatialq.errors import FileError
from spatialq.io.ids.files import read_ids

from ..conftest import real_file
from .ids_files import check, outcome

FACETS = (
    "attribute", "classification", "entity", "ids", "material", "partof", "property",
    "restriction", "tolerance",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("facet", FACETS)
def test_every_case_is_right(facet):
    cases = sorted(real_file(f"data/ids/{facet}").glob("*.ids"))
    assert len(cases) >= 6
    wrong = {}
    for rules in cases:
        expected = rules.name.partition("-")[0]
        try:
            read_ids(rules)
        except FileError:
            found = "invalid"
        else:
            found = outcome(check(rules.with_suffix(".ifc"), rules))
        if found != expected:
            wrong[rules.name] = found
    assert not wrong
