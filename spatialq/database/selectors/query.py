"""Writes a selector as a query over the tables of a model, as `load` names them.

Facets apply one after the other, as IfcOpenShell applies them: classes and GlobalIds add objects,
the others leave out those that do not compare. A part that begins with neither begins with all
products and types of products.
"""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import groupby

from spatialq.database.frames import beside
from spatialq.database.model_tables import beside_objects
from spatialq.database.selectors import standard
from spatialq.database.selectors.comparison import (
    json_compares,
    matches,
    none_compares,
    text_compares,
)
from spatialq.database.selectors.grammar import (
    Association,
    Attribute,
    Comparison,
    Entity,
    Facet,
    Instance,
    Name,
    Property,
    Query,
    Regex,
    parse,
)
from spatialq.errors import FileWarning
from spatialq.functions.sql_text import literal
from spatialq.io.ifc import schemas
from spatialq.io.ifc.layouts import ELSEWHERE
from spatialq.runtime.callers import level_of_caller

PRODUCTS = ("IfcProduct", "IfcTypeProduct")
UNREADABLE = ELSEWHERE - {"GlobalId"}
"""Attributes that the table of objects does not have: owners, and what leads into the geometry."""

OF_GROUPS = "is_a(r.relation_class, 'IfcRelAssignsToGroup')"
MAX_DEPTH = 100
"""How far up a storey is looked for, since damaged files have circles."""
SHOWN = 5
"""Names that an error shows where none is near."""
DECOMPOSES = ("contained_in", "aggregates", "nests", "voids", "fills")
"""The kinds of relations that lead from a part to its whole, as `parent` understands them."""
COLUMNS = (
    "file_name", "step_id", "global_id", "ifc_class", "name", "predefined_type", "type_id",
    "type_name", "container_id", "parent_id",
)  # fmt: skip
"""Columns of objects that conditions name; others are expressions of their own."""
ABOVE = {
    "storey": "IfcBuildingStorey",
    "building": "IfcBuilding",
    "site": "IfcSite",
    "space": "IfcSpace",
}
"""Keys of a query that lead to the nearest object of a class above an object."""
KEYS = ("type", "container", "parent", *ABOVE)
"""Keys of a query that lead to another object."""
SUPPORTED = (
    "an attribute, a property as Set.Property, class, predefined_type or id, each also behind "
    f"{', '.join(KEYS)}; material.Name, materials.Name, group.Name, "
    "classification.Name and classification.Identification"
)


def selector_sql(caller: str, selector: str | None, objects: str | None) -> str:
    """Write the query for the keys ``file_name step_id`` of the objects that are selected.

    Parameters
    ----------
    caller, selector : str
    objects : str
        Name of the table of objects; the others of the models are beside it.

    Raises
    ------
    ValueError
        If the selector is none, or names a class or an attribute that no schema has.
    """
    if selector is None or not selector.strip():
        got = "NULL" if selector is None else repr(selector)
        message = f"{caller}: selector must be a text such as 'IfcWall, Name=W1', got {got}"
        raise ValueError(message)
    if objects is None:
        message = f"{caller}: objects must be the name of a table, got NULL"
        raise ValueError(message)
    return Writer(caller, objects).query(parse(caller, selector))


def objects_beside(place: str, elements: str | None) -> str | None:
    """Name the table of objects that `load` makes beside a table of elements.

    `place` is what an error is about, such as 'elements_where: elements'.
    """
    return None if elements is None else beside(place, elements, "objects")


