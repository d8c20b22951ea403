"""`spatialq mcp`: tables, functions, SQL and pictures for an assistant, over standard streams."""

from typing import Annotated

import typer


def mcp(
    sources: Annotated[
        list[str],
        typer.Argument(help="As of spatialq view: files, a database, its tables, or queries."),
    ],
    *,
    database: Annotated[
        str | None,
        typer.Option("--database", "-d", help="DuckDB file of which tables or queries are named."),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="What a query may take.")] = 10.0,
    memory: Annotated[
        str | None, typer.Option(help="What a query may take, such as 4GB; by default 1GB.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of an answer.")] = 200,
) -> None:
    """Answer an assistant over the Model Context Protocol: its client starts this command."""
    from spatialq.runtime.extras import missing

    if reason := missing("mcp"):
        message = f"mcp: {reason}"
        raise ValueError(message)
    from spatialq.runtime.budget import parse_size
    from spatialq.serve.assistant import open_assistant
    from spatialq.serve.limits import Limits

    size = Limits.memory if memory is None else parse_size(memory, "mcp: memory")
    with open_assistant(sources, database, Limits(seconds, size, rows)) as server:
        server.run("stdio")
