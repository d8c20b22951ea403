"""`spatialq.view`: rows in the page, from Python; in a notebook, the page is a widget."""

import secrets
import threading
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.errors import QueryError
from spatialq.functions.sql_text import identifier, literal
from spatialq.query.query import from_sql
from spatialq.query.relational import Query
from spatialq.runtime.extras import missing
from spatialq.runtime.temporary import temporary_folder
from spatialq.serve.chosen import Chosen
from spatialq.serve.sources import CLASHES, ELEMENTS, PLANES, POINTS

if TYPE_CHECKING:
    import duckdb

KINDS = (("points", POINTS), ("elements", ELEMENTS), ("planes", PLANES))
"""What tables of rows are called, by the columns that they have."""
PAIRS = "pairs"
KEYS = {"point": "point_id", "element": "global_id", "plane": "plane_id"}
HEIGHT = 600
FRONT_END = """
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `border: 0; width: 100%; height: ${model.get("height")}px`;
    frame.allow = "clipboard-write; fullscreen";
    const open = () => { if (model.get("address")) frame.src = model.get("address"); };
    model.on("change:address", open);
    el.append(frame);
    // the server lets those show the page that are said to it
    model.set("origins", [...new Set([location.origin, ...(location.ancestorOrigins ?? [])])]);
    model.save_changes();
    open();
    return () => model.off("change:address", open);
  },
};
"""


class View:
    """A page that shows rows, until it is closed or the process ends.

    What is selected there is `selected`. In a notebook the page is shown where the view is the
    last line of a cell; else `address` is for the browser.

    Parameters
    ----------
    queries : sequence of Query
        See `view`.
    """

    def __init__(self, queries: Sequence[Query]) -> None:
        from spatialq.serve.app import Server
        from spatialq.serve.scene import open_scene
        from spatialq.serve.server import Listening

        self._chosen = Chosen({})
        self._given: Query | None = None
        self._widget: Any = None
        with ExitStack() as stack:
            folder = stack.enter_context(temporary_folder("spatialq_rows_"))
            path = folder / "rows.duckdb"
            self._queries = _copied(queries, path)
            self._shown = tuple(self._queries.values())[: len(queries)]
            self._scene = stack.enter_context(open_scene([str(path)], cache=folder))
            self._scene.opened.title = ", ".join(self._queries)
            self._server = Server(self._scene, chosen=self._chosen)
            self._listening = Listening(self._server)
            stack.callback(self._listening.close)
            self._listening.start()
            building = threading.Thread(target=self._scene.build, daemon=True)
            building.start()
            stack.callback(building.join)  # it uses the connection that is closed then
            self._close = weakref.finalize(self, stack.pop_all().close)

    @property
    def address(self) -> str:
        """Where the page is, for a browser of this machine."""
        return self._listening.address

    @property
    def selected(self) -> Query:
        """The rows that are selected in the page, as a query of those that were given.

        Setting it to other rows with such ids, or to a condition of the first rows that were
        given, selects them in the page; a column of numbers or truth values beside the ids colours
        them.

        Raises
        ------
        QueryError
            If rows have no `point_id`, `global_id` or `plane_id`.
        """
        said = self._chosen.said
        if not said:
            return self._shown[0].where("false")
        if said.get("result") is not None and self._given is not None:
            return self._given
        kind = str(said["kind"])
        key = KEYS[kind]
        query = self._rows_of(kind, said.get("cloud"))
        if said.get("text"):
            return query.where(f"{key} IN ({self._written(key, said['text'])})")
        ids = ", ".join(
            str(int(each)) if kind != "element" else literal(str(each)) for each in said["ids"]
        )
        if key in query.columns:
            return query.where(f"{key} IN ({ids})")
        names = ("a", "b") if "a" in query.columns else ("a_global_id", "b_global_id")
        # of one element all its pairs, of two that of both
        both = "OR" if len(said["ids"]) == 1 else "AND"
        return query.where(f"({names[0]} IN ({ids}) {both} {names[1]} IN ({ids}))")

    @selected.setter
    def selected(self, rows: "Query | duckdb.DuckDBPyRelation | str") -> None:
        query = self._shown[0].where(rows) if isinstance(rows, str) else _query(rows)
        if not {*KEYS.values(), "a_global_id"} & {*query.columns}:
            message = (
                "view: selected must have point_id, global_id or plane_id, got "
                f"{', '.join(query.columns)}"
            )
            raise QueryError(message)
        self._server.select(query.to_arrow())
        self._given = query

    @property
    def widget(self) -> Any:
        """The page as a widget, which stands beside others of ipywidgets.

        Raises
        ------
        QueryError
            If the extra [notebook] is not installed.
        """
        if reason := missing("notebook"):
            message = f"view: {reason}"
            raise QueryError(message)
        if self._widget is None:
            self._widget = _widget(self)
        return self._widget

    def close(self) -> None:
        """End the page and its server."""
        if self._widget is not None:
            self._widget.close()
        self._close()

    def _rows_of(self, kind: str, cloud: int | None) -> Query:
        """Give the rows that a kind of things in the page are of."""
        if kind == "point":
            return self._queries[self._scene.clouds[int(cloud or 0)].table.name]
        key = KEYS[kind]
        of_kind = (each for each in self._shown if key in each.columns or _kind(each) == PAIRS)
        return next(of_kind, self._shown[0])

    def _written(self, key: str, text: str) -> str:
        """Write a query of the box over the rows that were given."""
        tables = ", ".join(
            f"{identifier(name)} AS ({query.sql()})"
            for name, query in self._queries.items()
            if name in text.lower()
        )
        known = f"WITH {tables} " if tables else ""
        return f"{known}SELECT {key} FROM ({text.rstrip().rstrip(';')}\n)"

    def __repr__(self) -> str:
        return f"<View: {', '.join(self._queries)} at {self.address}>"

    def _repr_mimebundle_(self, **_: Any) -> Any:
        """Give the widget for front ends that have widgets, and the sentence for others."""
        if reason := missing("notebook"):
            return {"text/plain": f"{self!r}\n{reason}"}
        bundle, *metadata = self.widget._repr_mimebundle_()
        return ({**bundle, "text/plain": repr(self)}, *metadata)

    def _permit(self, origins: Sequence[str]) -> None:
        """Let a front end show the page."""
        self._listening.guard.permit(origins)


