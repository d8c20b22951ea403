"""The operators of QL4BIM: one table, and how each becomes a step of a query.

Messages, completion and the reference are made of the table, too.
"""

import re
from dataclasses import replace
from functools import partial
from typing import Any

from lark import Token

from spatialq.functions.sql_text import is_quoted, literal
from spatialq.io.files import has_match, is_pattern
from spatialq.io.formats import find_reader
from spatialq.io.ifc import schemas
from spatialq.ql4bim.attributes import (
    Rows,
    held_by,
    held_column,
    inverse_of,
    property_of,
    require_of_class,
    value_of,
)
from spatialq.ql4bim.conditions import classes_of, compare, of_values
from spatialq.ql4bim.meshes import Objects
from spatialq.ql4bim.syntax import Constant
from spatialq.ql4bim.use import Operator, OperatorCall, Picked, named_arguments
from spatialq.ql4bim.variables import (
    Column,
    Model,
    Value,
    Variable,
    all_models,
    as_text,
    table_named,
    unchanged,
)
from spatialq.query.steps import Quoted, Sql, Step, plain, sql

MODEL = re.compile(r"\.(ifc|ifczip)$|[*?\[/\\]", re.IGNORECASE)
SLASH = re.compile(r"[/\\]")
"""What makes a name that of a file, and not of a table, unless it is quoted."""


# models


def import_model(use: OperatorCall) -> Variable:
    """Make the objects of a file, or of loaded tables."""
    use.no_more_than(1)
    path = use.compiler.path_of(use, use.text(0))
    if not path.strip(". "):
        raise use.error(use.tokens[0], f"{path!r} is no .ifc or .ifczip file, and no table")
    model = Model(path, is_file=MODEL.search(path) is not None and not is_quoted(path))
    objects = use.compiler.imports.get(model)
    if objects is None:
        step = Objects(use.name, model.table("objects"), model=model)
        objects = use.rows("set", step, (model,))
        use.compiler.imports[model] = objects
    return objects


def export_model(use: OperatorCall) -> Variable:
    """Note that a set is to be written; it is the set itself."""
    use.no_more_than(2)
    objects = use.of_kind(0, "set")
    use.compiler.export(objects, use.text(1), use.call.operator)
    return objects


# filters


def filtered(use: OperatorCall) -> Variable:
    """Make the rows of which all conditions hold."""
    subject = use.subject()
    if not use.conditions:
        raise use.error(use.call.operator, f"takes {use.operator.shapes}")
    where = use.where(subject)
    if subject.kind == "relation":
        return use.same_columns(subject, where=where)
    objects = use.rows(subject.kind, Step(use.name, sql(subject.step), where=where), subject.models)
    ifc_class = next((c for each in use.conditions for c in classes_of(each)), subject.ifc_class)
    return replace(objects, ifc_class=ifc_class)


def property_filter(use: OperatorCall) -> Variable:
    """Make the objects whose property compares: by conditions, or as published by two texts."""
    if use.conditions:
        return filtered(use)
    use.no_more_than(3)
    objects = use.of_kind(0, "set")
    use.text(1)
    name = use.operand(1)
    assert isinstance(name, Constant)
    pset, prop = use.quoted_path(name).path
    value = property_of(use, Rows(objects), pset or None, prop)
    if use.target is not None and use.target.columns is not None:
        return _properties(use, objects, pset, prop)
    sign, constant = "=", use.operand(2) if len(use.operands) == 3 else None
    if constant is None:  # those that have it
        sign, constant = "!=", Constant(None, None, name.token)
    if not isinstance(constant, Constant):
        raise use.error(use.tokens[2], f"takes {use.operator.shapes}")
    where = compare(use, value, sign, constant, prop)
    return use.same_rows(objects, sql(objects.step), where=(where,))


