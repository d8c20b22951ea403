"""Conditions of a script as conditions in SQL.

A value that is missing compares with nothing, which SQL calls NULL. That is as good as false, but
not behind `not`, where conditions are made false explicitly.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import radians

from lark import Token

from spatialq.functions.sql_text import literal
from spatialq.io.ifc import schemas
from spatialq.ql4bim.attributes import Rows, value_of
from spatialq.ql4bim.parser import UNITS
from spatialq.ql4bim.syntax import (
    Call,
    Comparison,
    Constant,
    Expression,
    IsA,
    Junction,
    Negation,
    Reference,
)
from spatialq.ql4bim.variables import Caller, Column, Value, Variable, all_models
from spatialq.query.steps import Sql, plain, sql

OTHER = {"and": "or", "or": "and"}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Conditions:
    """Writes the conditions on the rows of a set or relation.

    Parameters
    ----------
    use : Caller
        The call that they stand in.
    subject : Variable
    """

    use: Caller
    subject: Variable

    def all_of(self, parts: Sequence[Expression]) -> tuple[Sql, ...]:
        """Write conditions that hold together, one by one."""
        return tuple(self.write(part) for each in parts for part in _conjuncts(each))

    def write(self, part: Expression, *, is_negated: bool = False) -> Sql:
        """Write one condition, or that it does not hold: `not` goes to the comparisons within."""
        match part:
            case Junction(word, parts):
                inner = [self.write(each, is_negated=is_negated) for each in parts]
                word = OTHER[word] if is_negated else word
                return sql("(", *_joined(f" {word.upper()} ", inner), ")")
            case Negation(inner_part):
                return self.write(inner_part, is_negated=not is_negated)
            case IsA():
                found = self.is_a(part)
            case Comparison():
                found = self.compares(part)
            case _:
                raise self.use.error(
                    part.token, "a condition must stand here, such as w is IfcWall"
                )
        return sql("NOT coalesce(", found, ", false)") if is_negated else found

    def is_a(self, part: IsA) -> Sql:
        """Write whether objects are of a class."""
        if not isinstance(part.left, Reference | Call):
            raise self.use.error(part.left.token, "objects must stand before 'is'")
        if isinstance(part.left, Reference) and part.left.path:
            raise self.use.error(part.left.path[0], "objects have a class, attributes have none")
        condition = class_condition(self.use, part.ifc_class)
        if isinstance(part.left, Call) or part.left.column is None:
            return self._of_objects(self.subject, part.left.token, condition)
        column = self.use.column(self.subject, part.left.column)
        domain = self.use.domain(column, part.left.column)
        self._of_objects(domain, part.left.column, condition)
        return self._where(column, part.left.column, condition)

    def compares(self, part: Comparison) -> Sql:
        """Write one comparison."""
        left, sign, right = part.left, str(part.sign), part.right
        if isinstance(left, Constant) and not isinstance(right, Constant):
            left, sign, right = right, MIRRORED.get(sign, sign), left
        if isinstance(left, Constant) and isinstance(left.value, str):
            left = self.use.quoted_path(left)  # "Pset_WallCommon.IsExternal" = true
        if isinstance(left, Reference) and isinstance(right, Constant):
            return self._with_constant(left, sign, right)
        if isinstance(left, Reference) and isinstance(right, Reference):
            return self._of_two(left, sign, right)
        raise self.use.error(part.token, "a comparison needs an attribute, a column or a set")

    def _of_objects(self, rows: Variable, token: Token, condition: Sql) -> Sql:
        if rows.kind != "set":
            kind = rows.kind if rows.kind.endswith("s") else f"{rows.kind}s"
            raise self.use.error(token, f"{kind} have no class; objects and columns of them have")
        return condition

    def _where(self, column: Column, token: Token, condition: Sql) -> Sql:
        """Write whether the objects that a column names are so."""
        domain = self.use.domain(column, token)
        inner = sql(f"(SELECT {domain.key} FROM ", domain.step, " WHERE ", condition, ")")
        return sql(f"{plain(column.name)} IN ", inner)

    def _with_constant(self, left: Reference, sign: str, right: Constant) -> Sql:
        column = None if left.column is None else self.use.column(self.subject, left.column)
        if not left.path:
            return self._of_rows(left, column, sign, right)
        if column is None:
            value = value_of(self.use, Rows(self.subject), left.path)
            return compare(self.use, value, sign, right, left.path[-1])
        domain = self.use.domain(column, left.path[0])
        value = value_of(self.use, Rows(domain), left.path)
        condition = compare(self.use, value, sign, right, left.path[-1])
        return self._where(column, left.path[0], condition)

    def _of_rows(self, left: Reference, column: Column | None, sign: str, right: Constant) -> Sql:
        """Write a count of rows, or the value of a column."""
        if column is not None and column.domain is None:
            return compare(self.use, of_values(column), sign, right, left.token)
        if not isinstance(right.value, int | float) or isinstance(right.value, bool) or right.unit:
            reason = "a number of objects must stand here, or an attribute before the comparison"
            raise self.use.error(right.token, reason)
        number = f" {_sign(self.use, sign, right)} {literal(right.value)}"
        rows = self.subject.step
        if column is None:
            return sql("(SELECT count(*) FROM ", rows, f"){number}")
        name = plain(column.name)
        inner = sql(f"(SELECT {name} FROM ", rows, f" GROUP BY {name} HAVING count(*){number})")
        return sql(f"{name} IN ", inner)

    def _of_two(self, left: Reference, sign: str, right: Reference) -> Sql:
        """Write a comparison of two attributes or columns of one row."""
        one, other = self._operand(left, "one"), self._operand(right, "other")
        is_common = self._may_differ(left, right)
        condition = compare_values(
            self.use, one[1], sign, other[1], left.token, is_common=is_common
        )
        sources = [part for part, _ in (one, other) if part is not None]
        if not sources:
            return condition
        tables = [sql(rows.variable.step, f" AS {rows.alias}") for rows, _ in sources]
        keys = [
            sql(f"{rows.alias}.{rows.variable.key} = ", self.subject.step, f".{plain(name)} AND ")
            for rows, name in sources
        ]
        return sql(
            "EXISTS (SELECT 1 FROM ", *_joined(", ", tables), " WHERE ", *keys, condition, ")"
        )

    def _may_differ(self, left: Reference, right: Reference) -> bool:
        """Whether the objects of a row may be from files with different units."""
        columns = [self.use.column(self.subject, each.column) for each in (left, right)
                   if each.column is not None]  # fmt: skip
        domains = [each.domain for each in columns if each.domain is not None]
        models = all_models(domains)
        return len(models) > 1 or any(each.may_be_several for each in domains)

    def _operand(self, part: Reference, alias: str) -> tuple[tuple[Rows, str] | None, Value]:
        if part.column is None:
            if not part.path:
                raise self.use.error(part.token, "an attribute or a column must stand here")
            return None, value_of(self.use, Rows(self.subject), part.path, is_scalar=True)
        column = self.use.column(self.subject, part.column)
        if not part.path:
            value = of_values(column, self.subject)
            value.require("number", Constant(None, None, part.token))
            return None, value
        rows = Rows(self.use.domain(column, part.path[0]), alias)
        return (rows, column.name), value_of(self.use, rows, part.path, is_scalar=True)


def _conjuncts(part: Expression) -> Iterator[Expression]:
    if isinstance(part, Junction) and part.word == "and":
        for each in part.parts:
            yield from _conjuncts(each)
    else:
        yield part


def _joined(between: str, parts: Sequence[Sql]) -> Iterator[Sql | str]:
    for k, part in enumerate(parts):
        if k:
            yield between
        yield part


def classes_of(part: Expression) -> Iterator[str]:
    """Give the classes that all objects of a set are for which a condition holds."""
    for each in _conjuncts(part):
        if isinstance(each, IsA) and not (
            isinstance(each.left, Reference) and each.left.column is not None
        ):
            yield schemas.class_names()[each.ifc_class.lower()]


def class_condition(use: Caller, token: Token) -> Sql:
    """Write whether an object is of a class, as its own schema says it.

    Raises
    ------
    ScriptError
        If no schema has the class.
    """
    known = schemas.class_names()
    name = known.get(token.lower())
    if name is None:
        near = [known[each] for each in schemas.near_names(token.lower(), known)]
        hint = f"near names are {', '.join(near)}" if near else "one is IfcWall"
        raise use.error(token, f"no class {str(token)!r}; {hint}")
    if not schemas.subtypes(name) & schemas.subtypes("IfcObjectDefinition"):
        raise use.error(token, f"{name} is no class of objects; one is IfcWall")
    schema = ", ifc_schema := ifc_schema" if schemas.subtypes_differ(name) else ""
    return sql(f"is_a(ifc_class, {literal(name)}{schema})")


def of_values(column: Column, relation: Variable | None = None) -> Value:
    """Write the value of a column of a relation."""
    text = sql(plain(column.name))
    if relation is not None:
        text = sql(relation.step, ".", text)
    return Value(text=text) if column.domain is not None else column.value(text)


def compare(use: Caller, value: Value, sign: str, constant: Constant, token: Token) -> Sql:
    """Write a comparison of a value with a constant.

    Raises
    ------
    ScriptError
        If the value is never of the constant's type, or the sign not for it.
    """
    match constant.value:
        case None:
            if sign not in ("=", "!="):
                raise use.error(constant.token, f"unknown is = or !=, not {sign}")
            return _is_missing(value, is_wanted=sign == "=")
        case bool():
            if sign not in ("=", "!="):
                raise use.error(constant.token, f"true and false are = or !=, not {sign}")
            form, other = value.truth, "a truth value"
            wanted, sign = constant.value == (sign == "="), "="  # != true is = false
            right = literal(literal(wanted)) if value.is_truth_text else literal(wanted)
        case str() if sign == "~":
            form, other = value.text, "a text"
            right = literal(pattern(use, constant))
        case str():
            form, other = value.text, "a text"
            right = literal(constant.value)
        case _:
            form, other = _in_unit(value, constant)
            right = literal(in_unit(constant, is_angle=value.radians is not None))
            if form is not None and constant.unit is not None:
                form, right = rounded(form), literal(round(float(right), DIGITS))
    if form is None:
        raise use.error(
            constant.token, f"{token} is a {value.kind}, and {constant.token} is {other}"
        )
    if constant.value is not None:
        kinds: dict[type, str] = {bool: "truth", str: "text"}
        value.require(kinds.get(type(constant.value), "number"), constant)
    if sign == "~":
        if not isinstance(constant.value, str):
            raise use.error(constant.token, "~ compares with a regular expression in quotes")
        condition = sql("regexp_matches(", form, f", {right})")
    elif isinstance(constant.value, str) and value.may_be_list and sign in ("=", "!="):
        listed = literal(json.dumps(constant.value, ensure_ascii=False))
        among = sql("starts_with(", form, ", '[') AND contains(", form, f", {listed})")
        condition = sql("NOT " * (sign == "!="), "(", form, f" = {right} OR ", among, ")")
    else:
        condition = sql(form, f" {SIGNS[sign]} {right}")
    return value.within(condition) or condition


SIGNS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _sign(use: Caller, sign: str, constant: Constant) -> str:
    if sign not in SIGNS:
        raise use.error(constant.token, "~ compares texts")
    return SIGNS[sign]


def _is_missing(value: Value, *, is_wanted: bool) -> Sql:
    found = value.within(None)
    if found is not None:  # there is a row, or there is none
        return sql("NOT coalesce(", found, ", false)") if is_wanted else found
    form = value.text or value.truth or value.number
    assert form is not None
    return sql(form, " IS NULL" if is_wanted else " IS NOT NULL")


DIGITS = 6
"""Lengths with units compare in micrometres, as 2800 * 0.001 is a bit more than 2.8; angles in
millionths of a radian."""


def rounded(number: Sql) -> Sql:
    """Write a number in metres, or radians, as it compares."""
    return sql("round(", number, f", {DIGITS})")


def _in_unit(value: Value, constant: Constant) -> tuple[Sql | None, str]:
    """Choose the form of a value that compares with a number in its unit."""
    if constant.unit is None:
        return value.number, "a number"
    if constant.unit == "deg":
        return value.radians, "an angle"
    return value.metres, "a length"


def in_unit(constant: Constant, *, is_angle: bool = False) -> float:
    """Give a number in metres, or in radians, if it has a unit."""
    assert isinstance(constant.value, int | float)
    if constant.unit is None:
        return constant.value
    if constant.unit == "deg":
        return radians(constant.value) if is_angle else float(constant.value)
    return float(f"{constant.value * UNITS[constant.unit]:.15g}")


def compare_values(
    use: Caller, one: Value, sign: str, other: Value, token: Token, *, is_common: bool = False
) -> Sql:
    """Write a comparison of two values: of numbers if both are, else of texts or truth values.

    Parameters
    ----------
    use : Caller
    one : Value
    sign : str
    other : Value
    token : Token
        Where they stand.
    is_common : bool
        Whether numbers compare in units that all files share.
    """
    if sign not in SIGNS:
        raise use.error(token, "~ compares with a regular expression in quotes")
    texts = numbers = None
    if one.text is not None and other.text is not None:
        texts = sql(one.text, f" {SIGNS[sign]} ", other.text)
    if is_common and one.common is not None and other.common is not None:
        numbers = sql(rounded(one.common), f" {SIGNS[sign]} ", rounded(other.common))
    elif one.number is not None and other.number is not None:
        numbers = sql(one.number, f" {SIGNS[sign]} ", other.number)
    if texts is not None and numbers is not None:
        return sql("coalesce(", numbers, ", ", texts, ")")
    found = numbers if numbers is not None else texts
    if found is not None:
        return found
    if one.truth is None or other.truth is None:
        raise use.error(token, f"a {one.kind} and a {other.kind} do not compare")
    if sign not in ("=", "!="):
        raise use.error(token, f"truth values are = or !=, not {sign}")
    return sql(one.truth, f"::VARCHAR {SIGNS[sign]} ", other.truth, "::VARCHAR")


def pattern(use: Caller, constant: Constant) -> str:
    """Check a regular expression: DuckDB reads it with RE2.

    Raises
    ------
    ScriptError
        If it is none.
    """
    problem = _regex_problem(str(constant.value))
    if problem:
        raise use.error(constant.token, f"no regular expression: {problem}")
    return str(constant.value)


@lru_cache(maxsize=256)
def _regex_problem(text: str) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), text)
    except pa.ArrowInvalid as error:
        return str(error).partition(": ")[2]
    return ""
