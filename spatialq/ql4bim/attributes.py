"""What belongs to a row, such as an attribute or a property of an object, as SQL."""

import json
from dataclasses import dataclass
from functools import cache, partial

from lark import Token

from spatialq.functions.sql_text import literal
from spatialq.io.ifc import schemas
from spatialq.io.ifc.columns import OBJECTS
from spatialq.io.ifc.layouts import ELSEWHERE
from spatialq.io.ifc.relations import RULES
from spatialq.ql4bim import requirements
from spatialq.ql4bim.syntax import Constant
from spatialq.ql4bim.variables import (
    Caller,
    Column,
    Value,
    Variable,
    as_number,
    as_text,
    as_truth,
)
from spatialq.query.steps import Sql, plain, sql

COLUMNS = {
    "GlobalId": "global_id",
    "Name": "name",
    "Description": "description",
    "ObjectType": "object_type",
    "PredefinedType": "predefined_type",
    "Tag": "tag",
    "LongName": "long_name",
}
"""Attributes that are columns of objects; the others are in `attributes`."""
OWN_COLUMNS = OBJECTS.keys() - {"attributes", "properties"}
"""Columns of objects that scripts may name, such as `storey`."""
NAMED = "IfcRelAssociates"
"""Begins the classes of relationships to what has no GlobalId: it goes by its name."""


@dataclass(frozen=True)
class Rows:
    """The rows of a variable in a query, under a name of their own if they need one."""

    variable: Variable
    alias: str | None = None

    def column(self, name: str) -> Sql:
        """Write a column."""
        written = name if name in OBJECTS else plain(name)
        return sql(f"{self.alias}.{written}" if self.alias else written)

    def outer(self, name: str) -> Sql:
        """Write a column where it stands in another query within."""
        return self.column(name) if self.alias else sql(self.variable.step, ".", self.column(name))


def value_of(use: Caller, rows: Rows, path: tuple[Token, ...], *, is_scalar: bool = False) -> Value:
    """Find out what a path such as `Name` or `Pset_WallCommon.FireRating` means.

    Parameters
    ----------
    use : Caller
        The call that it stands in.
    rows : Rows
    path : tuple of Token
    is_scalar : bool
        Whether the value is wanted itself, and not a condition on it.

    Raises
    ------
    ScriptError
        If it means nothing.
    """
    first = path[0]
    if rows.variable.kind == "relation":
        raise use.error(first, "a relation has columns: write [column].Attribute")
    if rows.variable.kind != "set":
        return _of_points(use, rows, path)
    if not first:  # a property in quotes, of any set
        return property_of(use, rows, None, path[1], is_scalar=is_scalar)
    if len(path) == 1 and first in (*COLUMNS, *OWN_COLUMNS):
        return _of_column(rows, COLUMNS.get(first, str(first)))
    if first in ELSEWHERE:
        raise use.error(first, f"the attribute {first} has no value that a script can read")
    if first in schemas.object_attributes():
        require_of_class(use, rows.variable, first)
        return _of_json(use, rows, path)
    if len(path) == 1 and first in schemas.inverse_of_objects():
        require_of_class(use, rows.variable, first)
        return Value(number=_count(use, rows, first))
    if len(path) == 2 and not schemas.inverse_of_objects().get(first):
        return property_of(use, rows, path[0], path[1], is_scalar=is_scalar)
    raise use.error(first, _unknown(str(first), is_alone=len(path) == 1))


def require_of_class(use: Caller, objects: Variable, attribute: Token) -> None:
    """Make sure that some of the objects may have an attribute, where their class is known.

    Raises
    ------
    ScriptError
        If none can; it names classes that have it.
    """
    if objects.ifc_class is None:
        return
    having = classes_with(str(attribute))
    if not having & schemas.subtypes(objects.ifc_class):
        some = sorted(having, key=lambda name: (len(name), name))[:3]
        reason = f"no {objects.ifc_class} has an attribute {attribute}; {', '.join(some)} have it"
        raise use.error(attribute, reason)


@cache
def classes_with(attribute: str) -> frozenset[str]:
    """Give the classes of objects that have an attribute in one of the schemas."""
    return frozenset(
        name
        for schema in schemas.schemas().values()
        for name in schema.subtypes["IfcObjectDefinition"]
        for above in schema.lineage(name)
        if attribute in schema[above].attributes or attribute in schema[above].inverse
    )