def _properties(use: OperatorCall, objects: Variable, pset: Token, prop: Token) -> Variable:
    """Make the relation of objects and the values of a property."""
    names = use.columns(["object", "value"])
    where = [sql(f"prop.property = {literal(str(prop))}")]
    if pset:
        where.insert(0, sql(f"prop.pset = {literal(str(pset))}"))
    if len(use.operands) == 3:
        constant = use.operand(2)
        if not isinstance(constant, Constant):
            raise use.error(use.tokens[2], f"takes {use.operator.shapes}")
        form = property_of(use, Rows(objects), pset or None, prop)
        form = replace(form, within=unchanged)  # the rows are those of the property already
        where.append(compare(use, form, "=", constant, use.tokens[1]))
    source = sql(objects.beside("properties"), " AS prop SEMI JOIN ", objects.step,
                 " ON prop.global_id = ", objects.step, ".global_id")  # fmt: skip
    columns = [
        ("prop.global_id", Column(names[0], objects)),
        ("prop.value", replace(held_column(use, objects, objects, (pset, prop)), name=names[1])),
    ]
    return use.relation(columns, source, where=tuple(where))


# relations


def projector(use: OperatorCall) -> Variable:
    """Make a set of the objects in a column, or a relation of some columns."""
    picked = []
    for k in range(max(len(use.operands), 1)):
        found = use.operand(k)
        if not isinstance(found, Picked) or found.column is None or found.path:
            raise use.error(use.tokens[k], f"takes {use.operator.shapes}")
        picked.append(found)
    relation = picked[0].variable
    if any(each.variable is not relation for each in picked):
        raise use.error(use.tokens[1], "all columns must be of one relation")
    wants_set = use.target.columns is None if use.target is not None else len(picked) == 1
    if wants_set and len(picked) == 1:
        objects = use.objects_in(picked[0])
        assert isinstance(objects.step, Step)
        return replace(objects, step=objects.step.changed(name=use.name))
    chosen = [each.column for each in picked if each.column is not None]
    names = use.columns([each.name for each in chosen])
    columns = [
        (plain(each.name), replace(each, name=name))
        for each, name in zip(chosen, names, strict=True)
    ]
    return use.relation(columns, sql(relation.step))


def extreme_of(use: OperatorCall, *, extreme: str) -> Variable:
    """Make the rows that hold the extreme value; several if they hold the same."""
    use.no_more_than(1)
    found = use.operand(0)
    if not isinstance(found, Picked):
        raise use.error(use.tokens[0], f"takes {use.operator.shapes}")
    relation = found.variable
    if found.column is None:
        value = value_of(use, Rows(relation), found.path, is_scalar=True)
        form = _ordered(value, relation)
    elif not found.path:
        if found.column.domain is not None:
            reason = f"[{found.column.name}] has objects: write [{found.column.name}].Attribute"
            raise use.error(found.token, reason)
        value = of_values(found.column)
        value.require("number", Constant(None, None, found.token))
        form = value.number or value.text
    else:
        domain = use.domain(found.column, found.token)
        value = value_of(use, Rows(domain, "one"), found.path, is_scalar=True)
        inner = _ordered(value, domain)
        same = sql(f"one.{domain.key} = ", relation.step, f".{plain(found.column.name)}")
        form = inner and sql(
            "(SELECT max(", inner, ") FROM ", domain.step, " AS one WHERE ", same, ")"
        )
    if form is None:
        raise use.error(found.token, f"{found.token} is a truth value and has no order")
    where = (sql(form, f" = (SELECT {extreme}(", form, ") FROM ", relation.step, ")"),)
    if relation.kind == "relation":
        return use.same_columns(relation, where=where)
    return use.same_rows(relation, sql(relation.step), where=where)


def _ordered(value: Value, rows: Variable) -> Sql | None:
    """Choose the form of a value that has an order: numbers of several files in one unit."""
    number = value.common if rows.may_be_several and value.common is not None else value.number
    return number if number is not None else value.text


