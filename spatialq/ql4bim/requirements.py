"""What a script takes for granted, and only the data can tell."""

from dataclasses import dataclass

from spatialq.functions.sql_text import literal
from spatialq.ql4bim.text import Place
from spatialq.ql4bim.variables import Model, Variable, beside
from spatialq.query.steps import Sql, Step, sql, write

NEAR = 0.85
"""The likeness, 1 at most, from which on a name may be the one that was meant."""


@dataclass(frozen=True)
class Requirement:
    """Something that a script takes for granted.

    Parameters
    ----------
    place : Place
        Where the script does so.
    wrong : Step
        Gives a row, with a sentence as `reason`, if it is not so.
    """

    place: Place
    wrong: Step


def distinct(requirements: list[Requirement]) -> list[Requirement]:
    """Give each requirement once, with the place where the script needs it first."""
    found: dict[str, Requirement] = {}
    for each in requirements:
        found.setdefault(write(each.wrong), each)
    return list(found.values())


def property_rows(objects: Variable, pset: str | None, prop: str) -> Sql:
    """Write the rows of a property, of any set if none is given."""
    named = "" if pset is None else f" AND pset = {literal(pset)}"
    return sql(objects.beside("properties"), f" WHERE property = {literal(prop)}{named}")


def no_property(caller: str, objects: Variable, pset: str | None, prop: str) -> Sql:
    """Write what gives a sentence, with the near names, where no object has a property."""
    wanted = prop if pset is None else f"{pset}.{prop}"
    reason = literal(f"{caller}no object has a property {wanted}; ")
    name = "property" if pset is None else "pset || '.' || property"
    likeness = f"jaro_winkler_similarity(name, {literal(wanted)})"
    near = sql(
        f"(SELECT DISTINCT {name} AS name, {likeness} AS likeness FROM ",
        objects.beside("properties"), f" WHERE likeness >= {NEAR}"
        " ORDER BY likeness DESC, name LIMIT 3)",
    )  # fmt: skip
    names = "string_agg(name, ', ' ORDER BY likeness DESC, name)"
    hint = sql(f"(SELECT 'near names are ' || {names} FROM ", near, ")")
    return sql(
        f"(SELECT {reason} || coalesce(", hint, ", 'there is none like it') AS reason"
        " WHERE NOT EXISTS (FROM ", property_rows(objects, pset, prop), "))",
    )  # fmt: skip


def not_of_form(reason: str, rows: Sql, found: str) -> Sql:
    """Write what gives a sentence where no value of a property has a form.

    Parameters
    ----------
    reason : str
        The sentence without an example, which is added.
    rows : Sql
        Those of the property.
    found : str
        Counts the values that have the form, in SQL.
    """
    text = f"{literal(reason)} || any_value(coalesce(number::VARCHAR, to_json(value)))"
    return sql(
        f"(SELECT {text} AS reason FROM ", rows, f" HAVING count(value) > 0 AND {found} = 0)"
    )


def several_units(reason: str, rows: Sql, unit: str) -> Sql:
    """Write what gives a sentence where files have different units."""
    count = f"count(DISTINCT round({unit}, 9))"
    return sql(f"(SELECT {literal(reason)} AS reason FROM ", rows, f" HAVING {count} > 1)")


def same_elements(caller: str, models: tuple[Model, ...]) -> Sql:
    """Write what gives a sentence where elements of several files have the same GlobalIds.

    Projects, storeys and spaces that files share stand for the same in all of them.
    """
    reason = (
        f"{literal(caller + ': the files ')} || one || ' and ' || other || ' have ' || count(*) || "
        "' elements with the same GlobalIds, by which scripts tell objects apart; compare versions"
        " with a variable for each'"
    )
    shared = sql(
        "(SELECT min(file_name) AS one, max(file_name) AS other FROM ", beside(models, "objects"),
        " WHERE is_a(ifc_class, 'IfcElement') GROUP BY global_id"
        " HAVING count(DISTINCT file_name) > 1)",
    )  # fmt: skip
    return sql(f"(SELECT {reason} AS reason FROM ", shared,
               " GROUP BY one, other ORDER BY count(*) DESC, one, other LIMIT 1)")  # fmt: skip