def view(*rows: "Query | duckdb.DuckDBPyRelation") -> View:
    """Show rows in the page of `spatialq view`, in a notebook or at its `address`.

    Parameters
    ----------
    *rows : Query or duckdb.DuckDBPyRelation
        Points, elements, planes, or pairs of elements, which are copied when they are shown. Pairs
        are listed, and their elements are shown if the query knows them.

    Returns
    -------
    View
        With `selected`, the rows that are selected in the page.

    Raises
    ------
    QueryError
        If rows have no place, or the extra [view] is not installed.

    Examples
    --------
    >>> page = spatialq.view(scan, house)
    >>> page.selected = scan.where("height > 20")
    """
    if reason := missing("view"):
        message = f"view: {reason}"
        raise QueryError(message)
    if not rows:
        message = "view: rows must be queries, got none"
        raise QueryError(message)
    return View([_query(each) for each in rows])


def shown(query: Query) -> View | None:
    """Give the view of a query if this is a notebook that can show it; else None."""
    import sys

    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None or missing("notebook"):
        return None
    return None if _kind(query) is None else view(query)


def _query(rows: Any) -> Query:
    if isinstance(rows, Query):
        return rows
    con = getattr(rows, "_con", None)  # where DuckDB keeps it since 2.0
    if con is None or not hasattr(rows, "sql_query"):
        message = f"view: rows must be a query or a relation of DuckDB, got {type(rows).__name__}"
        raise QueryError(message)
    return from_sql(con, rows.sql_query())


def _kind(query: Query) -> str | None:
    """Say what rows are, None of those without a place."""
    names = {name.lower() for name in query.columns}
    if any(pair <= names for pair in CLASHES):
        return PAIRS
    return next((kind for kind, needed in KINDS if needed <= names), None)


def _copied(queries: Sequence[Query], path: Path) -> dict[str, Query]:
    """Copy rows into tables of a database, and give them by the names of these."""
    found: dict[str, Query] = {}
    sides: list[Query] = []
    for query in queries:
        kind = _kind(query)
        if kind is None:
            message = (
                "view: rows must have point_id, x, y and z, or global_id and mesh, or plane_id and "
                f"nx, ny, nz and d, or a and b, got {', '.join(query.columns)}"
            )
            raise QueryError(message)
        count = sum(name.partition("_")[0] == kind for name in found)
        found[f"{kind}_{count + 1}" if count else kind] = query
        sides += query._origin.sides if kind == PAIRS else ()
    if sides and "elements" not in found:
        found["elements"] = sides[0] if len(sides) == 1 else sides[0].union(sides[1]).distinct()
    for name, query in found.items():
        database = f"rows_{secrets.token_hex(8)}"
        query._con.execute(f"ATTACH {literal(str(path))} AS {database}")
        try:
            query.create(f"{database}.main.{name}")
        finally:
            query._con.execute(f"DETACH {database}")
    return found


def _widget(shown: View) -> Any:
    """Make the widget of a view: a frame for its page, once it has said who shows it."""
    import anywidget
    import traitlets

    widget = type("Page", (anywidget.AnyWidget,), {
        "_esm": FRONT_END,
        "address": traitlets.Unicode("").tag(sync=True),
        "origins": traitlets.List(traitlets.Unicode()).tag(sync=True),
        "height": traitlets.Int(HEIGHT).tag(sync=True),
    })()  # fmt: skip
    of_view = weakref.ref(shown)

    def permit(change: Any) -> None:
        if (of := of_view()) is not None:
            of._permit(change["new"])
            widget.address = of.address

    widget.observe(permit, "origins")
    return widget