def deassociater(use: OperatorCall) -> Variable:
    """Make the pairs of objects and those that an inverse attribute leads to."""
    use.no_more_than(1)
    found = use.operand(0)
    if not isinstance(found, Picked) or len(found.path) != 1:
        raise use.error(use.tokens[0], f"takes {use.operator.shapes}")
    relation, column, attribute = found.variable, found.column, found.path[0]
    objects = relation if column is None else use.domain(column, found.token)
    if objects.kind != "set":
        raise use.error(found.token, "only objects have inverse attributes")
    way = inverse_of(use, attribute)
    others = (
        Column("", value=as_text)
        if way.is_named
        else Column("", use.compiler.whole(objects.models))
    )
    relations = objects.beside("relations")
    if column is None:
        names = use.columns(["object", str(attribute)])
        columns = [
            (f"rel.{way.own}", Column(names[0], objects)),
            (way.target, replace(others, name=names[1])),
        ]
        source = sql(relations, " AS rel SEMI JOIN ", objects.step, f" ON rel.{way.own} = ",
                     objects.step, ".global_id")  # fmt: skip
    else:
        columns = _further(use, relation, [(way.target, str(attribute), others)])
        source = sql(relation.step, " JOIN ", relations, f" AS rel ON rel.{way.own} = ",
                     relation.step, f".{plain(column.name)}")  # fmt: skip
    require_of_class(use, objects, attribute)
    where = (*way.condition(objects), sql(f"{way.target} IS NOT NULL"))
    return use.relation(columns, source, where=where)


def _further(
    use: OperatorCall,
    relation: Variable,
    more: list[tuple[Any, str, Column]],
    *,
    at_least: int | None = None,
) -> list[tuple[Any, Column]]:
    """Name the columns of a relation and further ones, of which some need not be named."""
    natural = [each.name for each in relation.columns]
    fewest = None if at_least is None else len(natural) + at_least
    names = use.columns([*natural, *(name for _, name, _ in more)], at_least=fewest)
    columns: list[tuple[Any, Column]] = [
        (sql(relation.step, f".{plain(each.name)}"), replace(each, name=name))
        for name, each in zip(names, relation.columns, strict=False)
    ]
    for name, (expression, _, each) in zip(names[len(natural) :], more, strict=False):
        columns.append((expression, replace(each, name=name)))
    return columns


def dereferencer(use: OperatorCall) -> Variable:
    """Make the pairs of objects and the values of an attribute, one for each value of a list."""
    first = use.operand(0)
    relation = first if isinstance(first, Variable) else None
    if isinstance(first, Picked):
        relation = first.variable
    paths = [_attribute(use, k) for k in range(isinstance(first, Variable), len(use.operands))]
    path = tuple(token for each in paths for token in each)
    if relation is None or not path:
        raise use.error(use.tokens[0], f"takes {use.operator.shapes}")
    column = first.column if isinstance(first, Picked) else None
    objects = relation if column is None else use.domain(column, use.tokens[0])
    if objects.kind != "set":
        raise use.error(use.tokens[0], "only objects have attributes to follow")
    value = value_of(use, Rows(objects, "obj"), path, is_scalar=True)
    form = value.text or value.number or value.truth
    assert form is not None
    values = form
    if path[0] in schemas.object_attributes() and held_by(path) in ("", "object"):  # or a list
        json = "'$." + ".".join(path) + "'"
        listed = f"json_extract_string(obj.attributes, '$.{'.'.join(path)}[*]')"
        array = f"CASE json_type(obj.attributes, {json}) WHEN 'ARRAY' THEN {listed}"
        values = sql(f"unnest({array} ELSE [", form, "] END)")
    others = held_column(use, objects, use.compiler.whole(objects.models), path)
    where = (sql(form, " IS NOT NULL"),)
    if column is None:
        names = use.columns(["object", str(path[-1])])
        own = (sql("obj.global_id"), Column(names[0], objects))
        columns = [own, (values, replace(others, name=names[1]))]
        return use.relation(columns, sql(objects.step, " AS obj"), where=where)
    source = sql(relation.step, " JOIN ", objects.step, " AS obj ON obj.global_id = ",
                 relation.step, f".{plain(column.name)}")  # fmt: skip
    further = _further(use, relation, [(values, str(path[-1]), others)])
    return use.relation(further, source, where=where)


def _attribute(use: OperatorCall, k: int) -> tuple[Token, ...]:
    """Give the attribute in an argument: `s.Attribute`, `[a].Attribute` or in quotes."""
    found = use.operand(k)
    if isinstance(found, Picked):
        return found.path
    if isinstance(found, Constant) and isinstance(found.value, str):
        if "." in found.value:
            return use.quoted_path(found).path
        return (Token.new_borrow_pos("NAME", found.value, found.token),)
    raise use.error(use.tokens[k], f"takes {use.operator.shapes}")