def _unknown(name: str, *, is_alone: bool) -> str:
    if name in schemas.property_sets():
        return f"{name} is a property set: write {name}.Property"
    near = schemas.near_names(name, [*schemas.object_attributes(), *schemas.inverse_of_objects()])
    near += schemas.near_names(name, OWN_COLUMNS)
    hint = f"near names are {', '.join(near)}" if near else "a property is written Set.Property"
    return (
        f"no class of objects has an attribute {name!r}; {hint}"
        if is_alone
        else (f"what is written {name}.A.B is neither an attribute nor a property; {hint}")
    )


def _of_points(use: Caller, rows: Rows, path: tuple[Token, ...]) -> Value:
    if len(path) > 1:
        raise use.error(path[1], f"columns of {rows.variable.kind} have no attributes")
    column = rows.column(str(path[0]))
    return Value(column, column, column, column, is_truth_text=False)


def _of_column(rows: Rows, name: str) -> Value:
    column = rows.column(name)
    match OBJECTS[name]:
        case "VARCHAR":
            return Value(text=column)
        case "BOOLEAN":
            return Value(truth=column, is_truth_text=False)
    return Value(number=column, metres=column)


def held_by(path: tuple[Token, ...]) -> str:
    """Say what an attribute holds, '' if that differs or is not known: see `schemas.Declared`."""
    if path[0] in COLUMNS or path[0] in OWN_COLUMNS:
        kinds = {"VARCHAR": "text", "DOUBLE": "number", "BOOLEAN": "truth"}
        name = COLUMNS.get(path[0], str(path[0]))
        return "object" if name.endswith("_id") else kinds.get(OBJECTS[name], "number")
    kinds_of = schemas.object_attributes().get(path[0], frozenset())
    return next(iter(kinds_of)) if len(path) == len(kinds_of) == 1 else ""


def _of_json(use: Caller, rows: Rows, path: tuple[Token, ...]) -> Value:
    at = literal("$." + ".".join(map(_key, path)))
    attributes = rows.column("attributes")
    text = sql("(", attributes, f" ->> {at})")
    number = sql("TRY_CAST(", attributes, f" -> {at} AS DOUBLE)")
    held = held_by(path)
    if held in ("text", "object"):
        return Value(text=text)
    if held == "truth":
        return as_truth(text)
    if held in ("number", "angle"):
        return Value(number=number, common=number)
    metres = sql(number, " * ", _unit(rows))
    require = partial(_require_unit, use, rows.variable)
    if held == "length":
        return Value(number=number, metres=metres, common=metres, require=require)
    return Value(text, number, text, metres, common=number)


def _require_unit(use: Caller, objects: Variable, form: str, given: Constant) -> None:
    """Note that files have one unit of length, where a number is compared without one."""
    if form == "number" and given.unit is None and objects.may_be_several:
        reason = f"the files have different units of length; write the one of {given.token}"
        units = requirements.several_units(
            use.said(reason), objects.beside("models"), "length_unit_metres"
        )
        use.require(given.token, units)


def _key(name: str) -> str:
    return str(name) if name.isidentifier() else json.dumps(str(name), ensure_ascii=False)


def _unit(rows: Rows) -> Sql:
    """Write the length of the file's unit, in metres."""
    models = rows.variable.beside("models")
    file_name = rows.outer("file_name")
    return sql(
        "(SELECT unit.length_unit_metres FROM ",
        models,
        " AS unit WHERE unit.file_name = ",
        file_name,
        ")",
    )


def property_of(
    use: Caller, rows: Rows, pset: Token | None, prop: Token, *, is_scalar: bool = False
) -> Value:
    """Write the value of a property, of any set if none is given."""
    require_property(use, rows.variable, pset, prop)
    named = [] if pset is None else [f"prop.pset = {literal(str(pset))}"]
    where = " AND ".join([*named, f"prop.property = {literal(str(prop))}"])
    properties = rows.variable.beside("properties")
    require = partial(_require_form, use, rows.variable, pset, prop)

    def within(condition: Sql | None) -> Sql:
        more = sql() if condition is None else sql(" AND ", condition)
        if not rows.variable.may_be_several:
            inner = sql("(SELECT prop.global_id FROM ", properties, " AS prop WHERE ")
            return sql(rows.column("global_id"), " IN ", inner, where, more, ")")
        inner = sql("(SELECT (prop.file_name, prop.global_id) FROM ", properties, " AS prop WHERE ")
        own = sql("(", rows.column("file_name"), ", ", rows.column("global_id"), ")")
        return sql(own, " IN ", inner, where, more, ")")

    def scalar(column: str) -> Sql:
        return sql(f"(SELECT any_value(prop.{column}) FROM ", properties, " AS prop WHERE ",
                   _same_object(rows, "prop", "global_id"), f" AND {where})")  # fmt: skip

    if is_scalar:
        text, number, number_si = map(scalar, ("value", "number", "number_si"))
        common = sql("coalesce(", number_si, ", ", number, ")")
        return Value(text, number, metres=number_si, common=common, require=require)
    text, number, number_si = (sql(f"prop.{each}") for each in ("value", "number", "number_si"))
    return Value(
        text, number, text, number_si, number_si, may_be_list=True, within=within, require=require
    )


