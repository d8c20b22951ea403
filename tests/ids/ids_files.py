"""Writes IDS files of few words, and checks models in this process."""

import json
from functools import cache

import ifcopenshell

from spatialq.io.ids import checks, worker
from spatialq.io.ids.facts import facts_of, needs_of
from spatialq.io.ids.files import read_ids

HEAD = """<?xml version="1.0" encoding="utf-8"?>
<ids xmlns="http://standards.buildingsmart.org/IDS" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<info><title>Rules</title></info>
<specifications>"""
TAIL = "</specifications></ids>\n"
REQUIRED = 'minOccurs="1" maxOccurs="unbounded"'
OPTIONAL = 'minOccurs="0" maxOccurs="unbounded"'
PROHIBITED = 'minOccurs="0" maxOccurs="0"'
ALL = "IFC2X3 IFC4 IFC4X3_ADD2"


def value(said):
    """A simple value of a text, or what stands in a restriction: ("xs:double", "<xs:.../>")."""
    if isinstance(said, str):
        return f"<simpleValue>{said}</simpleValue>"
    base, inner = said
    return f'<xs:restriction base="{base}">{inner}</xs:restriction>'


def pattern(text):
    return "xs:string", f'<xs:pattern value="{text}"/>'


def facet(kind, attributes="", /, **values):
    """A facet; a value that begins with < is markup."""
    inner = "".join(
        said
        if isinstance(said, str) and said.startswith("<")
        else f"<{name}>{value(said)}</{name}>"
        for name, said in values.items()
    )
    return f"<{kind} {attributes}>{inner}</{kind}>"


def entity(name, kind=None):
    return facet("entity", **{"name": name} | ({} if kind is None else {"predefinedType": kind}))


def attribute(name, said=None, attributes=""):
    more = {} if said is None else {"value": said}
    return facet("attribute", attributes, name=name, **more)


def prop(pset, name, said=None, kind=None, attributes=""):
    attributes += f' dataType="{kind}"' if kind else ""
    more = {} if said is None else {"value": said}
    return facet("property", attributes, propertySet=pset, baseName=name, **more)


def specification(applicability, *requirements, occurs=OPTIONAL, versions=ALL, name="Rule"):
    """A specification of facets; the applicability is one or several, as one text."""
    inner = f"<requirements>{''.join(requirements)}</requirements>" if requirements else ""
    return (
        f'<specification name="{name}" ifcVersion="{versions}">'
        f"<applicability {occurs}>{applicability}</applicability>{inner}</specification>"
    )


def write_ids(path, *specifications):
    path.write_text("\n".join((HEAD, *specifications, TAIL)), encoding="utf-8")
    return path


@cache
def opened(path):
    return ifcopenshell.open(str(path))


def check(model, rules):
    """Check a model, a file or one that is open, as `check_ids` does, without another process."""
    ids = read_ids(rules)
    needs = needs_of(ids.specifications)
    facts = worker.Facts(model if hasattr(model, "by_type") else opened(model), vars(needs))
    answer = json.loads(json.dumps(facts.read()))
    return checks._rows(ids, facts_of(answer), "model").to_pylist()


def outcome(rows):
    return "fail" if any(row["status"] == "failed" for row in rows) else "pass"