TIMES = ("ScheduleStart", "ScheduleFinish", "ActualStart", "ActualFinish")
"""What a task's time has, in the order in which a relation has columns for it."""
TASKS = """(
        SELECT parent AS element, child AS task FROM {relations}
        WHERE kind = 'assigned_to_product' AND child_class = 'IfcTask'
        UNION
        SELECT child, parent FROM {relations}
        WHERE kind = 'assigned_to_process' AND parent_class = 'IfcTask'
    )"""
"""The tasks that make elements, or work on them."""


def time_resolver(use: OperatorCall) -> Variable:
    """Make the tasks of elements with their times: planned start and so on."""
    use.no_more_than(1)
    found = use.operand(0)
    column = found.column if isinstance(found, Picked) else None
    if isinstance(found, Picked) and (column is None or found.path):
        raise use.error(use.tokens[0], f"takes {use.operator.shapes}")
    relation = found.variable if isinstance(found, Picked) else use.of_kind(0, "set")
    objects = relation if column is None else use.domain(column, use.tokens[0])
    whole = use.compiler.whole(objects.models)
    relations = objects.beside("relations")
    key = column.name if column else "global_id"
    in_ifc2x3 = "ifc_date(control.attributes -> '$.{}')"
    source = sql(
        relation.step, " JOIN ", *_around(TASKS, "{relations}", relations),
        " AS rel ON rel.element = ", relation.step, f".{plain(key)}",
        " JOIN ", whole.step, " AS obj ON obj.global_id = rel.task",
        " LEFT JOIN (FROM ", relations, " WHERE kind = 'timed_by') AS timing",
        " ON timing.child = obj.global_id",
        " LEFT JOIN ", whole.step, " AS control ON control.global_id = timing.parent",
    )  # fmt: skip
    times = [
        (
            f"coalesce(obj.attributes ->> '$.TaskTime.{each}', {in_ifc2x3.format(each)})",
            each,
            Column("", value=as_text),
        )
        for each in TIMES
    ]
    more = [("obj.global_id", "task", Column("", whole)), *times]
    if column is not None:
        columns = _further(use, relation, more, at_least=2)
    else:
        names = use.columns(["object", *(name for _, name, _ in more)], at_least=3)
        own = (sql(relation.step, ".global_id"), Column(names[0], objects))
        columns = [own] + [
            (expression, replace(each, name=name))
            for name, (expression, _, each) in zip(names[1:], more, strict=False)
        ]
    return use.relation(columns, source)


def _around(text: str, mark: str, filling: Sql) -> list[Sql | str]:
    """Put SQL into a text wherever a mark stands."""
    parts: list[Sql | str] = []
    for k, part in enumerate(text.split(mark)):
        parts += [filling, part] if k else [part]
    return parts


# sets of the same kind


def combined(use: OperatorCall, *, word: str) -> Variable:
    """Make what is in both, in one of them, or in the first only."""
    use.no_more_than(2)
    one, other = (use.of_kind(k, "set", "relation") for k in (0, 1))
    if {one.kind, other.kind} != {one.kind} or len(one.columns) != len(other.columns):
        raise use.error(use.tokens[1], "both must be sets, or relations with as many columns")
    if one.kind == "relation":
        pairs = zip(one.columns, other.columns, strict=True)
        columns = tuple(_united(use, each, more) for each, more in pairs)
        if word == "UNION":
            one = replace(one, columns=columns)
        relation = use.same_columns(one)
        union = sql("(FROM ", one.step, f" {word} FROM ", other.step, ")")
        assert isinstance(relation.step, Step)
        return Variable("relation", relation.step.changed(source=union), relation.columns)
    if word == "UNION":
        return use.rows("set", Step(use.name, _all_of(one, other)), all_models((one, other)))
    if one.step is other.step:
        where = (sql("false"),) if word == "EXCEPT" else ()
        return use.same_rows(one, sql(one.step), where=where)
    join = "SEMI JOIN" if word == "INTERSECT" else "ANTI JOIN"
    return use.same_rows(one, sql(one.step, f" {join} ", other.step, " USING (global_id)"))