def _same_object(rows: Rows, alias: str, column: str) -> Sql:
    """Write whether a row of another table is of the same object."""
    same = sql(f"{alias}.{column} = ", rows.outer("global_id"))
    if not rows.variable.may_be_several:
        return same
    return sql(same, f" AND {alias}.file_name = ", rows.outer("file_name"))


def require_property(use: Caller, objects: Variable, pset: Token | None, prop: Token) -> None:
    """Note that some object must have a property, unless it is a standard one."""
    if pset is not None and prop in schemas.property_sets().get(pset, ()):
        return
    of_set = None if pset is None else str(pset)
    use.require(prop, requirements.no_property(use.said(""), objects, of_set, str(prop)))


FORMS = {
    "number": "count(number)",
    "truth": "count(*) FILTER (value IN ('true', 'false'))",
    "text": "count(*) FILTER (number IS NULL)",
}
"""Counts the values of a property that have a form."""


def _require_form(
    use: Caller, objects: Variable, pset: Token | None, prop: Token, form: str, given: Constant
) -> None:
    """Note that a property must be comparable with a constant: in its type, and its unit."""
    rows = requirements.property_rows(objects, None if pset is None else str(pset), str(prop))
    name = str(prop) if pset is None else f"{pset}.{prop}"
    kind = {"number": "number", "truth": "truth value", "text": "text"}[form]
    reason = use.said(f"no value of {name} is a {kind}, as {given.token} is; there is ")
    use.require(given.token, requirements.not_of_form(reason, rows, FORMS[form]))
    if form == "number" and given.unit is None and objects.may_be_several:
        reason = use.said(f"the files have {name} in different units; write one")
        use.require(given.token, requirements.several_units(reason, rows, "unit_si"))


# columns of values


def held_column(use: Caller, objects: Variable, whole: Variable, path: tuple[Token, ...]) -> Column:
    """Say what a column of a relation has that an attribute or a property is taken for."""
    held = held_by(path)
    if held == "object":
        return Column("", whole)
    if held == "text":
        return Column("", value=as_text)
    if held == "truth":
        return Column("", value=as_truth)
    is_property = path[0] not in schemas.object_attributes()
    if path[0] in OWN_COLUMNS or (is_property and len(path) == 1):  # an inverse attribute's count
        return Column("", value=as_number)
    rows = objects.beside("models")
    unit = "length_unit_metres"
    if is_property:
        pset = str(path[0]) or None
        rows, unit = requirements.property_rows(objects, pset, str(path[1])), "unit_si"
    factor = sql(f"(SELECT max({unit}) FROM ", rows, ")")

    def require(form: str, given: Constant) -> None:
        if form == "number" and objects.may_be_several:
            reason = use.said("the files have different units; compare before")
            use.require(given.token, requirements.several_units(reason, rows, unit))

    def forms(column: Sql) -> Value:
        number = column if held else sql("TRY_CAST(", column, " AS DOUBLE)")
        metres = None if held in ("number", "angle") else sql(number, " * ", factor)
        common = number if metres is None or not (held or is_property) else metres
        text = None if held else column
        return Value(text, number, text, metres, common=common, require=require)

    return Column("", value=forms)


# inverse attributes


@dataclass(frozen=True)
class Inverse:
    """How an inverse attribute leads from an object to others, by the table of relations.

    Parameters
    ----------
    own, other : {'child', 'parent'}
        The columns of the object and of the others.
    where : tuple of str
        Conditions on the rows of relations, as `r`.
    only : dict from str to str
        Conditions on the rows that hold in models of one schema only.
    is_named : bool
        Whether the others have no GlobalId, but names.
    """

    own: str
    other: str
    where: tuple[str, ...]
    only: dict[str, str]
    is_named: bool

    def condition(self, domain: Variable) -> list[Sql]:
        """Write the conditions on the rows of relations."""
        found = [sql(each) for each in self.where]
        for schema, otherwise in self.only.items():
            of_schema = sql(f"rel.{self.own} IN (SELECT global_id FROM ", domain.step,
                            f" WHERE ifc_schema = {literal(schema)})")  # fmt: skip
            found.append(sql(f"({otherwise} OR ", of_schema, ")"))
        return found

    @property
    def target(self) -> str:
        """What stands for the others: their GlobalId, or what they are called."""
        if self.is_named:
            return f"coalesce(rel.{self.other}_name, rel.{self.other}_class)"
        return f"rel.{self.other}"