class Writer:
    """One query: the conditions of its facets, and the common table expressions that they need.

    Parameters
    ----------
    caller : str
        The function that error sentences name.
    objects : str
        The name of the table of objects; those beside it are called alike.
    """

    def __init__(self, caller: str, objects: str) -> None:
        self.caller = caller
        self.objects = objects
        self.classes: list[str] = []
        self.columns: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        self.checks: dict[str, None] = {}

    def query(self, parts: Sequence[Sequence[Facet]]) -> str:
        """Write the whole query."""
        condition = " OR ".join(dict.fromkeys(map(self._part, parts)))
        where = " AND ".join([f"({condition})", *self.checks])
        columns = [*COLUMNS, *(f"{sql} AS {name}" for sql, name in self.columns.items())]
        given = ", ".join(map(literal, (f"{self.caller}: objects", self.objects, COLUMNS)))
        objects = f"SELECT {', '.join(columns)} FROM query(spatialq_rows_sql({given}))"
        tables = "".join(f",\n{name} AS ({sql})" for name, sql in self.tables.items())
        # materialized: filters would evaluate the columns again wherever they name them
        return (
            f"WITH RECURSIVE o AS MATERIALIZED ({objects}){tables}\n"
            f"SELECT o.file_name, o.step_id FROM o WHERE {where}"
        )

    def _column(self, of: str, sql: str) -> str:
        """Name the column of an object that an expression over the table of objects gives."""
        return f"{of}.{self.columns.setdefault(sql, f'value_{len(self.columns)}')}"

    def _beside(self, table: str) -> str:
        return f"FROM query_table({literal(beside_objects(self.objects, table))})"

    def _use(self, name: str, sql: str | None = None) -> str:
        """Give the name of a common table expression, by default a table beside the objects."""
        self.tables.setdefault(name, sql or self._beside(name))
        return name

    # facets

    def _part(self, facets: Sequence[Facet]) -> str:
        steps = []
        if not isinstance(facets[0], (Instance, Entity)):
            steps += [("OR", self._is_a(name)) for name in PRODUCTS]
        for facet in facets:
            condition = self._facet(facet)
            match facet:
                case Instance(excluded=True) | Entity(excluded=True):
                    steps.append(("AND", f"NOT {condition}"))
                case Instance() | Entity():
                    steps.append(("OR", condition))
                case _:
                    steps.append(("AND", condition))
        whole = "false"
        for operator, run in groupby(steps, key=lambda step: step[0]):
            conditions = dict.fromkeys([whole, *(condition for _, condition in run)])
            whole = f"({f' {operator} '.join(conditions)})"
        return whole

    def _facet(self, facet: Facet) -> str:
        match facet:
            case Instance(global_id):
                return f"coalesce(o.global_id = {literal(global_id)}, false)"
            case Entity(ifc_class):
                known = schemas.known_class(self.caller, "a class of the selector", ifc_class)
                self.classes.append(known)
                return self._is_a(known)
            case Attribute(name, comparison):
                return self._attribute("o", name, comparison)
            case Property(pset, prop, comparison):
                return self._property("o", pset, prop, comparison)
            case Query(keys, comparison):
                return self._keys(keys, comparison)
            case Association("type", comparison):
                return self._type(comparison)
            case Association("material", comparison):
                return self._associated("materials", ("material", "category"), comparison)
            case Association("classification", comparison):
                return self._associated("classifications", ("name", "identification"), comparison)
            case Association("group", comparison):
                return self._group(comparison)
            case Association("location", comparison):
                return self._location(comparison)
            case Association(comparison=comparison):
                return self._parent(comparison)

    def _is_a(self, ifc_class: str, of: str = "o") -> str:
        """Write whether an object is of a class, as its own schema says it."""
        answers = {schemas.subtypes(ifc_class, schema) for schema in (None, *schemas.schemas())}
        schema = "" if len(answers) == 1 else ", ifc_schema := ifc_schema"
        return self._column(of, f"coalesce(is_a(ifc_class, {literal(ifc_class)}{schema}), false)")

    def _attribute(self, of: str, name: str, comparison: Comparison) -> str:
        self._require_attribute(name)
        if name == "GlobalId":
            return text_compares(f"{of}.global_id", comparison)
        if name == "PredefinedType":
            return text_compares(f"{of}.predefined_type", comparison)
        value = self._column(of, f"json_extract(attributes, {literal(f'/{name}')})")
        return json_compares(value, comparison)

    def _require_attribute(self, name: str) -> None:
        known = schemas.object_attributes()
        if name in UNREADABLE:
            message = f"{self.caller}: the attribute {name} has no value to compare with"
        elif name in known:
            return
        elif relations := schemas.inverse_of_objects().get(name):
            message = (
                f"{self.caller}: {name} is an inverse attribute and has no value to compare with"
            )
            if all(each.startswith("IfcRel") for each in relations):
                message += f"; the table relations has its rows of {' and '.join(relations)}"
        else:
            hint = self._property_hint(name, schemas.near_names(name, known))
            message = f"{self.caller}: no class of objects has an attribute {name!r}; {hint}"
        raise ValueError(message)

    def _property_hint(self, name: str, near: Sequence[str]) -> str:
        """Say what an unknown attribute may be: a property, or one of the near attributes."""
        if name in schemas.property_sets():
            return f"a property of the set is written {name}.Property"
        written = f"a property is written Set.Property, or /.*/.{name} for any set"
        if sets := standard.sets_with(name):
            # those of the classes of the selector first, as Pset_DoorCommon of IfcDoor
            classes = [name.removeprefix("Ifc") for name in self.classes]
            best = min(sets, key=lambda pset: not any(name in pset for name in classes))
            return f"{written}, such as {best}.{name}"
        return f"near names are {', '.join(near)}" if near else written

    def _property(self, of: str, pset: Name, prop: Name, comparison: Comparison) -> str:
        """Write whether a property compares: the first one that the names mean."""
        self._require_property(pset, prop)
        return json_compares(self._column(of, _property_value(pset, prop)), comparison)

    def _require_property(self, pset: Name, prop: Name) -> None:
        """Have the query warn where no object has such a property, and no standard set."""
        if standard.has_property(pset, prop):
            return
        properties = self._use("properties")
        is_set, is_property = _is("p.pset", pset), _is("p.property", prop)
        names = ", ".join(
            literal(f"/{name.pattern}/" if isinstance(name, Regex) else name)
            for name in (self.caller, pset, prop)
        )
        check = (
            f"(SELECT CASE WHEN bool_or({is_set} AND {is_property}) THEN true "
            f"ELSE spatialq_selector_unknown({names}, list(DISTINCT p.pset), "
            f"list(DISTINCT p.property) FILTER ({is_set})) END FROM {properties} AS p)"
        )
        self.checks[check] = None

    def _type(self, comparison: Comparison) -> str:
        is_type = self._is_a("IfcTypeObject")
        name, global_id = (
            text_compares(f"CASE WHEN {is_type} THEN {own} ELSE {of_type} END", comparison)
            for own, of_type in (("o.name", "o.type_name"), ("o.global_id", "o.type_id"))
        )
        return f"({name} OR {global_id})"

    def _associated(self, table: str, columns: Sequence[str], comparison: Comparison) -> str:
        """Write whether a material or classification compares.

        An object that has some, and an operator other than ``=``, give the contrary of what the
        comparison of each says: so does IfcOpenShell.
        """
        rows = f"SELECT (r.file_name, r.global_id) FROM {self._use(table)} AS r"
        compares = " OR ".join(text_compares(f"r.{column}", comparison) for column in columns)
        found = self._in(f"{rows} WHERE {compares}")
        found = found if is_equal(comparison) else f"NOT {found}"
        return _if_any(self._in(rows), found, none_compares(comparison))

    def _group(self, comparison: Comparison) -> str:
        found = self._in(
            f"SELECT (r.file_name, r.child) FROM {self._use('relations')} AS r "
            f"WHERE {OF_GROUPS} AND {_named('r.parent_name', 'r.parent', equal(comparison))}"
        )
        return found if is_equal(comparison) else f"(NOT {found})"

    def _location(self, comparison: Comparison) -> str:
        """Write whether an object is in a place, or in a part of it."""
        relations, start = self._use("relations"), self._places()
        inside = f"inside_{len(self.tables)}"
        self.tables[inside] = (
            "SELECT o.file_name, o.global_id FROM o WHERE o.ifc_class <> 'IfcProject' AND "
            f"{_named('o.name', 'o.global_id', equal(comparison))} UNION "
            f"SELECT r.file_name, r.child FROM {relations} AS r "
            f"JOIN {inside} AS i ON i.file_name = r.file_name AND i.global_id = r.parent "
            "WHERE r.kind = 'aggregates'"
        )
        rows = f"SELECT (s.file_name, s.global_id) FROM {start} AS s"
        of_place = "AS p ON p.file_name = s.file_name AND p.global_id = s.place"
        found = self._in(f"{rows} JOIN {inside} {of_place}")
        some = self._in(f"{rows} JOIN o {of_place} AND p.ifc_class <> 'IfcProject'")
        found = found if is_equal(comparison) else f"NOT {found}"
        return _if_any(some, found, none_compares(comparison))

    def _containers(self) -> str:
        """Write the containers of objects: their own, else that of the nearest whole with one."""
        reach = self._use(
            "reach",
            "SELECT o.file_name, o.global_id, o.container_id, o.parent_id FROM o UNION "
            "SELECT r.file_name, r.global_id, o.container_id, o.parent_id FROM reach AS r "
            "JOIN o ON o.file_name = r.file_name AND o.global_id = r.parent_id "
            "WHERE r.container_id IS NULL",
        )
        return self._use(
            "containers",
            "SELECT r.file_name, r.global_id, r.container_id AS place "
            f"FROM {reach} AS r WHERE r.container_id IS NOT NULL",
        )

    def _places(self) -> str:
        """Write the containers of objects, and the wholes of those that have none."""
        return self._use(
            "places",
            f"FROM {self._containers()} UNION ALL SELECT r.file_name, r.child, r.parent "
            f"FROM {self._use('relations')} AS r WHERE r.kind = 'aggregates' AND "
            "(r.file_name, r.child) NOT IN "
            "(SELECT (c.file_name, c.global_id) FROM containers AS c)",
        )

    def _parent(self, comparison: Comparison) -> str:
        """Write whether an object belongs to one that compares, or is one to which some belong."""
        relations = self._use("relations")
        below = f"below_{len(self.tables)}"
        self.tables[below] = (
            f"SELECT r.file_name, r.parent AS global_id FROM {relations} AS r "
            f"WHERE r.kind IN {DECOMPOSES} AND {_named('r.parent_name', 'r.parent', comparison)} "
            f"UNION SELECT r.file_name, r.child FROM {relations} AS r "
            f"JOIN {below} AS b ON b.file_name = r.file_name AND b.global_id = r.parent "
            f"WHERE r.kind IN {(*DECOMPOSES, 'adheres_to')}"
        )
        found = self._in(f"SELECT (b.file_name, b.global_id) FROM {below} AS b")
        return found if is_equal(comparison) else f"(NOT {found})"

    # what a chain of keys leads to

    def _keys(self, keys: tuple[Name, ...], comparison: Comparison) -> str:
        match keys:
            case ("material", "Name"):
                return self._material_name(comparison)
            case ("materials", "Name"):
                return self._any_of("materials", "global_id", "material", comparison)
            case ("classification", "Name"):
                return self._any_of("classifications", "global_id", "name", comparison)
            case ("classification", "Identification" | "ItemReference"):
                return self._any_of("classifications", "global_id", "identification", comparison)
            case ("group", "Name"):
                return self._any_of("relations", "child", "parent_name", comparison, OF_GROUPS)
            case (str(key), _, *_) if key in KEYS:
                rows = (
                    f"SELECT (s.file_name, s.global_id) FROM {self._led(key)} AS s "
                    "JOIN o AS n ON n.file_name = s.file_name AND n.global_id = s.place"
                )
                found = self._in(f"{rows} WHERE {self._value('n', keys[1:], comparison)}")
                return _if_any(self._in(rows), found, none_compares(comparison))
        return self._value("o", keys, comparison)

    def _value(self, of: str, keys: tuple[Name, ...], comparison: Comparison) -> str:
        """Write whether a value of an object itself compares."""
        match keys:
            case ("class",):
                return text_compares(f"{of}.ifc_class", comparison)
            case ("predefined_type",):
                return text_compares(f"{of}.predefined_type", comparison)
            case ("id",):
                return json_compares(f"to_json({of}.step_id)", comparison)
            case (str(name),) if name[:1].isupper():
                return self._attribute(of, name, comparison)
            case (str(pset), str(prop)):
                return self._property(of, pset, prop, comparison)
        shown = ".".join(f"/{key.pattern}/" if isinstance(key, Regex) else key for key in keys)
        message = f"{self.caller}: a query must lead to {SUPPORTED}, got {shown!r}"
        raise ValueError(message)

    def _material_name(self, comparison: Comparison) -> str:
        """Compare the name of a material, or of the set of layers, profiles or constituents."""
        rows = f"SELECT (r.file_name, r.global_id) FROM {self._use('materials')} AS r"
        name = "CASE r.kind WHEN 'material' THEN r.material ELSE r.set_name END"
        found = self._in(f"{rows} WHERE {text_compares(name, comparison)}")
        return _if_any(self._in(rows), found, none_compares(comparison))

    def _any_of(
        self, table: str, key: str, column: str, comparison: Comparison, condition: str = "true"
    ) -> str:
        """Write whether one of several texts compares, or none does where it is negated."""
        compares = text_compares(f"r.{column}", replace(comparison, negated=False))
        found = self._in(
            f"SELECT (r.file_name, r.{key}) FROM {self._use(table)} AS r "
            f"WHERE {condition} AND {compares}"
        )
        return f"(NOT {found})" if comparison.negated else found

    def _led(self, key: str) -> str:
        """Name the table of what a key leads to from each object: ``file_name global_id place``."""
        if key == "container":
            return self._containers()
        if key == "type":
            place = f"CASE WHEN {self._is_a('IfcTypeObject')} THEN o.global_id ELSE o.type_id END"
        else:
            place = "coalesce(o.container_id, o.parent_id)"
        step = f"SELECT o.file_name, o.global_id, {place} AS place"
        if key not in ABOVE:
            return self._use(f"led_to_{key}", f"{step} FROM o")
        above = self._use(
            "above",
            f"{step}, 1 AS steps FROM o UNION ALL "
            f"SELECT a.file_name, a.global_id, {place}, a.steps + 1 FROM above AS a "
            "JOIN o ON o.file_name = a.file_name AND o.global_id = a.place "
            f"WHERE a.steps < {MAX_DEPTH}",
        )
        return self._use(
            f"led_to_{key}",
            "SELECT a.file_name, a.global_id, arg_min(a.place, a.steps) AS place "
            f"FROM {above} AS a JOIN o AS n ON n.file_name = a.file_name AND n.global_id = a.place "
            f"WHERE {self._is_a(ABOVE[key], 'n')} GROUP BY ALL",
        )

    def _in(self, rows: str) -> str:
        return f"coalesce((o.file_name, o.global_id) IN ({rows}), false)"