def _all_of(one: Variable, other: Variable) -> Sql:
    """Write the rows of two sets, those that are in both once."""
    if one.step is other.step:
        return sql(one.step)
    parts = (one.step, " UNION ALL BY NAME FROM ", other.step, " ANTI JOIN ", one.step)
    return sql("(FROM ", *parts, f" USING ({one.key}))")


def _united(use: OperatorCall, one: Column, other: Column) -> Column:
    """Give a column for what is in the columns of two relations."""
    if one.domain is other.domain:
        return one
    kinds = ["values" if each.domain is None else each.domain.kind for each in (one, other)]
    if one.domain is None or other.domain is None or kinds[0] != kinds[1]:
        names = f"[{one.name}] and [{other.name}]"
        raise use.error(use.call.operator, f"{names} do not go together: {' and '.join(kinds)}")
    models = all_models((one.domain, other.domain))
    step = Step("objects", _all_of(one.domain, other.domain))
    return replace(one, domain=Variable(one.domain.kind, step, models=models))


# space


def spatial(
    use: OperatorCall,
    *,
    is_symmetric: bool,
    has_null: bool = True,
    measure: str | None = None,
    takes_length: bool = False,
    takes_tolerance: bool = False,
    fixed: str = "",
) -> Variable:
    """Make the pairs of objects that a spatial operator finds.

    Parameters
    ----------
    use : OperatorCall
    is_symmetric : bool
        Whether a pair means the same in both orders: within one set it is given once then.
    has_null : bool
        Whether the macro takes NULL for pairs within one set.
    measure : str, optional
        A third column that the macro has.
    takes_length : bool
        Whether the last argument is a length.
    takes_tolerance : bool
        Whether the last argument may be a length, which is the tolerance.
    fixed : str
        A further argument of the macro.
    """
    assert use.operator.macro is not None
    last = use.operands[-1] if len(use.operands) > 1 else None
    is_number = isinstance(last, Constant) and type(last.value) in (int, float)
    has_tolerance = takes_tolerance and is_number
    count = len(use.operands) - (takes_length or has_tolerance)
    if count < 1 or count > 2:
        raise use.error(use.call.operator, f"takes {use.operator.shapes}")
    a = use.of_kind(0, "set")
    b = use.of_kind(1, "set") if count == 2 else None
    length = [literal(use.metres(count))] if takes_length else []
    if has_tolerance:
        if {"tol", "tolerance"} & use.keywords.keys():
            raise use.error(use.tokens[count], "the tolerance stands here and as a keyword")
        fixed = f"tolerance := {literal(use.metres(count))}"
    second: Any = b or ("NULL" if is_symmetric and has_null else a)
    arguments = [a, second, *length, *([fixed] if fixed else [])]
    if "exclude" in use.keywords:
        models = Variable("set", a.step, models=all_models([a, b or a]))
        relations = Quoted(Step("relations", models.beside("relations")))
        arguments.append(sql("relations := ", relations))
    source = use.call_macro(use.operator.macro[1], *arguments)
    natural = ["a", "b", measure] if measure else ["a", "b"]
    names = use.columns(natural, at_least=2)
    kinds = (Column(names[0], a), Column(names[1], b or a), Column(names[-1]))
    where = (sql("a < b"),) if b is None and is_symmetric and not has_null else ()
    pairs = list(zip(natural, kinds, strict=False))[: len(names)]
    return use.relation(pairs, source, where=where)


# clouds


def import_cloud(use: OperatorCall) -> Variable:
    """Make the points of a file, table or view."""
    use.no_more_than(1)
    path = use.text(0)
    is_file = find_reader(path) or SLASH.search(path) or (is_pattern(path) and has_match(path))
    if is_file and not is_quoted(path):
        return use.rows("cloud", Step(use.name, sql(f"read_points({literal(path)})")))
    return use.rows("cloud", Step(use.name, sql(table_named(path))))