Rule = tuple[str, str, str | None]


@cache
def inverse(attribute: str) -> Inverse | None:
    """Find out how an inverse attribute leads from an object to others.

    None where it leads by no relationship: some objects name others directly.
    """
    wanted = {name: _rules(schema, attribute) for name, schema in schemas.schemas().items()}
    rules = list(dict.fromkeys(rule for found in wanted.values() for rule in found))
    if not rules:
        return None
    own = rules[0][1]
    ends = {(kind, child, parent) for (kind, child, parent), _ in rules}
    kinds = sorted({kind for kind, _, _ in ends})
    where = [f"rel.relation_class {_among(kinds)}"]
    others = {rule[:3] for rule in RULES if rule[0] in kinds} - ends
    for k, end in ((1, "child"), (2, "parent")):
        if others and not {each[k] for each in others} <= {each[k] for each in ends}:
            where.append(f"rel.{end}_attribute {_among(sorted({str(each[k]) for each in ends}))}")
    # classes that lead on in one schema, and not in another one that has them as well
    only = {}
    for name, found in wanted.items():
        own_kinds = {kind for (kind, _, _), _ in found}
        extra = {
            kind
            for other, schema in schemas.schemas().items()
            if wanted[other]
            for kind in own_kinds - {each for (each, _, _), _ in wanted[other]}
            if kind in schema
        }
        if extra:
            left = [kind for kind in kinds if kind not in extra]
            only[name] = f"rel.relation_class {_among(left)}" if left else "false"
    is_named = all(kind.startswith(NAMED) for kind in kinds)
    return Inverse(own, "parent" if own == "child" else "child", tuple(where), only, is_named)


def _rules(schema: schemas.Schema, attribute: str) -> list[tuple[Rule, str]]:
    """List the rules by which an attribute leads on in a schema, with the end of the object."""
    objects = schema.subtypes["IfcObjectDefinition"]
    declared = {
        schema[above].inverse[attribute]
        for name in objects
        for above in schema.lineage(name)
        if attribute in schema[above].inverse
    }
    found, seen = [], set()
    for kind, child, parent, _ in RULES:
        ends = {end for relation, end in declared if kind in schema.subtypes.get(relation, ())}
        has = {each for above in schema.lineage(kind) for each in schema[above].attributes}
        # the first rule of a class says what is at its other end
        if ends & {child, parent} and {child, parent or child} <= has and kind not in seen:
            seen.add(kind)
            found.append(((kind, child, parent), "child" if child in ends else "parent"))
    return found


def _among(names: list[str]) -> str:
    if len(names) == 1:
        return f"= {literal(names[0])}"
    return f"IN ({', '.join(map(literal, names))})"


def _count(use: Caller, rows: Rows, attribute: Token) -> Sql:
    """Write how many objects an inverse attribute leads to."""
    way = inverse_of(use, attribute)
    conditions = [
        _same_object(rows, "rel", way.own),
        *way.condition(rows.variable),
        sql(f"{way.target} IS NOT NULL"),
    ]
    where = sql(conditions[0])
    for each in conditions[1:]:
        where = sql(where, " AND ", each)
    return sql(
        "(SELECT count(*) FROM ", rows.variable.beside("relations"), " AS rel WHERE ", where, ")"
    )


def inverse_of(use: Caller, attribute: Token) -> Inverse:
    """Find out how an inverse attribute leads from an object to others.

    Raises
    ------
    ScriptError
        If there is no such attribute, with the near names.
    """
    known = schemas.inverse_of_objects()
    if attribute not in known:
        if attribute in schemas.object_attributes():
            reason = f"{attribute} is no inverse attribute; Dereferencer follows it"
        else:
            near = schemas.near_names(attribute, known)
            hint = f"near names are {', '.join(near)}" if near else "one is HasOpenings"
            reason = f"no inverse attribute {str(attribute)!r}; {hint}"
        raise use.error(attribute, reason)
    way = inverse(str(attribute))
    if way is None:
        classes = " and ".join(known[attribute])
        reason = f"{attribute} leads by no relationship: {classes} names the object itself"
        raise use.error(attribute, reason)
    return way