def is_equal(comparison: Comparison) -> bool:
    """Say whether a comparison is ``=``, and nothing else."""
    return comparison.operator == "=" and not comparison.negated


def equal(comparison: Comparison) -> Comparison:
    """Give the comparison with the same value by ``=``."""
    return Comparison("=", comparison.value)


def pointer(name: str) -> str:
    """Write a name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _pointer(sql: str) -> str:
    return f"replace(replace({sql}, '~', '~0'), '/', '~1')"


def _first_key(keys: str, regex: Regex) -> str:
    """Write the first of several keys that matches, as a part of a JSON pointer."""
    return _pointer(f"list_filter({keys}, lambda k: {matches('k', regex)})[1]")


def _property_value(pset: Name, prop: Name) -> str:
    """Write the value of the first property of the column `properties` that the names mean."""
    if isinstance(pset, str):
        path = literal(f"/{pointer(pset)}")
        if isinstance(prop, str):
            path = literal(f"/{pointer(pset)}/{pointer(prop)}")
        else:
            path += f" || '/' || {_first_key(f'json_keys(properties, {path})', prop)}"
        return f"json_extract(properties, {path})"
    names = f"list_filter(json_keys(properties), lambda s: {matches('s', pset)})"
    start = f"'/' || {_pointer('s')} || '/'"
    if isinstance(prop, str):
        value = f"json_extract(properties, {start} || {literal(pointer(prop))})"
        values = f"list_transform({names}, lambda s: {value})"
        return f"list_filter({values}, lambda v: json_type(v) <> 'NULL')[1]"
    key = _first_key(f"json_keys(properties, '/' || {_pointer('s')})", prop)
    paths = f"list_transform({names}, lambda s: {start} || {key})"
    return f"json_extract(properties, list_filter({paths}, lambda p: p IS NOT NULL)[1])"


def _is(column: str, name: Name) -> str:
    return matches(column, name) if isinstance(name, Regex) else f"{column} = {literal(name)}"


def _named(name: str, global_id: str, comparison: Comparison) -> str:
    return f"({text_compares(name, comparison)} OR {text_compares(global_id, comparison)})"


def _if_any(some: str, found: str, otherwise: bool) -> str:  # noqa: FBT001
    """Write a condition on objects that have some of it, and what holds for the others."""
    return f"(CASE WHEN {some} THEN {found} ELSE {literal(otherwise)} END)"


def unknown_property(
    caller: str,
    pset: str,
    prop: str,
    psets: list[str | None] | None,
    properties: list[str | None] | None,
) -> bool:
    """Warn of a property that no object has: nothing has a value of it, as IfcOpenShell says it.

    The warning names the near property sets, or the near properties of the set, those of the model
    before the standard ones.

    Raises
    ------
    ValueError
        If it is no property, but what a query leads to by a key.
    """
    if pset in KEYS:
        hint = f'what belongs to the {pset} is written query:"{pset}.{prop}"'
        message = f"{caller}: no object has a property set named {pset!r}; {hint}"
        raise ValueError(message)
    sets = schemas.property_sets()
    of_model: Collection[str | None] = psets or []
    of_standard: Collection[str] = sets
    what, name = "property set", pset
    if properties or pset in sets:
        of_model, of_standard = properties or [], sets.get(pset, [])
        what, name = f"property of {pset}", prop
    own = sorted(each for each in set(of_model) if each is not None)
    near = [*schemas.near_names(name, own), *schemas.near_names(name, of_standard)]
    if pset.startswith('"') and prop.endswith('"'):  # one pair of quotes, around the point as well
        hint = f'write {pset}"."{prop}'
    elif near:
        hint = f"near names are {', '.join(dict.fromkeys(near))}"
    else:
        hint = f"the model has {', '.join(own[:SHOWN] or ['none'])}"
    message = f"{caller}: neither the model nor the standard has a {what} named {name!r}; {hint}"
    warnings.warn(message, FileWarning, stacklevel=level_of_caller())
    return True
