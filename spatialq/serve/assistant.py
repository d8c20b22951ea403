"""The tools of `spatialq mcp`: what an assistant may ask, by the queries of the box."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spatialq.database.macros import macros
from spatialq.errors import SpatialqError
from spatialq.runtime.temporary import temporary_folder
from spatialq.serve.box import Box
from spatialq.serve.cache import cache_folder
from spatialq.serve.limits import Limits
from spatialq.serve.pool import Pool, QueryFailedError
from spatialq.serve.sources import DATABASES, PARQUET, QUERY, open_sources

if TYPE_CHECKING:
    from mcp.server import MCPServer

INSTRUCTIONS = (
    "Point clouds and building models as tables of DuckDB, read-only. Call `tables` first. Spatial "
    "functions are table functions: FROM owm_ground(points, window_size := 5.0); `functions` lists "
    "them, and with a name gives the parameters. Coordinates are those of the files, mostly metres."
)
OWN = "spatialq"
MOST_PIXELS = 2000
"""Of a side of a picture."""


@contextmanager
def open_assistant(
    sources: Sequence[str], database: str | None, limits: Limits
) -> "Iterator[MCPServer]":
    """Open what was named, and give the server whose tools read it.

    Parameters
    ----------
    sources, database
        See `open_sources`.
    limits : Limits
        Of a query.
    """
    with cache_folder() as cache, open_sources(sources, database, cache) as opened:
        tables = [{"table": each.name, "columns": dict(each.columns)} for each in opened.tables]
        others = (*DATABASES, PARQUET)
        files = [each for each in sources if not (QUERY.match(each) or each.endswith(others))]
        files = [] if database else files
        box = Box(opened.databases, [], limits)
        with closing(Pool(box, 1)) as pool:
            yield _server(pool, tables, files, limits)


def _server(
    pool: Pool, known: list[dict[str, Any]], files: Sequence[str], limits: Limits
) -> "MCPServer":
    from mcp.server.mcpserver import Image, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server = MCPServer("spatialq", instructions=INSTRUCTIONS, log_level="ERROR")

    @server.tool()
    def tables() -> list[dict[str, Any]]:
        """List the tables with their columns and types."""
        return known

    @server.tool()
    def functions(name: str | None = None) -> str:
        """List the spatial functions with a sentence each; of one, give parameters and result."""
        # those that begin with the package's name are parts of others
        there = {each.name: each for each in macros("native") if each.name.partition("_")[0] != OWN}
        if name is None:
            return "\n".join(f"{key}: {_sentence(each.comment)}" for key, each in there.items())
        if name not in there:
            near = ", ".join(get_close_matches(name, there) or there)
            message = f"functions: no spatial function {name!r}; there is {near}"
            raise ToolError(message)
        call = there[name].statement.partition("MACRO ")[2].partition(" AS ")[0]
        return f"{' '.join(call.split())}\n\n{there[name].comment}"

    @server.tool()
    def sql(query: str, parameters: list[Any] | None = None) -> dict[str, Any]:
        """Run one statement that reads, in DuckDB's SQL; ? in it are the parameters."""
        try:
            answer = json.loads(pool.ask(query, parameters or None).data)
        except (SpatialqError, QueryFailedError) as error:
            raise ToolError(str(error)) from None
        shown = len(answer["rows"])
        said = f"{shown} rows, which are all"
        if answer["truncated"]:
            said = f"the first {shown} rows; there are more: ask for fewer, or aggregate them"
        return {"columns": answer["columns"], "rows": answer["rows"], "note": said}

    @server.tool()
    def picture(
        eye: list[float] | None = None,
        target: list[float] | None = None,
        view_height: float | None = None,
        width: int = 800,
        height: int = 600,
    ) -> Image:
        """Draw the files that were named; by default all of them, from the south-west above.

        `eye` is where the camera stands and `target` the middle of the picture, each x, y and z;
        `view_height` makes the view parallel and is what it shows from bottom to top.
        """
        from spatialq.workflows.rendering import write_picture

        if not files:
            message = "mcp: a picture is drawn of files, but a database or queries were named"
            raise ToolError(message)
        if not (1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS):
            message = (
                f"mcp: width and height must be from 1 to {MOST_PIXELS}, got {width} and {height}"
            )
            raise ToolError(message)
        with temporary_folder("spatialq_picture_") as folder:
            path: Path = folder / "picture.png"
            try:
                write_picture(
                    files, path, eye=eye, target=target, view_height=view_height,
                    size=(width, height),
                )  # fmt: skip
            except (SpatialqError, ValueError) as error:
                raise ToolError(str(error)) from None
            return Image(data=path.read_bytes(), format="png")

    return server


def _sentence(comment: str) -> str:
    """Give the first sentence of what is said of a macro."""
    about = " ".join(takewhile(lambda line: not re.match(r"\w+: ", line), comment.splitlines()))
    return about.partition(". ")[0].removesuffix(".") + "."