def ground_filter(use: OperatorCall) -> Variable:
    """Make the ground points of a cloud, with their height."""
    use.no_more_than(1)
    cloud = use.of_kind(0, "cloud")
    source = sql(
        cloud.step, " JOIN ", use.call_macro("classify_ground", cloud), " USING (point_id)"
    )
    return use.rows("cloud", Step(use.name, source, where=(sql("is_ground"),)))


def planes(use: OperatorCall) -> Variable:
    """Make the planes of a cloud."""
    use.no_more_than(1)
    return use.rows(
        "planes", Step(use.name, use.call_macro("detect_planes", use.of_kind(0, "cloud")))
    )


MEASURES = ("deviation", "coverage", "overlap", "nearest", "angle", "rank", "point_count", "area")
"""Further columns of `plane_elements` that a relation may have, by these names."""


def plane_elements(use: OperatorCall) -> Variable:
    """Make the pairs of planes of a cloud and elements that they are the surface of."""
    use.no_more_than(2)
    cloud, elements = use.of_kind(0, "cloud"), use.of_kind(1, "set")
    source = use.call_macro("plane_elements", cloud, elements)
    found = Variable("planes", Step("planes", source))
    columns = [("plane_id", Column("plane", found)), ("global_id", Column("element", elements))]
    wanted = use.target.columns if use.target is not None else None
    if wanted is None:
        use.columns(["plane", "element", *MEASURES], at_least=2)
    for k, token in enumerate(wanted or ()):
        if k < 2:
            columns[k] = (columns[k][0], Column(str(token), columns[k][1].domain))
        elif token not in MEASURES:
            raise use.error(token, f"no column {str(token)!r}; there is {', '.join(MEASURES)}")
        else:
            columns.append((str(token), Column(str(token))))
    return use.relation(columns, source, where=(sql("global_id IS NOT NULL"),))


def deviates(use: OperatorCall) -> Variable:
    """Make the set of the elements that a cloud shows farther off their place than a length."""
    use.no_more_than(3)
    elements, cloud = use.of_kind(0, "set"), use.of_kind(1, "cloud")
    length = literal(use.metres(2))
    source = use.call_macro("coverage", cloud, elements, f"tolerance := {length}")
    moved = sql(" SEMI JOIN (FROM ", source, " WHERE status = 'displaced') USING (global_id)")
    return use.same_rows(elements, sql(elements.step, moved))


def closer_than(use: OperatorCall) -> Variable:
    """Make the pairs that are at most a length apart: of elements, or of points and elements."""
    if not isinstance(use.operand(0), Variable) or use.of_kind(0, "set", "cloud").kind == "set":
        return spatial(use, is_symmetric=True, measure="distance", takes_length=True)
    use.no_more_than(3)
    cloud, elements = use.of_kind(0, "cloud"), use.of_kind(1, "set")
    length, keywords = literal(use.metres(2)), named_arguments("distance", "point_elements")
    source = use.call_macro("point_elements", cloud, elements, length, keywords=keywords)
    names = use.columns(["point", "element", "distance"], at_least=2)
    columns = [
        ("point_id", Column(names[0], cloud)),
        ("global_id", Column(names[1], elements)),
        ("distance", Column(names[-1])),
    ]
    return use.relation(columns[: len(names)], source)


def _of_space(
    name: str, shorts: tuple[str, ...], macro: str, folder: str, doc: str, *, is_symmetric: bool,
    has_null: bool = True, measure: str | None = None,
) -> Operator:  # fmt: skip
    is_topology = folder == "intersects_with"
    return Operator(
        name,
        shorts,
        partial(
            spatial,
            is_symmetric=is_symmetric,
            has_null=has_null,
            measure=measure,
            takes_tolerance=is_topology,
        ),
        f"one or two sets or columns of relations{', and perhaps a length' * is_topology}",
        f"relation [a|b{f'|{measure}' if measure else ''}]",
        doc,
        f"t[a|b] = {name}(s, w)",
        (folder, macro),
    )


