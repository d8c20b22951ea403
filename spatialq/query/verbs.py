"""What is written by hand of the kinds of rows; `functions.py` adds the spatial functions."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import Parameter
from typing import Any, Generic, Literal, Self, TypeVar

from spatialq.data.units import metres
from spatialq.errors import QueryError
from spatialq.functions.catalogue import catalogue
from spatialq.functions.declaration import PointsAndOtherInput, PointsInput
from spatialq.functions.macros import MEMORY
from spatialq.functions.methods import Method
from spatialq.functions.sql_text import literal
from spatialq.io.formats import means_files
from spatialq.io.ifc import schemas
from spatialq.io.source import LAS, READER
from spatialq.query.models import READERS, Model
from spatialq.query.relational import Origin, listed
from spatialq.query.relational import Query as Query
from spatialq.query.sentences import near, said_by
from spatialq.query.steps import Quoted, Sql, Step, Table, plain, sql
from spatialq.query.storeys import require_of_table
from spatialq.query.values import require_text, value

Kind = TypeVar("Kind", bound=Query)
Box = Sequence[float]
BOX_NUMBERS = 6
NAMES = {"name": "name", "class": "ifc_class", "storey": "storey"}
"""What `with_names` adds for each element of a pair: ending -> column of the elements."""


class FunctionVerbs(Query):
    """Rows that spatial functions take."""

    def _called(self, method: Method, given: Sequence[Any], named: Mapping[str, Any]) -> Query:
        """Call the table macro of a method on these rows; what it gives are those of the result."""
        function, (_, *known) = method.name, method.signature.parameters
        for name in named:
            if name not in known:
                message = f"{function}: no argument {name!r}; {near(name, known)}"
                raise QueryError(message)
        try:
            bound = method.signature.bind(self, *given, **named)
        except TypeError as error:
            message = f"{function}: {error}"
            raise TypeError(message) from None
        bound.apply_defaults()
        arguments = {name: bound.arguments[name] for name in known}
        if method.adds_columns:
            return self._added(method, arguments)
        call, others = self._call(method, arguments)
        sides = (self, others.get("b", self)) if "b" in arguments else ()
        origin = Origin(sides=sides, pins=self._origin.pins)
        return self._made(function, Step(function, call), origin=origin)

    def _added(self, method: Method, arguments: Mapping[str, Any]) -> Self:
        """Call a table macro on these points; what it gives for each are columns more."""
        function = method.name
        there = {name.lower() for name in self._columns}
        again = [
            sql(self._step, f".{plain(name)}")
            for name in catalogue()[function].output.columns
            if name.lower() in there and name != "point_id"
        ]
        cloud = self._origin.cloud
        is_whole = isinstance(self._step, Table) or self._is_pinned or not self._step.is_plain
        if cloud is None or again or is_whole:
            cloud = self._step
        call, _ = self._call(method, arguments, cloud)
        # the points that other functions gave columns are those that this one is called on, too
        is_chain = isinstance(self._step, Step) and cloud is not self._step
        before = self._step.source if is_chain else sql(self._step)  # type: ignore[union-attr]
        source = sql(before, " JOIN ", call, " USING (point_id)")
        columns = sql("* EXCLUDE (", *listed(again), ")") if again else None
        step = Step(self._step_name(), source, columns=columns)
        return self._same(function, step, origin=replace(self._origin, cloud=cloud))

    def _call(
        self,
        method: Method,
        arguments: Mapping[str, Any],
        first: Step | Table | None = None,
    ) -> tuple[Sql, dict[str, Query]]:
        """Write a call in which these rows are the first argument.

        Returns
        -------
        Sql
        dict
            The other tables, by the names of their arguments.
        """
        function, declared = method.name, method.signature.parameters
        kinds = {kind.__name__: kind for kind in Query.KINDS}
        others = {
            name: self._rows_of(function, name, arguments[name], kinds.get(kind))
            for name, kind in method.tables.items()
            if arguments[name] is not None
        }
        rows = first or self._step
        positional: list[Sql] = [sql(Quoted(rows, self._file_of(function, rows)))]
        named: list[Sql] = []
        for name, given in {**arguments, **self._implied(arguments)}.items():
            table = others[name]._step if name in others else given
            is_table = isinstance(table, Step | Table)
            if isinstance(given, str) and not is_table:
                given = _number(function, declared[name], given)
            piece = sql(Quoted(table)) if is_table else sql(value(function, name, given))
            default = declared[name].default
            if declared[name].kind is Parameter.KEYWORD_ONLY:
                if is_table or not _same(given, default):
                    named.append(sql(f"{name} := ", piece))
            elif default is Parameter.empty or given is not None:
                positional.append(piece)
        return sql(f"{function}(", *listed([*positional, *named]), ")"), others

    def _file_of(self, function: str, rows: Step | Table) -> str | None:
        """Give the file or pattern that rows are read from, where a function takes files itself."""
        reader, known = self._origin.reader, catalogue().get(function)
        if reader is None or known is None or not isinstance(rows, Step):
            return None
        takes_files = isinstance(known.inputs, PointsInput | PointsAndOtherInput)
        is_whole = rows.is_plain and rows.source == reader.text() and not reader.arguments
        is_named = means_files(reader.path)
        is_cloud = is_named and (reader.function == READER or reader.path.lower().endswith(LAS))
        return reader.path if takes_files and is_whole and is_cloud else None

    def _implied(self, arguments: Mapping[str, Any]) -> dict[str, Step | Table]:
        """Give what is not given and known here: the relations of the model of the elements."""
        model = self._origin.model
        is_wanted = (
            arguments.get("exclude", "none") != "none" and arguments.get("relations") is None
        )
        if not is_wanted or model is None or isinstance(self._step, Table):
            return {}  # beside a table the function finds them itself
        return {"relations": model.table("relations")}


def _number(function: str, declared: Parameter, given: str) -> str | float:
    """Read the text of a length, such as '50mm', as metres; the text of another number is none."""
    kinds = str(declared.annotation).split(" | ")
    if declared.name == MEMORY.name or ("float" not in kinds and "int" not in kinds):
        return given
    if "str" not in kinds:
        message = f"{function}: {declared.name} must be a number, got {given!r}"
        raise QueryError(message)
    with said_by(function):
        return metres(function, declared.name, given)


def _same(given: object, default: object) -> bool:
    """Whether a value is that of the declaration; 1 is 1.0, and a list is a tuple."""
    given = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(given, list | tuple) and isinstance(default, list | tuple):
        return list(given) == list(default)
    are_numbers = isinstance(given, int | float) and isinstance(default, int | float)
    return (are_numbers or type(given) is type(default)) and bool(given == default)


class _Bounded(FunctionVerbs):
    """Rows with x and y."""

    def within(self, bounds: Box) -> Self:
        """Keep what is within a box, its border included.

        Parameters
        ----------
        bounds : sequence of float
            xmin, ymin, xmax, ymax in the units of x and y. Of a file that is read here, only this
            part is decoded where its format allows it.

        Raises
        ------
        QueryError
            If these are not four numbers, or a lower one is above an upper one.
        """
        box = [*bounds.tolist()] if hasattr(bounds, "tolist") else [*bounds]
        are_numbers = all(
            isinstance(each, int | float) and not isinstance(each, bool) for each in box
        )
        if len(box) != 4 or not are_numbers or not (box[0] <= box[2] and box[1] <= box[3]):
            message = f"within: bounds must be xmin, ymin, xmax, ymax, got {bounds!r}"
            raise QueryError(message)
        reader = self._origin.reader
        if reader is not None and isinstance(self._step, Step) and "bounds" not in reader.arguments:
            # through conditions only: before a limit, a window or another x it would be others
            is_read = self._step.changed(where=()).is_plain and self._step.source == reader.text()
            if is_read and not self._is_pinned:
                bounded = reader.with_arguments(bounds=box)
                step = self._step.changed(source=bounded.text())
                return self._same("within", step, origin=Origin(reader=bounded))
        xmin, ymin, xmax, ymax = map(literal, box)
        texts = (f"x BETWEEN {xmin} AND {xmax}", f"y BETWEEN {ymin} AND {ymax}")
        return self._where("within", [sql(each) for each in texts])


class PointVerbs(_Bounded):
    """Points of a cloud."""

    def pin(self, device: Literal["cpu", "gpu"] = "cpu") -> Self:
        """Keep these points in memory while a query runs, for the functions called on them.

        Without this, a query does so where that pays: where several functions are called on the
        same points, and the extension of DuckDB is not loaded.

        Parameters
        ----------
        device : 'cpu' or 'gpu'
            Where to keep them.

        Raises
        ------
        QueryError
            If the device is none of these. Whether it is there shows when the query runs.
        """
        if device not in ("cpu", "gpu"):
            message = f"pin: device must be 'cpu' or 'gpu', got {device!r}"
            raise QueryError(message)
        pins = (*self._origin.pins, (self._step, device))
        origin = replace(self._origin, pins=pins)
        return type(self)(self._con, self._step, self._columns, origin)


class GridVerbs(_Bounded):
    """Cells of a terrain grid."""


class _Classified(FunctionVerbs):
    """Rows with classes and storeys of IFC."""

    def is_a(self, ifc_class: str) -> Self:
        """Keep what is of a class of IFC, or of a subtype by the schema of its model.

        Parameters
        ----------
        ifc_class : str
            Such as 'IfcBeam'.

        Raises
        ------
        QueryError
            If no schema has the class; the sentence names the near ones.
        """
        require_text("is_a", "ifc_class", ifc_class)
        try:
            differ = schemas.subtypes_differ(ifc_class)
        except ValueError as error:
            raise QueryError(str(error).replace("supertype", "ifc_class", 1)) from None
        schema = ", ifc_schema := ifc_schema" if differ and "ifc_schema" in self._columns else ""
        return self._where("is_a", [sql(f"is_a(ifc_class, {literal(ifc_class)}{schema})")])

    def storey(self, name: str) -> Self:
        """Keep what is in a storey.

        Parameters
        ----------
        name : str
            As in the column `storey`.

        Raises
        ------
        QueryError
            If there is no such storey: the sentence names the near ones. Of a file that shows when
            the query runs.
        """
        wanted = literal(require_text("storey", "name", name))
        found = self._where("storey", [sql(f"storey = {wanted}")])
        with said_by("storey"):
            is_known = require_of_table(self._con, self._step, name)
        if is_known:
            return found
        step = found._step.changed(storeys=(*found._step.storeys, name))  # type: ignore[union-attr]
        return type(found)(found._con, step, found._columns, found._origin)

    def _model(self, verb: str) -> Model:
        model = self._origin.model
        if model is None:
            message = f"{verb}: the objects of these rows are not known: name their table"
            raise QueryError(message)
        return model


class ElementVerbs(_Classified):
    """Elements of building models."""

    def elements_where(self, selector: str, *, objects: Query | str | None = None) -> Self:
        """Keep the elements that a selector of IfcOpenShell selects.

        Parameters
        ----------
        selector : str
            Such as 'IfcWall, Pset_WallCommon.FireRating=2HR'.
        objects : Objects or str, optional
            The objects of the models, or the name of their table; by default those of the file, or
            those beside the table, that the elements are of.

        Raises
        ------
        QueryError
            If the selector is none, or names what no schema has.
        """
        needs = _tables_of("elements_where", selector)
        if objects is None:
            model = self._model("elements_where")
            found, beside = model.objects, tuple(model.table(name) for name in needs)
        else:
            found, beside = self._rows_of("elements_where", "objects", objects)._step, ()
        is_beside = isinstance(self._step, Table) and objects is None
        given = [Quoted(self._step), *([] if is_beside else [Quoted(found)])]
        text = sql(
            f"elements_where({literal(selector)}", *(p for g in given for p in (", ", g)), ")"
        )
        return self._same("elements_where", Step(self._step_name(), text, needs=beside))

    def unified_storeys(self, *, objects: Query | str | None = None) -> Query:
        """Give the storeys of elements under one name for all models.

        Parameters
        ----------
        objects : Objects or str, optional
            As for `elements_where`.

        Returns
        -------
        Query
            file_name step_id global_id storey, storey_unified and its elevation in metres: a floor
            is called as most models call it.

        Raises
        ------
        QueryError
            If the objects are not known, with the storeys' elevations.
        """
        given = (
            self._model("unified_storeys").objects
            if objects is None
            else self._rows_of("unified_storeys", "objects", objects)._step
        )
        call = sql("unified_storeys(", Quoted(self._step), ", ", Quoted(given), ")")
        return self._made("unified_storeys", Step("unified_storeys", call))

    def candidate_pairs(
        self,
        b: Query | str | None = None,
        *,
        distance: float | str = 0.0,
        method: Literal["auto", "rtree", "none"] = "auto",
    ) -> Query:
        """Give the pairs of elements whose boxes are near: what spatial operators compare in full.

        Parameters
        ----------
        b : Elements or str, optional
            The other elements, or the name of their table; by default all pairs within these.
        distance : float or str, >= 0
            How far apart the boxes are along an axis at most; metres, or such as '2ft'.
        method : 'auto', 'rtree' or 'none'
            How they are found; the pairs are the same, but for 'none', which are all.

        Returns
        -------
        Pairs
            The GlobalIds a and b.
        """
        other = self if b is None else self._rows_of("candidate_pairs", "b", b)
        if isinstance(distance, str):
            with said_by("candidate_pairs"):
                distance = metres("candidate_pairs", "distance", distance)
        second = () if b is None else (", ", Quoted(other._step))
        options = {"distance": (distance, 0.0), "method": (method, "auto")}
        text = [f", {name} := {literal(value)}" for name, (value, usual) in options.items()
                if value != usual]  # fmt: skip
        call = sql("candidate_pairs(", Quoted(self._step), *second, *text, ")")
        step = Step("candidate_pairs", call)
        origin = Origin(sides=(self, other), pins=self._origin.pins)
        return self._made("candidate_pairs", step, origin=origin)

    def element_boxes(self) -> Query:
        """Give the box around each element that spatial operators consider.

        Returns
        -------
        Query
            global_id identity box: xmin ymin zmin xmax ymax zmax, metres.
        """
        call = sql("element_boxes(", Quoted(self._step), ")")
        return self._made("element_boxes", Step("element_boxes", call))

    def elements_in_box(self, bounds: Sequence[float]) -> Self:
        """Keep the elements whose box meets a box along the axes, with contact.

        Parameters
        ----------
        bounds : sequence of float
            xmin ymin zmin xmax ymax zmax, metres; infinity is no limit.

        Raises
        ------
        QueryError
            If these are not six numbers.
        """
        try:
            (*numbers,) = map(float, bounds)
        except (TypeError, ValueError):
            numbers = []
        if len(numbers) != BOX_NUMBERS or any(math.isnan(each) for each in numbers):
            message = (
                "elements_in_box: bounds must be six numbers, xmin ymin zmin xmax ymax zmax, "
                f"got {bounds!r}"
            )
            raise QueryError(message)
        limits = "".join(f", {literal(each)}" for each in numbers)
        call = sql("elements_in_box(", Quoted(self._step), f"{limits})")
        return self._same("elements_in_box", Step(self._step_name(), call))

    def related_elements(self) -> Query:
        """Give the pairs of elements of these models that belong together, and why.

        Returns
        -------
        Query
            a b rule: 'openings', 'coverings', 'assemblies', 'connections' or 'systems'; each pair
            in both orders, once for each rule. They are those of the whole models.

        Raises
        ------
        QueryError
            If the relations of these elements are not known.
        """
        relations = self._model("related_elements").table("relations")
        call = sql("related_elements(", Quoted(relations), ")")
        return self._made("related_elements", Step("related_elements", call))

    def check_ids(self, rules: str | os.PathLike[str]) -> Query:
        """Check the whole models that these elements are from by an IDS file.

        Parameters
        ----------
        rules : path
            An IDS file.

        Returns
        -------
        Query
            A row for each specification, requirement and object, as of `spatialq.check_ids`.
        """
        call = sql("check_ids(", Quoted(self._step), f", {literal(os.fspath(rules))})")
        return self._made("check_ids", Step("checks", call))

    def model_quality(self) -> Query:
        """Say what is doubtful about the models of a table that `load` has made.

        Returns
        -------
        Query
            rule rule_number requirement reason ifc_class name global_id step_id file_name: a row
            for each rule and object that breaks it.

        Raises
        ------
        QueryError
            If these rows are no table, beside which the others of the models are.
        """
        if not isinstance(self._step, Table):
            message = (
                "model_quality: these rows must be a table of elements as load makes it, "
                "spatialq.table(con, 'elements'), got a query"
            )
            raise QueryError(message)
        call = sql("model_quality(", Quoted(self._step), ")")
        return self._made("model_quality", Step("findings", call))


class ObjectVerbs(_Classified):
    """Objects of building models."""

    def objects_where(self, selector: str) -> Self:
        """Keep the objects that a selector of IfcOpenShell selects.

        Parameters
        ----------
        selector : str
            Such as 'IfcWall, Pset_WallCommon.FireRating=2HR'. It looks for parts, storeys and
            properties in the whole model, whatever of it these rows are.

        Raises
        ------
        QueryError
            If the selector is none, or names what no schema has.
        """
        needs = _tables_of("objects_where", selector)
        model = self._model("objects_where")
        beside = tuple(model.table(name) for name in needs)
        text = sql(f"objects_where({literal(selector)}, ", Quoted(model.objects), ")")
        if self._step is not model.objects:
            text = sql(self._step, " SEMI JOIN ", text, " USING (file_name, step_id)")
        return self._same("objects_where", Step(self._step_name(), text, needs=beside))


def _tables_of(verb: str, selector: str) -> list[str]:
    """Name the tables beside the objects that a selector needs."""
    from spatialq.database.selectors.query import selector_sql  # few need its grammar

    try:
        query = selector_sql(verb, require_text(verb, "selector", selector), "objects")
    except ValueError as error:
        raise QueryError(str(error)) from None
    return [name for name in READERS if f"query_table({literal(name)})" in query]


class PairVerbs(Query, Generic[Kind]):
    """Pairs of elements."""

    def elements(self, column: Literal["a", "b"]) -> Kind:
        """Give the elements that stand in a column, each once.

        Parameters
        ----------
        column : 'a' or 'b'
            Of the first elements, or of the others.

        Raises
        ------
        QueryError
            If the pairs were not made by a method of elements.
        """
        if column not in ("a", "b"):
            message = f"elements: column must be 'a' or 'b', got {column!r}"
            raise QueryError(message)
        side = self._sides("elements")["ab".index(column)]
        source = sql(
            side._step, " AS e SEMI JOIN ", self._step, f" AS p ON p.{column} = e.global_id"
        )
        step = Step(side._step_name(), source)
        return side._same("elements", step)  # type: ignore[return-value]  # they are elements

    def with_names(self) -> Self:
        """Add name, class and storey of both elements.

        Returns
        -------
        Pairs
            With the columns a_name, a_class, a_storey, b_name, b_class and b_storey.

        Raises
        ------
        QueryError
            If the pairs were not made by a method of elements.
        """
        columns = ", ".join(
            f"{letter}.{column} AS {letter}_{ending}"
            for letter in "ab"
            for ending, column in NAMES.items()
        )
        joins = []
        for letter, side in zip("ab", self._sides("with_names"), strict=True):
            named = f"(SELECT DISTINCT ON (global_id) global_id, {', '.join(NAMES.values())} FROM "
            joins.append(
                sql(
                    f" LEFT JOIN {named}",
                    side._step,
                    f") AS {letter} ON {letter}.global_id = p.{letter}",
                )
            )
        source = sql(self._step, " AS p", *joins)
        return self._same("with_names", Step(self._step_name(), source, sql(f"p.*, {columns}")))

    def grouped_clashes(self, *, per: str = "element", distance: float | str = 1.0) -> Self:
        """Add the group that each pair belongs to.

        Parameters
        ----------
        per : str
            'element', that of the two with more pairs; 'space', clusters of pairs; or a column,
            such as 'relation', or one that a and b have, such as 'storey' after `with_names`.
        distance : float or str
            Of 'space': from one pair of a cluster to the next, at most; metres, or such as '2ft'.

        Returns
        -------
        Pairs
            With the columns group_id, 1 for the group with the deepest pair, and group_name.
        """
        return self._same("grouped_clashes", self._groups("grouped_clashes", per, distance))

    def clash_groups(self, *, per: str = "element", distance: float | str = 1.0) -> Self:
        """Give one row for each group of pairs, the one with the deepest first.

        Parameters
        ----------
        per, distance
            As for `grouped_clashes`.

        Returns
        -------
        Pairs
            group_id group_name, how many clashes and elements, the largest penetration, the sum of
            volumes, and the deepest pair.
        """
        return self._same("clash_groups", self._groups("clash_groups", per, distance))

    def clash_matrix(self, *, per: str = "class") -> Query:
        """Count the pairs of each two values of a column.

        Parameters
        ----------
        per : str
            A column that a and b have, such as 'class', 'storey' or 'name' after `with_names`.

        Returns
        -------
        Query
            one other clashes penetration: two values, the first in alphabetical order; the number
            of pairs; the largest penetration.
        """
        call = _with_options("clash_matrix", self._step, {"per": (per, "class")})
        return self._made("clash_matrix", Step("clash_matrix", call))

    def _groups(self, macro: str, per: str, distance: float | str) -> Step:
        """Call a macro of groups on these pairs."""
        if isinstance(distance, str):
            with said_by(macro):
                distance = metres(macro, "distance", distance)
        given = {"per": (per, "element"), "distance": (distance, 1.0)}
        return Step(macro, _with_options(macro, self._step, given))

    def _sides(self, verb: str) -> tuple[Query, ...]:
        if not self._origin.sides:
            message = f"{verb}: the elements of these pairs are not known: join them by global_id"
            raise QueryError(message)
        return self._origin.sides


class NodeVerbs(Query):
    """Nodes of a tree of a point cloud, as build_lod gives them."""

    def lod_select(
        self,
        camera: Mapping[str, Any],
        *,
        pixels: float = 1.0,
        max_samples: int | None = None,
    ) -> Self:
        """Keep the nodes that a viewer needs for a view.

        Parameters
        ----------
        camera : mapping
            `eye` and `target`: x, y, z; optional are `up` (default 0, 0, 1), `fov` (degrees from
            bottom to top, default 60) or `view_height` (for a parallel view, in the unit of x, y
            and z), `width` and `height` (pixels, default 1920 and 1080), `near` (default 0), `far`.
        pixels : float
            How many pixels a voxel may cover from side to side.
        max_samples : int, optional
            Maximum number of samples: the view becomes coarser to keep it.

        Returns
        -------
        Nodes
            With the columns pixels and octants: how many pixels a voxel covers at most, and which
            octants are drawn.

        Raises
        ------
        QueryError
            If the camera is none.
        """
        fields = ", ".join(
            f"{plain(str(name))}: {value('lod_select', 'camera', each)}"
            for name, each in camera.items()
        )
        named = {"pixels": (pixels, 1.0), "max_samples": (max_samples, None)}
        text = _with_options("lod_select", self._step, named, f", {{{fields}}}")
        return self._same("lod_select", Step("lod_select", text))


def _with_options(
    macro: str, step: Step | Table, options: Mapping[str, tuple[Any, Any]], more: str = ""
) -> Sql:
    """Write the call of a macro on rows, with the options whose values are not their defaults."""
    given = "".join(
        f", {name} := {value(macro, name, each)}"
        for name, (each, default) in options.items()
        if each != default
    )
    return sql(f"{macro}(", Quoted(step), f"{more}{given})")