def _of_direction(direction: str, macro: str, *, strict: bool) -> Operator:
    kind = "Strict" if strict else "Relaxed"
    name = f"{direction}{kind}"
    full = direction if direction in ("Above", "Below") else f"{direction}Of"
    where = full.lower().replace("of", " of")
    # in publications NorthOf, without a word for how much of b: the relaxed one, as in SQL
    further = {f"{full}{kind}"} - {name} | ({full} if not strict else set())
    return Operator(
        name,
        (f"{direction[0]}{'S' if strict else 'R'}", *sorted(further)),
        partial(spatial, is_symmetric=False, fixed="strict := true" if strict else ""),
        "one or two sets or columns of relations",
        "relation [a|b]",
        f"The pairs of which {'all' if strict else 'some'} of b lies {where} a.",
        f"t[a|b] = {name}(s, w)",
        ("direction", macro),
        ("strict",),
    )


CONDITIONS = "a set or relation, and conditions"
OPERATORS: tuple[Operator, ...] = (
    Operator(
        "ImportModel", ("IM",), import_model, "a file, or the name of a loaded model", "set",
        "The objects of a building model, with or without geometry.",
        'm = ImportModel("house.ifc")',
    ),
    Operator(
        "ExportModel", ("EM",), export_model, "a set, and the name of an .ifc file", "set",
        "Writes objects as a model, with all that belongs to them.",
        'done = ExportModel(w, "walls.ifc")',
    ),
    Operator(
        "TypeFilter", ("TF",), filtered, CONDITIONS, "as its argument",
        "The objects of a class or its subtypes.",
        "w = TypeFilter(m is IfcWall)", filters=True,
    ),
    Operator(
        "AttributeFilter", ("AF",), filtered, CONDITIONS, "as its argument",
        "The rows of which conditions on attributes, properties, columns or counts hold.",
        'd = AttributeFilter(m, m.Name ~ "door" and not m.Tag = unknown)', filters=True,
    ),
    Operator(
        "PropertyFilter", ("PF", "PropertyFilterOperator"), property_filter,
        "a set and conditions on properties, or a set, a property and its value",
        "set, or relation [object|value]",
        "The objects of which a property compares.",
        'e = PropertyFilter(w, "Pset_WallCommon.IsExternal" = true)', filters=True,
    ),
    Operator(
        "Dereferencer", ("DR",), dereferencer, "an attribute of a set or of a column",
        "relation [object|value], or one column more",
        "The values of an attribute, a row for each.",
        "a[task|start] = Dereferencer(m.TaskTime.ScheduleStart)",
    ),
    Operator(
        "Deassociater", ("DA",), deassociater, "an inverse attribute of a set or of a column",
        "relation [object|other], or one column more",
        "Follows a relationship from objects to others.",
        "o[host|open] = Deassociater(m.HasOpenings)",
    ),
    Operator(
        "Projector", ("PR",), projector, "a relation and columns of it", "set, or relation",
        "The objects in a column, each once, or a relation of some columns.",
        "h = Projector(o, [host])",
    ),
    Operator(
        "Maximum", ("MA",), partial(extreme_of, extreme="max"),
        "an attribute or a column of values", "as its argument",
        "The rows with the greatest value, all of them if several have it.",
        "k = Maximum(m.OverallHeight)",
    ),
    Operator(
        "Minimum", ("MI",), partial(extreme_of, extreme="min"),
        "an attribute or a column of values", "as its argument",
        "The rows with the smallest value, all of them if several have it.",
        "k = Minimum(m.OverallHeight)",
    ),
    Operator(
        "TimeResolver", ("TR", "TaskTimer"), time_resolver, "a set or a column of a relation",
        "relation with the task and up to four times more",
        "The tasks of elements with their times, as texts.",
        "t[element|task|start] = TimeResolver(m)",
    ),
    Operator(
        "Union", ("UN",), partial(combined, word="UNION"), "two sets or relations",
        "as its arguments", "What is in one of the two.", "u = Union(w, s)",
    ),
    Operator(
        "Intersection", ("IN",), partial(combined, word="INTERSECT"), "two sets or relations",
        "as its arguments", "What is in both.", "u = Intersection(w, s)",
    ),
    Operator(
        "Difference", ("DI",), partial(combined, word="EXCEPT"), "two sets or relations",
        "as its arguments", "What is in the first, but not in the second.", "u = Difference(m, w)",
    ),
    _of_space("Overlaps", ("OL", "Overlap"), "overlaps_with", "intersects_with",
              "The pairs that have a common interior, and each a part outside the other.",
              is_symmetric=True),
    _of_space("Touches", ("TO", "Touch"), "touches", "intersects_with",
              "The pairs that are in contact without a common interior.", is_symmetric=True),
    _of_space("Contains", ("CT", "Contain"), "contains_element", "intersects_with",
              "The pairs of which b lies inside a, without contact.", is_symmetric=False),
    _of_space("Inside", ("IS", "Within"), "inside", "intersects_with",
              "The pairs of which a lies inside b, without contact.", is_symmetric=False),
    _of_space("Covers", ("CO",), "covers", "intersects_with",
              "The pairs of which b lies inside a, in contact with its surface.",
              is_symmetric=False),
    _of_space("CoveredBy", ("CB",), "covered_by", "intersects_with",
              "The pairs of which a lies inside b, in contact with its surface.",
              is_symmetric=False),
    _of_space("Disjoint", ("DJ",), "disjoint", "intersects_with",
              "The pairs that have nothing in common.", is_symmetric=True, has_null=False),
    _of_space("Equals", ("EQ", "Equal"), "equals", "intersects_with",
              "The pairs that are the same body.", is_symmetric=True),
    _of_space("Intersects", ("IX", "IntersectsWith"), "intersects_with", "intersects_with",
              "The pairs that have a common interior: what clashes.", is_symmetric=True,
              measure="penetration"),
    _of_space("Distance", ("DS",), "distance", "distance", "How far pairs are apart, in metres.",
              is_symmetric=True, measure="distance"),
    Operator(
        "CloserThan", ("CL",), closer_than, "one or two sets, or a cloud and a set, and a length",
        "relation [a|b|distance] or [point|element|distance]",
        "The pairs that are at most a length apart.", "t[a|b] = CloserThan(s, w, 0.5m)",
        ("distance", "closer_than"),
    ),
    Operator(
        "FartherThan", ("FA",),
        partial(spatial, is_symmetric=True, has_null=False, takes_length=True),
        "one or two sets or columns of relations, and a length", "relation [a|b]",
        "The pairs that are more than a length apart.", "t[a|b] = FartherThan(s, w, 5m)",
        ("distance", "farther_than"),
    ),
    _of_space("Nearest", ("NE",), "nearest", "distance", "The nearest of b for each of a.",
              is_symmetric=False, measure="distance"),
    *(
        _of_direction(direction, macro, strict=strict)
        for direction, macro in (
            ("Above", "above"), ("Below", "below"), ("North", "north_of"), ("South", "south_of"),
            ("East", "east_of"), ("West", "west_of"),
        )
        for strict in (False, True)
    ),
    Operator(
        "ImportCloud", ("IC",), import_cloud, "a file, or the name of a table", "cloud",
        "The points of a scan.", 'c = ImportCloud("scan.laz")',
    ),
    Operator(
        "GroundFilter", ("GF",), ground_filter, "a cloud", "cloud",
        "The ground points of a cloud, with their height above the ground.",
        "g = GroundFilter(c)", ("classify_ground", "classify_ground"),
    ),
    Operator(
        "Planes", ("PL",), planes, "a cloud", "planes", "The planes of a cloud.", "p = Planes(c)",
        ("detect_planes", "detect_planes"),
    ),
    Operator(
        "PlaneElements", ("PE",), plane_elements, "a cloud and a set",
        f"relation [plane|element], and columns named {', '.join(MEASURES)}",
        "The planes of a cloud and the elements that they are the surface of.",
        "b[plane|wall|deviation] = PlaneElements(c, w)", ("plane_elements", "plane_elements"),
    ),
    Operator(
        "Deviates", ("DV",), deviates, "a set, a cloud and a length", "set",
        "The elements that a cloud shows farther off their place than a length.",
        "off = Deviates(w, c, 10mm)", ("coverage", "coverage"), ("tolerance", "faces"),
    ),
)  # fmt: skip
BY_NAME = {name: each for each in OPERATORS for name in (each.name, *each.shorts)}


def operators() -> tuple[Operator, ...]:
    """List all operators of the language, in the order of the reference."""
    return OPERATORS
